//! The shared cache of today, into which cards write: a card's data are in the cache before the processor asks for them.
//!
//! A card's write of a line that is there changes it there. Of other lines the cache takes those that cards write into some of
//! its ways only, so that they drive out each other and not what processors use; a line that leaves goes to memory. A card's
//! read takes a line from the cache if it is there, and brings none in (Farshin et al., *Reexamining Direct Cache Access to
//! Optimize I/O Intensive Applications for Multi-hundred-gigabit Networks*, USENIX ATC 2020, sections 2 and 4). With no ways
//! for cards their writes go to memory, and the lines are in the cache no more.

/// A line that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    number: u64,
    /// A card's write brought it in.
    by_card: bool,
    /// Memory has something else.
    dirty: bool,
}

const EMPTY: Line = Line { number: u64::MAX, by_card: false, dirty: false };

/// Lines that an access moved between cache and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Lines that were there.
    pub hits: u32,
    /// Lines that memory had to give.
    pub read: u32,
    /// Lines that went to memory.
    pub written: u32,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.hits += other.hits;
        self.read += other.read;
        self.written += other.written;
    }
}

/// A cache of several ways, of which cards have some. Of each set the line that was used least recently goes.
#[derive(Clone, Debug)]
pub struct SharedCache {
    line_bytes: u64,
    sets: u64,
    ways: usize,
    card_ways: usize,
    /// The lines of each set, the most recent first.
    lines: Vec<Line>,
}

impl SharedCache {
    /// An empty cache of at least one set.
    pub fn new(bytes: u64, ways: usize, card_ways: usize, line_bytes: u64) -> SharedCache {
        let (ways, line_bytes) = (ways.max(1), line_bytes.max(1));
        let sets = (bytes / (line_bytes * ways as u64)).max(1);
        let lines = vec![EMPTY; sets as usize * ways];
        SharedCache { line_bytes, sets, ways, card_ways: card_ways.min(ways), lines }
    }

