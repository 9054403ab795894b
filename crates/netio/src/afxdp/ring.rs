//! The four rings between user space and the kernel: single producer, single consumer, 32-bit indices that wrap.

use crate::{Error, Result};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping of one ring. It holds the socket open, so unmapping comes before the kernel lets go of the queue.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: we made the mapping; the ring that used it is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// One ring; `T` is the kind of its entries, a plain structure of integers.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// Our side's index.
    ours: u32,
    /// The other side's index when we last looked.
    theirs: u32,
    _mapping: Option<Mapping>,
    _kind: PhantomData<T>,
}

// SAFETY: the ring is used by the one thread that owns this value; the other side synchronises through the atomics.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, offsets: &libc::xdp_ring_offset, page: i64, entries: u32) -> Result<Ring<T>> {
        let size = offsets.desc as usize + entries as usize * size_of::<T>();
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, prot, flags, fd.as_raw_fd(), page) };
        let base = match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => base,
            _ => return Err(Error::last_os("map an AF_XDP ring")),
        };
        let mapping = Mapping { base, size };
        // SAFETY: the kernel gave these offsets for this mapping; they are aligned for their types.
        unsafe {
            Ok(Ring {
                producer: base.add(offsets.producer as usize).cast(),
                consumer: base.add(offsets.consumer as usize).cast(),
                flags: base.add(offsets.flags as usize).cast(),
                entries: base.add(offsets.desc as usize).cast(),
                mask: entries - 1,
                ours: 0,
                theirs: 0,
                _mapping: Some(mapping),
                _kind: PhantomData,
            })
        }
    }

    fn word(&self, at: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: the three words lie in the mapping, which lives as long as `self`.
        unsafe { at.as_ref() }
    }

    fn size(&self) -> u32 {
        self.mask + 1
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: masked to the ring's size, so inside the mapping.
        unsafe { self.entries.as_ptr().add((index & self.mask) as usize) }
    }
}

/// The side that puts entries: fill and transmit rings.
#[derive(Debug)]
pub struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    /// Maps a ring of `entries` (a power of two) at page offset `page` of the socket.
    pub fn map(
        fd: &OwnedFd,
        offsets: &libc::xdp_ring_offset,
        page: i64,
        entries: u32,
    ) -> Result<Producer<T>> {
        Ok(Producer(Ring::map(fd, offsets, page, entries)?))
    }

    /// Entries of the ring.
    pub fn size(&self) -> u32 {
        self.0.size()
    }

    /// Entries that fit now. A consumer index that makes no sense counts as a full ring.
    pub fn room(&mut self) -> u32 {
        let r = &mut self.0;
        r.theirs = r.word(r.consumer).load(Ordering::Acquire);
        r.size().saturating_sub(r.ours.wrapping_sub(r.theirs))
    }

    /// Writes an entry that becomes visible with [`Producer::publish`]. The caller has checked the room.
    pub fn write(&mut self, entry: T) {
        // SAFETY: the slot lies between the kernel's index and ours plus the ring's size: free, and ours to write.
        unsafe { self.0.entry(self.0.ours).write(entry) };
        self.0.ours = self.0.ours.wrapping_add(1);
    }

    /// Makes what was written visible to the kernel.
    pub fn publish(&mut self) {
        self.0.word(self.0.producer).store(self.0.ours, Ordering::Release);
    }

    /// Entries that the kernel has not taken.
    pub fn waiting(&mut self) -> u32 {
        let size = self.0.size();
        size - self.room()
    }

    /// Whether the kernel sleeps until it is called.
    pub fn needs_wakeup(&self) -> bool {
        self.0.word(self.0.flags).load(Ordering::Acquire) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The side that takes entries: receive and completion rings.
#[derive(Debug)]
pub struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    /// Maps a ring of `entries` (a power of two) at page offset `page` of the socket.
    pub fn map(
        fd: &OwnedFd,
        offsets: &libc::xdp_ring_offset,
        page: i64,
        entries: u32,
    ) -> Result<Consumer<T>> {
        Ok(Consumer(Ring::map(fd, offsets, page, entries)?))
    }

    /// Entries of the ring.
    pub fn size(&self) -> u32 {
        self.0.size()
    }

    /// Entries that wait. A producer index that makes no sense counts as an empty ring.
    pub fn waiting(&mut self) -> u32 {
        let r = &mut self.0;
        r.theirs = r.word(r.producer).load(Ordering::Acquire);
        let n = r.theirs.wrapping_sub(r.ours);
        if n <= r.size() { n } else { 0 }
    }

    /// Reads the next entry; the caller has checked that one waits.
    pub fn read(&mut self) -> T {
        // SAFETY: the slot lies between our index and the kernel's: written by the kernel, ours to read.
        let entry = unsafe { self.0.entry(self.0.ours).read() };
        self.0.ours = self.0.ours.wrapping_add(1);
        entry
    }

    /// Gives the slots that were read back to the kernel.
    pub fn release(&mut self) {
        self.0.word(self.0.consumer).store(self.0.ours, Ordering::Release);
    }
}

