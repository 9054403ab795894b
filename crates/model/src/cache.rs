//! A processor's cache: which lines are there. What a card writes to memory is not, from then on.

/// A cache of several ways that forgets the line that was used least recently.
#[derive(Clone, Debug)]
pub struct Cache {
    line_bytes: u64,
    sets: u64,
    ways: usize,
    /// The lines of each set, the most recent first; `EMPTY` is none.
    lines: Vec<u64>,
    /// Accesses that found their line.
    pub hits: u64,
    /// Accesses that did not.
    pub misses: u64,
}

const EMPTY: u64 = u64::MAX;

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    ///
    /// If a size is zero, or the cache smaller than one set.
    pub fn new(bytes: u64, ways: usize, line_bytes: u64) -> Cache {
        let sets = bytes / (line_bytes * ways as u64);
        assert!(sets > 0 && ways > 0, "a cache has at least one set");
        Cache { line_bytes, sets, ways, lines: vec![EMPTY; sets as usize * ways], hits: 0, misses: 0 }
    }

    /// Bytes of a line.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes as u32
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        let first = (line % self.sets) as usize * self.ways;
        &mut self.lines[first..first + self.ways]
    }

    /// The processor touches an address; says whether its line was there. It is then.
    pub fn touch(&mut self, address: u64) -> bool {
        let line = address / self.line_bytes;
        let set = self.set(line);
        let found = set.iter().position(|&one| one == line);
        let last = found.unwrap_or(set.len() - 1);
        set[..=last].rotate_right(1);
        set[0] = line;
        if found.is_some() {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        found.is_some()
    }

    /// Whether an address's line is there.
    pub fn has(&mut self, address: u64) -> bool {
        let line = address / self.line_bytes;
        self.set(line).contains(&line)
    }

    /// A card writes to memory: lines that are there are there no more.
    pub fn invalidate(&mut self, address: u64, bytes: u32) {
        let last = (address + u64::from(bytes).max(1) - 1) / self.line_bytes;
        for line in address / self.line_bytes..=last {
            let set = self.set(line);
            if let Some(place) = set.iter().position(|&one| one == line) {
                set[place] = EMPTY;
                set[place..].rotate_left(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_line_used_least_recently_goes() {
        // One set of two ways.
        let mut cache = Cache::new(128, 2, 64);
        assert_eq!(
            [0, 63, 64, 0, 128].map(|address| cache.touch(address)),
            [false, true, false, true, false]
        );
        assert_eq!([0, 64].map(|address| cache.touch(address)), [true, false], "64 went, 0 was used since");
        cache.invalidate(10, 60);
        assert_eq!([0, 64].map(|address| cache.touch(address)), [false, false], "both lines were written");
        assert_eq!((cache.hits, cache.misses), (3, 6));
    }

    proptest! {
        /// As a list of lines in each set.
        #[test]
        fn it_holds_what_a_list_holds(steps in proptest::collection::vec((any::<bool>(), 0u64..40), 0..300)) {
            let mut cache = Cache::new(4 * 3 * 64, 3, 64);
            let mut sets = vec![Vec::new(); 4];
            for (touch, line) in steps {
                let set: &mut Vec<u64> = &mut sets[line as usize % 4];
                let there = set.contains(&line);
                set.retain(|&one| one != line);
                if touch {
                    set.insert(0, line);
                    set.truncate(3);
                    prop_assert_eq!(cache.touch(line * 64 + 5), there);
                } else {
                    cache.invalidate(line * 64, 64);
                }
            }
        }
    }
}
