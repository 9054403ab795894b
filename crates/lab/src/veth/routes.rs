//! One route and as many as a table has, with the same traffic: the shortest frames to addresses by chance.

use super::packets::To;
use super::testbed::{Hosts, Testbed, Version};
use super::traffic::Sink;
use super::way::{Forwarder, Way};
use super::{Cost, all, compare, measure, possible};
use crate::Settings;
use crate::namespace::ip_lines;
use crate::report::{Report, Row};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::sync::Arc;

/// The networks of a version, all of them beside one another, and a prefix that holds them all.
const TABLES: [(Version, u32, &str); 2] =
    [(Version::V4, 1_000_000, "16.0.0.0/4"), (Version::V6, 250_000, "2400::/30")];

/// What the ways cost, in the order of [`Way::ALL`].
type Costs = [Vec<Cost>; Way::ALL.len()];

/// `ip` lines that add a route for each network.
fn a_route_each(version: Version, networks: u32) -> String {
    let mut lines = String::new();
    for n in 0..networks {
        let _ = writeln!(lines, "route add {} via {}", version.prefix(n), version.gateway());
    }
    lines
}

/// Forwarding rates with one route and with many.
pub fn routes(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading(
        "Between namespaces: the shortest frames to addresses by chance, by one route and by one for each network",
    );
    if !possible("ip") {
        return Ok(());
    }
    for (version, networks, all_of_them) in TABLES {
        let bed = Testbed::new(Hosts::Plain)?;
        let sink = Arc::new(Sink::new(&bed)?);
        let to = To::Any(version, networks);
        bed.router.ip(&format!("route add {all_of_them} via {}", version.gateway()))?;
        // Some rounds with one, then as many with all: to fill the kernel's table takes longer than a round.
        let one = rounds(&bed, &sink, settings, to)?;
        report_on(report, version, 1, &one);
        ip_lines(&bed.router.name, &a_route_each(version, networks))?;
        let many = rounds(&bed, &sink, settings, to)?;
        report_on(report, version, networks, &many);
        for ((way, one), many) in Way::ALL.into_iter().zip(&one).zip(&many) {
            let ratios: Vec<f64> = many.iter().zip(one).map(|(many, one)| many.mpps / one.mpps).collect();
            let name = format!("{}/{networks} routes to 1", name(version, networks, way));
            Row::of(name, "ratio of rates", "", &ratios).into_iter().for_each(|row| report.add(row));
        }
    }
    Ok(())
}

fn rounds(bed: &Testbed, sink: &Arc<Sink>, settings: &Settings, to: To) -> Result<Costs> {
    let mut costs = Costs::default();
    for _ in 0..settings.rounds {
        for (way, costs) in Way::ALL.into_iter().zip(&mut costs) {
            let forwarder = Forwarder::start(bed, way, settings.processor)?;
            let cost =
                measure(bed, sink, &forwarder, all(settings, to.version().frame_lens()[0], to), settings);
            let of = || format!("{} by way of {}", to.version().name(), way.name());
            costs.push(cost.with_context(of)?);
        }
    }
    Ok(costs)
}

/// What the results of a table begin with.
fn table(version: Version, routes: u32) -> String {
    format!("veth/{}/{routes} route{}", version.name(), if routes == 1 { "" } else { "s" })
}

fn name(version: Version, routes: u32, way: Way) -> String {
    format!("{}/{}", table(version, routes), way.name())
}

fn report_on(report: &mut Report, version: Version, routes: u32, costs: &Costs) {
    let ways: Vec<_> = Way::ALL.into_iter().zip(costs.iter().map(Vec::as_slice)).collect();
    compare(report, &table(version, routes), &ways);
}
