//! The self-check: of one packet in so many the kernel is asked whether it would forward it as the table says.
//!
//! It is asked where the next hop was found, before anything is written. If the kernel would send the packet elsewhere, or
//! nowhere, the packet is the kernel's, the hop's index leads to [`DOUBTED`](crate::hops::DOUBTED) from then on, so that all
//! packets that find it are, and a report says of which packet it was ([`Checks::reports`]). Of a group the
//! kernel may choose any member.

mod report;

pub use report::{Answer, Asked, Asker, Checks, Report};

use crate::counters::Counters;
use crate::frame::Frame;
use crate::hops::{DOUBTED, Hops, MEMBERS};
use crate::table::{CANDIDATE, GROUP, INDEX, LOW_HALF, NextHops, Of, RECORD};
use crate::ways::{Seen, Ways};
use crate::write::{DATA, DATA_END};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Reg, Size, Slot};
use std::os::fd::AsFd;

/// What asks. The hops' words are those of KernelForward's neighbours: port and, from bit 16 on, the largest packet; then the
/// addresses of the Ethernet header, zero where packets leave without one.
#[derive(Clone, Copy, Debug)]
pub struct Check<'m> {
    /// Whose turn it is, and the reports.
    pub checks: &'m Checks,
    /// Where the IP header is in the frame; the packet has all of it.
    pub header: i16,
    /// Of this version.
    pub version: Version,
}

/// An IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4, whose headers have no options here.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// The version's family of addresses, octets of its header, and those that the length in it leaves out.
    const fn parts(self) -> (i32, i16, i32) {
        match self {
            Version::V4 => (2, 20, 0),
            Version::V6 => (10, HEADER, 40),
        }
    }

    /// Where its header has the octets of the packet.
    const fn length_at(self) -> i16 {
        match self {
            Version::V4 => 2,
            Version::V6 => 4,
        }
    }

    /// R4 = octets of the packet with a header at `header` of the frame, or of those that it is to be cut into.
    fn length(self, asm: &mut Asm, header: i16, (seen, context): (Seen, Slot)) {
        let known = asm.label();
        if seen == Seen::Packet {
            seen.segment(asm, context, Reg::R4);
            asm.jump_if(Cond::Ne, Reg::R4, 0, known);
        }
        asm.load(Size::H, Reg::R4, DATA, header + self.length_at());
        asm.to_be(Reg::R4, 16);
        asm.alu(Alu::Add, Reg::R4, self.parts().2);
        asm.bind(known);
    }
}

/// Offsets in a processor's part of the memory.
mod part {
    /// Packets until the next one of which the kernel is asked.
    pub const LEFT: i16 = 0;
    /// Reports that were written, and those that were taken.
    pub const WRITTEN: i16 = 8;
    pub const TAKEN: i16 = 16;
    /// Packets of which the kernel was asked.
    pub const ASKED: i16 = 24;
    /// A key to be looked up.
    pub const KEY: i16 = 32;
    /// What the lookup returned.
    pub const CODE: i16 = 40;
    /// What the kernel is asked, and answers.
    pub const QUESTION: i16 = 64;
    pub const REPORTS: i16 = 128;
    /// Bytes of a part.
    pub const BYTES: u32 = 1_024;
}

/// Reports that a processor has room for.
const REPORTS: i32 = 4;

/// Offsets in a report.
mod in_report {
    pub const INDEX: i16 = 0;
    pub const CODE: i16 = 8;
    pub const INTERFACE: i16 = 12;
    pub const QUESTION: i16 = 16;
    pub const HEADER: i16 = 80;
    /// Bytes of a report.
    pub const BYTES: i32 = 128;
}

