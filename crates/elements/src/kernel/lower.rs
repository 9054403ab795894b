//! What KernelForward does to an IPv4 packet, as a program: for the driver.
//!
//! It says nothing of the lease, which whoever runs it looks at, nor of routes with several next hops: those packets are
//! given up, as all that the element leaves to the kernel.

use super::forwarding::{Forwarding, KERNEL, Neighbour, Paths, PortPolicy, Readers, ReversePath};
use super::version::ETHERNET;
use causeway_engine::ir::{Alu, At, Field, Program, Reg, Table, Test, Value};
use causeway_engine::prelude::*;
use causeway_fib::{AdjacencyIndex, Lookup};
use std::sync::Arc;

/// Tables of a [`program`], by number. Keys are one word.
pub mod table {
    /// By number of a port, its policy ([`super::PortPolicy::to_bits`]).
    pub const POLICIES: usize = 0;
    /// By address, what the route to it is as a way back ([`super::Paths::to_bits`]).
    pub const PATHS: usize = 1;
    /// By address, the next hop ([`super::Neighbour::words`]).
    pub const NEXT_HOPS: usize = 2;
}

const PORT_BITS: u64 = 16;

impl Neighbour {
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
#[must_use]
pub fn program(forwarding: &Arc<Forwarding>, port: u16) -> Option<Program> {
    let tables = || (forwarding.clone(), forwarding.readers());
    let mut b = Builder::new();
    let (source, destination, len) = header(&mut b);
    let [policy, ..] = b.look_up(Box::new(Policies(forwarding.clone())), key(u64::from(port)));
    let forwards = b.compute(Alu::And, policy, u64::from(PortPolicy::IPV4));
    b.forbid(Test::Equal(forwards.into(), 0.into()));
    let [paths, ..] = b.look_up(Box::new(Back(tables())), key(source));
    check_source(&mut b, policy, paths, port);
    let [way, front, back] = b.look_up(Box::new(Ahead(tables())), key(destination));
    let mtu_bytes = b.compute(Alu::Shr, way, PORT_BITS);
    b.forbid(Test::Above(len.into(), mtu_bytes.into()));
    let to = b.compute(Alu::And, way, (1 << PORT_BITS) - 1);
    may_return(&mut b, policy, to, port);
    decrement(&mut b);
    b.store(At::data(0), 8, front);
    b.store(At::data(8), 4, back);
    let frame_len = b.compute(Alu::Add, len, ETHERNET as u64);
    b.put(Field::Length, frame_len);
    b.leave_by(to);
    b.finish()
}

fn key(of: impl Into<Value>) -> [Value; 2] {
    [of.into(), 0.into()]
}

const fn at(offset: u32) -> At {
    At::data(ETHERNET as u32 + offset)
}

/// Checks the headers, as `Version::check` does; gives source, destination, and octets of the packet.
fn header(b: &mut Builder) -> (Reg, Reg, Reg) {
    b.require(Test::Has(at(0), 20));
    let ethertype = b.load(At::data(12), 2);
    b.require(Test::Equal(ethertype.into(), 0x0800.into()));
    let first = b.load(at(0), 1);
    b.require(Test::Equal(first.into(), 0x45.into()));
    let (len, frame_len) = (b.load(at(2), 2), b.get(Field::Length));
    let room = b.compute(Alu::Sub, frame_len, ETHERNET as u64);
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
fn decrement(b: &mut Builder) {
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
    fn look_up(&mut self, [port, _]: [u64; 2], _: u64) -> Option<[u64; 3]> {
        Some([u64::from(self.0.policy(port as u16).to_bits()), 0, 0])
    }
}

struct Back((Arc<Forwarding>, Readers));

impl Table for Back {
    fn look_up(&mut self, [address, _]: [u64; 2], _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        Some([forwarding.paths(readers.v4.lookup(address as u32)).to_bits(), 0, 0])
    }
}

struct Ahead((Arc<Forwarding>, Readers));

impl Table for Ahead {
    fn look_up(&mut self, [address, _]: [u64; 2], _: u64) -> Option<[u64; 3]> {
        let (forwarding, readers) = &self.0;
        let pinned = readers.participant.pin();
        let view = readers.neighbours.under(&pinned);
        let index: AdjacencyIndex = readers.v4.under(&pinned)?.lookup(address as u32);
        let mut is_group = false;
        let hop = view.resolve_with(index, || {
            is_group = true;
            0
        })?;
        let is_plain = !is_group && hop.port != KERNEL;
        is_plain.then(|| {
            forwarding.mark(hop.mark);
            hop.words()
        })
    }
}
