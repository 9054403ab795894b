//! A router of today under load until its numbers are sure.

use super::{Counts, Drop, Router};
use crate::event::{MICROSECOND, SECOND, Time};
use crate::pcie::Direction;
use crate::today::machine::Plan;
use anyhow::Result;

/// Frames that come in in a window, about.
const WINDOW_FRAMES: f64 = 12_000.0;
/// Windows at least and at most; each is a repetition.
const WINDOWS: (usize, usize) = (4, 20);
/// The width that half of the 95 % interval of a mean is to be under, as a part of it.
const NARROW: f64 = 0.01;
/// What is let pass beside the time in which rings fill.
const WARM_UP_PS: Time = 60 * MICROSECOND;

/// What is used, and how much of it: 1 is all.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// For people.
    pub name: String,
    /// What of it is used.
    pub part: f64,
}

/// What a run gave. Rates are frames a second.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What came in.
    pub offered_fps: f64,
    /// What left, in each window.
    pub windows_fps: Vec<f64>,
    /// Bits a second that left, with preambles and gaps.
    pub wire_bps: f64,
    /// What was dropped, by reason.
    pub drops_fps: [f64; Drop::ALL.len()],
    /// What was used, in the order in which a frame meets it.
    pub resources: Vec<Resource>,
    /// Time inside, nanoseconds: median, and 99 of 100.
    pub delay_ns: [f64; 2],
    /// What of the lines that cores wanted was in the shared cache.
    pub found: f64,
    /// Events that happened.
    pub events: u64,
    /// The way of the frame that was followed.
    pub trace: Vec<String>,
}

impl Outcome {
    /// What left, mean over the windows.
    pub fn rate_fps(&self) -> f64 {
        self.windows_fps.iter().sum::<f64>() / self.windows_fps.len().max(1) as f64
    }

    /// The resource of which most is used.
    ///
    /// # Panics
    ///
    /// If there is none: every router has some.
    pub fn first(&self) -> &Resource {
        let most = self.resources.iter().reduce(|a, b| if b.part > a.part { b } else { a });
        most.expect("a router has resources")
    }
}

/// What counts from the start of the windows on.
struct Before {
    counts: Counts,
    cores_ps: Vec<Time>,
    links_ps: Vec<[Time; 2]>,
    memory_ps: Time,
    lines: [u64; 2],
}

impl Router {
    fn before(&mut self) -> Before {
        let both = [Direction::Up, Direction::Down];
        let counts = Counts { delays_ns: Vec::new(), ..self.counts.clone() };
        self.counts.delays_ns.clear();
        Before {
            counts,
            cores_ps: self.cores.iter().map(|core| core.busy_ps).collect(),
            links_ps: self.slots.iter().map(|slot| both.map(|way| slot.busy_ps(way))).collect(),
            memory_ps: self.near.memory.busy_ps,
            lines: [self.near.hits, self.near.misses],
        }
    }

    /// What was used since then, in so long.
    fn resources(&self, before: &Before, took_ps: f64) -> Vec<Resource> {
        let mut all = Vec::new();
        let mut add = |name: String, part: f64| all.push(Resource { name, part });
        for (n, (name, slot)) in self.plan.slot.keys().zip(&self.slots).enumerate() {
            if !self.links.iter().any(|link| link.0 == n) {
                continue;
            }
            let part =
                |way: Direction| (slot.busy_ps(way) - before.links_ps[n][way as usize]) as f64 / took_ps;
            let samples = (self.counts.samples - before.counts.samples).max(1) as f64;
            let reads = (self.counts.tags[n] - before.counts.tags[n]) as f64 / samples;
            add(format!("slot {name}, to the host"), part(Direction::Up));
            add(format!("slot {name}, to the card"), part(Direction::Down));
            add(format!("slot {name}, reads under way"), reads / f64::from(slot.parameters().tags));
        }
        let memory = (self.near.memory.busy_ps - before.memory_ps) as f64 / took_ps;
        add("memory".to_owned(), memory);
        let busy = self.cores.iter().zip(&before.cores_ps).map(|(core, &b)| core.busy_ps - b);
        add("cores".to_owned(), busy.sum::<Time>() as f64 / self.cores.len() as f64 / took_ps);
        let wires = (self.counts.wire_ps - before.counts.wire_ps) as f64;
        add("wires".to_owned(), wires / self.links.len() as f64 / took_ps);
        all
    }
}

/// Runs a plan at a part of its ports' speed, with a frame that is followed. Same seed, same numbers.
///
/// # Errors
///
/// If the plan's lengths of frames are not possible.
pub fn run(plan: &Plan, load: f64, seed: u64, followed: Option<u64>) -> Result<Outcome> {
    let mut router = Router::new(plan, load, seed, followed)?;
    let sizes = plan.frames()?;
    let mean_ps = |link: &crate::link::Link| {
        sizes.iter().map(|&bytes| link.frame_ps(bytes)).sum::<Time>() as f64 / sizes.len() as f64
    };
    let fps: f64 = plan.links().iter().map(|(_, link)| SECOND as f64 / mean_ps(link) * load).sum();
    let rings = plan.port_count() as f64 * (plan.processor.cores.value * plan.card.receive_ring.value) as f64;
    let window_ps = (WINDOW_FRAMES / fps * SECOND as f64) as Time;
    let mut now_ps = WARM_UP_PS + (1.5 * rings / fps * SECOND as f64) as Time;
    router.run(now_ps);
    let (before, began_ps) = (router.before(), now_ps);
    let (mut left, mut windows) = (before.counts.left, Vec::new());
    while windows.len() < WINDOWS.0 || (windows.len() < WINDOWS.1 && !is_narrow(&windows)) {
        now_ps += window_ps;
        router.run(now_ps);
        windows.push((router.counts.left - left) as f64 / (window_ps as f64 / SECOND as f64));
        left = router.counts.left;
    }
    Ok(outcome(&mut router, &before, windows, now_ps - began_ps))
}

fn is_narrow(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    2.0 * (variance / n).sqrt() <= NARROW * mean
}

fn outcome(router: &mut Router, before: &Before, windows_fps: Vec<f64>, took_ps: Time) -> Outcome {
    let mut delays = std::mem::take(&mut router.counts.delays_ns);
    delays.sort_unstable();
    let quantile = |part: f64| {
        let place = ((delays.len() as f64 * part) as usize).min(delays.len().saturating_sub(1));
        delays.get(place).map_or(0.0, |&ns| f64::from(ns))
    };
    let (now, then, seconds) = (&router.counts, &before.counts, took_ps as f64 / SECOND as f64);
    let [hits, misses] = [router.near.hits - before.lines[0], router.near.misses - before.lines[1]];
    let frames = (now.left - then.left) as f64;
    let bytes = (now.left_bytes - then.left_bytes) as f64;
    Outcome {
        offered_fps: (now.arrived - then.arrived) as f64 / seconds,
        windows_fps,
        wire_bps: (bytes + frames * f64::from(crate::link::PREAMBLE_AND_GAP)) * 8.0 / seconds,
        drops_fps: std::array::from_fn(|n| (now.drops[n] - then.drops[n]) as f64 / seconds),
        resources: router.resources(before, took_ps as f64),
        delay_ns: [quantile(0.5), quantile(0.99)],
        found: hits as f64 / (hits + misses).max(1) as f64,
        events: router.queue.happened(),
        trace: router.trace.lines(),
    }
}
