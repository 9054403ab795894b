//! The next hop of a group that a packet's flow takes.

use super::next_hops::Of;
use super::{GROUP, INDEX, NextHops, SharedRegion, spread};
use crate::check::Version;
use crate::frame::Frame;
use crate::hops::{DOUBTED, GROUPS, MEMBERS};
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};
use std::os::fd::AsFd;

/// The members of groups. The keys are those of KernelForward. Of IPv4: destination and, from bit 32 on, source; then ports, from
/// bit 32 on the protocol, and from bit 40 on the group's index. Of IPv6: the halves of the source and of the destination; then
/// ports, from bit 32 on the protocol, and from bit 40 on the flow label; and the group's index.
#[derive(Clone, Copy, Debug)]
pub struct Members<'m> {
    /// What indices lead to.
    pub next_hops: NextHops<'m>,
    /// A word each for IPv4 and IPv6, which says how flows are spread: the kernel's policy in 8 bits, and from bit 32 on its seed,
    /// or 0. Of the policies 0 (addresses, and the label of IPv6) and 1 (ports as well) are known; under others nothing is found.
    pub spread: &'m SharedRegion,
    /// What packets are of.
    pub version: Version,
}

/// Bits of an IPv4 key's second word below the index.
const FLOW_BITS: i32 = 40;

impl Members<'_> {
    pub(super) fn write(&self, asm: &mut Asm, frame: &Frame, missing: Label, doubted: Option<Label>) {
        let (hops, key) = (self.next_hops.hops, frame.key);
        match self.version {
            Version::V4 => self.hash4(asm, frame, missing),
            Version::V6 => self.hash6(asm, frame, missing),
        }
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

    /// R0 becomes the hash of the key's flow, and the slot of the key has the offset of the index.
    fn hash4(&self, asm: &mut Asm, frame: &Frame, missing: Label) {
        asm.mov(Reg::R2, Reg::R1);
        asm.alu(Alu::Rsh, Reg::R2, FLOW_BITS);
        self.next_hops.index(asm);
        asm.store_slot(Size::D, frame.key, INDEX, Reg::R2);
        asm.alu(Alu::Lsh, Reg::R1, 64 - FLOW_BITS);
        asm.alu(Alu::Rsh, Reg::R1, 64 - FLOW_BITS);
        self.spread(asm, 0);
        spread::hash4(asm, frame, missing);
    }

    /// The same of IPv6, where the slot has the key.
    fn hash6(&self, asm: &mut Asm, frame: &Frame, missing: Label) {
        const { assert!(8 * 4 == spread::FLOW && 8 * 3 == INDEX) }
        let (key, [from, from_low, _, to_low]) = (frame.key, spread::HALVES);
        asm.store_slot(Size::D, key, from, Reg::R0);
        asm.store_slot(Size::D, key, from_low, Reg::R1);
        // The last half and the index stand in each other's place.
        asm.load_slot(Size::D, Reg::R2, key, 8 * 5);
        asm.load_slot(Size::D, Reg::R1, key, INDEX);
        asm.store_slot(Size::D, key, to_low, Reg::R1);
        self.next_hops.index(asm);
        asm.store_slot(Size::D, key, INDEX, Reg::R2);
        asm.load_slot(Size::D, Reg::R1, key, spread::FLOW);
        self.spread(asm, 1);
        spread::hash6(asm, frame, missing);
    }

    /// R5 becomes the word that says how flows are spread.
    fn spread(&self, asm: &mut Asm, word: i32) {
        asm.map_value(Reg::R5, self.spread.map().as_fd(), 8 * word);
        asm.load(Size::D, Reg::R5, Reg::R5, 0);
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
