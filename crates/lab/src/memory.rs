//! In memory: the standard IP router from source to sink on one worker, plain and fused, with small and large tables.

use super::elements::Trace;
use super::graph::{Random, Running, address_in, frame, plan, routes_to};
use super::report::{Report, Row};
use crate::Settings;
use anyhow::{Result, anyhow};
use causeway_elements::optimise;
use causeway_engine::Plan;
use std::sync::Arc;
use std::time::Instant;

/// Routes of each table, and frames of the trace that goes with it.
const SIZES: &[(usize, usize)] = &[(2, 1_024), (1_000, 1_024), (1_000_000, 65_536)];
/// Where all frames come from.
const SENDER: u32 = 0x0a00_0002;

/// Measures all sizes.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("In memory: the standard IP router on one core, 64-byte frames, source to sink");
    for &(routes, frames) in SIZES {
        let routes = routes_to(routes);
        let mut random = Random(11);
        let trace = (0..frames).map(|_| frame(SENDER, address_in(&routes, &mut random)));
        let trace = Arc::new(trace.collect::<Trace>());
        let plain = plan("IPLookup", &routes)?;
        let fused = optimise(&plain).plan;
        let name = |kind: &str| format!("memory/{} routes/{kind}", routes.len());
        let (slow, _) = measure(settings, plain, &trace, &name("plain"))?;
        let (fast, profile) = measure(settings, fused, &trace, &name("fused"))?;
        report.add(slow.clone());
        report.add(fast.clone().against(&slow));
        for (element, ns) in profile {
            let row =
                Row::of(format!("  {}/{element}", name("fused")), "processor time a packet", "ns", &[ns]);
            row.into_iter().for_each(|r| report.add(r));
        }
    }
    Ok(())
}

/// Million packets a second that reach the sink, and the nanoseconds of each element a packet.
fn measure(
    settings: &Settings,
    plan: Plan,
    trace: &Arc<Trace>,
    name: &str,
) -> Result<(Row, Vec<(String, f64)>)> {
    let router = Running::start(plan, trace, settings.processor, name)?;
    router.resume();
    let round = settings.round;
    std::thread::sleep(round);
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds {
        let (start, before) = (Instant::now(), router.arrived()?);
        std::thread::sleep(round);
        let (after, seconds) = (router.arrived()?, start.elapsed().as_secs_f64());
        rounds.push((after - before) as f64 / seconds / 1e6);
    }
    let profile = router.profile(round)?;
    router.finish()?;
    let row = Row::of(name, "forwarding rate", "Mpps", &rounds).ok_or_else(|| anyhow!("no rounds"))?;
    Ok((row, profile))
}
