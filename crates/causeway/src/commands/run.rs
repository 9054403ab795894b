//! `causeway run`.

use super::{fail, source};
use crate::cli::{RunArgs, RuntimeArgs};
use crate::control::{Listener, run_dir, serve};
use crate::load::{self, Loaded, Style};
use crate::session::{End, Session, Setup};
use anyhow::{Context, Result, bail};
use causeway_elements::devices::interfaces;
use causeway_engine::reception::Mechanism;
use causeway_engine::{Options, Persistent, Plan};
use causeway_netio::afxdp::{self, Demand};
use causeway_netio::interface::Interface;
use causeway_packet::pool;
use std::path::Path;
use std::process::ExitCode;

/// Runs a configuration until it stops or is told to.
pub fn run(args: RunArgs) -> Result<ExitCode> {
    let library = causeway_elements::library();
    match load::load(&source(&args.source), &library, &args.define, Style::Human) {
        Ok(loaded) => {
            init_pool(&args.runtime, &interfaces(&loaded.plan))?;
            run_loaded(loaded, args.runtime, args.define, Persistent::default())
        }
        Err(text) => Ok(fail(&text)),
    }
}

/// Makes the packet pool: of as many frames as ports on the interfaces called `ports` need, or as the command line asks
/// for.
pub fn init_pool(args: &RuntimeArgs, ports: &[String]) -> Result<()> {
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
    Ok(demand.init_pool(config)?)
}

/// Runs a configuration that was loaded, whose elements find `persistent`.
pub fn run_loaded(
    loaded: Loaded,
    args: RuntimeArgs,
    params: Vec<(String, String)>,
    persistent: Persistent,
) -> Result<ExitCode> {
    let Some(mechanism) = Mechanism::by_name(&args.reception, args.quota, 32, 100_000) else {
        bail!("'{}' is not a reception mechanism; they are {}", args.reception, Mechanism::NAMES.join(", "));
    };
    let dir = run_dir();
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let counters = dir.join(format!("{}.counters", args.name));
    let options = Options {
        workers: args.threads.into(),
        replicate: args.threads > 1,
        processors: args.processors,
        counters: Some(counters.clone()),
        mechanism,
        budget: args.budget,
        persistent,
        ..Options::default()
    };
    let prepare: fn(Plan) -> Plan = if args.plain { |plan| plan } else { crate::load::optimise };
    let library = causeway_elements::library();
    let setup = Setup { library, params, options, reconfigurable: true, prepare };
    let socket = args.socket.unwrap_or_else(|| dir.join(format!("{}.sock", args.name)));
    let listener = Listener::unix(&socket)
        .with_context(|| format!("cannot listen at {} (--socket names another place)", socket.display()))?;
    let mut session = match Session::start(loaded, setup) {
        Ok(session) => session,
        Err(text) => return Ok(fail(&text)),
    };
    serve(&listener, session.desk())?;
    say_where(&socket, &counters);
    let end = session.run()?;
    drop(session);
    // The counters outlive the router no longer than their last reader's mapping.
    let _ = std::fs::remove_file(&counters);
    Ok(if end == End::Broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn say_where(socket: &Path, counters: &Path) {
    eprintln!("control socket {}, counters {}", socket.display(), counters.display());
}
