//! The running router, seen from the control side: start, handlers ([`handlers`]), hot swap ([`swap`]), stop.
//!
//! Every request to workers has a time limit ([`ask`]), so that one that is stuck keeps nobody else from going on.

mod ask;
mod edges;
mod elsewhere;
mod handlers;
mod heirs;
mod measure;
mod options;
mod swap;

pub use edges::{Edge, MOST_TRACED};
pub use elsewhere::NotAdded;
pub use measure::Measure;
pub use options::{Options, StartError};

use crate::assemble::{Assembly, ControlSides, Layout, PortOf, assemble};
use crate::clock::Clock;
use crate::conf::Env;
use crate::core::Core;
use crate::counters::{Counters, Kept, Line};
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::driver::{Command, Driver, Event};
use crate::error::NoAnswer;
use crate::ir::Program;
use crate::library::Library;
use crate::measure::Unit;
use crate::node::Index;
use crate::others::{Errand, Others, Way};
use crate::plan::Plan;
use crate::pulse::Pulse;
use crate::said::ElementWarning;
use crate::spin::Spin;
use crate::waiter::Waiter;
use crate::watch::meter::Meter;
use crate::worker::Worker;
use ask::Limit;
use heirs::Keys;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Counters that a worker has room for: a floor, and so many for each element.
const COUNTERS: (usize, usize) = (4_096, 64);

/// How long the workers may take to end.
const END: Duration = Duration::from_secs(2);

struct Handle {
    commands: Sender<Command>,
    doorbell: Arc<Doorbell>,
    pulse: Pulse,
    thread: JoinHandle<()>,
    /// Says nothing; its other end is dropped when the thread has ended.
    ended: Receiver<Infallible>,
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
    control_sides: ControlSides,
    ports: Vec<PortOf>,
    env: Env,
    /// The worker of the element that decides whether the router stops ([`crate::Cx::manage`]).
    manager: Option<usize>,
    /// The last number that a trace gave.
    traced: u16,
    /// What counts the bytes on edges, while somebody wants that.
    meter: Option<Meter>,
    /// What elements have counted that are to come back ([`Router::keep_counts`]).
    kept: Kept,
    /// What the next hot swap finds the elements by.
    keys: Keys,
    stood_still: Vec<Duration>,
}

