//! Writes operations as instructions.
//!
//! The machine's registers: R6 is where the frame starts, R7 where it ends, R0 to R2 are scratch, and the others are homes
//! of the program's registers ([`crate::registers`]). Where the frame is moved, R6 and R7 are read anew.

mod fields;
mod grow;
mod sum;

pub use sum::SUM_BYTES;

use crate::frame::Frame;
use crate::registers::{BlockHomes, Home};
use crate::state::{Header, Mark, Reach, State};
use causeway_bpf::{Alu, Asm, Cond, Label, Operand, Reg, Size};
use causeway_engine::ir::{self, At, Base, Op, Value};

/// Where the frame starts.
pub(crate) const DATA: Reg = Reg::R6;
/// Where it ends.
pub(crate) const DATA_END: Reg = Reg::R7;

/// Where in a frame checksums begin to be made at least: behind the shortest header of IP.
const SUMMED: i32 = 34;

/// Why no more of a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All packets went elsewhere. The verifier takes no instructions that nothing leads to.
    Left,
    /// It cannot be said in instructions, for this reason.
    Unsaid(&'static str),
}

use Stop::{Left, Unsaid};

/// Writes one block of a program for packets in one state.
pub(crate) struct Writer<'a> {
    pub asm: &'a mut Asm,
    pub frame: &'a Frame,
    pub homes: &'a BlockHomes,
    /// What is known here.
    pub state: State,
    pub reach: Reach,
    /// Where packets are given up.
    pub give_up: Label,
    /// Whether a packet may be longer than what can be read of it.
    pub partial: bool,
    /// Whether the kernel may be about to finish a checksum of what is behind the header of IP, and is trusted with packets then.
    pub unfinished: bool,
}

/// Bytes that are about to be read or written: behind a register, which is where the frame starts or R2.
pub(crate) struct Spot {
    pub base: Reg,
    pub offset: i16,
}

