//! The running router, seen from the control side: start, handlers, hot swap, stop.

use crate::assemble::{Assembly, ElementError, Index, Layout, Place, assemble};
use crate::clock::Clock;
use crate::conf::{Defaults, Env, Persistent};
use crate::core::{Core, Node};
use crate::counters::{Counters, Line};
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::handler::{self, HandlerError};
use crate::plan::Plan;
use crate::reception::{DEFAULT_BUDGET, Mechanism};
use crate::spec::Library;
use crate::worker::{Command, DOORBELL, Event, Worker};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Counters that a router has room for: a floor, and so many for each element.
const COUNTERS: (usize, usize) = (4_096, 64);

/// How to run a router.
#[derive(Clone, Debug)]
pub struct Options {
    /// Workers.
    pub workers: usize,
    /// Whether each worker gets a copy of the whole graph and its own queue of every port.
    pub replicate: bool,
    /// Processors to pin the workers to, in turn; empty = let the kernel choose.
    pub processors: Vec<usize>,
    /// Seed of the random numbers; `None` = a fresh one.
    pub seed: Option<u64>,
    /// Where simulated time starts; `None` = live.
    pub simulated_ns: Option<u64>,
    /// Shared-memory file of the counters; `None` = private memory.
    pub counters: Option<PathBuf>,
    /// Reception mechanism of ports that do not name one.
    pub mechanism: Mechanism,
    /// Packets in one NAPI run over all ports of a worker.
    pub budget: usize,
    /// Values that the elements find and that outlive hot swaps.
    pub persistent: Persistent,
    /// Whose defaults the elements' arguments have.
    pub defaults: Defaults,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 1,
            replicate: false,
            processors: Vec::new(),
            seed: None,
            simulated_ns: None,
            counters: None,
            mechanism: Mechanism::default(),
            budget: DEFAULT_BUDGET,
            persistent: Persistent::default(),
            defaults: Defaults::default(),
        }
    }
}

/// Why a router could not be started or changed.
#[derive(Debug)]
pub enum StartError {
    /// Elements that could not be configured or initialised.
    Elements(Vec<ElementError>),
    /// The operating system refused something.
    Io(&'static str, io::Error),
    /// A worker does not answer.
    Gone,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Elements(errors) => {
                for (i, e) in errors.iter().enumerate() {
                    write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
                }
                Ok(())
            }
            StartError::Io(what, e) => write!(f, "{what}: {e}"),
            StartError::Gone => f.write_str("a worker does not answer"),
        }
    }
}

impl std::error::Error for StartError {}

struct Handle {
    commands: Sender<Command>,
    doorbell: Arc<Doorbell>,
    thread: Option<JoinHandle<()>>,
}

/// A router: its workers and what is known of its elements.
pub struct Router {
    library: Library,
    options: Options,
    handles: Vec<Handle>,
    events: Option<Receiver<Event>>,
    plan: Plan,
    index: Index,
    names: Vec<Arc<str>>,
    env: Env,
}

