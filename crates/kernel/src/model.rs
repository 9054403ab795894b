//! What the kernel has, as plain values: links, addresses, neighbours, next hop objects, routes, rules and qdiscs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::prefix::Prefix;
use crate::reason::PuntReason;

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

    /// The address that is none.
    pub fn unspecified(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
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
    /// Names that it can be called by besides (`altname`).
    pub other_names: Vec<String>,
    /// Kind of a virtual device (`veth`, `bridge`, …); none for hardware.
    pub kind: Option<String>,
    /// Bus and name of the hardware device below (`virtio`, `virtio0`).
    pub parent: Option<(String, String)>,
    /// The MAC address, if the link has one of six octets.
    pub mac: Option<Mac>,
    /// Whether frames are Ethernet frames.
    pub ethernet: bool,
    /// Whether packets come and go without a link-layer header, and need no neighbour's address: TUN, WireGuard, PPP, modems.
    /// Of those that may ask the packet's route where to send it (tunnels, OpenVPN in the kernel) it is not said.
    pub bare: bool,
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
    /// The index of the link below from which this one takes frames that are addressed to that link: a macvlan or macvtap in
    /// one of the modes passthru and source, an ipvlan.
    pub takes_from: Option<u32>,
    /// Receive queues.
    pub rx_queues: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// The XDP program that is attached, by its id.
    pub xdp_program: Option<u32>,
}

impl Link {
    /// Whether IP packets come by it, and can be sent by it with what is known here, as far as its kind goes.
    pub fn is_plain(&self) -> bool {
        let resolves = self.ethernet && self.mac.is_some() && !self.no_arp;
        (resolves || self.bare) && !self.loopback
    }

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
    /// A program made this entry, and the kernel does not let it age (`NTF_EXT_LEARNED`).
    pub learned: bool,
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
    /// Several other objects with their weights, from 1, in the order in which the kernel goes through them.
    Group {
        /// Number and weight of each.
        members: Vec<(u32, u16)>,
        /// Flows keep the member that they have while it is in use, so only the kernel knows it.
        resilient: bool,
    },
    /// Something that packets are not forwarded by.
    Punt {
        /// Why.
        reason: PuntReason,
        /// What is known of the devices that the kernel would use.
        reverse_path: ReversePath,
    },
}

impl NextHopKind {
    /// Whether it is a single way out, and that by the device of that index.
    pub(crate) fn is_on(&self, ifindex: u32) -> bool {
        match self {
            NextHopKind::Path(path) => path.ifindex == ifindex,
            NextHopKind::Punt { reverse_path, .. } => reverse_path.has(ifindex),
            NextHopKind::Group { .. } => false,
        }
    }
}

/// What a check of source addresses (reverse-path forwarding, RFC 3704 section 2) asks of the route to the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReversePath {
    /// It is a unicast route, and leaves by these interfaces: those of all its paths, in ascending order, each once.
    /// None are left where it may be one of several routes that have none in common.
    Interfaces(Vec<u32>),
    /// It is no unicast route: local, broadcast, anycast, multicast, blackhole, unreachable, prohibit, throw.
    NotUnicast,
    /// Only the kernel knows which route it takes, or whether it takes this one at all.
    Unknown,
    /// Whatever the check: a policy rule is about packets from there, so they are the kernel's.
    Ruled,
}

impl ReversePath {
    /// A unicast route that leaves by these interfaces.
    pub(crate) fn of(interfaces: impl IntoIterator<Item = u32>) -> Self {
        let mut interfaces: Vec<u32> = interfaces.into_iter().collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        if interfaces.is_empty() { ReversePath::Unknown } else { ReversePath::Interfaces(interfaces) }
    }

    /// What holds of both, whichever of the two it is.
    pub(crate) fn and(&self, other: &ReversePath) -> Self {
        match (self, other) {
            (ReversePath::Interfaces(a), ReversePath::Interfaces(b)) => {
                ReversePath::Interfaces(a.iter().filter(|interface| b.contains(interface)).copied().collect())
            }
            // Two that are no unicast routes may be so for reasons that count.
            _ => ReversePath::Unknown,
        }
    }

