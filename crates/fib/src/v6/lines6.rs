//! The writer's side of [`crate::v6::walk`]: publishes what is compiled for a change and reclaims what was there.
//!
//! A change compiles the units of a directory it touches, and those that share a leaf with them, beside the old ones
//! and stores them, one atomic word each.
//!
//! What was planned for the routes there were does not suit the routes there are: a directory for a tenth of the runs
//! has crowded leaves, and changes leave leaves half full. So the words of an entry are planned and packed anew when
//! half as many changes were made as there were runs, and the directory of a /16 when its runs have become a quarter
//! more or a fifth fewer. That is a constant share of what each change costs, and a table filled route by route becomes
//! what it would have been if it had been loaded.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup};
use crate::memory::mapping::Mapping;
use crate::memory::region::Region;
use crate::prefix::{Prefix, outermost};
use crate::reader::InPlace;
use crate::reader::Shared;
use crate::rib::Rib;
use crate::runs::for_each_run_between;
use crate::sync::epoch::{Domain, Limbo};
use crate::table::{Memory, Structure};
use crate::v6::compile::{Compiler, Range, Units, around};
use crate::v6::memory::{ADJACENCIES, Level, Memory6, Part, is_shared_root, patience};
use crate::v6::touched::{stretch, touched};
use crate::v6::walk::{EMPTY, LINE_BITS_MAX, Lines6Core, Lines6Layout, ROOT, ROOT_BITS, Run};

/// A store that makes a change visible.
#[derive(Clone, Copy)]
enum Publish {
    /// The entry of a /16 and the runs below it.
    Root(u32, u32, u32),
    Unit(Level, u32, u64),
    /// A word that differs in one leaf.
    Patch(u32, u64, u32),
}

/// The default IPv6 table's structure; see the module.
pub struct Lines6 {
    memory: Memory6,
    domain: Domain,
    limbo: Limbo<Part>,
    /// Kept from change to change for their memory.
    runs: Vec<Run>,
    changes: Vec<Publish>,
    parts: Vec<Part>,
    /// Runs that the directory of each /16 was made for, and changes before they are counted again.
    planned_runs: Vec<u32>,
    patience: Vec<u32>,
    /// Whether what has outgrown its plan gets another; not where there is no room.
    plans_anew: bool,
}

/// Whether a directory made for `planned` runs should be another for as many as there are now.
fn is_outgrown(planned: u32, now: usize) -> bool {
    let (planned, now) = (u64::from(planned), now as u64);
    now * 4 > planned * 5 || now * 5 < planned * 4
}

impl Lines6 {
    /// An empty structure with room for `lines` leaves and as many branches (at most 2^22 each).
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn with_capacity(lines: u32) -> Result<Self, FibError> {
        Self::make(lines, &Domain::new())
    }

    fn make(lines: u32, domain: &Domain) -> Result<Self, FibError> {
        let layout = Lines6Layout::new(LINE_BITS_MAX);
        Self::place(layout, Arc::new(Mapping::new(layout.bytes())?), lines, domain)
    }

    /// An empty structure in a region of the caller's, read under the announcements of a domain.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the region is shorter than the layout or does not begin at a cache line.
    pub fn in_region(
        layout: Lines6Layout,
        region: Arc<dyn Region>,
        domain: &Domain,
    ) -> Result<Self, FibError> {
        Self::place(layout, region, u32::MAX, domain)
    }

    fn place(
        layout: Lines6Layout,
        region: Arc<dyn Region>,
        lines: u32,
        domain: &Domain,
    ) -> Result<Self, FibError> {
        Ok(Lines6 {
            memory: Memory6::new(&layout, &region, lines)?,
            domain: domain.clone(),
            limbo: Limbo::new(),
            runs: Vec::new(),
            changes: Vec::new(),
            parts: Vec::new(),
            planned_runs: vec![0; ROOT],
            patience: vec![0; ROOT],
            plans_anew: true,
        })
    }

    pub(crate) fn core(&self) -> &Lines6Core {
        &self.memory.core
    }

    fn reclaim(&mut self, now: bool) {
        let memory = &mut self.memory;
        self.limbo.reclaim(&self.domain, now, |part| memory.free(part));
    }

