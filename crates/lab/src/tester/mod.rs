//! Trials over ports: one thread sends by each, another receives.
//!
//! Nothing is allocated for a frame: it is written into a packet of the pool, and what the analyser keeps is allocated
//! before the trial. A thread that waits for a departure sleeps if that is far and yields if it is near; when it is
//! late it sends what is due in batches.
//!
//! Both times of a frame are of `CLOCK_REALTIME`: the sender's when it writes the frame, the receiver's from the kernel
//! where the port has it, else when the frame is found. A frame that arrives by a port other than that of its flow counts as
//! foreign.

mod alone;
mod attached;
mod counted;
mod generator;
mod hand_over;
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

use crate::analyser::{Analyser, Analysis, Distribution, Sent};
use crate::frame::{Ends, Template};
use crate::namespace::Home;
use crate::search::{Event, Outcome, Request};
use anyhow::{Context, Result, bail, ensure};
use causeway_results::traffic::{Flow, Plan, Traffic};
use generator::Generator;
use receiving::{Coming, at_home, receive};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use sending::send;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use waiting::{LOOK, wait_for, wait_until};

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
    receiving: Receiving,
    hand_overs: HandOvers,
}

/// What receiving took in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiving {
    /// Processor time, nanoseconds.
    pub took_ns: u64,
    /// How often nothing was there, and it was slept.
    pub pauses: u64,
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
        let (receiving, hand_overs) = (Receiving::default(), HandOvers::default());
        Ok(Ports { ports, traffic, plan, templates, manner, control, trial: 0, receiving, hand_overs })
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

    /// What receiving took in the last trial, of the ports to which frames were sent.
    pub fn receiving(&self) -> Receiving {
        self.receiving
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

impl Ports {
    /// Sends what is asked for, and counts what comes back, if anything does.
    fn exchange(&mut self, request: &Request, comes_back: bool) -> Result<Outcome> {
        self.check()?;
        let frames = request.load_fps() * request.duration_ns() as f64 / 1e9;
        ensure!(
            frames < f64::from(u32::MAX),
            "a trial of {frames:.0} frames is too long: numbers have 32 bits"
        );
        self.trial = self.trial.wrapping_add(1);
        let (trial, flows) = (self.trial, self.plan.flows());
        let mut analysers: Vec<Analyser> =
            self.ports.iter().map(|_| Analyser::new(trial, flows.len())).collect();
        let (ended, came) = (AtomicBool::new(false), AtomicU64::new(0));
        let (took_ns, pauses) = (AtomicU64::new(0), AtomicU64::new(0));
        let interrupted = &*self.control.interrupted;
        let disturb = &mut self.control.disturb;
        let (traffic, plan, templates, manner) =
            (&self.traffic, &self.plan, &self.templates[..], &self.manner);
        let sinks = (0..self.ports.len()).filter(|&port| plan.flows().iter().any(|flow| flow.to == port));
        let sources = (0..self.ports.len()).filter(|&port| !plan.order(port).is_empty());
        let crowded = manner.is_crowded(sinks.count() + sources.count());
        let since = Since::now();
        let outcomes = std::thread::scope(|scope| {
            let (mut senders, mut receivers) = (Vec::new(), Vec::new());
            for (number, (port, analyser)) in self.ports.iter_mut().zip(&mut analysers).enumerate() {
                let Attached { rx, tx, stamped, home, .. } = port;
                let (stamped, home) = (*stamped, &*home);
                if !plan.order(number).is_empty() {
                    let generator = Generator::new(traffic, plan, request, templates, number, trial);
                    senders.push(scope.spawn(move || {
                        go_home(home);
                        pin(&manner.processors);
                        send(&mut **tx, generator, Some(request.duration_ns()), since, interrupted)
                    }));
                }
                let (ended, came, took_ns, pauses) = (&ended, &came, &took_ns, &pauses);
                let expected = comes_back && plan.flows().iter().any(|flow| flow.to == number);
                let coming = Coming { stamped, expected, crowded };
                receivers.push(scope.spawn(move || {
                    pin(&manner.processors);
                    let sort = |seen, _: &[u8]| at_home(seen, plan, number);
                    let waited = receive(&mut **rx, coming, sort, analyser, since, ended, came);
                    if expected {
                        pauses.fetch_add(waited, Ordering::Relaxed);
                        took_ns.fetch_add(ns_of(ClockId::ThreadCPUTime), Ordering::Relaxed);
                    }
                }));
            }
            let disturbed = request.event.map(|(event, at_ns)| {
                scope.spawn(move || {
                    wait_until(at_ns, since, interrupted);
                    disturb(event).with_context(|| format!("{} of the device", event.name()))
                })
            });
            let sent: Vec<_> = senders.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            let all: u64 = sent.iter().flatten().flat_map(|of| &of.sent).map(|sent| sent.frames).sum();
            manner.settle(all, &came, interrupted);
            ended.store(true, Ordering::Relaxed);
            let failed = receivers.into_iter().filter_map(|thread| thread.join().err()).count();
            let sent: Option<Vec<_>> =
                sent.into_iter().map(|sent| sent.ok().filter(|_| failed == 0)).collect();
            disturbed.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))?;
            sent.context("a thread of the tester failed")
        });
        let outcomes = outcomes?;
        self.receiving = Receiving { took_ns: took_ns.into_inner(), pauses: pauses.into_inner() };
        self.hand_overs = HandOvers::default();
        self.check()?;
        let mut sent = vec![Sent::default(); self.plan.flows().len()];
        let (mut intended, mut last_ns) = (0, 0);
        for of in outcomes {
            self.hand_overs.add(of.hand_overs);
            of.sent.iter().zip(&mut sent).filter(|(of, _)| of.frames > 0).for_each(|(of, all)| *all = *of);
            intended += of.intended;
            last_ns = last_ns.max(of.last_ns);
        }
        let analysis = together(analysers, &self.plan, &sent);
        let duration_ns = request.duration_ns();
        let effective_ns = duration_ns.max(last_ns);
        let count: u64 = sent.iter().map(|sent| sent.frames).sum();
        let late = effective_ns as f64 > duration_ns as f64 * (1.0 + SLACK) + LOOK.as_nanos() as f64;
        let limited = late || (count as f64) < intended as f64 * (1.0 - SLACK);
        self.wait(self.manner.pause);
        Ok(Outcome { intended, effective_ns, limited, analysis })
    }
}

