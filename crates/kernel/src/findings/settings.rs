//! Findings from the kernel's settings: those that a router without the kernel's state cannot follow.

use super::{Check, Finding};
use crate::mirror::Mirror;
use crate::model::Link;
use crate::settings::Settings;

pub(super) fn findings(settings: &Settings, mirror: &Mirror, ports: &[&Link]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if settings.forward_use_pmtu {
        findings.push(Check::ForwardUsePmtu.refuse(
            "net.ipv4.ip_forward_use_pmtu",
            "the kernel limits forwarded packets by path MTUs that only it knows",
            "sysctl -w net.ipv4.ip_forward_use_pmtu=0",
        ));
    }
    // Redirects change where packets leave, whichever interface they come in by.
    let forwards4 = settings.ports.values().any(|port| port.v4.forwarding);
    let forwards6 = settings.ports.values().any(|port| port.v6.forwarding);
    for link in ports {
        let Some(port) = settings.ports.get(&link.name) else { continue };
        let name = &link.name;
        if forwards4 && port.v4.accept_redirects {
            let (all, own) =
                (key("ipv4", "all", "accept_redirects=0"), key("ipv4", name, "accept_redirects=0"));
            findings.push(redirects(name, "IPv4", format!("sysctl -w {all} {own}")));
        }
        if forwards6 && port.v6.accept_redirects {
            let own = key("ipv6", name, "accept_redirects=0");
            findings.push(redirects(name, "IPv6", format!("sysctl -w {own}")));
        }
        if !port.v4.forwarding {
            // The first changes nothing where it is set already.
            let own = key("ipv4", name, "forwarding=1");
            findings.push(forwarding(name, "IPv4", format!("sysctl -w net.ipv4.ip_forward=1 {own}")));
        }
        if !port.v6.forwarding && has_routable6(mirror, link) {
            findings.push(forwarding(name, "IPv6", "sysctl -w net.ipv6.conf.all.forwarding=1".into()));
        }
    }
    findings
}

/// A setting of an interface as `sysctl` wants it, which takes points in a name for slashes.
fn key(family: &str, port: &str, setting: &str) -> String {
    if port.contains('.') {
        format!("net/{family}/conf/{port}/{setting}")
    } else {
        format!("net.{family}.conf.{port}.{setting}")
    }
}

fn redirects(port: &str, family: &str, mend: String) -> Finding {
    let what = format!("{family} routes change by ICMP redirects, and the kernel sends no message of it");
    Check::AcceptRedirects.refuse(port, what, mend)
}

fn forwarding(port: &str, family: &str, mend: String) -> Finding {
    let what =
        format!("the kernel does not forward {family} that comes in here, and so the router leaves it");
    Check::ForwardingOff.warn(port, what, mend)
}

fn has_routable6(mirror: &Mirror, link: &Link) -> bool {
    mirror.addresses().any(|address| match address.address {
        std::net::IpAddr::V6(v6) => address.ifindex == link.index && !v6.is_unicast_link_local(),
        std::net::IpAddr::V4(_) => false,
    })
}
