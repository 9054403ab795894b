//! What follows the kernel's state, as workers see it: tables, what each port may do, and until when.

use super::flow::{FlowHash, FlowPolicy};
use causeway_engine::{Conf, Invalid};
use causeway_fib::{
    Adjacencies, AdjacencyIndex, AdjacencyReader, Domain, Fib4, Fib4Reader, Fib6, Fib6Reader, MISS,
    Participant,
};
use causeway_netio::front::Front;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Key of the [`Forwarding`] among the values that outlive a hot swap.
pub const FORWARDING: &str = "forwarding";

/// In place of a port's number: leave the packet to the kernel.
pub const KERNEL: u16 = u16::MAX;

/// Ports that a set of ports can name ([`Paths`]).
pub const PORTS_MAX: usize = 62;

/// Adjacency indices that the tables can hand out.
const INDICES: usize = 1 << 15;
/// Marks of neighbours that were used; two neighbours may share one.
const MARKS: usize = 1 << 16;

/// Where packets of a route leave, and what their frames need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// Number of the port among [`Forwarding::ports`], or [`KERNEL`].
    pub port: u16,
    /// With [`KERNEL`], and where there are no [`Neighbour::addresses`]: why elements leave packets to the kernel, as a place in
    /// [`Forwarding::reasons`].
    pub reason: u8,
    /// The largest IP packet, octets.
    pub mtu_bytes: u32,
    /// Destination and source address of the Ethernet header. All zero where packets leave without one, which only programs in
    /// the stack can have them do.
    pub addresses: [u8; 12],
    /// The mark that is set when a packet is sent there ([`Forwarding::take_mark`]).
    pub mark: u16,
    /// Tells entries apart that are otherwise equal, so that each can change alone.
    pub serial: u32,
}

/// What is known of the route to a packet's source (RFC 3704: reverse-path checks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths(u64);

impl Paths {
    const UNICAST: u64 = 1 << 63;
    const OURS: u64 = 1 << 62;
    /// Any port, without the bit that says that there is a way: no check looks at it then.
    const NOWHERE: u64 = 1;

    /// A route that packets could be forwarded by, out of these ports or others.
    pub fn unicast(ports: impl IntoIterator<Item = usize>) -> Paths {
        let bits = ports.into_iter().filter(|&p| p < PORTS_MAX).map(|p| 1 << p);
        Paths(bits.fold(Paths::UNICAST, |all, bit| all | bit))
    }

    /// An address of this machine, a broadcast address, a group: what cannot be a packet's source.
    pub const fn ours() -> Paths {
        Paths(Paths::OURS)
    }

    /// No route, or one that discards: what nobody can be reached by, and nobody's address of this machine either.
    pub const fn nowhere() -> Paths {
        Paths(Paths::NOWHERE)
    }

    /// A route that is not understood: the source may be an address of this machine.
    pub const fn unknown() -> Paths {
        Paths(0)
    }

    /// The same as a number.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// An address of this machine, for sure.
    #[inline]
    pub(crate) fn is_ours(self) -> bool {
        self.0 & Paths::OURS != 0
    }

    /// Whether a packet that came in by `port` may have this source, as far as the route tells.
    #[inline]
    pub(crate) fn allow(self, check: ReversePath, port: u16) -> bool {
        match check {
            ReversePath::Off => !self.is_ours() && self != Paths::unknown(),
            ReversePath::Loose => self.0 & Paths::UNICAST != 0,
            ReversePath::Strict => self.0 & Paths::UNICAST != 0 && self.0 & (1 << (port & 63)) != 0,
        }
    }
}

/// Which check of source addresses applies to the packets of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReversePath {
    /// A source must surely not be one of our own.
    #[default]
    Off,
    /// There must be a route to it.
    Loose,
    /// There must be a route to it by the port that the packet came in by.
    Strict,
}