fn add_timeline(all: &mut Vec<u64>, part: &[u64]) {
    all.resize(all.len().max(part.len()), 0);
    all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
}

/// What all ports received, as if it were one. Each flow is its port's alone.
fn together(analysers: Vec<Analyser>, plan: &Plan, sent: &[Sent]) -> Analysis {
    let mut whole = Analysis {
        flows: vec![Default::default(); sent.len()],
        corrupt: 0,
        foreign: 0,
        earlier: 0,
        latency: Distribution::empty(),
        ipdv: Distribution::empty(),
        before_sent: 0,
        last_loss_ns: None,
        longest_silence_ns: 0,
        timeline: Vec::new(),
    };
    for (port, analyser) in analysers.into_iter().enumerate() {
        let mine = plan.flows().iter().zip(sent);
        let mine: Vec<Sent> =
            mine.map(|(flow, sent)| if flow.to == port { *sent } else { Sent::default() }).collect();
        let part = analyser.finish(&mine);
        whole.flows.iter_mut().zip(&part.flows).for_each(|(all, flow)| *all = all.plus(flow));
        whole.corrupt += part.corrupt;
        whole.foreign += part.foreign;
        whole.earlier += part.earlier;
        whole.latency.add(&part.latency);
        whole.ipdv.add(&part.ipdv);
        whole.before_sent += part.before_sent;
        whole.last_loss_ns = whole.last_loss_ns.max(part.last_loss_ns);
        add_timeline(&mut whole.timeline, &part.timeline);
        whole.longest_silence_ns = whole.longest_silence_ns.max(part.longest_silence_ns);
    }
    whole
}
