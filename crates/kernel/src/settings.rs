//! The kernel's settings that a data plane has to follow, as they are in effect.
//!
//! They are read from /proc/sys, which takes no privilege, from files that stay open: five times a second for 64 ports takes
//! less than a hundredth of a processor (`examples/inspector_cost.rs`). Where one cannot be read (the interface is gone, the
//! kernel is older than the setting), it is taken to be what leaves most to the kernel.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The settings of a network namespace, as far as a data plane has to follow them.
///
/// # What the kernel's settings mean for a router
///
/// What was decided of the settings under which the kernel forwards otherwise than a plain router does, by what it does
/// (those that decide were tried):
///
/// | setting | decision |
/// | --- | --- |
/// | `ipv4.conf.IF.forwarding` | [setting](PortSettings4): of the interface that a packet comes in by, of no other |
/// | `ipv6.conf.all.forwarding`, `IF.force_forwarding` | [setting](PortSettings6): either is enough; `IF.forwarding` does not matter |
/// | `ipv6.conf.IF.disable_ipv6`, `ipv6.conf.IF.mtu` | setting |
/// | `rp_filter`, `accept_local`, `send_redirects` (IPv4) | setting: the larger of `all` and the interface's own |
/// | `src_valid_mark` | nothing: marks come from the packet filter, which is a finding |
/// | `ignore_routes_with_linkdown` | setting: the interface's own |
/// | `fib_multipath_*` | setting |
/// | `accept_redirects` | finding where it is in effect: for IPv4 in `all` and the interface (in either if that one does not forward), for IPv6 where the interface's own `forwarding` is off |
/// | `ipv4.ip_forward_use_pmtu` | finding |
/// | `ipv6.conf.all.proxy_ndp` | setting: neighbour discovery to an address with a proxy entry is the kernel's; `IF.proxy_ndp` does not matter |
/// | `proxy_arp`, `proxy_arp_pvlan` | nothing: they are about ARP, which is the kernel's |
/// | `route_localnet`, `accept_source_route`, `seg6_enabled`, `drop_unicast_in_l2_multicast`, `bc_forwarding`, `mc_forwarding` | nothing: they are about packets that are always the kernel's (loopback addresses, options, extension headers, group addresses) |
/// | `ip_forward_update_priority` | nothing: it is for queueing disciplines, which are findings |
/// | `secure_redirects`, `shared_media`, `log_martians`, `icmp_*` | nothing: they are about what the kernel sends or learns itself |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Of each port, by name.
    pub ports: BTreeMap<String, PortSettings>,
    /// How flows are spread over the paths of IPv4 routes.
    pub multipath4: MultipathSettings,
    /// The same for IPv6.
    pub multipath6: MultipathSettings,
    /// `fib_multipath_hash_seed`, for both families; 0 if the kernel has a key of its own that it does not tell.
    pub multipath_hash_seed: u32,
    /// `fib_multipath_use_neigh`: an IPv4 path whose gateway is known not to answer is left out.
    pub multipath_use_neighbours: bool,
    /// `ip_forward_use_pmtu`: forwarded IPv4 packets are limited by path MTUs that the kernel learned.
    pub forward_use_pmtu: bool,
    /// `conf.all.proxy_ndp` of IPv6: neighbour discovery to addresses that the machine answers for is the kernel's.
    pub proxy_ndp: bool,
}

/// How flows are spread over the paths of routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultipathSettings {
    /// `fib_multipath_hash_policy`, from 0 to 3.
    pub policy: u8,
    /// `fib_multipath_hash_fields`, for policy 3.
    pub fields: u32,
}

/// The settings of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// For IPv4.
    pub v4: PortSettings4,
    /// For IPv6.
    pub v6: PortSettings6,
}

/// Settings of a port for IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings4 {
    /// Packets that come in by the port are forwarded; that of the port they leave by does not matter.
    pub forwarding: bool,
    /// How the source of packets that come in is checked.
    pub reverse_path: SourceCheck,
    /// Packets may come in with a source that is an address of this machine.
    pub accept_local: bool,
    /// ICMP redirects are sent for packets that leave by the port they came in by.
    pub send_redirects: bool,
    /// ICMP redirects that come in change routes.
    pub accept_redirects: bool,
    /// A path that leaves by the port is left out while there is no carrier.
    pub ignore_linkdown: bool,
    /// A policy rule is about packets that come in by the port: they are the kernel's.
    pub ruled: bool,
}

impl Default for PortSettings4 {
    /// What leaves most to the kernel.
    fn default() -> Self {
        PortSettings4 {
            forwarding: false,
            reverse_path: SourceCheck::Strict,
            accept_local: false,
            send_redirects: true,
            accept_redirects: false,
            ignore_linkdown: false,
            ruled: false,
        }
    }
}

