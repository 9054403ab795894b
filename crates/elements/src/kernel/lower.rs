//! What KernelForward does to a packet, as a program: for the driver.
//!
//! It says nothing of the lease, which whoever runs it looks at. Given up is all that the element leaves to the kernel, and of
//! the packets to routes with several next hops those whose flow is not plain to see.

use super::forwarding::{Forwarding, KERNEL, Neighbour, Paths, PortPolicy, Readers, ReversePath};
use super::version::{ETHERNET, NEIGHBOUR_DISCOVERY, NOT_FOR_ROUTERS};
use causeway_engine::ir::{Alu, At, Field, Key, Program, Reg, Table, Test, Value};
use causeway_engine::prelude::*;
use causeway_fib::{AdjacencyIndex, Lookup, Pinned};
use std::sync::Arc;

/// Tables of a [`program`], by number. Keys are one word where nothing else is said.
pub mod table {
    /// By number of a port, its policy ([`super::PortPolicy::to_bits`]).
    pub const POLICIES: usize = 0;
    /// By IPv4 address, what the route to it is as a way back ([`super::Paths::to_bits`]).
    pub const PATHS: usize = 1;
    /// By IPv4 address, the next hop ([`super::Neighbour::words`]), or [`super::GROUP`] and the index of a group.
    pub const NEXT_HOPS: usize = 2;
    /// By index of a group and flow, the next hop. The key is destination and, from bit 32 on, source; then ports, from bit 32
    /// on the protocol, and from bit 40 on the index.
    pub const MEMBERS: usize = 3;
    /// As [`PATHS`], by IPv6 address: its upper half, and its lower.
    pub const PATHS6: usize = 4;
    /// As [`NEXT_HOPS`], by such a key.
    pub const NEXT_HOPS6: usize = 5;
    /// As [`MEMBERS`]. The key is the two halves of the source and of the destination; then ports, from bit 32 on the protocol,
    /// and from bit 40 on the flow label; and the index.
    pub const MEMBERS6: usize = 6;
    /// How many there are.
    pub const COUNT: usize = 7;
}

/// What packets begin with that come in by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// An Ethernet header.
    Ethernet,
    /// The IP header: the port has no link-layer headers.
    Ip,
}

impl Begins {
    /// Bytes in front of the IP header.
    #[must_use]
    pub const fn ip(self) -> u32 {
        match self {
            Begins::Ethernet => ETHERNET as u32,
            Begins::Ip => 0,
        }
    }

    const fn at(self, offset: u32) -> At {
        At::data(self.ip() + offset)
    }
}

/// In place of a port's number: there are several next hops.
pub const GROUP: u16 = KERNEL - 1;

/// Protocols whose first four octets the kernel takes for ports: TCP, UDP, DCCP, ESP, SCTP, UDP-Lite.
const WITH_PORTS: [u64; 6] = [6, 17, 33, 50, 132, 136];

/// Where packets of an IP version say which flow they are of.
struct Flows {
    /// Octets of the header, and where it has the protocol.
    header_len: u32,
    protocol_at: u32,
    /// Protocols behind which the ports are at another place, or farther on.
    unclear: &'static [u64],
    /// ICMP, and its messages that are about another packet, whose flow they may count to.
    icmp: u64,
    errors: &'static [u64],
}

/// The authentication header is unclear; errors are those of RFC 792.
const FLOWS4: Flows =
    Flows { header_len: 20, protocol_at: 9, unclear: &[51], icmp: 1, errors: &[3, 4, 5, 11, 12] };
/// Options for the destination are unclear as well, those of other extension headers that are not given up anyway; errors are
/// those of RFC 4443.
const FLOWS6: Flows =
    Flows { header_len: 40, protocol_at: 6, unclear: &[51, 60], icmp: 58, errors: &[1, 2, 3, 4] };

/// Where the protocol and what is not the ports' is in the word of a flow.
const PROTOCOL_BIT: u64 = 32;
const ABOVE_BIT: u64 = 40;

/// Types in Ethernet headers.
const TYPE4: u64 = 0x0800;
const TYPE6: u64 = 0x86dd;

const PORT_BITS: u64 = 16;

impl Neighbour {
    /// Whether packets leave without an Ethernet header.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.addresses == [0; 12]
    }

    /// Port and largest packet; the first eight bytes of an Ethernet header, and the next four.
    #[must_use]
    pub fn words(&self) -> [u64; 3] {
        let (first, last) = self.addresses.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        [u64::from(self.port) | u64::from(self.mtu_bytes) << PORT_BITS, number(first), number(last)]
    }
}

