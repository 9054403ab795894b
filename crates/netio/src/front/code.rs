//! The instructions of the program behind the gate.

use super::port::{PortRecord, field};
use super::{PORTS, Place, Reason, flag};
use crate::Result;
use causeway_bpf::{Alu, Asm, Code, Cond, Helper, Label, Reg, Size, Slot};
use std::os::fd::BorrowedFd;

/// The maps of the program.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    /// Hash of `PortRecord`s by interface index.
    pub ports: BorrowedFd<'a>,
    /// Array of one value: words that lead to records, and those ([`near`]).
    pub near: BorrowedFd<'a>,
    /// XSKMAP of all ports' sockets.
    pub sockets: BorrowedFd<'a>,
    /// Per-CPU array of 64-bit counters: [`Reason`]s of all ports.
    pub counters: BorrowedFd<'a>,
    /// Array of one word, the [`Lease`](super::Lease).
    pub lease: BorrowedFd<'a>,
    /// Hash of IPv4 addresses, 4 bytes.
    pub local4: BorrowedFd<'a>,
    /// Hash of IPv6 addresses, 16 bytes.
    pub local6: BorrowedFd<'a>,
    /// Array of one value, 65 536 bits: which hashes the addresses in both have ([`FILTER_MULTIPLIER`]).
    pub local_filter: BorrowedFd<'a>,
    /// Programs of graphs by number of the port, if there may be any.
    pub graphs: Option<BorrowedFd<'a>>,
    /// Whether all that is taken brings luggage ([`Front::with_luggage`](super::Front::with_luggage)).
    pub luggage: bool,
    /// Whether it brings its time of arrival ([`Front::with_arrivals`](super::Front::with_arrivals)).
    pub arrivals: bool,
}

/// Places for near records: more than there are ports, for those that were replaced.
pub(super) const NEAR_RECORDS: u32 = 2 * PORTS;
/// Bytes of one.
pub(super) const NEAR: u32 = (PortRecord::LEN as u32).next_power_of_two();

/// Where the records of ports are that are found without a hash. Interface indices that end in the same bits share a word, which
/// one of them has: its index in the upper half, the number of its record in the lower. Index 0 is no interface's.
pub(super) mod near {
    use super::{NEAR, NEAR_RECORDS};

    /// Words.
    pub const WORDS: u32 = 1_024;
    /// Bytes of all.
    pub const BYTES: usize = record(NEAR_RECORDS);

    /// Offset of an interface's word.
    pub const fn word(ifindex: u32) -> usize {
        (ifindex % WORDS) as usize * 8
    }

    /// Offset of the record with a number.
    pub const fn record(number: u32) -> usize {
        (WORDS * 8 + number * NEAR) as usize
    }
}

/// Registers that calls keep.
pub(super) const CTX: Reg = Reg::R6;
pub(super) const DATA: Reg = Reg::R7;
pub(super) const END: Reg = Reg::R8;
/// The port's record.
pub(super) const PORT: Reg = Reg::R9;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: i16 = 14;
pub(super) const TCP: i32 = 6;

/// A 16-bit field of the packet as a load on this machine sees it; comparisons need no swap of the loaded value.
pub(super) fn wire16(value: u16) -> i32 {
    i32::from(u16::from_ne_bytes(value.to_be_bytes()))
}

/// The program that takes what the port's record says: every frame, or what is surely in transit. At tcx every packet is taken
/// where ports bring luggage, and elsewhere nothing but what a graph's program forwards.
///
/// # Errors
/// As [`Asm::finish`].
pub fn code(maps: &Maps<'_>, place: Place) -> Result<Code> {
    let mut a = Asm::new();
    let mut p = Parts::new(&mut a, *maps, place);
    let (ipv4, ipv6) = (a.label(), a.label());
    p.find_port(&mut a);
    if place == Place::Tcx && maps.luggage {
        p.parcel(&mut a);
        return a.finish();
    }
    let plain = a.label();
    match place {
        Place::Xdp => p.frame(&mut a),
        Place::Tcx => {
            p.packet(&mut a);
            p.flag(&mut a, flag::NO_ETHERNET);
            a.jump_if(Cond::Ne, Reg::R2, 0, plain);
        }
    }
    p.ethernet(&mut a, ipv4, ipv6);
    a.bind(ipv4);
    p.ipv4(&mut a);
    a.bind(ipv6);
    p.ipv6(&mut a);
    if place == Place::Tcx {
        let (ipv4, ipv6) = (a.label(), a.label());
        p.ip = 0;
        a.bind(plain);
        p.plain(&mut a, ipv4, ipv6);
        a.bind(ipv4);
        p.ipv4(&mut a);
        a.bind(ipv6);
        p.ipv6(&mut a);
    }
    p.ends(&mut a);
    a.finish()
}