/// Both sides of a ring of `size` entries in plain memory, which is never given back: what a kernel would do is up to
/// the test.
#[cfg(test)]
pub fn in_memory<T: Copy>(size: usize, blank: T) -> (Producer<T>, Consumer<T>) {
    let words: &'static [AtomicU32; 3] = Box::leak(Box::default());
    let entries = NonNull::from(Box::leak(vec![blank; size].into_boxed_slice())).cast();
    let [producer, consumer, flags] = words.each_ref().map(NonNull::from);
    let side = || Ring {
        producer,
        consumer,
        flags,
        entries,
        mask: size as u32 - 1,
        ours: 0,
        theirs: 0,
        _mapping: None,
        _kind: PhantomData,
    };
    (Producer(side()), Consumer(side()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A ring in plain memory, both of whose sides are ours.
    struct Memory {
        words: Box<[AtomicU32; 3]>,
        entries: Vec<u64>,
    }

    impl Memory {
        fn new(size: u32, start: u32) -> Memory {
            let words = Box::new([AtomicU32::new(start), AtomicU32::new(start), AtomicU32::new(0)]);
            Memory { words, entries: vec![0; size as usize] }
        }

        fn ring(&mut self, start: u32) -> Ring<u64> {
            let word = |i: usize| NonNull::from(&self.words[i]);
            Ring {
                producer: word(0),
                consumer: word(1),
                flags: word(2),
                mask: self.entries.len() as u32 - 1,
                entries: NonNull::new(self.entries.as_mut_ptr()).expect("not null"),
                ours: start,
                theirs: start,
                _mapping: None,
                _kind: PhantomData,
            }
        }
    }

    proptest! {
        /// Against a queue: order, room and what waits, with indices that wrap.
        #[test]
        fn agrees_with_a_queue(start: u32, steps in proptest::collection::vec((any::<bool>(), 0u32..12), 1..200)) {
            let start = start | 0xffff_ff00;
            let mut memory = Memory::new(8, start);
            let (mut tx, mut rx) = (Producer(memory.ring(start)), Consumer(memory.ring(start)));
            let (mut model, mut next) = (VecDeque::new(), 0u64);
            for (put, n) in steps {
                prop_assert_eq!(tx.room() as usize, 8 - model.len());
                prop_assert_eq!(rx.waiting() as usize, model.len());
                if put {
                    for _ in 0..n.min(tx.room()) {
                        tx.write(next);
                        model.push_back(next);
                        next += 1;
                    }
                    tx.publish();
                } else {
                    for _ in 0..n.min(rx.waiting()) {
                        prop_assert_eq!(Some(rx.read()), model.pop_front());
                    }
                    rx.release();
                }
            }
            prop_assert_eq!(tx.waiting() as usize, model.len());
        }

        /// Whatever the other side writes into its index, no more than the ring's size is offered.
        #[test]
        fn wild_indices_are_harmless(start: u32, wild: u32) {
            let mut memory = Memory::new(8, start);
            let (mut tx, mut rx) = (Producer(memory.ring(start)), Consumer(memory.ring(start)));
            memory.words[0].store(wild, Ordering::Relaxed);
            memory.words[1].store(wild, Ordering::Relaxed);
            prop_assert!(tx.room() <= 8);
            prop_assert!(rx.waiting() <= 8);
        }
    }
}
