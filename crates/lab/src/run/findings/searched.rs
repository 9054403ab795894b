//! What searches for loads found, and what could not be measured because they found nothing.

use super::super::Place;
use super::{Findings, LIMITED, axis};
use crate::search::mlr::GoalResult;
use crate::tester::SelfTest;
use causeway_results::html::{CONDITIONAL, NOT_MEASURED, UPPER};

impl Findings<'_> {
    /// Bounds of loads, and the forwarding rates that can be expected at them (RFC 9971: a regular result has both bounds).
    /// Where even the lowest load is too much, the load is none, and says so: a repetition without it would not be missed.
    pub(in crate::run) fn bounds(&mut self, place: &Place<'_>, results: &[GoalResult], test: &SelfTest) {
        for result in results {
            let (lower, note) = match (result.lower_fps, result.upper_fps) {
                (None, upper) => (0.0, nothing(upper)),
                (Some(lower), upper) => {
                    let limited = upper.is_none() || test.limits(lower as f64);
                    (lower as f64, if limited { LIMITED.to_owned() } else { String::new() })
                }
            };
            let x = || (axis("frame length", "bytes"), place.length);
            let goal = result.goal.as_str();
            self.add(&format!("{}/{goal}", place.device), ("load", "frames/s"), x(), lower, &note);
            self.compare(place.device, goal);
            let upper = result.upper_fps.map(|upper| upper as f64);
            for (what, value) in [(UPPER, upper), (CONDITIONAL, result.conditional_throughput_fps)] {
                if let Some(value) = value {
                    let rest = format!("{goal}, {what}");
                    self.add(&format!("{}/{rest}", place.device), (what, "frames/s"), x(), value, "");
                    self.compare(place.device, &rest);
                }
            }
        }
    }

    /// Something is not measured of a device, and why.
    pub(in crate::run) fn not_measured(&mut self, place: &Place<'_>, what: &str, why: &str) {
        let name = format!("{NOT_MEASURED}{what} of {} at {}", place.device, place.size);
        let number = place.repetition + 1;
        self.document
            .run
            .settings
            .entry(name)
            .and_modify(|told| *told += &format!(", {number}"))
            .or_insert_with(|| format!("{why}, in repetition {number}"));
    }

    /// All trials of a search, in order: load, loss ratio, whether the tester fell behind.
    pub(in crate::run) fn trace(&mut self, place: &Place<'_>, trials: &[(f64, f64, bool)]) {
        let name = format!("{}/{}/search {}", place.device, place.size, place.repetition + 1);
        for (n, &(load, loss, limited)) in trials.iter().enumerate() {
            let x = || (axis("trial", ""), (n + 1) as f64);
            let note = if limited { LIMITED } else { "" };
            self.add(&format!("{name}/load"), ("offered load", "frames/s"), x(), load, note);
            self.add(&format!("{name}/loss"), ("loss ratio", ""), x(), loss, note);
        }
    }
}

/// What is said of a goal that no load comes up to.
fn nothing(upper_fps: Option<u64>) -> String {
    let tried = upper_fps.map_or(String::new(), |upper| format!(", {upper} frames/s,"));
    format!("none: even the lowest load that was tried{tried} is too much")
}