/// The program that takes every frame of a port, for those that a graph's program gives up: they have been judged. What cannot
/// be taken is the kernel's, or is dropped, if the program has `written` to it, and always at tcx, where luggage is written.
///
/// # Errors
/// As [`Asm::finish`].
pub fn taking(maps: &Maps<'_>, place: Place, written: bool) -> Result<Code> {
    let mut a = Asm::new();
    // What comes here has its luggage already.
    let mut p = Parts::new(&mut a, Maps { luggage: false, ..*maps }, place);
    if written || place == Place::Tcx {
        p.refusal = place.drop();
    }
    p.find_port(&mut a);
    match place {
        Place::Xdp => p.take(&mut a),
        Place::Tcx => p.send(&mut a, Reason::HalfDone),
    }
    p.leave(&mut a);
    a.finish()
}

/// The program that leaves every frame of a port to the kernel for one reason, for those that a graph's program does.
///
/// # Errors
/// As [`Asm::finish`].
pub fn passing(maps: &Maps<'_>, place: Place, reason: Reason) -> Result<Code> {
    let mut a = Asm::new();
    let p = Parts::new(&mut a, *maps, place);
    p.find_port(&mut a);
    p.pass_for(&mut a, reason);
    a.finish()
}

/// What the parts of the program share: maps, places on the stack, and where they leave to.
pub(super) struct Parts<'a> {
    pub maps: Maps<'a>,
    pub place: Place,
    /// Where the IP header is.
    pub ip: i16,
    /// Takes the frame if the lease stands.
    pub transit: Label,
    /// Takes the frame.
    pub taken: Label,
    /// What is returned for a packet that is not taken.
    pub refusal: i32,
    pub passes: Vec<(Reason, Label)>,
    pub key: Slot,
    /// Bytes of the frame.
    pub length: Slot,
}

impl<'a> Parts<'a> {
    fn new(a: &mut Asm, maps: Maps<'a>, place: Place) -> Self {
        let (transit, taken) = (a.label(), a.label());
        let (refusal, passes) = (place.pass(), Vec::new());
        Parts {
            maps,
            place,
            ip: ETHERNET,
            transit,
            taken,
            refusal,
            passes,
            key: a.slot(16),
            length: a.slot(8),
        }
    }

    /// Where to jump to leave the frame to the kernel for `reason`.
    pub fn pass(&mut self, a: &mut Asm, reason: Reason) -> Label {
        if let Some(&(_, label)) = self.passes.iter().find(|(r, _)| *r == reason) {
            return label;
        }
        let label = a.label();
        self.passes.push((reason, label));
        label
    }

    /// Finds the port's record; a frame of an interface without one is none of ours.
    fn find_port(&self, a: &mut Asm) {
        let (far, known) = (a.label(), a.label());
        a.mov(CTX, Reg::R1);
        a.load(Size::W, Reg::R2, CTX, self.place.ifindex());
        a.mov(Reg::R3, Reg::R2);
        a.alu(Alu::And, Reg::R3, near::WORDS as i32 - 1);
        a.alu(Alu::Lsh, Reg::R3, 3);
        a.map_value(Reg::R4, self.maps.near, 0);
        a.alu(Alu::Add, Reg::R4, Reg::R3);
        a.load(Size::D, Reg::R3, Reg::R4, 0);
        a.mov(Reg::R4, Reg::R3);
        a.alu(Alu::Rsh, Reg::R4, 32);
        a.jump_if(Cond::Ne, Reg::R4, Reg::R2, far);
        a.alu(Alu::And, Reg::R3, NEAR_RECORDS as i32 - 1);
        a.alu(Alu::Lsh, Reg::R3, NEAR.trailing_zeros() as i32);
        a.map_value(PORT, self.maps.near, near::record(0) as i32);
        a.alu(Alu::Add, PORT, Reg::R3);
        a.jump(known);
        a.bind(far);
        a.store_slot(Size::W, self.key, 0, Reg::R2);
        a.map(Reg::R1, self.maps.ports);
        a.slot_address(Reg::R2, self.key);
        a.call(Helper::MapLookup);
        a.mov(PORT, Reg::R0);
        a.jump_if(Cond::Ne, PORT, 0, known);
        a.mov(Reg::R0, self.refusal);
        a.exit();
        a.bind(known);
    }

