//! Where the registers of a program are kept: in registers of the machine or on its stack.
//!
//! Blocks only go forwards, so that what a register holds is in use from the first place that writes it to the last one that
//! reads it, in the order of the text, whichever way a packet takes (linear scan; Poletto and Sarkar, 1999). On ways that never
//! meet it holds different things, each with a place of its own. What may be read before it was written is zero from the start.

use causeway_bpf::Reg as Machine;
use causeway_engine::ir::{Code, End, KEY_WORDS, Op, REGISTERS, Reg, Test, Value};
use std::ops::RangeInclusive;

/// Registers of the machine that programs are given, those first that helpers keep.
const POOL: [Machine; 5] = [Machine::R8, Machine::R9, Machine::R3, Machine::R4, Machine::R5];
/// So many of them are kept by helpers.
const KEPT: usize = 2;

/// Where a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a register of the machine.
    Register(Machine),
    /// In this spill slot of the stack.
    Stack(usize),
}

/// Where the registers of a program are.
#[derive(Debug)]
pub(crate) struct Homes {
    blocks: Vec<BlockHomes>,
    /// Those that must be zero at the start.
    pub zeroed: Vec<Home>,
    /// Spill slots in use.
    pub slots: usize,
}

/// Where they are in one block.
#[derive(Clone, Debug)]
pub(crate) struct BlockHomes([Option<Home>; REGISTERS]);

impl BlockHomes {
    /// Where a register is; one that nothing uses is nowhere.
    pub fn of_register(&self, reg: Reg) -> Option<Home> {
        self.0.get(reg.number()).copied().flatten()
    }
}

impl Homes {
    /// For the registers of `blocks`. Lookups, and putting bytes in front, destroy the machine's registers that helpers do not keep.
    pub fn of(blocks: &[Code]) -> Homes {
        let uses = Uses::of(blocks);
        let mut lives = uses.lives();
        lives.sort_by_key(|life| *life.range.start());
        let none = BlockHomes([None; REGISTERS]);
        let mut homes = Homes { blocks: vec![none; blocks.len()], zeroed: Vec::new(), slots: 0 };
        // Until when each place is taken.
        let (mut machine, mut stack) = ([None; POOL.len()], Vec::<usize>::new());
        for life in lives {
            let (start, end) = (*life.range.start(), *life.range.end());
            let crosses = uses.calls.iter().any(|&at| life.range.contains(&at) && end > at);
            let usable = if crosses { KEPT } else { POOL.len() };
            let is_free = |until: Option<usize>| until.is_none_or(|until| until < start);
            // Those that helpers keep are left to who needs them.
            let free = match crosses {
                true => (0..usable).find(|&i| is_free(machine[i])),
                false => (0..usable).rev().find(|&i| is_free(machine[i])),
            };
            let home = match free {
                Some(i) => {
                    machine[i] = Some(end);
                    Home::Register(POOL[i])
                }
                None => {
                    let slot = stack.iter().position(|&until| until < start);
                    let slot = slot.unwrap_or_else(|| {
                        stack.push(0);
                        stack.len() - 1
                    });
                    stack[slot] = end;
                    Home::Stack(slot)
                }
            };
            life.blocks.iter().for_each(|&block| homes.blocks[block].0[life.register] = Some(home));
            homes.zeroed.extend(life.is_early.then_some(home));
        }
        homes.slots = stack.len();
        homes
    }

    /// Where registers are in a block.
    pub fn of_block(&self, block: usize) -> &BlockHomes {
        &self.blocks[block]
    }
}

/// What one register holds from a first use on to a last one, on ways that belong together: on others it is another's.
struct Life {
    register: usize,
    blocks: Vec<usize>,
    range: RangeInclusive<usize>,
    /// Whether it may be read before it was written.
    is_early: bool,
}

/// Where registers are used, by number of the operation in the text.
struct Uses {
    blocks: Vec<BlockUses>,
    calls: Vec<usize>,
}

/// The same in one block; of registers, a bit each.
struct BlockUses {
    /// First and last use.
    accesses: [Option<(usize, usize)>; REGISTERS],
    /// The block's own extent.
    extent: (usize, usize),
    next: [Option<usize>; 2],
    /// Which are written, and which are in use where the block begins and where it ends.
    written: u64,
    live_in: u64,
    live_out: u64,
}

impl BlockUses {
    fn access(&mut self, reg: Reg, at: usize) {
        let known = &mut self.accesses[reg.number()];
        *known = Some((known.map_or(at, |known| known.0), at));
    }

    fn read(&mut self, reg: Reg, at: usize) {
        self.access(reg, at);
        let bit = 1 << reg.number();
        if self.written & bit == 0 {
            self.live_in |= bit;
        }
    }
}

