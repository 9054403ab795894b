//! What the kernel does to forwarded packets that this router would not: looked at before the router starts.

use crate::commands::probe::Probe;
use anyhow::{Context, Result};
use causeway_kernel::{Finding, Severity, inspect};

/// Logs what is found. None if the router may not start: something refuses, and it is not forced.
pub fn findings(ports: &[&str], probe: &Probe, force: bool) -> Result<Option<Vec<Finding>>> {
    let findings =
        inspect(ports, probe).context("cannot ask the kernel what it does to forwarded packets")?;
    findings.iter().for_each(show);
    let refused = findings.iter().any(|f| f.severity == Severity::Refuse);
    match (refused, force) {
        (true, true) => log::warn!(code = "forced"; "forwarding all the same, as --force says"),
        (true, false) => log::error!(code = "refused"; "not started; --force starts all the same"),
        (false, _) => {}
    }
    Ok((!refused || force).then_some(findings))
}

/// Logs a finding.
pub fn show(finding: &Finding) {
    let text = format!("{}: {}; to mend it: {}", finding.place, finding.what, finding.mend);
    match finding.severity {
        Severity::Refuse => log::error!(code = finding.code(); "{text}"),
        Severity::Warn => log::warn!(code = finding.code(); "{text}"),
    }
}
