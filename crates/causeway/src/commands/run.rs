//! `causeway run`, and what it has in common with `up`.

use super::{fail, source};
use crate::cli::{Processors, RunArgs, RuntimeArgs};
use crate::control::open_run_dir;
use crate::drain::drain;
use crate::driver::Driver;
use crate::lease::{Lease, Objector, State, Voucher};
use crate::load::{self, Loaded, Style};
use crate::place::Place;
use crate::placement;
use crate::service_manager::ServiceManager;
use crate::session::{End, Session, Setup};
use anyhow::{Context, Result, bail};
use causeway_elements::devices::{FRONT, OpenPorts, PORTS, interfaces};
use causeway_elements::{LOSSES, Losses};
use causeway_engine::reception::Mechanism;
use causeway_engine::{Library, OnFailure, Options, Persistent, Plan, SpinTime, usable_processors};
use causeway_netio::afxdp::{self, Demand};
use causeway_netio::front::{Front, monotonic_ns};
use causeway_netio::interface::Interface;
use causeway_packet::pool;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};

/// The code of the objection to forwarding while the router ends.
const ENDING: &str = "ending";

/// Runs a configuration until it stops or is told to.
pub fn run(args: RunArgs) -> Result<ExitCode> {
    let library = causeway_elements::library();
    let source = source(&args.source);
    if let Err(why) = load::set_patterns(&args.patterns, &library) {
        return Ok(fail(why));
    }
    match load::load(&source, &library, &args.define, Style::Human) {
        Ok(loaded) if loaded.is_empty() => {
            load::warn_empty(&source);
            Ok(ExitCode::SUCCESS)
        }
        Ok(loaded) => {
            let (demand, config) = pool(&args.runtime, &interfaces(&loaded.plan))?;
            let mode = if args.no_recycling { pool::Mode::Allocator } else { config.mode };
            demand.init_pool(pool::Config { mode, ..config })?;
            let place = Place::take(&open_run_dir()?, None, &args.runtime)?;
            let (persistent, ports) = (Persistent::default(), Arc::new(OpenPorts::default()));
            // Before the graph: a later one may be the first with a port.
            let mut values = persistent.lock().unwrap_or_else(PoisonError::into_inner);
            values.insert(PORTS.to_owned(), ports.clone());
            drop(values);
            let driver = if args.driver { in_driver(&library, &ports, &persistent) } else { None };
            let start = Start {
                params: args.define,
                persistent: persistent.clone(),
                objector: None,
                driver,
                fixed: None,
            };
            run_loaded(loaded, &place, args.runtime, start, |session| {
                session.follow(&ports, |_, _| true);
                watch_transit(session, &persistent)
            })
        }
        Err(why) => Ok(fail(why)),
    }
}

/// What runs part of the graph in the driver, if that can be.
fn in_driver(library: &Library, ports: &Arc<OpenPorts>, persistent: &Persistent) -> Option<Driver> {
    match Driver::new(library.clone(), ports.clone(), persistent) {
        Ok(driver) => Some(driver),
        Err(error) => {
            log::warn!(code = "driver"; "nothing runs in the driver: {error:#}");
            None
        }
    }
}

/// How packets are received. Refuses what the command line says that no router can be started with.
///
/// # Errors
/// A processor that no worker can be pinned to, no mechanism of that name.
pub fn mechanism(args: &RuntimeArgs) -> Result<Mechanism> {
    if let Some(Processors::These(wanted)) = &args.processors {
        check_processors(wanted)?;
    }
    let Some(mechanism) = Mechanism::by_name(&args.reception, args.quota, 32, 100_000) else {
        bail!("'{}' is not a reception mechanism; they are {}", args.reception, Mechanism::NAMES.join(", "));
    };
    Ok(mechanism)
}

fn check_processors(wanted: &[usize]) -> Result<()> {
    let usable = usable_processors();
    if let Some(none) = wanted.iter().find(|p| !usable.contains(p)) {
        bail!("--processors: no worker can be pinned to {none}; the processors are {}", list(&usable));
    }
    Ok(())
}

