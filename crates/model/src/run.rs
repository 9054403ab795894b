//! Runs: a router under load until its numbers are sure.

use crate::event::{MILLISECOND, SECOND, Time};
use crate::hardware::Hardware;
use crate::machine::Machine;
use crate::router::{Router, Scenario};
use crate::several::Several;
use crate::software::linux::{Class, Drop, Role};
use anyhow::Result;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How sure numbers are to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// What is let pass before anything counts.
    pub warm_up_ps: Time,
    /// A window, of which each is a repetition.
    pub window_ps: Time,
    /// Windows at least.
    pub windows: usize,
    /// Windows at most.
    pub windows_most: usize,
}

impl Effort {
    /// As results are: 50 ms at least, and until the interval is narrow.
    pub const FULL: Effort =
        Effort { warm_up_ps: 20 * MILLISECOND, window_ps: 5 * MILLISECOND, windows: 10, windows_most: 100 };
    /// As a look is.
    pub const SHORT: Effort =
        Effort { warm_up_ps: 10 * MILLISECOND, window_ps: 5 * MILLISECOND, windows: 3, windows_most: 3 };
}

/// What the 95 % interval of a mean is to be narrower than, from its lower to its upper end, as a part of the mean: so the mean is
/// sure to half a percent each way.
const NARROW: f64 = 0.01;
/// The same as a part of what is offered, for rates near zero.
const NARROW_OF_OFFERED: f64 = 0.001;
/// What comes before anything counts, in queues full, and how many times as long as otherwise that may take at most.
const FILLS: f64 = 16.0;
const MOST_TIMES: u64 = 8;

/// What a run gave. All rates are packets a second.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What came in.
    pub offered_fps: f64,
    /// What left, or was counted, in each window.
    pub windows_fps: Vec<f64>,
    /// How wide the 95 % interval of the rate is, from end to end.
    pub interval_fps: f64,
    /// Whether that is as narrow as is promised; it is not where windows ran out before.
    pub sure: bool,
    /// What left, or was counted, by the port that it came in by.
    pub flows_fps: Vec<f64>,
    /// Interrupts a second, by port.
    pub interrupts: Vec<f64>,
    /// What was dropped, by reason.
    pub drops_fps: [f64; Drop::ALL.len()],
    /// The processor's time, as parts, by class; the rest is idle. Of several that work, the mean.
    pub classes: [f64; Class::ALL.len()],
    /// How much of the time each processor works; where there are several, that of each port.
    pub busy: Vec<f64>,
    /// How much of the time each bus was held.
    pub buses: Vec<f64>,
    /// How much of the time memory moved data.
    pub memory: f64,
    /// Looks at the ring for reception a second, by port.
    pub polls: Vec<f64>,
    /// Cleanings of the ring for transmission a second, by port.
    pub cleanings: Vec<f64>,
    /// Entries to deferred work a second.
    pub deferred: f64,
    /// Packets in cards and on rings for reception, on the backlog, in queues on the way out, and behind those.
    pub fullness: [f64; 4],
    /// Mean time inside, nanoseconds.
    pub delay_ns: f64,
    /// Buffers that there are, and of those, free ones.
    pub buffers: (u32, usize),
    /// Entries of the route cache that hold a flow, and all that there are.
    pub entries: [usize; 2],
    /// Events that happened.
    pub events: u64,
    /// The way of the packet that was followed.
    pub trace: Vec<String>,
}

impl Outcome {
    /// What left, mean over the windows.
    pub fn rate_fps(&self) -> f64 {
        self.windows_fps.iter().sum::<f64>() / self.windows_fps.len().max(1) as f64
    }
}

/// What is counted from the start on.
#[derive(Clone, Default)]
struct Counts {
    offered: u64,
    done: u64,
    left: Vec<u64>,
    interrupts: Vec<u64>,
    polls: Vec<u64>,
    cleanings: Vec<u64>,
    deferred: u64,
    drops: [u64; Drop::ALL.len()],
    classes_ps: [Time; Class::ALL.len()],
    busy_ps: Vec<Time>,
    buses_ps: Vec<Time>,
    memory_ps: Time,
    samples: u64,
    fullness: [u64; 4],
    delay_ps: u128,
}

/// What runs: a router of one processor or of several.
enum Running {
    One(Box<Router>),
    Several(Box<Several>),
}

impl Running {
    fn new(machine: &Machine, scenario: &Scenario, seed: u64, followed: Option<u64>) -> Result<Running> {
        Ok(match scenario.kernel.role {
            Role::Affinity(affinity) => {
                Running::Several(Box::new(Several::new(machine, scenario, affinity, followed)?))
            }
            _ => Running::One(Box::new(Router::new(machine, scenario, seed, followed)?)),
        })
    }

    fn run(&mut self, until_ps: Time) {
        match self {
            Running::One(router) => router.run(until_ps),
            Running::Several(router) => router.run(until_ps),
        }
    }

