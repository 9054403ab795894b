//! A graph at work: its workers, what each has to do, and what became of the frames that they took.

use super::super::machine::Plan;
use super::configuration::Configuration;
use super::desk::{Account, Desk, Offered, Ready, Shared, Taken, of};
use super::frames::{CHECKSUM, Maker, Networks};
use super::ports::{Bed, opened_in};
use crate::event::{NANOSECOND, Time};
use anyhow::{Result, anyhow, bail, ensure};
use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::simulation::{Simulation, Step, Visit};
use causeway_engine::{Options, StartError};
use causeway_packet::pool;
use std::collections::BTreeMap;

/// Frames that a graph has taken, of which it is known where they come from: of one that stays longer than as many others it is
/// not known any more.
const KNOWN: usize = 1 << 17;
/// Pieces of work that may take no time, one after the other.
const FREE_MOST: u32 = 200_000;

/// A frame in a graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct Travel {
    pub tag: u64,
    /// In the order of arrivals.
    pub number: u64,
    pub arrived_ps: Time,
    pub buffer: u32,
}

/// A worker: a core.
#[derive(Debug)]
pub struct Worker {
    pub asleep: bool,
    /// When its last piece of work ends.
    pub free_ps: Time,
    /// Which intention counts: one that was scheduled before it was changed does not.
    pub generation: u64,
    pub busy_ps: Time,
    /// Buffers that it gives back to rings for reception when its piece of work ends, and frames that it posts then.
    pub refills: Vec<(usize, usize)>,
    pub posts: Vec<(usize, usize, u32)>,
}

/// What an element took of the processor.
#[derive(Clone, Debug)]
pub struct ElementTime {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: &'static str,
    /// Of the time of all cores.
    pub part: f64,
    /// Packets a second that it was visited by.
    pub rate_pps: f64,
    /// Nanoseconds of a core for each of them.
    pub packet_ns: f64,
    /// How many of them came at a time; visits in vain count.
    pub batch: f64,
}

/// Buffers that are used in turns. Which ones a graph has dropped nobody tells; how many there are in use is known.
#[derive(Debug, Default)]
pub struct Buffers {
    next: u32,
    pub most: u32,
}

impl Buffers {
    /// The next one.
    pub fn take(&mut self) -> u32 {
        self.next = (self.next + 1) % self.most.max(1);
        self.next
    }
}

/// A graph at work.
pub struct Graph {
    sim: Simulation,
    /// What its ports share with the cards.
    pub desk: Shared,
    pub workers: Vec<Worker>,
    /// The ports of a worker's devices.
    ports: Vec<Vec<Option<usize>>>,
    /// Whether a port is received from.
    pub receives: Vec<bool>,
    travels: Vec<Travel>,
    pub buffers: Buffers,
    /// Packets that left and that it had made by itself.
    pub made: u64,
    /// Pieces of work in a row that took no time.
    free: u32,
}

