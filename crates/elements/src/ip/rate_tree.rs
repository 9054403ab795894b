//! Rates by address, in as much detail as they deserve: a tree with a level for each byte of the address.

use crate::rate::decimal;
use std::net::Ipv4Addr;

/// Nanoseconds of an epoch: what came in one moves the averages once.
const EPOCH_NS: u64 = 8_000_000;
/// Epochs a second.
pub(super) const EPOCHS_PER_S: u64 = 1_000_000_000 / EPOCH_NS;
/// Each epoch weighs 1/2^STABILITY.
const STABILITY: u32 = 5;
/// Bits behind the point of averages.
const SCALE: u32 = 10;
/// So many epochs without events, and an average is zero.
const FORGOTTEN: u32 = 100;
/// Bytes that a counter and a level count for, as Click counts them.
const COUNTER_LEN: usize = 40;
const LEVEL_LEN: usize = 2_080;
/// Most bytes where nobody says how many.
pub(super) const MOST: usize = 64 << 20;

const NIL: u32 = u32::MAX;
const ROOT: u32 = 0;

/// The number of the epoch of a time.
pub(super) fn epoch(now_ns: u64) -> u32 {
    (now_ns / EPOCH_NS) as u32
}

/// Packets or bytes from an address, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Reverse,
}

/// Both rates of an address or a network.
#[derive(Clone, Copy)]
struct Counter {
    epoch: u32,
    gathered: [i32; 2],
    average: [i32; 2],
    /// The level of the next byte, or `NIL`.
    next_level: u32,
    /// Until this epoch there is to be none.
    closed_until: u32,
}

impl Counter {
    fn new(epoch: u32) -> Counter {
        Counter { epoch, gathered: [0; 2], average: [0; 2], next_level: NIL, closed_until: 0 }
    }

    /// Ends the epochs before `now`, of which the first has the events and the others have none.
    fn pass(&mut self, now: u32) {
        let epochs = now.wrapping_sub(self.epoch);
        if epochs == 0 {
            return;
        }
        for (average, gathered) in self.average.iter_mut().zip(&mut self.gathered) {
            *average = moved(*average, std::mem::take(gathered).wrapping_shl(SCALE));
            match epochs - 1 {
                FORGOTTEN.. => *average = 0,
                empty => (0..empty).for_each(|_| *average = moved(*average, 0)),
            }
        }
        self.epoch = now;
    }

    fn add(&mut self, n: u32, way: Way, now: u32) {
        self.pass(now);
        let gathered = &mut self.gathered[way as usize];
        *gathered = gathered.saturating_add_unsigned(n);
    }

    /// Both rates a second, in whole numbers.
    fn per_s(&self) -> [i32; 2] {
        self.average.map(|average| ((i64::from(average) * EPOCHS_PER_S as i64) >> SCALE) as i32)
    }
}

/// The average when it has been moved towards `to`, rounded to the nearest.
fn moved(average: i32, to: i32) -> i32 {
    average.wrapping_add(to.wrapping_add(1 << (STABILITY - 1)).wrapping_sub(average) >> STABILITY)
}

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
            // The first below begins with the rates of all.
            let first = Counter { next_level: NIL, closed_until: 0, ..state };
            self.count_anew(opened, usize::from(bytes[depth + 1]), first);
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

    /// Copies networks with a rate, of the next places of a walk over all; says whether there are more.
    pub fn copy(&mut self, walk: &mut Walk, now: u32, to: &mut Vec<Network>) -> bool {
        for _ in 0..PLACES {
            let Walk { bytes, depth } = *walk;
            let Some(level) = self.level_of(&bytes[..depth]) else {
                // It has been closed.
                walk.depth = depth - 1;
                if !walk.on() {
                    return false;
                }
                continue;
            };
            let counter = self.levels.at(level).counters[usize::from(bytes[depth])];
            let below = self.show(counter, now).map(|(rates, below)| {
                to.push(Network { bytes, depth, rates });
                below
            });
            let goes_on = if below.is_some_and(|below| below != NIL) { walk.down() } else { walk.on() };
            if !goes_on {
                return false;
            }
        }
        true
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

    /// The averages of a counter if it has a rate, and the level below it.
    fn show(&mut self, counter: u32, now: u32) -> Option<([i32; 2], u32)> {
        let counter = if counter == NIL { return None } else { self.counters.at(counter) };
        if counter.average.iter().all(|&average| average <= 0) {
            return None;
        }
        counter.pass(now);
        Some((counter.average, counter.next_level))
    }
}

/// Places of levels that a part of a walk looks at.
const PLACES: usize = 4_096;

/// How far a walk over all networks is: the one that comes next.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    bytes: [u8; 4],
    /// Which byte is the last.
    depth: usize,
}

impl Walk {
    /// To the first network of this one; false if there can be none.
    fn down(&mut self) -> bool {
        if self.depth == 3 {
            return self.on();
        }
        self.depth += 1;
        self.bytes[self.depth] = 0;
        true
    }

    /// To the next network that is not of this one; false if this was the last.
    fn on(&mut self) -> bool {
        while self.bytes[self.depth] == u8::MAX {
            if self.depth == 0 {
                return false;
            }
            self.depth -= 1;
        }
        self.bytes[self.depth] += 1;
        true
    }
}

