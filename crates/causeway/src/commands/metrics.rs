//! `causeway metrics`: what a running router counts and measures, for monitoring systems.

use crate::cli::MetricsArgs;
use crate::control::Client;
use crate::metrics::Format;
use crate::output;
use anyhow::Result;
use std::process::ExitCode;

/// Prints it once.
pub fn metrics(args: &MetricsArgs) -> Result<ExitCode> {
    let format = if args.openmetrics { Format::OpenMetrics } else { Format::Prometheus };
    let mut client = Client::connect(args.socket.socket.as_deref())?;
    output::print(client.read("metrics", format.name())?)?;
    Ok(ExitCode::SUCCESS)
}