    fn count(&self) -> Counts {
        match self {
            Running::One(router) => count(router),
            Running::Several(router) => count_several(router),
        }
    }

    fn entries(&self) -> [usize; 2] {
        match self {
            Running::One(router) => router.kernel().stack.cache_entries(),
            Running::Several(_) => [0, 0],
        }
    }

    /// The hardware, events that happened, and the way of the packet that was followed.
    fn rest(&self) -> (&Hardware, u64, Vec<String>) {
        match self {
            Running::One(router) => (router.hardware(), router.events(), router.trace.lines()),
            Running::Several(router) => (router.hardware(), router.events(), router.trace.lines()),
        }
    }
}

fn count_several(router: &Several) -> Counts {
    let (hardware, full) = (router.hardware(), &router.fullness);
    Counts {
        offered: router.arrived.iter().sum(),
        done: router.left.iter().sum(),
        left: router.left.clone(),
        interrupts: hardware.nics.iter().map(|nic| nic.interrupts).collect(),
        polls: router.counts().map(|counts| counts.polls).collect(),
        cleanings: router.counts().map(|counts| counts.cleanings).collect(),
        deferred: router.deferred(),
        drops: router.drops,
        classes_ps: router.by_class_ps(),
        busy_ps: router.busy_ps(),
        buses_ps: hardware.buses.iter().map(|bus| bus.busy_ps).collect(),
        memory_ps: hardware.memory.busy_ps,
        samples: full.samples,
        fullness: [full.receiving, full.backlog, full.queued, full.sending],
        delay_ps: router.delay_ps,
    }
}

fn count(router: &Router) -> Counts {
    let (hardware, stack, full) = (router.hardware(), &router.kernel().stack, &router.fullness);
    Counts {
        offered: router.arrived.iter().sum(),
        done: router.left.iter().sum::<u64>() + stack.counted,
        left: router.left.iter().zip(&stack.counted_by).map(|(left, counted)| left + counted).collect(),
        busy_ps: vec![stack.spent.by_class_ps.iter().sum()],
        interrupts: hardware.nics.iter().map(|nic| nic.interrupts).collect(),
        polls: stack.counters.iter().map(|counts| counts.polls).collect(),
        cleanings: stack.counters.iter().map(|counts| counts.cleanings).collect(),
        deferred: stack.deferred,
        drops: stack.drops,
        classes_ps: stack.spent.by_class_ps,
        buses_ps: hardware.buses.iter().map(|bus| bus.busy_ps).collect(),
        memory_ps: hardware.memory.busy_ps,
        samples: full.samples,
        fullness: [full.receiving, full.backlog, full.queued, full.sending],
        delay_ps: router.delay_ps,
    }
}

/// Runs a scenario on a machine. Same seed, same numbers.
///
/// # Errors
///
/// If the machine has too few ports for it.
pub fn run(
    machine: &Machine,
    scenario: &Scenario,
    seed: u64,
    effort: Effort,
    followed: Option<u64>,
) -> Result<Outcome> {
    let mut router = Running::new(machine, scenario, seed, followed)?;
    let offered: f64 = scenario.flows.iter().map(|flow| flow.rate_fps).sum();
    let warm_up_ps = warm_up_ps(machine, offered, effort);
    let mut now_ps = warm_up_ps;
    router.run(now_ps);
    let before = router.count();
    let (mut done, mut windows) = (before.done, Vec::new());
    let window_s = effort.window_ps as f64 / SECOND as f64;
    while windows.len() < effort.windows
        || (windows.len() < effort.windows_most && interval(&windows) >= narrow(&windows, offered))
    {
        now_ps += effort.window_ps;
        router.run(now_ps);
        let now = router.count().done;
        windows.push((now - done) as f64 / window_s);
        done = now;
    }
    let sure = interval(&windows) < narrow(&windows, offered);
    Ok(Outcome { sure, ..outcome(&router, &before, windows, now_ps - warm_up_ps) })
}

/// How long a run is let be before anything counts: at least until so many times what a queue holds has come, since a queue
/// takes long to fill where hardly more comes than goes.
fn warm_up_ps(machine: &Machine, offered_fps: f64, effort: Effort) -> Time {
    let frames = FILLS * machine.software.queue.value as f64;
    let comes_s = if offered_fps > 0.0 { frames / offered_fps } else { 0.0 };
    effort
        .warm_up_ps
        .max(((comes_s * SECOND as f64) as Time).min(effort.warm_up_ps.saturating_mul(MOST_TIMES)))
}

/// How wide the 95 % interval of the mean is, from end to end, by Student's distribution; of one value nothing is known.
fn interval(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    2.0 * student(n - 1.0) * (variance / n).sqrt()
}

/// The 97.5 % point of Student's distribution with so many degrees of freedom, from that of the normal one (Abramowitz and
/// Stegun, 26.7.5): from 9 on right to a hundredth.
fn student(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    let [z3, z5] = [z.powi(3), z.powi(5)];
    z + (z3 + z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom * freedom)
}