impl Router {
    /// Builds `plan` and starts its workers, paused. Call [`Router::resume`] to let packets flow.
    pub fn start(library: Library, plan: Plan, options: Options) -> Result<Router, StartError> {
        let workers = options.workers.max(1);
        let poll = || mio::Poll::new().map_err(|e| StartError::Io("cannot make an epoll instance", e));
        let polls: Vec<mio::Poll> = (0..workers).map(|_| poll()).collect::<Result<_, _>>()?;
        let doorbells = polls
            .iter()
            .map(|p| mio::Waker::new(p.registry(), DOORBELL).map(|w| Arc::new(Doorbell::new(w))))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| StartError::Io("cannot make a wake-up descriptor", e))?;
        let (event_sender, events) = mpsc::channel();
        let mut assembly = build(&library, &plan, &options, &doorbells)?;
        let mut handles = Vec::new();
        for ((core, poll), doorbell) in
            std::mem::take(&mut assembly.cores).into_iter().zip(polls).zip(doorbells)
        {
            let mut core = core;
            let devices =
                Devices::new(&mut core, &mut assembly.env.counters, options.mechanism, options.budget);
            let (commands, receiver) = mpsc::channel();
            let worker = Worker::new(core, devices, doorbell.clone(), poll, receiver, event_sender.clone());
            let processor = options.processors.get(handles.len() % options.processors.len().max(1)).copied();
            let thread = spawn(worker, processor)?;
            handles.push(Handle { commands, doorbell, thread: Some(thread) });
        }
        // Failing to write the directory leaves the counters without names, and the router as good as before.
        let _ = assembly.env.counters.publish();
        let Assembly { index, names, env, .. } = assembly;
        Ok(Router { library, options, handles, events: Some(events), plan, index, names, env })
    }

    /// Configures the elements of `plan` and throws them away: whether it could be built. Devices are not opened.
    /// Says what became of the fused elements, a line each.
    pub fn check(library: &Library, plan: &Plan, options: &Options) -> Result<Vec<String>, StartError> {
        let counters = Counters::new(capacity(plan, 1), None)
            .map_err(|e| StartError::Io("no memory for counters", e))?;
        let layout = Layout { library, doorbells: &[], replicate: false, clock: clock(options) };
        let mut env = Env::new(counters);
        env.defaults = options.defaults;
        crate::assemble::check(plan, &layout, env).map_err(StartError::Elements)
    }

    /// Lets packets flow.
    pub fn resume(&self) {
        self.tell(|| Command::Resume);
    }

    /// Stops the flow of packets; handlers still work.
    pub fn pause(&self) {
        self.tell(|| Command::Pause);
    }

    /// Waits for an event, at most `timeout`; `None` = nothing happened, or somebody took the events.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Event> {
        let events = self.events.as_ref()?;
        match timeout {
            Some(t) => events.recv_timeout(t).ok(),
            None => events.recv().ok(),
        }
    }

    /// Takes the stream of events, for somebody who waits for other things as well.
    pub fn take_events(&mut self) -> Option<Receiver<Event>> {
        self.events.take()
    }

    /// The names of all elements, in order.
    pub fn elements(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The library that the elements come from.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Warnings of the configuration.
    pub fn warnings(&self) -> &[String] {
        &self.env.warnings
    }

    /// All counters with their values; the workers do not notice.
    pub fn counters(&self) -> impl Iterator<Item = (&Line, u64)> {
        self.env.counters.read()
    }

    /// What interfaces and their sockets counted for the elements that use them; the lines' names begin with `port.`.
    /// The workers are asked, between two rounds.
    pub fn port_counters(&self) -> Vec<(Line, u64)> {
        let ask = |w: &mut Worker| -> Vec<(Line, u64)> {
            let worker = w.core.worker;
            let of = |n: &Node| {
                let counters = n.element.as_ref().map_or(Vec::new(), |e| e.port_counters());
                let line = |name| Line { worker, element: n.name.to_string(), name: format!("port.{name}") };
                counters.into_iter().map(|(name, value)| (line(name), value)).collect::<Vec<_>>()
            };
            w.core.nodes.iter().flat_map(of).collect()
        };
        (0..self.handles.len()).filter_map(|w| self.call(w, ask)).flatten().collect()
    }

    /// Packets that the workers hold: in queues, in rings between workers, between interrupt and forwarding.
    pub fn held(&self) -> usize {
        let held = |w: &mut Worker| {
            let elements = w.core.nodes.iter().filter_map(|n| n.element.as_ref());
            elements.map(|e| e.held()).sum::<usize>() + w.devices.held()
        };
        (0..self.handles.len()).filter_map(|w| self.call(w, held)).sum()
    }

    /// Starts measuring the time of each element, from zero, or stops.
    pub fn set_profiling(&self, on: bool) {
        for worker in 0..self.handles.len() {
            self.call(worker, move |w| w.core.profile = on.then(Vec::new));
        }
    }

    /// Nanoseconds that each element has taken by itself since profiling was switched on, over all workers.
    pub fn profile(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for worker in 0..self.handles.len() {
            let times = |w: &mut Worker| -> Vec<(String, u64)> {
                let profile = w.core.profile.iter().flatten();
                w.core.nodes.iter().zip(profile).map(|(n, ns)| (n.name.to_string(), *ns)).collect()
            };
            for (name, ns) in self.call(worker, times).unwrap_or_default() {
                *sums.entry(name).or_default() += ns;
            }
        }
        sums.into_iter().collect()
    }

    /// Reads handler `name` of `element`. When the graph is replicated, numbers are summed over the workers and
    /// other texts are those of the first.
    pub fn read(&self, element: &str, name: &str, arg: &str) -> Result<String, HandlerError> {
        let mut values = Vec::new();
        for place in self.places(element)? {
            let (name, arg) = (name.to_owned(), arg.to_owned());
            let value = self.call(place.worker, move |w| handler::read(&mut w.core, place.node, &name, &arg));
            values.push(value.ok_or(HandlerError::Gone)??);
        }
        Ok(sum(values))
    }

    /// Writes handler `name` of `element`, on every worker that has it.
    pub fn write(&self, element: &str, name: &str, value: &str) -> Result<(), HandlerError> {
        for place in self.places(element)? {
            let (name, value) = (name.to_owned(), value.to_owned());
            let done =
                self.call(place.worker, move |w| handler::write(&mut w.core, place.node, &name, &value));
            done.ok_or(HandlerError::Gone)??;
        }
        Ok(())
    }

    fn places(&self, element: &str) -> Result<Vec<Place>, HandlerError> {
        self.index.get(element).cloned().ok_or_else(|| HandlerError::NoElement(element.to_owned()))
    }

    /// Replaces the graph by `plan`. The new graph is built and initialised beside the running one; if that
    /// fails nothing changes. Then the workers stop between two batches, each new element takes the state of its
    /// predecessor, and the new graph runs. Packets that arrive meanwhile wait in the devices' rings.
    pub fn swap(&mut self, plan: Plan) -> Result<(), StartError> {
        let doorbells: Vec<_> = self.handles.iter().map(|h| h.doorbell.clone()).collect();
        let mut assembly = build(&self.library, &plan, &self.options, &doorbells)?;
        let mut new: Vec<Core> = std::mem::take(&mut assembly.cores);
        let mut old = Vec::new();
        for worker in 0..self.handles.len() {
            // While the worker waits in `park` its graph is here.
            old.push(self.park(worker).ok_or(StartError::Gone)?);
        }
        let mut cores: Vec<&mut Core> = old.iter_mut().map(|p| &mut p.core).collect();
        take_state(&mut cores, &mut new);
        for (parked, mut core) in old.into_iter().zip(new) {
            let counters = &mut assembly.env.counters;
            let devices = Devices::new(&mut core, counters, self.options.mechanism, self.options.budget);
            parked.unpark.send((core, devices)).map_err(|_| StartError::Gone)?;
        }
        let _ = assembly.env.counters.publish();
        let Assembly { index, names, env, .. } = assembly;
        (self.plan, self.index, self.names, self.env) = (plan, index, names, env);
        Ok(())
    }

    /// Takes the graph out of a worker, which then waits for another.
    fn park(&self, worker: usize) -> Option<Parked> {
        let (out, taken) = mpsc::channel();
        let (unpark, back) = mpsc::channel::<(Core, Devices)>();
        let handle = self.handles.get(worker)?;
        let exchange = move |w: &mut Worker| {
            w.devices.unregister(&w.poll);
            let looped = w.core.looped.clone();
            let empty = Core::new(w.core.worker, w.core.clock.clone(), looped, 0);
            let core = std::mem::replace(&mut w.core, empty);
            if out.send(core).is_err() {
                return;
            }
            if let Ok((core, devices)) = back.recv() {
                let stops = w.core.stops;
                (w.core, w.devices) = (core, devices);
                w.core.stops = stops;
                if let Err(e) = w.devices.register(&mut w.core, &w.poll) {
                    eprintln!("warning: a device cannot be waited for: {e}");
                }
            }
        };
        handle.commands.send(Command::Call(Box::new(exchange))).ok()?;
        handle.doorbell.wake();
        Some(Parked { core: taken.recv().ok()?, unpark })
    }

    /// Runs `f` on a worker between two rounds and returns its result.
    fn call<R: Send + 'static>(
        &self,
        worker: usize,
        f: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, receiver) = mpsc::channel();
        let handle = self.handles.get(worker)?;
        let command = Command::Call(Box::new(move |w| {
            // The asker may have gone; nobody misses the answer then.
            let _ = sender.send(f(w));
        }));
        handle.commands.send(command).ok()?;
        handle.doorbell.wake();
        receiver.recv().ok()
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for h in &self.handles {
            // A worker that has ended has nothing to be told.
            let _ = h.commands.send(command());
            h.doorbell.wake();
        }
    }
}

