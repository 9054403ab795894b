//! `causeway bench`: the laboratory's benches.

use crate::cli::BenchArgs;
use crate::output;
use anyhow::Result;
use causeway_lab::Settings;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the benchmarks that were asked for.
pub fn bench(args: BenchArgs) -> Result<ExitCode> {
    let settings = Settings {
        parts: args.parts,
        round: Duration::from_secs_f64(args.seconds.clamp(0.05, 60.0)),
        rounds: args.rounds.clamp(1, 100),
        processor: args.processor,
        click: args.click,
        output: args.output,
    };
    // The file will have what nobody reads along.
    causeway_lab::bench(&settings, |line| drop(output::print_line(line)))?;
    Ok(ExitCode::SUCCESS)
}
