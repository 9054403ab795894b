//! Room in front of a packet.

use super::{DATA, DATA_END, Writer};
use crate::state::{Header, Mark, Reach, State};
use causeway_bpf::{Alu, Cond, Helper, Reg, Size};

impl Writer<'_> {
    /// Puts so many bytes in front of a packet of the stack; its data starts with them. If there is no room it is given up as it
    /// is.
    pub(super) fn grow(&mut self, by: i32) {
        self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
        self.asm.mov(Reg::R2, by);
        self.asm.mov(Reg::R3, 0);
        self.asm.call(Helper::SkbChangeHead);
        self.asm.jump_if(Cond::Ne, Reg::R0, 0, self.give_up);
        self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
        self.asm.skb_data(Reg::R1, DATA, DATA_END);
        let slots = [Header::Mac, Header::Network, Header::Transport]
            .into_iter()
            .filter(|&header| self.state.mark(header) == Mark::Stack)
            .map(|header| self.frame.mark(header));
        for slot in slots.chain([self.frame.end]) {
            self.asm.load_slot(Size::D, Reg::R0, slot, 0);
            self.asm.alu(Alu::Add, Reg::R0, by);
            self.asm.store_slot(Size::D, slot, 0, Reg::R0);
        }
        for mark in &mut self.state.marks {
            if let Mark::At(at) = mark {
                *at += by;
            }
        }
        // What could be read can be read farther behind; it is only to be said again.
        let frame = self.reach.frame + by;
        self.asm.xdp_require(DATA, DATA_END, frame, Reg::R0, self.give_up);
        self.reach = Reach { frame, data: self.reach.data + by, changed: true };
        self.state = State { data: 0, cut: true, touched: true, grown: self.state.grown + by, ..self.state };
    }
}
