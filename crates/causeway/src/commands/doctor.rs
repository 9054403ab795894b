//! `causeway doctor`: what this machine lacks for `up`, and the command that mends it.
//!
//! Abilities of the kernel are found by trying them ([`machine`]), those of interfaces by asking, as `up` does before it
//! starts ([`ports`]). What routers that were killed have left behind is undone. Each check has a code, which stays what it
//! is; those of the log are the same ([`report`]).

mod machine;
mod ports;
mod report;

use crate::cli::DoctorArgs;
use crate::control::{self, leftovers};
use crate::{output, privileges};
use anyhow::Result;
use report::{Check, Report};
use std::process::ExitCode;

/// Prints all checks; the exit status says whether `up` would start.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    let privileged = privileges::missing().is_empty();
    let mut checks = machine::checks(privileged);
    if privileged {
        checks.extend(undo());
    }
    let (of_ports, attached) = ports::checks(args, privileged);
    checks.extend(of_ports);
    let report = Report { checks, attached };
    match args.json {
        true => output::print_line(format_args!("{:#}", report.to_json()))?,
        false => output::print(&report)?,
    }
    Ok(ExitCode::from(report.verdict().exit_status()))
}

/// Undoes what routers that were killed have left behind.
fn undo() -> Vec<Check> {
    match control::tidy() {
        Ok(undone) => undone.into_iter().map(|line| Check::good(leftovers::CODE, "", line)).collect(),
        Err(error) => {
            let what = format!("what routers that were killed left behind cannot be undone: {error:#}");
            vec![Check::warning(leftovers::CODE, "", what, "")]
        }
    }
}
