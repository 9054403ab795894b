//! In memory: the standard IP router from source to sink on one worker, plain and fused, with small and large tables.
//!
//! A frame is 64 bytes on the wire, 60 in memory. The source copies each from a prepared trace into a fresh packet,
//! so that the first touch of a packet is in the measurement, as it would be with a device.

use super::elements::{SINK, SOURCE, TRACE, Trace};
use super::report::{Report, Row};
use crate::cli::BenchArgs;
use anyhow::{Result, anyhow, bail};
use causeway_elements::optimise;
use causeway_elements::standard_router::{Interface, configuration};
use causeway_engine::{Library, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_packet::checksum::checksum;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Routes of each table, and frames of the trace that goes with it.
const SIZES: &[(usize, usize)] = &[(2, 1_024), (1_000, 1_024), (1_000_000, 65_536)];
/// Neighbours behind the second interface that routes lead to.
const GATEWAYS: u32 = 8;

/// Measures all sizes.
pub fn run(args: &BenchArgs, report: &mut Report) -> Result<()> {
    report.heading("In memory: the standard IP router on one core, 64-byte frames, source to sink");
    for &(routes, frames) in SIZES {
        let routes = routes_to(routes);
        let trace = Arc::new(Trace(trace(&routes, frames)));
        let text = router(&routes);
        let compiled = causeway_lang::compile("bench", text.as_bytes(), &NoLibraries, &library(), &[])
            .map_err(|f| anyhow!("the benchmark's router: {}", f.diagnostics.messages().join("; ")))?;
        let plain = Plan::new(&compiled);
        let fused = optimise(&plain).plan;
        let name = |kind: &str| format!("memory/{} routes/{kind}", routes.len());
        let (slow, _) = measure(args, plain, &trace, &name("plain"))?;
        let (fast, profile) = measure(args, fused, &trace, &name("fused"))?;
        report.add(slow.clone());
        report.add(fast.clone().against(&slow));
        for (element, ns) in profile {
            let row = Row::of(format!("  {}/{element}", name("fused")), "ns", &[ns]);
            row.into_iter().for_each(|r| report.add(r));
        }
    }
    Ok(())
}

fn library() -> Library {
    Library::new(causeway_elements::library().iter().chain([&SOURCE, &SINK]))
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }
}

/// A route: prefix, length, gateway number.
type Route = (u32, u8, u32);

/// `n` different routes outside the router's own networks; with two, one half of the addresses each.
fn routes_to(n: usize) -> Vec<Route> {
    if n == 2 {
        return vec![(0, 1, 0), (1 << 31, 1, 1)];
    }
    let mut random = Random(7);
    let mut seen = std::collections::HashSet::new();
    let mut routes = Vec::with_capacity(n);
    while routes.len() < n {
        // Lengths as on the Internet: two thirds /24, most of the rest /20 to /23, a few shorter.
        let len = match random.next() % 100 {
            0..64 => 24,
            64..75 => 23,
            75..86 => 22,
            86..91 => 21,
            91..96 => 20,
            96..99 => 19,
            _ => 16,
        };
        let prefix = random.next() & !(u32::MAX >> len);
        let first = prefix >> 24;
        if (11..=223).contains(&first) && first != 127 && seen.insert((prefix, len)) {
            routes.push((prefix, len, random.next() % GATEWAYS));
        }
    }
    routes
}

fn router(routes: &[Route]) -> String {
    let interface = |n: u8, input: &str| Interface {
        address: [10, n, 0, 1].into(),
        prefix_len: 16,
        mac: format!("2:0:0:0:{n}:1"),
        input: input.to_owned(),
        output: format!("sink{n} :: PullSink"),
    };
    let line = |&(prefix, len, gateway): &Route| {
        format!("{}/{len} 10.1.0.{} 1", std::net::Ipv4Addr::from(prefix), gateway + 2)
    };
    let routes: Vec<String> = routes.iter().map(line).collect();
    configuration(&[interface(0, "source :: TraceSource"), interface(1, "Idle")], "IPLookup", &routes)
}

/// Frames to random addresses that the routes cover.
fn trace(routes: &[Route], frames: usize) -> Vec<Vec<u8>> {
    let mut random = Random(11);
    let frame = |_| {
        let (prefix, len, _) = routes[random.next() as usize % routes.len()];
        let mut to = prefix | (random.next() & (u32::MAX >> len));
        // Half of all addresses is more than a router forwards to: keep clear of what is nobody's.
        if !(11..=223).contains(&(to >> 24)) || to >> 24 == 127 {
            to = (to & 0x80ff_ffff) | 0x1000_0000;
        }
        let mut f = vec![
            2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 9, 9, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2,
        ];
        f.extend(to.to_be_bytes());
        let sum = checksum(&f[14..34]);
        f[24..26].copy_from_slice(&sum.to_be_bytes());
        f.resize(60, 0);
        f
    };
    (0..frames).map(frame).collect()
}

/// Million packets a second that reach the sink, and the nanoseconds of each element a packet.
fn measure(
    args: &BenchArgs,
    plan: Plan,
    trace: &Arc<Trace>,
    name: &str,
) -> Result<(Row, Vec<(String, f64)>)> {
    let options = Options { processors: vec![args.processor], seed: Some(1), ..Options::default() };
    if let Ok(mut values) = options.persistent.lock() {
        values.insert(TRACE.to_owned(), trace.clone());
    }
    let router = Router::start(library(), plan, options).map_err(|e| anyhow!("{e}"))?;
    for host in 2..2 + GATEWAYS {
        router
            .write("arpq1", "insert", &format!("10.1.0.{host} 2:0:0:0:1:{host}"))
            .map_err(|e| anyhow!("{e}"))?;
    }
    let count = |element: &str| -> Result<u64> {
        let text = router.read(element, "count", "").map_err(|e| anyhow!("{e}"))?;
        text.parse().map_err(|_| anyhow!("{element}.count is '{text}'"))
    };
    router.resume();
    let round = Duration::from_secs_f64(args.seconds.clamp(0.05, 60.0));
    std::thread::sleep(round);
    let mut rounds = Vec::new();
    for _ in 0..args.rounds.clamp(1, 100) {
        let (start, before) = (Instant::now(), count("sink1")?);
        std::thread::sleep(round);
        let (after, seconds) = (count("sink1")?, start.elapsed().as_secs_f64());
        rounds.push((after - before) as f64 / seconds / 1e6);
    }
    let before = count("sink1")?;
    router.set_profiling(true);
    std::thread::sleep(round);
    let profile = router.profile();
    let packets = (count("sink1")? - before).max(1) as f64;
    router.pause();
    let (made, arrived, held) = (count("source")?, count("sink1")?, router.held() as u64);
    if made != arrived + held {
        bail!("{name}: {made} packets were made, {arrived} arrived and {held} are held: some were lost");
    }
    let row = Row::of(name, "Mpps", &rounds).ok_or_else(|| anyhow!("no rounds"))?;
    let mut profile: Vec<_> = profile.into_iter().map(|(n, ns)| (n, ns as f64 / packets)).collect();
    profile.retain(|(_, ns)| *ns >= 0.05);
    profile.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok((row, profile))
}