/// What is done to packets that come in by port number `port`: they leave by the output with the number of the port that they
/// are to leave by, as the element would have them leave, or are given up.
///
/// To a neighbour without addresses they leave with or without an Ethernet header, as they came: who takes them there takes it
/// off. Those that came without one get one for other neighbours.
#[must_use]
pub fn program(forwarding: &Arc<Forwarding>, port: u16, begins: Begins) -> Option<Program> {
    let mut b = Builder::new();
    let [policy, ..] = b.look_up(Box::new(Policies(forwarding.clone())), [u64::from(port).into()]);
    b.require(Test::Has(begins.at(0), 20));
    let (kind, kinds) = match begins {
        Begins::Ethernet => (b.load(At::data(12), 2), [TYPE4, TYPE6]),
        Begins::Ip => {
            let first = b.load(At::data(0), 1);
            (b.compute(Alu::Shr, first, 4), [4, 6])
        }
    };
    let (four, rest) = (b.block(), b.block());
    b.branch(Test::Equal(kind.into(), kinds[0].into()), four, rest);
    b.at(four);
    let way = Way { forwarding, policy, port, begins };
    b.with_scratch(|b| four_of(b, &way));
    b.at(rest);
    b.require(Test::Equal(kind.into(), kinds[1].into()));
    b.with_scratch(|b| six_of(b, &way));
    b.finish()
}

/// What the parts of a program share.
struct Way<'a> {
    forwarding: &'a Arc<Forwarding>,
    policy: Reg,
    port: u16,
    begins: Begins,
}

/// What is done to IPv4 packets.
fn four_of(b: &mut Builder, &Way { forwarding, policy, port, begins }: &Way<'_>) {
    let tables = || (forwarding.clone(), forwarding.readers());
    let (source, destination, len) = header(b, begins);
    may_forward(b, policy, PortPolicy::IPV4);
    let [paths, ..] = b.look_up(Box::new(Back(tables())), [source.into()]);
    b.with_scratch(|b| check_source(b, policy, paths, port));
    let found = b.look_up(Box::new(Ahead(tables())), [destination.into()]);
    let member = |b: &mut Builder| {
        let flow = flow(b, begins, &FLOWS4, len);
        let above = b.compute(Alu::Shl, found[1], ABOVE_BIT);
        let flow = b.compute(Alu::Or, flow, above);
        let (source, destination) = (b.load(begins.at(12), 4), b.load(begins.at(16), 4));
        let source = b.compute(Alu::Shl, source, 32);
        let addresses = b.compute(Alu::Or, source, destination);
        b.look_up(Box::new(Members(tables())), [addresses.into(), flow.into()])
    };
    by_one_of(b, found, member, |b, hop| {
        let to = may_leave(b, hop[0], len);
        may_return(b, policy, to, port);
        go_out(b, begins, (&FOUR, hop), (to, len));
    });
}

/// Goes on with the next hop that was found, or with the member of the group that was.
fn by_one_of(
    b: &mut Builder,
    found: [Reg; 3],
    member: impl FnOnce(&mut Builder) -> [Reg; 3],
    go_on: impl Fn(&mut Builder, [Reg; 3]),
) {
    let (single, group) = (b.block(), b.block());
    b.branch(Test::Equal(found[0].into(), u64::from(GROUP).into()), group, single);
    b.at(single);
    b.with_scratch(|b| go_on(b, found));
    b.at(group);
    b.with_scratch(|b| {
        let hop = member(b);
        go_on(b, hop);
    });
}

/// What is done to IPv6 packets.
fn six_of(b: &mut Builder, &Way { forwarding, policy, port, begins }: &Way<'_>) {
    let tables = || (forwarding.clone(), forwarding.readers());
    let len = header6(b, begins);
    may_forward(b, policy, PortPolicy::IPV6);
    let at = |offset| begins.at(offset);
    let address = |b: &mut Builder, offset| [b.load(at(offset), 8), b.load(at(offset + 8), 8)].map(Value::Of);
    let source = address(b, 8);
    let [paths, ..] = b.look_up(Box::new(Back6(tables())), source);
    let ours = b.compute(Alu::And, paths, Paths::ours().to_bits());
    b.require(Test::Equal(ours.into(), 0.into()));
    let destination = address(b, 24);
    let found = b.look_up(Box::new(Ahead6(tables())), destination);
    let member = |b: &mut Builder| {
        let flow = flow(b, begins, &FLOWS6, len);
        let label = b.load(at(0), 4);
        let label = b.compute(Alu::And, label, 0xf_ffff);
        let label = b.compute(Alu::Shl, label, ABOVE_BIT);
        let flow = b.compute(Alu::Or, flow, label);
        let ([from, from_low], [to, to_low]) = (address(b, 8), address(b, 24));
        b.look_up(Box::new(Members6(tables())), [from, from_low, to, to_low, flow.into(), found[1].into()])
    };
    by_one_of(b, found, member, |b, hop| {
        let to = may_leave(b, hop[0], len);
        b.forbid(Test::Equal(to.into(), u64::from(port).into()));
        go_out(b, begins, (&SIX, hop), (to, len));
    });
}

