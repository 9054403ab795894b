//! Where the flows of a table are, by the hashes of their keys.

use causeway_packet::hints::{prefer_huge_pages, prefetch};

/// For each key in use, at the first free place from its home on: the hash (32 bits), whose upper bits are the home, and
/// what it means (32 bits); 0 = free. It has a power of two of places, at least 16 and at most 2 to the 26.
pub(super) struct Index {
    pub words: Vec<u64>,
}

impl Index {
    /// How long one for so many keys is.
    pub fn length(keys: usize) -> usize {
        (keys * 2).next_power_of_two().max(16)
    }

    /// An empty one for so many keys.
    pub fn new(keys: usize) -> Index {
        let words = vec![0; Self::length(keys)];
        prefer_huge_pages(&words);
        Index { words }
    }

    /// Where a key with this hash is looked for first.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> (32 - self.words.len().trailing_zeros())) as usize
    }

    /// Asks for the word where a key with this hash is looked for first.
    #[inline]
    pub fn prefetch(&self, hash: u32) -> usize {
        let home = self.home(hash);
        prefetch(&self.words[home]);
        home
    }

    /// Where the key with this hash is that `is` knows by its word.
    #[inline]
    pub fn position(&self, hash: u32, is: impl Fn(u64) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let word = self.words[at];
            if word == 0 {
                return None;
            }
            if (word >> 32) as u32 == hash && is(word) {
                return Some(at);
            }
            at = (at + 1) & (self.words.len() - 1);
        }
    }

    /// Adds a key with this hash, which is not 0.
    pub fn add(&mut self, hash: u32, meaning: u32) {
        let mut at = self.home(hash);
        while self.words[at] != 0 {
            at = (at + 1) & (self.words.len() - 1);
        }
        self.words[at] = u64::from(hash) << 32 | u64::from(meaning);
    }

    /// Takes out what is at `hole`, and moves those behind it that would not be found any more.
    pub fn remove(&mut self, mut hole: usize) -> u64 {
        let (mask, removed) = (self.words.len() - 1, self.words[hole]);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let word = self.words[at];
            if word == 0 {
                break;
            }
            let home = self.home((word >> 32) as u32);
            // It may fill the hole unless its own place lies behind that.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.words[hole] = word;
                hole = at;
            }
        }
        self.words[hole] = 0;
        removed
    }
}
