//! What the command line offers, a module each.

pub mod bench;
pub mod capture;
pub mod check;
pub mod doctor;
pub mod elements;
pub mod graph;
pub mod handlers;
pub mod lab;
pub mod man;
pub mod metrics;
pub mod model;
pub mod new_element;
pub mod new_router;
pub mod ports;
mod probe;
pub mod run;
pub mod stats;
pub mod tools;
pub mod trace;
pub mod up;
pub mod upgrade;

use crate::cli::SourceArgs;
use crate::load::Source;
use crate::logger;
use std::fmt::Display;
use std::process::ExitCode;

/// The exit status of `up` when it does not start because the kernel does to packets what it would not, and of `doctor`
/// when it finds so.
const REFUSED: u8 = 3;

/// The configuration that the arguments name.
fn source(args: &SourceArgs) -> Source {
    match (&args.file, &args.expression) {
        (_, Some(text)) => Source::Text("config", text.clone()),
        (Some(file), None) if file.as_os_str() == "-" => Source::Stdin,
        (Some(file), None) => Source::File(file.clone()),
        // The parser of the command line lets only the two through.
        (None, None) => Source::Stdin,
    }
}

/// Answers with a complete error text.
fn fail(why: impl Display) -> ExitCode {
    logger::answer(&why.to_string());
    ExitCode::FAILURE
}
