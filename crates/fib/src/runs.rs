//! From routes to runs: the address space cut where the longest match changes.

use crate::address::Address;
use crate::lookup::{AdjacencyIndex, MISS};
use crate::prefix::Prefix;
use crate::rib::Rib;

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

/// The routes that cover the present position, innermost last: where each ends and what counts after it. A prefix of
/// each length can be open at once.
struct Open<A> {
    ends: [A; 129],
    outer: [AdjacencyIndex; 129],
    depth: usize,
}

impl<A: Address> Open<A> {
    fn push(&mut self, end: A, outer: AdjacencyIndex) {
        (self.ends[self.depth], self.outer[self.depth]) = (end, outer);
        self.depth += 1;
    }

    /// Closes the innermost if it ends before an address.
    fn close_before(&mut self, at: A) -> Option<(A, AdjacencyIndex)> {
        let innermost = self.depth.checked_sub(1)?;
        if self.ends[innermost] < at { self.close() } else { None }
    }

    fn close(&mut self) -> Option<(A, AdjacencyIndex)> {
        self.depth = self.depth.checked_sub(1)?;
        Some((self.ends[self.depth], self.outer[self.depth]))
    }
}

/// Calls `emit(first address, adjacency)` for each maximal run of equal results inside `range`, in order; the first
/// run starts at the first address of `range`.
pub(crate) fn for_each_run<A: Address>(rib: &Rib<A>, range: Prefix<A>, emit: impl FnMut(A, AdjacencyIndex)) {
    for_each_run_between(rib, range.first(), range.last(), emit);
}

/// The same between two addresses, both included, that need not be those of a prefix.
pub(crate) fn for_each_run_between<A: Address>(
    rib: &Rib<A>,
    first: A,
    last: A,
    emit: impl FnMut(A, AdjacencyIndex),
) {
    let mut open = Open { ends: [A::ZERO; 129], outer: [MISS; 129], depth: 0 };
    let mut current = open_before(rib, first, last, &mut open);
    let mut merger = Merger { pending: (first, current), emitted: None, emit };
    for (prefix, adjacency) in rib.starting(first, last) {
        while let Some((end, outer)) = open.close_before(prefix.first()) {
            current = outer;
            if let Some(next) = end.successor() {
                merger.start(next, outer);
            }
        }
        open.push(prefix.last(), current);
        current = adjacency;
        merger.start(prefix.first(), adjacency);
    }
    while let Some((end, outer)) = open.close() {
        if end < last
            && let Some(next) = end.successor()
        {
            merger.start(next, outer);
        }
    }
    merger.flush();
}

/// Opens the routes that start before `first` and hold it, up to one that holds `last` too; returns what counts at
/// `first` by them.
fn open_before<A: Address>(rib: &Rib<A>, first: A, last: A, open: &mut Open<A>) -> AdjacencyIndex {
    // Prefixes that hold `first` and are shorter than this start before it.
    let Some(longest) = (A::BITS - first.trailing_zeros() as u8).checked_sub(1) else { return MISS };
    let Some((cover, adjacency)) = rib.longest_covering(Prefix::truncated(first, longest)) else {
        return MISS;
    };
    if cover.last() >= last {
        return adjacency;
    }
    let mut covers = [(cover, adjacency); 129];
    let mut count = 1;
    while covers[count - 1].0.last() < last
        && let Some(outer) = rib.longest_above(covers[count - 1].0)
    {
        covers[count] = outer;
        count += 1;
    }
    let mut current = MISS;
    for &(cover, adjacency) in covers[..count].iter().rev() {
        if cover.last() < last {
            open.push(cover.last(), current);
        }
        current = adjacency;
    }
    current
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
