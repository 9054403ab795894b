//! `causeway up`: forwards between interfaces by the kernel's routes, beside the kernel.
//!
//! The graph is written from the interfaces ([`graph`]). Its tables follow the kernel's ([`tables`], [`mod@follow`]); what
//! they are not sure of stays with the kernel, and so does everything when the router stops. [`checks`] looks before
//! the start for what would keep the two from doing the same, [`inspection`] from then on; [`policy`] says what each
//! port may do, [`driver`] forwards before the graph what needs none, [`rest`] which had better be left alone, and [`attendant`] attaches those again that come back.
//! [`way`] says how it comes to its place: a free one, or that of a router that runs; [`started`] takes it.

mod checks;
mod classes;
mod driver;
mod follow;
mod graph;
mod inspection;
mod policy;
mod rest;
mod started;
mod tables;
mod way;

use super::probe::Probe;
use super::{REFUSED, fail, run};
use crate::attendant::Present;
use crate::cli::{Attach, UpArgs};
use crate::control::{self, Claim, Listener, leftovers};
use crate::lease::{LEFT_TO_KERNEL, Lease};
use crate::load::{self, Source, Style};
use crate::output;
use crate::place;
use crate::ports::{self, Port, Replaced};
use crate::privileges::{self, Service};
use anyhow::{Context, Result, bail};
use causeway_elements::devices::{EGRESSES, Egresses, FRONT, HANDLED, Handled, OpenPorts, PORTS};
use causeway_elements::kernel::lower::Begins;
use causeway_elements::kernel::{FORWARDING, PORTS_MAX, PUNTS, Punts};
use causeway_engine::Persistent;
use causeway_kernel::{Finding, Inspector, Pulse, Watcher, WatcherConfig};
use causeway_netio::front::{Bystander, Front, Place, Take};
use causeway_netio::interface::Interface;
use causeway_netio::{ErrorKind, live};
use classes::{Classes, Meter, Sources};
use follow::{Follow, Follower};
use policy::Policies;
use started::Starting;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;
use way::Way;

/// Why no other graph can be put into the place of that of `up --driver`.
const FIXED: &str = "what `up --driver` forwards in the driver would pass by other elements; `up` without --driver takes them, and \
    `run FILE --driver` puts what it can of it into the driver";

/// The code of the objection to forwarding before there are workers.
const STARTING: &str = "starting";

/// Queues for which live-frame transmission is prepared; drivers of devices with more share frames, and do without it.
const MOST_LIVE: u32 = 32;