    /// Whether the route leaves by that interface.
    pub fn has(&self, ifindex: u32) -> bool {
        matches!(self, ReversePath::Interfaces(interfaces) if interfaces.contains(&ifindex))
    }
}

/// A route as the kernel announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub prefix: Prefix,
    /// Routing table.
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
    /// The address that the machine's own packets have as their source (IPv4): the route goes with it.
    pub source: Option<Ipv4Addr>,
    /// Interfaces whose paths the kernel counts as dead (`RTNH_F_DEAD`), as of the message.
    pub dead: Vec<u32>,
    /// What else makes the kernel tell two routes apart, as a digest.
    pub identity: u64,
}

/// Where a route's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out by one of these paths, in the order in which the kernel goes through them.
    Paths(Vec<Path>),
    /// As the next hop object of that number says.
    Object(u32),
    /// To the kernel.
    Punt {
        /// Why.
        reason: PuntReason,
        /// What is known of the devices that the kernel would use.
        reverse_path: ReversePath,
    },
}

/// A policy rule (`ip rule`), as far as it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The family whose lookups it takes part in.
    pub family: Family,
    /// Its place in the order.
    pub priority: u32,
    /// What becomes of packets that it selects.
    pub action: RuleAction,
    /// It selects packets to these addresses only.
    pub to: Option<Prefix>,
    /// It selects packets from these addresses only.
    pub from: Option<Prefix>,
    /// It selects packets that come in by the interface of that name only; `lo` stands for those of this machine.
    pub iif: Option<String>,
    /// It selects packets of this machine's sockets that are bound to an interface: none that is forwarded.
    pub oif: bool,
    /// Routes to prefixes of fewer bits do not count, unless they reject packets: `suppress_prefixlength` and one, or 0.
    pub shortest: u8,
    /// It selects by more, or what it finds need not hold: only the kernel knows whether it applies to a packet.
    pub more: bool,
    /// The message as the kernel sends it, less what comes and goes with interfaces: what tells rules apart.
    pub bytes: Vec<u8>,
}

/// What becomes of packets that a rule selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// Their route is looked up in this table; without one there, or by one that says so, the next rule is asked.
    LookUp(u32),
    /// The next rule is asked.
    Nothing,
    /// They are discarded, or something that is not followed.
    Other,
}

impl Rule {
    /// "from all lookup TABLE".
    pub fn plain(family: Family, priority: u32, table: u32) -> Self {
        let (to, from, iif, bytes) = (None, None, None, Vec::new());
        let action = RuleAction::LookUp(table);
        Rule { family, priority, action, to, from, iif, oif: false, shortest: 0, more: false, bytes }
    }

    /// Whether it can be about packets that are forwarded.
    pub(crate) fn is_of_transit(&self) -> bool {
        self.action != RuleAction::Nothing && !self.oif
    }

    /// The name of the port by which packets come in that it is about, if it says nothing of their sources.
    pub(crate) fn ruled_port(&self) -> Option<&str> {
        self.iif.as_deref().filter(|_| self.from.is_none() && self.is_of_transit())
    }

    /// Whether it has all packets looked up in that table, and what that says holds.
    pub(crate) fn is_plain(&self, table: u32) -> bool {
        let plain = Rule::plain(self.family, self.priority, table);
        *self == Rule { bytes: self.bytes.clone(), ..plain }
    }
}

/// Settings of an interface, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The family that they are for.
    pub family: Family,
    /// What they are for.
    pub scope: SettingScope,
    /// Paths without carrier are not used (`ignore_routes_with_linkdown`); none where the message does not say.
    pub ignores_linkdown: Option<bool>,
}

/// What a [`Setting`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingScope {
    /// The interface of that index.
    Interface(u32),
    /// All interfaces (`conf/all`).
    All,
    /// Interfaces that are yet to come (`conf/default`).
    Default,
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