impl Uses {
    fn of(blocks: &[Code]) -> Uses {
        let mut uses = Uses { blocks: Vec::new(), calls: Vec::new() };
        let mut at = 0;
        for Code { ops, end } in blocks {
            let (reads, next) = of_end(*end);
            let extent = (at, at + ops.len());
            let accesses = [None; REGISTERS];
            let mut block = BlockUses { accesses, extent, next, written: 0, live_in: 0, live_out: 0 };
            for op in ops {
                let (reads, writes) = accesses_of(op);
                reads.into_iter().flatten().for_each(|r| block.read(r, at));
                for r in writes.into_iter().flatten() {
                    block.access(r, at);
                    block.written |= 1 << r.number();
                }
                if matches!(op, Op::LookUp { .. } | Op::Push(_)) {
                    uses.calls.push(at);
                }
                at += 1;
            }
            reads.into_iter().flatten().for_each(|r| block.read(r, at));
            at += 1;
            uses.blocks.push(block);
        }
        // Blocks lead to later ones only.
        for number in (0..blocks.len()).rev() {
            let next = uses.blocks[number].next.into_iter().flatten();
            let live_out = next.fold(0, |live, to| live | uses.blocks[to].live_in);
            let block = &mut uses.blocks[number];
            block.live_out = live_out;
            block.live_in |= live_out & !block.written;
        }
        uses
    }

    /// What the registers hold.
    fn lives(&self) -> Vec<Life> {
        (0..REGISTERS).flat_map(|register| self.lives_of(register)).collect()
    }

    fn lives_of(&self, register: usize) -> Vec<Life> {
        let bit = 1 << register;
        // Which life the register has in a block: the number of its first block.
        let mut first: Vec<usize> = (0..self.blocks.len()).collect();
        for (number, block) in self.blocks.iter().enumerate() {
            for to in block.next.into_iter().flatten().filter(|&to| self.blocks[to].live_in & bit != 0) {
                let (a, b) = (first[number], first[to]);
                first.iter_mut().filter(|of| **of == a.max(b)).for_each(|of| *of = a.min(b));
            }
        }
        let mut lives: Vec<Life> = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let (is_in, is_out) = (block.live_in & bit != 0, block.live_out & bit != 0);
            let accesses = block.accesses[register];
            if !is_in && accesses.is_none() {
                continue;
            }
            let (start, end) = accesses.unwrap_or(block.extent);
            let start = if is_in { block.extent.0 } else { start };
            let end = if is_out { block.extent.1 } else { end };
            let is_early = is_in && number == 0;
            match lives.iter_mut().find(|life| first[life.blocks[0]] == first[number]) {
                Some(life) => {
                    life.blocks.push(number);
                    life.range = *life.range.start()..=end.max(*life.range.end());
                }
                None => lives.push(Life { register, blocks: vec![number], range: start..=end, is_early }),
            }
        }
        lives
    }
}

/// Registers that are read, of which a lookup has the most, and that are written.
type Reads = [Option<Reg>; KEY_WORDS];
type Writes = [Option<Reg>; 3];

/// The registers among values.
fn registers<const N: usize>(values: [Value; N]) -> Reads {
    let mut reads = [None; KEY_WORDS];
    for (read, value) in reads.iter_mut().zip(values) {
        *read = match value {
            Value::Of(reg) => Some(reg),
            Value::Const(_) => None,
        };
    }
    reads
}

/// What an operation reads and writes.
fn accesses_of(op: &Op) -> (Reads, Writes) {
    let one = |to: Reg| [Some(to), None, None];
    match *op {
        Op::Load { to, .. } | Op::Get { to, .. } => (registers([]), one(to)),
        Op::Compute { to, a, b, .. } => (registers([a, b]), one(to)),
        Op::Sum { to, bytes, .. } => (registers([bytes]), one(to)),
        Op::Member { to, of, .. } => (registers([of]), one(to)),
        Op::LookUp { to, key, .. } => (registers(key), to.map(Some)),
        Op::Store { value, .. } | Op::Put { value, .. } => (registers([value]), [None; 3]),
        Op::Count { by, .. } => (registers([by]), [None; 3]),
        Op::Pull(_) | Op::Push(_) => (registers([]), [None; 3]),
    }
}

/// What the end of a block reads, and the blocks that are next.
fn of_end(end: End) -> (Reads, [Option<usize>; 2]) {
    match end {
        End::Go(to) => (registers([]), [Some(to), None]),
        End::If(test, yes, no) => {
            let reads = match test {
                Test::Equal(a, b) | Test::Above(a, b) => registers([a, b]),
                Test::Has(..) => registers([]),
            };
            (reads, [Some(yes), Some(no)])
        }
        End::LeaveBy(port) => (registers([Value::Of(port)]), [None; 2]),
        End::Leave(_) | End::Drop(_) | End::GiveUp => (registers([]), [None; 2]),
    }
}
