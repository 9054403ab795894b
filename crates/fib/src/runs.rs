//! From routes to runs: the address space cut where the longest match changes.

use crate::address::Address;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::{AdjacencyIndex, MISS};

/// A run being collected: not emitted before the next start is known, so that equal neighbours merge.
struct Merger<A, F> {
    pending: (A, AdjacencyIndex),
    emitted: Option<AdjacencyIndex>,
    emit: F,
}

impl<A: Address, F: FnMut(A, AdjacencyIndex)> Merger<A, F> {
    fn start(&mut self, at: A, value: AdjacencyIndex) {
        if at != self.pending.0 {
            self.flush();
        }
        self.pending = (at, value);
    }

    fn flush(&mut self) {
        if self.emitted != Some(self.pending.1) {
            (self.emit)(self.pending.0, self.pending.1);
            self.emitted = Some(self.pending.1);
        }
    }
}

/// Calls `emit(first address, adjacency)` for each maximal run of equal results inside `range`, in order; the first
/// run starts at the first address of `range`.
pub(crate) fn for_each_run<A: Address>(rib: &Rib<A>, range: Prefix<A>, emit: impl FnMut(A, AdjacencyIndex)) {
    let mut current = rib.longest_above(range).map_or(MISS, |(_, adjacency)| adjacency);
    let mut merger = Merger { pending: (range.first(), current), emitted: None, emit };
    // The routes that cover the present position, innermost last: where each ends and what counts after it.
    // A prefix of each length can be open at once.
    let mut open = [(A::ZERO, MISS); 129];
    let mut depth = 0;
    for (prefix, adjacency) in rib.covered(range) {
        while depth > 0 && open[depth - 1].0 < prefix.first() {
            depth -= 1;
            let (last, outer) = open[depth];
            current = outer;
            if let Some(next) = last.successor() {
                merger.start(next, outer);
            }
        }
        open[depth] = (prefix.last(), current);
        depth += 1;
        current = adjacency;
        merger.start(prefix.first(), adjacency);
    }
    while depth > 0 {
        depth -= 1;
        let (last, outer) = open[depth];
        if last < range.last()
            && let Some(next) = last.successor()
        {
            merger.start(next, outer);
        }
    }
    merger.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(routes: &[(&str, u32)], range: &str) -> Vec<(u32, u32)> {
        let rib: Rib<u32> = routes.iter().map(|&(p, a)| (p.parse().unwrap(), a)).collect();
        let mut found = Vec::new();
        for_each_run(&rib, range.parse().unwrap(), |at, adjacency| found.push((at, adjacency)));
        found
    }

    #[test]
    fn nested_routes_open_and_close() {
        let routes = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("10.1.1.0/24", 3), ("10.2.0.0/16", 2)];
        assert_eq!(
            runs(&routes, "0.0.0.0/0"),
            [
                (0, 0),
                (0x0a00_0000, 1),
                (0x0a01_0000, 2),
                (0x0a01_0100, 3),
                (0x0a01_0200, 2), // 10.1/16 and 10.2/16 lead to the same place: one run
                (0x0a03_0000, 1),
                (0x0b00_0000, 0),
            ]
        );
        assert_eq!(runs(&routes, "10.1.0.0/24"), [(0x0a01_0000, 2)]);
    }

    #[test]
    fn the_ends_of_the_address_space_do_not_wrap() {
        let routes = [("255.255.255.255/32", 7), ("0.0.0.0/32", 8), ("128.0.0.0/1", 9)];
        assert_eq!(runs(&routes, "0.0.0.0/0"), [(0, 8), (1, 0), (1 << 31, 9), (u32::MAX, 7)]);
    }
}