impl Writer<'_> {
    fn operand(&mut self, value: Value, scratch: Reg) -> Operand {
        match value {
            Value::Const(n) => match i32::try_from(n as i64) {
                Ok(n) => n.into(),
                Err(_) => {
                    self.asm.mov64(scratch, n);
                    scratch.into()
                }
            },
            Value::Of(reg) => match self.homes.of_register(reg) {
                Some(Home::Register(machine)) => machine.into(),
                Some(Home::Stack(slot)) => {
                    self.asm.load_slot(Size::D, scratch, self.frame.spill(slot), 0);
                    scratch.into()
                }
                None => 0.into(),
            },
        }
    }

    /// `to = value`.
    pub fn read(&mut self, to: Reg, value: Value) {
        match self.operand(value, to) {
            Operand::Reg(from) if from == to => {}
            from => self.asm.mov(to, from),
        }
    }

    /// The program's register `to` becomes what `from` holds.
    pub fn set(&mut self, to: ir::Reg, from: Reg) {
        if let Some(home) = self.homes.of_register(to) {
            self.set_home(home, from);
        }
    }

    /// The same for where a register is kept.
    pub fn set_home(&mut self, home: Home, from: Reg) {
        match home {
            Home::Register(machine) if machine == from => {}
            Home::Register(machine) => self.asm.mov(machine, from),
            Home::Stack(slot) => self.asm.store_slot(Size::D, self.frame.spill(slot), 0, from),
        }
    }

    /// The register in which `to` is best computed.
    fn target(&self, to: ir::Reg) -> Reg {
        match self.homes.of_register(to) {
            Some(Home::Register(machine)) => machine,
            _ => Reg::R0,
        }
    }

    /// Goes on at `unless` if the data ends before the position in R0 does, in so many bytes.
    fn require_data(&mut self, position: Reg, unless: Label) {
        self.asm.load_slot(Size::D, Reg::R1, self.frame.end, 0);
        self.asm.jump_if(Cond::Gt, position, Reg::R1, unless);
    }

    /// Makes sure that the packet has the bytes up to `end`, or goes on at `unless`.
    pub fn require(&mut self, end: i32, unless: Label) -> Result<(), Stop> {
        if end <= self.reach.data {
            return Ok(());
        }
        if end > i32::from(i16::MAX) {
            self.asm.jump(unless);
            return Err(Left);
        }
        if self.state.cut {
            self.asm.mov(Reg::R0, end);
            self.require_data(Reg::R0, unless);
        }
        if end > self.reach.frame {
            // Bytes that are there and cannot be read are for the graph above.
            let unless = if self.partial { self.give_up } else { unless };
            if self.partial && self.reach.changed {
                return Err(Unsaid("it looks farther after a change"));
            }
            self.asm.xdp_require(DATA, DATA_END, end, Reg::R0, unless);
            self.reach.frame = end;
        }
        self.reach.data = end;
        Ok(())
    }

    /// Where `at` counts from: a position that is known, or one in R2 that is not. Packets that have no such header go on at
    /// `unless`.
    fn base(&mut self, base: Base, unless: Label) -> Result<Mark, Stop> {
        let mark = match base {
            Base::Data => Mark::At(self.state.data),
            Base::Network => self.state.mark(Header::Network),
            Base::Transport => self.state.mark(Header::Transport),
        };
        match mark {
            Mark::At(at) if at >= self.state.data => Ok(mark),
            Mark::None | Mark::At(_) => {
                self.asm.jump(unless);
                Err(Left)
            }
            Mark::Stack => {
                let header = if base == Base::Network { Header::Network } else { Header::Transport };
                self.asm.load_slot(Size::D, Reg::R2, self.frame.mark(header), 0);
                self.asm.jump_if(Cond::Gt, Reg::R2, self.state.farthest(), unless);
                if self.state.data > 0 {
                    self.asm.jump_if(Cond::Lt, Reg::R2, self.state.data, unless);
                }
                Ok(mark)
            }
        }
    }

    /// The spot of `bytes` bytes that the packet has, else it goes on at `unless`.
    pub fn spot(&mut self, at: At, bytes: u32, unless: Label) -> Result<Spot, Stop> {
        let mark = self.base(at.base, unless)?;
        let reach = i32::try_from(u64::from(at.offset) + u64::from(bytes)).unwrap_or(i32::MAX);
        if let Mark::At(start) = mark {
            self.require(start.saturating_add(reach), unless)?;
            let offset = i16::try_from(start.saturating_add(at.offset as i32));
            return Ok(Spot { base: DATA, offset: offset.map_err(|_| Unsaid("it looks too far"))? });
        }
        let reach = i16::try_from(reach).map_err(|_| Unsaid("it looks too far"))?;
        if self.partial && self.reach.changed {
            return Err(Unsaid("it looks behind a header whose place is computed, after a change"));
        }
        if self.state.cut {
            self.asm.mov(Reg::R0, Reg::R2);
            self.asm.alu(Alu::Add, Reg::R0, i32::from(reach));
            self.require_data(Reg::R0, unless);
        }
        self.asm.alu(Alu::Add, Reg::R2, DATA);
        let unless = if self.partial { self.give_up } else { unless };
        self.asm.xdp_require(Reg::R2, DATA_END, reach.into(), Reg::R0, unless);
        Ok(Spot { base: Reg::R2, offset: at.offset as i16 })
    }

    /// Writes an operation.
    pub fn op(&mut self, op: &Op) -> Result<(), Stop> {
        let give_up = self.give_up;
        match *op {
            Op::Load { to, at, bytes } => {
                let spot = self.spot(at, bytes.into(), give_up)?;
                let target = self.target(to);
                self.load(target, &spot, bytes);
                self.set(to, target);
            }
            Op::Get { to, field } => self.get(to, field)?,
            Op::Compute { to, how, a, b } => self.compute(to, how, a, b),
            Op::Sum { to, at, bytes } => self.sum(to, at, bytes)?,
            Op::Member { to, of, ref set } => {
                let mut set = set.to_vec();
                set.sort_unstable();
                self.read(Reg::R0, of);
                self.member(&set);
                self.set(to, Reg::R1);
            }
            Op::Store { at, bytes, value } => {
                let spot = self.spot(at, bytes.into(), give_up)?;
                let end = i32::from(spot.offset) + i32::from(bytes);
                if self.unfinished && (spot.base != DATA || end > SUMMED + self.state.grown) {
                    return Err(Unsaid("it writes where a checksum may be unfinished"));
                }
                self.store(&spot, bytes, value);
                (self.reach.changed, self.state.touched) = (true, true);
            }
            Op::Put { field, value } => {
                self.put(field, value)?;
                self.reach.changed = true;
            }
            Op::Pull(n) => {
                let n = i32::try_from(n).map_err(|_| Unsaid("it takes more off than a frame has"))?;
                let start = self.state.data.saturating_add(n);
                self.require(start, give_up)?;
                self.state.data = start;
                self.reach.changed = true;
            }
            Op::Push(n) => {
                let start = i32::try_from(n).ok().and_then(|n| self.state.data.checked_sub(n));
                match start.ok_or(Unsaid("it needs too much room in front of the frame"))? {
                    start @ 0.. => self.state.data = start,
                    more if self.partial => self.grow(-more),
                    _ => return Err(Unsaid("it needs room in front of the frame")),
                }
                self.reach.changed = true;
            }
            // These need what the caller has.
            Op::LookUp { .. } | Op::Count { .. } => {}
        }
        Ok(())
    }

    /// `to = bytes in network order`.
    fn load(&mut self, to: Reg, spot: &Spot, bytes: u8) {
        let mut offset = spot.offset;
        for (i, part) in parts(bytes).into_iter().enumerate() {
            let into = if i == 0 { to } else { Reg::R1 };
            self.asm.load(size(part), into, spot.base, offset);
            if part > 1 {
                self.asm.to_be(into, 8 * i32::from(part));
            }
            if i > 0 {
                self.asm.alu(Alu::Lsh, to, 8 * i32::from(part));
                self.asm.alu(Alu::Or, to, Reg::R1);
            }
            offset += i16::from(part);
        }
    }

    /// The bytes become the low bytes of `value`.
    fn store(&mut self, spot: &Spot, bytes: u8, value: Value) {
        let (mut offset, mut left) = (spot.offset, bytes);
        for part in parts(bytes) {
            left -= part;
            self.read(Reg::R0, value);
            if left > 0 {
                self.asm.alu(Alu::Rsh, Reg::R0, 8 * i32::from(left));
            }
            if part > 1 {
                self.asm.to_be(Reg::R0, 8 * i32::from(part));
            }
            self.asm.store(size(part), spot.base, offset, Reg::R0);
            offset += i16::from(part);
        }
    }

    /// R1 becomes 1 if R0 is in a sorted set, else 0: by bisection.
    fn member(&mut self, set: &[u64]) {
        if set.is_empty() {
            return self.asm.mov(Reg::R1, 0);
        }
        let (found, done) = (self.asm.label(), self.asm.label());
        let mut waiting = vec![(set, None)];
        while let Some((set, label)) = waiting.pop() {
            if let Some(label) = label {
                self.asm.bind(label);
            }
            if set.len() <= 4 {
                for &n in set {
                    let n = self.operand(Value::Const(n), Reg::R1);
                    self.asm.jump_if(Cond::Eq, Reg::R0, n, found);
                }
                self.asm.mov(Reg::R1, 0);
                self.asm.jump(done);
                continue;
            }
            let (low, high) = set.split_at(set.len() / 2);
            let (first, label) = (self.operand(Value::Const(high[0]), Reg::R1), self.asm.label());
            self.asm.jump_if(Cond::Ge, Reg::R0, first, label);
            waiting.push((high, Some(label)));
            waiting.push((low, None));
        }
        self.asm.bind(found);
        self.asm.mov(Reg::R1, 1);
        self.asm.bind(done);
    }

    fn compute(&mut self, to: ir::Reg, how: ir::Alu, a: Value, b: Value) {
        if how == ir::Alu::OnesAdd {
            self.read(Reg::R0, a);
            self.asm.alu(Alu::And, Reg::R0, 0xffff);
            self.read(Reg::R1, b);
            self.asm.alu(Alu::And, Reg::R1, 0xffff);
            self.asm.alu(Alu::Add, Reg::R0, Reg::R1);
            self.fold_once();
            return self.set(to, Reg::R0);
        }
        let b = self.operand(b, Reg::R1);
        // What is still to be read is not overwritten.
        let target = match self.target(to) {
            target if b == Operand::Reg(target) => Reg::R0,
            target => target,
        };
        self.read(target, a);
        match how {
            ir::Alu::Add => self.asm.alu(Alu::Add, target, b),
            ir::Alu::Sub => self.asm.alu(Alu::Sub, target, b),
            ir::Alu::And => self.asm.alu(Alu::And, target, b),
            ir::Alu::Or => self.asm.alu(Alu::Or, target, b),
            ir::Alu::Xor => self.asm.alu(Alu::Xor, target, b),
            ir::Alu::Shl => self.shift(Alu::Lsh, target, b),
            ir::Alu::Shr => self.shift(Alu::Rsh, target, b),
            ir::Alu::OnesAdd => {}
        }
        self.set(to, target);
    }

    /// Shifts by 64 and more give 0, which the machine does not.
    fn shift(&mut self, how: Alu, target: Reg, by: Operand) {
        match by {
            Operand::Imm(by @ 0..=63) => self.asm.alu(how, target, by),
            Operand::Imm(_) => self.asm.mov(target, 0),
            Operand::Reg(by) => {
                let (far, done) = (self.asm.label(), self.asm.label());
                self.asm.jump_if(Cond::Gt, by, 63, far);
                self.asm.alu(how, target, by);
                self.asm.jump(done);
                self.asm.bind(far);
                self.asm.mov(target, 0);
                self.asm.bind(done);
            }
        }
    }

    /// Adds what R0 has above 16 bits to the low ones.
    fn fold_once(&mut self) {
        self.asm.mov(Reg::R1, Reg::R0);
        self.asm.alu(Alu::Rsh, Reg::R1, 16);
        self.asm.alu(Alu::And, Reg::R0, 0xffff);
        self.asm.alu(Alu::Add, Reg::R0, Reg::R1);
    }

    /// Goes on at `yes` if `how` holds of two numbers, else at `no`. `next` is what follows in the text.
    pub fn branch(&mut self, how: [Cond; 2], [a, b]: [Value; 2], [no, yes]: [Label; 2], next: Option<Label>) {
        let [cond, not] = how;
        self.read(Reg::R0, a);
        let b = self.operand(b, Reg::R1);
        if next == Some(yes) {
            self.asm.jump_if(not, Reg::R0, b, no);
        } else {
            self.asm.jump_if(cond, Reg::R0, b, yes);
            self.go(no, next);
        }
    }

    /// Goes on at a label.
    pub fn go(&mut self, to: Label, next: Option<Label>) {
        if next != Some(to) {
            self.asm.jump(to);
        }
    }
}

/// Powers of two that make up a number of bytes, the largest first.
fn parts(bytes: u8) -> impl IntoIterator<Item = u8> {
    [8, 4, 2, 1].into_iter().filter(move |part| bytes & part != 0)
}

fn size(part: u8) -> Size {
    match part {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        _ => Size::D,
    }
}