    /// Compiles what `changed` touches; `None` if there is no room, and nothing is left behind then.
    fn compile(&mut self, rib: &Rib<u128>, changed: &[Prefix<u128>]) -> Option<()> {
        let mut runs = std::mem::take(&mut self.runs);
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        let mut rest = changed;
        let done = outermost(changed, ROOT_BITS).try_for_each(|range| {
            let (changed, others) =
                rest.split_at(rest.partition_point(|prefix| prefix.first() <= range.last()));
            rest = others;
            if self.fits(rib, changed, &mut runs) {
                return self.compile_in_place(rib, changed, &mut runs, &mut changes);
            }
            collect(rib, (range.first(), range.last()), &mut runs);
            self.compile_roots(range, &runs, &mut changes)
        });
        (self.runs, self.changes) = (runs, changes);
        if done.is_none() {
            self.memory.discard();
        }
        done
    }

    /// Whether the directory of a /16 suits its runs, after these changes to parts of it.
    fn fits(&mut self, rib: &Rib<u128>, changed: &[Prefix<u128>], runs: &mut Vec<Run>) -> bool {
        let chunk = (changed[0].first() >> 112) as usize;
        let root = self.memory.root(chunk as u32);
        let (planned, patience_left) = (self.planned_runs[chunk], &mut self.patience[chunk]);
        // To compile all is cheaper than to look for the parts of so many.
        let all = self.plans_anew && changed.len() > 1 && changed.len() > planned as usize / 4;
        if is_shared_root(root) || changed[0].len() <= ROOT_BITS || all {
            return false;
        }
        if *patience_left as usize >= changed.len() || !self.plans_anew {
            *patience_left = patience_left.saturating_sub(changed.len() as u32);
            return true;
        }
        collect(rib, around(changed[0].first(), ROOT_BITS), runs);
        *patience_left = patience(runs.len() as u32);
        !is_outgrown(planned, runs.len())
    }

    /// Compiles the units that changes to parts of a /16 touch.
    fn compile_in_place(
        &mut self,
        rib: &Rib<u128>,
        changed: &[Prefix<u128>],
        runs: &mut Vec<Run>,
        changes: &mut Vec<Publish>,
    ) -> Option<()> {
        if let [changed] = *changed {
            let units = touched(&mut self.memory, changed, self.plans_anew);
            if let Some(patch) = self.compile_patch(rib, changed, units, runs)? {
                changes.push(patch);
                return Some(());
            }
            return self.compile_units(rib, units, runs, changes);
        }
        let mut units: Vec<_> = outermost(changed, 128)
            .map(|changed| touched(&mut self.memory, changed, self.plans_anew))
            .collect();
        units.sort_by_key(|units| (units.range.0, Reverse(units.range.1), units.level));
        units.dedup_by(|next, units| {
            // Inside the units before or, where they share leaves, among them in part.
            let joins = next.range.0 <= units.range.1;
            if joins {
                units.range.1 = units.range.1.max(next.range.1);
            }
            joins
        });
        units.into_iter().try_for_each(|units| self.compile_units(rib, units, runs, changes))
    }

    /// Compiles one leaf of a word anew, if the change touches no other and the word can have it in place of the old.
    fn compile_patch(
        &mut self,
        rib: &Rib<u128>,
        changed: Prefix<u128>,
        units: Units,
        runs: &mut Vec<Run>,
    ) -> Option<Option<Publish>> {
        let Some(stretch) = stretch(&self.memory, changed, units) else { return Some(None) };
        collect(rib, stretch.range, runs);
        let mut compiler = Compiler { memory: &mut self.memory };
        let word = compiler.patch(stretch.word, stretch.leaf, runs, stretch.range, stretch.slots)?;
        Some(word.map(|word| Publish::Patch(units.first, word, stretch.leaf)))
    }

    fn compile_units(
        &mut self,
        rib: &Rib<u128>,
        units: Units,
        runs: &mut Vec<Run>,
        changes: &mut Vec<Publish>,
    ) -> Option<()> {
        collect(rib, units.range, runs);
        let mut put = |index, unit| changes.push(Publish::Unit(units.level, index, unit));
        Compiler { memory: &mut self.memory }.units(runs, units, &mut put)
    }

    /// Compiles the /16s of a range of whole ones.
    fn compile_roots(&mut self, range: Prefix<u128>, runs: &[Run], changes: &mut Vec<Publish>) -> Option<()> {
        let (mut at, mut until) = (0, 0);
        let chunk = |address: u128| (address >> 112) as u32;
        for root in chunk(range.first())..=chunk(range.last()) {
            let (first, last) = around(u128::from(root) << 112, ROOT_BITS);
            until += runs[until..].iter().take_while(|run| run.0 <= last).count();
            at += runs[at + 1..until].iter().take_while(|run| run.0 <= first).count();
            let runs = &runs[at..until];
            let entry = Compiler { memory: &mut self.memory }.root(runs, (first, last))?;
            if entry != self.memory.root(root) {
                changes.push(Publish::Root(root, entry, runs.len() as u32));
            }
        }
        Some(())
    }