impl Router {
    /// Builds `plan` and starts its workers, paused. Call [`Router::resume`] to let packets flow.
    ///
    /// # Errors
    /// An element cannot be configured or initialised, or the system refuses what a worker needs.
    pub fn start(library: Library, plan: Plan, options: Options) -> Result<Router, StartError> {
        let workers = options.workers.max(1);
        let waiters: Vec<Waiter> = (0..workers)
            .map(|_| Waiter::new())
            .collect::<Result<_, _>>()
            .map_err(|e| StartError::Io("cannot make an epoll instance", e))?;
        let doorbells: Vec<_> = waiters.iter().map(|w| Arc::new(Doorbell::new(w.waker()))).collect();
        let (event_sender, events) = mpsc::channel();
        let mut assembly = build(&library, &plan, &options, &doorbells, clock(&options))?;
        let mut handles = Vec::new();
        let manager = manager(&assembly.cores);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel()).unzip();
        let ways = senders.iter().cloned().zip(doorbells.iter().cloned()).collect();
        let others = others(ways, &assembly.index);
        let keys = Keys::of(&mut assembly.cores);
        let cores = std::mem::take(&mut assembly.cores).into_iter();
        let means = waiters.into_iter().zip(doorbells).zip(senders.into_iter().zip(receivers));
        for (mut core, ((waiter, doorbell), (commands, receiver))) in cores.zip(means) {
            core.others = others.clone();
            let devices =
                Devices::new(&mut core, &mut assembly.env.counters, options.mechanism, options.budget);
            core.commit();
            let pulse = Pulse::default();
            let driver = Driver {
                worker: Worker::new(core, devices),
                pending: None,
                doorbell: doorbell.clone(),
                commands: receiver,
                events: event_sender.clone(),
                waiter,
                spin: Spin::new(options.spin),
                pulse: pulse.clone(),
                looking_ns: None,
                on_failure: options.on_failure.clone(),
                running: false,
            };
            let processor = options.processors.get(handles.len() % options.processors.len().max(1)).copied();
            let (thread, ended) = spawn(driver, processor)?;
            handles.push(Handle { commands, doorbell, pulse, thread, ended });
        }
        assembly.env.counters.commit();
        let Assembly { index, names, control_sides, ports, env, .. } = assembly;
        Ok(Router {
            library,
            options,
            handles,
            events: Some(events),
            plan,
            index,
            names,
            control_sides,
            ports,
            env,
            manager,
            traced: 0,
            meter: None,
            kept: Kept::default(),
            keys,
            stood_still: vec![Duration::ZERO; workers],
        })
    }

    /// Configures the elements of `plan` and throws them away: whether it could be built. Devices are not opened.
    /// Says what became of the fused elements, a line each.
    ///
    /// # Errors
    /// An element cannot be configured.
    pub fn check(library: &Library, plan: &Plan, options: &Options) -> Result<Vec<String>, StartError> {
        let (layout, env) = trial(library, plan, options)?;
        crate::assemble::check(plan, &layout, env).map_err(StartError::Elements)
    }

    /// The same, and what each element lowers to, by number.
    ///
    /// # Errors
    /// As [`Router::check`].
    pub fn lowered(
        library: &Library,
        plan: &Plan,
        options: &Options,
    ) -> Result<Vec<Option<Program>>, StartError> {
        let (layout, env) = trial(library, plan, options)?;
        crate::assemble::lowered(plan, &layout, env).map_err(StartError::Elements)
    }

    /// Lets packets flow.
    pub fn resume(&self) {
        self.tell(|| Command::Resume);
    }

    /// Stops the flow of packets; handlers still work.
    pub fn pause(&self) {
        self.tell(|| Command::Pause);
    }

    /// Whether an element decides if the router stops when it is asked to.
    pub fn is_managed(&self) -> bool {
        self.manager.is_some()
    }

    /// Asks the router to stop, as `times` elements would. [`Event::StopRequested`] follows, unless it has reasons to run on.
    ///
    /// # Errors
    /// The first worker does not answer.
    pub fn ask_to_stop(&self, times: i32) -> Result<(), NoAnswer> {
        let worker = self.manager.unwrap_or(0);
        self.call(worker, Limit::new(), move |w| w.core.adjust_run_count(times.saturating_neg()))
    }

    /// An element on `worker` asked for the router to stop: lets it run on if the element that decides lives on another
    /// worker and says so.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn runs_on(&self, worker: usize) -> Result<bool, NoAnswer> {
        let Some(manager) = self.manager.filter(|&manager| manager != worker) else { return Ok(false) };
        let runs_on = self.call(manager, Limit::new(), |w| {
            w.core.adjust_run_count(-1);
            w.core.run_count > 0 || w.core.runs_on()
        })?;
        if runs_on {
            self.send(worker, Command::Resume)?;
        }
        Ok(runs_on)
    }

    /// Waits for an event, at most `timeout`; `None` = nothing happened, or somebody took the events.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
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

    /// The workers' pulses, in order; they stay the same for as long as the router lives.
    pub fn pulses(&self) -> Vec<Pulse> {
        self.handles.iter().map(|h| h.pulse.clone()).collect()
    }

    /// Warnings of the configuration.
    pub fn warnings(&self) -> &[ElementWarning] {
        &self.env.warnings
    }

    /// All counters with their values; the workers do not notice.
    pub fn counters(&self) -> impl Iterator<Item = (&Line, u64)> {
        self.env.counters.read()
    }

    /// What interfaces and their sockets counted for the elements that use them; the lines' names begin with `port.`. The
    /// workers do not notice.
    pub fn port_counters(&self) -> Vec<(Line, u64)> {
        let of = |port: &PortOf| {
            let (worker, element) = (port.worker, port.element.to_string());
            let line = |name| Line {
                worker,
                element: element.clone(),
                name: format!("port.{name}"),
                unit: Unit::None,
            };
            (port.statistics)().into_iter().map(|(name, value)| (line(name), value)).collect::<Vec<_>>()
        };
        self.ports.iter().flat_map(of).collect()
    }

    /// Packets that the workers hold: in queues, in rings between workers, between interrupt and forwarding.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn held(&self) -> Result<usize, NoAnswer> {
        Ok(self.call_all(|w| w.held())?.into_iter().sum())
    }

    /// Starts measuring the time of each element, from zero, or stops.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn set_profiling(&self, on: bool) -> Result<(), NoAnswer> {
        self.call_all(move |w| w.core.profile = on.then(Vec::new))?;
        Ok(())
    }

    /// Nanoseconds that each element has taken by itself since profiling was switched on, over all workers.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn profile(&self) -> Result<Vec<(String, u64)>, NoAnswer> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let times = |w: &mut Worker| -> Vec<(String, u64)> {
            let profile = w.core.profile.iter().flatten();
            w.core.nodes.iter().zip(profile).map(|(n, ns)| (n.name.to_string(), *ns)).collect()
        };
        for (name, ns) in self.call_all(times)?.into_iter().flatten() {
            *sums.entry(name).or_default() += ns;
        }
        Ok(sums.into_iter().collect())
    }

    /// All numbers that elements count and measure, element by element in the order of the graph, with those of
    /// replicas made one. The workers are asked, between two steps.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn measures(&self) -> Result<Vec<Measure>, NoAnswer> {
        Ok(measure::combine(self.call_all(measure::of_worker)?))
    }

    /// Lets time go `speed` times as fast as the machine's from now on, for all workers. False, and nothing is changed, if it
    /// is simulated.
    ///
    /// # Errors
    /// If a worker does not answer; time may go at two speeds then.
    pub fn warp_time(&self, speed: f64) -> Result<bool, NoAnswer> {
        let limit = Limit::new();
        let Some(warp) = self.call(0, limit, move |w| w.core.clock.warp(speed))? else { return Ok(false) };
        let set = move |w: &mut Worker| w.core.clock.set_warp(warp);
        self.call_each(limit, (0..self.handles.len()).map(|worker| (worker, set)))?;
        Ok(true)
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for worker in 0..self.handles.len() {
            // A worker that has ended has nothing to be told.
            let _ = self.send(worker, command());
        }
    }

    /// Ends the workers and drops their elements, as dropping the router does. The error is a worker that does not end:
    /// it is left behind with its elements, whose devices the kernel closes when the process ends.
    ///
    /// # Errors
    /// A worker does not end.
    pub fn close(mut self) -> Result<(), NoAnswer> {
        self.end()
    }

    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn end(&mut self) -> Result<(), NoAnswer> {
        self.tell(|| Command::Exit);
        let limit = Limit::after(END);
        let mut stuck = None;
        for (worker, handle) in std::mem::take(&mut self.handles).into_iter().enumerate() {
            match handle.ended.recv_timeout(limit.left()) {
                Err(RecvTimeoutError::Timeout) => stuck = stuck.or(Some(NoAnswer(worker))),
                // A panic of the worker was told when it happened.
                Err(RecvTimeoutError::Disconnected) => drop(handle.thread.join()),
                Ok(never) => match never {},
            }
        }
        stuck.map_or(Ok(()), Err)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // Whoever wants to know of a worker that is stuck closes the router.
        let _ = self.end();
    }
}

