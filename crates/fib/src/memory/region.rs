//! Where lookups find what they walk: parts of a region, each at an offset from its base.
//!
//! A table's parts lie one behind the other in one region, each of a power of two of elements, at offsets that its layout
//! says. So a reader that knows the base and the layout, and nothing of this crate, can walk them; it masks each index
//! by the size of the part, so that whatever it reads it stays inside. A [`Region`] of a caller may be the value of a
//! map that such a reader has, too. A map is backed as a whole, so its layout is made for what the table is to hold; the
//! system's own mapping costs only what is used, so its layout is the largest there is.

use std::marker::PhantomData;
use std::ops::{Deref, Index, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::FibError;
use crate::memory::mapping::{HUGE_PAGE, PAGE, Zeroed};

/// Every part begins at a cache line.
const LINE: usize = 64;
/// Elements that a part has at least.
const BLOCK_MAX: usize = 8;

/// Memory for a table. It is zero when the table gets it, and from then on nobody but the table writes it.
pub trait Region: Send + Sync + 'static {
    /// The memory, the same at every call, from the start of a cache line on.
    fn words(&self) -> &[AtomicU64];

    /// Told, once for each part, that so many bytes are in use from its start on that large pages are worth while.
    fn has_grown(&self, _part: Range<usize>, _used_bytes: usize) {}

    /// How much memory is behind a part.
    fn resident_bytes(&self, part: Range<usize>) -> usize {
        part.len()
    }
}

/// Where a part is: the offset of its first element from the region's base, in bytes, and what indices are masked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset in bytes.
    pub offset: u32,
    /// Elements less one; their number is a power of two.
    pub mask: u32,
}

impl Place {
    /// The place of 2^`bits` elements of a size, at or after an offset.
    pub(crate) const fn after(offset: u32, bits: u32, size: usize) -> (Place, u32) {
        let offset = offset.next_multiple_of(LINE as u32);
        (Place { offset, mask: (1 << bits) - 1 }, offset + ((size as u32) << bits))
    }
}

/// An array of a power of two of elements in a region. Indices are masked, so none is out of bounds.
pub(crate) struct Part<T> {
    elements: NonNull<T>,
    /// As wide as the indices that words hold: a wider one costs an instruction.
    mask: u32,
    bytes: Range<usize>,
    region: Arc<dyn Region>,
    /// Whether the region was told that this has grown.
    has_grown: AtomicBool,
}

// SAFETY: the region is owned in part and `Send + Sync`, and so is `T` by `Zeroed`.
unsafe impl<T: Zeroed> Send for Part<T> {}
// SAFETY: as above; only shared references are given out.
unsafe impl<T: Zeroed> Sync for Part<T> {}

/// The elements of a [`Part`], to be kept in registers.
pub(crate) struct Elements<'a, T> {
    elements: NonNull<T>,
    mask: u32,
    part: PhantomData<&'a [T]>,
}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Elements<'_, T> {}

impl<T: Zeroed> Part<T> {
    /// The part of a region at a place.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the region is too short for it or does not begin at a cache line.
    pub(crate) fn of(region: &Arc<dyn Region>, place: Place) -> Result<Self, FibError> {
        const { assert!(align_of::<T>() <= LINE) };
        let (mask, start, words) = (place.mask, place.offset as usize, region.words());
        let bytes = start..start + (mask as usize + 1) * size_of::<T>();
        let is_there = bytes.end <= size_of_val(words) && words.as_ptr().align_offset(LINE) == 0;
        if !is_there
            || start % LINE != 0
            || mask < BLOCK_MAX as u32 - 1
            || !mask.wrapping_add(1).is_power_of_two()
        {
            return Err(FibError::Memory { bytes: bytes.end });
        }
        // SAFETY: `start` is inside the words.
        let elements = unsafe { NonNull::from(words).cast::<u8>().add(start) }.cast();
        let (region, has_grown) = (region.clone(), AtomicBool::new(false));
        Ok(Part { elements, mask, bytes, region, has_grown })
    }

