//! How a packet is redirected to the interface of its next hop.

use crate::frame::Frame;
use crate::table::CANDIDATE;
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, Reg, Size, Slot, action, sk_buff, xdp_md};
use std::os::fd::AsFd;

/// Interfaces that packets can be redirected to, by number of the port.
#[derive(Clone, Copy, Debug)]
pub enum Ways<'m> {
    /// Of frames, at XDP: a [`causeway_bpf::MapKind::DevMap`].
    Frames(&'m Map),
    /// Of packets of the stack, at tcx: a [`causeway_bpf::MapKind::Array`] of interface indices, 0 where there is none.
    ///
    /// A packet may be longer than an interface takes that is to be cut into others. The first word of [`sk_buff::CB`] says how
    /// long those are, in octets from the IP header on, and is 0 for other packets. Whoever leads to the program has written it.
    Packets(&'m Map),
}

/// From this bit on the first word of a next hop has the largest packet.
const MTU_BIT: i32 = 16;

/// What the context is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Frame,
    Packet,
}

impl Ways<'_> {
    pub(crate) fn map(&self) -> &Map {
        match self {
            Ways::Frames(map) | Ways::Packets(map) => map,
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        match self {
            Ways::Frames(_) => Seen::Frame,
            Ways::Packets(_) => Seen::Packet,
        }
    }

    /// Has the kernel agree to redirect the packet to the port in R2, and goes on at `agreed`.
    pub(crate) fn redirect(&self, asm: &mut Asm, frame: &Frame, agreed: Label) {
        asm.map(Reg::R1, self.map().as_fd());
        if self.seen() == Seen::Frame {
            asm.mov(Reg::R3, 0);
            asm.call(Helper::RedirectMap);
            return asm.jump_if(Cond::Eq, Reg::R0, action::XDP_REDIRECT, agreed);
        }
        let none = asm.label();
        asm.store_slot(Size::W, frame.key, CANDIDATE, Reg::R2);
        asm.slot_address(Reg::R2, frame.key);
        asm.alu(Alu::Add, Reg::R2, i32::from(CANDIDATE));
        asm.call(Helper::MapLookup);
        asm.jump_if(Cond::Eq, Reg::R0, 0, none);
        asm.load(Size::W, Reg::R1, Reg::R0, 0);
        asm.jump_if(Cond::Eq, Reg::R1, 0, none);
        asm.mov(Reg::R2, 0);
        asm.call(Helper::Redirect);
        asm.jump_if(Cond::Eq, Reg::R0, action::TCX_REDIRECT, agreed);
        asm.bind(none);
    }

    /// Of a packet that is to be cut into others, in R0 is the first word of the next hop: goes on at `too_long` if those are
    /// longer than the largest packet there, which becomes as large as there are otherwise. Destroys R3 and R4.
    pub(crate) fn admit(&self, asm: &mut Asm, frame: &Frame, too_long: Label) {
        if self.seen() == Seen::Packet {
            let whole = asm.label();
            Seen::Packet.segment(asm, frame.context, Reg::R4);
            asm.jump_if(Cond::Eq, Reg::R4, 0, whole);
            asm.mov(Reg::R3, Reg::R0);
            asm.alu(Alu::Rsh, Reg::R3, MTU_BIT);
            asm.jump_if(Cond::Gt, Reg::R4, Reg::R3, too_long);
            asm.alu(Alu::Or, Reg::R0, -1 << MTU_BIT);
            asm.bind(whole);
        }
    }
}

impl Seen {
    /// `to` = the interface that the packet came in by.
    pub fn ingress(self, asm: &mut Asm, context: Slot, to: Reg) {
        let ifindex = match self {
            Seen::Frame => xdp_md::INGRESS_IFINDEX,
            Seen::Packet => sk_buff::IFINDEX,
        };
        asm.load_slot(Size::D, to, context, 0);
        asm.load(Size::W, to, to, ifindex);
    }

    /// `to` = how long the packets are that one of the stack is to be cut into ([`Ways::Packets`]).
    pub fn segment(self, asm: &mut Asm, context: Slot, to: Reg) {
        asm.load_slot(Size::D, to, context, 0);
        asm.load(Size::W, to, to, sk_buff::CB);
    }
}
