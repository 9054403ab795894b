//! A batch of packets on its way through the rules: to a table together, and on to the next rule from there.

use super::PolicyKey;
use super::compiled::Compiled;
use crate::address::Address;
use crate::lookup::{AdjacencyIndex, BATCH_MAX, Lookup, MISS};
use crate::table::Structure;

/// Packets by their place in the batch.
type Lanes = [u8; BATCH_MAX];

/// Packets sorted by the table that their rule names.
struct Sorted {
    lanes: Lanes,
    /// The tables, 0 for packets whose search is over, and where the lanes of each end.
    parts: [(u8, u16); BATCH_MAX],
    count: usize,
}

/// The rule each packet is at, and who is still without a route.
pub(super) struct Walk<'a, A: Address, S> {
    rules: &'a Compiled<A, S>,
    keys: &'a [PolicyKey<A>],
    groups: [u32; BATCH_MAX],
    at: [u32; BATCH_MAX],
    waiting: Lanes,
    count: usize,
    destinations: [A; BATCH_MAX],
    found: [AdjacencyIndex; BATCH_MAX],
}

impl<'a, A: Address, S: Structure<A>> Walk<'a, A, S> {
    /// All packets of a batch at the first rule that selects them.
    pub(super) fn start(rules: &'a Compiled<A, S>, keys: &'a [PolicyKey<A>]) -> Self {
        let mut walk = Walk {
            rules,
            keys,
            groups: [0; BATCH_MAX],
            at: [0; BATCH_MAX],
            waiting: std::array::from_fn(|lane| lane as u8),
            count: keys.len(),
            destinations: [A::ZERO; BATCH_MAX],
            found: [MISS; BATCH_MAX],
        };
        rules.groups(keys, &mut walk.groups);
        if let Some(first) = keys.first() {
            let mut memo = rules.memo(first, 0);
            for ((at, key), &group) in walk.at.iter_mut().zip(keys).zip(&walk.groups) {
                *at = rules.next_after(&mut memo, key, group, 0);
            }
        }
        walk
    }

    /// Takes every packet that waits to the table its rule names; those it does not know wait for their next rule.
    /// False if nobody waits any more.
    pub(super) fn round<'t, T: Lookup<A> + 't>(
        &mut self,
        table: &impl Fn(u8) -> Option<&'t T>,
        results: &mut [AdjacencyIndex],
    ) -> bool {
        let sorted = self.by_table();
        self.count = 0;
        let mut start = 0;
        for &(number, end) in &sorted.parts[..sorted.count] {
            let lanes = &sorted.lanes[start..usize::from(end)];
            start = usize::from(end);
            if number > 0 {
                self.visit(table(number), lanes, results);
            }
        }
        self.count > 0
    }

    fn by_table(&self) -> Sorted {
        let mut sorted = Sorted { lanes: self.waiting, parts: [(0, 0); BATCH_MAX], count: 0 };
        let lanes = &self.waiting[..self.count];
        let number = |lane: u8| self.rules.table(self.at[usize::from(lane)]);
        // Mostly all go to the same table; counting would wait for each count before the next.
        let first = lanes.first().map_or(0, |&lane| number(lane));
        if lanes.iter().fold(0, |differ, &lane| differ | (number(lane) ^ first)) == 0 {
            sorted.parts[0] = (first, lanes.len() as u16);
            sorted.count = 1;
            return sorted;
        }
        let mut counts = [0_u16; 256];
        for &lane in lanes {
            let number = number(lane);
            let count = &mut counts[usize::from(number)];
            if *count == 0 {
                sorted.parts[sorted.count].0 = number;
                sorted.count += 1;
            }
            *count += 1;
        }
        let mut end = 0;
        for part in &mut sorted.parts[..sorted.count] {
            // From here on the place for the next packet of the table.
            let start = end;
            end += std::mem::replace(&mut counts[usize::from(part.0)], start);
            part.1 = end;
        }
        for &lane in lanes {
            let place = &mut counts[usize::from(number(lane))];
            sorted.lanes[usize::from(*place)] = lane;
            *place += 1;
        }
        sorted
    }

    fn visit<T: Lookup<A>>(&mut self, table: Option<&T>, lanes: &[u8], results: &mut [AdjacencyIndex]) {
        let Some(table) = table else { return self.send_on(lanes, results) };
        let count = lanes.len();
        if count == self.keys.len() {
            // All packets, in their order.
            self.destinations.iter_mut().zip(self.keys).for_each(|(to, key)| *to = key.destination);
            table.lookup_batch(&self.destinations[..count], results);
        } else {
            for (destination, &lane) in self.destinations.iter_mut().zip(lanes) {
                *destination = self.keys[usize::from(lane)].destination;
            }
            table.lookup_batch(&self.destinations[..count], &mut self.found);
            for (&lane, &adjacency) in lanes.iter().zip(&self.found) {
                results[usize::from(lane)] = adjacency;
            }
        }
        self.send_on(lanes, results);
    }

    /// Puts those of `lanes` that have no route to their next rule.
    fn send_on(&mut self, lanes: &[u8], results: &[AdjacencyIndex]) {
        let mut memo = None;
        let missed = |lane: &usize| results[*lane] == MISS;
        for lane in lanes.iter().map(|&lane| usize::from(lane)).filter(missed) {
            let (key, from) = (&self.keys[lane], self.at[lane] + 1);
            let memo = memo.get_or_insert_with(|| self.rules.memo(key, from));
            self.at[lane] = self.rules.next_after(memo, key, self.groups[lane], from);
            self.waiting[self.count] = lane as u8;
            self.count += 1;
        }
    }
}
