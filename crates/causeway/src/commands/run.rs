//! `causeway run`.

use super::{fail, source};
use crate::cli::{RunArgs, RuntimeArgs};
use crate::control::{Claim, Listener, open_run_dir, serve};
use crate::load::{self, Loaded, Style};
use crate::session::{End, Session, Setup};
use anyhow::{Context, Result, bail};
use causeway_engine::reception::Mechanism;
use causeway_engine::{Options, Persistent, Plan};
use causeway_packet::pool;
use std::process::ExitCode;

/// Runs a configuration until it stops or is told to.
pub fn run(args: RunArgs) -> Result<ExitCode> {
    init_pool(&args.runtime)?;
    let library = causeway_elements::library();
    let source = source(&args.source);
    match load::load(&source, &library, &args.define, Style::Human) {
        Ok(loaded) if loaded.is_empty() => {
            load::warn_empty(&source);
            Ok(ExitCode::SUCCESS)
        }
        Ok(loaded) => run_loaded(loaded, args.runtime, args.define, Persistent::default()),
        Err(text) => Ok(fail(&text)),
    }
}

/// Makes the packet pool that the command line asks for.
pub fn init_pool(args: &RuntimeArgs) -> Result<()> {
    Ok(pool::init(pool::Config {
        frames: args.frames,
        frame_size: args.frame_size,
        mode: pool::Mode::Recycle,
    })?)
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
    let claim = Claim::new(&open_run_dir()?, args.name.as_deref(), args.socket.as_deref())?;
    let (socket, counters) = (claim.record.socket.clone(), claim.record.counters.clone());
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
    let listener = Listener::unix(&socket)
        .with_context(|| format!("cannot listen at {} (--socket names another place)", socket.display()))?;
    let mut session = match Session::start(loaded, setup) {
        Ok(session) => session,
        Err(text) => return Ok(fail(&text)),
    };
    serve(&listener, session.desk())?;
    log::info!("control socket {}, counters {}", socket.display(), counters.display());
    let end = session.run();
    let closed = session.close();
    Ok(if end? == End::Broken || closed.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
