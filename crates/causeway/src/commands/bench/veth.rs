//! Between network namespaces: the router against the kernel's forwarding and a bare XDP redirect.

use super::report::Report;
use crate::cli::BenchArgs;
use anyhow::Result;

/// Forwarding rates.
pub fn rates(_args: &BenchArgs, _report: &mut Report) -> Result<()> {
    Ok(())
}

/// Latency at idle and at half load.
pub fn latency(_args: &BenchArgs, _report: &mut Report) -> Result<()> {
    Ok(())
}