impl Graph {
    /// A graph that has just started on the cores of a plan.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(configuration: &Configuration, plan: &Plan, seed: u64) -> Result<Graph> {
        let (workers, ports) = (plan.processor.cores.value as usize, plan.port_count());
        let most = pool::config().frame_size + CHECKSUM as u32;
        let longest = plan.frames()?.into_iter().max().unwrap_or_default();
        ensure!(longest <= most, "sizes: a frame of {longest} bytes; packets of a graph have at most {most}");
        let (named, used) =
            (plan.traffic.networks.as_deref().unwrap_or_default(), configuration.devices.len());
        // Behind ports that a graph does not name nobody is.
        let maker = Maker::new(Networks::new(&named[..named.len().min(used)], used)?);
        let (clock_hz, ring) = (plan.processor.clock.value, plan.card.transmit_ring.value as usize);
        let costs = configuration.costs.clone();
        let desk = Desk::new(maker, costs, clock_hz, ports, workers, ring);
        let desk: Shared = std::sync::Arc::new(std::sync::Mutex::new(desk));
        let bed = Bed { desk: desk.clone(), devices: configuration.devices.clone(), queues: workers };
        let options = Options { workers, replicate: workers > 1, seed: Some(seed), ..Options::default() };
        let hook = |worker: usize| {
            let desk = desk.clone();
            move |visit: &Visit<'_>| of(&desk).charge(worker, visit)
        };
        let library = causeway_elements::library();
        let built = opened_in(bed, || Simulation::in_batches(&library, &configuration.plan, &options, hook));
        let sim = built.map_err(|error| wrong(configuration, &error))?;
        let of_worker = |worker| sim.ports(worker).iter().map(|name| configuration.port_of(name)).collect();
        let of_workers: Vec<Vec<Option<usize>>> = (0..workers).map(of_worker).collect();
        let receives = (0..ports).map(|port| of_workers.iter().flatten().any(|of| *of == Some(port)));
        let most = ports as u64 * workers as u64 * plan.card.receive_ring.value;
        Ok(Graph {
            receives: receives.collect(),
            ports: of_workers,
            workers: (0..workers).map(|_| Worker::new()).collect(),
            travels: vec![Travel::default(); KNOWN],
            buffers: Buffers { next: 0, most: most as u32 },
            made: 0,
            free: 0,
            sim,
            desk,
        })
    }

    /// Lets a worker do a piece of work from now on; says what it found. Its clock then stands at the end of it.
    ///
    /// # Errors
    ///
    /// If it does not come to an end.
    pub fn step(&mut self, worker: usize, now_ps: Time) -> Result<Step> {
        self.sim.idle(worker, SIMULATED_START_NS + now_ps.div_ceil(NANOSECOND));
        of(&self.desk).worker = worker;
        let found = self.sim.step(worker).unwrap_or(Step::Worked);
        self.free = if self.now_ps(worker) > now_ps { 0 } else { self.free + 1 };
        let failed = of(&self.desk).failed.take();
        match failed {
            Some(failed) => bail!("{failed}"),
            None if self.free > FREE_MOST => {
                bail!(
                    "the graph works without an end and takes no time: give what it does without packets a cost"
                )
            }
            None => Ok(found),
        }
    }

    /// A worker waits for memory, for an element.
    pub fn wait(&mut self, worker: usize, element: usize, wait_ps: Time) {
        let ns = of(&self.desk).whole_ns(worker, element, wait_ps);
        let now_ns = self.sim.now_ns(worker);
        self.sim.idle(worker, now_ns.saturating_add(ns));
    }

    /// A card reported frames of a ring; says which worker is to hear of it.
    pub fn hand_over(
        &mut self,
        port: usize,
        queue: usize,
        ready: impl Iterator<Item = Ready>,
    ) -> Option<usize> {
        let mut desk = of(&self.desk);
        let place = &mut desk.places[port][queue];
        place.ready.extend(ready);
        let worker = place.worker?;
        drop(desk);
        self.interrupt(worker, port);
        Some(worker)
    }

    /// A card reported so many frames of a ring that have left.
    pub fn cleaned(&mut self, port: usize, queue: usize, n: usize) {
        of(&self.desk).places[port][queue].cleanable += n;
    }

    /// Whether the last piece of work may have given another worker something to do.
    pub fn crossed(&mut self) -> bool {
        std::mem::take(&mut of(&self.desk).crossed)
    }

    /// What the last piece of work has left for memory and cards.
    pub fn left_on_desk(&mut self) -> Left {
        let desk = &mut *of(&self.desk);
        let mut offered = Vec::new();
        for (port, queues) in desk.places.iter_mut().enumerate() {
            for (queue, place) in queues.iter_mut().enumerate().filter(|(_, place)| place.flushed) {
                place.flushed = false;
                offered.extend(place.offered.drain(..).map(|one| (port, queue, one)));
            }
        }
        Left {
            taken: std::mem::take(&mut desk.taken),
            lookups: std::mem::take(&mut desk.lookups),
            offered,
            receiver: desk.receiver,
            sender: desk.sender,
        }
    }

    /// A worker's time.
    pub fn now_ps(&self, worker: usize) -> Time {
        when_ps(self.sim.now_ns(worker))
    }

    /// A card reported frames of a port: the interrupt of who receives from it.
    fn interrupt(&mut self, worker: usize, port: usize) {
        for device in 0..self.ports[worker].len() {
            if self.ports[worker][device] == Some(port) {
                self.sim.interrupt(worker, device);
            }
        }
    }

    /// What is known of a frame from now on.
    pub fn remember(&mut self, taken: &Taken, number: u64, arrived_ps: Time, buffer: u32) {
        let travel = Travel { tag: taken.tag, number, arrived_ps, buffer };
        self.travels[taken.tag as usize % KNOWN] = travel;
    }

    /// What is known of a frame that leaves.
    pub fn recall(&mut self, offered: &Offered) -> Option<Travel> {
        let tag = offered.tag?;
        Some(self.travels[tag as usize % KNOWN]).filter(|travel| travel.tag == tag)
    }

    /// Packets that it holds, and those that it has handed to a ring whose card is not told of them yet.
    pub fn held(&self) -> u64 {
        let desk = of(&self.desk);
        let offered: usize = desk.places.iter().flatten().map(|place| place.offered.len()).sum();
        (self.sim.held() + offered) as u64
    }

    /// What its elements dropped, by element and reason.
    pub fn drops(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (line, dropped) in self.sim.counters().filter(|(_, dropped)| *dropped > 0) {
            if let Some(reason) = line.name.strip_prefix("drop.") {
                *all.entry(format!("{} ({reason})", line.element)).or_default() += dropped;
            } else if line.name == "rx.backlog-drops" {
                *all.entry(format!("{} (backlog)", line.element)).or_default() += dropped;
            }
        }
        all
    }

    /// What its elements have done.
    pub fn accounts(&self) -> Vec<Account> {
        of(&self.desk).accounts.clone()
    }

    /// A handler's value, for tests.
    #[cfg(test)]
    pub fn read(&mut self, element: &str, handler: &str) -> String {
        self.sim.read(element, handler, "").unwrap_or_else(|error| error.to_string())
    }
}

/// What a piece of work has left.
pub struct Left {
    /// Frames that were taken from rings.
    pub taken: Vec<Taken>,
    /// Lines of tables that were read, by element.
    pub lookups: Vec<(usize, u64)>,
    /// Packets for rings, by port and queue.
    pub offered: Vec<(usize, usize, Offered)>,
    /// Who received and who sent.
    pub receiver: usize,
    pub sender: usize,
}

impl Worker {
    /// Whether there is something to be done when its piece of work ends.
    pub fn has_left_something(&self) -> bool {
        !self.refills.is_empty() || !self.posts.is_empty()
    }

    fn new() -> Worker {
        Worker {
            asleep: false,
            free_ps: 0,
            generation: 0,
            busy_ps: 0,
            refills: Vec::new(),
            posts: Vec::new(),
        }
    }
}

/// A time of the engine's clocks as one of the model.
pub fn when_ps(ns: u64) -> Time {
    ns.saturating_sub(SIMULATED_START_NS).saturating_mul(NANOSECOND)
}

fn wrong(configuration: &Configuration, error: &StartError) -> anyhow::Error {
    anyhow!("{}: the graph cannot be built: {error}", configuration.name)
}
