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
use crate::lease::Lease;
use crate::load::{self, Source, Style};
use crate::output;
use anyhow::{Context, Result, bail};
use causeway_elements::devices::FRONT;
use causeway_elements::kernel::{FORWARDING, PortPolicy, ReversePath};
use causeway_engine::Persistent;
use causeway_kernel::{Watcher, WatcherConfig};
use causeway_netio::bpf::front::{Front, Take};
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
    run::init_pool(&args.runtime)?;
    // The first to need privileges, and so the one to say that they are missing.
    let front = Arc::new(Front::new(Take::TRANSIT)?);
    let indices = checks::ports(&ports)?;
    if !checks::findings(&ports, args.force)? {
        return Ok(ExitCode::FAILURE);
    }
    let (follower, lease, persistent) = follow(ports, indices, front)?;
    let ended = match load::load(&Source::Text("up", text), &causeway_elements::library(), &[], Style::Human)
    {
        Ok(loaded) => run::run_loaded(loaded, args.runtime, Vec::new(), persistent),
        Err(text) => Ok(fail(&text)),
    };
    drop(follower);
    drop(lease);
    ended
}

/// Fills the tables and keeps them in step with the kernel; what the elements find is the second value.
fn follow(
    ports: Vec<String>,
    indices: Vec<u32>,
    front: Arc<Front>,
) -> Result<(follow::Follower, Lease, Persistent)> {
    let what = "cannot follow the kernel's routes";
    let mut watcher = Watcher::open(WatcherConfig::new(indices.iter().copied())).context(what)?;
    let mut tables = tables::Tables::new(ports, indices, front.clone())?;
    follow::apply(&watcher.wait(Duration::from_secs(5)).context(what)?, &mut tables, &front);
    for port in 0..tables.forwarding().ports().len() {
        let open = PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: false };
        tables.forwarding().set_policy(port, open);
    }
    let (v4, v6) = tables.routes();
    log::info!("the kernel has {v4} IPv4 and {v6} IPv6 routes");
    let persistent = Persistent::default();
    let mut values = persistent.lock().unwrap_or_else(PoisonError::into_inner);
    values.insert(FRONT.to_owned(), front.clone() as Arc<dyn Any + Send + Sync>);
    values.insert(FORWARDING.to_owned(), tables.forwarding() as Arc<dyn Any + Send + Sync>);
    drop(values);
    let lease = Lease::keep(front.clone()).context("cannot start a thread")?;
    Ok((follow::Follower::start(watcher, tables, front, &lease)?, lease, persistent))
}
