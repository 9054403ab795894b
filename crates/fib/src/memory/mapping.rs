//! Address space of the process as a region, and what the processor has: prefetching, instructions.
//!
//! The one place that asks the operating system for memory. A table reserves address space for the largest it can
//! become and pays only for the pages it touches, so readers never see an array move. Pages are small as long as a
//! table is: with huge ones the first line of each array would cost 2 MiB, and a router may have hundreds of tables.
//! A part that has grown beyond a huge page asks for huge pages.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use crate::error::FibError;
use crate::memory::region::Region;

/// Types for which all-zero bytes are a value and which may be changed through a shared reference.
///
/// # Safety
/// Zero bytes must be a valid value and the type must need no drop.
pub(crate) unsafe trait Zeroed: Sync + Send {}
// SAFETY: integers, valid for every bit pattern.
unsafe impl Zeroed for AtomicU16 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU64 {}

// SAFETY: an array is as valid as its elements.
unsafe impl<T: Zeroed, const K: usize> Zeroed for [T; K] {}

pub(crate) const PAGE: usize = 4096;
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// Puts huge pages in the place of small ones at once (Linux 6.1).
const MADV_COLLAPSE: libc::c_int = 25;

/// Address space of the process, zero, with memory behind what is written.
pub(crate) struct Mapping {
    words: NonNull<[AtomicU64]>,
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
}

// SAFETY: the mapping is owned, and holds atomic integers.
unsafe impl Send for Mapping {}
// SAFETY: as above; only shared references are given out.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves address space.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system refuses it.
    pub(crate) fn new(bytes: usize) -> Result<Self, FibError> {
        let mapping_bytes = bytes + HUGE_PAGE;
        // SAFETY: a new anonymous private mapping touches no existing memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapping_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let mapping = NonNull::new(address).filter(|_| address != libc::MAP_FAILED);
        let mapping = mapping.ok_or(FibError::Memory { bytes: mapping_bytes })?;
        let offset = mapping.cast::<u8>().as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: the mapping is one huge page longer than the words, so the aligned start stays inside.
        let start = unsafe { mapping.cast::<u8>().add(offset) }.cast();
        let mapping =
            Mapping { words: NonNull::slice_from_raw_parts(start, bytes / 8), mapping, mapping_bytes };
        mapping.advise(0..bytes, libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// A place in the mapping.
    fn at(&self, byte: usize) -> *mut libc::c_void {
        self.words.cast::<u8>().as_ptr().wrapping_add(byte).cast()
    }

    /// Gives advice. That it is refused costs speed at most.
    fn advise(&self, bytes: Range<usize>, advice: libc::c_int) {
        // SAFETY: advice on our own mapping that changes no contents.
        unsafe { libc::madvise(self.at(bytes.start), bytes.len(), advice) };
    }
}

impl Region for Mapping {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping lives as long as `self`; zero bytes are valid words.
        unsafe { self.words.as_ref() }
    }

    fn has_grown(&self, part: Range<usize>, used_bytes: usize) {
        let used = part.start..part.start + used_bytes.next_multiple_of(HUGE_PAGE).min(part.len());
        self.advise(part, libc::MADV_HUGEPAGE);
        self.advise(used, MADV_COLLAPSE);
    }

    fn resident_bytes(&self, part: Range<usize>) -> usize {
        let mut pages = vec![0; part.len().div_ceil(PAGE)];
        // SAFETY: our own mapping, and a byte for each of its pages.
        let asked = unsafe { libc::mincore(self.at(part.start), part.len(), pages.as_mut_ptr()) };
        if asked < 0 { 0 } else { pages.iter().filter(|&&page| page & 1 != 0).count() * PAGE }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; nobody can hold a reference into it any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

/// Asks for the cache line of `place`, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing architecturally, and the address is that of a live reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Instructions that code may use: a value of the type is the proof that the processor has them.
pub(crate) trait Isa: Copy {
    /// Whether AVX2 and what [`Avx2`] names besides are among them.
    const AVX2: bool;
}

/// What every processor of the architecture has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline;

impl Isa for Baseline {
    const AVX2: bool = false;
}

/// AVX2, BMI, LZCNT and POPCNT: what every x86-64 server has since 2015.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Isa for Avx2 {
    const AVX2: bool = true;
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The proof, if it can be given.
    #[inline(always)]
    pub(crate) fn detect() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        is_there.then_some(Avx2(()))
    }
}

/// Defines `$name`, which runs `$body` compiled for [`Avx2`] when the processor has it and for the baseline otherwise.
/// Without POPCNT a rank costs some twelve instructions.
macro_rules! multiversioned {
    (fn $name:ident($this:ident: &$owner:ty, $($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:ident) => {
        #[inline]
        fn $name($this: &$owner, $($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn fast($this: &$owner, isa: $crate::memory::mapping::Avx2, $($arg: $type),*) $(-> $ret)? {
                    <$owner>::$body($this, isa, $($arg),*)
                }
                if let Some(isa) = $crate::memory::mapping::Avx2::detect() {
                    // SAFETY: the processor has the features, of which `isa` is the proof.
                    return unsafe { fast($this, isa, $($arg),*) };
                }
            }
            <$owner>::$body($this, $crate::memory::mapping::Baseline, $($arg),*)
        }
    };
}
pub(crate) use multiversioned;

/// Implements `Lookup` by a method for one address, one for a batch and the bytes that the structure takes, the lookups
/// [`multiversioned!`].
macro_rules! lookup_by {
    ($owner:ty, $address:ty: $one:ident, $batch:ident, $bytes:expr) => {
        impl $crate::lookup::Lookup<$address> for $owner {
            #[inline]
            fn lookup(&self, address: $address) -> u32 {
                $crate::memory::mapping::multiversioned!(fn one(owner: &$owner, address: $address) -> u32 = $one);
                one(self, address)
            }

            #[inline]
            fn lookup_batch(&self, addresses: &[$address], results: &mut [u32]) {
                $crate::memory::mapping::multiversioned!(
                    fn batch(owner: &$owner, addresses: &[$address], results: &mut [u32]) = $batch
                );
                batch(self, addresses, results);
            }

            fn bytes(&self) -> usize {
                let bytes: fn(&Self) -> usize = $bytes;
                bytes(self)
            }
        }
    };
}
pub(crate) use lookup_by;
