//! The assembler: methods emit instructions, labels are patched at the end.

use super::insn::{Alu, Cond, Helper, Insn, Operand, Reg, Size, op};
use crate::error::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// A place in the program to jump to: made by [`Asm::label`], put somewhere once by [`Asm::bind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A piece of the program's stack: made by [`Asm::slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    offset: i16,
    size: i16,
}

impl Slot {
    /// Offset from the frame pointer, negative.
    pub fn offset(self) -> i16 {
        self.offset
    }

    /// Size in bytes.
    pub fn size(self) -> i16 {
        self.size
    }
}

/// Bytes of stack a program has.
const STACK_SIZE: i16 = 512;

/// Assembles one program.
///
/// Mistakes (a label never bound, a jump too far, a stack too deep) are kept and reported by [`Asm::finish`], so the
/// emitting code needs no error handling of its own.
///
/// ```
/// use causeway_bpf::{Asm, Cond, Reg, action};
///
/// let mut a = Asm::new();
/// let drop = a.label();
/// a.mov(Reg::R0, action::XDP_PASS);
/// a.jump_if(Cond::Eq, Reg::R1, 0, drop);
/// a.exit();
/// a.bind(drop);
/// a.mov(Reg::R0, action::XDP_DROP);
/// a.exit();
/// assert_eq!(a.finish().unwrap().insns().len(), 5);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Asm {
    insns: Vec<Insn>,
    /// Slot each label is bound to.
    labels: Vec<Option<usize>>,
    /// Jumps to patch: instruction and label.
    jumps: Vec<(usize, Label)>,
    stack_used: i16,
    mistake: Option<String>,
}

/// An assembled program, ready to be loaded.
///
/// Map references are descriptor numbers, so the maps must be open until the program is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    insns: Vec<Insn>,
}

impl Code {
    /// The instruction slots.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The encoded program, 8 bytes a slot.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.insns.iter().flat_map(|i| i.to_bytes()).collect()
    }
}

impl Asm {
    /// An empty program.
    pub fn new() -> Asm {
        Asm::default()
    }

    /// A new label, to be bound once.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts `label` here.
    pub fn bind(&mut self, label: Label) {
        if self.labels[label.0].replace(self.insns.len()).is_some() {
            self.mistake("a label is bound twice");
        }
    }

    /// Whether a jump leads to `label` so far. The verifier refuses instructions that nothing leads to.
    pub fn is_target(&self, label: Label) -> bool {
        self.jumps.iter().any(|&(_, target)| target == label)
    }

    /// Instruction slots so far.
    pub fn position(&self) -> usize {
        self.insns.len()
    }

    /// Reserves `size` bytes of stack, aligned to 8.
    pub fn slot(&mut self, size: i16) -> Slot {
        self.stack_used = self.stack_used.saturating_add(size.saturating_add(7) & !7);
        if size <= 0 || self.stack_used > STACK_SIZE {
            self.mistake("the stack is more than 512 bytes deep");
        }
        Slot { offset: self.stack_used.wrapping_neg(), size }
    }

    /// `dst = src`, 64 bits; constants are sign-extended.
    pub fn mov(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu(Alu::Mov, dst, src);
    }

    /// `dst = src`, 32 bits; the upper half becomes zero.
    pub fn mov32(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu32(Alu::Mov, dst, src);
    }

    /// `dst = dst op src`, 64 bits.
    pub fn alu(&mut self, operation: Alu, dst: Reg, src: impl Into<Operand>) {
        self.operation(op::ALU64 | operation as u8, dst, src.into(), 0);
    }

    /// `dst = dst op src`, 32 bits; the upper half becomes zero.
    pub fn alu32(&mut self, operation: Alu, dst: Reg, src: impl Into<Operand>) {
        self.operation(op::ALU32 | operation as u8, dst, src.into(), 0);
    }

    /// `dst = -dst`, 64 bits.
    pub fn neg(&mut self, dst: Reg) {
        self.emit(op::ALU64 | op::NEG, dst as u8, 0, 0, 0);
    }