/// Offsets in `struct bpf_fib_lookup` (linux/bpf.h), which is question and answer.
mod fib {
    pub const FAMILY: i16 = 0;
    pub const PROTOCOL: i16 = 1;
    pub const SOURCE_PORT: i16 = 2;
    pub const DESTINATION_PORT: i16 = 4;
    pub const LENGTH: i16 = 6;
    pub const INTERFACE: i16 = 8;
    pub const TOS: i16 = 12;
    pub const SOURCE: i16 = 16;
    pub const DESTINATION: i16 = 32;
    pub const VLAN: i16 = 48;
    pub const SOURCE_MAC: i16 = 52;
    pub const DESTINATION_MAC: i16 = 58;
    pub const BYTES: i32 = 64;
}

/// What the lookup returns if it knows the way out and not the neighbour.
const NO_NEIGHBOUR: i32 = 7;
/// Octets of the longest header.
const HEADER: i16 = 40;
/// Protocols whose ports policy rules can ask for: TCP, UDP, SCTP.
const WITH_PORTS: [i32; 3] = [6, 17, 132];

impl Check<'_> {
    /// Goes on at `due` if the kernel is to be asked of this packet; keeps R2 and R3.
    pub(crate) fn count(&self, asm: &mut Asm, frame: &Frame, due: Label) {
        self.part(asm, frame, Reg::R1);
        asm.load(Size::D, Reg::R4, Reg::R1, part::LEFT);
        asm.jump_if(Cond::Eq, Reg::R4, 0, due);
        asm.alu(Alu::Sub, Reg::R4, 1);
        asm.store(Size::D, Reg::R1, part::LEFT, Reg::R4);
    }

    /// Asks. Goes on at `same` if the kernel would do the same, else at `doubted`; destroys R0 to R5.
    pub(crate) fn ask(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        (next_hops, interfaces, of): (&NextHops<'_>, &Ways<'_>, Of),
        [same, doubted]: [Label; 2],
    ) {
        let (hops, differs) = (next_hops.hops, asm.label());
        let seen = (interfaces.seen(), frame.context);
        self.next_turn(asm, frame);
        // What is longer than the table allows is not forwarded.
        record(asm, frame, (hops, RECORD), Reg::R3);
        asm.load(Size::D, Reg::R3, Reg::R3, 0);
        asm.alu(Alu::Rsh, Reg::R3, 16);
        self.version.length(asm, self.header, seen);
        asm.jump_if(Cond::Gt, Reg::R4, Reg::R3, same);
        self.part(asm, frame, Reg::R1);
        asm.alu(Alu::Add, Reg::R1, i32::from(part::QUESTION));
        question(asm, self.version, self.header, seen);
        look_up(asm, frame.context);
        asm.mov(Reg::R5, Reg::R0);
        self.part(asm, frame, Reg::R1);
        asm.store(Size::W, Reg::R1, part::CODE, Reg::R5);
        match of {
            Of::Route => {
                self.compare(asm, frame, (hops, RECORD), interfaces, differs);
                asm.jump(same);
            }
            Of::Group => self.compare_all(asm, frame, (next_hops, interfaces), [same, differs]),
        }
        asm.bind(differs);
        self.report(asm, seen, frame);
        asm.load_slot(Size::D, Reg::R2, frame.key, INDEX);
        asm.map_value(Reg::R3, hops.map().as_fd(), hops.layout().offsets()[0] as i32);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.store(Size::D, Reg::R3, 0, DOUBTED as i32);
        asm.jump(doubted);
    }

    /// `to` = what the lookup returned; destroys R0.
    fn code(&self, asm: &mut Asm, frame: &Frame, to: Reg) {
        self.part(asm, frame, to);
        asm.load(Size::W, to, to, part::CODE);
    }

    /// `to` = this processor's part of the memory; destroys R0.
    fn part(&self, asm: &mut Asm, frame: &Frame, to: Reg) {
        asm.map_value(to, self.checks.map().as_fd(), 0);
        asm.load_slot(Size::D, Reg::R0, frame.counters, 0);
        asm.alu(Alu::Rsh, Reg::R0, (Counters::STRIDE / part::BYTES).trailing_zeros() as i32);
        asm.alu(Alu::Add, to, Reg::R0);
    }

    /// The next turn comes after a random number of packets, or traffic that repeats itself would be asked of the same flow
    /// again and again.
    fn next_turn(&self, asm: &mut Asm, frame: &Frame) {
        let most = self.checks.every() - 1;
        let least = most / 2;
        asm.call(Helper::PrandomU32);
        asm.mov32(Reg::R2, Reg::R0);
        asm.alu32(Alu::Mod, Reg::R2, (most - least + 1) as i32);
        asm.alu(Alu::Add, Reg::R2, least as i32);
        self.part(asm, frame, Reg::R1);
        asm.store(Size::D, Reg::R1, part::LEFT, Reg::R2);
        asm.load(Size::D, Reg::R2, Reg::R1, part::ASKED);
        asm.alu(Alu::Add, Reg::R2, 1);
        asm.store(Size::D, Reg::R1, part::ASKED, Reg::R2);
    }

    /// Goes on at `same` if the answer is one of the group's members, or if only the graph knows one of them.
    fn compare_all(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        (next_hops, interfaces): (&NextHops<'_>, &Ways<'_>),
        [same, differs]: [Label; 2],
    ) {
        let hops = next_hops.hops;
        let member = |asm: &mut Asm, place: usize, end: Label| {
            asm.load_slot(Size::D, Reg::R0, frame.key, GROUP);
            asm.map_value(Reg::R3, hops.map().as_fd(), hops.layout().offsets()[3] as i32);
            asm.alu(Alu::Add, Reg::R3, Reg::R0);
            asm.load(Size::D, Reg::R2, Reg::R3, 8 * place as i16);
            asm.jump_if(Cond::Eq, Reg::R2, 0, end);
            next_hops.member(asm);
        };
        let known = asm.label();
        for place in 0..MEMBERS {
            member(asm, place, known);
            asm.jump_if(Cond::Eq, Reg::R2, 0, same);
        }
        asm.bind(known);
        for place in 0..MEMBERS {
            let next = asm.label();
            member(asm, place, differs);
            next_hops.record(asm, next);
            asm.store_slot(Size::D, frame.key, CANDIDATE, Reg::R2);
            self.compare(asm, frame, (hops, CANDIDATE), interfaces, next);
            asm.jump(same);
            asm.bind(next);
        }
    }

    /// Whether the answer is a hop.
    fn compare(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        hop: (&Hops, i16),
        interfaces: &Ways<'_>,
        differs: Label,
    ) {
        let (same, bare) = (asm.label(), asm.label());
        record(asm, frame, hop, Reg::R3);
        asm.load(Size::D, Reg::R2, Reg::R3, 8);
        asm.load(Size::D, Reg::R4, Reg::R3, 16);
        asm.alu(Alu::Or, Reg::R2, Reg::R4);
        asm.jump_if(Cond::Eq, Reg::R2, 0, bare);
        self.code(asm, frame, Reg::R2);
        asm.jump_if(Cond::Ne, Reg::R2, 0, differs);
        self.compare_interface(asm, frame, hop, interfaces, differs);
        self.compare_addresses(asm, frame, hop, differs);
        asm.jump(same);
        asm.bind(bare);
        // It asks for a neighbour also where none is needed.
        let fine = asm.label();
        self.code(asm, frame, Reg::R2);
        asm.jump_if(Cond::Eq, Reg::R2, NO_NEIGHBOUR, fine);
        asm.jump_if(Cond::Ne, Reg::R2, 0, differs);
        asm.bind(fine);
        self.compare_interface(asm, frame, hop, interfaces, differs);
        asm.bind(same);
    }

    /// Whether the answer's interface is the one that the hop's port stands for; R1 becomes this processor's part.
    fn compare_interface(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        hop: (&Hops, i16),
        interfaces: &Ways<'_>,
        differs: Label,
    ) {
        record(asm, frame, hop, Reg::R3);
        asm.load(Size::H, Reg::R3, Reg::R3, LOW_HALF);
        self.part(asm, frame, Reg::R2);
        asm.alu(Alu::Add, Reg::R2, i32::from(part::KEY));
        asm.store(Size::W, Reg::R2, 0, Reg::R3);
        asm.map(Reg::R1, interfaces.map().as_fd());
        asm.call(Helper::MapLookup);
        asm.jump_if(Cond::Eq, Reg::R0, 0, differs);
        asm.load(Size::W, Reg::R2, Reg::R0, 0);
        self.part(asm, frame, Reg::R1);
        asm.load(Size::W, Reg::R3, Reg::R1, part::QUESTION + fib::INTERFACE);
        asm.jump_if(Cond::Ne, Reg::R2, Reg::R3, differs);
    }

    /// Whether the answer's addresses are the hop's; R1 is this processor's part.
    fn compare_addresses(&self, asm: &mut Asm, frame: &Frame, hop: (&Hops, i16), differs: Label) {
        record(asm, frame, hop, Reg::R3);
        let (to, from) = (part::QUESTION + fib::DESTINATION_MAC, part::QUESTION + fib::SOURCE_MAC);
        // As the hop's words are composed, and aligned as the answer is.
        let words = [[Some((to, 48)), Some((to + 2, 32)), Some((to + 4, 16)), Some((from, 0))], {
            [Some((from + 2, 16)), Some((from + 4, 0)), None, None]
        }];
        for (word, pieces) in (1..).zip(words) {
            asm.load(Size::D, Reg::R4, Reg::R3, 8 * word);
            for (at, shift) in pieces.into_iter().flatten() {
                asm.load(Size::H, Reg::R2, Reg::R1, at);
                asm.to_be(Reg::R2, 16);
                asm.alu(Alu::Lsh, Reg::R2, shift);
                asm.alu(Alu::Xor, Reg::R4, Reg::R2);
            }
            asm.jump_if(Cond::Ne, Reg::R4, 0, differs);
        }
    }

    /// Writes a report, if there is room. A packet that is to be cut is reported with the length
    /// of the others, which the kernel was asked about.
    fn report(&self, asm: &mut Asm, (seen, context): (Seen, Slot), frame: &Frame) {
        let full = asm.label();
        self.part(asm, frame, Reg::R1);
        asm.load(Size::D, Reg::R2, Reg::R1, part::WRITTEN);
        asm.load(Size::D, Reg::R3, Reg::R1, part::TAKEN);
        asm.mov(Reg::R4, Reg::R2);
        asm.alu(Alu::Sub, Reg::R4, Reg::R3);
        asm.jump_if(Cond::Ge, Reg::R4, REPORTS, full);
        asm.alu(Alu::And, Reg::R2, REPORTS - 1);
        asm.alu(Alu::Lsh, Reg::R2, in_report::BYTES.trailing_zeros() as i32);
        asm.mov(Reg::R4, Reg::R1);
        asm.alu(Alu::Add, Reg::R4, Reg::R2);
        asm.alu(Alu::Add, Reg::R4, i32::from(part::REPORTS));
        asm.load_slot(Size::D, Reg::R2, frame.key, INDEX);
        asm.alu(Alu::Rsh, Reg::R2, 3);
        asm.store(Size::D, Reg::R4, in_report::INDEX, Reg::R2);
        asm.load(Size::W, Reg::R2, Reg::R1, part::CODE);
        asm.store(Size::W, Reg::R4, in_report::CODE, Reg::R2);
        seen.ingress(asm, context, Reg::R2);
        asm.store(Size::W, Reg::R4, in_report::INTERFACE, Reg::R2);
        for word in 0..fib::BYTES as i16 / 8 {
            asm.load(Size::D, Reg::R2, Reg::R1, part::QUESTION + 8 * word);
            asm.store(Size::D, Reg::R4, in_report::QUESTION + 8 * word, Reg::R2);
        }
        for word in 0..self.version.parts().1 / 4 {
            asm.load(Size::W, Reg::R2, DATA, self.header + 4 * word);
            asm.store(Size::W, Reg::R4, in_report::HEADER + 4 * word, Reg::R2);
        }
        if seen == Seen::Packet {
            let whole = asm.label();
            seen.segment(asm, context, Reg::R2);
            asm.jump_if(Cond::Eq, Reg::R2, 0, whole);
            asm.alu(Alu::Sub, Reg::R2, self.version.parts().2);
            asm.to_be(Reg::R2, 16);
            asm.store(Size::H, Reg::R4, in_report::HEADER + self.version.length_at(), Reg::R2);
            asm.bind(whole);
        }
        // Who sees that there is one more sees all of it.
        asm.load(Size::D, Reg::R2, Reg::R1, part::WRITTEN);
        asm.alu(Alu::Add, Reg::R2, 1);
        asm.exchange(Size::D, Reg::R1, part::WRITTEN, Reg::R2);
        asm.bind(full);
    }
}

