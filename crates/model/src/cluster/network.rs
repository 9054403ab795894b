//! Throughput, delays and reordering of many machines: each handles so many frames a second, and has room for so many.
//!
//! - Behind a front that spreads flows: it handles each frame once, the node of its flow once.
//! - Several stages (Bianco, Finochietto, Galante, Mellia, Mazzucchi and Neri, *Scalable Layer-2/Layer-3 Multistage Switching
//!   Architectures for Software Routers*, GLOBECOM 2006): front ends with the outside ports spread frames over routers
//!   behind them, and send what comes back; a frame is handled three times, twice of them in front. Between them are switches,
//!   which are not what holds anything up here.
//! - A mesh (Dobrescu et al., *RouteBricks*, SOSP 2009): every machine has outside ports, and a frame goes by way of another
//!   that is chosen at random, as valiant load balancing has it.

use super::hashing::{Group, Hashing, flow_hash};
use crate::event::{Queue, SECOND, Time};
use fastrand::Rng;
use std::collections::VecDeque;

/// How machines stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Nodes behind one front.
    Behind {
        /// How many nodes.
        nodes: usize,
        /// How it chooses.
        hashing: Hashing,
    },
    /// Front ends, and routers behind them.
    Stages {
        /// Front ends.
        fronts: usize,
        /// Routers behind them.
        backs: usize,
        /// Whether each frame goes its own way, in turns, or those of a flow the same.
        by_frame: bool,
    },
    /// Machines that are both.
    Mesh {
        /// How many.
        nodes: usize,
    },
}

/// What machines can.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Frames a second of a front or a front end.
    pub front_fps: f64,
    /// Frames a second of a node or a router behind.
    pub node_fps: f64,
    /// Frames that wait for a machine at most.
    pub room: usize,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Frames a second that were offered.
    pub offered_fps: f64,
    /// And that left.
    pub left_fps: f64,
    /// What part of what was offered was lost in front, behind, and on the way out.
    pub lost: [f64; 3],
    /// Microseconds: median, and 99 of 100.
    pub delay_us: [f64; 2],
    /// What part of what left had been overtaken by a later frame of its flow.
    pub reordered: f64,
    /// What of its time the busiest machine worked.
    pub busiest: f64,
    /// Frames: offered, left, lost, inside at the end.
    pub frames: [u64; 4],
}

/// Machines that a frame meets at most.
const STAGES: usize = 3;

#[derive(Clone, Copy)]
struct Frame {
    flow: u32,
    number: u32,
    since_ps: Time,
    way: [usize; STAGES],
    stages: usize,
    stage: usize,
}

#[derive(Clone, Copy)]
enum Event {
    Arrival,
    Done(usize),
}

#[derive(Default)]
struct Machine {
    service_ps: Time,
    waiting: VecDeque<Frame>,
    busy_ps: Time,
}

impl Layout {
    /// Machines that it has.
    pub fn machines(&self) -> usize {
        match *self {
            Layout::Behind { nodes, .. } => nodes + 1,
            Layout::Stages { fronts, backs, .. } => fronts + backs,
            Layout::Mesh { nodes } => nodes,
        }
    }

    /// Frames a second that it carries if all shares are even.
    pub fn ideal_fps(&self, rates: &Rates) -> f64 {
        match *self {
            Layout::Behind { nodes, .. } => rates.front_fps.min(nodes as f64 * rates.node_fps),
            Layout::Stages { fronts, backs, .. } => {
                (fronts as f64 * rates.front_fps / 2.0).min(backs as f64 * rates.node_fps)
            }
            Layout::Mesh { nodes } => nodes as f64 * rates.node_fps / STAGES as f64,
        }
    }

    fn services(&self, rates: &Rates) -> Vec<Machine> {
        let ps = |fps: f64| (SECOND as f64 / fps.max(1.0)) as Time;
        let fronts = match *self {
            Layout::Behind { .. } => 1,
            Layout::Stages { fronts, .. } => fronts,
            Layout::Mesh { .. } => 0,
        };
        let machine = |n: usize| Machine {
            service_ps: ps(if n < fronts { rates.front_fps } else { rates.node_fps }),
            ..Machine::default()
        };
        (0..self.machines()).map(machine).collect()
    }
}

/// The ways of flows.
struct Ways {
    layout: Layout,
    /// The node of each flow, where one stays.
    of_flow: Vec<usize>,
    next: usize,
}

impl Ways {
    fn new(layout: Layout, flows: u32) -> Ways {
        let (hashing, count) = match layout {
            Layout::Behind { nodes, hashing } => (hashing, nodes),
            Layout::Stages { backs, .. } => (Hashing::Threshold, backs),
            Layout::Mesh { nodes } => (Hashing::Threshold, nodes),
        };
        let group = Group::new(hashing, count);
        let of_flow = (0..flows).map(|flow| group.node(flow_hash(flow)).unwrap_or_default()).collect();
        Ways { layout, of_flow, next: 0 }
    }

    /// The machines of a flow's next frame, in order, and how many they are.
    fn of(&mut self, flow: u32, rng: &mut Rng) -> ([usize; STAGES], usize) {
        let (of_flow, flow) = (self.of_flow[flow as usize], flow as usize);
        // From each machine with outside ports to each other, as many flows.
        let out = |machines: usize| (flow + 1 + flow / machines) % machines;
        match self.layout {
            Layout::Behind { .. } => ([0, 1 + of_flow, 0], 2),
            Layout::Stages { fronts, backs, by_frame } => {
                self.next += 1;
                let back = if by_frame { self.next % backs } else { of_flow };
                ([flow % fronts, fronts + back, out(fronts)], STAGES)
            }
            Layout::Mesh { nodes } => ([flow % nodes, rng.usize(..nodes), out(nodes)], STAGES),
        }
    }
}

