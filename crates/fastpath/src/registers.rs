//! Where the registers of a program are kept: in registers of the machine or on its stack.
//!
//! Blocks only go forwards, so that a register is in use from the first place that writes it to the last one that reads it,
//! in the order of the text, whichever way a packet takes (linear scan; Poletto and Sarkar, 1999). One that may be read
//! before it was written is zero from the start.

use causeway_bpf::Reg as Machine;
use causeway_engine::ir::{Code, End, Op, REGISTERS, Reg, Test, Value};
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

/// Where all registers of a program are.
#[derive(Debug)]
pub(crate) struct Homes {
    homes: [Option<Home>; REGISTERS],
    /// Those that must be zero at the start.
    pub zeroed: Vec<Home>,
    /// Spill slots in use.
    pub slots: usize,
}

impl Homes {
    /// For the registers of `blocks`. Lookups destroy the machine's registers that helpers do not keep.
    pub fn of(blocks: &[Code]) -> Homes {
        let uses = Uses::of(blocks);
        let mut order: Vec<usize> = (0..REGISTERS).filter(|&r| uses.ranges[r].is_some()).collect();
        order.sort_by_key(|&r| uses.ranges[r].as_ref().map(|range| *range.start()));
        let mut homes = Homes { homes: [None; REGISTERS], zeroed: Vec::new(), slots: 0 };
        // Until when each place is taken.
        let (mut machine, mut stack) = ([None; POOL.len()], Vec::<usize>::new());
        for r in order {
            let Some(range) = uses.ranges[r].clone() else { continue };
            let crosses = uses.lookups.iter().any(|at| range.contains(at) && range.end() > at);
            let usable = if crosses { KEPT } else { POOL.len() };
            let is_free = |until: Option<usize>| until.is_none_or(|until| until < *range.start());
            // Those that helpers keep are left to who needs them.
            let free = match crosses {
                true => (0..usable).find(|&i| is_free(machine[i])),
                false => (0..usable).rev().find(|&i| is_free(machine[i])),
            };
            let home = match free {
                Some(i) => {
                    machine[i] = Some(*range.end());
                    Home::Register(POOL[i])
                }
                None => {
                    let slot = stack.iter().position(|&until| until < *range.start());
                    let slot = slot.unwrap_or_else(|| {
                        stack.push(0);
                        stack.len() - 1
                    });
                    stack[slot] = *range.end();
                    Home::Stack(slot)
                }
            };
            homes.homes[r] = Some(home);
            homes.zeroed.extend(uses.early[r].then_some(home));
        }
        homes.slots = stack.len();
        homes
    }

    /// Where a register is; one that nothing uses is nowhere.
    pub fn of_register(&self, reg: Reg) -> Option<Home> {
        self.homes.get(reg.number()).copied().flatten()
    }
}

/// Where registers are used, by number of the operation in the text.
struct Uses {
    ranges: [Option<RangeInclusive<usize>>; REGISTERS],
    /// Whether it may be read before it was written.
    early: [bool; REGISTERS],
    lookups: Vec<usize>,
}

impl Uses {
    fn of(blocks: &[Code]) -> Uses {
        let mut uses =
            Uses { ranges: [const { None }; REGISTERS], early: [false; REGISTERS], lookups: Vec::new() };
        // Registers that are written on all ways to a block, a bit each.
        let mut written: Vec<Option<u64>> = vec![None; blocks.len()];
        if let Some(first) = written.first_mut() {
            *first = Some(0);
        }
        let mut at = 0;
        for (number, Code { ops, end }) in blocks.iter().enumerate() {
            let mut here = written[number];
            for op in ops {
                let (reads, writes) = accesses(op);
                reads.into_iter().flatten().for_each(|r| uses.note(r, at, here));
                for r in writes.into_iter().flatten() {
                    uses.extend(r, at);
                    here = here.map(|bits| bits | 1 << r.number());
                }
                if matches!(op, Op::LookUp { .. }) {
                    uses.lookups.push(at);
                }
                at += 1;
            }
            let (reads, next) = of_end(*end);
            reads.into_iter().flatten().for_each(|r| uses.note(r, at, here));
            at += 1;
            let Some(here) = here else { continue };
            for to in next.into_iter().flatten() {
                let there = &mut written[to];
                *there = Some(there.map_or(here, |bits| bits & here));
            }
        }
        uses
    }

    /// A read at `at`, where `written` registers are written.
    fn note(&mut self, reg: Reg, at: usize, written: Option<u64>) {
        self.extend(reg, at);
        if written.is_some_and(|bits| bits & 1 << reg.number() == 0) {
            self.early[reg.number()] = true;
            self.extend(reg, 0);
        }
    }

    fn extend(&mut self, reg: Reg, at: usize) {
        let range = &mut self.ranges[reg.number()];
        *range = Some(range.as_ref().map_or(at..=at, |r| at.min(*r.start())..=at.max(*r.end())));
    }
}

type Registers<const N: usize> = [Option<Reg>; N];

fn register(value: Value) -> Option<Reg> {
    match value {
        Value::Of(reg) => Some(reg),
        Value::Const(_) => None,
    }
}

/// What an operation reads and writes.
fn accesses(op: &Op) -> (Registers<2>, Registers<3>) {
    let one = |to: Reg| [Some(to), None, None];
    match *op {
        Op::Load { to, .. } | Op::Get { to, .. } => ([None; 2], one(to)),
        Op::Compute { to, a, b, .. } => ([register(a), register(b)], one(to)),
        Op::Sum { to, bytes, .. } => ([register(bytes), None], one(to)),
        Op::Member { to, of, .. } => ([register(of), None], one(to)),
        Op::LookUp { to, key, .. } => (key.map(register), to.map(Some)),
        Op::Store { value, .. } | Op::Put { value, .. } => ([register(value), None], [None; 3]),
        Op::Count { by, .. } => ([register(by), None], [None; 3]),
        Op::Pull(_) | Op::Push(_) => ([None; 2], [None; 3]),
    }
}

/// What the end of a block reads, and the blocks that are next.
fn of_end(end: End) -> (Registers<2>, [Option<usize>; 2]) {
    match end {
        End::Go(to) => ([None; 2], [Some(to), None]),
        End::If(test, yes, no) => {
            let reads = match test {
                Test::Equal(a, b) | Test::Above(a, b) => [register(a), register(b)],
                Test::Has(..) => [None; 2],
            };
            (reads, [Some(yes), Some(no)])
        }
        End::LeaveBy(port) => ([Some(port), None], [None; 2]),
        End::Leave(_) | End::Drop(_) | End::GiveUp => ([None; 2], [None; 2]),
    }
}
