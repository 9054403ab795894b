//! Next hops as programs find them: by index, each in one piece.

use crate::table::SharedRegion;
use causeway_bpf::{GracePeriod, Map, Result};
use causeway_fib::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Next hops by index, in memory that programs read.
///
/// A next hop is a record of several words, and a program must not find half of one and half of another. So an index leads
/// to a record by one word, a record is written before a word leads to it and never changed, and one that was replaced is
/// used again when no program runs that may have found it.
///
/// An index may lead to a group of others instead, which is kept in the same way.
///
/// A program that asks the kernel ([`crate::Check`]) and hears otherwise puts an index in doubt, which it stays in whatever is
/// set, until [`Hops::trust`].
#[derive(Debug)]
pub struct Hops {
    memory: Arc<SharedRegion>,
    layout: HopsLayout,
    grace: GracePeriod,
    /// Records and groups that are free.
    free: Vec<u32>,
    free_groups: Vec<u32>,
    /// What indices led to, which is free when programs have moved on.
    retired: Vec<u32>,
    /// What indices lead to that are not in doubt: a record, or a group with the bit [`IS_GROUP`].
    current: Vec<u32>,
}

/// The record that an index leads to which is in doubt: programs leave its packets to the kernel. It names an interface that
/// there never is.
pub(crate) const DOUBTED: u32 = 1;

/// Set where an index leads to a group.
const IS_GROUP: u32 = 1 << 31;
/// Groups that there is room for, those in use and those that were replaced.
pub(crate) const GROUPS: u32 = 2_048;
/// Members of a group at most, a word each: the index in the upper half, and in the lower the first hash, of 31 bits, behind
/// those that lead to it. Words behind the last are 0.
pub(crate) const MEMBERS: usize = 16;

/// Marks of the hops that lookups found.
#[derive(Clone, Debug)]
pub struct Marks {
    memory: Arc<SharedRegion>,
    /// The first one's word.
    first: usize,
}

impl Marks {
    /// Whether hops with this mark were found since the last call.
    pub fn take(&self, mark: u16) -> bool {
        let word = self.memory.words().get(self.first + usize::from(mark));
        word.is_some_and(|word| word.swap(0, Ordering::Relaxed) != 0)
    }
}

/// What a lookup finds, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// The words of the lookup.
    pub words: [u64; 3],
    /// Whether the second word, and of IPv6 the third, are the address that was looked up instead.
    pub on_link: bool,
    /// The mark that is set when it is found.
    pub mark: u16,
}

/// Where the parts are in the memory, for so many indices, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopsLayout {
    len: u32,
}

/// Words of a record: those that are found, and one that says how ([`flag`]).
pub(crate) const RECORD: u32 = 4;
/// Marks there are: one for each value that a mark can have.
pub(crate) const MARKS: u32 = 1 << 16;

/// The last word of a record.
pub(crate) mod flag {
    /// The second word is the key.
    pub const ON_LINK: i32 = 1;
    /// Bits to shift the mark down by.
    pub const MARK: i32 = 16;
}

impl HopsLayout {
    /// Records: as many again as indices, for what was replaced.
    pub fn records(self) -> u32 {
        2 * self.len
    }

    pub fn indices(self) -> u32 {
        self.len
    }

    /// Offset in bytes of the words of indices, of records, of marks, and of groups.
    pub fn offsets(self) -> [u32; 4] {
        let records = 8 * self.len;
        let marks = records + 8 * RECORD * self.records();
        [0, records, marks, marks + 8 * MARKS]
    }

    fn bytes(self) -> usize {
        self.offsets()[3] as usize + 8 * MEMBERS * GROUPS as usize
    }
}

impl Hops {
    /// Room for `len` indices, as many as the next power of two; none leads anywhere yet.
    ///
    /// # Errors
    /// As [`SharedRegion::new`].
    pub fn new(len: u32) -> Result<Hops> {
        let layout = HopsLayout { len: len.next_power_of_two() };
        let (memory, grace) = (Arc::new(SharedRegion::new(layout.bytes())?), GracePeriod::new()?);
        // Record 0 is none.
        let free = (DOUBTED + 1..layout.records()).rev().collect();
        let free_groups = (0..GROUPS).rev().collect();
        let current = vec![0; layout.len as usize];
        let hops = Hops { memory, layout, grace, free, free_groups, retired: Vec::new(), current };
        hops.fill(DOUBTED, [u64::from(u16::MAX), 0, 0, 0]);
        Ok(hops)
    }