    /// Bytes of a line.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes as u32
    }

    fn numbers(&self, address: u64, bytes: u32) -> std::ops::RangeInclusive<u64> {
        address / self.line_bytes..=(address + u64::from(bytes.max(1)) - 1) / self.line_bytes
    }

    fn set(&mut self, number: u64) -> &mut [Line] {
        // Lines are spread over the sets as the processor's own hash does, whatever the distance of buffers.
        let hashed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = (hashed % self.sets) as usize * self.ways;
        &mut self.lines[first..first + self.ways]
    }

    /// Puts a line first, in the place of what is at `place`; whether that has to be written.
    fn put(set: &mut [Line], place: usize, line: Line) -> bool {
        let gone = set[place];
        set[..=place].rotate_right(1);
        set[0] = line;
        gone.dirty && gone.number != line.number
    }

    /// The processor reads, or changes, what is there.
    pub fn touch(&mut self, address: u64, bytes: u32, change: bool) -> Moved {
        let mut moved = Moved::default();
        for number in self.numbers(address, bytes) {
            let set = self.set(number);
            let found = set.iter().position(|one| one.number == number);
            let place = found.unwrap_or(set.len() - 1);
            let before = if found.is_some() { set[place] } else { Line { number, ..EMPTY } };
            let written = SharedCache::put(set, place, Line { dirty: before.dirty || change, ..before });
            moved += match found {
                Some(_) => Moved { hits: 1, ..Moved::default() },
                None => Moved { read: 1, written: u32::from(written), hits: 0 },
            };
        }
        moved
    }

    /// A card writes.
    pub fn card_writes(&mut self, address: u64, bytes: u32) -> Moved {
        let (mut moved, most) = (Moved::default(), self.card_ways);
        for number in self.numbers(address, bytes) {
            let set = self.set(number);
            let found = set.iter().position(|one| one.number == number);
            if most == 0 {
                if let Some(place) = found {
                    set[place..].rotate_left(1);
                    set[set.len() - 1] = EMPTY;
                }
                moved.written += 1;
                continue;
            }
            let of_cards = set.iter().filter(|one| one.by_card).count();
            let last_of_cards = || set.iter().rposition(|one| one.by_card);
            let place = found.or_else(|| (of_cards >= most).then(last_of_cards).flatten());
            let by_card = found.is_none_or(|place| set[place].by_card);
            let place = place.unwrap_or(set.len() - 1);
            let written = SharedCache::put(set, place, Line { number, by_card, dirty: true });
            moved += Moved { hits: u32::from(found.is_some()), read: 0, written: u32::from(written) };
        }
        moved
    }

    /// A card reads.
    pub fn card_reads(&mut self, address: u64, bytes: u32) -> Moved {
        let mut moved = Moved::default();
        for number in self.numbers(address, bytes) {
            let there = self.set(number).iter().any(|one| one.number == number);
            moved += Moved { hits: u32::from(there), read: u32::from(!there), written: 0 };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 64;

    fn moved(hits: u32, read: u32, written: u32) -> Moved {
        Moved { hits, read, written }
    }

    /// One set of four ways, of which cards have two.
    fn small() -> SharedCache {
        SharedCache::new(4 * LINE, 4, 2, LINE)
    }

    #[test]
    fn cards_drive_out_each_other_and_not_the_processor() {
        let mut cache = small();
        assert_eq!(cache.touch(10 * LINE, 128, false), moved(0, 2, 0));
        assert_eq!(cache.card_writes(0, 128), moved(0, 0, 0), "into empty ways");
        assert_eq!(cache.card_writes(2 * LINE, 64), moved(0, 0, 1), "the card's first line goes to memory");
        assert_eq!(cache.touch(10 * LINE, 128, false), moved(2, 0, 0), "the processor's stay");
        assert_eq!(cache.card_reads(0, 64), moved(0, 1, 0), "it went");
        assert_eq!(cache.card_reads(LINE, 128), moved(2, 0, 0));
        assert_eq!(cache.card_reads(0, 64), moved(0, 1, 0), "and a card's read brings nothing in");
    }

    #[test]
    fn a_line_that_is_there_is_changed_there() {
        let mut cache = small();
        cache.touch(0, 64, false);
        assert_eq!(cache.card_writes(0, 64), moved(1, 0, 0));
        assert_eq!(cache.touch(0, 64, false), moved(1, 0, 0));
        // Five lines of the processor: the one that the card changed is the oldest and has to be written.
        assert_eq!(cache.touch(LINE, 4 * 64, false), moved(0, 4, 1));
        // What was only read need not be.
        assert_eq!(cache.touch(9 * LINE, 64, true), moved(0, 1, 0));
    }

    #[test]
    fn without_ways_for_cards_their_writes_go_to_memory() {
        let mut cache = SharedCache::new(4 * LINE, 4, 0, LINE);
        cache.touch(0, 64, false);
        assert_eq!(cache.card_writes(0, 64), moved(0, 0, 1));
        assert_eq!(cache.touch(0, 64, false), moved(0, 1, 0), "it is there no more");
    }

    /// Buffers that are used in turn: while they fit into the ways of cards, nothing goes to memory; twice as many all do.
    #[test]
    fn rings_that_fit_stay_and_rings_that_do_not_go_through_memory() {
        let of_buffers = |count: u64| {
            let mut cache = SharedCache::new(1 << 20, 16, 2, LINE);
            let mut all = Moved::default();
            for turn in 0..8 {
                for buffer in 0..count {
                    let mut one = cache.card_writes(buffer * 2_048, 128);
                    one += cache.touch(buffer * 2_048, 128, false);
                    if turn >= 4 {
                        all += one;
                    }
                }
            }
            f64::from(all.written) / (4.0 * 2.0 * count as f64)
        };
        // Two of sixteen ways are 2 048 lines; 256 buffers take 512, of which chance puts some three into a set.
        let (few, many) = (of_buffers(256), of_buffers(4_096));
        assert!(few < 0.15, "{few}");
        assert!(many > 0.9, "{many}");
    }
}
