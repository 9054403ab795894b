//! `causeway model`: the papers' figures from a model of their machines.

use crate::cli::ModelArgs;
use crate::output;
use anyhow::{Result, ensure};
use causeway_model::figures::{self, Figure};
use causeway_model::machine::Machine;
use causeway_model::run::Effort;
use std::process::ExitCode;

/// Does what was asked for.
pub fn model(args: &ModelArgs) -> Result<ExitCode> {
    let figures: Vec<&Figure> = match args.figure.as_deref() {
        None | Some("list") => return list(),
        Some("all") => Figure::all().collect(),
        Some(name) => vec![Figure::find(name)?],
    };
    // Said before the figures are reckoned, which takes a while.
    ensure!(args.out.is_dir(), "{0} is no folder to write into; `mkdir -p {0}` makes it", args.out.display());
    let given = args.machine.as_deref().map(Machine::read).transpose()?;
    for figure in figures {
        let machine = given.clone().map_or_else(|| figure.machine(), Ok)?;
        let found = figure.run(&machine, args.seed, Effort::FULL, args.packet)?;
        let mut lines = figures::lines(figure, &found);
        if args.why {
            lines.extend(figures::why(&found));
        }
        if args.packet.is_some() {
            lines.extend(figures::ways(&found));
        }
        lines.iter().try_for_each(output::print_line)?;
        let file = figures::keep(&args.out, figure, &found, &machine, args.seed)?;
        output::print_line(format_args!("  results in {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<ExitCode> {
    for one in Figure::all() {
        output::print_line(format_args!("{:<8} {}", one.name, one.about))?;
    }
    Ok(ExitCode::SUCCESS)
}
