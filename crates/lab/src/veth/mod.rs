//! Between network namespaces: the router against the kernel's forwarding and a bare XDP redirect.
//!
//! Generator, router and sink share the machine. The kernel, the redirect and what of the router runs in the driver forward
//! within the generator's system call, on its processor; the router's workers run on another. So the processor time a packet is shown beside the rate,
//! with the generator's and the sink's share in all three.

mod echo;
mod latency;
mod routes;
mod testbed;
mod traffic;

pub use latency::{latency, wake_up_us};
pub use routes::routes;

use super::report::{Report, Row};
use crate::Settings;
use crate::inside::process_ns;
use crate::process::Process;
use anyhow::{Result, bail};
use causeway_bpf::XdpLink;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testbed::Testbed;
use traffic::{Load, Sink, Stream, To};

/// Bytes of a frame on the wire, with the checksum.
const FRAME_LENS: [usize; 3] = [64, 512, 1518];
/// How long traffic flows before it is measured.
const WARM_UP: Duration = Duration::from_millis(200);
/// Microseconds for which [`Way::Spinning`] looks for packets: longer than any pause in a measurement.
const SPIN_US: &str = "100000";
/// So many times as long at most, until a router that has just started forwards.
const WAITS: usize = 25;

/// What forwards, in the order of a round. The first is the baseline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Kernel,
    Causeway,
    /// Causeway whose worker looks for packets without sleeping.
    Spinning,
    /// Causeway whose graph runs in the driver.
    Driver,
    Redirect,
}

impl Way {
    /// Those whose rates are compared: with enough to do no worker sleeps.
    const ALL: [Way; 4] = [Way::Kernel, Way::Causeway, Way::Driver, Way::Redirect];

    fn name(self) -> &'static str {
        match self {
            Way::Kernel => "kernel",
            Way::Causeway => "causeway up",
            Way::Spinning => "causeway up --spin",
            Way::Driver => "causeway up --driver",
            Way::Redirect => "XDP redirect",
        }
    }
}

/// What keeps a way of forwarding in place.
enum Forwarder {
    Kernel,
    Causeway(Box<Process>),
    Redirect { _link: XdpLink },
}

impl Forwarder {
    fn start(bed: &Testbed, way: Way, processor: usize) -> Result<Forwarder> {
        bed.check()?;
        bed.redirect_back(way == Way::Driver)?;
        Ok(match way {
            Way::Kernel => {
                bed.kernel()?;
                Forwarder::Kernel
            }
            Way::Causeway => Forwarder::Causeway(Box::new(bed.causeway(processor, &[])?)),
            Way::Spinning => Forwarder::Causeway(Box::new(bed.causeway(processor, &["--spin", SPIN_US])?)),
            Way::Driver => Forwarder::Causeway(Box::new(bed.causeway(processor, &["--driver"])?)),
            Way::Redirect => Forwarder::Redirect { _link: bed.redirect()? },
        })
    }

    /// Processor time that this process and the router have had.
    fn cpu_ns(&self) -> Result<u64> {
        let router = match self {
            Forwarder::Causeway(router) => process_ns(router.id())?,
            Forwarder::Kernel | Forwarder::Redirect { .. } => 0,
        };
        Ok(process_ns(std::process::id())? + router)
    }
}

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
    let mut by_kernel = bed.kernel_forwarded()?;
    // Until a router that has just started has the right to forward, the kernel does.
    for _ in 0..WAITS * usize::from(!matches!(forwarder, Forwarder::Kernel)) {
        std::thread::sleep(WARM_UP);
        let before = std::mem::replace(&mut by_kernel, bed.kernel_forwarded()?);
        if by_kernel == before {
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
    let bed = Testbed::new()?;
    let sink = Arc::new(Sink::new(&bed)?);
    // By frame length, then by way, then by round.
    let mut costs = vec![vec![Vec::new(); Way::ALL.len()]; FRAME_LENS.len()];
    for _ in 0..settings.rounds {
        for (w, way) in Way::ALL.into_iter().enumerate() {
            let forwarder = Forwarder::start(&bed, way, settings.processor)?;
            for (l, frame_len) in FRAME_LENS.into_iter().enumerate() {
                let stream = all(settings, frame_len, To::Sink);
                costs[l][w].push(measure(&bed, &sink, &forwarder, stream, settings)?);
            }
        }
    }
    for (frame_len, ways) in FRAME_LENS.into_iter().zip(&costs) {
        let ways: Vec<_> = Way::ALL.into_iter().zip(ways.iter().map(Vec::as_slice)).collect();
        compare(report, &format!("veth/{frame_len} bytes"), &ways);
    }
    Ok(())
}

/// Reports rate and processor time of some ways, against the kernel's, and what of a bare redirect's rate the driver has.
fn compare(report: &mut Report, of: &str, ways: &[(Way, &[Cost])]) {
    compare_by(report, of, ways, ("Mpps", "rate"), |c| c.mpps);
    compare_by(report, of, ways, ("ns", "processor time"), |c| c.cpu_ns);
    let rates = |way| ways.iter().find(|(of, _)| *of == way).map(|(_, costs)| costs.iter().map(|c| c.mpps));
    if let (Some(driver), Some(redirect)) = (rates(Way::Driver), rates(Way::Redirect)) {
        let ratios: Vec<f64> = driver.zip(redirect).map(|(driver, redirect)| driver / redirect).collect();
        let name = format!("{of}/{} to {}", Way::Driver.name(), Way::Redirect.name());
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
