//! Tables in the driver: how a lookup is written.
//!
//! The first two words of a key are in R0 and R1, further ones at their places in the slot of the key. Each word that is found
//! becomes a register of the program. The machine's registers R0 to R5 are free here: no register of the program is kept in them
//! across a lookup.

mod lines6;
mod members;
mod next_hops;
mod rank24;
mod spread;

pub use members::Members;
pub(crate) use next_hops::{CANDIDATE, GROUP, INDEX, LOW_HALF, Of, RECORD};
pub use next_hops::{NextHops, Routes};
pub use rank24::adjacency as rank24;

use crate::check::Version;
use crate::frame::Frame;
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, MappedArray, Reg, Result, Size};
use causeway_engine::ir::KEY_WORDS;
use causeway_fib::{Lines6Layout, Place, Rank24Layout, Region};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

/// Memory that a table of `fib` and programs share: the value of an array map.
#[derive(Debug)]
pub struct SharedRegion(MappedArray);

impl SharedRegion {
    /// So many bytes of zeros, which the kernel backs at once.
    ///
    /// # Errors
    /// As [`MappedArray::new`].
    pub fn new(bytes: usize) -> Result<SharedRegion> {
        MappedArray::new("table", bytes, 1).map(SharedRegion)
    }

    /// The map, for programs.
    #[must_use]
    pub fn map(&self) -> &Map {
        self.0.map()
    }
}

impl Region for SharedRegion {
    fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

/// A table as the driver has it.
#[derive(Clone, Copy, Debug)]
pub enum Table<'m> {
    /// A hash table: keys are the two words of a lookup, values the three words that it finds, each 64 bits in the order of
    /// the machine.
    Exact(&'m Map),
    /// Next hops by address.
    Routes(Routes<'m>),
    /// Next hops of groups, by group and flow.
    Members(Members<'m>),
    /// Words by number.
    Words(Words<'m>),
    /// Words of routes, by address.
    RouteWords(Trie<'m>, Words<'m>),
}

/// Words that lookups find, one each.
#[derive(Clone, Copy, Debug)]
pub struct Words<'m> {
    /// They.
    pub memory: &'m SharedRegion,
    /// How many, a power of two; others count modulo this.
    pub len: u32,
}

/// Longest-prefix match: the very memory of a table of `fib`, which no helper is called for.
#[derive(Clone, Copy, Debug)]
pub enum Trie<'m> {
    /// Of IPv4: a [`causeway_fib::Rank24`]. The key's first word is the address.
    V4 {
        /// The table's region.
        memory: &'m SharedRegion,
        /// Where its parts are.
        layout: Rank24Layout,
    },
    /// Of IPv6: a [`causeway_fib::Lines6`]. The key's words are the upper and the lower half of the address. What lies very
    /// deep is not found.
    V6 {
        /// The table's region.
        memory: &'m SharedRegion,
        /// Where its parts are.
        layout: Lines6Layout,
    },
}

impl Trie<'_> {
    /// R2 becomes the adjacency of the key in R0 and R1, of which R0 is kept. Goes on at `missing` if it cannot be found.
    fn adjacency(&self, asm: &mut Asm, frame: &Frame, missing: Label) {
        match self {
            Trie::V4 { memory, layout } => rank24::adjacency(asm, memory, layout),
            Trie::V6 { memory, layout } => lines6::adjacency(asm, frame, (memory, layout), missing),
        }
    }
}

/// `to` becomes an element of a part of a table: the one of this size with the index in a register, which is masked and made
/// the offset; `base` becomes its address.
fn element(
    asm: &mut Asm,
    memory: &SharedRegion,
    part: Place,
    (size, index): (Size, Reg),
    base: Reg,
    to: Reg,
) {
    let log = match size {
        Size::B => 0,
        Size::H => 1,
        Size::W => 2,
        Size::D => 3,
    };
    asm.alu(Alu::And, index, part.mask as i32);
    asm.alu(Alu::Lsh, index, log);
    asm.map_value(base, memory.map().as_fd(), part.offset as i32);
    asm.alu(Alu::Add, base, index);
    asm.load(size, to, base, 0);
}

/// Bytes of the slot of a key and what is found of it.
pub(crate) const KEY: i16 = 8 * KEY_WORDS as i16;

impl Trie<'_> {
    fn key_words(&self) -> usize {
        match self {
            Trie::V4 { .. } => 1,
            Trie::V6 { .. } => 2,
        }
    }
}