/// `to` = the record of the hop whose offset is in a part of the key's slot; destroys R0.
fn record(asm: &mut Asm, frame: &Frame, (hops, slot): (&Hops, i16), to: Reg) {
    asm.load_slot(Size::D, Reg::R0, frame.key, slot);
    asm.map_value(to, hops.map().as_fd(), hops.layout().offsets()[1] as i32);
    asm.alu(Alu::Add, to, Reg::R0);
}

/// Writes the question to R1, about the packet whose header is at `header` of the frame; destroys R0 and R2 to R4.
fn question(asm: &mut Asm, version: Version, header: i16, (seen, context): (Seen, Slot)) {
    let (family, header_len, _) = version.parts();
    let (ports, without) = (asm.label(), asm.label());
    for at in [fib::FAMILY, fib::INTERFACE, fib::VLAN] {
        asm.store(Size::D, Reg::R1, at, 0);
    }
    asm.store(Size::B, Reg::R1, fib::FAMILY, family);
    let copy = |asm: &mut Asm, size, from: i16, to| {
        asm.load(size, Reg::R2, DATA, header + from);
        asm.store(size, Reg::R1, to, Reg::R2);
    };
    let protocol = match version {
        Version::V4 => {
            copy(asm, Size::B, 1, fib::TOS);
            copy(asm, Size::W, 12, fib::SOURCE);
            copy(asm, Size::W, 16, fib::DESTINATION);
            9
        }
        Version::V6 => {
            // Class and label without the version.
            asm.load(Size::W, Reg::R2, DATA, header);
            asm.to_be(Reg::R2, 32);
            asm.alu(Alu::And, Reg::R2, 0x0fff_ffff);
            asm.to_be(Reg::R2, 32);
            asm.store(Size::W, Reg::R1, fib::TOS, Reg::R2);
            for word in 0..4 {
                copy(asm, Size::W, 8 + 4 * word, fib::SOURCE + 4 * word);
                copy(asm, Size::W, 24 + 4 * word, fib::DESTINATION + 4 * word);
            }
            6
        }
    };
    version.length(asm, header, (seen, context));
    asm.store(Size::H, Reg::R1, fib::LENGTH, Reg::R4);
    seen.ingress(asm, context, Reg::R2);
    asm.store(Size::W, Reg::R1, fib::INTERFACE, Reg::R2);
    copy(asm, Size::B, protocol, fib::PROTOCOL);
    for protocol in WITH_PORTS {
        asm.jump_if(Cond::Eq, Reg::R2, protocol, ports);
    }
    asm.jump(without);
    asm.bind(ports);
    asm.xdp_require(DATA, DATA_END, i32::from(header + header_len) + 4, Reg::R0, without);
    copy(asm, Size::H, header_len, fib::SOURCE_PORT);
    copy(asm, Size::H, header_len + 2, fib::DESTINATION_PORT);
    asm.bind(without);
}

/// Asks the question in R1: R0 is 0 if the packet would be forwarded, as the answer in its place says.
fn look_up(asm: &mut Asm, context: Slot) {
    asm.mov(Reg::R2, Reg::R1);
    asm.load_slot(Size::D, Reg::R1, context, 0);
    asm.mov(Reg::R3, fib::BYTES);
    asm.mov(Reg::R4, 0);
    asm.call(Helper::FibLookup);
}