/// What may be done with packets that come in by a port, as the kernel would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortPolicy {
    /// IPv4 packets are forwarded.
    pub ipv4: bool,
    /// IPv6 packets are forwarded.
    pub ipv6: bool,
    /// The check of IPv4 sources.
    pub reverse_path: ReversePath,
    /// IPv4 packets may leave by the port they came in by without an ICMP redirect. (IPv6 ones always cause one,
    /// RFC 4861 §8.2.)
    pub hairpin: bool,
}

impl PortPolicy {
    pub(super) const IPV4: u32 = 1;
    pub(super) const IPV6: u32 = 2;
    pub(super) const HAIRPIN: u32 = 4;
    /// The check's number is from this bit on.
    pub(super) const REVERSE_PATH_BIT: u64 = 8;

    /// The policy as a number.
    pub fn to_bits(self) -> u32 {
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let may = bit(self.ipv4, Self::IPV4) | bit(self.ipv6, Self::IPV6) | bit(self.hairpin, Self::HAIRPIN);
        may | (self.reverse_path as u32) << Self::REVERSE_PATH_BIT
    }

    #[inline]
    fn from_bits(bits: u32) -> PortPolicy {
        let reverse_path = match bits >> Self::REVERSE_PATH_BIT {
            0 => ReversePath::Off,
            1 => ReversePath::Loose,
            _ => ReversePath::Strict,
        };
        let has = |bit: u32| bits & bit != 0;
        PortPolicy { ipv4: has(Self::IPV4), ipv6: has(Self::IPV6), hairpin: has(Self::HAIRPIN), reverse_path }
    }
}

/// A policy in 8 bits, its fields in 24, and the seed in 32.
fn hash_bits(policy: u8, fields: u32, seed: u32) -> u64 {
    u64::from(policy) | u64::from(fields & 0xff_ffff) << 8 | u64::from(seed) << 32
}

/// A policy that there is not.
const UNKNOWN_HASH: u64 = 0xff;

/// Packets of a port since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// That the graph decided on.
    pub taken: u64,
    /// Of those, the ones that it gave back to the kernel.
    pub punted: u64,
}

/// A [`Tally`] as it is kept, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct TallyWords {
    taken: AtomicU64,
    punted: AtomicU64,
}

/// Until when packets may be forwarded.
pub trait Deadline: Send + Sync {
    /// Nanoseconds on `CLOCK_MONOTONIC`.
    fn deadline_ns(&self) -> u64;
}

impl Deadline for Front {
    fn deadline_ns(&self) -> u64 {
        self.lease().deadline().load(Ordering::Acquire)
    }
}

