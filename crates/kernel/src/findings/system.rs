//! Findings from the mirror and from the kernel's settings.

use std::net::IpAddr;

use super::{Check, Finding, Severity};
use crate::mirror::Mirror;
use crate::model::{Family, Link, Qdisc, Rule};
use crate::uapi::TC_H_CLSACT;

/// Disciplines that only order packets of one link: passing them by costs fairness, not policy.
const ORDERING: [&str; 8] = ["noqueue", "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "sfq", "mq"];

/// Reads a setting under /proc/sys/net for the calling thread's network namespace.
pub(super) fn read_setting(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/net/{path}")).ok().map(|text| text.trim().to_owned())
}

pub(super) fn missing(name: &str) -> Finding {
    Finding {
        check: Check::Port,
        severity: Severity::Refuse,
        place: name.to_owned(),
        what: "there is no such interface".into(),
        mend: "ip link    # shows those that there are".into(),
    }
}

/// All findings that need no further question to the kernel.
pub(super) fn findings(mirror: &Mirror, setting: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for family in [Family::V4, Family::V6] {
        if !mirror.follows_rules(family) {
            findings.extend(rules(mirror, family));
        }
    }
    let ports: Vec<&Link> =
        mirror.ports().filter_map(|port| mirror.links().find(|l| l.index == port)).collect();
    for link in ports {
        findings.extend(port(link));
        findings
            .extend(mirror.qdiscs().filter(|q| q.ifindex == link.index).filter_map(|q| qdisc(q, &link.name)));
        findings.extend(forwarding(mirror, link, &setting));
        findings.extend(reverse_path(link, &setting));
    }
    findings
}

fn rules(mirror: &Mirror, family: Family) -> Vec<Finding> {
    let command = if family == Family::V4 { "ip rule" } else { "ip -6 rule" };
    let finding = |what: String, mend: String| Finding {
        check: Check::Rules,
        severity: Severity::Refuse,
        place: command.to_owned(),
        what,
        mend,
    };
    let own = |rule: &&Rule| {
        rule.plain && matches!((rule.priority, rule.table), (0, 255) | (32766, 254) | (32767, 253))
    };
    let (usual, others): (Vec<&Rule>, Vec<&Rule>) =
        mirror.rules().filter(|rule| rule.family == family).partition(own);
    let mut findings: Vec<Finding> = others
        .iter()
        .map(|rule| {
            finding(
                format!("the rule of priority {} selects routes by more than the destination", rule.priority),
                format!("{command} del priority {}", rule.priority),
            )
        })
        .collect();
    let wanted = [(0, "local"), (32766, "main"), (32767, "default")];
    for (priority, table) in &wanted[..if family == Family::V4 { 3 } else { 2 }] {
        if !usual.iter().any(|rule| rule.priority == *priority) {
            findings.push(finding(
                format!("the kernel's own rule for the table {table} is missing"),
                format!("{command} add priority {priority} table {table}"),
            ));
        }
    }
    findings
}

fn port(link: &Link) -> Vec<Finding> {
    let refuse = |what: String, mend: String| Finding {
        check: Check::Port,
        severity: Severity::Refuse,
        place: link.name.clone(),
        what,
        mend,
    };
    let mut findings = Vec::new();
    if link.master.is_some() {
        let kind = link.master_kind.as_deref().unwrap_or("other device");
        findings.push(refuse(
            format!("belongs to a {kind}, which decides what becomes of its packets"),
            format!("ip link set dev {} nomaster", link.name),
        ));
    }
    if !link.ethernet || link.no_arp || link.loopback {
        findings.push(refuse(
            "is no Ethernet interface with address resolution".into(),
            "leave it out: the kernel forwards to it".into(),
        ));
    }
    if !link.up {
        findings.push(Finding {
            severity: Severity::Warn,
            ..refuse("is down".into(), format!("ip link set dev {} up", link.name))
        });
    }
    findings
}

fn qdisc(qdisc: &Qdisc, port: &str) -> Option<Finding> {
    let ingress = qdisc.parent == TC_H_CLSACT;
    // What the kernel put there by default has no handle.
    if qdisc.handle == 0 && !ingress {
        return None;
    }
    let name = if ingress { qdisc.kind.as_str() } else { "root" };
    let orders = ORDERING.contains(&qdisc.kind.as_str());
    Some(Finding {
        check: Check::Qdisc,
        severity: if orders { Severity::Warn } else { Severity::Refuse },
        place: port.to_owned(),
        what: format!("forwarded packets would pass by its queueing discipline {}", qdisc.kind),
        mend: format!("tc qdisc del dev {port} {name}"),
    })
}

fn forwarding(mirror: &Mirror, link: &Link, setting: &impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let off =
        |version: &str| setting(&format!("{version}/conf/{}/forwarding", link.name)).as_deref() == Some("0");
    let finding = |family: &str, mend: &str| Finding {
        check: Check::Forwarding,
        severity: Severity::Warn,
        place: link.name.clone(),
        what: format!(
            "the kernel does not forward {family}: what is left to it is lost, and all is when the router stops"
        ),
        mend: mend.to_owned(),
    };
    let routable = |address: IpAddr| match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    };
    let mut findings = Vec::new();
    if off("ipv4") {
        findings.push(finding("IPv4", "sysctl -w net.ipv4.ip_forward=1"));
    }
    if off("ipv6") && mirror.addresses().any(|a| a.ifindex == link.index && routable(a.address)) {
        findings.push(finding("IPv6", "sysctl -w net.ipv6.conf.all.forwarding=1"));
    }
    findings
}

fn reverse_path(link: &Link, setting: &impl Fn(&str) -> Option<String>) -> Option<Finding> {
    let value =
        |of: &str| setting(&format!("ipv4/conf/{of}/rp_filter")).and_then(|text| text.parse::<u8>().ok());
    // The stricter of the two holds.
    let (all, own) = (value("all").unwrap_or(0), value(&link.name).unwrap_or(0));
    let place = if all > own { "all" } else { &link.name };
    (all.max(own) != 0).then(|| Finding {
        check: Check::ReversePath,
        severity: Severity::Warn,
        place: link.name.clone(),
        what: "the kernel checks source addresses here (rp_filter); the router does not".into(),
        mend: format!("sysctl -w net.ipv4.conf.{place}.rp_filter=0"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_put_there_by_hand_counts() {
        let q = |handle, parent, kind: &str| Qdisc { ifindex: 1, handle, parent, kind: kind.into() };
        assert_eq!(qdisc(&q(0, u32::MAX, "fq_codel"), "p"), None);
        assert_eq!(qdisc(&q(0x10000, u32::MAX, "fq"), "p").map(|f| f.severity), Some(Severity::Warn));
        let shaper = qdisc(&q(0x10000, u32::MAX, "htb"), "p").unwrap();
        assert_eq!((shaper.severity, shaper.mend.as_str()), (Severity::Refuse, "tc qdisc del dev p root"));
        let ingress = qdisc(&q(0xffff_0000, TC_H_CLSACT, "clsact"), "p").unwrap();
        assert_eq!(
            (ingress.severity, ingress.mend.as_str()),
            (Severity::Refuse, "tc qdisc del dev p clsact")
        );
    }
}
