//! What the kernel has, as plain values: links, addresses, neighbours, next hop objects, routes, rules and qdiscs.

use std::fmt;
use std::net::IpAddr;

use crate::prefix::Prefix;

/// A MAC address.
pub type Mac = [u8; 6];

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Bits in an address: 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

/// A link, as `ip link` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// Kind of a virtual device (`veth`, `bridge`, …); none for hardware.
    pub kind: Option<String>,
    /// Bus and name of the hardware device below (`virtio`, `virtio0`).
    pub parent: Option<(String, String)>,
    /// The MAC address, if the link has one of six octets.
    pub mac: Option<Mac>,
    /// Whether frames are Ethernet frames.
    pub ethernet: bool,
    /// Whether the link needs no address resolution (`NOARP`), so that neighbours cannot be relied on.
    pub no_arp: bool,
    /// Loopback interface.
    pub loopback: bool,
    /// Administratively up.
    pub up: bool,
    /// Carrier is present (`LOWER_UP`).
    pub carrier: bool,
    /// Largest IP packet, octets.
    pub mtu_bytes: u32,
    /// Largest IPv6 packet, octets; never above `mtu_bytes`.
    pub mtu6_bytes: u32,
    /// The index of the bridge, bond or VRF that the link is enslaved to.
    pub master: Option<u32>,
    /// The kind of that master (`bridge`, `vrf`, `bond`).
    pub master_kind: Option<String>,
    /// Receive queues.
    pub rx_queues: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// The XDP program that is attached, by its id.
    pub xdp_program: Option<u32>,
}

impl Link {
    /// Whether packets can leave through the link now.
    pub fn alive(&self) -> bool {
        self.up && self.carrier
    }
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Length of the prefix that is on the link.
    pub prefix_len: u8,
    /// Interface index.
    pub ifindex: u32,
}

/// A neighbour entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour's address.
    pub address: IpAddr,
    /// Interface index.
    pub ifindex: u32,
    /// The neighbour's MAC address; none until it is known.
    pub mac: Option<Mac>,
    /// `NUD_*` state bits.
    pub state: u16,
    /// The kernel itself keeps this entry resolved (`NTF_EXT_MANAGED`).
    pub managed: bool,
}

/// One way to a destination: a device and, unless the destination is on the link, a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Interface index of the device that packets leave by.
    pub ifindex: u32,
    /// The router to send to; none when the destination itself is on the link.
    pub gateway: Option<IpAddr>,
    /// Share of the flows, from 1.
    pub weight: u16,
}

/// A next hop object (`ip nexthop`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The object's number, chosen by who made it.
    pub id: u32,
    /// What it says.
    pub kind: NextHopKind,
}

/// What a next hop object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHopKind {
    /// One path.
    Path(Path),
    /// Several other objects with their weights, from 1.
    Group(Vec<(u32, u16)>),
    /// Something that packets are not forwarded by.
    Punt(PuntReason),
}

/// A route as the kernel announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub prefix: Prefix,
    /// Routing table; only `local` (255), `main` (254) and `default` (253) matter here.
    pub table: u32,
    /// Type of service that a packet must have, 0 for any (IPv4).
    pub tos: u8,
    /// Preference; the lowest wins.
    pub metric: u32,
    /// Who installed it (`RTPROT_*`).
    pub protocol: u8,
    /// The route is for packets from some sources only (IPv6 subtrees).
    pub source_specific: bool,
    /// Where packets go.
    pub target: Target,
    /// Limit on packet size that the route itself sets, octets.
    pub mtu_bytes: Option<u32>,
}

/// Where a route's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out by one of these paths.
    Paths(Vec<Path>),
    /// As the next hop object of that number says.
    Object(u32),
    /// To the kernel.
    Punt(PuntReason),
}

/// A policy rule (`ip rule`), as far as it matters whether it is one of the kernel's own three.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The family whose lookups it takes part in.
    pub family: Family,
    /// Its place in the order.
    pub priority: u32,
    /// The table that is looked up.
    pub table: u32,
    /// Nothing but "from all lookup TABLE".
    pub plain: bool,
    /// The message as the kernel sent it: what makes one rule different from the next.
    pub bytes: Vec<u8>,
}

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Qdisc {
    /// Interface index.
    pub ifindex: u32,
    /// Handle; 0 for one that the kernel put there by default.
    pub handle: u32,
    /// Where it hangs.
    pub parent: u32,
    /// Kind (`fq_codel`, `htb`, `clsact`, …).
    pub kind: String,
}

/// Why packets of a destination are left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PuntReason {
    /// The destination is an address of this machine.
    Local,
    /// A broadcast address.
    Broadcast,
    /// An anycast address of this machine.
    Anycast,
    /// A multicast route.
    Multicast,
    /// The destination is on the link and its MAC address is not known yet: the kernel asks for it.
    OnLink,
    /// A route that discards silently.
    Blackhole,
    /// A route that answers "host unreachable".
    Unreachable,
    /// A route that answers "administratively prohibited".
    Prohibit,
    /// A route that says "look in the next table".
    Throw,
    /// A route or next hop of a type that the mirror does not know.
    UnknownType,
    /// A route or next hop with an attribute that the mirror does not know.
    UnknownAttribute,
    /// A lightweight tunnel: MPLS, segment routing, IP in IP.
    Encapsulation,
    /// Routes that differ by source address.
    SourceSpecific,
    /// Routes that differ by type of service.
    TypeOfService,
    /// Several equal routes, of which only the kernel knows which it takes.
    Ambiguous,
    /// Several paths, some with a gateway and some on the link.
    MixedPaths,
    /// A resilient next hop group, whose flows must not move.
    ResilientGroup,
    /// The next hop object is not there.
    NextHopMissing,
    /// The way out is a device that this router does not hold.
    OutsidePorts,
    /// The device is not known.
    LinkMissing,
    /// The device is down or has no carrier.
    LinkDown,
    /// The device does not carry Ethernet frames, or does no address resolution.
    NotEthernet,
    /// The device belongs to a bridge, a bond or a VRF.
    Enslaved,
    /// Policy rules decide, which the mirror does not follow.
    PolicyRules,
}

impl PuntReason {
    /// The names under which such packets are counted, in the order of the reasons.
    pub const NAMES: &'static [&'static str] = &[
        "local",
        "broadcast",
        "anycast",
        "multicast",
        "on-link",
        "blackhole",
        "unreachable",
        "prohibit",
        "throw",
        "unknown-type",
        "unknown-attribute",
        "encapsulation",
        "source-specific",
        "type-of-service",
        "ambiguous",
        "mixed-paths",
        "resilient-group",
        "next-hop-missing",
        "outside-ports",
        "link-missing",
        "link-down",
        "not-ethernet",
        "enslaved",
        "policy-rules",
    ];

    /// The name under which such packets are counted.
    pub fn name(self) -> &'static str {
        PuntReason::NAMES[self as usize]
    }
}

impl fmt::Display for PuntReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
