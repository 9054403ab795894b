//! The next hop of a group that a packet's flow takes.

use super::next_hops::Of;
use super::{GROUP, INDEX, NextHops, SharedRegion, spread};
use crate::frame::Frame;
use crate::hops::{DOUBTED, GROUPS, MEMBERS};
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};
use std::os::fd::AsFd;

/// The members of groups. The key is that of KernelForward: destination and, from bit 32 on, source; then ports, from bit 32
/// on the protocol, and from bit 40 on the group's index.
#[derive(Clone, Copy, Debug)]
pub struct Members<'m> {
    /// What indices lead to.
    pub next_hops: NextHops<'m>,
    /// One word that says how flows are spread: the kernel's policy in 8 bits, and from bit 32 on its seed, or 0. Of the
    /// policies 0 (addresses) and 1 (ports as well) are known; under others nothing is found.
    pub spread: &'m SharedRegion,
}

/// Bits of the key's second word below the index.
const FLOW_BITS: i32 = 40;

impl Members<'_> {
    pub(super) fn write(&self, asm: &mut Asm, frame: &Frame, missing: Label, doubted: Option<Label>) {
        let (hops, key) = (self.next_hops.hops, frame.key);
        asm.mov(Reg::R2, Reg::R1);
        asm.alu(Alu::Rsh, Reg::R2, FLOW_BITS);
        self.next_hops.index(asm);
        asm.store_slot(Size::D, key, INDEX, Reg::R2);
        asm.alu(Alu::Lsh, Reg::R1, 64 - FLOW_BITS);
        asm.alu(Alu::Rsh, Reg::R1, 64 - FLOW_BITS);
        asm.map_value(Reg::R5, self.spread.map().as_fd(), 0);
        asm.load(Size::D, Reg::R5, Reg::R5, 0);
        spread::hash(asm, frame, missing);
        // What is compared are the upper 31 bits.
        asm.alu(Alu::Rsh, Reg::R0, 1);
        asm.load_slot(Size::D, Reg::R2, key, INDEX);
        self.next_hops.led_to(asm);
        // It may lead elsewhere by now.
        if let Some(doubted) = doubted {
            asm.jump_if(Cond::Eq, Reg::R2, DOUBTED as i32, doubted);
        }
        asm.jump_if(Cond::Le, Reg::R2, i32::MAX, missing);
        asm.alu(Alu::And, Reg::R2, GROUPS as i32 - 1);
        asm.alu(Alu::Lsh, Reg::R2, (8 * MEMBERS).trailing_zeros() as i32);
        asm.store_slot(Size::D, key, GROUP, Reg::R2);
        asm.map_value(Reg::R3, hops.map().as_fd(), hops.layout().offsets()[3] as i32);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        let found = asm.label();
        for member in 0..MEMBERS as i16 {
            asm.load(Size::D, Reg::R2, Reg::R3, 8 * member);
            asm.mov32(Reg::R4, Reg::R2);
            asm.jump_if(Cond::Gt, Reg::R4, Reg::R0, found);
        }
        asm.jump(missing);
        asm.bind(found);
        self.next_hops.member(asm);
        asm.jump_if(Cond::Eq, Reg::R2, 0, missing);
        asm.jump_if(Cond::Gt, Reg::R2, i32::MAX, missing);
        self.next_hops.take(asm, frame, (Of::Group, false), missing, doubted);
    }
}

impl NextHops<'_> {
    /// R2 becomes what the member leads to whose word is in R2.
    pub(crate) fn member(&self, asm: &mut Asm) {
        asm.alu(Alu::Rsh, Reg::R2, 32);
        self.index(asm);
        self.led_to(asm);
    }
}