    /// Notes the frame's length, and takes it if all are taken.
    fn frame(&mut self, a: &mut Asm) {
        let transit = a.label();
        self.length(a);
        a.xdp_data(CTX, DATA, END);
        self.flag(a, flag::ALL);
        a.jump_if(Cond::Eq, Reg::R2, 0, transit);
        if self.maps.luggage {
            self.graph(a);
        }
        a.jump(self.taken);
        a.bind(transit);
    }

    /// Notes the frame's length. A longer one than the pool's frames hold would be lost on the way to its socket.
    fn length(&mut self, a: &mut Asm) {
        let too_long = self.pass(a, Reason::TooLong);
        a.mov(Reg::R1, CTX);
        a.call(Helper::XdpGetBuffLen);
        a.store_slot(Size::D, self.length, 0, Reg::R0);
        a.load(Size::W, Reg::R1, PORT, field::LONGEST);
        a.jump_if(Cond::Gt, Reg::R0, Reg::R1, too_long);
    }

    /// `R2 = flags & wanted`.
    pub fn flag(&self, a: &mut Asm, wanted: u16) {
        a.load(Size::H, Reg::R2, PORT, field::FLAGS);
        a.alu(Alu::And, Reg::R2, i32::from(wanted));
    }

    /// Checks the Ethernet header and jumps to the network protocol's part.
    fn ethernet(&mut self, a: &mut Asm, ipv4: Label, ipv6: Label) {
        let malformed = self.pass(a, Reason::Malformed);
        let group = self.pass(a, Reason::EthernetGroup);
        let other = self.pass(a, Reason::OtherHost);
        a.xdp_require(DATA, END, ETHERNET.into(), Reg::R2, malformed);
        a.load(Size::B, Reg::R2, DATA, 0);
        a.jump_if(Cond::Set, Reg::R2, 1, group);
        for (size, at) in [(Size::W, 0), (Size::H, 4)] {
            a.load(size, Reg::R2, DATA, at);
            a.load(size, Reg::R3, PORT, field::MAC + at);
            a.jump_if(Cond::Ne, Reg::R2, Reg::R3, other);
        }
        a.load(Size::H, Reg::R2, DATA, 12);
        a.jump_if(Cond::Eq, Reg::R2, wire16(0x0800), ipv4);
        a.jump_if(Cond::Eq, Reg::R2, wire16(0x86dd), ipv6);
        for (ethertype, reason) in [(0x0806, Reason::Arp), (0x8100, Reason::Vlan), (0x88a8, Reason::Vlan)] {
            let label = self.pass(a, reason);
            a.jump_if(Cond::Eq, Reg::R2, wire16(ethertype), label);
        }
        let non_ip = self.pass(a, Reason::NonIp);
        a.jump(non_ip);
    }

