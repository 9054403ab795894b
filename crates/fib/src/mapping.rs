//! Arrays of atomics in their own address range, and prefetching: the memory side of the tables.
//!
//! The one place that asks the operating system for memory. A table reserves address space for the largest it can
//! become and pays only for the pages it touches, so readers never see an array move. Huge pages matter: with 4 KiB
//! pages the 4 MiB top level of [`crate::Rank24`] needs 1 024 TLB entries instead of two (`make bench-fib` with
//! transparent huge pages off shows the difference).

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

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

const HUGE_PAGE: usize = 2 << 20;

/// `N` zeroed `T`, mapped lazily and backed by huge pages where the system has them.
pub(crate) struct Mapped<T, const N: usize> {
    array: NonNull<[T; N]>,
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
    owned: PhantomData<[T; N]>,
}

// SAFETY: the mapping is owned and `T` is `Send + Sync` by `Zeroed`.
unsafe impl<T: Zeroed, const N: usize> Send for Mapped<T, N> {}
// SAFETY: as above; only shared references are given out.
unsafe impl<T: Zeroed, const N: usize> Sync for Mapped<T, N> {}

impl<T: Zeroed, const N: usize> Mapped<T, N> {
    /// Reserves the array.
    ///
    /// # Panics
    /// If the system refuses the address space, as any allocation of the standard library would.
    pub(crate) fn new() -> Self {
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
        assert!(address != libc::MAP_FAILED, "no address space for a table of {bytes} bytes");
        let offset = address.cast::<u8>().align_offset(HUGE_PAGE);
        // SAFETY: the mapping is one huge page longer than the array, so the aligned start stays inside.
        let start = unsafe { address.cast::<u8>().add(offset) };
        // SAFETY: advice on our own mapping; refusal only costs speed.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        // SAFETY: mmap returned a non-null address; zero bytes are valid `T` by `Zeroed`.
        let (array, mapping) =
            unsafe { (NonNull::new_unchecked(start.cast()), NonNull::new_unchecked(address)) };
        Mapped { array, mapping, mapping_bytes, owned: PhantomData }
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

/// Defines `$name`, which runs `$body` compiled for AVX2, BMI and POPCNT when the processor has them (every x86-64
/// server since 2015) and for the baseline otherwise. Without POPCNT a rank costs some twelve instructions.
macro_rules! multiversioned {
    (fn $name:ident($this:ident: &$owner:ty, $($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:ident) => {
        #[inline]
        fn $name($this: &$owner, $($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn fast($this: &$owner, $($arg: $type),*) $(-> $ret)? {
                    <$owner>::$body::<true>($this, $($arg),*)
                }
                if $crate::mapping::has_avx2() {
                    // SAFETY: the processor has the features, checked on the line above.
                    return unsafe { fast($this, $($arg),*) };
                }
            }
            <$owner>::$body::<false>($this, $($arg),*)
        }
    };
}
pub(crate) use multiversioned;

/// Whether the processor has AVX2 and the bit-manipulation instructions that come with it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
