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
#[derive(Debug)]
pub struct Hops {
    memory: Arc<SharedRegion>,
    layout: HopsLayout,
    grace: GracePeriod,
    /// Records that are free, and those that are when programs have moved on.
    free: Vec<u32>,
    retired: Vec<u32>,
}

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
    /// Whether the second word is the address that was looked up instead.
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
const RECORD: u32 = 4;
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

    /// Offset in bytes of the words of indices, of records, and of marks.
    pub fn offsets(self) -> [u32; 3] {
        let records = 8 * self.len;
        [0, records, records + 8 * RECORD * self.records()]
    }

    fn bytes(self) -> usize {
        (self.offsets()[2] + 8 * MARKS) as usize
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
        Ok(Hops { memory, layout, grace, free: (1..layout.records()).rev().collect(), retired: Vec::new() })
    }

    /// What an index leads to from now on; programs find nothing if it is none, or if there is no record to be had.
    ///
    /// Waits for programs where all records that are left may be looked at.
    pub fn set(&mut self, index: u32, hop: Option<Hop>) {
        if index >= self.layout.len {
            return;
        }
        let record = hop.and_then(|hop| self.write(&hop)).unwrap_or(0);
        // Release: who finds the record finds what was written there.
        let before = self.words(0)[index as usize].swap(record.into(), Ordering::AcqRel) as u32;
        self.retired.extend((before != 0).then_some(before));
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
        self.free.append(&mut self.retired);
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
        let words = self.words(1).iter().skip((RECORD * record) as usize);
        let [a, b, c] = hop.words;
        words.zip([a, b, c, flags]).for_each(|(word, n)| word.store(n, Ordering::Relaxed));
        Some(record)
    }
}