    /// Checks an IPv4 header (RFC 791) and jumps to an end. The checksum is left to the graph.
    fn ipv4(&mut self, a: &mut Asm) {
        let ip = self.ip;
        let malformed = self.pass(a, Reason::Malformed);
        let not_taken = self.pass(a, Reason::NotTaken);
        let options = self.pass(a, Reason::IpOptions);
        let ttl = self.pass(a, Reason::Ttl);
        let special = self.pass(a, Reason::SpecialAddress);
        self.flag(a, flag::IPV4);
        a.jump_if(Cond::Eq, Reg::R2, 0, not_taken);
        a.xdp_require(DATA, END, i32::from(ip) + 20, Reg::R2, malformed);
        a.load(Size::B, Reg::R2, DATA, ip);
        a.mov(Reg::R3, Reg::R2);
        a.alu(Alu::Rsh, Reg::R3, 4);
        a.jump_if(Cond::Ne, Reg::R3, 4, malformed);
        a.jump_if(Cond::Gt, Reg::R2, 0x45, options);
        a.jump_if(Cond::Lt, Reg::R2, 0x45, malformed);
        self.require_length(a, ip + 2, 20, 0);
        a.load(Size::B, Reg::R2, DATA, ip + 8);
        a.jump_if(Cond::Le, Reg::R2, 1, ttl);
        for at in [ip + 12, ip + 16] {
            a.load(Size::B, Reg::R2, DATA, at);
            a.jump_if(Cond::Ge, Reg::R2, 224, special);
            a.jump_if(Cond::Eq, Reg::R2, 127, special);
            a.jump_if(Cond::Eq, Reg::R2, 0, special);
            // 169.254.0.0/16 is never forwarded (RFC 3927, section 2.7).
            a.load(Size::H, Reg::R2, DATA, at);
            a.jump_if(Cond::Eq, Reg::R2, wire16(0xa9fe), special);
        }
        self.judge(a, &Version::v4(ip));
        a.load(Size::W, Reg::R2, DATA, ip + 16);
        a.store_slot(Size::W, self.key, 0, Reg::R2);
        a.mov(Reg::R3, Reg::R2);
        self.transit_unless_in(a, self.maps.local4);
    }

    /// Checks an IPv6 header (RFC 8200) and jumps to an end.
    fn ipv6(&mut self, a: &mut Asm) {
        let ip = self.ip;
        let malformed = self.pass(a, Reason::Malformed);
        let not_taken = self.pass(a, Reason::NotTaken);
        let extension = self.pass(a, Reason::ExtensionHeader);
        let ttl = self.pass(a, Reason::Ttl);
        let special = self.pass(a, Reason::SpecialAddress);
        self.flag(a, flag::IPV6);
        a.jump_if(Cond::Eq, Reg::R2, 0, not_taken);
        a.xdp_require(DATA, END, i32::from(ip) + 40, Reg::R2, malformed);
        a.load(Size::B, Reg::R2, DATA, ip);
        a.alu(Alu::Rsh, Reg::R2, 4);
        a.jump_if(Cond::Ne, Reg::R2, 6, malformed);
        // Before the length, which a hop-by-hop header may say instead of this one: the stack cuts such a packet by that.
        a.load(Size::B, Reg::R2, DATA, ip + 6);
        for header in EXTENSION_HEADERS {
            a.jump_if(Cond::Eq, Reg::R2, header, extension);
        }
        self.require_length(a, ip + 4, 0, 40);
        a.load(Size::B, Reg::R2, DATA, ip + 7);
        a.jump_if(Cond::Le, Reg::R2, 1, ttl);
        for at in [ip + 8, ip + 24] {
            let fine = a.label();
            a.load(Size::H, Reg::R2, DATA, at);
            a.to_be(Reg::R2, 16);
            a.jump_if(Cond::Ge, Reg::R2, 0xff00, special);
            a.mov(Reg::R3, Reg::R2);
            a.alu(Alu::And, Reg::R3, 0xffc0);
            a.jump_if(Cond::Eq, Reg::R3, 0xfe80, special);
            // ::/80 holds ::, ::1 and the embedded IPv4 forms; none of them belongs on the wire.
            a.load(Size::D, Reg::R3, DATA, at);
            a.jump_if(Cond::Ne, Reg::R3, 0, fine);
            a.load(Size::H, Reg::R3, DATA, at + 8);
            a.jump_if(Cond::Eq, Reg::R3, 0, special);
            a.bind(fine);
        }
        self.judge(a, &Version::v6(ip));
        a.mov(Reg::R3, 0);
        for half in [0, 8] {
            a.load(Size::D, Reg::R2, DATA, ip + 24 + half);
            a.store_slot(Size::D, self.key, half, Reg::R2);
            a.alu(Alu::Xor, Reg::R3, Reg::R2);
        }
        a.mov(Reg::R2, Reg::R3);
        a.alu(Alu::Rsh, Reg::R2, 32);
        a.alu(Alu::Xor, Reg::R3, Reg::R2);
        self.transit_unless_in(a, self.maps.local6);
    }

