//! What is looked at before the router starts.

use crate::commands::probe::Probe;
use anyhow::{Context, Result, bail};
use causeway_kernel::{Finding, Severity, inspect, interfaces};
use causeway_netio::afxdp::XDP_HEADROOM;
use causeway_netio::features::FeatureQuery;
use causeway_netio::interface::Interface;

/// The indices of the interfaces, if each can be a port.
pub fn ports(names: &[String]) -> Result<Vec<u32>> {
    let links = interfaces().context("cannot ask the kernel for the interfaces")?;
    let features = FeatureQuery::new().ok();
    let mut indices = Vec::new();
    for name in names {
        let interface = Interface::open(name)?;
        interface.check_mtu(XDP_HEADROOM)?;
        let link = links.iter().find(|i| i.link.index == interface.index);
        if let Some(program) = link.and_then(|i| i.link.xdp_program) {
            bail!(
                "{name}: XDP program {program} is attached already, perhaps by another router; stop that, \
                 or `ip link set dev {name} xdp off`"
            );
        }
        let native = features.as_ref().and_then(|q| q.get(interface.index).ok()).is_none_or(|f| f.native());
        if !native {
            bail!(
                "{name}: its driver has no XDP, so that frames could not be given back to the kernel; \
                 leave it out: the kernel forwards to it"
            );
        }
        indices.push(interface.index);
    }
    Ok(indices)
}

/// Prints what the kernel does to packets that this router would not. Says whether it may start.
pub fn findings(ports: &[String], force: bool) -> Result<bool> {
    let names: Vec<&str> = ports.iter().map(String::as_str).collect();
    let findings =
        inspect(&names, &Probe).context("cannot ask the kernel what it does to forwarded packets")?;
    show(&findings);
    let refused = findings.iter().any(|f| f.severity == Severity::Refuse);
    if refused && !force {
        log::error!("not started; mend what is above, or --force");
    }
    Ok(!refused || force)
}

/// Prints findings.
pub fn show(findings: &[Finding]) {
    findings.iter().for_each(|finding| log::info!("{finding}"));
}
