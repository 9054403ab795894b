//! What the checks add up to, for people and for programs.

use crate::cli::Attach;
use crate::commands::REFUSED;
use serde_json::{Value, json};
use std::fmt;

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    /// `up` works, but worse than it could, or something beside it would not.
    Warning,
    /// The kernel does something to packets that the router would not: `up` is refused without --force.
    Refuses,
    /// `up` needs it.
    Missing,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Warning => "warning",
            State::Refuses => "refuses",
            State::Missing => "missing",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub state: State,
    /// What kind of thing, by a name that stays what it is.
    pub code: &'static str,
    /// Where: an interface, a table and chain; empty for the machine.
    pub place: String,
    /// What was found.
    pub what: String,
    /// The command that mends it; empty if there is nothing to mend.
    pub mend: String,
}

impl Check {
    pub fn good(code: &'static str, place: impl Into<String>, what: impl Into<String>) -> Check {
        Check::new(State::Good, code, place, what, "")
    }

    pub fn warning(
        code: &'static str,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Check {
        Check::new(State::Warning, code, place, what, mend)
    }

    pub fn missing(
        code: &'static str,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Check {
        Check::new(State::Missing, code, place, what, mend)
    }

    pub fn new(
        state: State,
        code: &'static str,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Check {
        Check { state, code, place: place.into(), what: what.into(), mend: mend.into() }
    }

    fn to_json(&self) -> Value {
        let Check { state, code, place, what, mend } = self;
        json!({ "state": state.name(), "code": code, "place": place, "what": what, "mend": mend })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Check { state, code, place, what, mend } = self;
        let between = if place.is_empty() { "" } else { ": " };
        write!(f, "{:7}  [{code}] {place}{between}{what}", state.name())?;
        if !mend.is_empty() {
            write!(f, "\n         to mend it: {mend}")?;
        }
        Ok(())
    }
}

/// Whether `up` would start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    Missing,
    Refused,
}

impl Verdict {
    /// As `up` itself would end.
    pub fn exit_status(self) -> u8 {
        match self {
            Verdict::Fine => 0,
            Verdict::Missing => 1,
            Verdict::Refused => REFUSED,
        }
    }
}

/// All that was looked at.
pub struct Report {
    pub checks: Vec<Check>,
    /// Where `up` would attach to each interface.
    pub attached: Vec<(String, Attach)>,
}

impl Report {
    pub fn verdict(&self) -> Verdict {
        let any = |state| self.checks.iter().any(|check| check.state == state);
        match (any(State::Missing), any(State::Refuses)) {
            (true, _) => Verdict::Missing,
            (false, true) => Verdict::Refused,
            (false, false) => Verdict::Fine,
        }
    }

    /// The codes of the checks that went so, each once.
    fn codes(&self, state: State) -> String {
        let mut codes: Vec<&str> = Vec::new();
        for check in self.checks.iter().filter(|check| check.state == state) {
            if !codes.contains(&check.code) {
                codes.push(check.code);
            }
        }
        codes.join(", ")
    }

    pub fn to_json(&self) -> Value {
        let verdict = self.verdict();
        let name = match verdict {
            Verdict::Fine => "fine",
            Verdict::Missing => "missing",
            Verdict::Refused => "refused",
        };
        let place = |attach: &Attach| if *attach == Attach::Xdp { "xdp" } else { "tcx" };
        let attached = self.attached.iter().map(|(port, attach)| (port.clone(), json!(place(attach))));
        json!({
            "verdict": name,
            "exit_status": verdict.exit_status(),
            "attach": Value::Object(attached.collect()),
            "checks": self.checks.iter().map(Check::to_json).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        match self.verdict() {
            Verdict::Fine => write!(f, "`causeway up` has what it needs")?,
            Verdict::Missing => {
                write!(f, "`causeway up` lacks: {}", self.codes(State::Missing))?;
                match self.codes(State::Refuses).as_str() {
                    "" => {}
                    codes => write!(f, "; is refused by: {codes}")?,
                }
            }
            Verdict::Refused => {
                write!(f, "`causeway up` is refused by: {}", self.codes(State::Refuses))?;
            }
        }
        match self.codes(State::Warning).as_str() {
            "" => writeln!(f),
            codes => writeln!(f, "; warnings: {codes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(states: &[State]) -> Report {
        let check = |&state: &State| Check::new(state, state.name(), "eth1", "is so", "do this");
        let attached = vec![("eth1".to_owned(), Attach::Xdp), ("veth0".to_owned(), Attach::Tcx)];
        Report { checks: states.iter().map(check).collect(), attached }
    }

    #[test]
    fn up_has_what_it_needs_only_if_nothing_is_missing_and_nothing_refuses() {
        use State::{Good, Missing, Refuses, Warning};
        let cases: [(&[State], u8, &str); 6] = [
            (&[], 0, "`causeway up` has what it needs"),
            (&[Good], 0, "`causeway up` has what it needs"),
            (&[Warning, Good, Warning], 0, "`causeway up` has what it needs; warnings: warning"),
            (&[Refuses, Warning], 3, "`causeway up` is refused by: refuses; warnings: warning"),
            (&[Missing, Missing], 1, "`causeway up` lacks: missing"),
            (&[Refuses, Missing], 1, "`causeway up` lacks: missing; is refused by: refuses"),
        ];
        for (states, status, last) in cases {
            let report = report(states);
            assert_eq!(report.verdict().exit_status(), status, "{states:?}");
            assert_eq!(report.to_string().lines().last(), Some(last), "{states:?}");
        }
    }

    #[test]
    fn programs_read_the_same_as_people() {
        let report = report(&[State::Refuses]);
        assert!(
            report.to_string().starts_with("refuses  [refuses] eth1: is so\n         to mend it: do this\n")
        );
        let check = json!({
            "state": "refuses", "code": "refuses", "place": "eth1", "what": "is so", "mend": "do this",
        });
        let attach = json!({ "eth1": "xdp", "veth0": "tcx" });
        let whole = json!({ "verdict": "refused", "exit_status": 3, "attach": attach, "checks": [check] });
        assert_eq!(report.to_json(), whole);
    }
}
