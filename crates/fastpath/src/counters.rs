//! What compiled graphs count: words in a map that user space reads without a system call.

use causeway_bpf::{MappedArray, Result, possible_cpus};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

/// Counters that a graph may have.
pub const WORDS: usize = 1_024;

/// The counters of one compiled graph, a word for each of them and each processor.
#[derive(Debug)]
pub struct Counters {
    array: MappedArray,
    processors: u32,
    pub(crate) with_bytes: bool,
}

impl Counters {
    /// Bytes from one processor's counters to the next.
    pub(crate) const STRIDE: u32 = 8 * WORDS as u32;

    /// Counters that are zero.
    ///
    /// # Errors
    /// As [`MappedArray::new`].
    pub fn new() -> Result<Counters> {
        let processors = possible_cpus()?.next_power_of_two() as u32;
        let array = MappedArray::new("counters", (Self::STRIDE * processors) as usize, 1)?;
        Ok(Counters { array, processors, with_bytes: false })
    }

    /// Of packets that leave by a port the bytes are counted as well ([`crate::Compiled::bytes_of_exit`]).
    #[must_use]
    pub fn with_bytes(self) -> Counters {
        Counters { with_bytes: true, ..self }
    }

    /// What was counted so far, on all processors.
    pub fn get(&self, counter: usize) -> u64 {
        let word = |processor: u32| self.array.word((processor * Self::STRIDE) as usize + 8 * counter);
        let words = (0..self.processors).map(|processor| word(processor).load(Ordering::Relaxed));
        words.fold(0, u64::wrapping_add)
    }

    /// Processors that there is room for, a power of two.
    pub(crate) fn processors(&self) -> u32 {
        self.processors
    }

    pub(crate) fn map(&self) -> BorrowedFd<'_> {
        self.array.map().as_fd()
    }
}