/// The workers as each of them sees the others, if there are others.
fn others(ways: Vec<(Sender<Command>, Arc<Doorbell>)>, index: &Index) -> Option<Arc<Others>> {
    let way = |(commands, doorbell): (Sender<Command>, Arc<Doorbell>)| -> Way {
        Box::new(move |errand: Errand| {
            let command = Command::Call(Box::new(move |driver| errand(&mut driver.worker.core)));
            let sent = commands.send(command).is_ok();
            if sent {
                doorbell.wake();
            }
            sent
        })
    };
    (ways.len() > 1)
        .then(|| Arc::new(Others { ways: ways.into_iter().map(way).collect(), index: index.clone() }))
}

/// The worker of the element that manages the router.
fn manager(cores: &[Core]) -> Option<usize> {
    cores.iter().position(|core| core.manager.is_some())
}

fn capacity(plan: &Plan) -> usize {
    COUNTERS.0.max(plan.elements.len() * COUNTERS.1)
}

/// What elements are configured with that are thrown away again.
fn trial<'l>(library: &'l Library, plan: &Plan, options: &Options) -> Result<(Layout<'l>, Env), StartError> {
    let counters =
        Counters::new(1, capacity(plan), None).map_err(|e| StartError::Io("no memory for counters", e))?;
    let layout = Layout { library, doorbells: &[], replicate: false, clock: clock(options), globals: None };
    let mut env = Env::new(counters);
    env.defaults = options.defaults;
    Ok((layout, env))
}

pub(crate) fn clock(options: &Options) -> Clock {
    options.simulated_ns.map_or_else(Clock::live, Clock::simulated)
}

pub(crate) fn build(
    library: &Library,
    plan: &Plan,
    options: &Options,
    doorbells: &[Arc<Doorbell>],
    clock: Clock,
) -> Result<Assembly, StartError> {
    let counters = Counters::new(doorbells.len(), capacity(plan), options.counters.as_deref());
    let counters = counters.map_err(|e| match &options.counters {
        Some(file) => StartError::CountersFile(file.clone(), e),
        None => StartError::Io("no memory for counters", e),
    })?;
    let mut env = Env::new(counters);
    env.persistent = options.persistent.clone();
    env.defaults = options.defaults;
    env.replicas = if options.replicate { doorbells.len() } else { 1 };
    if let Some(seed) = options.seed {
        env.seed = seed;
    }
    let globals = options.globals.clone();
    let layout = Layout { library, doorbells, replicate: options.replicate, clock, globals };
    assemble(plan, &layout, env).map_err(StartError::Elements)
}

/// Starts a worker's thread. The second value is disconnected when it has ended.
fn spawn(
    driver: Driver,
    processor: Option<usize>,
) -> Result<(JoinHandle<()>, Receiver<Infallible>), StartError> {
    let number = driver.worker.core.worker;
    let (alive, ended) = mpsc::channel();
    let body = move || {
        let _alive: Sender<Infallible> = alive;
        if let Some(p) = processor
            && let Err(e) = crate::affinity::pin(p)
        {
            log::warn!("worker {number} is not pinned to processor {p}: {e}");
        }
        driver.run();
    };
    let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(body);
    Ok((thread.map_err(|e| StartError::Io("cannot start a worker", e))?, ended))
}
