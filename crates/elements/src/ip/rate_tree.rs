//! Rates by address, in as much detail as they deserve: a tree with a level for each byte of the address.

mod counter;
mod walk;

use counter::Counter;
pub(super) use counter::{EPOCHS_PER_S, Way, epoch};
use std::net::Ipv4Addr;
pub(super) use walk::{Network, Walk};

/// Bytes that a counter and a level count for, as Click counts them.
const COUNTER_LEN: usize = 40;
const LEVEL_LEN: usize = 2_080;
/// Most bytes where nobody says how many.
pub(super) const MOST: usize = 64 << 20;

const NIL: u32 = u32::MAX;
const ROOT: u32 = 0;

/// The counters of one byte of addresses that have the bytes before in common.
struct Level {
    /// Whose level it is; `NIL` for the first, and for those that were closed.
    parent: u32,
    /// The levels that were opened before and after it.
    before: u32,
    behind: u32,
    counters: [u32; 256],
}

/// Places that are used again.
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn new(room: usize) -> Slab<T> {
        Slab { items: Vec::with_capacity(room), free: Vec::with_capacity(room) }
    }

    fn add(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.items[place as usize] = item;
                place
            }
            None => {
                self.items.push(item);
                self.items.len() as u32 - 1
            }
        }
    }

    fn at(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}

/// A walk over levels that closes those whose networks have low rates.
struct Fold {
    /// The level that comes next.
    next: u32,
    threshold: i64,
    from_oldest: bool,
    /// Bytes in use below which it ends.
    enough: usize,
    /// Whether it begins anew with a higher threshold, by so much at least, until that is so.
    raise: Option<i64>,
    /// Whether it has closed the level before.
    closed: bool,
}

/// The tree.
pub(super) struct RateTree {
    levels: Slab<Level>,
    counters: Slab<Counter>,
    /// The level opened last.
    last: u32,
    /// Levels that were closed and are to be freed.
    closed: Vec<u32>,
    fold: Option<Fold>,
    used: usize,
    /// Most bytes, and most that there is room for.
    limit: usize,
    room: usize,
    /// Counters and levels that there was no room for.
    pub refused: u64,
}

