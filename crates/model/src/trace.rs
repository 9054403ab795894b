//! One packet's way through a machine, with times.

use crate::event::Time;

/// What happened to the packet that is followed.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    number: Option<u64>,
    /// When, and what.
    pub steps: Vec<(Time, &'static str)>,
}

impl Trace {
    /// Follows the packet of this number, in the order of arrivals.
    pub fn of(number: Option<u64>) -> Trace {
        Trace { number, steps: Vec::new() }
    }

    /// Something happened to a packet.
    pub fn note(&mut self, number: u64, when_ps: Time, what: &'static str) {
        if self.number == Some(number) {
            self.steps.push((when_ps, what));
        }
    }

    /// A line for each step: the time since the first in nanoseconds, and what happened.
    pub fn lines(&self) -> Vec<String> {
        let first_ps = self.steps.first().map_or(0, |step| step.0);
        let line = |(when_ps, what): &(Time, &str)| format!("{:>9} ns  {what}", (when_ps - first_ps) / 1_000);
        self.steps.iter().map(line).collect()
    }
}