struct Parked {
    core: Core,
    unpark: Sender<(Core, Devices)>,
}

impl Drop for Router {
    fn drop(&mut self) {
        self.tell(|| Command::Exit);
        for h in &mut self.handles {
            if let Some(thread) = h.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

fn capacity(plan: &Plan, workers: usize) -> usize {
    COUNTERS.0.max(plan.elements.len() * workers * COUNTERS.1)
}

fn clock(options: &Options) -> Clock {
    options.simulated_ns.map_or_else(Clock::live, Clock::simulated)
}

fn build(
    library: &Library,
    plan: &Plan,
    options: &Options,
    doorbells: &[Arc<Doorbell>],
) -> Result<Assembly, StartError> {
    let counters = Counters::new(capacity(plan, doorbells.len()), options.counters.as_deref())
        .map_err(|e| StartError::Io("cannot make the counters' file", e))?;
    let mut env = Env::new(counters);
    env.persistent = options.persistent.clone();
    env.defaults = options.defaults;
    env.replicas = if options.replicate { doorbells.len() } else { 1 };
    if let Some(seed) = options.seed {
        env.seed = seed;
    }
    let layout = Layout { library, doorbells, replicate: options.replicate, clock: clock(options) };
    assemble(plan, &layout, env).map_err(StartError::Elements)
}

fn spawn(worker: Worker, processor: Option<usize>) -> Result<JoinHandle<()>, StartError> {
    let number = worker.core.worker;
    let events = worker.events.clone();
    let body = move || {
        if let Some(p) = processor
            && let Err(e) = crate::affinity::pin(p)
        {
            eprintln!("warning: worker {number} is not pinned to processor {p}: {e}");
        }
        if let Err(e) = worker.run() {
            eprintln!("worker {number}: {e}");
        }
        let _ = events.send(Event::Ended { worker: number });
    };
    std::thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(body)
        .map_err(|e| StartError::Io("cannot start a worker", e))
}

/// Lets each new element take the state of its predecessor: the one with the same swap key on the same worker,
/// else on any.
fn take_state(old: &mut [&mut Core], new: &mut [Core]) {
    let mut keys: HashMap<String, Vec<Place>> = HashMap::new();
    for (worker, core) in old.iter().enumerate() {
        for (node, n) in core.nodes.iter().enumerate() {
            let key = n.element.as_ref().and_then(|e| e.swap_key()).unwrap_or_else(|| n.name.to_string());
            keys.entry(key).or_default().push(Place { worker, node });
        }
    }
    for (worker, core) in new.iter_mut().enumerate() {
        for node in 0..core.nodes.len() {
            let n = &core.nodes[node];
            let key = n.element.as_ref().and_then(|e| e.swap_key()).unwrap_or_else(|| n.name.to_string());
            let Some(places) = keys.get(&key) else { continue };
            let Some(&place) = places.iter().find(|p| p.worker == worker).or(places.first()) else {
                continue;
            };
            if let Some(partner) = old[place.worker].nodes[place.node].element.as_mut() {
                core.activate(node, |e, cx| e.take_state(&mut **partner, cx));
                core.deliver();
            }
        }
    }
}

fn sum(values: Vec<String>) -> String {
    let numbers: Option<Vec<u64>> = values.iter().map(|v| v.trim().parse().ok()).collect();
    match numbers {
        Some(n) if n.len() > 1 => n.iter().sum::<u64>().to_string(),
        _ => values.into_iter().next().unwrap_or_default(),
    }
}
