//! The instructions of the two programs.

use super::{Fragments, Reason};
use crate::bpf::{Alu, Asm, Code, Cond, Helper, Label, Reg, Size, Slot, action, xdp_md};
use crate::error::Result;
use std::os::fd::BorrowedFd;

/// The maps of a classifying program.
#[derive(Debug)]
pub struct Maps<'a> {
    /// XSKMAP by queue.
    pub sockets: BorrowedFd<'a>,
    /// Per-CPU array of 64-bit counters by [`Reason`].
    pub counters: BorrowedFd<'a>,
    /// Hash of IPv4 addresses, 4 bytes.
    pub local4: BorrowedFd<'a>,
    /// Hash of IPv6 addresses, 16 bytes.
    pub local6: BorrowedFd<'a>,
}

/// The program that takes every frame.
///
/// # Errors
/// As [`Asm::finish`].
pub fn take_all(sockets: BorrowedFd<'_>, counters: BorrowedFd<'_>) -> Result<Code> {
    let mut a = Asm::new();
    a.mov(CTX, Reg::R1);
    let mut ends = Ends::new(&mut a);
    ends.emit(&mut a, sockets, counters);
    a.finish()
}

/// The program that takes what is surely in transit and addressed to `mac`.
///
/// # Errors
/// As [`Asm::finish`].
pub fn classify(maps: &Maps<'_>, mac: [u8; 6], fragments: Fragments) -> Result<Code> {
    let mut a = Asm::new();
    let mut ends = Ends::new(&mut a);
    let (ipv4, ipv6) = (a.label(), a.label());
    a.mov(CTX, Reg::R1);
    a.xdp_data(CTX, DATA, END);
    ethernet(&mut a, &mut ends, mac, ipv4, ipv6);
    a.bind(ipv4);
    check_ipv4(&mut a, &mut ends, maps.local4, fragments);
    a.bind(ipv6);
    check_ipv6(&mut a, &mut ends, maps.local6, fragments);
    ends.emit(&mut a, maps.sockets, maps.counters);
    a.finish()
}

/// Registers that calls keep.
const CTX: Reg = Reg::R6;
const DATA: Reg = Reg::R7;
const END: Reg = Reg::R8;
const REASON: Reg = Reg::R9;

/// Bytes of an Ethernet header.
const ETHERNET: i16 = 14;
/// A 16-bit field of the packet as a little-endian load sees it; comparisons need no swap of the loaded value.
fn wire16(value: u16) -> i32 {
    i32::from(u16::from_ne_bytes(value.to_be_bytes()))
}

/// The ends of a program: one stub for each reason used, then the counting, the redirect and the exits.
struct Ends {
    taken: Label,
    passes: Vec<(Reason, Label)>,
    key: Slot,
}

impl Ends {
    fn new(a: &mut Asm) -> Ends {
        Ends { taken: a.label(), passes: Vec::new(), key: a.slot(4) }
    }

    /// Where to jump to leave the frame to the kernel for `reason`.
    fn pass(&mut self, a: &mut Asm, reason: Reason) -> Label {
        if let Some(&(_, label)) = self.passes.iter().find(|(r, _)| *r == reason) {
            return label;
        }
        let label = a.label();
        self.passes.push((reason, label));
        label
    }

    fn emit(&mut self, a: &mut Asm, sockets: BorrowedFd<'_>, counters: BorrowedFd<'_>) {
        let (count, exit) = (a.label(), a.label());
        a.bind(self.taken);
        a.map(Reg::R1, sockets);
        a.load(Size::W, Reg::R2, CTX, xdp_md::RX_QUEUE_INDEX);
        a.mov(Reg::R3, action::XDP_PASS);
        a.call(Helper::RedirectMap);
        a.mov(DATA, Reg::R0);
        a.mov(REASON, Reason::Taken as i32);
        a.jump_if(Cond::Eq, DATA, action::XDP_REDIRECT, count);
        a.mov(REASON, Reason::NoSocket as i32);
        a.jump(count);
        for (reason, label) in std::mem::take(&mut self.passes) {
            a.bind(label);
            a.mov(REASON, reason as i32);
            a.mov(DATA, action::XDP_PASS);
            a.jump(count);
        }
        a.bind(count);
        a.count_per_cpu(counters, REASON, self.key, exit);
        a.bind(exit);
        a.mov(Reg::R0, DATA);
        a.exit();
    }
}

