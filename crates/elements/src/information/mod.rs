//! Information: settings of other elements, and names for addresses. These elements see no packets.

use causeway_engine::{Addresses, Conf, Element, Spec};
use std::net::Ipv4Addr;
use std::sync::Arc;

mod address_info;
mod alignment_info;
mod balanced_thread_sched;
mod ip_name_info;
mod port_info;
mod random_seed;
mod schedule_info;
mod static_thread_sched;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &address_info::SPEC,
    &alignment_info::SPEC,
    &balanced_thread_sched::SPEC,
    &ip_name_info::SPEC,
    &port_info::SPEC,
    &random_seed::SPEC,
    &schedule_info::SPEC,
    &static_thread_sched::SPEC,
];

/// An element that has done all its work once it is configured.
struct Settled;

impl Element for Settled {}

/// The addresses of the machine's interface called `name`.
pub(crate) fn interface(name: &str) -> Option<Addresses> {
    let found = causeway_netio::addresses::of_interface(name)?;
    Some(Addresses {
        ip: found.ip.map(|(address, _)| address),
        ip_net: found.ip,
        gateway: default_gateway(name),
        ip6: found.ip6.map(|(address, _)| address),
        ip6_net: found.ip6,
        ether: found.mac,
    })
}

/// The gateway of the default route through interface `name`, if there is one.
fn default_gateway(name: &str) -> Option<Ipv4Addr> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    routes.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [interface, "00000000", gateway, _, _, _, _, "00000000", ..] = fields[..] else { return None };
        // The kernel prints the word as it lies in memory.
        let gateway = Ipv4Addr::from(u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes());
        (interface == name && !gateway.is_unspecified()).then_some(gateway)
    })
}

/// The full name of the element or compound that `name` means where `conf`'s element stands, with all elements
/// it covers. Names are looked up in the element's own compound first, then in those around it.
fn covered(conf: &Conf<'_>, name: &str) -> Option<(String, Vec<Arc<str>>)> {
    let mut scope = &conf.name()[..];
    loop {
        scope = scope.rfind('/').map_or("", |i| &scope[..i]);
        let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
        let inside = |e: &str| e == full || e.strip_prefix(&full).is_some_and(|rest| rest.starts_with('/'));
        let elements: Vec<_> = conf.env.elements.iter().filter(|e| inside(e)).cloned().collect();
        match (elements.is_empty(), scope.is_empty()) {
            (false, _) => return Some((full, elements)),
            (true, true) => return None,
            (true, false) => {}
        }
    }
}

/// The arguments, each split into the name and the value, which may be missing.
fn pairs(conf: &mut Conf<'_>) -> Vec<(String, String)> {
    let given = conf.rest().into_iter().filter(|text| !text.is_empty());
    let pair = |text: String| {
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        (name.to_owned(), value.trim().to_owned())
    };
    given.map(pair).collect()
}