/// Gives up what a port's policy does not forward.
fn may_forward(b: &mut Builder, policy: Reg, version: u32) {
    let forwards = b.compute(Alu::And, policy, u64::from(version));
    b.forbid(Test::Equal(forwards.into(), 0.into()));
}

/// The port of a neighbour with this first word, which takes packets of this length.
fn may_leave(b: &mut Builder, way: Reg, len: Reg) -> Reg {
    let mtu_bytes = b.compute(Alu::Shr, way, PORT_BITS);
    b.forbid(Test::Above(len.into(), mtu_bytes.into()));
    b.compute(Alu::And, way, (1 << PORT_BITS) - 1)
}

/// How packets of an IP version go out.
struct Kind {
    ethertype: u64,
    /// Takes one from the time to live.
    decrement: fn(&mut Builder, Begins),
}

const FOUR: Kind = Kind { ethertype: TYPE4, decrement };
const SIX: Kind = Kind { ethertype: TYPE6, decrement: decrement6 };

/// The packet leaves to a neighbour with these words.
fn go_out(b: &mut Builder, begins: Begins, (kind, words): (&Kind, [Reg; 3]), (to, len): (Reg, Reg)) {
    let [_, front, back] = words;
    if begins == Begins::Ip {
        let (bare, framed) = (b.block(), b.block());
        let addresses = b.compute(Alu::Or, front, back);
        b.branch(Test::Equal(addresses.into(), 0.into()), bare, framed);
        b.at(bare);
        b.with_scratch(|b| (kind.decrement)(b, Begins::Ip));
        b.put(Field::Length, len);
        b.leave_by(to);
        b.at(framed);
        // First of all: if there is no room for it the packet is given up as it came.
        b.push(ETHERNET as u32);
    }
    b.with_scratch(|b| (kind.decrement)(b, Begins::Ethernet));
    b.store(At::data(0), 8, front);
    b.store(At::data(8), 4, back);
    if begins == Begins::Ip {
        b.store(At::data(12), 2, kind.ethertype);
    }
    let frame_len = b.compute(Alu::Add, len, ETHERNET as u64);
    b.put(Field::Length, frame_len);
    b.leave_by(to);
}

/// Decrements the hop limit, which is above 1.
fn decrement6(b: &mut Builder, begins: Begins) {
    let limit = b.load(begins.at(7), 1);
    let less = b.compute(Alu::Sub, limit, 1);
    b.store(begins.at(7), 1, less);
}

/// The ports and the protocol of a packet's flow; without a branch: ports that are none become 0.
fn flow(b: &mut Builder, begins: Begins, of: &Flows, len: Reg) -> Reg {
    let at = |offset| begins.at(offset);
    let protocol = b.load(at(of.protocol_at), 1);
    let unclear = b.member(protocol, of.unclear.to_vec());
    b.require(Test::Equal(unclear.into(), 0.into()));
    b.require(Test::Has(at(of.header_len), 4));
    let ports = b.load(at(of.header_len), 4);
    let kind = b.compute(Alu::Shr, ports, 24);
    let (icmp, error) = (b.member(protocol, vec![of.icmp]), b.member(kind, of.errors.to_vec()));
    let unclear = b.compute(Alu::And, icmp, error);
    b.require(Test::Equal(unclear.into(), 0.into()));
    let has_ports = b.member(protocol, WITH_PORTS.to_vec());
    let ports_len = b.compute(Alu::Shl, has_ports, 2);
    let least = b.compute(Alu::Add, ports_len, u64::from(of.header_len));
    b.forbid(Test::Above(least.into(), len.into()));
    let mask = b.compute(Alu::Sub, 0, has_ports);
    let ports = b.compute(Alu::And, ports, mask);
    let protocol = b.compute(Alu::Shl, protocol, PROTOCOL_BIT);
    b.compute(Alu::Or, ports, protocol)
}