    /// What an index leads to from now on; programs find nothing if it is none, or if there is no record to be had.
    ///
    /// Waits for programs where all records that are left may be looked at.
    pub fn set(&mut self, index: u32, hop: Option<Hop>) {
        if index >= self.layout.len {
            return;
        }
        let record = hop.and_then(|hop| self.write(&hop)).unwrap_or(0);
        self.lead(index, record);
    }

    /// An index leads to a group from now on: to the indices of its members, each with the first hash, of 31 bits, behind
    /// those of the flows that take it. Programs find nothing if there are more members than 16, or too many groups.
    ///
    /// Waits for programs as [`Hops::set`] does.
    pub fn set_group(&mut self, index: u32, members: &[(u32, u32)]) {
        if index >= self.layout.len {
            return;
        }
        let group = self.write_group(members).map_or(0, |group| group | IS_GROUP);
        self.lead(index, group);
    }

    /// An index leads to a record or a group.
    fn lead(&mut self, index: u32, to: u32) {
        let before = std::mem::replace(&mut self.current[index as usize], to);
        // Release: who finds the record finds what was written there. Only a program changes the word besides, to doubt.
        let word = &self.words(0)[index as usize];
        let _ = word.compare_exchange(before.into(), to.into(), Ordering::AcqRel, Ordering::Relaxed);
        self.retired.extend((before != 0).then_some(before));
    }

    /// An index is in doubt from now on.
    pub fn doubt(&mut self, index: u32) {
        if index < self.layout.len {
            self.words(0)[index as usize].store(DOUBTED.into(), Ordering::Relaxed);
        }
    }

    /// The indices that are in doubt.
    pub fn doubted(&self) -> Vec<u32> {
        let words = (0..).zip(&self.words(0)[..self.layout.len as usize]);
        words
            .filter(|(_, word)| word.load(Ordering::Relaxed) == DOUBTED.into())
            .map(|(index, _)| index)
            .collect()
    }

    /// An index is in doubt no more: it leads to what was set last.
    pub fn trust(&mut self, index: u32) {
        if let Some(&record) = self.current.get(index as usize) {
            self.words(0)[index as usize].store(record.into(), Ordering::Release);
        }
    }

    /// Which hops are found.
    pub fn marks(&self) -> Marks {
        Marks { memory: self.memory.clone(), first: self.layout.offsets()[2] as usize / 8 }
    }

    /// Waits until no program runs that may have found what is replaced by now.
    ///
    /// # Errors
    /// As [`GracePeriod::wait`].
    pub fn settle(&mut self) -> Result<()> {
        self.grace.wait()?;
        for was in self.retired.drain(..) {
            match was & IS_GROUP {
                0 => self.free.push(was),
                _ => self.free_groups.push(was & !IS_GROUP),
            }
        }
        Ok(())
    }

    /// The map, for programs.
    pub(crate) fn map(&self) -> &Map {
        self.memory.map()
    }

    pub(crate) fn layout(&self) -> HopsLayout {
        self.layout
    }

    /// The words from one of the layout's offsets on.
    fn words(&self, part: usize) -> &[AtomicU64] {
        &self.memory.words()[self.layout.offsets()[part] as usize / 8..]
    }

    /// Writes a record that nothing leads to; gives its number.
    fn write(&mut self, hop: &Hop) -> Option<u32> {
        if self.free.is_empty() {
            // There are more records than indices, so some are retired.
            self.settle().ok()?;
        }
        let record = self.free.pop()?;
        let flags = u64::from(hop.on_link) | u64::from(hop.mark) << flag::MARK;
        let [a, b, c] = hop.words;
        self.fill(record, [a, b, c, flags]);
        Some(record)
    }

    /// Writes a group that nothing leads to; gives its number.
    fn write_group(&mut self, members: &[(u32, u32)]) -> Option<u32> {
        if members.len() > MEMBERS {
            return None;
        }
        if self.free_groups.is_empty() {
            self.settle().ok()?;
        }
        let group = self.free_groups.pop()?;
        let words = members.iter().map(|&(end, index)| u64::from(end) | u64::from(index) << 32);
        let place = self.words(3).iter().skip(MEMBERS * group as usize);
        let words = words.chain(std::iter::repeat(0)).take(MEMBERS);
        place.zip(words).for_each(|(word, n)| word.store(n, Ordering::Relaxed));
        Some(group)
    }

    fn fill(&self, record: u32, words: [u64; RECORD as usize]) {
        let place = self.words(1).iter().skip((RECORD * record) as usize);
        place.zip(words).for_each(|(word, n)| word.store(n, Ordering::Relaxed));
    }
}