/// Settings of a port for IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings6 {
    /// Packets that come in by the port are forwarded; that of the port they leave by does not matter.
    pub forwarding: bool,
    /// There is IPv6 on the port (`disable_ipv6` is off), which matters in both directions.
    pub enabled: bool,
    /// ICMP redirects that come in change routes.
    pub accept_redirects: bool,
    /// A path that leaves by the port is left out while there is no carrier.
    pub ignore_linkdown: bool,
    /// The largest packet that leaves by the port, octets (`mtu`); 0 if that is not known. Changed by itself it is told by no
    /// message: [`Watcher::look_again`](crate::Watcher::look_again) at the links then.
    pub mtu_bytes: u32,
    /// A policy rule is about packets that come in by the port: they are the kernel's.
    pub ruled: bool,
}

/// `rp_filter` (RFC 3704): whether a packet's source must be reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceCheck {
    /// It is not checked.
    #[default]
    Off,
    /// By the interface that the packet came in by (RFC 3704 §2.2).
    Strict,
    /// By any interface (RFC 3704 §2.4).
    Loose,
}

/// Reads the settings of the network namespace that the thread of the first reading is in.
pub(crate) struct SettingsReader {
    ports: Vec<String>,
    files: HashMap<String, File>,
}

impl SettingsReader {
    /// For these ports.
    pub fn new(ports: &[String]) -> Self {
        SettingsReader { ports: ports.to_vec(), files: HashMap::new() }
    }

    /// All settings as they are now.
    pub fn read(&mut self) -> Settings {
        let ports = self.ports.clone();
        Settings {
            ports: ports.into_iter().map(|name| (name.clone(), self.port(&name))).collect(),
            multipath4: self.multipath("ipv4"),
            multipath6: self.multipath("ipv6"),
            multipath_hash_seed: self.value("ipv4/fib_multipath_hash_seed").unwrap_or(0) as u32,
            multipath_use_neighbours: self.is_on("ipv4/fib_multipath_use_neigh"),
            forward_use_pmtu: self.is_on("ipv4/ip_forward_use_pmtu"),
            proxy_ndp: self.is_on("ipv6/conf/all/proxy_ndp"),
        }
    }

    fn multipath(&mut self, family: &str) -> MultipathSettings {
        let mut value = |name: &str| self.value(&format!("{family}/fib_multipath_hash_{name}")).unwrap_or(0);
        MultipathSettings { policy: value("policy") as u8, fields: value("fields") as u32 }
    }

    fn port(&mut self, port: &str) -> PortSettings {
        PortSettings { v4: self.port4(port).unwrap_or_default(), v6: self.port6(port).unwrap_or_default() }
    }

    fn port4(&mut self, port: &str) -> Option<PortSettings4> {
        let mut both = |name: &str| {
            let mut of = |place: &str| self.value(&format!("ipv4/conf/{place}/{name}"));
            Some((of("all")?, of(port)?))
        };
        let either = |(all, own): (i64, i64)| all != 0 || own != 0;
        let forwarding = both("forwarding")?.1 != 0;
        let redirects = both("accept_redirects")?;
        let (all, own) = both("rp_filter")?;
        Some(PortSettings4 {
            forwarding,
            reverse_path: match all.max(own) {
                0 => SourceCheck::Off,
                1 => SourceCheck::Strict,
                _ => SourceCheck::Loose,
            },
            accept_local: either(both("accept_local")?),
            send_redirects: either(both("send_redirects")?),
            accept_redirects: if forwarding {
                redirects.0 != 0 && redirects.1 != 0
            } else {
                either(redirects)
            },
            ignore_linkdown: both("ignore_routes_with_linkdown")?.1 != 0,
            ruled: false,
        })
    }

    fn port6(&mut self, port: &str) -> Option<PortSettings6> {
        let all = self.is_on("ipv6/conf/all/forwarding");
        let mut own = |name: &str| self.value(&format!("ipv6/conf/{port}/{name}")).map(|value| value != 0);
        let enabled = !own("disable_ipv6")?;
        // Linux 6.17 and later have it.
        let forced = own("force_forwarding").unwrap_or(false);
        Some(PortSettings6 {
            forwarding: enabled && (all || forced),
            enabled,
            accept_redirects: own("accept_redirects")? && !own("forwarding")?,
            ignore_linkdown: own("ignore_routes_with_linkdown")?,
            ruled: false,
            mtu_bytes: self.value(&format!("ipv6/conf/{port}/mtu")).map_or(0, |mtu| mtu as u32),
        })
    }

    fn is_on(&mut self, path: &str) -> bool {
        self.value(path).is_some_and(|value| value != 0)
    }

    /// A number below /proc/sys/net.
    fn value(&mut self, path: &str) -> Option<i64> {
        let mut text = [0; 24];
        if let Some(file) = self.files.get(path) {
            match file.read_at(&mut text, 0) {
                Ok(len) => return parse(&text[..len]),
                // The interface went, and perhaps another of its name came.
                Err(_) => drop(self.files.remove(path)),
            }
        }
        let file = File::open(format!("/proc/sys/net/{path}")).ok()?;
        let len = file.read_at(&mut text, 0).ok()?;
        self.files.insert(path.to_owned(), file);
        parse(&text[..len])
    }
}

fn parse(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
