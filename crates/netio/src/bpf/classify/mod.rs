//! The XDP programs at the head of a port: what goes to user space, and what the kernel keeps.
//!
//! [`classify`] takes only what is surely in transit and leaves the rest to the kernel ("sure or pass"): a frame
//! that a plain router would forward by its destination alone, without a look at options, neighbours or itself.
//! [`take_all`] takes every frame, for graphs that own their interface as Click's do.
//!
//! Both redirect to the socket of the receiving queue with "pass" as the fallback: without a socket (the router was
//! killed, or the queue has none) the kernel gets the frame. Both count per reason, see [`Reason`].

mod code;

pub use code::{Maps, classify, take_all};

use super::{Map, MapKind, Program, ProgramKind};
use crate::error::Result;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;

/// What the program decided about a frame, and why. All but [`Reason::Taken`] go to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// Redirected to user space.
    Taken,
    /// To be taken, but the queue has no socket.
    NoSocket,
    /// Shorter than its headers, or a length field that does not fit.
    Malformed,
    /// Ethernet group or broadcast destination.
    EthernetGroup,
    /// Ethernet destination is not this interface.
    OtherHost,
    /// A VLAN tag.
    Vlan,
    /// ARP.
    Arp,
    /// Neither IPv4 nor IPv6.
    NonIp,
    /// IPv4 options.
    IpOptions,
    /// IPv6 extension headers.
    ExtensionHeader,
    /// A fragment, where the graph looks beyond the IP header.
    Fragment,
    /// TTL or hop limit 0 or 1.
    Ttl,
    /// Destination is one of this machine's addresses.
    Local,
    /// Destination or source is multicast, loopback, unspecified or link-local (RFC 6890).
    SpecialAddress,
}

impl Reason {
    /// All reasons, by their place in the counters.
    pub const ALL: [Reason; 14] = [
        Reason::Taken,
        Reason::NoSocket,
        Reason::Malformed,
        Reason::EthernetGroup,
        Reason::OtherHost,
        Reason::Vlan,
        Reason::Arp,
        Reason::NonIp,
        Reason::IpOptions,
        Reason::ExtensionHeader,
        Reason::Fragment,
        Reason::Ttl,
        Reason::Local,
        Reason::SpecialAddress,
    ];

    /// The counter's name, `xdp_...`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Taken => "xdp_taken",
            Reason::NoSocket => "xdp_pass_no_socket",
            Reason::Malformed => "xdp_pass_malformed",
            Reason::EthernetGroup => "xdp_pass_ethernet_group",
            Reason::OtherHost => "xdp_pass_other_host",
            Reason::Vlan => "xdp_pass_vlan",
            Reason::Arp => "xdp_pass_arp",
            Reason::NonIp => "xdp_pass_non_ip",
            Reason::IpOptions => "xdp_pass_ip_options",
            Reason::ExtensionHeader => "xdp_pass_extension_header",
            Reason::Fragment => "xdp_pass_fragment",
            Reason::Ttl => "xdp_pass_ttl",
            Reason::Local => "xdp_pass_local",
            Reason::SpecialAddress => "xdp_pass_special_address",
        }
    }
}

/// What happens to fragments in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// Taken like any packet: enough where the graph forwards by addresses.
    #[default]
    Take,
    /// Left to the kernel: for graphs that look at ports, which only a first fragment has.
    Pass,
}

/// Which program a port runs.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    /// [`take_all`].
    #[default]
    All,
    /// [`classify`] for frames to the interface's own address, with the addresses that are this machine's.
    Transit(Arc<LocalAddresses>, Fragments),
}

/// Most addresses of this machine, per family.
const LOCAL_MAX: u32 = 16_384;

/// The addresses that the kernel keeps for itself: hash maps shared by the programs of all ports, changed from user
/// space while they run. Besides host addresses, put subnet broadcast and anycast addresses here: all that the
/// kernel's local table holds.
#[derive(Debug)]
pub struct LocalAddresses {
    v4: Map,
    v6: Map,
}

impl LocalAddresses {
    /// Empty sets.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<LocalAddresses> {
        Ok(LocalAddresses {
            v4: Map::new(MapKind::Hash, "local4", 4, 4, LOCAL_MAX)?,
            v6: Map::new(MapKind::Hash, "local6", 16, 4, LOCAL_MAX)?,
        })
    }

    /// Adds an IPv4 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v4(&self, address: Ipv4Addr) -> Result<()> {
        self.v4.insert(&address.octets(), &[1, 0, 0, 0])
    }

    /// Adds an IPv6 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v6(&self, address: Ipv6Addr) -> Result<()> {
        self.v6.insert(&address.octets(), &[1, 0, 0, 0])
    }

    /// Removes an IPv4 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v4(&self, address: Ipv4Addr) -> Result<bool> {
        self.v4.remove(&address.octets())
    }

    /// Removes an IPv6 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v6(&self, address: Ipv6Addr) -> Result<bool> {
        self.v6.remove(&address.octets())
    }
}

/// The loaded program of one port with its maps.
#[derive(Debug)]
pub struct PortProgram {
    /// The program.
    pub program: Program,
    /// Sockets by queue.
    pub sockets: Map,
    counters: Map,
    /// Keeps the sets alive for whoever changes them; the program holds them anyway.
    _filter: Filter,
}

impl PortProgram {
    /// Makes the maps and loads the program for an interface with the address `mac` and `queues` queues.
    ///
    /// # Errors
    /// As [`Map::new`] and [`Program::load`].
    pub fn load(filter: Filter, mac: [u8; 6], queues: u32) -> Result<PortProgram> {
        let sockets = Map::new(MapKind::XskMap, "sockets", 4, 4, queues.max(1))?;
        let counters = Map::new(MapKind::PerCpuArray, "xdp_counters", 4, 8, Reason::ALL.len() as u32)?;
        let code = match &filter {
            Filter::All => take_all(sockets.as_fd(), counters.as_fd())?,
            Filter::Transit(local, fragments) => classify(
                &Maps {
                    sockets: sockets.as_fd(),
                    counters: counters.as_fd(),
                    local4: local.v4.as_fd(),
                    local6: local.v6.as_fd(),
                },
                mac,
                *fragments,
            )?,
        };
        let program = Program::load(ProgramKind::Xdp, "causeway_port", &code)?;
        Ok(PortProgram { program, sockets, counters, _filter: filter })
    }

    /// Frames counted for `reason`, all queues.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn count(&self, reason: Reason) -> Result<u64> {
        self.counters.per_cpu_sum(reason as u32)
    }
}

#[cfg(test)]
mod tests;
