//! Between network namespaces: the router against the kernel's forwarding, a program that asks for the kernel's routes
//! (`bpf_fib_lookup`), and a bare XDP redirect.
//!
//! Generator, router and sink share the machine. The kernel, the programs and what of the router runs in the driver forward
//! within the generator's system call, on its processor; the router's workers run on another. So the processor time a packet is
//! shown beside the rate, with the generator's and the sink's share in all of them.

mod echo;
mod fib_lookup;
mod latency;
mod packets;
mod routes;
mod tcp;
mod testbed;
mod traffic;
mod way;

pub use latency::{latency, wake_ups_us};
pub use routes::routes;
pub use tcp::tcp;

use super::report::{Report, Row};
use crate::Settings;
use anyhow::{Context, Result, bail};
use packets::To;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testbed::{Hosts, Testbed, Version};
use traffic::{Load, Sink, Stream};
use way::{Forwarder, Way};

/// How long traffic flows before it is measured.
const WARM_UP: Duration = Duration::from_millis(200);
/// So many times as long at most, until a router that has just started forwards.
const WAITS: usize = 25;

/// Frames of this length, as many as arrive.
fn all(settings: &Settings, frame_len: usize, to: To) -> Stream {
    Stream { frame_len, rate_pps: None, avoid: settings.processor, to }
}

/// What one measurement gives.
#[derive(Clone, Copy)]
struct Cost {
    mpps: f64,
    cpu_ns: f64,
}

/// The most that arrives, and what it takes.
fn measure(
    bed: &Testbed,
    sink: &Arc<Sink>,
    forwarder: &Forwarder,
    stream: Stream,
    settings: &Settings,
) -> Result<Cost> {
    bed.check()?;
    let load = Load::start(bed, sink, stream)?;
    std::thread::sleep(WARM_UP);
    let (mut by_kernel, mut arrived) = (bed.kernel_forwarded()?, sink.count());
    // Until a router that has just started has the right to forward, the kernel does.
    for _ in 0..WAITS * usize::from(!matches!(forwarder, Forwarder::Kernel)) {
        std::thread::sleep(WARM_UP);
        let before = std::mem::replace(&mut by_kernel, bed.kernel_forwarded()?);
        let seen = std::mem::replace(&mut arrived, sink.count());
        if by_kernel == before && arrived > seen {
            break;
        }
    }
    let (start, packets, cpu_ns) = (Instant::now(), sink.count(), forwarder.cpu_ns()?);
    std::thread::sleep(settings.round);
    let (packets, cpu_ns) = (sink.count() - packets, forwarder.cpu_ns()? - cpu_ns);
    let seconds = start.elapsed().as_secs_f64();
    let by_kernel = bed.kernel_forwarded()? - by_kernel;
    load.finish()?;
    if packets == 0 {
        bail!("nothing of {}-byte frames arrived", stream.frame_len);
    }
    let should = if matches!(forwarder, Forwarder::Kernel) { packets } else { 0 };
    if by_kernel.abs_diff(should) > packets / 20 {
        bail!("the kernel forwarded {by_kernel} of {packets} packets; it should have been {should}");
    }
    Ok(Cost { mpps: packets as f64 / seconds / 1e6, cpu_ns: cpu_ns as f64 / packets as f64 })
}

/// Whether this can be measured here; says why not.
fn possible(program: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        log::info!("skipped: needs root");
        return false;
    }
    let found = Command::new(program).arg("-V").output().is_ok();
    if !found {
        log::info!("skipped: needs the command {program}");
    }
    found
}

/// Forwarding rates.
pub fn rates(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Between namespaces: forwarding over veth, generator and sink of our own");
    if !possible("ip") {
        return Ok(());
    }
    let bed = Testbed::new(Hosts::Plain)?;
    let sink = Arc::new(Sink::new(&bed)?);
    let loads = [Version::V4, Version::V6].map(|v| v.frame_lens().map(|len| (v, len))).concat();
    // By load, then by way, then by round.
    let mut costs = vec![vec![Vec::new(); Way::ALL.len()]; loads.len()];
    for _ in 0..settings.rounds {
        for (w, way) in Way::ALL.into_iter().enumerate() {
            let forwarder = Forwarder::start(&bed, way, settings.processor)?;
            for (&(version, frame_len), costs) in loads.iter().zip(&mut costs) {
                let stream = all(settings, frame_len, To::Sink(version));
                let cost = measure(&bed, &sink, &forwarder, stream, settings);
                let of = || format!("{} by way of {}", version.name(), way.name());
                costs[w].push(cost.with_context(of)?);
            }
        }
    }
    for ((version, frame_len), ways) in loads.into_iter().zip(&costs) {
        let ways: Vec<_> = Way::ALL.into_iter().zip(ways.iter().map(Vec::as_slice)).collect();
        compare(report, &format!("veth/{}/{frame_len} bytes", version.name()), &ways);
    }
    Ok(())
}

/// Reports rate and processor time of some ways, against the kernel's, and the driver's rate against those of
/// the two programs.
fn compare(report: &mut Report, of: &str, ways: &[(Way, &[Cost])]) {
    compare_by(report, of, ways, ("Mpps", "rate"), |c| c.mpps);
    compare_by(report, of, ways, ("ns", "processor time"), |c| c.cpu_ns);
    let rates = |way| ways.iter().find(|(of, _)| *of == way).map(|(_, costs)| costs.iter().map(|c| c.mpps));
    for other in [Way::FibLookup, Way::Redirect] {
        let (Some(driver), Some(other_mpps)) = (rates(Way::Driver), rates(other)) else { continue };
        let ratios: Vec<f64> = driver.zip(other_mpps).map(|(driver, other)| driver / other).collect();
        let name = format!("{of}/{} to {}", Way::Driver.name(), other.name());
        Row::of(name, "ratio of rates", "", &ratios).into_iter().for_each(|row| report.add(row));
    }
}

fn compare_by(
    report: &mut Report,
    of: &str,
    ways: &[(Way, &[Cost])],
    (unit, what): (&str, &str),
    value: impl Fn(&Cost) -> f64,
) {
    let mut kernel: Option<Row> = None;
    for (way, costs) in ways {
        let rounds: Vec<f64> = costs.iter().map(&value).collect();
        let name = format!("{of}/{}/{what}", way.name());
        let Some(row) = Row::of(name, what, unit, &rounds) else { continue };
        match &kernel {
            Some(kernel) => report.add(row.against(kernel)),
            None => report.add(kernel.insert(row).clone()),
        }
    }
}
