//! Timers: a heap of expiry times; a timer that was set again or cleared leaves a stale entry that is skipped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The timers of one worker. A node has as many as it uses keys.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64, usize, u32)>>,
    /// Sequence number of the live entry of each timer.
    live: HashMap<(usize, u32), u64>,
    sequence: u64,
}

impl Timers {
    /// Sets timer `key` of `node` to expire at `when_ns`.
    pub fn set(&mut self, node: usize, key: u32, when_ns: u64) {
        self.sequence += 1;
        self.live.insert((node, key), self.sequence);
        self.heap.push(Reverse((when_ns, self.sequence, node, key)));
    }

    /// Stops timer `key` of `node`.
    pub fn clear(&mut self, node: usize, key: u32) {
        self.live.remove(&(node, key));
    }

    /// When the next timer expires.
    pub fn next_ns(&mut self) -> Option<u64> {
        while let Some(&Reverse((when, sequence, node, key))) = self.heap.peek() {
            if self.live.get(&(node, key)) == Some(&sequence) {
                return Some(when);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the earliest timer that expires at or before `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u32)> {
        self.next_ns().filter(|&when| when <= now_ns)?;
        let Reverse((_, _, node, key)) = self.heap.pop()?;
        self.live.remove(&(node, key));
        Some((node, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_and_only_when_due() {
        let mut t = Timers::default();
        t.set(1, 0, 30);
        t.set(2, 0, 10);
        t.set(3, 5, 10);
        assert_eq!(t.pop_due(9), None);
        assert_eq!((t.pop_due(20), t.pop_due(20), t.pop_due(20)), (Some((2, 0)), Some((3, 5)), None));
        assert_eq!(t.next_ns(), Some(30));
    }

    #[test]
    fn setting_again_replaces_and_clearing_stops() {
        let mut t = Timers::default();
        t.set(1, 0, 10);
        t.set(1, 0, 50);
        t.set(1, 1, 20);
        t.clear(1, 1);
        assert_eq!(t.pop_due(40), None);
        assert_eq!((t.pop_due(50), t.pop_due(99)), (Some((1, 0)), None));
    }
}
