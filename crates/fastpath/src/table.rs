//! Tables in the driver: how a lookup is written.
//!
//! A key is in R0 (and R1), and each word that is found becomes a register of the program. The machine's registers R0 to
//! R5 are free here: no register of the program is kept in them across a lookup.

use crate::check::Check;
use crate::frame::Frame;
use crate::hops::{DOUBTED, Hops, MARKS, flag};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, MappedArray, Reg, Result, Size, action};
use causeway_fib::{Place, Rank24Layout, Region};
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
    /// Next hops of IPv4.
    Routes(Routes<'m>),
    /// Words by number.
    Words(Words<'m>),
    /// Words of IPv4 routes.
    RouteWords(Trie<'m>, Words<'m>),
}

/// Longest-prefix match of IPv4: the very memory of a [`causeway_fib::Rank24`], which no helper is called for.
#[derive(Clone, Copy, Debug)]
pub struct Trie<'m> {
    /// The table's region.
    pub memory: &'m SharedRegion,
    /// Where its parts are.
    pub layout: Rank24Layout,
}

/// The next hops of a longest-prefix match.
#[derive(Clone, Copy, Debug)]
pub struct Routes<'m> {
    /// What finds an index.
    pub trie: Trie<'m>,
    /// What it leads to.
    pub hops: &'m Hops,
    /// Interfaces by the low 16 bits of what is found. A hop is found only if the kernel agrees to redirect the packet to
    /// its interface, which is settled then: so nothing has been written yet if it does not, and a port that the packet
    /// leaves by has nothing to do but to say [`action::XDP_REDIRECT`].
    pub interfaces: Option<&'m Map>,
    /// Asks the kernel about some packets that hops with interfaces are found for, if they are as they came. A packet of
    /// which it says otherwise is the kernel's ([`crate::Exit::Doubted`]), and so are all that find its hop from then on.
    pub check: Option<Check<'m>>,
}

/// What is in the slot of a key beside it: offsets of the hop's record among the records, and of its index among the indices.
pub(crate) const RECORD: i16 = 16;
pub(crate) const INDEX: i16 = 24;
/// Bytes of the slot.
pub(crate) const KEY: i16 = 32;

/// Words that lookups find, one each.
#[derive(Clone, Copy, Debug)]
pub struct Words<'m> {
    /// They.
    pub memory: &'m SharedRegion,
    /// How many, a power of two; others count modulo this.
    pub len: u32,
}

impl Table<'_> {
    /// Looks up the key in R0 and R1. Goes on at `missing` if nothing is found, and at `doubted` if the packet is the
    /// kernel's ([`Routes::check`]), which is none for one that was changed; else its words are in R0, R1 and R2.
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
            Table::Words(words) => words.write(asm, Reg::R0),
            Table::RouteWords(trie, words) => {
                trie.adjacency(asm);
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

impl Routes<'_> {
    fn write(&self, asm: &mut Asm, frame: &Frame, missing: Label, doubted: Option<Label>) {
        let (map, layout, key) = (self.hops.map().as_fd(), self.hops.layout(), frame.key);
        let [indices, records, marks] = layout.offsets().map(|offset| offset as i32);
        // The key is a number of 32 bits.
        asm.mov32(Reg::R0, Reg::R0);
        asm.store_slot(Size::D, key, 0, Reg::R0);
        self.trie.adjacency(asm);
        part(asm, Reg::R2, layout.indices());
        asm.store_slot(Size::D, key, INDEX, Reg::R2);
        asm.map_value(Reg::R3, map, indices);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::D, Reg::R2, Reg::R3, 0);
        asm.jump_if(Cond::Eq, Reg::R2, 0, missing);
        part(asm, Reg::R2, layout.records());
        asm.alu(Alu::Lsh, Reg::R2, 2);
        if let Some(interfaces) = self.interfaces {
            asm.store_slot(Size::D, key, RECORD, Reg::R2);
            self.redirect(asm, frame, interfaces, missing, doubted);
            asm.load_slot(Size::D, Reg::R2, key, RECORD);
        }
        asm.map_value(Reg::R3, map, records);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::D, Reg::R5, Reg::R3, 24);
        asm.mov(Reg::R2, Reg::R5);
        asm.alu(Alu::Rsh, Reg::R2, flag::MARK);
        part(asm, Reg::R2, MARKS);
        asm.map_value(Reg::R4, map, marks);
        asm.alu(Alu::Add, Reg::R4, Reg::R2);
        // Read before it is written: a line that all processors only read stays in all their caches.
        let (marked, found) = (asm.label(), asm.label());
        asm.load(Size::D, Reg::R2, Reg::R4, 0);
        asm.jump_if(Cond::Ne, Reg::R2, 0, marked);
        asm.store(Size::D, Reg::R4, 0, 1);
        asm.bind(marked);
        asm.load(Size::D, Reg::R0, Reg::R3, 0);
        asm.load(Size::D, Reg::R1, Reg::R3, 8);
        asm.load(Size::D, Reg::R2, Reg::R3, 16);
        asm.alu(Alu::And, Reg::R5, flag::ON_LINK);
        asm.jump_if(Cond::Eq, Reg::R5, 0, found);
        asm.load_slot(Size::D, Reg::R1, key, 0);
        asm.bind(found);
    }

    /// Has the kernel agree to redirect the packet to the hop in R2, and asks about it if it is its turn.
    fn redirect(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        interfaces: &Map,
        missing: Label,
        doubted: Option<Label>,
    ) {
        let [_, records, _] = self.hops.layout().offsets();
        let agreed = asm.label();
        asm.map_value(Reg::R3, self.hops.map().as_fd(), records as i32);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::H, Reg::R2, Reg::R3, LOW_HALF);
        asm.map(Reg::R1, interfaces.as_fd());
        asm.mov(Reg::R3, 0);
        asm.call(Helper::RedirectMap);
        let Some(doubted) = doubted else {
            return asm.jump_if(Cond::Ne, Reg::R0, action::XDP_REDIRECT, missing);
        };
        asm.jump_if(Cond::Eq, Reg::R0, action::XDP_REDIRECT, agreed);
        asm.load_slot(Size::D, Reg::R2, frame.key, RECORD);
        asm.jump_if(Cond::Eq, Reg::R2, (DOUBTED * 8 * crate::hops::RECORD) as i32, doubted);
        asm.jump(missing);
        asm.bind(agreed);
        if let Some(check) = self.check {
            let (due, same) = (asm.label(), asm.label());
            check.count(asm, frame, due);
            asm.jump(same);
            asm.bind(due);
            check.ask(asm, frame, (self.hops, interfaces), [same, doubted]);
            asm.bind(same);
        }
    }
}