/// Checks the IPv4 header, as `Version::check` does; gives source, destination, and octets of the packet.
fn header(b: &mut Builder, begins: Begins) -> (Reg, Reg, Reg) {
    let at = |offset| begins.at(offset);
    let first = b.load(at(0), 1);
    b.require(Test::Equal(first.into(), 0x45.into()));
    let (len, frame_len) = (b.load(at(2), 2), b.get(Field::Length));
    let room = b.compute(Alu::Sub, frame_len, u64::from(begins.ip()));
    b.forbid(Test::Above(20.into(), len.into()));
    b.forbid(Test::Above(len.into(), room.into()));
    let fragment = b.load(at(6), 2);
    let fragment = b.compute(Alu::And, fragment, 0x3fff);
    b.require(Test::Equal(fragment.into(), 0.into()));
    let ttl = b.load(at(8), 1);
    b.require(Test::Above(ttl.into(), 1.into()));
    let sum = b.sum(at(0), 20);
    b.require(Test::Equal(sum.into(), 0xffff.into()));
    (b.load(at(12), 4), b.load(at(16), 4), len)
}

/// Checks the IPv6 header in the same way; gives octets of the packet.
fn header6(b: &mut Builder, begins: Begins) -> Reg {
    let at = |offset| begins.at(offset);
    // With the first octet behind it, which says whether it is neighbour discovery.
    b.require(Test::Has(at(0), 41));
    let first = b.load(at(0), 1);
    let version = b.compute(Alu::Shr, first, 4);
    b.require(Test::Equal(version.into(), 6.into()));
    let (payload, frame_len) = (b.load(at(4), 2), b.get(Field::Length));
    let len = b.compute(Alu::Add, payload, 40);
    let room = b.compute(Alu::Sub, frame_len, u64::from(begins.ip()));
    b.forbid(Test::Above(len.into(), room.into()));
    let limit = b.load(at(7), 1);
    b.require(Test::Above(limit.into(), 1.into()));
    let (next, kind) = (b.load(at(6), 1), b.load(at(40), 1));
    let not_for_routers = b.member(next, NOT_FOR_ROUTERS.map(u64::from).to_vec());
    b.require(Test::Equal(not_for_routers.into(), 0.into()));
    let (protocol, kinds) = NEIGHBOUR_DISCOVERY;
    let protocol = b.member(next, vec![u64::from(protocol)]);
    let kind = b.member(kind, kinds.map(u64::from).collect::<Vec<_>>());
    let discovery = b.compute(Alu::And, protocol, kind);
    b.require(Test::Equal(discovery.into(), 0.into()));
    len
}

/// [`Paths::allow`], without a branch: which bits must be there and which must not.
fn check_source(b: &mut Builder, policy: Reg, paths: Reg, port: u16) {
    const {
        assert!(
            ReversePath::Off as u8 == 0 && ReversePath::Loose as u8 == 1 && ReversePath::Strict as u8 == 2
        )
    };
    let check = b.compute(Alu::Shr, policy, PortPolicy::REVERSE_PATH_BIT);
    let next = b.compute(Alu::Add, check, 1);
    let (any, here) = (b.compute(Alu::Shr, next, 1), b.compute(Alu::Shr, check, 1));
    let off = b.compute(Alu::Xor, any, 1);
    let bit = |of: Paths| u64::from(of.to_bits().trailing_zeros());
    let any = b.compute(Alu::Shl, any, bit(Paths::unicast([])));
    let here = b.compute(Alu::Shl, here, u64::from(port & 63));
    let needed = b.compute(Alu::Or, any, here);
    let has = b.compute(Alu::And, paths, needed);
    b.require(Test::Equal(has.into(), needed.into()));
    let off = b.compute(Alu::Shl, off, bit(Paths::ours()));
    let ours = b.compute(Alu::And, paths, off);
    b.require(Test::Equal(ours.into(), 0.into()));
    b.forbid(Test::Equal(paths.into(), Paths::unknown().to_bits().into()));
}

/// Gives up what leaves by the port that it came in by, unless that is allowed.
fn may_return(b: &mut Builder, policy: Reg, to: Reg, port: u16) {
    let returns = b.member(to, vec![u64::from(port)]);
    let may = b.compute(Alu::And, policy, u64::from(PortPolicy::HAIRPIN));
    let may = b.compute(Alu::Shr, may, u64::from(PortPolicy::HAIRPIN.trailing_zeros()));
    let may_not = b.compute(Alu::Xor, may, 1);
    let bad = b.compute(Alu::And, returns, may_not);
    b.require(Test::Equal(bad.into(), 0.into()));
}

