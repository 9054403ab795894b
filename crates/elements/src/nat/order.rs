//! The order in which a table is shown.

use crate::flow_table::Id;

/// The order in which Click lists a table: that of a hash table with chains, which grows when these have two entries each.
pub(super) struct Order {
    buckets: Vec<Vec<(u32, (Id, usize))>>,
}

impl Order {
    /// An empty one.
    pub fn new() -> Order {
        Order { buckets: vec![Vec::new()] }
    }

    /// Adds a flow's direction whose number is `number`.
    pub fn add(&mut self, number: u32, entry: (Id, usize)) {
        let bucket = number as usize % self.buckets.len();
        self.buckets[bucket].insert(0, (number, entry));
    }

    /// Grows by a step.
    pub fn grow(&mut self) {
        let larger = vec![Vec::new(); 2 * self.buckets.len() + 1];
        let old = std::mem::replace(&mut self.buckets, larger);
        old.into_iter().flatten().for_each(|(number, entry)| self.add(number, entry));
    }

    /// All entries, in order.
    pub fn entries(self) -> Vec<(Id, usize)> {
        self.buckets.into_iter().flatten().map(|(_, entry)| entry).collect()
    }
}

/// When a table in Click would have grown.
pub(super) struct Growth {
    buckets: usize,
    entries: usize,
    /// The flows whose coming made it grow, by number.
    pub at: Vec<u64>,
}

impl Growth {
    /// Of an empty table.
    pub fn new() -> Growth {
        Growth { buckets: 1, entries: 0, at: Vec::with_capacity(32) }
    }

    /// A flow with this number and so many entries has come.
    pub fn came(&mut self, number: u64, entries: usize) {
        self.entries += entries;
        if self.entries > 2 * self.buckets {
            self.buckets = 2 * self.buckets + 1;
            self.at.push(number);
        }
    }

    /// A flow with so many entries has gone.
    pub fn went(&mut self, entries: usize) {
        self.entries = self.entries.saturating_sub(entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_table::FlowTable;

    #[test]
    fn entries_come_by_bucket_and_the_last_of_a_bucket_first() {
        let mut table: FlowTable<(), 1> = FlowTable::new(8, 1);
        let ids: Vec<Id> = (0..4u128).map(|key| table.insert([key], (), 0, 0).unwrap()).collect();
        let (mut order, mut growth) = (Order::new(), Growth::new());
        for (n, (id, number)) in (0..).zip(ids.iter().zip([3, 1, 4, 6])) {
            order.add(number, (*id, 0));
            growth.came(n, 1);
            if growth.at.contains(&n) {
                order.grow();
            }
        }
        assert_eq!(growth.at, [2]);
        // Three buckets: 3 and 6 are in the first, 4 and 1 in the second. It grew when there were three.
        let entries: Vec<usize> =
            order.entries().iter().map(|(id, _)| ids.iter().position(|i| i == id).unwrap()).collect();
        assert_eq!(entries, [3, 0, 1, 2]);
    }
}
