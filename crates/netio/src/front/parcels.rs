//! Packets of the stack that are taken: they leave as parcels.

use super::Reason;
use super::code::{CTX, DATA, END, PORT, Parts, wire16};
use super::port::field;
use crate::parcel;
use causeway_bpf::{Alu, Asm, Cond, Helper, Reg, Size, sk_buff};

/// Bytes at the start of a packet that programs of graphs can read, if it has them: headers with all options.
const READABLE: i32 = 14 + 60 + 60;
/// What the size of segments is of a packet that is a list of them (SCTP's).
const BY_FRAGMENTS: i32 = 0xffff;

impl Parts<'_> {
    /// The program for all packets of a port: the graph, where there is one, or else they are taken as they came. None is the
    /// kernel's.
    pub fn parcel(&mut self, a: &mut Asm) {
        self.refusal = self.place.drop();
        let (readable, short) = (a.label(), a.label());
        a.store(Size::W, CTX, sk_buff::CB, 0);
        // Graphs know tags where they are on a wire.
        a.load(Size::W, Reg::R3, CTX, sk_buff::VLAN_PRESENT);
        a.jump_if(Cond::Ne, Reg::R3, 0, self.taken);
        // It would be no list of segments any more.
        a.load(Size::W, Reg::R3, CTX, sk_buff::GSO_SIZE);
        a.jump_if(Cond::Eq, Reg::R3, BY_FRAGMENTS, self.taken);
        a.load(Size::W, Reg::R2, CTX, sk_buff::LEN);
        a.skb_data(CTX, DATA, END);
        a.mov(Reg::R3, END);
        a.alu(Alu::Sub, Reg::R3, DATA);
        a.jump_if(Cond::Ge, Reg::R3, READABLE, readable);
        a.jump_if(Cond::Eq, Reg::R3, Reg::R2, readable);
        a.jump_if(Cond::Le, Reg::R2, READABLE, short);
        a.mov(Reg::R2, READABLE);
        a.bind(short);
        a.mov(Reg::R1, CTX);
        // If there is no memory for it the graph's program gives up what it cannot read.
        a.call(Helper::SkbPullData);
        a.bind(readable);
        self.graph(a);
        self.send(a, Reason::NoRoom);
        self.leave(a);
    }

    /// Takes the packet, with the luggage that is in front of it: as many bytes as the first word of [`sk_buff::CB`] says. If there is
    /// no room or memory for its label it is `lost`.
    pub fn send(&mut self, a: &mut Asm, lost: Reason) {
        let no_room = self.pass(a, lost);
        a.bind(self.taken);
        a.mov(Reg::R1, CTX);
        a.mov(Reg::R2, i32::from(parcel::LABEL));
        a.mov(Reg::R3, 0);
        a.call(Helper::SkbChangeHead);
        a.jump_if(Cond::Ne, Reg::R0, 0, no_room);
        a.skb_data(CTX, DATA, END);
        a.xdp_require(DATA, END, parcel::LABEL.into(), Reg::R2, no_room);
        a.load(Size::W, Reg::R2, CTX, sk_buff::CB);
        a.store(Size::H, DATA, parcel::LUGGAGE_AT, Reg::R2);
        a.store(Size::H, DATA, parcel::TYPE_AT, wire16(parcel::TYPE));
        a.load(Size::W, Reg::R1, PORT, field::ABOVE);
        a.mov(Reg::R2, 0);
        a.call(Helper::Redirect);
        a.mov(DATA, Reg::R0);
        a.mov(END, Reason::Taken as i32);
        self.count(a);
    }
}
