//! The interpreter: what programs mean. Nothing is made for speed here.

use super::{Alu, At, Base, End, Field, Op, Program, REGISTERS, Reg, Test, Value};
use causeway_packet::checksum::Sum;
use causeway_packet::{Anno, Packet};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It leaves by this output.
    Leave(usize),
    /// It is dropped for this reason of the class.
    Drop(usize),
    /// It is left to the element; nothing was changed.
    GiveUp,
}

/// The registers of one run.
struct Machine<'p> {
    registers: [u64; REGISTERS],
    packet: &'p mut Packet,
    now_ns: u64,
}

impl Program {
    /// Does to `packet` what the element would do to it at `now_ns`.
    pub fn run(&mut self, packet: &mut Packet, now_ns: u64) -> Outcome {
        let mut machine = Machine { registers: [0; REGISTERS], packet, now_ns };
        machine.run(self).unwrap_or(Outcome::GiveUp)
    }
}

impl Machine<'_> {
    /// `None` if something cannot be done, which nothing was changed before.
    fn run(&mut self, program: &mut Program) -> Option<Outcome> {
        let mut at = 0;
        loop {
            let code = program.blocks.get(at)?.clone();
            for op in &code.ops {
                self.step(op, program)?;
            }
            at = match code.end {
                End::Go(to) => to,
                End::If(test, yes, no) => {
                    if self.holds(test) {
                        yes
                    } else {
                        no
                    }
                }
                End::Leave(port) => return Some(Outcome::Leave(port as usize)),
                End::LeaveBy(Reg(port)) => {
                    return Some(Outcome::Leave(self.registers[port as usize] as usize));
                }
                End::Drop(reason) => return Some(Outcome::Drop(reason as usize)),
                End::GiveUp => return None,
            };
        }
    }

    fn value(&self, value: Value) -> u64 {
        match value {
            Value::Of(Reg(r)) => self.registers[r as usize],
            Value::Const(n) => n,
        }
    }

    fn set(&mut self, Reg(r): Reg, value: u64) {
        self.registers[r as usize] = value;
    }

    /// Where in the data `at` is.
    fn place(&self, at: At) -> Option<usize> {
        let base = match at.base {
            Base::Data => 0,
            Base::Network => self.packet.network_offset()?,
            Base::Transport => self.packet.transport_offset()?,
        };
        base.checked_add(at.offset as usize)
    }

    fn bytes(&self, at: At, n: usize) -> Option<&[u8]> {
        let start = self.place(at)?;
        self.packet.data().get(start..start.checked_add(n)?)
    }

    fn holds(&self, test: Test) -> bool {
        match test {
            Test::Equal(a, b) => self.value(a) == self.value(b),
            Test::Above(a, b) => self.value(a) > self.value(b),
            Test::Has(at, bytes) => self.bytes(at, bytes as usize).is_some(),
        }
    }

    fn step(&mut self, op: &Op, program: &mut Program) -> Option<()> {
        match *op {
            Op::Load { to, at, bytes } => {
                let value = number(self.bytes(at, bytes as usize)?);
                self.set(to, value);
            }
            Op::Get { to, field } => {
                let value = self.get(field)?;
                self.set(to, value);
            }
            Op::Compute { to, how, a, b } => self.set(to, how.of(self.value(a), self.value(b))),
            Op::Sum { to, at, bytes } => {
                let sum = Sum::new().bytes(self.bytes(at, self.value(bytes).try_into().ok()?)?);
                self.set(to, !sum.finish() as u64);
            }
            Op::Member { to, of, ref set } => self.set(to, set.contains(&self.value(of)) as u64),
            Op::LookUp { to, table, key } => {
                let key = key.map(|word| self.value(word));
                let found = program.tables.get_mut(table as usize)?.look_up(key, self.now_ns)?;
                to.into_iter().zip(found).for_each(|(to, word)| self.set(to, word));
            }
            Op::Store { at, bytes, value } => {
                let value = self.value(value).to_be_bytes();
                let (start, n) = (self.place(at)?, bytes as usize);
                let into = self.packet.data_mut().get_mut(start..start + n)?;
                into.copy_from_slice(value.get(8 - n..)?);
            }
            Op::Put { field, value } => self.put(field, self.value(value)),
            Op::Pull(n) => self.packet.pull(n as usize).ok()?,
            Op::Push(n) => drop(self.packet.push(n as usize).ok()?),
            Op::Count { counter, by } => program.counters.get(counter as usize)?.add(self.value(by)),
        }
        Some(())
    }

    fn get(&self, field: Field) -> Option<u64> {
        Some(match field {
            Field::Length => self.packet.len() as u64,
            Field::PacketType => self.packet.packet_type() as u64,
            Field::Mac => return None,
            Field::Network => self.packet.network_offset()? as u64,
            Field::Transport => self.packet.transport_offset()? as u64,
            Field::Anno(offset, bytes) => {
                let bytes = (0..bytes).map(|i| self.packet.anno_u8(offset.saturating_add(i)));
                bytes.fold(0, |all, byte| all << 8 | byte as u64)
            }
        })
    }

    fn put(&mut self, field: Field, value: u64) {
        // No packet reaches farther.
        let place = value.min(u64::from(u32::MAX)) as usize;
        match field {
            Field::Length => self.packet.truncate(place),
            Field::PacketType => {}
            Field::Mac => self.packet.set_mac_header(place),
            Field::Network => self.packet.set_network_header(place),
            Field::Transport => self.packet.set_transport_header(place),
            Field::Anno(offset, bytes) => {
                for (i, byte) in (0..bytes).rev().zip(value.to_be_bytes().into_iter().rev()) {
                    self.packet.set_anno_u8(offset.saturating_add(i), byte);
                }
            }
        }
    }
}

/// Bytes in network order as a number.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |all, &byte| all << 8 | byte as u64)
}

impl Alu {
    /// The result of two numbers.
    pub fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::And => a & b,
            Alu::Or => a | b,
            Alu::Xor => a ^ b,
            Alu::Shl => a.checked_shl(b.min(64) as u32).unwrap_or(0),
            Alu::Shr => a.checked_shr(b.min(64) as u32).unwrap_or(0),
            Alu::OnesAdd => {
                let sum = (a & 0xffff) + (b & 0xffff);
                (sum & 0xffff) + (sum >> 16)
            }
        }
    }
}

impl From<Anno> for Field {
    /// The whole annotation.
    fn from(anno: Anno) -> Field {
        Field::Anno(anno.offset, anno.width)
    }
}
