//! What forwards in a test bed.

use super::graph::{Graph, click_router};
use super::{Bed, alone};
use crate::inside::Meter;
use crate::inside::reported::{self, Reported};
use crate::namespace::{Namespace, feed, ip_lines};
use crate::process::Process;
use crate::search::Event;
use crate::tester::{Alone, Control, Counting, Disturb};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a router says once its ports are open.
const READY: &str = "control socket";

/// A kind of device under test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// The kernel's own forwarding.
    Kernel {},
    /// This program's `up` between all ports.
    Causeway {
        /// More arguments.
        #[serde(default)]
        arguments: Vec<String>,
    },
    /// This program's `run`.
    Graph(Graph),
    /// Kohler's Click in user space: an IPv4 router over packet sockets, or a configuration of one's own.
    Click {
        /// The program.
        program: PathBuf,
        /// A configuration, for ports r0, r1 and so on.
        #[serde(default)]
        configuration: Option<PathBuf>,
    },
    /// The kernel, which only receives, by all ports but the last: it counts what comes and drops it.
    KernelReceives {
        /// Whether it looks into the frame before.
        #[serde(default)]
        looks: bool,
    },
    /// Any command that forwards between r0, r1 and so on until it is stopped.
    Command {
        /// Program and arguments.
        start: Vec<String>,
        /// What a line of its output says when it is ready; without it, it is when it has not ended after half a second.
        #[serde(default)]
        ready: Option<String>,
        /// Whether the kernel forwards too what the program leaves to it.
        #[serde(default)]
        beside_kernel: bool,
        /// Program and arguments that stop it; what still runs 10 s after that is terminated, as it is at once without this.
        #[serde(default)]
        stop: Option<Vec<String>>,
    },
    /// What stands between interfaces of this machine already.
    External {},
}

/// A device in its bed, or several in a row. They are stopped when it is dropped.
pub struct Device {
    kind: Kind,
    /// Where each is.
    places: Vec<String>,
    processes: Vec<Arc<Mutex<Process>>>,
    /// The ports by which it receives or transmits, if it does that alone.
    alone_ports: usize,
}

/// Routes that are added and taken away again when routes change.
const ROUTES: u32 = 1_000;

impl Device {
    /// Starts a device, which the bed outlives.
    ///
    /// # Errors
    /// If it cannot be started or does not become ready.
    pub fn start(kind: &Kind, bed: &Bed, processors: &[usize]) -> Result<Device> {
        ensure!(*kind != Kind::External {}, "what is between interfaces of this machine is in no test bed");
        // A program that gets copies of frames would be one of two that forward them.
        bed.kernel_forwards(kind.is_beside_kernel())?;
        bed.steer(if kind.is_kernel() { processors } else { &[] })?;
        let places = bed.devices.iter().map(|namespace| namespace.name.clone()).collect();
        let start = |at| kind.start(bed, at, processors).transpose();
        let processes = (0..bed.devices.len()).filter_map(start).collect::<Result<Vec<_>>>()?;
        let processes = processes.into_iter().map(|process| Arc::new(Mutex::new(process))).collect();
        Ok(Device { kind: kind.clone(), places, processes, alone_ports: alone::ports(bed) })
    }

    /// For trials of it.
    pub fn control(&self, interrupted: Arc<AtomicBool>) -> Control {
        let alone = self.kind.alone().zip(self.counting());
        Control { interrupted, alive: self.alive(), disturb: self.disturb(), alone }
    }

    /// Asks what it has received or transmitted alone.
    fn counting(&self) -> Option<Counting> {
        let (place, alone) = (self.places.first()?.clone(), self.kind.alone()?);
        let (ports, own) = (self.alone_ports, self.kind.is_own());
        Some(Box::new(move || match own {
            true => alone::counts(alone, &ask(&place, "counters")?, ports),
            false => alone::kernel_counts(&place, ports),
        }))
    }

    /// What it does if it forwards nothing.
    pub fn alone(&self) -> Option<Alone> {
        self.kind.alone()
    }

