//! What each port may do now, from its link, its addresses and the kernel's settings: for the programs in front of the
//! ports, which take a frame from the kernel, and for the workers, which decide on it.

use crate::ports;
use causeway_elements::kernel::lower::Begins;
use causeway_elements::kernel::{Forwarding, PortPolicy, ReversePath};
use causeway_kernel::{Link, PortSettings, Settings, SourceCheck};
use causeway_netio::front::Front;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The ports' policies, changed from the threads that learn of links and of settings.
pub struct Policies {
    front: Arc<Front>,
    forwarding: Arc<Forwarding>,
    ports: Mutex<Vec<Port>>,
}

/// What is known of a port.
#[derive(Clone, Debug, Default)]
struct Port {
    name: String,
    /// What its packets begin with, as its program takes them.
    begins: Option<Begins>,
    /// None while there is no interface of that name that can be a port.
    link: Option<Link>,
    /// Whether the interface has an IPv4 address.
    has_address: bool,
    settings: PortSettings,
    /// A policy rule is about packets that come in by it, of IPv4 and of IPv6, by the tables' rules. Those of the settings may be
    /// of another time.
    ruled: [bool; 2],
    /// Everything is left to the kernel for some time, because most of it is the kernel's anyway.
    resting: bool,
}

impl Policies {
    /// Policies of the ports of `forwarding`, whose packets begin with this, and of which nothing else is known: everything is the
    /// kernel's.
    pub fn new(front: Arc<Front>, forwarding: Arc<Forwarding>, begins: &[Option<Begins>]) -> Policies {
        let port = |(name, &begins): (&String, &Option<Begins>)| Port {
            name: name.clone(),
            begins,
            ruled: [true; 2],
            ..Port::default()
        };
        let ports = Mutex::new(forwarding.ports().iter().zip(begins).map(port).collect());
        Policies { front, forwarding, ports }
    }

    /// Sets the link of a port, and whether it has an IPv4 address.
    pub fn set_link(&self, number: usize, link: Option<&Link>, addresses: &[IpAddr]) {
        self.change(|ports| {
            if let Some(port) = ports.get_mut(number) {
                port.link = link.cloned();
                port.has_address = addresses.iter().any(IpAddr::is_ipv4);
            }
        });
    }

    /// Sets the kernel's settings.
    pub fn set_settings(&self, settings: &Settings) {
        self.change(|ports| {
            for port in ports {
                port.settings = settings.ports.get(&port.name).copied().unwrap_or_default();
            }
        });
    }

    /// Sets whether policy rules are about packets of IPv4 and of IPv6 that come in by a port.
    pub fn set_ruled(&self, number: usize, ruled: [bool; 2]) {
        self.change(|ports| {
            if let Some(port) = ports.get_mut(number) {
                port.ruled = ruled;
            }
        });
    }

