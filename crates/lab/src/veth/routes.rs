//! Few routes and a million of them, with the same traffic: 64-byte frames to addresses by chance.

use super::testbed::Testbed;
use super::traffic::{Sink, To};
use super::{Cost, FRAME_LENS, Forwarder, Way, all, compare, measure, possible};
use crate::Settings;
use crate::namespace::ip_lines;
use crate::report::Report;
use anyhow::Result;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// 20.0.0.0, where the destinations begin.
const FIRST: u32 = 20 << 24;
/// Networks of 256 addresses each, one after the other.
const NETWORKS: u32 = 1_000_000;
/// Those that hold all of them, and some more.
const FEW: [&str; 3] = ["20.0.0.0/6", "24.0.0.0/5", "32.0.0.0/6"];

/// `ip` lines that add a route for each network.
fn a_route_each() -> String {
    let mut lines = String::new();
    for n in 0..NETWORKS {
        let network = Ipv4Addr::from(FIRST + (n << 8));
        let _ = writeln!(lines, "route add {network}/24 via 10.78.2.2");
    }
    lines
}

/// Forwarding rates with few routes and with many.
pub fn routes(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading(
        "Between namespaces: 64-byte frames to 256 000 000 addresses, by few routes and by a million",
    );
    if !possible("ip") {
        return Ok(());
    }
    let bed = Testbed::new()?;
    let sink = Arc::new(Sink::new(&bed)?);
    for network in FEW {
        bed.router.ip(&format!("route add {network} via 10.78.2.2"))?;
    }
    // Some rounds with few routes, then as many with all: to fill the kernel's table takes longer than a round.
    for name in ["3 routes", "1000000 routes"] {
        if name != "3 routes" {
            ip_lines(&bed.router.name, &a_route_each())?;
        }
        let mut costs: [Vec<Cost>; Way::ALL.len()] = Default::default();
        for _ in 0..settings.rounds {
            for (way, costs) in Way::ALL.into_iter().zip(&mut costs) {
                let forwarder = Forwarder::start(&bed, way, settings.processor)?;
                let stream = all(settings, FRAME_LENS[0], To::Any(FIRST, NETWORKS << 8));
                costs.push(measure(&bed, &sink, &forwarder, stream, settings)?);
            }
        }
        let ways: Vec<_> = Way::ALL.into_iter().zip(costs.iter().map(Vec::as_slice)).collect();
        compare(report, &format!("veth/{name}"), &ways);
    }
    Ok(())
}
