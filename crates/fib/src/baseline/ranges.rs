//! Ranges with a direct index: the top 16 bits choose a slice of sorted range starts, binary search does the rest
//! (the idea of DXR; Zec, Rizzo and Mikuc, CCR 2012). Compact; built whole, so a change costs a rebuild.

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, MISS};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::runs::for_each_run;
use crate::table::Structure;

/// Range starts, results, and where each /16 begins in them.
#[derive(Clone, Debug)]
pub struct Ranges<A: Address> {
    index: Vec<u32>,
    starts: Vec<A>,
    adjacencies: Vec<AdjacencyIndex>,
}

impl<A: Address> Lookup<A> for Ranges<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        let top = address.bits(0, 16) as usize;
        // The range before the first start in this /16 may reach into it.
        let (from, to) = (self.index[top] as usize, self.index[top + 1] as usize);
        let place = from + self.starts[from..to].partition_point(|&start| start <= address);
        self.adjacencies[place - 1]
    }

    fn bytes(&self) -> usize {
        self.index.len() * 4 + self.starts.len() * size_of::<A>() + self.adjacencies.len() * 4
    }
}

impl<A: Address> Structure<A> for Ranges<A> {
    const NAME: &'static str = "ranges";
    const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

    fn empty() -> Result<Self, FibError> {
        let mut index = vec![1; (1 << 16) + 1];
        index[0] = 0;
        Ok(Ranges { index, starts: vec![A::ZERO], adjacencies: vec![MISS] })
    }

    fn update(&mut self, rib: &Rib<A>, _changed: &[Prefix<A>]) -> Result<(), FibError> {
        self.rebuild(rib)
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        self.starts.clear();
        self.adjacencies.clear();
        for_each_run(rib, Prefix::DEFAULT, |start, adjacency| {
            self.starts.push(start);
            self.adjacencies.push(adjacency);
        });
        let mut place = 0;
        for (top, index) in self.index.iter_mut().enumerate() {
            while self.starts.get(place).is_some_and(|start| (start.bits(0, 16) as usize) < top) {
                place += 1;
            }
            *index = place as u32;
        }
        Ok(())
    }
}
