//! Hints to the processor and the system about memory of any kind, which change nothing but speed.

/// Length of a huge page, bytes.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// Length of a cache line, bytes.
const LINE: usize = 64;

/// Asks the processor to fetch all of `place`, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    let start = std::ptr::from_ref(place).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(LINE) {
        prefetch_at(start.wrapping_add(offset));
    }
}

#[inline(always)]
pub(crate) fn prefetch_at(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Asks for huge pages behind memory that is written in no order: an access then misses the processor's translations of
/// addresses far less often. It takes memory by the 2 MB instead of the 4 kB, so short pieces are left as they are. Call it
/// before the memory is first written; what has its pages keeps them for a while.
pub fn prefer_huge_pages<T>(memory: &[T]) {
    let bytes = memory.as_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(HUGE_PAGE);
    let end = bytes.end as usize & !(HUGE_PAGE - 1);
    if start < end {
        // SAFETY: whole pages inside a live slice; the advice changes no contents, and that it is refused nothing at all.
        unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the mapping around `at` is marked for huge pages, as the kernel tells.
    fn is_marked(at: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|r| r.split_once('-'));
            let parse = |n| usize::from_str_radix(n, 16).ok();
            if let Some((start, end)) = range.and_then(|(s, e)| Some((parse(s)?, parse(e)?))) {
                inside = (start..end).contains(&at);
            } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return flags.split(' ').any(|flag| flag == "hg");
            }
        }
        false
    }

    #[test]
    fn long_memory_is_marked_and_its_contents_stay() {
        let memory = vec![7u64; HUGE_PAGE];
        prefer_huge_pages(&memory);
        let middle = std::ptr::from_ref(&memory[HUGE_PAGE / 2]) as usize;
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            assert!(is_marked(middle));
        }
        assert!(memory.iter().all(|&word| word == 7));
        prefer_huge_pages(&[0u8; 100]);
        prefer_huge_pages::<u64>(&[]);
        prefetch(&memory[0]);
        prefetch(&());
    }
}
