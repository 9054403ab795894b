//! Tables in the driver: how a lookup is written.
//!
//! A key is in R0 (and R1), and each word that is found becomes a register of the program. The machine's registers R0 to
//! R5 are free here: no register of the program is kept in them across a lookup.

use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, MappedArray, Reg, Result, Size, Slot};
use causeway_fib::{Place, Rank24Layout, Region};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

/// Bytes of an entry of [`Routes::hops`].
pub const HOP_BYTES: usize = 32;

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
    /// Routes of IPv4.
    Routes(Routes<'m>),
}

/// Longest-prefix match of IPv4: the very memory of a [`causeway_fib::Rank24`], which no helper is called for.
#[derive(Clone, Copy, Debug)]
pub struct Routes<'m> {
    /// An array of one value, the table's region.
    pub memory: &'m Map,
    /// Where its parts are.
    pub layout: Rank24Layout,
    /// An array of one value: for each adjacency four words ([`hop`]).
    pub hops: &'m Map,
    /// Entries of `hops`, a power of two.
    pub hops_len: u32,
}

/// The words of an adjacency that leads to an output and a gateway, or to the destination itself. An adjacency of zeros is
/// none.
#[must_use]
pub fn hop(output: u16, gateway: Option<u32>) -> [u64; 4] {
    [u64::from(output) + 1, gateway.unwrap_or(0).into(), 0, gateway.is_none().into()]
}

impl Table<'_> {
    /// Looks up the key in R0 and R1. Goes on at `missing` if nothing is found; else its words are in R0, R1 and R2. `key`
    /// has 16 bytes of room.
    pub(crate) fn write(&self, asm: &mut Asm, key: Slot, missing: Label) {
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
            Table::Routes(routes) => routes.write(asm, key, missing),
        }
    }
}

impl Routes<'_> {
    fn write(&self, asm: &mut Asm, key: Slot, missing: Label) {
        // The key is a number of 32 bits.
        asm.mov32(Reg::R0, Reg::R0);
        asm.store_slot(Size::D, key, 0, Reg::R0);
        self.adjacency(asm);
        asm.alu(Alu::And, Reg::R2, self.hops_len as i32 - 1);
        asm.alu(Alu::Lsh, Reg::R2, HOP_BYTES.trailing_zeros() as i32);
        asm.map_value(Reg::R3, self.hops.as_fd(), 0);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::D, Reg::R0, Reg::R3, 0);
        asm.jump_if(Cond::Eq, Reg::R0, 0, missing);
        let gateway = asm.label();
        asm.alu(Alu::Sub, Reg::R0, 1);
        asm.load(Size::D, Reg::R1, Reg::R3, 8);
        asm.load(Size::D, Reg::R2, Reg::R3, 24);
        asm.jump_if(Cond::Eq, Reg::R2, 0, gateway);
        asm.load_slot(Size::D, Reg::R1, key, 0);
        asm.bind(gateway);
        asm.mov(Reg::R2, 0);
    }

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
            asm.map_value(base, self.memory.as_fd(), part.offset as i32);
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
