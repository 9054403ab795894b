//! `causeway up`: forwards between interfaces by the kernel's routes, beside the kernel.
//!
//! The graph is written from the interfaces ([`graph`]). Its tables follow the kernel's ([`tables`], [`follow`]);
//! what they are not sure of stays with the kernel, and so does everything when the router stops. [`checks`] looks
//! for what would keep the two from doing the same.

mod checks;
mod follow;
mod graph;
mod tables;

use super::{fail, run};
use crate::cli::UpArgs;
use crate::load::{self, Source, Style};
use crate::output;
use anyhow::{Context, Result, bail};
use causeway_elements::devices::LOCAL_ADDRESSES;
use causeway_elements::kernel::FORWARDING;
use causeway_engine::Persistent;
use causeway_kernel::{Watcher, WatcherConfig};
use causeway_netio::bpf::classify::LocalAddresses;
use std::any::Any;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Forwards until it is told to stop.
pub fn up(args: UpArgs) -> Result<ExitCode> {
    let ports = args.interfaces;
    if let Some(twice) = ports.iter().enumerate().find_map(|(i, p)| ports[..i].contains(p).then_some(p)) {
        bail!("{twice} is named twice; name each interface once");
    }
    let text = graph::text(&ports);
    if args.print {
        output::print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    run::init_pool(&args.runtime, &ports)?;
    // The first to need privileges, and so the one to say that they are missing.
    let local = Arc::new(LocalAddresses::new()?);
    let indices = checks::ports(&ports)?;
    if !checks::findings(&ports, args.force)? {
        return Ok(ExitCode::FAILURE);
    }
    let (follower, persistent) = follow(ports, indices, local)?;
    let ended = match load::load(&Source::Text("up", text), &causeway_elements::library(), &[], Style::Human)
    {
        Ok(loaded) => run::run_loaded(loaded, args.runtime, Vec::new(), persistent),
        Err(text) => Ok(fail(&text)),
    };
    drop(follower);
    ended
}

/// Fills the tables and keeps them in step with the kernel; what the elements find is the second value.
fn follow(
    ports: Vec<String>,
    indices: Vec<u32>,
    local: Arc<LocalAddresses>,
) -> Result<(follow::Follower, Persistent)> {
    let what = "cannot follow the kernel's routes";
    let mut watcher = Watcher::open(WatcherConfig::new(indices.iter().copied())).context(what)?;
    let mut tables = tables::Tables::new(ports, indices, local.clone())?;
    tables.apply(&watcher.wait(Duration::from_secs(5)).context(what)?);
    let (v4, v6) = tables.routes();
    eprintln!("the kernel has {v4} IPv4 and {v6} IPv6 routes");
    let persistent = Persistent::default();
    let mut values = persistent.lock().unwrap_or_else(PoisonError::into_inner);
    values.insert(LOCAL_ADDRESSES.to_owned(), local as Arc<dyn Any + Send + Sync>);
    values.insert(FORWARDING.to_owned(), tables.forwarding() as Arc<dyn Any + Send + Sync>);
    drop(values);
    Ok((follow::Follower::start(watcher, tables)?, persistent))
}
