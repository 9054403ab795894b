//! Findings about the interfaces themselves.

use super::{Check, Finding};
use crate::model::Link;

pub(super) fn missing(name: &str) -> Finding {
    Check::PortMissing.refuse(name, "there is no such interface", "ip link    # shows those that there are")
}

/// What stands upon a port and takes its frames before the routing code sees them.
pub(super) fn shared(port: &Link, taker: &Link) -> Finding {
    let kind = taker.kind.as_deref().unwrap_or("other device");
    Check::PortShared.refuse(
        &port.name,
        format!("forwarded packets would pass by the {kind} '{}', which takes them from it", taker.name),
        format!("ip link del dev {}", taker.name),
    )
}

pub(super) fn findings(link: &Link) -> Vec<Finding> {
    let mut findings = Vec::new();
    if link.master.is_some() {
        let kind = link.master_kind.as_deref().unwrap_or("other device");
        findings.push(Check::PortEnslaved.refuse(
            &link.name,
            format!("belongs to a {kind}, which decides what becomes of its packets"),
            format!("ip link set dev {} nomaster", link.name),
        ));
    }
    if !link.is_plain() {
        findings.push(Check::PortKind.refuse(
            &link.name,
            "is neither an Ethernet interface with address resolution nor one without link-layer header",
            "leave it out: the kernel forwards to it",
        ));
    }
    if !link.up {
        let mend = format!("ip link set dev {} up", link.name);
        findings.push(Check::PortDown.warn(&link.name, "is down", mend));
    }
    findings
}
