//! Sums of the Internet checksum.

use super::{DATA, DATA_END, Spot, Stop, Writer, parts, size};
use crate::state::Mark;
use causeway_bpf::{Alu, Cond, Reg, Size};
use causeway_engine::ir::{self, At, Value};

/// Bytes that are summed at most: those of the longest IPv4 header, and the next power of two.
pub const SUM_BYTES: u64 = 64;

impl Writer<'_> {
    /// The sum over at most [`SUM_BYTES`] bytes; packets that ask for more are given up.
    pub(super) fn sum(&mut self, to: ir::Reg, at: At, bytes: Value) -> Result<(), Stop> {
        let give_up = self.give_up;
        let length = match bytes {
            Value::Const(n) if n <= SUM_BYTES => Some(n as u32),
            Value::Const(_) => {
                self.asm.jump(give_up);
                return Err(Stop::Left);
            }
            Value::Of(_) => None,
        };
        if let Some(length) = length {
            let spot = self.spot(at, length, give_up)?;
            self.asm.mov(Reg::R0, 0);
            let mut offset = spot.offset;
            for part in std::iter::repeat_n(4, length as usize / 4).chain(parts((length % 4) as u8)) {
                self.add_bytes(&spot, offset, part);
                offset += i16::from(part);
            }
        } else {
            self.sum_computed(at, bytes)?;
        }
        // 32-bit words and their carries: at most 38 bits.
        self.asm.mov(Reg::R1, Reg::R0);
        self.asm.alu(Alu::Rsh, Reg::R1, 32);
        self.asm.mov32(Reg::R0, Reg::R0);
        self.asm.alu(Alu::Add, Reg::R0, Reg::R1);
        (0..3).for_each(|_| self.fold_once());
        // The sum of swapped words is the swapped sum (RFC 1071, section 2).
        self.asm.to_be(Reg::R0, 16);
        self.set(to, Reg::R0);
        Ok(())
    }

    /// R0 += bytes as they lie in memory.
    fn add_bytes(&mut self, spot: &Spot, offset: i16, part: u8) {
        self.asm.load(size(part), Reg::R1, spot.base, offset);
        self.asm.alu(Alu::Add, Reg::R0, Reg::R1);
    }

    /// The same where the number of bytes is computed: word after word until it is reached.
    fn sum_computed(&mut self, at: At, bytes: Value) -> Result<(), Stop> {
        let give_up = self.give_up;
        self.read(Reg::R1, bytes);
        self.asm.jump_if(Cond::Gt, Reg::R1, SUM_BYTES as i32, give_up);
        self.asm.store_slot(Size::D, self.frame.key, 0, Reg::R1);
        let mark = self.base(at.base, give_up)?;
        if let Mark::At(start) = mark {
            self.asm.mov(Reg::R2, start);
        }
        // Where it ends is in the data.
        let offset = i16::try_from(at.offset).map_err(|_| Stop::Unsaid("it looks too far"))?;
        self.asm.alu(Alu::Add, Reg::R2, i32::from(offset));
        self.asm.load_slot(Size::D, Reg::R0, self.frame.key, 0);
        self.asm.alu(Alu::Add, Reg::R0, Reg::R2);
        if self.state.cut {
            self.require_data(Reg::R0, give_up);
        }
        self.asm.alu(Alu::Add, Reg::R2, DATA);
        self.asm.alu(Alu::Add, Reg::R0, DATA);
        self.asm.jump_if(Cond::Gt, Reg::R0, DATA_END, give_up);
        self.asm.mov(Reg::R0, 0);
        let rest = self.asm.label();
        for word in 1..=SUM_BYTES as i32 / 4 {
            self.asm.load_slot(Size::D, Reg::R1, self.frame.key, 0);
            self.asm.jump_if(Cond::Lt, Reg::R1, 4 * word, rest);
            self.word_at_r2(4);
        }
        self.asm.bind(rest);
        for part in [2, 1] {
            let skip = self.asm.label();
            self.asm.load_slot(Size::D, Reg::R1, self.frame.key, 0);
            self.asm.alu(Alu::And, Reg::R1, i32::from(part));
            self.asm.jump_if(Cond::Eq, Reg::R1, 0, skip);
            self.word_at_r2(part);
            self.asm.bind(skip);
        }
        Ok(())
    }

    /// R0 += bytes at R2, and R2 moves behind them. They are there; the verifier asks again.
    fn word_at_r2(&mut self, part: u8) {
        self.asm.xdp_require(Reg::R2, DATA_END, part.into(), Reg::R1, self.give_up);
        self.add_bytes(&Spot { base: Reg::R2, offset: 0 }, 0, part);
        self.asm.alu(Alu::Add, Reg::R2, i32::from(part));
    }
}
