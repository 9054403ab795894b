//! What a search is for, and how the trials at one load are judged (RFC 9971, appendices A and B).

const NS_PER_S: u64 = 1_000_000_000;
/// Name of the goal that bursts and recovery go by.
pub const NDR: &str = "NDR";
/// Name of the goal that delay and what happens to a device go by.
pub const PDR: &str = "PDR";

/// A search goal (RFC 9971 §4.5).
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// What it is called in results.
    pub name: String,
    /// Trials of this duration in nanoseconds, or longer, are full-length.
    pub final_duration_ns: u64,
    /// After full-length trials of so many nanoseconds together a load is judged.
    pub duration_sum_ns: u64,
    /// A trial that loses a larger part of its frames is a high-loss trial.
    pub loss_ratio: f64,
    /// High-loss trials may take this part of the time at a lower bound; below 1.
    pub exceed_ratio: f64,
    /// How far apart the bounds may be, as a part of the upper one.
    pub width: f64,
    /// The shortest trials of the search, in nanoseconds.
    pub initial_duration_ns: u64,
}

impl Goal {
    /// Throughput of RFC 2544: no loss in 60 s.
    pub fn rfc2544() -> Goal {
        Goal {
            name: "RFC 2544 throughput".to_owned(),
            final_duration_ns: 60 * NS_PER_S,
            duration_sum_ns: 60 * NS_PER_S,
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            width: 0.005,
            initial_duration_ns: NS_PER_S,
        }
    }

    /// As ETSI GS NFV-TST 009 has it: no loss in one of two trials of 60 s.
    pub fn tst009() -> Goal {
        let name = "TST009".to_owned();
        Goal { name, duration_sum_ns: 120 * NS_PER_S, exceed_ratio: 0.5, ..Goal::rfc2544() }
    }

    /// The non-drop rate of FD.io's CSIT: no loss in half of 21 trials of one second.
    pub fn ndr() -> Goal {
        Goal {
            name: NDR.to_owned(),
            final_duration_ns: NS_PER_S,
            duration_sum_ns: 21 * NS_PER_S,
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            width: 0.005,
            initial_duration_ns: NS_PER_S,
        }
    }

    /// The partial-drop rate of FD.io's CSIT: as the non-drop rate, with a loss of half a percent.
    pub fn pdr() -> Goal {
        Goal { name: PDR.to_owned(), loss_ratio: 0.005, ..Goal::ndr() }
    }

    /// The same with trials of this duration in nanoseconds, as many as before.
    #[must_use]
    pub fn shortened(self, duration_ns: u64) -> Goal {
        let trials = (self.duration_sum_ns / self.final_duration_ns).max(1);
        Goal {
            final_duration_ns: duration_ns,
            duration_sum_ns: trials * duration_ns,
            initial_duration_ns: self.initial_duration_ns.min(duration_ns),
            ..self
        }
    }
}

/// A trial at some load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Its duration, as it was asked for, in nanoseconds.
    pub duration_ns: u64,
    /// What it counts for in sums of time, in nanoseconds.
    pub effective_ns: u64,
    /// The part of the frames that was lost.
    pub loss_ratio: f64,
}

/// What a load is to a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Too high.
    Upper,
    /// Not too high.
    Lower,
    /// Not known yet.
    Undecided,
}

/// The quantities of RFC 9971, appendix A, in seconds, by their names there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Full-length high-loss sum.
    pub full_high_s: f64,
    /// Full-length low-loss sum.
    pub full_low_s: f64,
    /// Short high-loss sum.
    pub short_high_s: f64,
    /// Short low-loss sum.
    pub short_low_s: f64,
    /// What short low-loss trials make up for.
    pub balancing_s: f64,
    /// Effective high-loss sum.
    pub effective_high_s: f64,
    /// Effective full sum.
    pub effective_full_s: f64,
    /// Effective whole sum.
    pub effective_whole_s: f64,
    /// Pessimistic high-loss sum: as if all that is missing were lost.
    pub pessimistic_high_s: f64,
}

impl Sums {
    /// The part of high-loss trials, if all that are missing are of low loss.
    pub fn optimistic_exceed_ratio(&self) -> f64 {
        self.effective_high_s / self.effective_whole_s
    }

    /// The part of high-loss trials, if all that are missing are of high loss.
    pub fn pessimistic_exceed_ratio(&self) -> f64 {
        self.pessimistic_high_s / self.effective_whole_s
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

impl Goal {
    /// The sums over all trials at one load.
    pub fn sums(&self, trials: &[Trial]) -> Sums {
        let mut sums = Sums::default();
        for trial in trials {
            let full = trial.duration_ns >= self.final_duration_ns;
            let sum = match (full, trial.loss_ratio > self.loss_ratio) {
                (true, true) => &mut sums.full_high_s,
                (true, false) => &mut sums.full_low_s,
                (false, true) => &mut sums.short_high_s,
                (false, false) => &mut sums.short_low_s,
            };
            *sum += seconds(trial.effective_ns);
        }
        sums.balancing_s = sums.short_low_s * self.exceed_ratio / (1.0 - self.exceed_ratio);
        sums.effective_high_s = sums.full_high_s + (sums.short_high_s - sums.balancing_s).max(0.0);
        sums.effective_full_s = sums.effective_high_s + sums.full_low_s;
        sums.effective_whole_s = sums.effective_full_s.max(seconds(self.duration_sum_ns));
        sums.pessimistic_high_s = sums.effective_whole_s - sums.full_low_s;
        sums
    }

    /// Judges a load by all trials at it (RFC 9971, appendix A).
    pub fn classify(&self, trials: &[Trial]) -> Bound {
        let sums = self.sums(trials);
        let tolerated_s = sums.effective_whole_s * self.exceed_ratio;
        match (sums.effective_high_s <= tolerated_s, sums.pessimistic_high_s <= tolerated_s) {
            (true, true) => Bound::Lower,
            (false, false) => Bound::Upper,
            _ => Bound::Undecided,
        }
    }

    /// The forwarding rate that can be expected at a load, in its unit (RFC 9971, appendix B); `None` without full-length trials.
    pub fn conditional_throughput(&self, load: f64, trials: &[Trial]) -> Option<f64> {
        let mut full: Vec<&Trial> =
            trials.iter().filter(|t| t.duration_ns >= self.final_duration_ns).collect();
        full.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        let full_s: f64 = full.iter().map(|trial| seconds(trial.effective_ns)).sum();
        let mut remaining_s = full_s.max(seconds(self.duration_sum_ns)) * (1.0 - self.exceed_ratio);
        let mut loss_ratio = full.first()?.loss_ratio;
        for trial in full {
            if remaining_s <= 0.0 {
                return Some(load * (1.0 - loss_ratio));
            }
            loss_ratio = trial.loss_ratio;
            remaining_s -= seconds(trial.effective_ns);
        }
        // Of the trials that were not made nothing is known but that they may lose all.
        Some(if remaining_s > 0.0 { 0.0 } else { load * (1.0 - loss_ratio) })
    }
}
