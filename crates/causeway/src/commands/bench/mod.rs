//! `causeway bench`: what the router reaches on this machine, always beside a baseline of the same run.

mod elements;
mod memory;
mod report;
mod veth;

use crate::cli::BenchArgs;
use crate::output;
use anyhow::{Result, bail};
use report::Report;
use std::process::ExitCode;

/// One benchmark: measures and reports.
type Part = fn(&BenchArgs, &mut Report) -> Result<()>;

/// The benchmarks, by name.
const PARTS: &[(&str, Part)] = &[("memory", memory::run), ("veth", veth::rates), ("latency", veth::latency)];

/// Runs the benchmarks that were asked for, all by default.
pub fn bench(args: &BenchArgs) -> Result<ExitCode> {
    if let Some(unknown) = args.parts.iter().find(|p| PARTS.iter().all(|(name, _)| name != p)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        bail!("there is no benchmark '{unknown}'; they are {}", names.join(", "));
    }
    let mut report = Report::default();
    for (name, part) in PARTS {
        if args.parts.is_empty() || args.parts.iter().any(|p| p == name) {
            part(args, &mut report)?;
        }
    }
    report.write(&args.output)?;
    output::print_line(format_args!("\nresults in {}", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}
