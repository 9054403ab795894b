//! What is known of a packet besides its bytes, read and set.

use super::{DATA, DATA_END, Stop, Writer, size};
use crate::state::{Header, Mark};
use causeway_bpf::{Alu, Cond, Reg, Size};
use causeway_engine::ir::{self, Base, Field, Value};

impl Writer<'_> {
    pub(super) fn get(&mut self, to: ir::Reg, field: Field) -> Result<(), Stop> {
        let give_up = self.give_up;
        match field {
            Field::Length => {
                self.end(Reg::R0);
                self.asm.alu(Alu::Sub, Reg::R0, self.state.data);
            }
            Field::PacketType => self.asm.load_slot(Size::D, Reg::R0, self.frame.packet_type, 0),
            Field::Mac => {
                self.asm.jump(give_up);
                return Err(Stop::Left);
            }
            Field::Network | Field::Transport => {
                let base = if field == Field::Network { Base::Network } else { Base::Transport };
                match self.base(base, give_up)? {
                    Mark::At(at) => self.asm.mov(Reg::R0, at - self.state.data),
                    _ => {
                        self.asm.mov(Reg::R0, Reg::R2);
                        self.asm.alu(Alu::Sub, Reg::R0, self.state.data);
                    }
                }
            }
            Field::Anno(at, bytes) => {
                self.asm.mov(Reg::R0, 0);
                for (offset, part) in aligned(at, bytes) {
                    self.asm.load_slot(size(part), Reg::R1, self.frame.annotations, offset);
                    if part > 1 {
                        self.asm.to_be(Reg::R1, 8 * i32::from(part));
                    }
                    if part < 8 {
                        self.asm.alu(Alu::Lsh, Reg::R0, 8 * i32::from(part));
                    }
                    self.asm.alu(Alu::Or, Reg::R0, Reg::R1);
                }
            }
        }
        self.set(to, Reg::R0);
        Ok(())
    }

    /// `to` becomes the position where the data ends.
    fn end(&mut self, to: Reg) {
        if self.state.cut {
            self.asm.load_slot(Size::D, to, self.frame.end, 0);
        } else {
            self.asm.mov(to, DATA_END);
            self.asm.alu(Alu::Sub, to, DATA);
        }
    }

    pub(super) fn put(&mut self, field: Field, value: Value) -> Result<(), Stop> {
        match field {
            Field::Length => {
                // No packet is longer. Of the stack's, one of 65 535 octets has its Ethernet header besides.
                self.read_bounded(value, i32::MAX);
                self.asm.alu(Alu::Add, Reg::R0, self.state.data);
                self.end(Reg::R1);
                let less = self.asm.label();
                self.asm.jump_if(Cond::Le, Reg::R0, Reg::R1, less);
                self.asm.mov(Reg::R0, Reg::R1);
                self.asm.bind(less);
                self.asm.store_slot(Size::D, self.frame.end, 0, Reg::R0);
                self.state.cut = true;
                self.reach.data = 0;
            }
            Field::PacketType => {}
            Field::Mac => self.mark(Header::Mac, value),
            Field::Network => self.mark(Header::Network, value),
            Field::Transport => self.mark(Header::Transport, value),
            Field::Anno(at, bytes) => {
                let mut left = bytes;
                for (offset, part) in aligned(at, bytes) {
                    left -= part;
                    self.read(Reg::R0, value);
                    if left > 0 {
                        self.asm.alu(Alu::Rsh, Reg::R0, 8 * i32::from(left));
                    }
                    if part > 1 {
                        self.asm.to_be(Reg::R0, 8 * i32::from(part));
                    }
                    self.asm.store_slot(size(part), self.frame.annotations, offset, Reg::R0);
                }
            }
        }
        Ok(())
    }

    /// R0 becomes the value, or `most` if that is less.
    fn read_bounded(&mut self, value: Value, most: i32) {
        self.read(Reg::R0, value);
        let small = self.asm.label();
        self.asm.jump_if(Cond::Le, Reg::R0, most, small);
        self.asm.mov(Reg::R0, most);
        self.asm.bind(small);
    }

    fn mark(&mut self, header: Header, value: Value) {
        let mark = match value {
            Value::Const(n) => {
                let at = i32::try_from(n).ok().and_then(|n| n.checked_add(self.state.data));
                at.filter(|&at| at <= self.state.farthest()).map_or(Mark::None, Mark::At)
            }
            Value::Of(_) => {
                self.read_bounded(value, self.state.farthest() + 1);
                self.asm.alu(Alu::Add, Reg::R0, self.state.data);
                self.asm.store_slot(Size::D, self.frame.mark(header), 0, Reg::R0);
                Mark::Stack
            }
        };
        self.state.marks[header as usize] = mark;
    }
}

/// Annotation bytes in aligned pieces, since the stack is read and written in these only: offset and size of each.
fn aligned(at: u8, bytes: u8) -> Vec<(i16, u8)> {
    let (mut at, end) = (at, at.saturating_add(bytes));
    let mut all = Vec::new();
    while at < end {
        let part = [8, 4, 2, 1].into_iter().find(|&part| at % part == 0 && at + part <= end).unwrap_or(1);
        all.push((i16::from(at), part));
        at += part;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_read_in_aligned_pieces() {
        assert_eq!(aligned(0, 4), [(0, 4)]);
        assert_eq!(aligned(3, 6), [(3, 1), (4, 4), (8, 1)]);
        assert_eq!(aligned(6, 8), [(6, 2), (8, 4), (12, 2)]);
        assert_eq!(aligned(8, 8), [(8, 8)]);
    }
}
