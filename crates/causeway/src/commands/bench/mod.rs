//! `causeway bench`: what the router reaches on this machine, always beside a baseline of the same run.

mod elements;
mod graph;
mod lut;
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

/// The benchmarks, by name, and whether they run unasked.
const PARTS: &[(&str, Part, bool)] = &[
    ("memory", memory::run, true),
    ("veth", veth::rates, true),
    ("latency", veth::latency, true),
    ("lut", lut::run, false),
];

/// Runs the benchmarks that were asked for.
pub fn bench(args: &BenchArgs) -> Result<ExitCode> {
    if let Some(unknown) = args.parts.iter().find(|p| PARTS.iter().all(|(name, ..)| name != p)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
        bail!("there is no benchmark '{unknown}'; they are {}", names.join(", "));
    }
    let mut report = Report::new(args);
    for (name, part, unasked) in PARTS {
        if (args.parts.is_empty() && *unasked) || args.parts.iter().any(|p| p == name) {
            part(args, &mut report)?;
        }
    }
    report.write(&args.output)?;
    output::print_line(format_args!("\nresults in {}", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}