    /// Leaves unless the 16-bit length at `at` is at least `least` and, with `extra` more bytes, ends within the
    /// frame.
    fn require_length(&mut self, a: &mut Asm, at: i16, least: i32, extra: i32) {
        let malformed = self.pass(a, Reason::Malformed);
        a.load(Size::H, Reg::R2, DATA, at);
        a.to_be(Reg::R2, 16);
        if least > 0 {
            a.jump_if(Cond::Lt, Reg::R2, least, malformed);
        }
        a.load_slot(Size::D, Reg::R3, self.length, 0);
        a.alu(Alu::Add, Reg::R2, i32::from(self.ip) + extra);
        a.jump_if(Cond::Gt, Reg::R2, Reg::R3, malformed);
        if self.place == Place::Tcx {
            // The shorter header of the two counts all of the packet in its length.
            self.trim(a, i32::from(self.ip) + extra.max(20));
        }
    }

    /// Looks at what virtual ports have that a wire has not.
    fn judge(&mut self, a: &mut Asm, version: &Version) {
        match self.place {
            Place::Xdp => self.guard(a, version),
            Place::Tcx => self.segment(a, version),
        }
    }

    /// The address is in the key, and its words folded to one by exclusive or are the lower half of R3.
    fn transit_unless_in(&mut self, a: &mut Asm, local: BorrowedFd<'_>) {
        let is_local = self.pass(a, Reason::Local);
        let may_be = a.label();
        a.alu32(Alu::Mul, Reg::R3, FILTER_MULTIPLIER as i32);
        a.alu32(Alu::Rsh, Reg::R3, 16);
        a.mov(Reg::R2, Reg::R3);
        a.alu(Alu::And, Reg::R2, 63);
        a.alu(Alu::Rsh, Reg::R3, 6);
        a.alu(Alu::Lsh, Reg::R3, 3);
        a.map_value(Reg::R1, self.maps.local_filter, 0);
        a.alu(Alu::Add, Reg::R1, Reg::R3);
        a.load(Size::D, Reg::R1, Reg::R1, 0);
        a.alu(Alu::Rsh, Reg::R1, Reg::R2);
        a.jump_if(Cond::Set, Reg::R1, 1, may_be);
        a.jump(self.transit);
        a.bind(may_be);
        a.map(Reg::R1, local);
        a.slot_address(Reg::R2, self.key);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Ne, Reg::R0, 0, is_local);
        a.jump(self.transit);
    }
}

/// What the words of an address, folded to one, are multiplied by: the upper half of the product is the address's bit in the filter
/// (Knuth, The Art of Computer Programming, volume 3, section 6.4).
pub(super) const FILTER_MULTIPLIER: u32 = 0x9e37_79b1;

/// Next-header values that are extension headers (IANA registry; 44, the fragment header, stands apart).
const EXTENSION_HEADERS: [i32; 9] = [0, 43, 51, 60, 135, 139, 140, 253, 254];
const FRAGMENT_HEADER: i32 = 44;

/// Where an IP version has its header, and what the pseudo-header is made of; offsets in the frame.
pub(super) struct Version {
    pub ip: i16,
    pub protocol: i16,
    pub icmp: i32,
    /// A 16-bit length that counts this many bytes of the IP header.
    pub length: i16,
    pub header_in_length: i32,
    pub addresses: i16,
    pub address_words: i16,
    pub transport: i16,
    /// Jumps to the label if the packet with its header there is a fragment: those are made after their checksum was finished.
    pub skip_fragment: fn(&mut Asm, i16, Label),
}

impl Version {
    /// IPv4, with its header there.
    const fn v4(ip: i16) -> Version {
        Version {
            ip,
            protocol: ip + 9,
            icmp: 1,
            length: ip + 2,
            header_in_length: 20,
            addresses: ip + 12,
            address_words: 2,
            transport: ip + 20,
            skip_fragment: |a, ip, fragment| {
                a.load(Size::H, Reg::R2, DATA, ip + 6);
                a.jump_if(Cond::Set, Reg::R2, wire16(0x3fff), fragment);
            },
        }
    }

    /// IPv6, with its header there.
    const fn v6(ip: i16) -> Version {
        Version {
            ip,
            protocol: ip + 6,
            icmp: 58,
            length: ip + 4,
            header_in_length: 0,
            addresses: ip + 8,
            address_words: 8,
            transport: ip + 40,
            skip_fragment: |a, ip, fragment| {
                a.load(Size::B, Reg::R2, DATA, ip + 6);
                a.jump_if(Cond::Eq, Reg::R2, FRAGMENT_HEADER, fragment);
            },
        }
    }
}
