//! The order in which a table is shown.

/// The order in which Click lists a table: that of a hash table with chains, which grows when these have two entries each.
pub(super) struct Order<T> {
    buckets: Vec<Vec<(u32, T)>>,
}

impl<T: Clone> Order<T> {
    /// An empty one.
    pub fn new() -> Order<T> {
        Order { buckets: vec![Vec::new()] }
    }

    /// Adds a flow's direction whose number is `number`.
    pub fn add(&mut self, number: u32, entry: T) {
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
    pub fn entries(self) -> impl Iterator<Item = T> {
        self.buckets.into_iter().flatten().map(|(_, entry)| entry)
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

    #[test]
    fn entries_come_by_bucket_and_the_last_of_a_bucket_first() {
        let (mut order, mut growth) = (Order::new(), Growth::new());
        for (n, number) in (0..).zip([3, 1, 4, 6]) {
            order.add(number, n);
            growth.came(n, 1);
            if growth.at.contains(&n) {
                order.grow();
            }
        }
        assert_eq!(growth.at, [2]);
        // Three buckets: 3 and 6 are in the first, 4 and 1 in the second. It grew when there were three.
        assert_eq!(order.entries().collect::<Vec<_>>(), [3, 0, 1, 2]);
    }
}
