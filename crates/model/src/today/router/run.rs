//! A router of today under load until its numbers are sure.

use super::{Counts, Router};
use crate::event::{MICROSECOND, MILLISECOND, SECOND, Time};
use crate::pcie::Direction;
use crate::today::graph::{Account, ElementTime};
use crate::today::machine::Plan;
use anyhow::{Result, bail};
use std::collections::BTreeMap;

/// Frames that come in in a window, about.
const WINDOW_FRAMES: f64 = 12_000.0;
/// Windows at least and at most; each is a repetition.
const WINDOWS: (usize, usize) = (4, 20);
/// The width that half of the 95 % interval of a mean is to be under, as a part of it.
const NARROW: f64 = 0.01;
/// What is let pass beside the time in which rings fill.
const WARM_UP_PS: Time = 60 * MICROSECOND;
/// Frames that leave in a window of a graph at least, unless that takes as long as the second.
const GRAPH_FRAMES: u64 = 6_000;
const GRAPH_WINDOW_PS: Time = 2 * MILLISECOND;
/// Parts of their time by which cores differ that are told of one by one.
const UNEVEN: f64 = 0.05;

/// Why a frame is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The card's memory is full: its link does not take frames away in time.
    Fifo,
    /// The ring for reception has no descriptor: its core does not keep up.
    Ring,
    /// The ring for transmission is full.
    Transmit,
    /// An element of the graph drops it.
    Graph,
}

impl Drop {
    /// All of them.
    pub const ALL: [Drop; 4] = [Drop::Fifo, Drop::Ring, Drop::Transmit, Drop::Graph];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Drop::Fifo => "in the card's memory",
            Drop::Ring => "for want of a descriptor",
            Drop::Transmit => "at the ring for transmission",
            Drop::Graph => "in the graph",
        }
    }
}

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
    /// What each element of a graph took of the cores, the one that took most first.
    pub elements: Vec<ElementTime>,
    /// What elements dropped, frames a second, by element and reason, most first.
    pub dropped_by: Vec<(String, f64)>,
    /// Frames a second that ended in the graph and were not dropped: an element was there to take them.
    pub kept_fps: f64,
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
    accounts: Vec<Account>,
    dropped_by: BTreeMap<String, u64>,
    kept: u64,
}

impl Router {
    /// Frames that are inside.
    pub fn held(&self) -> u64 {
        let of_graph = self.graph.as_ref().map_or(0, |graph| graph.held());
        (self.frames.len() - self.unused.len()) as u64 + of_graph
    }

    /// Frames that came in or that a graph made and sent, that left, and that were dropped.
    pub fn ended(&self) -> [u64; 3] {
        let (made, dropped) = match &self.graph {
            Some(graph) => (graph.made, graph.drops().values().sum::<u64>()),
            None => (0, 0),
        };
        let by_machine: u64 = self.counts.drops.iter().sum();
        [self.counts.arrived + made, self.counts.left, by_machine + dropped]
    }

    /// Works until so many frames have left that a graph's queues are as full as they get, and one turn of its workers more or less
    /// does not matter; says how long that took, in whole windows.
    fn long_window(&mut self, now_ps: Time, window_ps: Time) -> Result<Time> {
        let (left, mut took_ps) = (self.counts.left, 0);
        while took_ps == 0 || (self.counts.left - left < GRAPH_FRAMES && took_ps < GRAPH_WINDOW_PS) {
            took_ps += window_ps;
            self.run(now_ps + took_ps);
            self.check()?;
        }
        Ok(took_ps)
    }

    /// Whether it can go on.
    fn check(&mut self) -> Result<()> {
        match self.failed.take() {
            Some(failed) => bail!("{failed}"),
            None => Ok(()),
        }
    }

    fn before(&mut self) -> Before {
        let both = [Direction::Up, Direction::Down];
        let counts = Counts { delays_ns: Vec::new(), ..self.counts.clone() };
        self.counts.delays_ns.clear();
        Before {
            counts,
            cores_ps: self.cores_ps(),
            links_ps: self.slots.iter().map(|slot| both.map(|way| slot.busy_ps(way))).collect(),
            memory_ps: self.near.memory.busy_ps,
            lines: [self.near.hits, self.near.misses],
            accounts: self.graph.as_ref().map_or_else(Vec::new, |graph| graph.accounts()),
            dropped_by: self.graph.as_ref().map_or_else(BTreeMap::new, |graph| graph.drops()),
            kept: self.kept(),
        }
    }

    /// How long each core has worked.
    fn cores_ps(&self) -> Vec<Time> {
        match &self.graph {
            Some(graph) => graph.workers.iter().map(|worker| worker.busy_ps).collect(),
            None => self.cores.iter().map(|core| core.busy_ps).collect(),
        }
    }

    /// Frames that ended in a graph and are in no counter of what was dropped.
    fn kept(&self) -> u64 {
        let [came, left, dropped] = self.ended();
        came.saturating_sub(left + dropped + self.held())
    }

