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
mod probe;
pub mod run;
pub mod stats;
pub mod tools;
pub mod trace;
pub mod up;
pub mod upgrade;

use crate::cli::{self, Command, EXIT_STATUS, NewCommand, SourceArgs};
use crate::load::Source;
use crate::{logger, output};
use anyhow::Result;
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

/// Does what the command line asks for.
pub fn main() -> Result<ExitCode> {
    let command = cli::parse();
    if matches!(command, Command::Run(_) | Command::Up(_)) {
        logger::set_style(logger::Style::Log);
    }
    match command {
        Command::Run(args) => run::run(args),
        Command::Up(args) => up::up(args),
        Command::Upgrade(args) => upgrade::upgrade(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Check(args) => check::check(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Flatten(args) => tools::flatten(&args),
        Command::Pretty(args) => tools::pretty(&args),
        Command::Undead(args) => tools::undead(&args),
        Command::Xform(args) => tools::xform(&args),
        Command::Combine(args) => tools::combine(&args),
        Command::Uncombine(args) => tools::uncombine(&args),
        Command::Align(args) => tools::align(&args),
        Command::Elements(args) => elements::elements(&args),
        Command::New { what: NewCommand::Router(args) } => new_router::new_router(&args),
        Command::NewElement(args) => new_element::new_element(&args),
        Command::Handlers(args) => handlers::list(&args),
        Command::Read(args) => handlers::read(&args),
        Command::Write(args) => handlers::write(&args),
        Command::Stats(args) => stats::stats(&args),
        Command::Capture(args) => capture::capture(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Metrics(args) => metrics::metrics(&args),
        Command::Bench(args) => bench::bench(args),
        Command::Lab(command) => lab::lab(command),
        Command::Model(args) => model::model(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut cli::whole(), "causeway", &mut script);
            output::print(String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => {
            let mut command = cli::whole();
            command.build();
            man::man(&command, &EXIT_STATUS)
        }
    }
}
