//! DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998) with 16-bit entries: one load for most addresses, 32 MB.

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup};
use crate::memory::mapping::prefetch;
use crate::prefix::{Prefix, outermost};
use crate::rib::Rib;
use crate::table::Structure;
use crate::v4::chunks::{Run, for_each_chunk};

/// Set in a first-level entry that names a second-level group.
const GROUP: u16 = 0x8000;
const LANES: usize = 32;

/// The two levels.
#[derive(Clone, Debug)]
pub struct Dir24_8 {
    first: Vec<u16>,
    groups: Vec<[u16; 256]>,
    free: Vec<u16>,
}

impl Dir24_8 {
    #[inline(always)]
    fn finish(&self, entry: u16, address: u32) -> AdjacencyIndex {
        if entry & GROUP == 0 {
            return u32::from(entry);
        }
        u32::from(self.groups[usize::from(entry & !GROUP)][usize::from(address as u8)])
    }

    fn set(&mut self, chunk: u32, runs: &[Run]) -> Option<()> {
        let entry = &mut self.first[chunk as usize];
        if let [(_, adjacency)] = *runs {
            if *entry & GROUP != 0 {
                self.free.push(*entry & !GROUP);
            }
            *entry = adjacency;
            return Some(());
        }
        if *entry & GROUP == 0 {
            let group = match self.free.pop() {
                Some(group) => group,
                None if self.groups.len() < usize::from(GROUP) => {
                    self.groups.push([0; 256]);
                    self.groups.len() as u16 - 1
                }
                None => return None,
            };
            *entry = GROUP | group;
        }
        let group = &mut self.groups[usize::from(*entry & !GROUP)];
        for (place, &(start, adjacency)) in runs.iter().enumerate() {
            let end = runs.get(place + 1).map_or(256, |next| next.0);
            group[start as usize..end as usize].fill(adjacency);
        }
        Some(())
    }
}

impl Lookup<u32> for Dir24_8 {
    #[inline]
    fn lookup(&self, address: u32) -> AdjacencyIndex {
        self.finish(self.first[(address >> 8) as usize], address)
    }

    fn lookup_batch(&self, addresses: &[u32], results: &mut [AdjacencyIndex]) {
        for (some, found) in addresses.chunks(LANES).zip(results.chunks_mut(LANES)) {
            some.iter().for_each(|&address| prefetch(&self.first[(address >> 8) as usize]));
            for (result, &address) in found.iter_mut().zip(some) {
                *result = self.lookup(address);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.first.len() * 2 + self.groups.len() * 512
    }
}

impl Structure<u32> for Dir24_8 {
    const NAME: &'static str = "dir-24-8";
    const ADJACENCY_MAX: AdjacencyIndex = GROUP as u32 - 1;

    fn empty() -> Result<Self, FibError> {
        Ok(Dir24_8 { first: vec![0; 1 << 24], groups: Vec::new(), free: Vec::new() })
    }

    fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        // Groups needed now, counted before anything changes so that a full table stays as it was.
        let mut needed = 0;
        let mut runs = Vec::new();
        for range in outermost(changed, 24) {
            for_each_chunk(rib, range, 8, &mut runs, |chunk, runs| {
                needed += usize::from(runs.len() > 1 && self.first[chunk as usize] & GROUP == 0);
            });
        }
        if needed > self.free.len() + usize::from(GROUP) - self.groups.len() {
            return Err(FibError::Full);
        }
        let mut full = false;
        for range in outermost(changed, 24) {
            for_each_chunk(rib, range, 8, &mut runs, |chunk, runs| full |= self.set(chunk, runs).is_none());
        }
        debug_assert!(!full, "counted above");
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }
}
