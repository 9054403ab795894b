//! Pointers that readers follow while the writer replaces what they point to.
//!
//! Adjacencies hold values of any type, so unlike the tables' words they cannot be one atomic integer. Copying the
//! values under a lock instead would put the lock on the packet path.

#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sync::epoch::{Domain, Pinned};

/// An optional boxed value, replaced as a whole.
#[derive(Debug)]
struct RcuCell<T>(AtomicPtr<T>, PhantomData<*mut T>);

// SAFETY: owns the value, as a box does.
unsafe impl<T: Send> Send for RcuCell<T> {}
// SAFETY: hands out references to the value, and by `swap` the value itself.
unsafe impl<T: Send + Sync> Sync for RcuCell<T> {}

/// A value taken out of sight that a reader may still look at.
///
/// Has no destructor: forgetting it leaks, freeing it early is what [`Retired::free`] asks about.
#[derive(Debug)]
pub(crate) struct Retired<T>(NonNull<T>);

// SAFETY: owns the value, as a box does.
unsafe impl<T: Send> Send for Retired<T> {}

impl<T> RcuCell<T> {
    fn empty() -> Self {
        RcuCell(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    /// The value.
    ///
    /// # Safety
    /// Nobody may free the value while the reference lives.
    #[inline]
    unsafe fn get(&self) -> Option<&T> {
        // SAFETY: a pointer that is not null comes from a box, which is not freed (the caller's promise).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    fn swap(&self, value: Option<Box<T>>) -> Option<Retired<T>> {
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

/// Values that a writer and its readers share, each replaced as a whole. Values that are replaced are freed by the
/// epochs of one domain.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    cells: Box<[RcuCell<T>]>,
    domain: Domain,
    /// What the writer could not free before it went away; freed with the last reader.
    leftover: Mutex<Vec<Retired<T>>>,
}

impl<T> Cells<T> {
    /// So many cells, all empty.
    pub(crate) fn empty(count: usize, domain: &Domain) -> Self {
        let cells = (0..count).map(|_| RcuCell::empty()).collect();
        Cells { cells, domain: domain.clone(), leftover: Mutex::default() }
    }

    /// The domain whose epochs count.
    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// A value, for as long as the announcement stands. None if there is none, or the announcement is made elsewhere.
    #[inline]
    pub(crate) fn get<'a>(&'a self, place: usize, pinned: &'a Pinned<'_>) -> Option<&'a T> {
        let cell = self.cells.get(place).filter(|_| pinned.is_in(&self.domain))?;
        // SAFETY: the announcement is made in this domain and stands for `'a`.
        unsafe { cell.get() }
    }

    /// All values under an announcement, which is looked at once; none if it is made elsewhere.
    #[inline]
    pub(crate) fn under<'a>(&'a self, announcement: Announcement<'a>) -> Seen<'a, T> {
        let pinned = match &announcement {
            Announcement::Own(pinned) => pinned,
            Announcement::Of(pinned) => pinned,
        };
        let cells: &[RcuCell<T>] = if pinned.is_in(&self.domain) { &self.cells } else { &[] };
        Seen { cells, _announcement: announcement }
    }

    /// A value as its writer sees it.
    ///
    /// # Safety
    /// Nobody may free what is in the cells while the reference lives.
    pub(crate) unsafe fn get_as_writer(&self, place: usize) -> Option<&T> {
        // SAFETY: the caller's promise.
        self.cells.get(place).and_then(|cell| unsafe { cell.get() })
    }

    /// Puts a value in place and returns the one that was there.
    pub(crate) fn swap(&self, place: usize, value: Option<Box<T>>) -> Option<Retired<T>> {
        self.cells.get(place)?.swap(value)
    }

    /// Keeps what a writer that goes away could not free.
    #[expect(clippy::disallowed_methods, reason = "a writer that goes away")]
    pub(crate) fn leave(&self, retired: impl IntoIterator<Item = Retired<T>>) {
        self.leftover.lock().unwrap_or_else(PoisonError::into_inner).extend(retired);
    }
}

/// The announcement that somebody looks under.
pub(crate) enum Announcement<'a> {
    /// Made for this.
    Own(Pinned<'a>),
    /// Made for more.
    Of(&'a Pinned<'a>),
}

/// Values as one announcement shows them.
pub(crate) struct Seen<'a, T> {
    /// Those of the announcement's domain.
    cells: &'a [RcuCell<T>],
    _announcement: Announcement<'a>,
}

impl<T> Seen<'_, T> {
    /// A value; none if there is none.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        // SAFETY: the announcement is made in the domain of the cells, and stands as long as `self` is there.
        self.cells.get(place).and_then(|cell| unsafe { cell.get() })
    }
}

impl<T> Drop for Cells<T> {
    fn drop(&mut self) {
        let leftover = self.leftover.get_mut().unwrap_or_else(PoisonError::into_inner);
        for retired in leftover.drain(..) {
            // SAFETY: the last handle is going away, so no reader is left.
            unsafe { retired.free() };
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Implemented twice for what is `$bound`, so that only for what is not it is clear which one is meant.
    macro_rules! assert_not {
        ($type:ty: $bound:ident) => {{
            trait Unless<Which> {
                fn clear() {}
            }
            struct Is;
            impl<T> Unless<()> for T {}
            impl<T: $bound> Unless<Is> for T {}
            <$type as Unless<_>>::clear();
        }};
    }

    #[test]
    fn cells_go_where_their_values_may() {
        fn sends_and_shares<T: Send + Sync>() {}
        sends_and_shares::<Cells<u32>>();
        assert_not!(Cells<Rc<u32>>: Send);
        assert_not!(Cells<Rc<u32>>: Sync);
        assert_not!(Cells<Cell<u32>>: Sync);
        assert_not!(Retired<Rc<u32>>: Send);
        assert_not!(crate::sync::epoch::Participant: Sync);
    }

    #[test]
    fn an_announcement_elsewhere_shows_nothing() {
        let (here, elsewhere) = (Domain::new(), Domain::new());
        let cells = Cells::empty(1, &here);
        assert!(cells.swap(0, Some(Box::new(7))).is_none());
        let (one, other) = (here.participant(), elsewhere.participant());
        assert_eq!((cells.get(0, &one.pin()), cells.get(0, &other.pin())), (Some(&7), None));
        let (here, elsewhere) = (one.pin(), other.pin());
        assert_eq!(cells.under(Announcement::Of(&here)).get(0), Some(&7));
        assert_eq!(cells.under(Announcement::Of(&elsewhere)).get(0), None);
    }
}