    /// Converts the low `bits` (16, 32 or 64) of `dst` between host and big-endian order; the rest becomes zero.
    pub fn to_be(&mut self, dst: Reg, bits: i32) {
        if !matches!(bits, 16 | 32 | 64) {
            self.mistake("byte order can be changed for 16, 32 or 64 bits");
        }
        self.emit(op::ALU32 | op::END | op::TO_BE, dst as u8, 0, 0, bits);
    }

    /// `dst = value`, all 64 bits; two slots.
    pub fn mov64(&mut self, dst: Reg, value: u64) {
        self.wide(dst, 0, value as u32 as i32, (value >> 32) as u32 as i32);
    }

    /// `dst = map`, as helpers take it.
    pub fn map(&mut self, dst: Reg, map: BorrowedFd<'_>) {
        self.wide(dst, op::PSEUDO_MAP_FD, map.as_raw_fd(), 0);
    }

    /// `dst = address of byte `offset` of an array map's values`, without a look-up.
    pub fn map_value(&mut self, dst: Reg, map: BorrowedFd<'_>, offset: i32) {
        self.wide(dst, op::PSEUDO_MAP_VALUE, map.as_raw_fd(), offset);
    }

    /// `dst = *(base + offset)`, zero-extended.
    pub fn load(&mut self, size: Size, dst: Reg, base: Reg, offset: i16) {
        self.emit(op::LDX | op::MODE_MEM | size as u8, dst as u8, base as u8, offset, 0);
    }

    /// `*(base + offset) = src`.
    pub fn store(&mut self, size: Size, base: Reg, offset: i16, src: impl Into<Operand>) {
        match src.into() {
            Operand::Reg(src) => {
                self.emit(op::STX | op::MODE_MEM | size as u8, base as u8, src as u8, offset, 0);
            }
            Operand::Imm(imm) => self.emit(op::ST | op::MODE_MEM | size as u8, base as u8, 0, offset, imm),
        }
    }

    /// `*(base + offset) += src`, atomically; `size` is `W` or `D`.
    pub fn atomic_add(&mut self, size: Size, base: Reg, offset: i16, src: Reg) {
        if !matches!(size, Size::W | Size::D) {
            self.mistake("an atomic addition is 4 or 8 bytes wide");
        }
        let imm = i32::from(Alu::Add as u8);
        self.emit(op::STX | op::MODE_ATOMIC | size as u8, base as u8, src as u8, offset, imm);
    }

    /// `src` and `*(base + offset)` change places, atomically and fully ordered; `size` is `W` or `D`.
    pub fn exchange(&mut self, size: Size, base: Reg, offset: i16, src: Reg) {
        if !matches!(size, Size::W | Size::D) {
            self.mistake("an atomic exchange is 4 or 8 bytes wide");
        }
        self.emit(op::STX | op::MODE_ATOMIC | size as u8, base as u8, src as u8, offset, op::XCHG);
    }

    /// `dst = address of slot`.
    pub fn slot_address(&mut self, dst: Reg, slot: Slot) {
        self.mov(dst, Reg::R10);
        self.alu(Alu::Add, dst, i32::from(slot.offset));
    }

    /// Stores `src` at byte `offset` of `slot`.
    pub fn store_slot(&mut self, size: Size, slot: Slot, offset: i16, src: impl Into<Operand>) {
        self.store(size, Reg::R10, slot.offset.saturating_add(offset), src);
    }

    /// Loads `dst` from byte `offset` of `slot`.
    pub fn load_slot(&mut self, size: Size, dst: Reg, slot: Slot, offset: i16) {
        self.load(size, dst, Reg::R10, slot.offset.saturating_add(offset));
    }

    /// Jumps to `target`.
    pub fn jump(&mut self, target: Label) {
        self.jumps.push((self.insns.len(), target));
        self.emit(op::JMP | op::JA, 0, 0, 0, 0);
    }

    /// Jumps to `target` if `dst cond src`, 64 bits; constants are sign-extended.
    pub fn jump_if(&mut self, cond: Cond, dst: Reg, src: impl Into<Operand>, target: Label) {
        self.jumps.push((self.insns.len(), target));
        self.operation(op::JMP | cond as u8, dst, src.into(), 0);
    }

