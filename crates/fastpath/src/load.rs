//! Loading, and which element it was that the verifier refuses.

use crate::compile::{Compiled, Failure};
use crate::exit::Hook;
use causeway_bpf::{ErrorKind, Program, ProgramKind};

impl Compiled {
    /// Loads the program. The graph's maps must still be open.
    ///
    /// # Errors
    /// What [`Program::load`] says; of [`ErrorKind::Verifier`] the text names the element and gives the log's last lines.
    pub fn load(&self, hook: Hook, name: &str) -> Result<Program, Failure> {
        self.load_as(
            match hook {
                Hook::Xdp(_) => ProgramKind::Xdp,
                Hook::Tcx(_) => ProgramKind::SchedCls,
            },
            name,
        )
    }

    /// Loads the program as one of a kind that its hook can be: one of [`ProgramKind::XdpFragments`] must be led to only with
    /// frames that are in one piece.
    ///
    /// # Errors
    /// As [`Compiled::load`].
    pub fn load_as(&self, kind: ProgramKind, name: &str) -> Result<Program, Failure> {
        Program::load(kind, name, &self.code).map_err(|error| match error.kind() {
            ErrorKind::Verifier => self.blame(&error.to_string()),
            _ => error,
        })
    }

    /// What a refusal comes to, of which this is the text.
    fn blame(&self, log: &str) -> Failure {
        let said: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // The log's tail is a count of what was looked at; the reason is in front of it.
        let told = said.iter().rposition(|line| !line.starts_with("processed ")).unwrap_or(0);
        let reason = said.get(told).copied().unwrap_or("no reason is given");
        let at = said.iter().rev().find_map(|line| instruction(line));
        let element = at.and_then(|at| self.element_at(at)).unwrap_or("the program's start or end");
        let what = format!("load a compiled graph: the verifier refuses {element}");
        let last = said[told.saturating_sub(6)..=told.min(said.len().saturating_sub(1))].join("\n");
        Failure::new(ErrorKind::Verifier, format!("{what}: {reason}")).help(format!("it said last:\n{last}"))
    }

    /// The name of the element that an instruction belongs to.
    fn element_at(&self, at: usize) -> Option<&str> {
        let span = self.spans.iter().rev().find(|&&(start, _)| start <= at)?;
        self.names.get(span.1).map(String::as_str)
    }
}

/// The number of the instruction that a line of the log is about, as `12: (71) r0 = ...`.
fn instruction(line: &str) -> Option<usize> {
    let (number, rest) = line.split_once(": (")?;
    rest.contains(')').then(|| number.parse().ok()).flatten()
}