/// A network as it is shown.
pub(super) struct Network {
    bytes: [u8; 4],
    depth: usize,
    /// Averages.
    rates: [i32; 2],
}

impl Network {
    /// Appends its line: its bytes, and the rates a second from it and to it.
    pub fn show(&self, text: &mut String) {
        let tabs = "\t".repeat(self.depth);
        let name: Vec<String> = self.bytes[..=self.depth].iter().map(u8::to_string).collect();
        let [from, to] = self.rates.map(|a| decimal(a.max(0) as u64 * EPOCHS_PER_S, SCALE));
        *text += &format!("{tabs}{}\t{from}\t{to}\n", name.join("."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of the networks 1, 1.N, 1.N.0 and 1.N.0.0, in which all is looked at closely.
    fn tree(of: u8) -> RateTree {
        let mut tree = RateTree::new(1 << 20);
        for now in 1..8 {
            for n in 0..of {
                tree.update(Ipv4Addr::new(1, n, 0, 0), Some(1_000), Way::Forward, 1, now);
            }
        }
        tree
    }

    fn names(networks: &[Network]) -> Vec<Vec<u8>> {
        networks.iter().map(|network| network.bytes[..=network.depth].to_vec()).collect()
    }

    #[test]
    fn networks_are_copied_some_at_a_time() {
        let (mut tree, mut walk, mut seen, mut pieces) = (tree(30), Walk::default(), Vec::new(), 1);
        while tree.copy(&mut walk, 8, &mut seen) {
            pieces += 1;
        }
        let of = |n: u8| [vec![1, n], vec![1, n, 0], vec![1, n, 0, 0]];
        let expected: Vec<Vec<u8>> = [vec![1]].into_iter().chain((0..30).flat_map(of)).collect();
        assert_eq!(names(&seen), expected);
        assert_eq!(pieces, (256 * (2 + 2 * 30usize)).div_ceil(PLACES));
    }

    #[test]
    fn levels_that_are_closed_meanwhile_are_passed_over() {
        let (mut tree, mut walk, mut seen) = (tree(30), Walk::default(), Vec::new());
        assert!(tree.copy(&mut walk, 8, &mut seen));
        assert!(walk.depth > 0, "in the middle of {:?}", walk.bytes);
        tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
        while tree.go_on(1, 8) {}
        assert!(!tree.copy(&mut walk, 8, &mut seen));
        let mut once = names(&seen);
        once.dedup();
        assert!(once.len() == seen.len() && once.is_sorted(), "{once:?}");
    }

    /// Levels in the order in which they were opened.
    fn levels(tree: &mut RateTree) -> usize {
        let (mut level, mut levels) = (tree.levels.at(ROOT).behind, 0);
        while level != NIL {
            (level, levels) = (tree.levels.at(level).behind, levels + 1);
        }
        levels
    }

    #[test]
    fn what_is_closed_is_freed_some_levels_at_a_time() {
        let mut tree = tree(30);
        let used = tree.used();
        // The levels of 1, of each 1.N, and of each 1.N.0.
        assert_eq!(levels(&mut tree), 61);
        tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
        assert_eq!((tree.used(), levels(&mut tree)), (used, 61), "not one was freed at once");
        assert!(tree.update(Ipv4Addr::new(1, 5, 0, 0), Some(1), Way::Forward, 1, 9).is_some());
        assert!(tree.go_on(7, 8));
        assert_eq!(levels(&mut tree), 54);
        assert!(tree.go_on(53, 8) && !tree.go_on(9, 8));
        assert_eq!((levels(&mut tree), tree.used()), (0, LEVEL_LEN + COUNTER_LEN));
    }

    #[test]
    fn a_smaller_limit_is_reached_some_levels_at_a_time_and_by_the_lowest_rates() {
        let mut tree = tree(30);
        for now in 8..12 {
            tree.update(Ipv4Addr::new(1, 7, 0, 0), Some(1_000_000), Way::Forward, 1, now);
        }
        let limit = 12 * (LEVEL_LEN + COUNTER_LEN);
        tree.set_limit(limit, 1);
        assert_eq!(levels(&mut tree), 61);
        let mut steps = 0;
        while tree.go_on(5, 12) {
            steps += 1;
        }
        assert!(steps > 10 && tree.used() <= limit, "{steps} {}", tree.used());
        assert!(tree.level_of(&[1, 7, 0]).is_some());
        tree.set_limit(0, 1);
        tree.set_limit(limit, 1);
        assert!(!tree.go_on(99, 12) && tree.level_of(&[1, 7, 0]).is_some(), "the last limit counts");
    }

    #[test]
    fn a_fold_goes_on_where_levels_are_closed_meanwhile() {
        for from_oldest in [true, false] {
            let mut tree = tree(30);
            tree.fold(i64::MAX, from_oldest, 0);
            assert!(tree.go_on(3, 8));
            tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
            while tree.go_on(1, 8) {}
            assert_eq!((levels(&mut tree), tree.used()), (0, LEVEL_LEN + COUNTER_LEN), "{from_oldest}");
            let reopened = (9..40).any(|now| {
                tree.update(Ipv4Addr::new(2, 0, 0, 0), Some(1_000), Way::Forward, 1, now);
                levels(&mut tree) == 3
            });
            assert!(reopened);
        }
    }
}
