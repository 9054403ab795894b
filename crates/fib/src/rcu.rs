//! A pointer that readers follow while the writer replaces what it points to.
//!
//! Adjacencies hold values of any type, so unlike the tables' words they cannot be one atomic integer. Copying the
//! values under a lock instead would put the lock on the packet path.

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};
use std::ops::Deref;
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::epoch::Pinned;

/// An optional boxed value, replaced as a whole.
#[derive(Debug)]
pub(crate) struct RcuCell<T>(AtomicPtr<T>);

/// A value taken out of sight that a reader may still look at.
///
/// Has no destructor: forgetting it leaks, freeing it early is what [`Retired::free`] asks about.
#[derive(Debug)]
pub(crate) struct Retired<T>(NonNull<T>);

// SAFETY: owns the value, as a box does.
unsafe impl<T: Send> Send for Retired<T> {}

impl<T> RcuCell<T> {
    pub(crate) fn empty() -> Self {
        RcuCell(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value, for as long as the reader stays pinned.
    ///
    /// # Safety
    /// `pinned` must belong to the domain whose epochs decide when this cell's retired values are freed.
    #[inline]
    pub(crate) unsafe fn get<'a>(&'a self, pinned: &'a Pinned<'_>) -> Option<&'a T> {
        let _ = pinned;
        // SAFETY: non-null pointers come from boxes, and none is freed while a reader that could have read it is
        // pinned (the caller's promise).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Puts a value in place and returns the one that was there.
    pub(crate) fn swap(&self, value: Option<Box<T>>) -> Option<Retired<T>> {
        let new = value.map_or(std::ptr::null_mut(), Box::into_raw);
        NonNull::new(self.0.swap(new, Ordering::AcqRel)).map(Retired)
    }
}

impl<T> Drop for RcuCell<T> {
    fn drop(&mut self) {
        if let Some(last) = self.swap(None) {
            // SAFETY: `&mut self` proves that no reader has a reference into this cell.
            unsafe { last.free() };
        }
    }
}

impl<T> Deref for Retired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value is there until `free` or `reuse` consume `self`, and nobody changes it before.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Retired<T> {
    /// Drops the value.
    ///
    /// # Safety
    /// No reader may hold a reference to it: its stamp is before the oldest epoch announced.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller's promise.
        drop(unsafe { self.reuse() });
    }

    /// The value, to be changed.
    ///
    /// # Safety
    /// As for [`Retired::free`].
    pub(crate) unsafe fn reuse(self) -> Box<T> {
        // SAFETY: the pointer came out of a box in `swap` and is used once, because `self` is consumed; no reader
        // has a reference to what it points to (the caller's promise).
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}