/// Forwards until it is told to stop.
pub fn up(mut args: UpArgs) -> Result<ExitCode> {
    let classes = classes(&args)?;
    if args.print {
        return print(&args, &classes);
    }
    // Before anything is done: who hands over to this process waits for it.
    run::mechanism(&args.runtime)?;
    let missing = privileges::missing();
    if !missing.is_empty() {
        let what = format!("a router cannot start without {}", missing.join(", "));
        bail!(causeway_netio::Error::system(what, rustix::io::Errno::PERM.into()));
    }
    let ports = find_ports(&args)?;
    let taken: Vec<Port> = ports.iter().filter(|p| p.forwards).cloned().collect();
    classes.make_room(&mut args.runtime, &taken)?;
    let Some((probe, known)) = look(&args, &taken, &classes)? else {
        return Ok(ExitCode::from(REFUSED));
    };
    if args.dry_run {
        run::pool(&args.runtime, &names_at(&taken, Attach::Xdp))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rooted = as_root(&args, &taken, probe, known)?;
    let _bystander = stand_by(&ports)?;
    forward(args, classes, &taken, rooted)
}

/// Prints the graph.
fn print(args: &UpArgs, classes: &Classes) -> Result<ExitCode> {
    let missing = |name: &&String| Interface::open(name).is_err();
    for name in args.interfaces.iter().filter(missing) {
        log::warn!(code = "port-missing"; "{name}: there is no such interface here");
    }
    let is_at_tcx = |name: &&String| args.driver && ports::place(name, args.attach) == Attach::Tcx;
    let at_tcx: Vec<String> = args.interfaces.iter().filter(is_at_tcx).cloned().collect();
    output::print(graph::text(&args.interfaces, &args.interfaces, &at_tcx, classes))?;
    Ok(ExitCode::SUCCESS)
}

/// The interfaces that the command line names, as ports.
fn find_ports(args: &UpArgs) -> Result<Vec<Port>> {
    let router =
        ports::Router { attach: args.attach, in_driver: args.driver, frame_bytes: args.runtime.frame_size };
    let replaced = if args.take_over { Replaced::of(args.runtime.name.as_deref()) } else { Replaced::NONE };
    let ports = ports::find(&args.interfaces, router, &replaced)?;
    ports.iter().for_each(|port| log::info!(code = "port"; "{port}"));
    if let Some(text) = ports::idle(&ports) {
        log::info!(code = "port"; "{text}");
    }
    let forward = ports.iter().filter(|port| port.forwards).count();
    if forward > PORTS_MAX {
        bail!("{forward} interfaces are more than the {PORTS_MAX} that one router can have");
    }
    if args.driver && forward == 0 {
        log::info!(code = "driver"; "nothing is forwarded in the driver: no port forwards");
    }
    Ok(ports)
}

/// Looks for what would keep the router from doing as the kernel does; none if that is so, which is said.
fn look(args: &UpArgs, taken: &[Port], classes: &Classes) -> Result<Option<(Probe, Vec<Finding>)>> {
    let names: Vec<&str> = taken.iter().map(|p| p.name.as_str()).collect();
    let name = args.runtime.name.as_deref();
    let probe = if args.take_over { Probe::taking_over(taken, name) } else { Probe::default() };
    let Some(known) = checks::findings(&names, &probe, args.force)? else { return Ok(None) };
    if classes.are_two() {
        for name in names_at(taken, Attach::Tcx) {
            log::warn!(
                code = "classes";
                "{name}: nothing that comes in goes by --high, since what needs a queue is left to the kernel at tcx; \
                 --attach xdp has it go through the graph"
            );
        }
    }
    Ok(Some((probe, known)))
}

/// Takes the place, and forwards between `ports`.
fn forward(args: UpArgs, classes: Classes, ports: &[Port], rooted: Rooted) -> Result<ExitCode> {
    let way = Way::find(&rooted.dir, rooted.listener, &args, ports)?;
    let at = |port: &Port| if port.attach == Attach::Tcx { Place::Tcx } else { Place::Xdp };
    // A port that forwards begins with one of them.
    let begins = |port: &Port| port.begins.unwrap_or(Begins::Ethernet);
    let places = ports.iter().map(|port| (at(port), begins(port))).collect();
    let (check_every, bytes) = (args.check_every, classes.are_two());
    let in_driver = args.driver && !ports.is_empty();
    let how = in_driver.then_some(driver::Settings { places, check_every, bytes });
    let mut kept = follow(ports, how, way.claim(), rooted.punts, rooted.inspector)?;
    let meter = kept.meter(&classes, args.driver_share)?;
    let Kept { lease, front, unsaid, persistent, changes, follower, inspector, .. } = kept;
    let open_ports = Arc::new(OpenPorts::default());
    persistent.lock().unwrap_or_else(PoisonError::into_inner).insert(PORTS.to_owned(), open_ports.clone());
    let (place, new) = way.go(&front, args.runtime.metrics)?;
    let names: Vec<String> = ports.iter().map(|p| p.name.clone()).collect();
    let text = graph::text(&names, &names, &names_at(ports, Attach::Tcx), &classes);
    let fixed = in_driver.then_some(FIXED);
    let objector = Some(lease.objector());
    let start = run::Start { params: Vec::new(), persistent, objector, driver: None, fixed };
    let upgrades = OnceLock::new();
    let starting = Starting {
        lease,
        front,
        unsaid,
        place: &place,
        new,
        open_ports,
        ports,
        classes,
        changes,
        upgrades: &upgrades,
    };
    let ended = match load::load(&Source::Text("up", text), &causeway_elements::library(), &[], Style::Human)
    {
        Ok(loaded) => {
            run::run_loaded(loaded, &place, args.runtime, start, |session| starting.finish(session))
        }
        Err(why) => Ok(fail(why)),
    };
    // Who is handing over undoes nothing, or all.
    place::Place::end(place);
    drop((meter, inspector, follower));
    ended
}

/// The service classes that the command line asks for.
fn classes(args: &UpArgs) -> Result<Classes> {
    let masks = args.high.len();
    if masks > classes::MOST {
        bail!("--high: {masks} masks are more than the {} that there may be", classes::MOST);
    }
    if let Some((name, _)) = args.link_speed.iter().find(|(name, _)| !args.interfaces.contains(name)) {
        bail!("--link-speed: {name} is none of the interfaces");
    }
    Ok(Classes { high: args.high.clone(), speeds: args.link_speed.clone() })
}

/// What only root can make.
struct Rooted {
    /// The folder of the router's files.
    dir: PathBuf,
    /// Its control socket, if that has a path of its own.
    listener: Option<Listener>,
    /// Its ways into the kernel.
    punts: Punts,
    inspector: inspection::Prepared,
}

/// Does what only root can do, and is root no more.
fn as_root(args: &UpArgs, ports: &[Port], probe: Probe, known: Vec<Finding>) -> Result<Rooted> {
    run::init_pool(&args.runtime, &names_at(ports, Attach::Xdp))?;
    privileges::unlimit_memory();
    match control::tidy() {
        Ok(undone) => leftovers::log(&undone),
        Err(error) => {
            log::warn!("what routers that were killed left behind cannot be undone: {error:#}");
        }
    }
    let inspector = inspection::prepare(ports, probe, known, args.force)?;
    let punts = Punts::prepare(args.runtime.threads.into())?;
    // A hot swap has those of the old graph and of the new one.
    let queues: u32 = ports.iter().filter(|p| p.attach == Attach::Xdp).map(|p| p.queues).sum();
    match live::prepare(2 * queues.min(MOST_LIVE) as usize) {
        // It needs more than a router needs; each port says that it does without.
        Err(error) if error.kind() == ErrorKind::Privilege => {}
        prepared => prepared?,
    }

    let mut dir = control::open_run_dir()?;
    let mut listener = None;
    if let Some(service) = Service::find() {
        let socket = args.runtime.socket.as_deref();
        // Who takes over is handed the socket that is there.
        listener = socket.filter(|_| !args.take_over).map(place::listen).transpose()?;
        let become_it = |its_dir| service.become_it().map(|()| its_dir);
        match control::open_service_dir(service.uid).and_then(become_it) {
            Ok(its_dir) => {
                log::info!(code = "user"; "this router runs as user {}, and as root no more", service.name);
                dir = its_dir;
            }
            Err(error) => log::warn!(code = "user"; "this router stays root: {error:#}"),
        }
    }
    privileges::keep_needed()?;
    Ok(Rooted { dir, listener, punts, inspector })
}

/// What runs beside the graph.
struct Kept {
    lease: Lease,
    front: Arc<Front>,
    unsaid: Arc<follow::Unsaid>,
    /// What the elements find.
    persistent: Persistent,
    /// The ports that are to be attached, whenever they change.
    changes: Receiver<Vec<Present>>,
    follower: Follower,
    inspector: Inspector,
    /// What is forwarded in the driver, and how that is counted.
    in_driver: Option<InDriver>,
}

/// What forwards in the driver.
struct InDriver {
    names: Vec<String>,
    ways: Arc<driver::Ways>,
    forwarded: driver::Forwarded,
}

impl Kept {
    /// Keeps those ways out from the driver where a queue builds, if there are two classes. It makes use of `share` percent of
    /// the others.
    fn meter(&mut self, classes: &Classes, share: u8) -> Result<Option<Meter>> {
        let Some(InDriver { names, ways, forwarded }) = self.in_driver.take() else { return Ok(None) };
        if !classes.are_two() {
            return Ok(None);
        }
        let egresses = Arc::new(Egresses::new(names.clone()));
        let mut values = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(EGRESSES.to_owned(), egresses.clone());
        drop(values);
        let front = self.front.clone();
        let sources = Sources { names, front, ways, forwarded, egresses, classes: classes.clone(), share };
        Meter::start(sources, &self.lease).map(Some)
    }
}

/// Fills the tables and keeps them in step with the kernel. `in_driver` says how packets are forwarded in the driver, if they are.
fn follow(
    ports: &[Port],
    in_driver: Option<driver::Settings>,
    claim: &Arc<Claim>,
    punts: Punts,
    inspector: inspection::Prepared,
) -> Result<Kept> {
    let what = "cannot follow the kernel's routes";
    let names: Vec<String> = ports.iter().map(|p| p.name.clone()).collect();
    let indices: Vec<u32> = ports.iter().map(|p| p.index).collect();
    let front =
        if in_driver.is_some() { Front::with_graphs(Take::NOTHING) } else { Front::new(Take::NOTHING) };
    let front = Arc::new(front?);
    if let Some(number) = front.number_at_tcx() {
        // Nobody else sets it.
        let _ = inspector.own.set(number);
    }
    let programs = (front.number_at_xdp(), front.number_at_tcx());
    claim.tell_programs(programs).context("the record of this router cannot be written")?;
    let lease = Lease::keep(front.clone(), LEFT_TO_KERNEL).context("cannot start a thread")?;
    // Others vouch before the workers do, and it must not be had without them.
    lease.objector().doubt(STARTING, "the router starts");
    let tables = driver::tables_of((&names, &indices), &front, in_driver, driver::Features::probe)?;
    let forwarding = tables.forwarding();
    let (marks, record, pulse) = (forwarding.clone(), claim.clone(), Pulse::new());
    let (forwarded, marked) = (tables.forwarded(), tables.marks());
    let in_driver = tables.forwarded().zip(tables.ways()).map(|(forwarded, ways)| InDriver {
        names: names.clone(),
        ways,
        forwarded,
    });
    let config = WatcherConfig {
        on_doubt: Arc::new(follow::object_in_doubt(lease.objector())),
        pulse: pulse.clone(),
        was_used: Box::new(move |id| {
            let in_driver = marked.as_ref().is_some_and(|marked| marked.take(id.0 as u16));
            marks.take_mark(id.0 as u16) || in_driver
        }),
        on_managed: Box::new(move |list| follow::record_managed(&record, list)),
        // Until then nobody would know what to undo.
        manage: claim.is_own(),
        ..WatcherConfig::new(indices.iter().copied())
    };
    let mut watcher = Watcher::open(config).context(what)?;
    let first = watcher.wait(Duration::from_secs(5)).context(what)?;
    let begins: Vec<Option<Begins>> = ports.iter().map(|port| port.begins).collect();
    let policies = Arc::new(Policies::new(front.clone(), forwarding.clone(), &begins));
    let unsaid = Arc::new(follow::Unsaid::default());
    let obey = (policies.clone(), forwarding.clone());
    let inspector = inspection::watch(inspector, obey, unsaid.clone(), &lease)?;
    let (attendant, changes) = channel();
    let present = indices.into_iter().map(Some).collect();
    let (front_side, kept_front, told) = (front.clone(), front.clone(), unsaid.clone());
    let (objector, stop) = (lease.objector(), Arc::default());
    let mut follow =
        Follow { watcher, pulse, tables, objector, front, policies, unsaid, names, present, attendant, stop };
    follow.apply(&first);
    let (v4, v6) = follow.tables.routes();
    log::info!("the kernel has {v4} IPv4 and {v6} IPv6 routes");
    let handled = forwarded.map(|forwarded| {
        log::info!(code = "driver"; "packets in transit are forwarded in the driver");
        Handled::new(follow.names.clone(), move |from, to| forwarded.packets(from, to))
    });
    let follower = follow.start(&lease)?;
    let persistent = Persistent::default();
    let mut values = persistent.lock().unwrap_or_else(PoisonError::into_inner);
    values.insert(FRONT.to_owned(), front_side);
    values.insert(FORWARDING.to_owned(), forwarding);
    values.insert(PUNTS.to_owned(), Arc::new(punts));
    if let Some(handled) = handled {
        values.insert(HANDLED.to_owned(), Arc::new(handled));
    }
    drop(values);
    Ok(Kept { lease, front: kept_front, unsaid: told, persistent, changes, follower, inspector, in_driver })
}

/// Names of the ports that are at a place.
fn names_at(ports: &[Port], attach: Attach) -> Vec<String> {
    ports.iter().filter(|port| port.attach == attach).map(|port| port.name.clone()).collect()
}

/// Stands at the ports that are left to the kernel.
fn stand_by(ports: &[Port]) -> Result<Option<Bystander>> {
    let left: Vec<&Port> = ports.iter().filter(|p| !p.forwards).collect();
    if left.is_empty() {
        return Ok(None);
    }
    let mut bystander = Bystander::new()?;
    for port in left {
        bystander.stand_at(&port.name, port.index)?;
    }
    Ok(Some(bystander))
}
