//! Arrays of atomics in their own address range, and prefetching: the memory side of the tables.
//!
//! The one place that asks the operating system for memory. A table reserves address space for the largest it can
//! become and pays only for the pages it touches, so readers never see an array move. Pages are small as long as a
//! table is: with huge ones the first line of each array would cost 2 MiB, and a router may have hundreds of tables.
//! An array that has grown beyond a huge page asks for huge pages.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::error::FibError;

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

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// Puts huge pages in the place of small ones at once (Linux 6.1).
const MADV_COLLAPSE: libc::c_int = 25;

/// `N` zeroed `T`, mapped lazily.
pub(crate) struct Mapped<T, const N: usize> {
    array: NonNull<[T; N]>,
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
    /// Whether huge pages were asked for.
    huge: AtomicBool,
    owned: PhantomData<[T; N]>,
}

// SAFETY: the mapping is owned and `T` is `Send + Sync` by `Zeroed`.
unsafe impl<T: Zeroed, const N: usize> Send for Mapped<T, N> {}
// SAFETY: as above; only shared references are given out.
unsafe impl<T: Zeroed, const N: usize> Sync for Mapped<T, N> {}

impl<T: Zeroed, const N: usize> Mapped<T, N> {
    /// Reserves the array.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system refuses the address space.
    pub(crate) fn new() -> Result<Self, FibError> {
        let bytes = size_of::<[T; N]>();
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
        if address == libc::MAP_FAILED {
            return Err(FibError::Memory { bytes: mapping_bytes });
        }
        let offset = address.cast::<u8>().align_offset(HUGE_PAGE);
        // SAFETY: the mapping is one huge page longer than the array, so the aligned start stays inside.
        let start = unsafe { address.cast::<u8>().add(offset) };
        // SAFETY: mmap returned a non-null address; zero bytes are valid `T` by `Zeroed`.
        let (array, mapping) =
            unsafe { (NonNull::new_unchecked(start.cast()), NonNull::new_unchecked(address)) };
        let mapped =
            Mapped { array, mapping, mapping_bytes, huge: AtomicBool::new(false), owned: PhantomData };
        mapped.advise(bytes, libc::MADV_NOHUGEPAGE);
        Ok(mapped)
    }

    /// Notes that `used` elements from `start` on are in use, and asks for huge pages if that makes it worth while. A
    /// reader may have to wait once, for as long as the pages take to be copied together.
    pub(crate) fn grow(&self, start: usize, used: usize) {
        if used * size_of::<T>() >= HUGE_PAGE && !self.huge.swap(true, Ordering::Relaxed) {
            self.advise(size_of::<[T; N]>(), libc::MADV_HUGEPAGE);
            let bytes = (start + used).min(N) * size_of::<T>();
            self.advise(bytes.next_multiple_of(HUGE_PAGE), MADV_COLLAPSE);
        }
    }

    /// Gives advice on the first `bytes`. That it is refused costs speed at most.
    fn advise(&self, bytes: usize, advice: libc::c_int) {
        // SAFETY: advice on our own mapping that changes no contents.
        unsafe { libc::madvise(self.array.as_ptr().cast(), bytes, advice) };
    }

    /// Bytes of memory behind the array, as long as nobody read where nothing was written.
    pub(crate) fn resident_bytes(&self) -> usize {
        let mut pages = vec![0; size_of::<[T; N]>().div_ceil(PAGE)];
        // SAFETY: our own mapping, and a byte for each of its pages.
        let asked =
            unsafe { libc::mincore(self.array.as_ptr().cast(), size_of::<[T; N]>(), pages.as_mut_ptr()) };
        if asked < 0 { 0 } else { pages.iter().filter(|&&page| page & 1 != 0).count() * PAGE }
    }
}

impl<T, const N: usize> Deref for Mapped<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        // SAFETY: the mapping lives as long as `self` and holds `N` valid `T`.
        unsafe { self.array.as_ref() }
    }
}

impl<T, const N: usize> Drop for Mapped<T, N> {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; nobody can hold a reference into it any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

/// Which pages of an array were written. The others read as zero, and to read one would map it; readers do, which costs
/// no memory but would count.
#[derive(Debug)]
pub(crate) struct Written {
    pages: Vec<u64>,
    page_len: usize,
}

impl Written {
    /// For an array of which nothing was written.
    pub(crate) fn none<T, const N: usize>(_: &Mapped<T, N>) -> Self {
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
        impl $crate::table::Lookup<$address> for $owner {
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