    /// What of their time the cores worked: all of them, or each that did something where a graph spreads work unevenly.
    fn cores_used(&self, before: &Before, took_ps: f64) -> Vec<Resource> {
        let busy = self.cores_ps().into_iter().zip(&before.cores_ps).map(|(now, &then)| (now - then) as f64);
        let parts: Vec<f64> = busy.map(|ps| ps / took_ps).collect();
        let most = parts.iter().copied().fold(0.0, f64::max);
        let least = parts.iter().copied().fold(most, f64::min);
        if self.graph.is_none() || most - least < UNEVEN {
            let part = parts.iter().sum::<f64>() / parts.len() as f64;
            return vec![Resource { name: "cores".to_owned(), part }];
        }
        let each = parts.into_iter().enumerate().filter(|(_, part)| *part > 0.0);
        each.map(|(n, part)| Resource { name: format!("core {n}"), part }).collect()
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
        self.cores_used(before, took_ps).into_iter().for_each(|one| add(one.name, one.part));
        let wires = (self.counts.wire_ps - before.counts.wire_ps) as f64;
        add("wires".to_owned(), wires / self.links.len() as f64 / took_ps);
        all
    }
}

/// Runs a plan at a part of its ports' speed, with a frame that is followed. Same seed, same numbers.
///
/// # Errors
///
/// If the plan's lengths of frames are not possible, or its graph, or if that does not come to an end.
pub fn run(plan: &Plan, load: f64, seed: u64, followed: Option<u64>) -> Result<Outcome> {
    let mut router = Router::new(plan, load, seed, followed)?;
    let sizes = plan.frames()?;
    let mean_ps = |link: &crate::link::Link| {
        sizes.iter().map(|&bytes| link.frame_ps(bytes)).sum::<Time>() as f64 / sizes.len() as f64
    };
    let fps: f64 = plan.links().iter().map(|(_, link)| SECOND as f64 / mean_ps(link) * load).sum();
    let rings = plan.port_count() as f64 * (plan.processor.cores.value * plan.card.receive_ring.value) as f64;
    let mut window_ps = (WINDOW_FRAMES / fps * SECOND as f64) as Time;
    let mut now_ps = WARM_UP_PS + (1.5 * rings / fps * SECOND as f64) as Time;
    router.run(now_ps);
    router.check()?;
    if router.graph.is_some() {
        window_ps = router.long_window(now_ps, window_ps)?;
        now_ps += window_ps;
    }
    let (before, began_ps) = (router.before(), now_ps);
    let (mut left, mut windows) = (before.counts.left, Vec::new());
    while windows.len() < WINDOWS.0 || (windows.len() < WINDOWS.1 && !is_narrow(&windows)) {
        now_ps += window_ps;
        router.run(now_ps);
        router.check()?;
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
    let dropped_by = dropped_by(router, before, seconds);
    let mut drops_fps = std::array::from_fn(|n| (now.drops[n] - then.drops[n]) as f64 / seconds);
    drops_fps[Drop::Graph as usize] = dropped_by.iter().map(|(_, fps)| fps).sum();
    Outcome {
        offered_fps: (now.arrived - then.arrived) as f64 / seconds,
        windows_fps,
        wire_bps: (bytes + frames * f64::from(crate::link::PREAMBLE_AND_GAP)) * 8.0 / seconds,
        drops_fps,
        resources: router.resources(before, took_ps as f64),
        delay_ns: [quantile(0.5), quantile(0.99)],
        found: hits as f64 / (hits + misses).max(1) as f64,
        elements: element_times(router, before, took_ps),
        dropped_by,
        kept_fps: router.kept().saturating_sub(before.kept) as f64 / seconds,
        events: router.queue.happened(),
        trace: router.trace.lines(),
    }
}

/// What each element took of the cores since then, most first.
fn element_times(router: &Router, before: &Before, took_ps: Time) -> Vec<ElementTime> {
    let Some(graph) = &router.graph else { return Vec::new() };
    let whole_ps = (took_ps * graph.workers.len() as u64) as f64;
    let time = |(n, account): (usize, Account)| {
        let then = before.accounts.get(n).map_or([0; 3], Account::sums);
        let [busy_ps, packets, visits] = std::array::from_fn(|i| account.sums()[i] - then[i]);
        ElementTime {
            name: account.name,
            class: account.class,
            part: busy_ps as f64 / whole_ps,
            rate_pps: packets as f64 / took_ps as f64 * SECOND as f64,
            packet_ns: busy_ps as f64 / 1e3 / packets.max(1) as f64,
            batch: packets as f64 / visits.max(1) as f64,
        }
    };
    let mut all: Vec<ElementTime> = graph.accounts().into_iter().enumerate().map(time).collect();
    all.sort_by(|a, b| b.part.total_cmp(&a.part).then_with(|| a.name.cmp(&b.name)));
    all
}

/// What elements dropped since then, most first.
fn dropped_by(router: &Router, before: &Before, seconds: f64) -> Vec<(String, f64)> {
    let Some(graph) = &router.graph else { return Vec::new() };
    let since = |(what, dropped): (String, u64)| {
        let then = before.dropped_by.get(&what).copied().unwrap_or_default();
        (dropped > then).then(|| (what, (dropped - then) as f64 / seconds))
    };
    let mut all: Vec<(String, f64)> = graph.drops().into_iter().filter_map(since).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}