    /// Leaves everything of a port to the kernel for some time, or not any more.
    pub fn rest(&self, number: usize, resting: bool) {
        self.change(|ports| {
            if let Some(port) = ports.get_mut(number) {
                port.resting = resting;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Port>)) {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<Option<(u32, Option<[u8; 6]>)>> = ports.iter().map(Port::place).collect();
        change(&mut ports);
        for (number, (port, before)) in ports.iter().zip(before).enumerate() {
            let policy = port.policy();
            self.forwarding.set_policy(number, policy);
            let now = port.place();
            if let Some((ifindex, mac)) = before.filter(|b| now.is_none_or(|n| n.0 != b.0)) {
                self.set_transit(port, ifindex, mac, (false, false));
            }
            if let Some((ifindex, mac)) = now {
                self.set_transit(port, ifindex, mac, (policy.ipv4, policy.ipv6));
            }
        }
    }

    fn set_transit(&self, port: &Port, ifindex: u32, mac: Option<[u8; 6]>, (ipv4, ipv6): (bool, bool)) {
        if let Err(e) = self.front.set_transit(ifindex, mac, ipv4, ipv6) {
            // The workers know it all the same, and leave the packets to the kernel.
            log::warn!("{}: what is taken in the driver cannot be changed: {e}", port.name);
        }
    }
}

impl Port {
    /// The interface's index and Ethernet address, which it has none of if its packets have no Ethernet header.
    fn place(&self) -> Option<(u32, Option<[u8; 6]>)> {
        let link = self.link.as_ref()?;
        Some((link.index, if link.bare { None } else { Some(link.mac?) }))
    }

    fn policy(&self) -> PortPolicy {
        let is_fit = |link: &Link| is_fit(link) && ports::begins(link) == self.begins;
        let fit = self.link.as_ref().is_some_and(is_fit) && !self.resting;
        let (v4, v6) = (&self.settings.v4, &self.settings.v6);
        PortPolicy {
            ipv4: fit && v4.forwarding && !v4.ruled && !self.ruled[0],
            ipv6: fit && v6.forwarding && v6.enabled && !v6.ruled && !self.ruled[1],
            reverse_path: match v4.reverse_path {
                SourceCheck::Off => ReversePath::Off,
                // On an interface without an address the kernel lets no source pass that is reached by another.
                SourceCheck::Loose if self.has_address => ReversePath::Loose,
                _ => ReversePath::Strict,
            },
            hairpin: !v4.send_redirects,
        }
    }
}

/// Whether packets that come in by the link are the routing code's: it is up, of a kind that the program knows, and no part of a
/// bridge or bond.
pub fn is_fit(link: &Link) -> bool {
    link.up && link.is_plain() && link.master.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link {
            index: 7,
            name: "a".to_owned(),
            other_names: Vec::new(),
            kind: None,
            parent: None,
            mac: Some([2; 6]),
            ethernet: true,
            bare: false,
            no_arp: false,
            loopback: false,
            up: true,
            carrier: true,
            mtu_bytes: 1500,
            mtu6_bytes: 1500,
            master: None,
            master_kind: None,
            takes_from: None,
            rx_queues: 1,
            tx_queues: 1,
            xdp_program: None,
        }
    }

    fn port(change: impl FnOnce(&mut Port)) -> PortPolicy {
        let begins = Some(Begins::Ethernet);
        let mut port = Port { begins, link: Some(link()), has_address: true, ..Port::default() };
        port.settings.v4.forwarding = true;
        (port.settings.v6.forwarding, port.settings.v6.enabled) = (true, true);
        port.settings.v4.reverse_path = SourceCheck::Off;
        change(&mut port);
        port.policy()
    }

    #[test]
    fn a_port_forwards_what_the_kernel_would() {
        let versions = |policy: PortPolicy| (policy.ipv4, policy.ipv6);
        assert_eq!(versions(port(|_| ())), (true, true));
        assert_eq!(versions(port(|p| p.settings.v4.forwarding = false)), (false, true));
        assert_eq!(versions(port(|p| p.settings.v6.forwarding = false)), (true, false));
        assert_eq!(versions(port(|p| p.settings.v6.enabled = false)), (true, false));
        assert_eq!(versions(port(|p| p.settings.v4.ruled = true)), (false, true));
        assert_eq!(versions(port(|p| p.settings.v6.ruled = true)), (true, false));
        assert_eq!(versions(port(|p| p.ruled = [true, false])), (false, true));
        assert_eq!(versions(port(|p| p.ruled = [false, true])), (true, false));
        let unfit: [fn(&mut Link); 5] = [
            |l| l.up = false,
            |l| l.master = Some(9),
            |l| l.mac = None,
            |l| l.no_arp = true,
            |l| l.ethernet = false,
        ];
        for unfit in unfit {
            assert_eq!(versions(port(|p| p.link.iter_mut().for_each(unfit))), (false, false));
        }
        let tun = |p: &mut Port| {
            let link = p.link.as_mut().expect("a link");
            (link.ethernet, link.bare, link.no_arp, link.mac) = (false, true, true, None);
        };
        assert_eq!(versions(port(tun)), (false, false), "another kind of interface has its name now");
        let begins_so = |p: &mut Port| {
            tun(p);
            p.begins = Some(Begins::Ip);
            assert_eq!(p.place(), Some((7, None)));
        };
        assert_eq!(versions(port(begins_so)), (true, true));
        assert_eq!(versions(port(|p| p.link = None)), (false, false));
        assert_eq!(versions(port(|p| p.resting = true)), (false, false));
        assert_eq!(versions(Port::default().policy()), (false, false), "nothing is known");
    }

    #[test]
    fn sources_are_checked_as_the_settings_say() {
        use SourceCheck as Set;
        let check = |set, has_address| {
            port(|p| (p.settings.v4.reverse_path, p.has_address) = (set, has_address)).reverse_path
        };
        assert_eq!(
            [Set::Off, Set::Loose, Set::Strict].map(|s| check(s, true)),
            [ReversePath::Off, ReversePath::Loose, ReversePath::Strict]
        );
        assert_eq!(check(Set::Loose, false), ReversePath::Strict);
        assert!(!port(|_| ()).hairpin && port(|p| p.settings.v4.send_redirects = false).hairpin);
    }
}
