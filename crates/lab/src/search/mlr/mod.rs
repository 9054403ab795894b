//! MLRsearch (RFC 9971): for each of several goals the load below which a device forwards well enough.
//!
//! How a load is judged is the RFC's, word for word, in [`Goal::classify`]; which load comes next is left to
//! implementations. This one takes the goals in order, and for each begins with short trials and wide bounds, so that long
//! trials are made near the answer only:
//!
//! * the first trial is at the highest load; what comes through is the first guess;
//! * while a bound is missing, it goes outwards from the other, by twice as much each time;
//! * between two bounds it takes their geometric mean, until they are as close as the goal asks for;
//! * a load is tried again until it is judged, and the bounds of a stage are the first guesses of the next.
//!
//! It ends: only loads between the bounds are tried, and each is judged after the goal's duration sum.

mod goal;
#[cfg(test)]
mod tests;

pub use goal::{Bound, Goal, NDR, PDR, Sums, Trial};

use super::{Outcome, Procedure, Request};
use std::collections::BTreeMap;

/// By how much a stage's trials are longer than those of the one before.
const GROWTH: u64 = 8;

/// What was found for a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalResult {
    /// The goal's name.
    pub goal: String,
    /// The smallest load that is too high, in frames a second; `None` if the highest is not.
    pub upper_fps: Option<u64>,
    /// The largest load below it that is not; if there is no upper bound, the highest load. `None` if even the lowest is too high.
    pub lower_fps: Option<u64>,
    /// The forwarding rate that can be expected at the lower bound.
    pub conditional_throughput_fps: Option<f64>,
}

impl GoalResult {
    /// Whether both bounds were found: a regular result in the sense of RFC 9971 §6.
    pub fn is_regular(&self) -> bool {
        self.upper_fps.is_some() && self.lower_fps.is_some()
    }
}

/// A search for several goals.
#[derive(Debug)]
pub struct Search {
    goals: Vec<Goal>,
    lowest: u64,
    highest: u64,
    /// Each goal's, from short trials to those that the goal asks for.
    stages: Vec<Goal>,
    at: usize,
    /// All trials by load in frames a second.
    trials: BTreeMap<u64, Vec<Trial>>,
    /// The load that is being tried, and for how many nanoseconds.
    current: Option<(u64, u64)>,
    /// Loads of this stage that were outside of its bounds.
    outwards: u32,
    /// Bounds of the stage before.
    guesses: Vec<u64>,
}

impl Search {
    /// Searches between two loads, in frames a second.
    pub fn new(goals: Vec<Goal>, lowest_fps: u64, highest_fps: u64) -> Search {
        let lowest = lowest_fps.max(1);
        Search {
            stages: goals.iter().flat_map(stages).collect(),
            goals,
            lowest,
            highest: highest_fps.max(lowest),
            at: 0,
            trials: BTreeMap::new(),
            current: None,
            outwards: 0,
            guesses: Vec::new(),
        }
    }

    /// What is known of each goal now; the answer, once there is no next trial.
    pub fn results(&self) -> Vec<GoalResult> {
        let result = |goal: &Goal| {
            let (lower, upper) = self.bounds(goal);
            let lower = lower.filter(|&load| upper.is_some() || load == self.highest);
            let rate = |load| goal.conditional_throughput(load as f64, self.trials_at(load));
            GoalResult {
                goal: goal.name.clone(),
                upper_fps: upper,
                lower_fps: lower,
                conditional_throughput_fps: lower.and_then(rate),
            }
        };
        self.goals.iter().map(result).collect()
    }

    fn trials_at(&self, load: u64) -> &[Trial] {
        self.trials.get(&load).map_or(&[], Vec::as_slice)
    }

    /// The largest lower bound below the smallest upper bound, and that (RFC 9971 §4.7: relevant bounds).
    fn bounds(&self, goal: &Goal) -> (Option<u64>, Option<u64>) {
        let is = |load: u64, bound| goal.classify(self.trials_at(load)) == bound;
        let upper = self.trials.keys().copied().find(|&load| is(load, Bound::Upper));
        let below = self.trials.keys().rev().copied().filter(|&load| upper.is_none_or(|upper| load < upper));
        let lower = below.into_iter().find(|&load| is(load, Bound::Lower));
        (lower, upper)
    }

