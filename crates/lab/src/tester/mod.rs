//! Trials over ports: one thread sends by each, another receives; where they are more than the tester's processors, one thread
//! does it all by turns ([`in_turns`]).
//!
//! Nothing is allocated for a frame: it is written into a packet of the pool, and what the analyser keeps is allocated
//! before the trial. A thread that only sends and waits for a departure sleeps if that is far and yields if it is near; one that is
//! late sends what is due in batches.
//!
//! Both times of a frame are of `CLOCK_REALTIME`: the sender's when it writes the frame, the receiver's from the kernel
//! where the port has it, else when the frame is found. A frame that arrives by a port other than that of its flow counts as
//! foreign.

mod alone;
mod attached;
mod counted;
mod exchange;
mod generator;
mod hand_over;
mod in_turns;
mod one_way;
mod receiving;
mod replay;
mod self_test;
mod sending;
#[cfg(test)]
mod tests;
mod waiting;

pub use alone::{Received, Transmitted, carries_default_route, receive_only, transmit_bare, transmit_only};
pub use attached::Attached;
pub use counted::{Alone, Counting};
pub use hand_over::HandOvers;
pub use one_way::{TrialClock, one_way};
pub use replay::{Capture, Timing, replay};
pub use self_test::{SelfTest, Step, self_test};

use crate::frame::{Ends, Template};
use crate::namespace::Home;
use crate::search::Event;
use anyhow::{Context, Result, bail};
use causeway_results::traffic::{Flow, Plan, Traffic};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use waiting::{LOOK, wait_for};

/// The part of the frames that may be missing of what was asked for, and by which a trial may take longer.
const SLACK: f64 = 0.005;
/// Which clock the times of departure are of, and when it is read.
pub const TIME_OF_DEPARTURE: &str = "CLOCK_REALTIME, when the tester wrote the frame";

/// Does something to the device.
pub type Disturb = Box<dyn FnMut(Event) -> Result<()> + Send>;

/// What decides whether trials go on, and what happens in them.
pub struct Control {
    /// Set when the run is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Fails if the device has died.
    pub alive: Box<dyn FnMut() -> Result<()> + Send>,
    /// Has something happen to the device, and returns when it has.
    pub disturb: Disturb,
    /// What it does if it forwards nothing, and who asks it how much of that.
    pub alone: Option<(Alone, Counting)>,
}

impl Control {
    /// Of nothing that could die or be disturbed.
    pub fn new(interrupted: Arc<AtomicBool>) -> Control {
        let disturb: Disturb = Box::new(|_| bail!("there is none that could be disturbed"));
        Control { interrupted, alive: Box::new(|| Ok(())), disturb, alone: None }
    }
}

/// How trials are made.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Processors that the tester runs on; any if empty.
    pub processors: Vec<usize>,
    /// How long frames are waited for after the last was sent, at most: no longer than until all have come (RFC 2544 §23:
    /// 2 s).
    pub settle: Duration,
    /// A pause after that (RFC 2544 §23: 5 s).
    pub pause: Duration,
}

impl Manner {
    /// Whether so many threads of the tester that have work at a time are more than its processors.
    fn is_crowded(&self, threads: usize) -> bool {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        threads > if self.processors.is_empty() { all() } else { self.processors.len() }
    }

    /// Waits until `all` frames `came`, or as long as they are waited for.
    fn settle(&self, all: u64, came: &AtomicU64, interrupted: &AtomicBool) {
        let began = std::time::Instant::now();
        while began.elapsed() < self.settle && !interrupted.load(Ordering::Relaxed) {
            // What comes once too often comes soon after, if at all.
            let done = came.load(Ordering::Relaxed) >= all;
            std::thread::sleep(LOOK.min(self.settle));
            if done {
                break;
            }
        }
    }
}

/// A tester of real ports.
pub struct Ports {
    ports: Vec<Attached>,
    traffic: Traffic,
    plan: Plan,
    templates: Vec<Template>,
    manner: Manner,
    control: Control,
    trial: u16,
    receiving_ns: u64,
    hand_overs: HandOvers,
}