impl RateTree {
    /// An empty tree of at most `limit` bytes. Room for them is reserved, and taken from the system as it is first used.
    pub fn new(limit: usize) -> RateTree {
        let mut tree = RateTree {
            levels: Slab::new(limit / LEVEL_LEN + 1),
            counters: Slab::new(limit / COUNTER_LEN + 1),
            last: ROOT,
            closed: Vec::with_capacity(limit / LEVEL_LEN + 1),
            fold: None,
            used: 0,
            limit,
            room: limit,
            refused: 0,
        };
        tree.open(NIL);
        tree
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    fn open(&mut self, parent: u32) -> u32 {
        self.used += LEVEL_LEN;
        let before = if parent == NIL { NIL } else { self.last };
        let level = self.levels.add(Level { parent, before, behind: NIL, counters: [NIL; 256] });
        if before != NIL {
            self.levels.at(before).behind = level;
        }
        self.last = level;
        level
    }

    fn fits(&mut self, more: usize) -> bool {
        let fits = self.used + more <= self.limit;
        self.refused += u64::from(!fits);
        fits
    }

    /// Counts `n` for `address` and the networks that it is of; `None` counts nothing. Says both rates a second of the last of
    /// them, and opens the next level if one is `threshold` or more.
    pub fn update(
        &mut self,
        address: Ipv4Addr,
        n: Option<u32>,
        way: Way,
        threshold: i32,
        now: u32,
    ) -> Option<[i32; 2]> {
        let bytes = address.octets();
        let (mut level, mut depth) = (ROOT, 0);
        let counter = loop {
            let byte = usize::from(bytes[depth]);
            let mut counter = self.levels.at(level).counters[byte];
            if counter == NIL {
                if !self.fits(COUNTER_LEN) {
                    return None;
                }
                counter = self.count_anew(level, byte, Counter::new(now));
            }
            if let Some(n) = n {
                self.counters.at(counter).add(n, way, now);
            }
            level = self.counters.at(counter).next_level;
            if level == NIL || depth == 3 {
                break counter;
            }
            depth += 1;
        };
        let state = *self.counters.at(counter);
        let rates = state.per_s();
        if depth < 3
            && state.closed_until < now
            && rates.iter().any(|&rate| rate >= threshold)
            && self.fits(COUNTER_LEN + LEVEL_LEN)
        {
            let opened = self.open(counter);
            self.counters.at(counter).next_level = opened;
            self.count_anew(opened, usize::from(bytes[depth + 1]), state.first_below());
        }
        Some(rates)
    }

    fn count_anew(&mut self, level: u32, byte: usize, counter: Counter) -> u32 {
        self.used += COUNTER_LEN;
        let place = self.counters.add(counter);
        self.levels.at(level).counters[byte] = place;
        place
    }

    /// Closes a level and all below: they are measured no more, and [`RateTree::go_on`] frees them.
    fn close(&mut self, level: u32) {
        let parent = std::mem::replace(&mut self.levels.at(level).parent, NIL);
        self.counters.at(parent).next_level = NIL;
        self.closed.push(level);
    }

    /// Frees a level that was closed, and closes those right below.
    fn free(&mut self, level: u32) {
        for byte in 0..256 {
            let counter = std::mem::replace(&mut self.levels.at(level).counters[byte], NIL);
            if counter != NIL {
                let below = self.counters.at(counter).next_level;
                if below != NIL {
                    self.close(below);
                }
                self.counters.free.push(counter);
                self.used -= COUNTER_LEN;
            }
        }
        let Level { before, behind, .. } = *self.levels.at(level);
        if before != NIL {
            self.levels.at(before).behind = behind;
        }
        match behind {
            NIL => self.last = before,
            behind => self.levels.at(behind).before = before,
        }
        if let Some(fold) = self.fold.as_mut().filter(|fold| fold.next == level) {
            fold.next = if fold.from_oldest { behind } else { before };
        }
        self.levels.free.push(level);
        self.used -= LEVEL_LEN;
    }

    /// Forgets all rates, and gives what is left of them, which takes long to drop.
    pub fn reset(&mut self) -> RateTree {
        let empty = RateTree { limit: self.limit, refused: self.refused, ..RateTree::new(self.room) };
        std::mem::replace(self, empty)
    }

    /// Begins to close levels whose network has both rates (events an epoch) below `threshold`, until less than `enough` is in use:
    /// from the oldest on, or from the newest. Nothing, if there is no end yet of what was begun before.
    pub fn fold(&mut self, threshold: i64, from_oldest: bool, enough: usize) {
        if self.fold.is_none() {
            let next = if from_oldest { self.levels.at(ROOT).behind } else { self.last };
            self.fold = Some(Fold { next, threshold, from_oldest, enough, raise: None, closed: false });
        }
    }

    /// At most `limit` bytes from now on, or what there is room for. Levels beyond it are closed, those with the lowest rates
    /// first.
    pub fn set_limit(&mut self, limit: usize, threshold: i64) {
        self.limit = limit.min(self.room);
        let (next, enough, raise) = (self.levels.at(ROOT).behind, self.limit, Some((threshold / 5).max(1)));
        let fold = Fold { next, threshold, from_oldest: true, enough, raise, closed: false };
        // What an earlier limit began ends here.
        self.fold = (self.used > self.limit).then_some(fold);
    }

    /// Goes on with what was begun, by at most `most` levels; says whether there may be more to do.
    pub fn go_on(&mut self, most: usize, now: u32) -> bool {
        for _ in 0..most {
            // What has been closed comes first: only then is it known how much is in use.
            match self.closed.pop() {
                Some(level) => self.free(level),
                None => self.look_on(now),
            }
        }
        !self.closed.is_empty() || self.fold.is_some()
    }

    /// Looks at the next level, whether it is to be closed.
    fn look_on(&mut self, now: u32) {
        let Some(mut fold) = self.fold.take() else { return };
        if std::mem::take(&mut fold.closed) && self.used < fold.enough {
            return;
        }
        let level = fold.next;
        if level == NIL || level == ROOT {
            // That was the last one. Where it must be less, rates that are higher are low enough.
            fold.next = self.levels.at(ROOT).behind;
            if let Some(step) = fold.raise.filter(|_| self.used > fold.enough && fold.next != NIL) {
                fold.threshold = fold.threshold.saturating_mul(2).max(fold.threshold.saturating_add(step));
                self.fold = Some(fold);
            }
            return;
        }
        let Level { parent, before, behind, .. } = *self.levels.at(level);
        fold.next = if fold.from_oldest { behind } else { before };
        let counter = self.counters.at(parent);
        counter.pass(now);
        if counter.average.iter().all(|&average| i64::from(average) < fold.threshold) {
            self.close(level);
            fold.closed = true;
        }
        self.fold = Some(fold);
    }

    /// Keeps the network of `depth` + 1 bytes that `address` is of from being looked at closer until an epoch. What was measured
    /// below is freed by [`RateTree::go_on`].
    pub fn keep_closed(&mut self, address: Ipv4Addr, depth: usize, until: u32) {
        let mut level = ROOT;
        for (i, byte) in address.octets().into_iter().enumerate() {
            let counter = self.levels.at(level).counters[usize::from(byte)];
            if counter == NIL {
                return;
            }
            let below = self.counters.at(counter).next_level;
            if i == depth {
                self.counters.at(counter).closed_until = until;
                if below != NIL {
                    self.close(below);
                }
                return;
            }
            if below == NIL {
                return;
            }
            level = below;
        }
    }

    /// The level of the byte behind these.
    fn level_of(&mut self, bytes: &[u8]) -> Option<u32> {
        let mut level = ROOT;
        for &byte in bytes {
            let counter = self.levels.at(level).counters[usize::from(byte)];
            level = if counter == NIL { NIL } else { self.counters.at(counter).next_level };
            if level == NIL {
                return None;
            }
        }
        Some(level)
    }
}

#[cfg(test)]
mod tests;