    /// The load to try for a stage; `None` when its bounds are found.
    fn choose(&mut self, goal: &Goal) -> Option<u64> {
        let (lower, upper) = self.bounds(goal);
        let width = |load: u64| ((load as f64 * goal.width) as u64).max(1);
        let found = match (lower, upper) {
            (Some(lower), None) => lower == self.highest,
            (None, Some(upper)) => upper == self.lowest,
            (Some(lower), Some(upper)) => upper - lower <= width(upper),
            (None, None) => false,
        };
        if found {
            return None;
        }
        let open = |load: u64| {
            let between = lower.is_none_or(|lower| load > lower) && upper.is_none_or(|upper| load < upper);
            between && goal.classify(self.trials_at(load)) == Bound::Undecided
        };
        let current = self.current.map(|(load, _)| load);
        if let Some(load) = current.into_iter().chain(self.guesses.iter().copied()).find(|&load| open(load)) {
            return Some(load);
        }
        Some(match (lower, upper) {
            (None, None) => self.highest,
            (Some(lower), None) => {
                self.outwards += 1;
                lower.saturating_add(width(lower) << self.outwards.min(32)).min(self.highest)
            }
            (None, Some(upper)) => {
                self.outwards += 1;
                let step = width(upper) << (self.outwards.min(32) - 1);
                let guess = if self.outwards == 1 { self.forwarded(upper) } else { upper };
                guess.min(upper.saturating_sub(step)).max(self.lowest)
            }
            (Some(lower), Some(upper)) => {
                let middle = (lower as f64).sqrt() * (upper as f64).sqrt();
                (middle.round() as u64).clamp(lower + 1, upper - 1)
            }
        })
    }

    /// What came through of a load at most, in frames a second.
    fn forwarded(&self, load: u64) -> u64 {
        let least = self.trials_at(load).iter().map(|trial| trial.loss_ratio).fold(1.0, f64::min);
        (load as f64 * (1.0 - least)) as u64
    }

    /// What is found for one stage is where the next begins.
    fn guess(&mut self, goal: &Goal) {
        let (lower, upper) = self.bounds(goal);
        self.guesses = lower.into_iter().chain(upper).collect();
        (self.current, self.outwards) = (None, 0);
    }
}

impl Procedure for Search {
    fn next(&mut self) -> Option<Request> {
        // When all stages are done, trials of one goal may have changed what was found for another before.
        let stages: Vec<Goal> = self.stages.iter().skip(self.at).chain(&self.goals).cloned().collect();
        for stage in stages {
            if let Some(load) = self.choose(&stage) {
                self.current = Some((load, stage.final_duration_ns));
                return Some(Request::new(load as f64, stage.final_duration_ns));
            }
            self.guess(&stage);
            self.at = (self.at + 1).min(self.stages.len());
        }
        None
    }

    fn record(&mut self, outcome: &Outcome) {
        let Some((load, duration_ns)) = self.current else { return };
        // Time is what the search pays with, so a trial that took longer counts for more.
        let trial = Trial {
            duration_ns,
            effective_ns: outcome.effective_ns.max(1),
            loss_ratio: outcome.shortfall_ratio(),
        };
        self.trials.entry(load).or_default().push(trial);
    }

    fn remaining_ns(&self) -> u64 {
        let stages = self.stages.iter().enumerate().skip(self.at);
        let loads = |(i, stage): (usize, &Goal)| {
            // Later stages judge the two bounds of the one before.
            let loads = match self.bounds(stage) {
                (Some(lower), Some(upper)) if i == self.at => {
                    ((upper - lower) as f64 / (upper as f64 * stage.width)).log2().ceil().max(0.0)
                }
                _ if i == self.at => (1.0 / stage.width).log2().ceil(),
                _ => 2.0,
            };
            (loads * stage.duration_sum_ns.max(stage.final_duration_ns) as f64) as u64
        };
        stages.map(loads).sum()
    }
}

/// From short trials and wide bounds to those that the goal asks for. The last but one is as narrow as the last, so that
/// long trials only confirm.
fn stages(goal: &Goal) -> Vec<Goal> {
    let mut stages = vec![goal.clone()];
    let (mut duration_ns, mut width) = (goal.final_duration_ns / GROWTH, goal.width);
    while duration_ns >= goal.initial_duration_ns.max(1) {
        // One trial judges a load here.
        let stage =
            Goal { final_duration_ns: duration_ns, duration_sum_ns: duration_ns, width, ..goal.clone() };
        stages.insert(0, stage);
        (duration_ns, width) = (duration_ns / GROWTH, width * 2.0);
    }
    stages
}