/// Where the low half of a word's low half is.
pub(crate) const LOW_HALF: i16 = if cfg!(target_endian = "little") { 0 } else { 6 };

impl Trie<'_> {
    /// R2 becomes the adjacency of the address in R0, which is kept: the walk of [`causeway_fib::Rank24`], each index
    /// masked.
    pub fn adjacency(&self, asm: &mut Asm) {
        let layout = &self.layout;
        let element = |asm: &mut Asm, part: Place, size: Size, index: Reg, base: Reg, to: Reg| {
            let log = match size {
                Size::B => 0,
                Size::H => 1,
                Size::W => 2,
                Size::D => 3,
            };
            asm.alu(Alu::And, index, part.mask as i32);
            asm.alu(Alu::Lsh, index, log);
            asm.map_value(base, self.memory.map().as_fd(), part.offset as i32);
            asm.alu(Alu::Add, base, index);
            asm.load(size, to, base, 0);
        };
        // R3: the word of the /19; R5: its leaves up to the /24.
        asm.mov(Reg::R2, Reg::R0);
        asm.alu(Alu::Rsh, Reg::R2, 13);
        element(asm, layout.words, Size::D, Reg::R2, Reg::R1, Reg::R3);
        asm.mov(Reg::R2, Reg::R0);
        asm.alu(Alu::Rsh, Reg::R2, 8);
        asm.alu(Alu::And, Reg::R2, 31);
        asm.mov(Reg::R4, 31);
        asm.alu(Alu::Sub, Reg::R4, Reg::R2);
        asm.mov32(Reg::R5, Reg::R3);
        asm.alu32(Alu::Lsh, Reg::R5, Reg::R4);
        ones(asm, Reg::R5, [Reg::R1, Reg::R2]);
        asm.alu(Alu::Rsh, Reg::R3, 32);
        asm.alu32(Alu::Add, Reg::R3, Reg::R5);
        let found = asm.label();
        asm.mov(Reg::R4, Reg::R3);
        element(asm, layout.leaves, Size::H, Reg::R4, Reg::R1, Reg::R2);
        asm.jump_if(Cond::Lt, Reg::R2, 0x8000, found);
        // The leaf goes on in a line, whose number is in two others.
        asm.alu(Alu::And, Reg::R2, 0x7fff);
        asm.alu32(Alu::Add, Reg::R3, Reg::R2);
        asm.mov(Reg::R4, Reg::R3);
        element(asm, layout.leaves, Size::H, Reg::R4, Reg::R1, Reg::R5);
        asm.alu32(Alu::Add, Reg::R3, 1);
        element(asm, layout.leaves, Size::H, Reg::R3, Reg::R1, Reg::R2);
        asm.alu(Alu::Lsh, Reg::R2, 16);
        asm.alu(Alu::Or, Reg::R5, Reg::R2);
        // R3: the line's bits for a quarter of the /24; R4: its head.
        asm.alu32(Alu::Lsh, Reg::R5, 3);
        asm.mov(Reg::R2, Reg::R0);
        asm.alu(Alu::Rsh, Reg::R2, 6);
        asm.alu(Alu::And, Reg::R2, 3);
        asm.mov(Reg::R4, Reg::R2);
        asm.alu32(Alu::Add, Reg::R4, Reg::R5);
        element(asm, layout.nodes, Size::D, Reg::R4, Reg::R1, Reg::R3);
        asm.alu32(Alu::Add, Reg::R5, 4);
        element(asm, layout.nodes, Size::D, Reg::R5, Reg::R1, Reg::R4);
        // R2: the leaves before the quarter; R3: those in it.
        asm.alu(Alu::Lsh, Reg::R2, 3);
        asm.alu(Alu::Add, Reg::R2, 32);
        asm.mov(Reg::R1, Reg::R4);
        asm.alu(Alu::Rsh, Reg::R1, Reg::R2);
        asm.alu(Alu::And, Reg::R1, 255);
        asm.alu32(Alu::Add, Reg::R4, Reg::R1);
        asm.mov(Reg::R2, Reg::R0);
        asm.alu(Alu::And, Reg::R2, 63);
        asm.mov(Reg::R5, 63);
        asm.alu(Alu::Sub, Reg::R5, Reg::R2);
        asm.alu(Alu::Lsh, Reg::R3, Reg::R5);
        ones(asm, Reg::R3, [Reg::R1, Reg::R2]);
        asm.alu32(Alu::Add, Reg::R4, Reg::R3);
        let quarters = Place { mask: 4 * layout.nodes.mask + 3, ..layout.nodes };
        element(asm, quarters, Size::H, Reg::R4, Reg::R1, Reg::R2);
        asm.bind(found);
    }
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