impl Deadline for AtomicU64 {
    fn deadline_ns(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

/// Handles of the tables that elements clone theirs from.
#[derive(Clone)]
pub(crate) struct Readers {
    pub v4: Fib4Reader,
    pub v6: Fib6Reader,
    pub neighbours: AdjacencyReader<Neighbour>,
    /// Announces a reader of all three at once.
    pub participant: Participant,
}

/// What the elements of a router read that forwards by the kernel's routes.
///
/// The tables lead from a prefix to an index of the adjacencies, and from there to a [`Neighbour`]; what the route is
/// as a way back stands beside the adjacency ([`Paths`]). Their owner changes all of it while workers look up.
pub struct Forwarding {
    ports: Vec<String>,
    reasons: &'static [&'static str],
    readers: Mutex<Readers>,
    lease: Arc<dyn Deadline>,
    paths: Box<[AtomicU64]>,
    policies: Box<[AtomicU32]>,
    /// How flows of IPv4 and of IPv6 are spread over the paths of a route ([`hash_bits`]).
    flow_hashes: [AtomicU64; 2],
    marks: Box<[AtomicU8]>,
    tallies: Box<[TallyWords]>,
    in_driver: Option<Arc<dyn InDriver>>,
    differences: AtomicU64,
}

/// A program in the driver that forwards what it can in the place of the elements.
pub trait InDriver: Send + Sync {
    /// Has the program see what the routes with an adjacency are as ways back.
    fn set_paths(&self, index: AdjacencyIndex, paths: Paths);
    /// Has it see the policy of a port.
    fn set_policy(&self, port: usize, policy: PortPolicy);
    /// Has it see how flows of IPv4 and of IPv6 are spread over the paths of a route: the kernel's policy in 8 bits, its fields
    /// in 24, and the seed in 32. A policy that is not known leaves it to the graph.
    fn set_flow_hashes(&self, bits: [u64; 2]);
}

impl Forwarding {
    /// For the tables given and these ports, in the order that numbers them; nothing may be forwarded on any port
    /// yet. `reasons` names why packets are left to the kernel, and `lease` says until when they may be forwarded.
    pub fn new(
        ports: Vec<String>,
        reasons: &'static [&'static str],
        lease: Arc<dyn Deadline>,
        (domain, v4, v6, neighbours): (&Domain, &Fib4, &Fib6, &Adjacencies<Neighbour>),
    ) -> Forwarding {
        let (v4, v6, neighbours) = (v4.reader(), v6.reader(), neighbours.reader());
        let readers = Readers { v4, v6, neighbours, participant: domain.participant() };
        Forwarding {
            policies: ports.iter().map(|_| AtomicU32::new(0)).collect(),
            tallies: ports.iter().map(|_| TallyWords::default()).collect(),
            ports,
            reasons,
            readers: Mutex::new(readers),
            flow_hashes: [const { AtomicU64::new(UNKNOWN_HASH) }; 2],
            lease,
            paths: (0..INDICES).map(|_| AtomicU64::new(0)).collect(),
            marks: (0..MARKS).map(|_| AtomicU8::new(0)).collect(),
            in_driver: None,
            differences: AtomicU64::new(0),
        }
    }

    /// The same, where a program in the driver is told what it needs.
    #[must_use]
    pub fn with_driver(self, in_driver: Arc<dyn InDriver>) -> Forwarding {
        in_driver.set_flow_hashes([UNKNOWN_HASH; 2]);
        Forwarding { in_driver: Some(in_driver), ..self }
    }

    /// Notes a route by which the kernel forwards otherwise, also when it was asked again.
    pub fn note_difference(&self) {
        self.differences.fetch_add(1, Ordering::Relaxed);
    }

    /// Routes that were noted.
    pub fn differences(&self) -> u64 {
        self.differences.load(Ordering::Relaxed)
    }

