//! Up to 256 packets in an inline array: the unit of all processing.

use crate::{Packet, pool};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Packets that a batch holds at most.
pub const BATCH: usize = 256;

/// A list of at most [`BATCH`] packets. It reads as a slice of packets.
pub struct Batch {
    len: usize,
    slots: [MaybeUninit<Packet>; BATCH],
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch.
    pub const fn new() -> Self {
        Batch { len: 0, slots: [const { MaybeUninit::uninit() }; BATCH] }
    }

    /// Packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        BATCH - self.len
    }

    /// Whether no packet fits any more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Appends a packet; a full batch gives it back.
    #[inline]
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                slot.write(packet);
                self.len += 1;
                Ok(())
            }
            None => Err(packet),
        }
    }

    /// Takes the last packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: slots below the old `len` are initialised, and this one is now outside.
        Some(unsafe { self.slots[self.len].assume_init_read() })
    }

    /// Moves packets from the front of `other` to the end of this batch until one is empty or the other full;
    /// returns how many moved.
    pub fn append(&mut self, other: &mut Batch) -> usize {
        self.append_up_to(other, BATCH)
    }

    /// As [`Batch::append`], but at most `max` packets.
    pub fn append_up_to(&mut self, other: &mut Batch, max: usize) -> usize {
        let n = other.len.min(self.room()).min(max);
        // SAFETY: `n` slots are free here, and the other batch forgets what they get.
        other.move_front(n, |from| unsafe {
            std::ptr::copy_nonoverlapping(from, self.slots.as_mut_ptr().add(self.len), n);
        });
        self.len += n;
        n
    }

    /// Lets `take` move the first `n` packets, of those there are, away from where they are; the others close up.
    #[inline]
    pub(crate) fn move_front(&mut self, n: usize, take: impl FnOnce(*const MaybeUninit<Packet>)) {
        assert!(n <= self.len, "a batch has no more packets than it has");
        let slots = self.slots.as_mut_ptr();
        take(slots);
        // SAFETY: the slots from `n` to `len` are initialised, and `take` has moved those before. One pointer serves for
        // both ends, because a second mutable borrow would end what the first may do.
        unsafe { std::ptr::copy(slots.add(n), slots, self.len - n) };
        self.len -= n;
    }

    /// Appends what `slots` hold.
    ///
    /// # Safety
    /// All of them hold packets, which nobody else uses from now on.
    #[inline]
    pub(crate) unsafe fn append_slots(&mut self, slots: &[MaybeUninit<Packet>]) {
        let to = &mut self.slots[self.len..self.len + slots.len()];
        // SAFETY: the two are of one length, and a packet is moved, not copied: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(slots.as_ptr(), to.as_mut_ptr(), slots.len()) };
        self.len += slots.len();
    }

    /// Appends packets that hold copies of `frames`, with at least the headroom of [`Packet::from_bytes`]; returns how many.
    /// There are fewer when the batch is full or the pool exhausted, and none for a frame that no packet can hold.
    pub fn extend_copies<'a>(&mut self, frames: impl ExactSizeIterator<Item = &'a [u8]>) -> usize {
        let (before, n) = (self.len, frames.len().min(self.room()));
        let mut free = pool::take_frames(n);
        let most = pool::frame_size();
        // A filter in front of it would be a call for each frame.
        for frame in frames.take(n) {
            if frame.len() > most {
                continue;
            }
            let Some(packet) = free.copy_of(frame) else { break };
            self.slots[self.len].write(packet);
            self.len += 1;
        }
        self.len - before
    }

    /// Calls `keep` for each packet in order; those for which it gives the packet back stay, in order.
    ///
    /// This is how an element filters and sorts: it takes what it diverts and returns the rest.
    #[inline]
    pub fn filter_map(&mut self, mut keep: impl FnMut(Packet) -> Option<Packet>) {
        let n = std::mem::replace(&mut self.len, 0);
        // A panic in `keep` leaks the packets not yet seen, and never frees one twice: `len` covers only kept ones.
        for i in 0..n {
            // SAFETY: slot `i` was initialised, is read once, and is above the `len` that kept packets occupy.
            let packet = unsafe { self.slots[i].assume_init_read() };
            if let Some(packet) = keep(packet) {
                self.slots[self.len].write(packet);
                self.len += 1;
            }
        }
    }

    /// As [`Batch::filter_map`], for elements that only drop: packets for which `keep` is false are recycled.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Packet) -> bool) {
        self.filter_map(|mut p| keep(&mut p).then_some(p));
    }

    /// Takes all packets out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        let n = std::mem::replace(&mut self.len, 0);
        Drain { batch: self, at: 0, end: n }
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        let n = std::mem::replace(&mut self.len, 0);
        // SAFETY: the first `n` slots were initialised, and the batch no longer counts them: their packets are gone.
        unsafe { pool::give_back_all(self.slots[..n].iter().map(|slot| slot.assume_init_ref().meta)) }
    }

    /// Asks the processor for the header of the packet `ahead` places after `i`.
    #[inline(always)]
    pub fn prefetch_data(&self, i: usize) {
        if let Some(p) = self.get(i) {
            p.prefetch_data();
        }
    }
}

struct Drain<'a> {
    batch: &'a mut Batch,
    at: usize,
    end: usize,
}

impl Iterator for Drain<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        if self.at == self.end {
            return None;
        }
        self.at += 1;
        // SAFETY: slots `at..end` are initialised, each is read once, and the batch no longer counts them.
        Some(unsafe { self.batch.slots[self.at - 1].assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.at, Some(self.end - self.at))
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        for _ in self.by_ref() {}
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Deref for Batch {
    type Target = [Packet];
    #[inline]
    fn deref(&self) -> &[Packet] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Batch {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Packet] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }
}

impl Extend<Packet> for Batch {
    /// Appends packets; those that do not fit are dropped.
    fn extend<T: IntoIterator<Item = Packet>>(&mut self, packets: T) {
        for p in packets {
            let _ = self.push(p);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
