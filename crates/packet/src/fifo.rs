//! A queue of packets: whole batches enter and leave by copying their handles at once.

use crate::{Batch, Packet, pool};
use std::fmt;
use std::mem::MaybeUninit;

/// Places that a queue gets when it needs the first.
const FIRST: usize = 256;

/// Packets first in, first out; it grows when it must.
///
/// ```text
/// slots  [ e f . . . . b c d ]     head = 6, len = 5: from b to f
/// ```
pub struct Fifo {
    /// A power of two of places, or none.
    slots: Box<[MaybeUninit<Packet>]>,
    head: usize,
    len: usize,
}

impl Fifo {
    /// A queue that does not grow before it holds `capacity` packets.
    pub fn with_capacity(capacity: usize) -> Fifo {
        let places = if capacity == 0 { 0 } else { capacity.next_power_of_two() };
        Fifo { slots: Box::new_uninit_slice(places), head: 0, len: 0 }
    }

    /// Packets in the queue.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of the packet `i` after the first.
    #[inline]
    fn place(&self, i: usize) -> usize {
        (self.head + i) & (self.slots.len() - 1)
    }

    /// Places for `more` packets than there are.
    fn reserve(&mut self, more: usize) {
        if self.slots.len() - self.len >= more {
            return;
        }
        let mut grown = Fifo::with_capacity((self.len + more).max(FIRST));
        let (first, second) = self.filled(0, self.len);
        // SAFETY: the new queue has places for all, from the first on; they are moved, and forgotten here.
        unsafe {
            let to = grown.slots.as_mut_ptr();
            std::ptr::copy_nonoverlapping(first.as_ptr(), to, first.len());
            std::ptr::copy_nonoverlapping(second.as_ptr(), to.add(first.len()), second.len());
        }
        grown.len = std::mem::take(&mut self.len);
        *self = grown;
    }

    /// The places of `n` packets from the one `from` after the first, in two pieces.
    fn filled(&self, from: usize, n: usize) -> (&[MaybeUninit<Packet>], &[MaybeUninit<Packet>]) {
        if n == 0 {
            return (&[], &[]);
        }
        let at = self.place(from);
        let straight = n.min(self.slots.len() - at);
        (&self.slots[at..at + straight], &self.slots[..n - straight])
    }

    /// Moves packets from the front of `batch` to the end of the queue, at most `most`; returns how many.
    pub fn push_batch(&mut self, batch: &mut Batch, most: usize) -> usize {
        let n = batch.len().min(most);
        self.reserve(n);
        if n == 0 {
            return 0;
        }
        let at = self.place(self.len);
        let straight = n.min(self.slots.len() - at);
        // SAFETY: the two pieces behind the last packet are free, `n` places together, and the batch has as many packets,
        // which it forgets.
        batch.move_front(n, |from| unsafe {
            let to = self.slots.as_mut_ptr();
            std::ptr::copy_nonoverlapping(from, to.add(at), straight);
            std::ptr::copy_nonoverlapping(from.add(straight), to, n - straight);
        });
        self.len += n;
        n
    }

    /// Moves packets from the front of the queue to the end of `batch`, at most `most` and as many as fit; returns how
    /// many.
    pub fn pop_batch(&mut self, batch: &mut Batch, most: usize) -> usize {
        let n = self.len.min(most).min(batch.room());
        let (first, second) = self.filled(0, n);
        // SAFETY: both pieces hold packets, which this queue forgets below, and the batch has room for them.
        unsafe {
            batch.append_slots(first);
            batch.append_slots(second);
        }
        self.len -= n;
        self.head = if self.len == 0 { 0 } else { self.place(n) };
        n
    }

    /// Appends a packet.
    pub fn push(&mut self, packet: Packet) {
        self.reserve(1);
        let at = self.place(self.len);
        self.slots[at].write(packet);
        self.len += 1;
    }

    /// Moves all packets of `other` to the end of this queue.
    pub fn append(&mut self, other: &mut Fifo) {
        let mut batch = Batch::new();
        while other.pop_batch(&mut batch, usize::MAX) > 0 {
            self.push_batch(&mut batch, usize::MAX);
        }
    }

    /// Drops the packets behind the first `len`; returns how many.
    pub fn truncate(&mut self, len: usize) -> usize {
        let cut = self.len.saturating_sub(len);
        let (first, second) = self.filled(len.min(self.len), cut);
        let metas = |slots: &[MaybeUninit<Packet>]| {
            // SAFETY: both pieces hold packets, which are forgotten below.
            unsafe { pool::give_back_all(slots.iter().map(|slot| slot.assume_init_ref().meta)) }
        };
        metas(first);
        metas(second);
        self.len -= cut;
        cut
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

impl fmt::Debug for Fifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fifo({} packets)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn numbered(numbers: impl Iterator<Item = u32>) -> Batch {
        let mut batch = Batch::new();
        batch.extend(numbers.map(|n| Packet::from_bytes(&n.to_ne_bytes()).unwrap()));
        batch
    }

    fn numbers(batch: &Batch) -> Vec<u32> {
        batch.iter().map(|p| u32::from_ne_bytes(p.data().try_into().unwrap())).collect()
    }

    proptest! {
        #[test]
        fn it_is_a_list(capacity in 0usize..20, steps in proptest::collection::vec((0u8..5, 0usize..300), 0..40)) {
            let (mut fifo, mut model, mut next) = (Fifo::with_capacity(capacity), VecDeque::new(), 0);
            for (step, n) in steps {
                match step {
                    0 | 1 => {
                        let mut batch = numbered(next..next + 256);
                        next += 256;
                        let pushed = fifo.push_batch(&mut batch, n);
                        prop_assert_eq!(pushed, n.min(256));
                        let kept = numbers(&batch);
                        prop_assert_eq!(kept, (next - 256 + pushed as u32..next).collect::<Vec<_>>());
                        model.extend(next - 256..next - 256 + pushed as u32);
                    }
                    2 => {
                        let mut batch = numbered(0..n as u32 % 256);
                        let popped = fifo.pop_batch(&mut batch, n);
                        let expected: Vec<u32> = model.drain(..popped).collect();
                        prop_assert_eq!(&numbers(&batch)[batch.len() - popped..], expected);
                        prop_assert!(popped == n || batch.is_full() || model.is_empty());
                    }
                    3 => {
                        let cut = fifo.truncate(n);
                        prop_assert_eq!(cut, model.len().saturating_sub(n));
                        model.truncate(n);
                    }
                    _ => {
                        let mut other = Fifo::with_capacity(1);
                        (0..n as u32).for_each(|i| other.push(Packet::from_bytes(&i.to_ne_bytes()).unwrap()));
                        fifo.append(&mut other);
                        prop_assert!(other.is_empty());
                        model.extend(0..n as u32);
                    }
                }
                prop_assert_eq!(fifo.len(), model.len());
            }
        }
    }
}