/// Time since a trial began.
#[derive(Clone, Copy, Debug)]
struct Since {
    start_ns: u64,
}

fn realtime_ns() -> u64 {
    ns_of(ClockId::Realtime)
}

fn ns_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

impl Since {
    fn now() -> Since {
        Since { start_ns: realtime_ns() }
    }

    fn ns(self) -> u64 {
        self.at(realtime_ns())
    }

    /// Of a time since the epoch.
    fn at(self, realtime_ns: u64) -> u64 {
        realtime_ns.saturating_sub(self.start_ns)
    }
}

impl Ports {
    /// A tester that offers `traffic` by these ports.
    ///
    /// # Errors
    /// If the traffic is not possible with them: their number, a frame that is too long, hosts that are not there.
    pub fn new(ports: Vec<Attached>, traffic: Traffic, manner: Manner, control: Control) -> Result<Ports> {
        let plan = Plan::new(&traffic, ports.len())?;
        let templates = plan.flows().iter().map(|flow| {
            let (from, to) = (&ports[flow.from], &ports[flow.to]);
            let stream = &traffic.streams[flow.stream];
            let hosts = |port: &Attached| match stream.family {
                causeway_results::traffic::Family::Ipv4 => port.hosts4,
                causeway_results::traffic::Family::Ipv6 => port.hosts6,
            };
            let network = |port: &Attached| {
                let missing =
                    || format!("stream '{}': nobody of its family is behind {}", stream.name, port.name);
                hosts(port).with_context(missing)
            };
            let (source, destination) = (network(from)?, network(to)?);
            let ends = Ends { source_mac: from.mac, gateway_mac: from.gateway, source, destination };
            let template = Template::new(stream, flow, &ends)?;
            from.carries(&template, stream)?;
            to.carries(&template, stream)?;
            Ok(template)
        });
        let templates = templates.collect::<Result<_>>()?;
        let hand_overs = HandOvers::default();
        Ok(Ports { ports, traffic, plan, templates, manner, control, trial: 0, receiving_ns: 0, hand_overs })
    }

    /// The flows, by the ports that they go from and to, in the order of the counts of an [`Analysis`]. Of a device that
    /// forwards nothing they are by one port.
    pub fn flows(&self) -> Vec<String> {
        let alone = self.control.alone.is_some();
        let name = |flow: &Flow| match [flow.from, flow.to].map(|port| &self.ports[port].name) {
            [from, _] if alone => from.clone(),
            [from, to] => format!("{from} to {to}"),
        };
        self.plan.flows().iter().map(name).collect()
    }

    /// Which clock the times of arrival are of, and when it is read.
    pub fn time_of_arrival(&self) -> &'static str {
        match self.ports.iter().all(|port| port.stamped) {
            true => "CLOCK_REALTIME, when the kernel took the frame from the driver",
            false => "CLOCK_REALTIME, when the tester found the frame",
        }
    }

    /// What it took in the last trial to take frames out and to look at them, nanoseconds.
    pub fn receiving_ns(&self) -> u64 {
        self.receiving_ns
    }

    /// How frames were given to the kernel in the last trial.
    pub fn hand_overs(&self) -> &HandOvers {
        &self.hand_overs
    }

    fn check(&mut self) -> Result<()> {
        if self.control.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        (self.control.alive)()
    }

    fn wait(&self, time: Duration) {
        wait_for(time, &self.control.interrupted);
    }
}

/// Some ports send by the namespace of the thread, not by their own.
fn go_home(home: &Home) {
    if let Err(e) = home.enter() {
        // Without privileges it has not left it either.
        log::debug!("{e:#}");
    }
}

/// Where the calling thread runs; anywhere if no processor is named.
pub(crate) fn pin(processors: &[usize]) {
    if processors.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    processors.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    // Where it may not choose, it runs where it is put.
    let _ = sched_setaffinity(None, &set);
}