/// Checks the Ethernet header and jumps to the network protocol's part.
fn ethernet(a: &mut Asm, ends: &mut Ends, mac: [u8; 6], ipv4: Label, ipv6: Label) {
    let malformed = ends.pass(a, Reason::Malformed);
    let group = ends.pass(a, Reason::EthernetGroup);
    let other = ends.pass(a, Reason::OtherHost);
    a.xdp_require(DATA, END, ETHERNET.into(), Reg::R2, malformed);
    a.load(Size::B, Reg::R2, DATA, 0);
    a.jump_if(Cond::Set, Reg::R2, 1, group);
    let [m0, m1, m2, m3, m4, m5] = mac;
    a.load(Size::W, Reg::R2, DATA, 0);
    a.jump_if32(Cond::Ne, Reg::R2, i32::from_ne_bytes([m0, m1, m2, m3]), other);
    a.load(Size::H, Reg::R2, DATA, 4);
    a.jump_if(Cond::Ne, Reg::R2, i32::from(u16::from_ne_bytes([m4, m5])), other);
    a.load(Size::H, Reg::R2, DATA, 12);
    a.jump_if(Cond::Eq, Reg::R2, wire16(0x0800), ipv4);
    a.jump_if(Cond::Eq, Reg::R2, wire16(0x86dd), ipv6);
    for (ethertype, reason) in [(0x0806, Reason::Arp), (0x8100, Reason::Vlan), (0x88a8, Reason::Vlan)] {
        let label = ends.pass(a, reason);
        a.jump_if(Cond::Eq, Reg::R2, wire16(ethertype), label);
    }
    let non_ip = ends.pass(a, Reason::NonIp);
    a.jump(non_ip);
}

/// Checks an IPv4 header (RFC 791) and jumps to an end. The checksum is left to the graph, which drops and counts.
fn check_ipv4(a: &mut Asm, ends: &mut Ends, local: BorrowedFd<'_>, fragments: Fragments) {
    let malformed = ends.pass(a, Reason::Malformed);
    let options = ends.pass(a, Reason::IpOptions);
    let ttl = ends.pass(a, Reason::Ttl);
    let special = ends.pass(a, Reason::SpecialAddress);
    let is_local = ends.pass(a, Reason::Local);
    a.xdp_require(DATA, END, i32::from(ETHERNET) + 20, Reg::R2, malformed);
    a.load(Size::B, Reg::R2, DATA, ETHERNET);
    a.mov(Reg::R3, Reg::R2);
    a.alu(Alu::Rsh, Reg::R3, 4);
    a.jump_if(Cond::Ne, Reg::R3, 4, malformed);
    a.jump_if(Cond::Gt, Reg::R2, 0x45, options);
    a.jump_if(Cond::Lt, Reg::R2, 0x45, malformed);
    require_length(a, ETHERNET + 2, 20, 0, malformed);
    if fragments == Fragments::Pass {
        let fragment = ends.pass(a, Reason::Fragment);
        a.load(Size::H, Reg::R2, DATA, ETHERNET + 6);
        a.jump_if(Cond::Set, Reg::R2, wire16(0x3fff), fragment);
    }
    a.load(Size::B, Reg::R2, DATA, ETHERNET + 8);
    a.jump_if(Cond::Le, Reg::R2, 1, ttl);
    for field in [ETHERNET + 12, ETHERNET + 16] {
        a.load(Size::B, Reg::R2, DATA, field);
        a.jump_if(Cond::Ge, Reg::R2, 224, special);
        a.jump_if(Cond::Eq, Reg::R2, 127, special);
        a.jump_if(Cond::Eq, Reg::R2, 0, special);
        // 169.254.0.0/16 is never forwarded (RFC 3927, section 2.7).
        a.load(Size::H, Reg::R2, DATA, field);
        a.jump_if(Cond::Eq, Reg::R2, wire16(0xa9fe), special);
    }
    let key = a.slot(4);
    a.load(Size::W, Reg::R2, DATA, ETHERNET + 16);
    a.store_slot(Size::W, key, 0, Reg::R2);
    take_unless_in(a, local, key, is_local, ends.taken);
}