/// Runs a layout under so many frames of flows that send at random times, each as often. The first tenth does not count.
/// Same seed, same numbers.
pub fn run(layout: Layout, rates: &Rates, flows: u32, offered_fps: f64, frames: u64, seed: u64) -> Outcome {
    Run::new(layout, rates, flows, offered_fps, seed).go(frames)
}

struct Run {
    queue: Queue<Event>,
    machines: Vec<Machine>,
    room: usize,
    ways: Ways,
    rng: Rng,
    mean_ps: f64,
    flows: u32,
    /// The next number of each flow, and the highest that left.
    numbers: Vec<u32>,
    highest: Vec<u32>,
    offered: u64,
    left: u64,
    lost: [u64; STAGES],
    reordered: u64,
    delays_ps: Vec<Time>,
}

impl Run {
    fn new(layout: Layout, rates: &Rates, flows: u32, offered_fps: f64, seed: u64) -> Run {
        Run {
            queue: Queue::new(),
            machines: layout.services(rates),
            room: rates.room,
            ways: Ways::new(layout, flows),
            rng: Rng::with_seed(seed),
            mean_ps: SECOND as f64 / offered_fps,
            flows,
            numbers: vec![0; flows as usize],
            highest: vec![0; flows as usize],
            offered: 0,
            left: 0,
            lost: [0; STAGES],
            reordered: 0,
            delays_ps: Vec::new(),
        }
    }

    fn go(mut self, frames: u64) -> Outcome {
        let warm = frames / 10;
        let (mut before, mut since_ps, mut busy_ps) = ([0; 2], 0, vec![0; self.machines.len()]);
        let mut lost = [0; STAGES];
        self.queue.at(0, Event::Arrival);
        while self.offered < frames {
            if self.offered == warm && since_ps == 0 {
                (before, since_ps, lost) = ([self.offered, self.left], self.queue.now_ps().max(1), self.lost);
                busy_ps = self.machines.iter().map(|machine| machine.busy_ps).collect();
                self.delays_ps.clear();
                self.reordered = 0;
            }
            match self.queue.pop() {
                Some(Event::Arrival) => self.arrive(),
                Some(Event::Done(machine)) => self.done(machine),
                None => break,
            }
        }
        let took_ps = (self.queue.now_ps() - since_ps).max(1) as f64;
        let [offered, left] = [self.offered - before[0], self.left - before[1]].map(|n| n as f64);
        self.delays_ps.sort_unstable();
        let quantile = |part: f64| {
            let place = (self.delays_ps.len() as f64 * part) as usize;
            self.delays_ps.get(place).map_or(0.0, |&ps| ps as f64 / 1e6)
        };
        let busy =
            self.machines.iter().zip(&busy_ps).map(|(machine, b)| (machine.busy_ps - b) as f64 / took_ps);
        let inside = self.machines.iter().map(|machine| machine.waiting.len() as u64).sum();
        Outcome {
            offered_fps: offered * SECOND as f64 / took_ps,
            left_fps: left * SECOND as f64 / took_ps,
            lost: std::array::from_fn(|n| (self.lost[n] - lost[n]) as f64 / offered.max(1.0)),
            delay_us: [quantile(0.5), quantile(0.99)],
            reordered: self.reordered as f64 / left.max(1.0),
            busiest: busy.fold(0.0, f64::max),
            frames: [self.offered, self.left, self.lost.iter().sum(), inside],
        }
    }

    fn arrive(&mut self) {
        let flow = self.rng.u32(..self.flows);
        let (way, stages) = self.ways.of(flow, &mut self.rng);
        self.numbers[flow as usize] += 1;
        let number = self.numbers[flow as usize];
        self.offered += 1;
        let frame = Frame { flow, number, since_ps: self.queue.now_ps(), way, stages, stage: 0 };
        self.join(frame);
        let pause_ps = -self.mean_ps * (1.0 - self.rng.f64()).ln();
        self.queue.after(pause_ps as Time, Event::Arrival);
    }

    /// A frame comes to its next machine.
    fn join(&mut self, frame: Frame) {
        let number = frame.way[frame.stage];
        let machine = &mut self.machines[number];
        if machine.waiting.len() >= self.room {
            self.lost[frame.stage] += 1;
            return;
        }
        machine.waiting.push_back(frame);
        if machine.waiting.len() == 1 {
            machine.busy_ps += machine.service_ps;
            self.queue.after(machine.service_ps, Event::Done(number));
        }
    }

    fn done(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        let Some(mut frame) = machine.waiting.pop_front() else { return };
        if !machine.waiting.is_empty() {
            machine.busy_ps += machine.service_ps;
            self.queue.after(machine.service_ps, Event::Done(number));
        }
        frame.stage += 1;
        if frame.stage < frame.stages {
            return self.join(frame);
        }
        self.left += 1;
        self.delays_ps.push(self.queue.now_ps() - frame.since_ps);
        let highest = &mut self.highest[frame.flow as usize];
        self.reordered += u64::from(frame.number < *highest);
        *highest = frame.number.max(*highest);
    }
}