    /// Names of the ports.
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Why packets are left to the kernel.
    pub fn reasons(&self) -> &'static [&'static str] {
        self.reasons
    }

    /// Sets what the routes with the adjacency `index` are as ways back. To be done before a route has that index.
    pub fn set_paths(&self, index: AdjacencyIndex, paths: Paths) {
        if let Some(word) = self.paths.get(index as usize) {
            word.store(paths.0, Ordering::Relaxed);
        }
        if let Some(in_driver) = &self.in_driver {
            in_driver.set_paths(index, paths);
        }
    }

    #[inline]
    pub(crate) fn paths(&self, index: AdjacencyIndex) -> Paths {
        if index == MISS {
            return Paths::nowhere();
        }
        Paths(self.paths.get(index as usize).map_or(0, |w| w.load(Ordering::Relaxed)))
    }

    /// Sets what may be done with the packets of a port.
    pub fn set_policy(&self, port: usize, policy: PortPolicy) {
        if let Some(word) = self.policies.get(port) {
            word.store(policy.to_bits(), Ordering::Release);
        }
        if let Some(in_driver) = &self.in_driver {
            in_driver.set_policy(port, policy);
        }
    }

    #[inline]
    pub(crate) fn policy(&self, port: u16) -> PortPolicy {
        let word = self.policies.get(usize::from(port));
        PortPolicy::from_bits(word.map_or(0, |w| w.load(Ordering::Acquire)))
    }

    /// Sets how IPv4 and IPv6 flows are spread over the paths of a route: policy and fields as in the kernel's settings,
    /// and its seed. Until then, and under a policy that is not known, only the kernel can tell.
    pub fn set_flow_hash(&self, v4: (u8, u32), v6: (u8, u32), seed: u32) {
        let bits = [v4, v6].map(|(policy, fields)| hash_bits(policy, fields, seed));
        for (word, bits) in self.flow_hashes.iter().zip(bits) {
            word.store(bits, Ordering::Release);
        }
        if let Some(in_driver) = &self.in_driver {
            in_driver.set_flow_hashes(bits);
        }
    }

    /// How IPv4 and IPv6 flows are spread. None: only the kernel can tell.
    #[inline]
    pub(crate) fn flow_hashes(&self) -> [Option<FlowHash>; 2] {
        self.flow_hashes.each_ref().map(|word| {
            let bits = word.load(Ordering::Acquire);
            let policy = FlowPolicy::new(bits as u8, (bits >> 8) as u32 & 0xff_ffff)?;
            Some(FlowHash::new(policy, (bits >> 32) as u32))
        })
    }

    #[inline]
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.lease.deadline_ns()
    }

    /// Marks a neighbour as used.
    #[inline]
    pub(crate) fn mark(&self, mark: u16) {
        // Read before it is written: a line that all workers only read stays in all their caches.
        if let Some(mark) = self.marks.get(usize::from(mark)).filter(|m| m.load(Ordering::Relaxed) == 0) {
            mark.store(1, Ordering::Relaxed);
        }
    }

    /// Whether packets were sent to the neighbours with this mark since the last call.
    pub fn take_mark(&self, mark: u16) -> bool {
        self.marks.get(usize::from(mark)).is_some_and(|m| m.swap(0, Ordering::Relaxed) != 0)
    }

    /// Counts a batch of packets of a port.
    #[inline]
    pub(crate) fn count(&self, port: u16, taken: u64, punted: u64) {
        if let Some(tally) = self.tallies.get(usize::from(port)) {
            tally.taken.fetch_add(taken, Ordering::Relaxed);
            tally.punted.fetch_add(punted, Ordering::Relaxed);
        }
    }

    /// The packets of a port so far, but those that came while nothing might be forwarded.
    pub fn tally(&self, port: usize) -> Tally {
        let of = |tally: &TallyWords| Tally {
            taken: tally.taken.load(Ordering::Relaxed),
            punted: tally.punted.load(Ordering::Relaxed),
        };
        self.tallies.get(port).map_or(Tally::default(), of)
    }

    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
    pub(crate) fn readers(&self) -> Readers {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that the router was started with. Without one there is no port, and all packets are the kernel's.
    pub(crate) fn find(conf: &mut Conf<'_>) -> Result<Arc<Forwarding>, Invalid> {
        let domain = Domain::new();
        let tables = Fib4::in_domain(&domain).and_then(|v4| Ok((v4, Fib6::in_domain(&domain)?)));
        let (v4, v6) = tables.map_err(|e| {
            conf.error(e.to_string());
            Invalid
        })?;
        let empty = || {
            let lease = Arc::new(AtomicU64::new(0));
            Forwarding::new(Vec::new(), &[], lease, (&domain, &v4, &v6, &Adjacencies::in_domain(&domain)))
        };
        let found = conf.env.persistent(FORWARDING, empty).ok_or(Invalid)?;
        if found.ports.is_empty() {
            conf.warn(
                "no tables follow the kernel's, so all packets are left to it; `causeway up` keeps them",
            );
        }
        Ok(found)
    }

    /// The number of the port called `name`; an error if there are ports, but none of that name.
    pub(crate) fn number(&self, conf: &mut Conf<'_>, name: &str) -> Option<u16> {
        let number = self.ports.iter().position(|p| p == name);
        if number.is_none() && !self.ports.is_empty() {
            conf.error(format!(
                "the kernel's routes are followed for {}, not for '{name}'",
                self.ports.join(", ")
            ));
        }
        number.map(|n| n as u16)
    }
}