    /// The elements.
    #[inline(always)]
    pub(crate) fn elements(&self) -> Elements<'_, T> {
        Elements { elements: self.elements, mask: self.mask, part: PhantomData }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.mask as usize + 1
    }

    /// Notes that `used` elements from `start` on are in use, and tells the region if that makes large pages worth while. A
    /// reader may have to wait once, for as long as the pages take to be copied together.
    pub(crate) fn grow(&self, start: usize, used: usize) {
        if used * size_of::<T>() >= HUGE_PAGE && !self.has_grown.swap(true, Ordering::Relaxed) {
            let used_bytes = (start + used).min(self.len()) * size_of::<T>();
            self.region.has_grown(self.bytes.clone(), used_bytes);
        }
    }

    /// Bytes of memory behind the array, as long as nobody read where nothing was written.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.region.resident_bytes(self.bytes.clone())
    }
}

impl<'a, T> Elements<'a, T> {
    /// The element at an index, masked.
    #[inline(always)]
    pub(crate) fn get(self, index: u32) -> &'a T {
        // SAFETY: a masked index is inside the part, which `of` found inside the region. The region keeps its words where
        // they are as long as it is there, and the part keeps the region. They are atomic integers that are accessed as
        // these elements only, which any value is good for (`Zeroed`).
        unsafe { self.elements.add((index & self.mask) as usize).as_ref() }
    }
}

impl<T> Index<usize> for Elements<'_, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        self.get(index as u32)
    }
}

impl<T: Zeroed> Index<usize> for Part<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        self.elements().get(index as u32)
    }
}

impl<'a, T: Zeroed> Elements<'a, T> {
    /// The `K` elements from an index on that is a multiple of `K`, a power of two; masked, all of them.
    #[inline(always)]
    pub(crate) fn block<const K: usize>(self, index: u32) -> &'a [T; K] {
        const { assert!(K.is_power_of_two() && K <= BLOCK_MAX) };
        let index = index & self.mask & !(K as u32 - 1);
        // SAFETY: as for `get`; a part has a power of two of elements, `BLOCK_MAX` at least, so a block that begins inside
        // of it ends there, too.
        unsafe { self.elements.add(index as usize).cast().as_ref() }
    }
}

/// A part whose number of elements is known when this is compiled, so that an index that is bounded needs no mask.
pub(crate) struct FixedPart<T, const N: usize>(Part<T>);

impl<T: Zeroed, const N: usize> FixedPart<T, N> {
    /// As [`Part::of`]; an error, too, if there are not `N` elements.
    pub(crate) fn of(region: &Arc<dyn Region>, place: Place) -> Result<Self, FibError> {
        let part = Part::of(region, place)?;
        if part.len() == N {
            Ok(FixedPart(part))
        } else {
            Err(FibError::Memory { bytes: N * size_of::<T>() })
        }
    }

    /// As [`Part::grow`].
    pub(crate) fn grow(&self, start: usize, used: usize) {
        self.0.grow(start, used);
    }
}

impl<T, const N: usize> Deref for FixedPart<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        // SAFETY: as for `Elements`, and there are `N`.
        unsafe { self.0.elements.cast().as_ref() }
    }
}

/// Which pages of a part were written. The others read as zero, and to read one would map it; readers do, which costs no
/// memory but would count.
#[derive(Debug)]
pub(crate) struct Written {
    pages: Vec<u64>,
    page_len: usize,
}

impl Written {
    /// For a part of which nothing was written.
    pub(crate) fn none<T, const N: usize>(_: &FixedPart<T, N>) -> Self {
        let page_len = PAGE / size_of::<T>();
        Written { pages: vec![0; N.div_ceil(page_len * 64)], page_len }
    }

    /// Whether an element is on a page that was written.
    pub(crate) fn has(&self, index: usize) -> bool {
        let page = index / self.page_len;
        self.pages[page / 64] & 1 << (page % 64) != 0
    }

    /// Notes that an element is written.
    pub(crate) fn set(&mut self, index: usize) {
        let page = index / self.page_len;
        self.pages[page / 64] |= 1 << (page % 64);
    }

    /// Notes that all pages are there.
    pub(crate) fn set_all(&mut self) {
        self.pages.fill(u64::MAX);
    }

    /// Bytes of the pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.iter().map(|pages| pages.count_ones() as usize * PAGE).sum()
    }
}