fn list(processors: &[usize]) -> String {
    processors.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Makes the packet pool: of as many frames as ports on the interfaces called `ports` need, or as the command line asks
/// for.
pub fn init_pool(args: &RuntimeArgs, ports: &[String]) -> Result<()> {
    let (demand, config) = pool(args, ports)?;
    Ok(demand.init_pool(config)?)
}

/// The packet pool that [`init_pool`] would make.
pub fn pool(args: &RuntimeArgs, ports: &[String]) -> Result<(Demand, pool::Config)> {
    // What is wrong with an interface is said when it is opened.
    let ports: Vec<Interface> = ports.iter().filter_map(|name| Interface::open(name).ok()).collect();
    let demand = Demand::new(&ports, &afxdp::Options::default(), args.threads.into());
    let frames = args.frames.unwrap_or(demand.wanted);
    if frames < demand.least {
        bail!(
            "--frames {frames} is too few: {} worker(s) and the {} queue(s) of the ports need at least {}; \
             without --frames there are as many as they can use, {}",
            args.threads,
            demand.queues,
            demand.least,
            demand.wanted
        );
    }
    let config = pool::Config { frames, frame_size: args.frame_size, mode: pool::Mode::Recycle };
    Ok((demand, config))
}

/// What a router starts with besides its configuration and the command line.
pub struct Start {
    /// Definitions for the configuration.
    pub params: Vec<(String, String)>,
    /// What the elements find.
    pub persistent: Persistent,
    /// Who takes the right to forward away when a worker fails.
    pub objector: Option<Objector>,
    /// What runs part of the graph in the driver.
    pub driver: Option<Driver>,
    /// Why the graph may not be replaced by one of other elements or ways.
    pub fixed: Option<&'static str>,
}

/// Runs a configuration that was loaded; `started` is called once it runs, and the lease that it returns is kept until the end.
pub fn run_loaded(
    loaded: Loaded,
    place: &Place,
    args: RuntimeArgs,
    start: Start,
    started: impl FnOnce(&Session) -> Result<Option<Lease>>,
) -> Result<ExitCode> {
    let mechanism = mechanism(&args)?;
    let record = place.claim.record();
    let (socket, counters) = (record.socket, record.counters);
    let Start { params, persistent, objector, driver, fixed } = start;
    let processors = match args.processors {
        None => placement::choose(args.threads.into(), &record.name),
        Some(Processors::Any) => Vec::new(),
        Some(Processors::These(list)) => list,
    };
    if !processors.is_empty() {
        log::info!("workers on processors {}", list(&processors));
    }
    let losses = Arc::new(Losses::default());
    persistent.lock().unwrap_or_else(PoisonError::into_inner).insert(LOSSES.to_owned(), losses.clone());
    let failed = move |worker: usize| {
        if let Some(objector) = &objector {
            objector.object("worker-failed", format!("worker {worker} has failed"));
        }
    };
    let options = Options {
        workers: args.threads.into(),
        replicate: args.threads > 1,
        processors,
        counters: Some(counters.clone()),
        mechanism,
        budget: args.budget,
        spin: args.spin.map_or_else(SpinTime::default, |us| SpinTime::Fixed(u64::from(us) * 1_000)),
        persistent,
        on_failure: Some(OnFailure::new(failed)),
        ..Options::default()
    };
    let prepare: fn(Plan) -> Plan = if args.plain { |plan| plan } else { crate::load::optimise };
    let library = causeway_elements::library();
    let setup =
        Setup { library, params, options, reconfigurable: true, fixed, prepare, extra: Vec::new(), driver };
    let mut session = match Session::start(loaded, setup) {
        Ok(session) => session,
        Err(why) => return Ok(fail(why)),
    };
    place.serve(&session.desk())?;
    let lease = started(&session)?;
    let service = match &lease {
        Some(lease) => ServiceManager::tell(lease.state()),
        None => ServiceManager::tell(workers_state(&session)),
    }
    .context("cannot start a thread")?;
    log::info!("control socket {}, counters {}", socket.display(), counters.display());
    let end = session.run(|session| lease.iter().for_each(|lease| leave(session, lease)));
    drop(service);
    drop(lease);
    let closed = session.close();
    let failed = end? == End::Broken || closed.is_err() || losses.any();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// First the right to forward goes, then the workers: what is in the rings goes to the kernel meanwhile.
fn leave(session: &Session, lease: &Lease) {
    lease.objector().doubt(ENDING, "the router ends");
    drain(&session.router().pulses());
}

/// What comes of it when they do not: all other frames are the graph's, whatever becomes of it.
const NOTHING_IN_TRANSIT: &str = "METHOD TRANSIT leaves all packets to the kernel";

/// Workers vouch for packets in transit, if the graph takes such.
fn watch_transit(session: &Session, persistent: &Persistent) -> Result<Option<Lease>> {
    let values = persistent.lock().unwrap_or_else(PoisonError::into_inner);
    let front: Option<Arc<Front>> = values.get(FRONT).and_then(|value| value.clone().downcast().ok());
    drop(values);
    let Some(front) = front else { return Ok(None) };
    // Without it nothing would be forwarded, and nobody would know why.
    let lease = Lease::keep(front, NOTHING_IN_TRANSIT).context("cannot start a thread")?;
    require_workers(session, &lease);
    Ok(Some(lease))
}

/// Nothing is forwarded from now on unless all workers are well.
pub fn require_workers(session: &Session, lease: &Lease) {
    vouchers(session).for_each(|voucher| lease.require(voucher));
}

/// How a router is that has no right to forward because it needs none: it runs as long as its workers do.
fn workers_state(session: &Session) -> impl Fn() -> State + Send + use<> {
    let vouchers: Vec<Voucher> = vouchers(session).collect();
    move || State::of(&vouchers, monotonic_ns()).unwrap_or_else(|| State::well("running"))
}

fn vouchers(session: &Session) -> impl Iterator<Item = Voucher> {
    session.router().pulses().into_iter().enumerate().map(|(number, pulse)| {
        // It has started, though it may not have been given a processor yet.
        let started_ns = monotonic_ns();
        let word_ns = Arc::new(move || pulse.latest_ns().max(started_ns));
        Voucher { name: format!("worker {number}"), word_ns, term: Voucher::ALIVE }
    })
}
