//! What interfaces can do, and what the kernel does to packets there that the router would not.

use super::Check;
use crate::commands::probe::Probe;
use causeway_kernel::{Finding, Severity, inspect, interfaces};
use causeway_netio::afxdp::XDP_HEADROOM;
use causeway_netio::features::FeatureQuery;
use causeway_netio::interface::Interface;
use causeway_netio::offload::{self, Offload};

/// All checks of the interfaces named, or of all that could be ports.
pub fn checks(names: &[String]) -> Vec<Check> {
    let known = match interfaces() {
        Ok(known) => known,
        Err(e) => return vec![Check::missing(format!("netlink: {e}"), "sudo causeway doctor")],
    };
    let could = |i: &&causeway_kernel::Interface| {
        i.link.ethernet && !i.link.loopback && !i.link.no_arp && i.link.master.is_none()
    };
    let names: Vec<String> = match names {
        [] => known.iter().filter(could).map(|i| i.link.name.clone()).collect(),
        names => names.to_vec(),
    };
    let mut checks = Vec::new();
    if names.is_empty() {
        checks.push(Check::missing("there is no Ethernet interface", "ip link"));
    }
    for name in &names {
        let its = known.iter().find(|i| i.link.name == *name);
        checks.extend(its.into_iter().flat_map(of));
    }
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    match inspect(&borrowed, &Probe) {
        Ok(findings) => checks.extend(findings.into_iter().map(finding)),
        Err(e) => {
            checks.push(Check::missing(format!("packet filter and rules: {e}"), "sudo causeway doctor"))
        }
    }
    checks
}

fn finding(finding: Finding) -> Check {
    let what = format!("{}: {}", finding.place, finding.what);
    match finding.severity {
        Severity::Warn => Check::warning(what, finding.mend),
        Severity::Refuse => Check::missing(what, finding.mend),
    }
}

/// The checks of one interface that is there.
fn of(interface: &causeway_kernel::Interface) -> Vec<Check> {
    let link = &interface.link;
    let name = &link.name;
    let opened = match Interface::open(name) {
        Ok(opened) => opened,
        Err(e) => return vec![Check::missing(e.to_string(), "ip link")],
    };
    let driver = interface.driver.as_deref().unwrap_or("driver unknown");
    let facts = format!("{name} ({driver}, {} queue(s), MTU {})", opened.queues, opened.mtu);
    let mut checks = vec![xdp(name, &facts, opened.index)];
    if let Err(e) = opened.check_mtu(XDP_HEADROOM) {
        let text = e.to_string();
        let (what, mend) = text.split_once("; ").unwrap_or((&text, "ip link set dev mtu"));
        checks.push(Check::missing(what, mend.replace('`', "")));
    }
    if let Some(program) = link.xdp_program {
        checks.push(Check::missing(
            format!("{name}: XDP program {program} is attached, perhaps by another router"),
            format!("ip link set dev {name} xdp off    # or stop the process that holds it"),
        ));
    }
    let on = |offload| offload::is_on(name, offload).unwrap_or(false);
    for (offload, word) in [(Offload::Lro, "lro"), (Offload::RxVlan, "rxvlan")] {
        if on(offload) {
            checks.push(Check::good(format!("{name}: {word} is on; it is turned off while `up` runs")));
        }
    }
    checks
}

fn xdp(name: &str, facts: &str, index: u32) -> Check {
    match FeatureQuery::new().and_then(|query| query.get(index)) {
        Ok(features) if !features.native() => Check::missing(
            format!("{facts}: the driver has no XDP"),
            format!("leave {name} out: the kernel forwards to it"),
        ),
        Ok(features) if features.zero_copy() => Check::good(format!("{facts}: XDP in the driver, zero-copy")),
        Ok(_) => Check::good(format!("{facts}: XDP in the driver, frames are copied")),
        Err(_) => Check::warning(
            format!("{facts}: this kernel does not say what XDP the driver has"),
            "use Linux 6.3 or later",
        ),
    }
}
