//! The shared stack of free frames: chains of frame numbers, exchanged whole in one compare-and-swap.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Frames of a chain, at most.
pub(crate) const CHUNK: usize = 256;
/// Number that ends a chain of frames.
const NIL: u32 = u32::MAX;

/// Treiber's stack, whose elements are chains of free frames, over links kept by frame number.
pub(crate) struct SharedStack {
    /// Next frame of the same chain, by frame.
    next: Box<[AtomicU32]>,
    /// First frame of the next chain, by the first frame of a chain.
    below: Box<[AtomicU32]>,
    head: Head,
}

/// What all threads write, apart from what they only read: 128 bytes, because lines are fetched in pairs.
#[repr(align(128))]
struct Head {
    /// Tag in the upper half against reuse between read and swap, first frame of the top chain in the lower.
    top: AtomicU64,
    /// Frames on the stack.
    count: AtomicU64,
    /// Frames never handed out yet are taken from here in order, so that untouched memory stays untouched.
    fresh: AtomicU32,
}

impl SharedStack {
    /// A stack over `frames` frames, all free and none handed out yet.
    pub fn new(frames: u32) -> SharedStack {
        let links = || (0..frames).map(|_| AtomicU32::new(NIL)).collect();
        let head =
            Head { top: AtomicU64::new(NIL as u64), count: AtomicU64::new(0), fresh: AtomicU32::new(0) };
        SharedStack { next: links(), below: links(), head }
    }

    fn frames(&self) -> u32 {
        self.next.len() as u32
    }

    /// Frames that [`SharedStack::take`] can give.
    pub fn len(&self) -> u64 {
        let fresh = self.frames().saturating_sub(self.head.fresh.load(Ordering::Relaxed));
        self.head.count.load(Ordering::Relaxed) + u64::from(fresh)
    }

    /// Puts frames that the caller has, and nobody else, on the stack.
    pub fn give(&self, ids: &[u32]) {
        ids.chunks(CHUNK).for_each(|chain| self.give_chain(chain));
    }

    fn give_chain(&self, ids: &[u32]) {
        let [first, rest @ ..] = ids else { return };
        let mut at = *first;
        for &id in rest {
            self.next[at as usize].store(id, Ordering::Relaxed);
            at = id;
        }
        self.next[at as usize].store(NIL, Ordering::Relaxed);
        self.head.count.fetch_add(ids.len() as u64, Ordering::Relaxed);
        let mut top = self.head.top.load(Ordering::Relaxed);
        loop {
            self.below[*first as usize].store(top as u32, Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | u64::from(*first);
            // Release: whoever takes the chain sees its links, and what was written to its frames.
            match self.head.top.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes one chain, or never-used frames, into `out`; returns how many.
    pub fn take(&self, out: &mut [u32; CHUNK]) -> usize {
        let mut top = self.head.top.load(Ordering::Acquire);
        while top as u32 != NIL {
            let first = top as u32;
            // Stale if another thread has taken the chain since; the tag makes the swap fail then.
            let below = self.below[first as usize].load(Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | u64::from(below);
            match self.head.top.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return self.unchain(first, out),
                Err(now) => top = now,
            }
        }
        self.take_fresh(out)
    }

    fn unchain(&self, first: u32, out: &mut [u32; CHUNK]) -> usize {
        let (mut n, mut at) = (0, first);
        for slot in out {
            if at == NIL {
                break;
            }
            *slot = at;
            at = self.next[at as usize].load(Ordering::Relaxed);
            n += 1;
        }
        self.head.count.fetch_sub(n as u64, Ordering::Relaxed);
        n
    }

    fn take_fresh(&self, out: &mut [u32; CHUNK]) -> usize {
        let frames = self.frames();
        let end = |from: u32| from.saturating_add(CHUNK as u32).min(frames);
        let claim = |from: u32| (from < frames).then(|| end(from));
        let claimed = self.head.fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        let Ok(from) = claimed else { return 0 };
        for (slot, id) in out.iter_mut().zip(from..end(from)) {
            *slot = id;
        }
        (end(from) - from) as usize
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn all(stack: &SharedStack) -> Vec<u32> {
        let (mut out, mut ids) = ([0; CHUNK], Vec::new());
        loop {
            match stack.take(&mut out) {
                0 => return ids,
                n => ids.extend(&out[..n]),
            }
        }
    }

    /// Two threads take, and one gives back, in every interleaving: no frame is with both, none is lost.
    #[test]
    fn no_frame_is_taken_twice_or_lost() {
        loom::model(|| {
            let stack = Arc::new(SharedStack::new(3));
            let mut ids = all(&stack);
            assert_eq!(ids.len(), 3);
            // Two chains, so that one thread may take what lies below the other's.
            stack.give(&ids[..1]);
            stack.give(&ids[1..]);
            let other = stack.clone();
            let worker = thread::spawn(move || {
                let (mut first, mut second) = ([0; CHUNK], [0; CHUNK]);
                let (n, m) = (other.take(&mut first), other.take(&mut second));
                // The chain that was on top is on top again, and what was below it is here.
                other.give(&first[..n]);
                second[..m].to_vec()
            });
            let mut out = [0; CHUNK];
            let n = stack.take(&mut out);
            let mut mine = out[..n].to_vec();
            mine.extend(worker.join().unwrap());
            mine.extend(all(&stack));
            mine.sort_unstable();
            ids.sort_unstable();
            assert_eq!(mine, ids);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_all_write_shares_no_line_with_what_all_read() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(SharedStack, head) % 128, 0);
        let read_only = [offset_of!(SharedStack, next), offset_of!(SharedStack, below)];
        let head = offset_of!(SharedStack, head);
        assert!(read_only.iter().all(|&at| at / 128 != head / 128), "{read_only:?} {head}");
    }

    /// Threads take and give as fast as they can; each frame has a flag that says that somebody has it.
    #[test]
    fn threads_never_hold_the_same_frame() {
        const FRAMES: u32 = 4 * CHUNK as u32 + 17;
        let stack = SharedStack::new(FRAMES);
        let taken: Vec<AtomicBool> = (0..FRAMES).map(|_| AtomicBool::new(false)).collect();
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (stack, taken) = (&stack, &taken);
                s.spawn(move || {
                    let mut out = [0; CHUNK];
                    for round in 0..20_000 {
                        let n = stack.take(&mut out);
                        for &id in &out[..n] {
                            assert!(!taken[id as usize].swap(true, Ordering::Relaxed), "frame {id} twice");
                        }
                        out[..n].iter().for_each(|&id| taken[id as usize].store(false, Ordering::Relaxed));
                        // In pieces of different sizes, so that chains differ too.
                        let cut = (thread * 37 + round) % (n + 1);
                        stack.give(&out[..cut]);
                        stack.give(&out[cut..n]);
                    }
                });
            }
        });
        assert_eq!(stack.len(), u64::from(FRAMES));
        let (mut out, mut total) = ([0; CHUNK], 0);
        while let n @ 1.. = stack.take(&mut out) {
            total += n;
        }
        assert_eq!((total, stack.len()), (FRAMES as usize, 0));
    }
}