/// Decrements the time to live, which is above 1 (RFC 1624).
fn decrement(b: &mut Builder, begins: Begins) {
    let at = |offset| begins.at(offset);
    let (ttl, sum) = (b.load(at(8), 1), b.load(at(10), 2));
    let less = b.compute(Alu::Sub, ttl, 1);
    b.store(at(8), 1, less);
    let summed = b.compute(Alu::Xor, sum, 0xffff);
    let changed = b.compute(Alu::OnesAdd, summed, 0xfeff);
    let sum = b.compute(Alu::Xor, changed, 0xffff);
    b.store(at(10), 2, sum);
}

struct Policies(Arc<Forwarding>);

impl Table for Policies {
    fn look_up(&mut self, [port, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        Some([u64::from(self.0.policy(port as u16).to_bits()), 0, 0])
    }
}

struct Back((Arc<Forwarding>, Readers));

impl Table for Back {
    fn look_up(&mut self, [address, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        Some([forwarding.paths(readers.v4.lookup(address as u32)).to_bits(), 0, 0])
    }
}

struct Ahead((Arc<Forwarding>, Readers));

impl Table for Ahead {
    fn look_up(&mut self, [address, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        let pinned = readers.participant.pin();
        let index = readers.v4.under(&pinned)?.lookup(address as u32);
        hop(forwarding, readers, &pinned, index)
    }
}

struct Back6((Arc<Forwarding>, Readers));

impl Table for Back6 {
    fn look_up(&mut self, [upper, lower, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        Some([forwarding.paths(readers.v6.lookup(address6([upper, lower]))).to_bits(), 0, 0])
    }
}

struct Ahead6((Arc<Forwarding>, Readers));

impl Table for Ahead6 {
    fn look_up(&mut self, [upper, lower, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        let pinned = readers.participant.pin();
        let index = readers.v6.under(&pinned)?.lookup(address6([upper, lower]));
        hop(forwarding, readers, &pinned, index)
    }
}

fn address6([upper, lower]: [u64; 2]) -> u128 {
    u128::from(upper) << 64 | u128::from(lower)
}

/// The words of the neighbour that an index leads to, or [`GROUP`] and the index.
fn hop(
    forwarding: &Forwarding,
    readers: &Readers,
    pinned: &Pinned<'_>,
    index: AdjacencyIndex,
) -> Option<[u64; 3]> {
    let view = readers.neighbours.under(pinned);
    let mut is_group = false;
    let hop = view.resolve_with(index, || {
        is_group = true;
        0
    })?;
    if is_group {
        return Some([GROUP.into(), index.into(), 0]);
    }
    (hop.port != KERNEL).then(|| {
        forwarding.mark(hop.mark);
        hop.words()
    })
}

struct Members((Arc<Forwarding>, Readers));

impl Table for Members {
    fn look_up(&mut self, [addresses, flow, ..]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        let [by, _] = forwarding.flow_hashes();
        let addresses = [addresses >> 32, addresses].map(|a| a as u32);
        let hash = by?.known_v4(addresses, protocol(flow), ports(flow))?;
        member(forwarding, readers, flow >> ABOVE_BIT, hash)
    }
}

struct Members6((Arc<Forwarding>, Readers));

impl Table for Members6 {
    fn look_up(&mut self, [from, from_low, to, to_low, flow, group]: Key<u64>, _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        let [_, by] = forwarding.flow_hashes();
        let addresses = [[from, from_low], [to, to_low]].map(address6);
        let hash = by?.known_v6(addresses, (flow >> ABOVE_BIT) as u32, protocol(flow), ports(flow))?;
        member(forwarding, readers, group, hash)
    }
}

fn protocol(flow: u64) -> u8 {
    (flow >> PROTOCOL_BIT) as u8
}

fn ports(flow: u64) -> [u16; 2] {
    [flow >> 16, flow].map(|port| port as u16)
}

/// The words of a group's member that flows with this hash take.
fn member(forwarding: &Forwarding, readers: &Readers, group: u64, hash: u32) -> Option<[u64; 3]> {
    let view = readers.neighbours.pin();
    let hop = view.resolve(group as AdjacencyIndex, hash).filter(|hop| hop.port != KERNEL)?;
    forwarding.mark(hop.mark);
    Some(hop.words())
}