    /// Makes what was compiled visible, and what it replaces wait for the readers.
    fn publish(&mut self) {
        self.memory.keep();
        let (core, parts) = (self.memory.core.clone(), &mut self.parts);
        for &change in &self.changes {
            // Release: whoever reads the word reads the leaves and words written before.
            match change {
                Publish::Root(chunk, root, runs) => {
                    self.planned_runs[chunk as usize] = runs;
                    self.patience[chunk as usize] = patience(runs);
                    let old = self.memory.set_root(chunk, root);
                    self.memory.parts_of_root(old, parts);
                }
                Publish::Patch(index, word, leaf) => {
                    let old = core.words[index as usize].swap(word, Ordering::AcqRel);
                    self.memory.parts_of_patched(old, leaf, parts);
                }
                Publish::Unit(level @ Level::Entries, index, unit) => {
                    let old = core.entries[index as usize].swap(unit as u32, Ordering::AcqRel);
                    self.memory.parts_of_unit(level, index, old.into(), parts);
                }
                Publish::Unit(level @ Level::Words, index, unit) => {
                    let old = core.words[index as usize].swap(unit, Ordering::AcqRel);
                    self.memory.parts_of_unit(level, index, old, parts);
                }
            }
        }
        self.limbo.retire(&self.domain, parts.drain(..));
    }
}

/// The runs of a range.
fn collect(rib: &Rib<u128>, (first, last): Range, runs: &mut Vec<Run>) {
    runs.clear();
    for_each_run_between(rib, first, last, |start, adjacency| runs.push((start, adjacency as u16)));
}

impl Lookup<u128> for Lines6 {
    #[inline]
    fn lookup(&self, address: u128) -> AdjacencyIndex {
        self.core().lookup(address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[u128], results: &mut [AdjacencyIndex]) {
        self.core().lookup_batch(addresses, results);
    }

    fn bytes(&self) -> usize {
        self.core().bytes()
    }
}

impl Structure<u128> for Lines6 {
    const NAME: &'static str = "lines6";
    const ADJACENCY_MAX: AdjacencyIndex = ADJACENCIES - 1;

    fn empty() -> Result<Self, FibError> {
        Self::with_capacity(u32::MAX)
    }

    fn memory(&self) -> Memory {
        let memory = self.memory.bytes();
        let plans = (self.planned_runs.len() + self.patience.len()) * 4;
        Memory { writer_bytes: memory.writer_bytes + plans + self.limbo.bytes(), ..memory }
    }

    fn update(&mut self, rib: &Rib<u128>, changed: &[Prefix<u128>]) -> Result<(), FibError> {
        if self.compile(rib, changed).is_none() {
            // What readers have left by now may be enough for the change itself.
            self.reclaim(true);
            self.plans_anew = false;
            let done = self.compile(rib, changed);
            self.plans_anew = true;
            done.ok_or_else(|| self.limbo.refusal())?;
        }
        self.publish();
        self.reclaim(false);
        self.memory.account();
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<u128>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }

    fn forget(&mut self, _rib: &Rib<u128>, changed: &[Prefix<u128>]) -> Vec<Prefix<u128>> {
        let ranges: Vec<_> = outermost(changed, ROOT_BITS).collect();
        let chunks = ranges
            .iter()
            .flat_map(|range| (range.first() >> 112) as u32..=(range.last() >> 112) as u32)
            .filter(|&chunk| self.memory.root(chunk) != EMPTY);
        self.changes = chunks.map(|chunk| Publish::Root(chunk, EMPTY, 0)).collect();
        self.publish();
        self.reclaim(false);
        ranges
    }
}

impl Shared<u128> for Lines6 {
    type Handle = InPlace<Lines6Core>;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        Self::make(u32::MAX, domain)
    }

    fn handle(&self) -> Self::Handle {
        InPlace::new(&self.memory.core, &self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::is_outgrown;

    #[test]
    fn a_directory_stays_while_its_runs_are_within_a_quarter_of_what_it_was_made_for() {
        let outgrown = [(100, 126), (100, 79), (0, 1), (1, 0), (u32::MAX, 1)];
        let fits = [(100, 125), (100, 80), (100, 100), (0, 0), (4, 5), (5, 4)];
        assert_eq!(outgrown.map(|(planned, now)| is_outgrown(planned, now)), [true; 5]);
        assert_eq!(fits.map(|(planned, now)| is_outgrown(planned, now)), [false; 6]);
    }
}