/// What that is to be under. A rate that never changes, even one of nothing, is sure.
fn narrow(values: &[f64], offered_fps: f64) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (NARROW * mean).max(NARROW_OF_OFFERED * offered_fps).max(f64::MIN_POSITIVE)
}

fn outcome(router: &Running, before: &Counts, windows_fps: Vec<f64>, took_ps: Time) -> Outcome {
    let now = router.count();
    let (took, seconds) = (took_ps as f64, took_ps as f64 / SECOND as f64);
    let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
    let rates = |now: &[u64], before: &[u64]| now.iter().zip(before).map(|(&n, &b)| rate(n, b)).collect();
    let samples = (now.samples - before.samples).max(1) as f64;
    let left = (now.left.iter().sum::<u64>() - before.left.iter().sum::<u64>()).max(1);
    let (hardware, events, trace) = router.rest();
    let workers = now.busy_ps.len() as f64;
    Outcome {
        offered_fps: rate(now.offered, before.offered),
        interval_fps: interval(&windows_fps),
        windows_fps,
        sure: false,
        flows_fps: rates(&now.left, &before.left),
        interrupts: rates(&now.interrupts, &before.interrupts),
        polls: rates(&now.polls, &before.polls),
        cleanings: rates(&now.cleanings, &before.cleanings),
        deferred: rate(now.deferred, before.deferred),
        drops_fps: std::array::from_fn(|n| rate(now.drops[n], before.drops[n])),
        classes: std::array::from_fn(|n| (now.classes_ps[n] - before.classes_ps[n]) as f64 / took / workers),
        busy: now.busy_ps.iter().zip(&before.busy_ps).map(|(&n, &b)| (n - b) as f64 / took).collect(),
        buses: now.buses_ps.iter().zip(&before.buses_ps).map(|(&n, &b)| (n - b) as f64 / took).collect(),
        memory: (now.memory_ps - before.memory_ps) as f64 / took,
        fullness: std::array::from_fn(|n| (now.fullness[n] - before.fullness[n]) as f64 / samples),
        delay_ns: (now.delay_ps - before.delay_ps) as f64 / left as f64 / 1e3,
        buffers: (hardware.buffers.made, hardware.buffers.free()),
        entries: router.entries(),
        events,
        trace,
    }
}

/// Runs many scenarios, as many at a time as there are processors; outcomes are in the scenarios' order, whoever ran them.
///
/// # Errors
///
/// As [`run`].
pub fn run_all(
    machine: &Machine,
    scenarios: &[&Scenario],
    seed: u64,
    effort: Effort,
    followed: Option<u64>,
) -> Result<Vec<Outcome>> {
    parallel(scenarios, |scenario| run(machine, scenario, seed, effort, followed)).into_iter().collect()
}

/// Does jobs, as many at a time as there are processors; what they give is in the jobs' order, whoever did them.
pub(crate) fn parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return done };
            done.push((number, work(job)));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    /// From tables of Student's distribution.
    #[test]
    fn intervals_are_those_of_the_tables() {
        for (freedom, point) in [(9.0, 2.262), (19.0, 2.093), (29.0, 2.045), (99.0, 1.984)] {
            assert!((student(freedom) - point).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
        // Ten of 100 ± 1: a deviation of 1.054, a tenth of its square is a third squared, and twice 2.262 of that.
        let values: Vec<f64> = (0..10).map(|n| if n % 2 == 0 { 99.0 } else { 101.0 }).collect();
        assert!((interval(&values) - 1.508).abs() < 0.005, "{}", interval(&values));
        assert!(interval(&values) > narrow(&values, 0.0), "from end to end it is more than 1 %");
        assert!(interval(&[5.0; 3]) < narrow(&[5.0; 3], 0.0) && interval(&[0.0; 3]) < narrow(&[0.0; 3], 0.0));
        assert!(interval(&[5.0]).is_infinite(), "one value says nothing");
    }

    #[test]
    fn a_point_runs_until_it_is_sure_or_says_that_it_is_not() {
        let figure = Figure::find("OSR-4").expect("a figure");
        let machine = figure.machine().expect("the machine of the paper");
        let scenario = crate::figures::commercial_cards();
        let short = Effort { window_ps: MILLISECOND / 50, windows_most: 12, ..Effort::FULL };
        let of = |effort: Effort| run(&machine, &scenario, 1, effort, None).expect("enough ports");
        let (unsure, sure) = (of(short), of(Effort::FULL));
        assert_eq!((unsure.sure, unsure.windows_fps.len()), (false, 12), "all windows, and still not sure");
        assert!(unsure.interval_fps > 0.01 * unsure.rate_fps());
        assert!(sure.sure && sure.interval_fps < 0.01 * sure.rate_fps(), "{}", sure.interval_fps);
        assert!((10..100).contains(&sure.windows_fps.len()));
    }
}