/// Next-header values that are extension headers (IANA registry; 44, the fragment header, stands apart).
const EXTENSION_HEADERS: [i32; 9] = [0, 43, 51, 60, 135, 139, 140, 253, 254];

/// Checks an IPv6 header (RFC 8200) and jumps to an end.
fn check_ipv6(a: &mut Asm, ends: &mut Ends, local: BorrowedFd<'_>, fragments: Fragments) {
    let malformed = ends.pass(a, Reason::Malformed);
    let extension = ends.pass(a, Reason::ExtensionHeader);
    let ttl = ends.pass(a, Reason::Ttl);
    let special = ends.pass(a, Reason::SpecialAddress);
    let is_local = ends.pass(a, Reason::Local);
    a.xdp_require(DATA, END, i32::from(ETHERNET) + 40, Reg::R2, malformed);
    a.load(Size::B, Reg::R2, DATA, ETHERNET);
    a.alu(Alu::Rsh, Reg::R2, 4);
    a.jump_if(Cond::Ne, Reg::R2, 6, malformed);
    require_length(a, ETHERNET + 4, 0, 40, malformed);
    a.load(Size::B, Reg::R2, DATA, ETHERNET + 6);
    for header in EXTENSION_HEADERS {
        a.jump_if(Cond::Eq, Reg::R2, header, extension);
    }
    if fragments == Fragments::Pass {
        let fragment = ends.pass(a, Reason::Fragment);
        a.jump_if(Cond::Eq, Reg::R2, 44, fragment);
    }
    a.load(Size::B, Reg::R2, DATA, ETHERNET + 7);
    a.jump_if(Cond::Le, Reg::R2, 1, ttl);
    for field in [ETHERNET + 8, ETHERNET + 24] {
        let fine = a.label();
        a.load(Size::H, Reg::R2, DATA, field);
        a.to_be(Reg::R2, 16);
        a.jump_if(Cond::Ge, Reg::R2, 0xff00, special);
        a.mov(Reg::R3, Reg::R2);
        a.alu(Alu::And, Reg::R3, 0xffc0);
        a.jump_if(Cond::Eq, Reg::R3, 0xfe80, special);
        // ::/80 holds ::, ::1 and the embedded IPv4 forms; none of them belongs on the wire.
        a.load(Size::D, Reg::R3, DATA, field);
        a.jump_if(Cond::Ne, Reg::R3, 0, fine);
        a.load(Size::H, Reg::R3, DATA, field + 8);
        a.jump_if(Cond::Eq, Reg::R3, 0, special);
        a.bind(fine);
    }
    let key = a.slot(16);
    for half in [0, 8] {
        a.load(Size::D, Reg::R2, DATA, ETHERNET + 24 + half);
        a.store_slot(Size::D, key, half, Reg::R2);
    }
    take_unless_in(a, local, key, is_local, ends.taken);
}

/// Jumps to `malformed` unless the 16-bit length at `field` is at least `least` and, with `extra` more bytes, ends
/// within the frame.
fn require_length(a: &mut Asm, field: i16, least: i32, extra: i32, malformed: Label) {
    a.load(Size::H, Reg::R2, DATA, field);
    a.to_be(Reg::R2, 16);
    if least > 0 {
        a.jump_if(Cond::Lt, Reg::R2, least, malformed);
    }
    a.mov(Reg::R3, END);
    a.alu(Alu::Sub, Reg::R3, DATA);
    a.alu(Alu::Sub, Reg::R3, i32::from(ETHERNET) + extra);
    a.jump_if(Cond::Gt, Reg::R2, Reg::R3, malformed);
}

fn take_unless_in(a: &mut Asm, local: BorrowedFd<'_>, key: Slot, is_local: Label, taken: Label) {
    a.map(Reg::R1, local);
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Ne, Reg::R0, 0, is_local);
    a.jump(taken);
}
