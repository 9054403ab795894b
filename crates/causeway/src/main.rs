//! A software router: Click graphs over AF_XDP, beside the kernel's own stack.
//!
//! The binary is thin: [`cli`] says what can be asked for, a module of [`commands`] does each of it, [`session`]
//! runs a router with its control socket and signals, and [`control`] is the protocol of that socket. [`driver`] has part of a graph run where packets arrive. What is said
//! goes through [`output`] and [`logger`]; what is counted through [`metrics`]. Called by the name `click` it takes Click's
//! options ([`click`]), by the names of Click's tools theirs ([`commands::tools`]).

#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

mod attendant;
mod cli;
mod click;
mod commands;
mod control;
mod drain;
mod driver;
mod explained;
mod handover;
mod lease;
mod load;
mod logger;
mod mask;
mod metrics;
mod output;
mod place;
mod placement;
mod ports;
mod privileges;
mod service_manager;
mod session;
mod signals;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let _log = logger::start();
    let args: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let called =
        args.first().and_then(|a| Path::new(a).file_name()).map(|n| n.to_string_lossy().into_owned());
    let outcome = match called.as_deref() {
        Some("click") => click::main(&args[1..]),
        Some(name) if name.starts_with("click-") => match commands::tools::main(name, &args) {
            Some(code) => Ok(code),
            None => commands::main(),
        },
        _ => commands::main(),
    };
    match outcome {
        Ok(code) => code,
        // Whoever read the output had enough.
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