    /// Entries of its route cache, those in use and all; `None` if it has none.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn cache_entries(&self) -> Result<Option<[u64; 2]>> {
        let place = self.places.first().filter(|_| self.kind.has_cache());
        let number = |place: &str, handler| {
            let text = ask(place, handler)?;
            text.trim().parse::<u64>().with_context(|| format!("{handler} is '{}'", text.trim()))
        };
        let both = |place: &String| Ok([number(place, "route.active")?, number(place, "route.total")?]);
        place.map(both).transpose()
    }

    /// What fails once the device has died.
    pub fn alive(&self) -> Box<dyn FnMut() -> Result<()> + Send> {
        let processes = self.watched();
        Box::new(move || {
            let mut alive = processes.iter().filter_map(Weak::upgrade);
            alive.try_for_each(|process| lock(&process).check())
        })
    }

    /// Not kept alive by who watches.
    fn watched(&self) -> Vec<Weak<Mutex<Process>>> {
        self.processes.iter().map(Arc::downgrade).collect()
    }

    fn disturb(&self) -> Disturb {
        let (kind, places, processes) = (self.kind.clone(), self.places.clone(), self.watched());
        Box::new(move |event| {
            ensure!(kind.events().contains(&event), "a device of this kind has none");
            match event {
                Event::Reset => {
                    processes.iter().filter_map(Weak::upgrade).try_for_each(|process| lock(&process).reset())
                }
                Event::Routes => places.iter().try_for_each(|place| change_routes(place)),
                Event::Swap => places.iter().try_for_each(|place| swap_graph(place)),
            }
        })
    }

    /// What the device has counted itself, the first of several in a row; `None` if it cannot be asked.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn reported(&self) -> Result<Option<Reported>> {
        let place = self.places.first().filter(|_| self.kind.is_own());
        place.map(|place| reported::parse(&ask(place, "counters")?)).transpose()
    }

    /// What its processor time is, if that is known: of its processes, and of the kernel what the `processors` do that it
    /// has to itself.
    pub fn meter(&self, processors: &[usize]) -> Option<Meter> {
        match self.kind {
            Kind::Kernel {} | Kind::KernelReceives { .. } => {
                (!processors.is_empty()).then(|| Meter::Processors(processors.to_vec()))
            }
            _ => Some(Meter::Processes(self.ids())),
        }
    }

    /// The processes of the device: none if it is the kernel.
    pub fn ids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| lock(process).id()).collect()
    }
}

fn lock(process: &Mutex<Process>) -> MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Routes to networks that no test frame is for (RFC 2544 appendix C.2.2 leaves 10/8 to others).
fn change_routes(place: &str) -> Result<()> {
    let lines = |verb: &str| -> String {
        (0..ROUTES).map(|n| format!("route {verb} 10.{}.{}.0/24 dev r0\n", n / 256, n % 256)).collect()
    };
    ip_lines(place, &lines("add"))?;
    ip_lines(place, &lines("del"))
}

fn causeway(place: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", place]).arg(std::env::current_exe()?).args(arguments);
    Ok(command)
}