    /// Jumps to `target` if `dst cond src`, comparing the low 32 bits.
    pub fn jump_if32(&mut self, cond: Cond, dst: Reg, src: impl Into<Operand>, target: Label) {
        self.jumps.push((self.insns.len(), target));
        self.operation(op::JMP32 | cond as u8, dst, src.into(), 0);
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: Helper) {
        self.emit(op::JMP | op::CALL, 0, 0, 0, helper as i32);
    }

    /// Returns `R0`.
    pub fn exit(&mut self) {
        self.emit(op::JMP | op::EXIT, 0, 0, 0, 0);
    }

    /// Loads `data` and `data_end` of the XDP context in `ctx`.
    pub fn xdp_data(&mut self, ctx: Reg, data: Reg, data_end: Reg) {
        self.load(Size::W, data, ctx, super::xdp_md::DATA);
        self.load(Size::W, data_end, ctx, super::xdp_md::DATA_END);
    }

    /// The same of the context of a program at tcx.
    pub fn skb_data(&mut self, ctx: Reg, data: Reg, data_end: Reg) {
        self.load(Size::W, data, ctx, super::sk_buff::DATA);
        self.load(Size::W, data_end, ctx, super::sk_buff::DATA_END);
    }

    /// Jumps to `target` unless `data` has at least `len` bytes before `data_end`; destroys `scratch`. The verifier
    /// allows accesses below `len` after it.
    pub fn xdp_require(&mut self, data: Reg, data_end: Reg, len: i32, scratch: Reg, target: Label) {
        self.mov(scratch, data);
        self.alu(Alu::Add, scratch, len);
        self.jump_if(Cond::Gt, scratch, data_end, target);
    }

    /// Adds one to counter `index` of a per-CPU array of 64-bit values, using `key` (4 bytes) and destroying `R0` to
    /// `R5`. Jumps to `absent` if there is no such counter, which the verifier cannot know to be impossible.
    pub fn count_per_cpu(&mut self, counters: BorrowedFd<'_>, index: Reg, key: Slot, absent: Label) {
        self.store_slot(Size::W, key, 0, index);
        self.map(Reg::R1, counters);
        self.slot_address(Reg::R2, key);
        self.call(Helper::MapLookup);
        self.jump_if(Cond::Eq, Reg::R0, 0, absent);
        // The counter is this CPU's own and XDP programs do not interrupt each other: no atomic needed.
        self.load(Size::D, Reg::R1, Reg::R0, 0);
        self.alu(Alu::Add, Reg::R1, 1);
        self.store(Size::D, Reg::R0, 0, Reg::R1);
    }

    /// Patches the jumps and gives the program.
    ///
    /// # Errors
    /// [`ErrorKind::Assembler`]: an unbound or twice bound label, a jump over more than 32 767 slots, too deep a
    /// stack, a width that the instruction does not have.
    pub fn finish(mut self) -> Result<Code> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let Some(target) = self.labels[label.0] else {
                self.mistake("a jump goes to a label that is bound nowhere");
                break;
            };
            match i16::try_from(target as i64 - at as i64 - 1) {
                Ok(offset) => self.insns[at].offset = offset,
                Err(_) => self.mistake("a jump is too far"),
            }
        }
        match self.mistake {
            Some(text) => Err(Error::new(ErrorKind::Assembler, format!("assemble BPF: {text}"))),
            None => Ok(Code { insns: self.insns }),
        }
    }

    fn operation(&mut self, opcode: u8, dst: Reg, src: Operand, offset: i16) {
        match src {
            Operand::Reg(src) => self.emit(opcode | op::SRC_REG, dst as u8, src as u8, offset, 0),
            Operand::Imm(imm) => self.emit(opcode, dst as u8, 0, offset, imm),
        }
    }

    fn wide(&mut self, dst: Reg, source: u8, low: i32, high: i32) {
        self.emit(op::LD | op::MODE_IMM | op::SIZE_D, dst as u8, source, 0, low);
        self.emit(0, 0, 0, 0, high);
    }

    fn emit(&mut self, opcode: u8, dst: u8, src: u8, offset: i16, imm: i32) {
        self.insns.push(Insn { opcode, regs: dst | src << 4, offset, imm });
    }

    fn mistake(&mut self, text: &str) {
        self.mistake.get_or_insert_with(|| text.to_owned());
    }
}

#[cfg(test)]
#[path = "asm_tests.rs"]
mod tests;
