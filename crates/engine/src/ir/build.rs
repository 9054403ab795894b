//! Writing programs.

use super::{Alu, At, Block, Code, End, Field, Op, Program, REGISTERS, Reg, Table, Test, Value, check, key};
use crate::counters::Counter;
use std::sync::Arc;

/// Writes a [`Program`], block by block.
///
/// Operations go to the current block, which is block 0 at first. Blocks are numbered as they are made
/// ([`Builder::block`]) and written in any order, each once.
#[derive(Default)]
pub struct Builder {
    /// Blocks that are made; those without an end are not written yet.
    blocks: Vec<(Vec<Op>, Option<End>)>,
    current: Block,
    registers: usize,
    most_registers: usize,
    tables: Vec<Box<dyn Table>>,
    counters: Vec<Counter>,
    give_up: Option<Block>,
}

impl Builder {
    /// A program without operations.
    pub fn new() -> Builder {
        Builder { blocks: vec![(Vec::new(), None)], ..Builder::default() }
    }

    /// The program of an element that passes all packets as they are.
    pub fn pass() -> Option<Program> {
        let mut b = Builder::new();
        b.leave(0);
        b.finish()
    }

    /// A new block, to be written later.
    pub fn block(&mut self) -> Block {
        self.blocks.push((Vec::new(), None));
        self.blocks.len() - 1
    }

    /// From here on `block` is written.
    pub fn at(&mut self, block: Block) {
        self.current = block;
    }

    fn op(&mut self, op: Op) {
        if let Some((ops, None)) = self.blocks.get_mut(self.current) {
            ops.push(op);
        }
    }

    fn end(&mut self, end: End) {
        if let Some((_, open)) = self.blocks.get_mut(self.current) {
            open.get_or_insert(end);
        }
    }

    fn register(&mut self) -> Reg {
        let number = self.registers;
        self.registers += 1;
        // More than there are make no program.
        Reg(number.min(u8::MAX as usize) as u8)
    }

    /// Lets the registers go that `write` uses, when it has written what it wants.
    pub fn with_scratch(&mut self, write: impl FnOnce(&mut Builder)) {
        let before = self.registers;
        write(self);
        self.most_registers = self.most_registers.max(self.registers);
        self.registers = before;
    }

    /// Loads `bytes` bytes, 1 to 8.
    pub fn load(&mut self, at: At, bytes: u8) -> Reg {
        let to = self.register();
        self.op(Op::Load { to, at, bytes });
        to
    }

    /// Reads a field.
    pub fn get(&mut self, field: Field) -> Reg {
        let to = self.register();
        self.op(Op::Get { to, field });
        to
    }

    /// Computes of two numbers.
    pub fn compute(&mut self, how: Alu, a: impl Into<Value>, b: impl Into<Value>) -> Reg {
        let (to, a, b) = (self.register(), a.into(), b.into());
        self.op(Op::Compute { to, how, a, b });
        to
    }

    /// The checksum's sum of `bytes` bytes.
    pub fn sum(&mut self, at: At, bytes: impl Into<Value>) -> Reg {
        let (to, bytes) = (self.register(), bytes.into());
        self.op(Op::Sum { to, at, bytes });
        to
    }

    /// 1 if `of` is one of `set`, else 0.
    pub fn member(&mut self, of: impl Into<Value>, set: impl Into<Arc<[u64]>>) -> Reg {
        let (to, of, set) = (self.register(), of.into(), set.into());
        self.op(Op::Member { to, of, set });
        to
    }

    /// Looks the key of these words up in `table`.
    pub fn look_up<const N: usize>(&mut self, table: Box<dyn Table>, words: [Value; N]) -> [Reg; 3] {
        let to = [(); 3].map(|()| self.register());
        self.op(Op::LookUp { to, table: self.tables.len() as u8, key: key(words) });
        self.tables.push(table);
        to
    }

    /// Writes the low `bytes` bytes of a number.
    pub fn store(&mut self, at: At, bytes: u8, value: impl Into<Value>) {
        self.op(Op::Store { at, bytes, value: value.into() });
    }

    /// Sets a field.
    pub fn put(&mut self, field: Field, value: impl Into<Value>) {
        self.op(Op::Put { field, value: value.into() });
    }

    /// Takes bytes off the front.
    pub fn pull(&mut self, bytes: u32) {
        self.op(Op::Pull(bytes));
    }

    /// Puts bytes back on the front.
    pub fn push(&mut self, bytes: u32) {
        self.op(Op::Push(bytes));
    }

    /// Adds to a counter.
    pub fn count(&mut self, counter: &Counter, by: impl Into<Value>) {
        self.op(Op::Count { counter: self.counters.len() as u8, by: by.into() });
        self.counters.push(counter.clone());
    }

    /// Ends the block: one of two blocks is next.
    pub fn branch(&mut self, test: Test, yes: Block, no: Block) {
        self.end(End::If(test, yes, no));
    }

    /// Ends the block and goes on in a new one if `test` holds; packets for which it does not are given up.
    pub fn require(&mut self, test: Test) {
        let (next, otherwise) = (self.block(), self.given_up());
        self.end(End::If(test, next, otherwise));
        self.at(next);
    }

    /// Ends the block and goes on in a new one if `test` does not hold; packets for which it does are given up.
    pub fn forbid(&mut self, test: Test) {
        let (next, otherwise) = (self.block(), self.given_up());
        self.end(End::If(test, otherwise, next));
        self.at(next);
    }

    /// A block that gives up, the program's last one.
    pub fn given_up(&mut self) -> Block {
        *self.give_up.get_or_insert(LAST)
    }

    /// Ends the block: the packet leaves by output `port`.
    pub fn leave(&mut self, port: u16) {
        self.end(End::Leave(port));
    }

    /// Ends the block: the packet leaves by the output whose number is `port`.
    pub fn leave_by(&mut self, port: Reg) {
        self.end(End::LeaveBy(port));
    }

    /// Ends the block: the packet is dropped for reason number `reason` of the class.
    pub fn drop(&mut self, reason: u16) {
        self.end(End::Drop(reason));
    }

    /// Ends the block: the next is `block`.
    pub fn go(&mut self, block: Block) {
        self.end(End::Go(block));
    }

    /// The program; `None` if it is none: it has too many registers, tables, counters, or blocks that are not written, goes
    /// back, or may give up after it changed something.
    pub fn finish(mut self) -> Option<Program> {
        if self.registers.max(self.most_registers) > REGISTERS
            || self.tables.len() > 255
            || self.counters.len() > 255
        {
            return None;
        }
        let last = self.blocks.len();
        if self.give_up.is_some() {
            self.blocks.push((Vec::new(), Some(End::GiveUp)));
        }
        let real = |block: Block| if block == LAST { last } else { block };
        let code = |(ops, end): (Vec<Op>, Option<End>)| {
            let end = match end? {
                End::Go(to) => End::Go(real(to)),
                End::If(test, yes, no) => End::If(test, real(yes), real(no)),
                end => end,
            };
            Some(Code { ops, end })
        };
        let blocks = self.blocks.into_iter().map(code).collect::<Option<Vec<_>>>()?;
        let program = Program { blocks, tables: self.tables, counters: self.counters, list: None };
        check::is_sound(&program).then_some(program)
    }
}

/// Stands for the block that gives up until it is known which one that is.
const LAST: Block = usize::MAX;
