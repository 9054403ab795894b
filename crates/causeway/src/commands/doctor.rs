//! `causeway doctor`: what this machine lacks for `up`, and the command that mends it.
//!
//! What routers that were killed have left behind is undone first. Abilities of the kernel are found by trying them ([`machine`]), those of interfaces by asking ([`ports`]).

mod machine;
mod ports;

use crate::cli::DoctorArgs;
use crate::control;
use crate::output;
use anyhow::Result;
use std::fmt;
use std::process::ExitCode;

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// `up` works, but worse than it could, or something beside it would not.
    Warning,
    /// `up` needs it.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    state: State,
    /// What was found.
    what: String,
    /// The command that mends it; empty if there is nothing to mend.
    mend: String,
}

impl Check {
    fn good(what: impl Into<String>) -> Check {
        Check { state: State::Good, what: what.into(), mend: String::new() }
    }

    fn warning(what: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { state: State::Warning, what: what.into(), mend: mend.into() }
    }

    fn missing(what: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { state: State::Missing, what: what.into(), mend: mend.into() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Good => "good   ",
            State::Warning => "warning",
            State::Missing => "missing",
        };
        write!(f, "{state}  {}", self.what)?;
        if !self.mend.is_empty() {
            write!(f, "\n         to mend it: {}", self.mend)?;
        }
        Ok(())
    }
}

/// Undoes what routers that were killed have left behind, and prints all checks; the exit status is 1 if something is missing that `up` needs.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    control::tidy();
    let mut missing = 0;
    for check in machine::checks().into_iter().chain(ports::checks(&args.interfaces)) {
        output::print_line(&check)?;
        missing += usize::from(check.state == State::Missing);
    }
    if missing == 0 {
        output::print_line("`causeway up` has what it needs")?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print_line(format_args!("`causeway up` lacks {missing} of these"))?;
    Ok(ExitCode::FAILURE)
}
