//! Second-level caches of several processors: a line that one of them wrote comes from there, not from memory.

use crate::cache::Cache;
use crate::event::Time;
use crate::hardware::Hardware;
use crate::layout::Place;
use crate::machine::{Machine, SeveralValues};

/// The caches, and which processor has which.
#[derive(Clone, Debug)]
pub struct Caches {
    caches: Vec<Cache>,
    processors_of_one: usize,
    transfer_ps: Time,
    near_ps: Time,
    /// Lines that came from another cache.
    pub transfers: u64,
}

impl Caches {
    /// Empty caches.
    pub fn new(machine: &Machine, several: &SeveralValues) -> Caches {
        let p = &machine.processor;
        let of_one = several.of_a_cache.value as usize;
        let count = (several.processors.value as usize).div_ceil(of_one);
        Caches {
            caches: vec![Cache::new(p.cache.value, p.cache_ways.value as usize, p.cache_line.value); count],
            processors_of_one: of_one,
            transfer_ps: several.transfer.value,
            near_ps: several.near.value,
            transfers: 0,
        }
    }

    /// A processor reads a line that nobody else writes, or that a card wrote. Says how long it waits.
    pub fn read(&mut self, processor: usize, now_ps: Time, place: Place, hardware: &mut Hardware) -> Time {
        let own = processor / self.processors_of_one;
        if self.caches[own].touch(place.address()) {
            return 0;
        }
        hardware.memory.access(now_ps, self.caches[own].line_bytes())
    }

    /// A processor writes a line that others write, too: theirs is gone. Says how long it waits.
    pub fn share(&mut self, processor: usize, now_ps: Time, place: Place, hardware: &mut Hardware) -> Time {
        let own = processor / self.processors_of_one;
        let mut elsewhere = false;
        let others = self.caches.iter_mut().enumerate().filter(|(n, _)| *n != own);
        for (_, cache) in others {
            elsewhere |= cache.has(place.address());
            cache.invalidate(place.address(), 1);
        }
        let here = self.caches[own].touch(place.address());
        match (elsewhere, here) {
            (true, _) => {
                self.transfers += 1;
                self.transfer_ps
            }
            (false, true) => self.near_ps,
            (false, false) => hardware.memory.access(now_ps, self.caches[own].line_bytes()),
        }
    }

    /// A card writes to memory.
    pub fn invalidate(&mut self, place: Place, bytes: u32) {
        self.caches.iter_mut().for_each(|cache| cache.invalidate(place.address(), bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_from_who_wrote_it_last() {
        let machine = Machine::aff().expect("the machine of the paper");
        let several = machine.several.as_ref().expect("several");
        let mut hardware = Hardware::new(&machine, &[], false);
        let mut caches = Caches::new(&machine, several);
        let line = Place::Table(0);
        let mut waits = |caches: &mut Caches, processor| caches.share(processor, 0, line, &mut hardware);
        let (near, far) = (several.near.value, several.transfer.value);
        assert!(waits(&mut caches, 0) >= machine.memory.latency.value, "nobody has it");
        assert_eq!([1, 0, 2, 3, 2, 0].map(|one| waits(&mut caches, one)), [near, near, far, near, near, far]);
        assert_eq!(caches.transfers, 2);
        caches.invalidate(line, 1);
        assert!(waits(&mut caches, 0) >= machine.memory.latency.value, "a card wrote it");
        assert_eq!(caches.read(1, 0, line, &mut hardware), 0, "its neighbour has it");
    }
}
