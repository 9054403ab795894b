//! Names of addresses: what AddressInfo defines, found from the inside of a compound outwards.

use causeway_lang::addresses::{self, Transport};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses that one name stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address.
    pub ip: Option<Ipv4Addr>,
    /// Network: an address in it and the length of its prefix.
    pub ip_net: Option<(Ipv4Addr, u8)>,
    /// Gateway to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// IPv6 address.
    pub ip6: Option<Ipv6Addr>,
    /// IPv6 network: an address in it and the length of its prefix.
    pub ip6_net: Option<(Ipv6Addr, u8)>,
    /// Ethernet address.
    pub ether: Option<[u8; 6]>,
}

/// What the machine says of its interface of that name.
pub type Interfaces = fn(&str) -> Option<Addresses>;

/// All named addresses of a router.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_name: HashMap<String, Addresses>,
    /// Ports over TCP and over UDP.
    ports: HashMap<String, [Option<u16>; 2]>,
    interfaces: Option<Interfaces>,
}

/// [`Names`] as one element sees them.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    names: &'a Names,
    element: &'a str,
}

impl Names {
    /// Adds to what `name` stands for, as the element `by` defines it: a name defined inside a compound is seen
    /// inside it only. What is `None` in `addresses` stays as it was.
    pub fn define(&mut self, by: &str, name: &str, addresses: Addresses) {
        let scope = by.rfind('/').map_or("", |i| &by[..=i]);
        let entry = self.by_name.entry(format!("{scope}{name}")).or_default();
        *entry = Addresses {
            ip: addresses.ip.or(entry.ip),
            ip_net: addresses.ip_net.or(entry.ip_net),
            gateway: addresses.gateway.or(entry.gateway),
            ip6: addresses.ip6.or(entry.ip6),
            ip6_net: addresses.ip6_net.or(entry.ip6_net),
            ether: addresses.ether.or(entry.ether),
        };
    }

    /// Lets `name` stand for a port, as the element `by` defines it.
    pub fn define_port(&mut self, by: &str, name: &str, transport: Transport, port: u16) {
        let scope = by.rfind('/').map_or("", |i| &by[..=i]);
        self.ports.entry(format!("{scope}{name}")).or_default()[transport as usize] = Some(port);
    }

    /// Lets names that nobody defined stand for the addresses of the interface of that name.
    pub fn set_interfaces(&mut self, interfaces: Option<Interfaces>) {
        self.interfaces = interfaces;
    }

    /// The names as `element` sees them.
    pub fn scope<'a>(&'a self, element: &'a str) -> Scope<'a> {
        Scope { names: self, element }
    }
}

impl Scope<'_> {
    /// What `name` stands for: in the element's own compound first, then in those around it, then among the
    /// machine's interfaces.
    pub fn get(&self, name: &str) -> Option<Addresses> {
        if name.is_empty() {
            return None;
        }
        let found = self.outwards(name, |full| self.names.by_name.get(full).copied());
        found.or_else(|| self.names.interfaces.and_then(|ask| ask(name)))
    }

    /// The port that `name` stands for: a defined one, else the service of that name, else the number.
    pub fn port(&self, name: &str, transport: Transport) -> Option<u16> {
        let defined = |full: &str| self.names.ports.get(full).and_then(|ports| ports[transport as usize]);
        self.outwards(name, defined).or_else(|| addresses::port(name, transport).ok())
    }

    /// What is found by the full name of `name` in the element's own compound first, then in those around it.
    fn outwards<T>(&self, name: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut scope = self.element;
        while let Some(i) = scope.rfind('/') {
            if let Some(found) = find(&format!("{}{name}", &self.element[..=i])) {
                return Some(found);
            }
            scope = &scope[..i];
        }
        find(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ether(last: u8) -> Addresses {
        Addresses { ether: Some([2, 0, 0, 0, 0, last]), ..Addresses::default() }
    }

    #[test]
    fn names_are_looked_up_from_the_inside_outwards_then_among_interfaces() {
        let mut names = Names::default();
        names.define("a/b/info", "gate", ether(1));
        names.define("info", "gate", ether(2));
        names.set_interfaces(Some(|name| (name == "gate" || name == "eth9").then(|| ether(9))));
        let get = |element: &str, name: &str| names.scope(element).get(name);
        assert_eq!(get("a/b/c/x", "gate"), Some(ether(1)));
        assert_eq!(get("a/x", "gate"), Some(ether(2)));
        assert_eq!(get("a/x", "eth9"), Some(ether(9)));
        assert_eq!((get("x", "eth8"), get("x", "")), (None, None));
    }
}