/// What a handler of the router in a namespace says.
fn ask(place: &str, handler: &str) -> Result<String> {
    let out = causeway(place, &["read", handler])?.output()?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn swap_graph(place: &str) -> Result<()> {
    feed(causeway(place, &["write", "hotconfig", "-"])?, &ask(place, "config")?)
}

fn list(processors: &[usize]) -> String {
    processors.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

impl Kind {
    /// Whether the kernel forwards what the device does not take.
    fn is_beside_kernel(&self) -> bool {
        match self {
            Kind::Kernel {} | Kind::Causeway { .. } => true,
            Kind::Graph(_) | Kind::Click { .. } | Kind::KernelReceives { .. } | Kind::External {} => false,
            Kind::Command { beside_kernel, .. } => *beside_kernel,
        }
    }

    /// Whether it is the kernel that takes packets.
    fn is_kernel(&self) -> bool {
        matches!(self, Kind::Kernel {} | Kind::KernelReceives { .. })
    }

    /// What it does if it forwards nothing.
    pub fn alone(&self) -> Option<Alone> {
        match self {
            Kind::Graph(graph) => graph.alone,
            Kind::KernelReceives { .. } => Some(Alone::Receive),
            _ => None,
        }
    }

    /// Whether it looks routes up in a cache first.
    fn has_cache(&self) -> bool {
        let Kind::Graph(Graph { configuration: None, lookup: Some(lookup), .. }) = self else { return false };
        lookup.starts_with("CachedIPLookup")
    }

    /// Whether it is this program.
    fn is_own(&self) -> bool {
        matches!(self, Kind::Causeway { .. } | Kind::Graph(_))
    }

    /// What can happen to such a device in a trial.
    pub fn events(&self) -> &'static [Event] {
        match self {
            _ if self.alone().is_some() => &[],
            Kind::Kernel {} => &[Event::Routes],
            Kind::Causeway { .. } => &[Event::Reset, Event::Routes, Event::Swap],
            // A reset would start threads without their priorities.
            Kind::Graph(graph) if graph.two_threads => &[Event::Swap],
            Kind::Graph(_) => &[Event::Reset, Event::Swap],
            Kind::Command { beside_kernel: true, .. } => &[Event::Reset, Event::Routes],
            Kind::Click { .. } | Kind::Command { .. } => &[Event::Reset],
            Kind::KernelReceives { .. } | Kind::External {} => &[],
        }
    }

    /// Starts the `at`-th in the row, if it is a process.
    fn start(&self, bed: &Bed, at: usize, processors: &[usize]) -> Result<Option<Process>> {
        let own = || -> Result<String> {
            let binary = std::env::current_exe().context("cannot find this program")?;
            Ok(binary.to_string_lossy().into_owned())
        };
        let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let runtime = |mut all: Vec<String>, more: &[String]| {
            all.extend(["--name".to_owned(), format!("lab-{}-{at}", std::process::id())]);
            if !processors.is_empty() && !more.iter().any(|word| word == "--processors") {
                all.extend(["--processors".to_owned(), list(processors)]);
            }
            all.extend(more.iter().cloned());
            all
        };
        let (mut input, mut ready) = (None, Some(READY));
        let (program, mut arguments) = match self {
            Kind::Kernel {} | Kind::External {} => return Ok(None),
            Kind::Causeway { arguments } => {
                let ports = (0..bed.device_ports()).map(|i| format!("r{i}"));
                let all = text(&["up", "--attach", "xdp"]).into_iter().chain(ports).collect();
                (own()?, runtime(all, arguments))
            }
            Kind::Graph(graph) => {
                let file = match &graph.configuration {
                    Some(file) => file.to_string_lossy().into_owned(),
                    // Many routes are longer than an argument may be.
                    None => {
                        input = Some(graph.text(bed, at)?);
                        "-".to_owned()
                    }
                };
                (own()?, runtime(text(&["run", &file]), &graph.more_arguments(processors)))
            }
            Kind::Click { program, configuration } => {
                let arguments = match configuration {
                    Some(file) => vec![file.to_string_lossy().into_owned()],
                    None => vec!["-e".to_owned(), click_router(bed, at)?],
                };
                ready = None;
                (program.to_string_lossy().into_owned(), arguments)
            }
            Kind::KernelReceives { looks } => {
                ready = Some(alone::READY);
                ("sh".to_owned(), text(&["-c", &alone::kernel(alone::ports(bed), *looks)]))
            }
            Kind::Command { start, ready: says, .. } => {
                ready = says.as_deref();
                let (program, arguments) = start.split_first().context("the command to start is empty")?;
                (program.clone(), arguments.to_vec())
            }
        };
        let namespace = &bed.devices[at];
        // Causeway pins its workers itself, and must not find its other threads on the same processor.
        let mut command = if processors.is_empty() || self.is_own() {
            namespace.command(&program)
        } else {
            let mut command = namespace.command("taskset");
            command.args(["--cpu-list", &list(processors)]);
            arguments.insert(0, program);
            command
        };
        command.args(arguments);
        let process = match input {
            Some(input) => Process::fed(command, ready, &input)?,
            None => Process::start_and_stop(command, ready, self.stop(&bed.devices[at])?)?,
        };
        if let Kind::Graph(graph) = self {
            graph.prioritise(process.id())?;
        }
        Ok(Some(process))
    }

    /// The command that stops it in its namespace, if it has one.
    fn stop(&self, namespace: &Namespace) -> Result<Option<Command>> {
        let Kind::Command { stop: Some(stop), .. } = self else { return Ok(None) };
        let (program, arguments) = stop.split_first().context("the command to stop is empty")?;
        let mut command = namespace.command(program);
        command.args(arguments);
        Ok(Some(command))
    }

    /// The kind of a name: kernel, causeway, driver, which is the same with its graph in the driver, graph, or click with the
    /// program of that name in the path.
    ///
    /// # Errors
    /// If there is no such kind.
    pub fn by_name(name: &str) -> Result<Kind> {
        Ok(match name {
            "kernel" => Kind::Kernel {},
            "causeway" => Kind::Causeway { arguments: Vec::new() },
            "driver" => Kind::Causeway { arguments: vec!["--driver".to_owned()] },
            "graph" => Kind::Graph(Graph::default()),
            "click" => Kind::Click { program: PathBuf::from("click"), configuration: None },
            _ => bail!(
                "there is no device '{name}'; there are kernel, causeway, driver, graph and click, and those of a description"
            ),
        })
    }

    /// What the device is, for the results.
    pub fn version(&self) -> String {
        let first_line = |program: &str, argument: &str| {
            let output = Command::new(program).arg(argument).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
        };
        match self {
            Kind::Kernel {} | Kind::KernelReceives { .. } => {
                std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
            }
            Kind::Causeway { .. } | Kind::Graph(_) => crate::report::version(),
            Kind::Click { program, .. } => {
                first_line(&program.to_string_lossy(), "--version").unwrap_or_default()
            }
            Kind::Command { start, .. } => start.join(" "),
            Kind::External {} => "what stands between the interfaces".to_owned(),
        }
    }
}