impl Table<'_> {
    /// Words that its keys have.
    pub(crate) fn key_words(&self) -> usize {
        match self {
            Table::Words(_) => 1,
            Table::Exact(_) => 2,
            Table::Routes(routes) => routes.trie.key_words(),
            Table::RouteWords(trie, _) => trie.key_words(),
            Table::Members(members) => match members.version {
                Version::V4 => 2,
                Version::V6 => KEY_WORDS,
            },
        }
    }

    /// Looks up the key in R0, R1, and the slot of keys. Goes on at `missing` if nothing is found, and at `doubted` if the packet is the
    /// kernel's ([`NextHops::check`]), which is none for one that was changed; else its words are in R0, R1 and R2.
    pub(crate) fn write(&self, asm: &mut Asm, frame: &Frame, missing: Label, doubted: Option<Label>) {
        let key = frame.key;
        match self {
            Table::Exact(map) => {
                asm.store_slot(Size::D, key, 0, Reg::R0);
                asm.store_slot(Size::D, key, 8, Reg::R1);
                asm.map(Reg::R1, map.as_fd());
                asm.slot_address(Reg::R2, key);
                asm.call(Helper::MapLookup);
                asm.jump_if(Cond::Eq, Reg::R0, 0, missing);
                asm.load(Size::D, Reg::R2, Reg::R0, 16);
                asm.load(Size::D, Reg::R1, Reg::R0, 8);
                asm.load(Size::D, Reg::R0, Reg::R0, 0);
            }
            Table::Routes(routes) => routes.write(asm, frame, missing, doubted),
            Table::Members(members) => members.write(asm, frame, missing, doubted),
            Table::Words(words) => words.write(asm, Reg::R0),
            Table::RouteWords(trie, words) => {
                trie.adjacency(asm, frame, missing);
                words.write(asm, Reg::R2);
            }
        }
    }
}

impl Words<'_> {
    /// R0 becomes the word of the number in `index`.
    fn write(&self, asm: &mut Asm, index: Reg) {
        part(asm, index, self.len);
        asm.map_value(Reg::R3, self.memory.map().as_fd(), 0);
        asm.alu(Alu::Add, Reg::R3, index);
        asm.load(Size::D, Reg::R0, Reg::R3, 0);
        asm.mov(Reg::R1, 0);
        asm.mov(Reg::R2, 0);
    }
}

/// An index becomes the offset of one of `len` words.
fn part(asm: &mut Asm, index: Reg, len: u32) {
    asm.alu(Alu::And, index, len as i32 - 1);
    asm.alu(Alu::Lsh, index, 3);
}

/// `to` becomes the number of ones in it: sums of neighbouring bits, pairs and nibbles, and of bytes by a multiplication
/// (Warren, Hacker's Delight, section 5-1); there is no instruction for it.
fn ones(asm: &mut Asm, to: Reg, [a, mask]: [Reg; 2]) {
    asm.mov64(mask, 0x5555_5555_5555_5555);
    asm.mov(a, to);
    asm.alu(Alu::Rsh, a, 1);
    asm.alu(Alu::And, a, mask);
    asm.alu(Alu::Sub, to, a);
    asm.mov64(mask, 0x3333_3333_3333_3333);
    asm.mov(a, to);
    asm.alu(Alu::Rsh, a, 2);
    asm.alu(Alu::And, a, mask);
    asm.alu(Alu::And, to, mask);
    asm.alu(Alu::Add, to, a);
    asm.mov64(mask, 0x0f0f_0f0f_0f0f_0f0f);
    asm.mov(a, to);
    asm.alu(Alu::Rsh, a, 4);
    asm.alu(Alu::Add, to, a);
    asm.alu(Alu::And, to, mask);
    asm.mov64(mask, 0x0101_0101_0101_0101);
    asm.alu(Alu::Mul, to, mask);
    asm.alu(Alu::Rsh, to, 56);
}

/// The same of the lower half of `to`, whose masks are parts of instructions.
fn ones32(asm: &mut Asm, to: Reg, a: Reg) {
    asm.mov32(a, to);
    asm.alu32(Alu::Rsh, a, 1);
    asm.alu32(Alu::And, a, 0x5555_5555);
    asm.alu32(Alu::Sub, to, a);
    asm.mov32(a, to);
    asm.alu32(Alu::Rsh, a, 2);
    asm.alu32(Alu::And, a, 0x3333_3333);
    asm.alu32(Alu::And, to, 0x3333_3333);
    asm.alu32(Alu::Add, to, a);
    asm.mov32(a, to);
    asm.alu32(Alu::Rsh, a, 4);
    asm.alu32(Alu::Add, to, a);
    asm.alu32(Alu::And, to, 0x0f0f_0f0f);
    asm.alu32(Alu::Mul, to, 0x0101_0101);
    asm.alu32(Alu::Rsh, to, 24);
}
