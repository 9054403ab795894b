//! Tables of few entries, such as the headers of known neighbours, copied to maps that programs look up in.

use causeway_bpf::{Map, MapKind, Result};
use causeway_engine::ir::Entry;
use causeway_fastpath::Table;
use std::collections::HashMap;

/// Entries that there is room for.
const MOST: u32 = 4_096;

/// A copy of one table, which follows it.
pub struct Few {
    map: Map,
    entries: HashMap<[u64; 2], [u64; 3]>,
}

/// Words in the order of the machine.
fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Few {
    /// A table without entries.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<Few> {
        Ok(Few { map: Map::new(MapKind::Hash, "entries", 16, 24, MOST)?, entries: HashMap::new() })
    }

    /// The table, for programs.
    pub fn table(&self) -> Table<'_> {
        Table::Exact(&self.map)
    }

    /// These are its entries from now on. What finds no room is not found, and its packets go up.
    pub fn set(&mut self, entries: Vec<Entry>) {
        let now: HashMap<_, _> = entries.into_iter().collect();
        for key in self.entries.keys().filter(|key| !now.contains_key(*key)) {
            // It is there, or never was.
            let _ = self.map.remove(&bytes(key));
        }
        for (key, found) in now.iter().filter(|(key, found)| self.entries.get(*key) != Some(*found)) {
            // As above.
            let _ = self.map.insert(&bytes(key), &bytes(found));
        }
        self.entries = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::ErrorKind;

    #[test]
    fn programs_find_the_entries_that_there_are_now() {
        let mut few = match Few::new() {
            Ok(few) => few,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let found = |few: &Few, key: [u64; 2]| few.map.get(&bytes(&key)).expect("a map");
        few.set(vec![([1, 2], [3, 4, 5]), ([6, 7], [8, 9, 10])]);
        assert_eq!(found(&few, [6, 7]), Some(bytes(&[8, 9, 10])));
        few.set(vec![([1, 2], [3, 4, 6]), ([2, 1], [0, 0, 1])]);
        assert_eq!(found(&few, [1, 2]), Some(bytes(&[3, 4, 6])), "it has changed");
        assert_eq!(found(&few, [2, 1]), Some(bytes(&[0, 0, 1])), "it has come");
        assert_eq!(found(&few, [6, 7]), None, "it has gone");
        // More than there is room for: nothing is wrong, and there is room again afterwards.
        few.set((0..u64::from(MOST) + 9).map(|n| ([n, n], [n; 3])).collect());
        assert_eq!(found(&few, [1, 2]), None);
        few.set(vec![([1, 2], [3, 4, 5])]);
        assert_eq!(found(&few, [1, 2]), Some(bytes(&[3, 4, 5])));
    }
}
