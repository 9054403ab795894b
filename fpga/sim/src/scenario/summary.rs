//! Several runs of a scenario that differ by their seeds: means, and how sure they are.

use std::sync::Mutex;
use std::thread;

use causeway_nic_driver::RuleError;

use super::{Outcome, Scenario, run};
use crate::json::Json;

/// Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 on; the last stands for all beyond.
const T_95: [f64; 31] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    1.960,
];

/// A mean with its interval of 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The interval is the mean plus and minus this; none of a single value.
    pub half_width: Option<f64>,
}

impl Interval {
    /// The interval of some values, which are taken as independent and normally distributed.
    pub fn new(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            T_95[(values.len() - 2).min(T_95.len() - 1)] * (squares / (count - 1.0) / count).sqrt()
        });
        Self { mean, half_width }
    }

    /// As in results.
    pub fn to_json(self) -> Json {
        let half_width = self.half_width.unwrap_or(f64::NAN);
        Json::object([("mean", self.mean.into()), ("half_width_95", half_width.into())])
    }
}

/// Runs scenarios, as many at a time as there are processors; `done` hears of each. The outcomes are in the scenarios'
/// order.
///
/// # Errors
/// A table that cannot be loaded.
pub fn run_all(scenarios: &[Scenario], done: impl Fn(&Outcome) + Sync) -> Result<Vec<Outcome>, RuleError> {
    let next = Mutex::new(scenarios.iter().enumerate());
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        // The lock is let go before the run.
        while let Some((place, scenario)) = next.lock().ok().and_then(|mut next| next.next()) {
            let outcome = run(scenario);
            outcome.iter().for_each(&done);
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push((place, outcome));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs a scenario once for each seed; the summary by class, then the runs.
///
/// # Errors
/// A table that cannot be loaded.
pub fn run_seeds(scenario: &Scenario, seeds: &[u64]) -> Result<(Json, Vec<Outcome>), RuleError> {
    let scenarios: Vec<Scenario> = seeds.iter().map(|&seed| scenario.clone().with_seed(seed)).collect();
    let outcomes = run_all(&scenarios, |_| {})?;
    let over = |value: &dyn Fn(&Outcome) -> f64| {
        Interval::new(&outcomes.iter().map(value).collect::<Vec<_>>()).to_json()
    };
    let class = |high: bool| {
        let latency = |which: usize| over(&|o| f64::from(o.latency_by_class_ns[usize::from(high)][which]));
        Json::object([
            ("class", if high { "high" } else { "low" }.into()),
            ("offered_pps", over(&|o| o.offered_pps(|key| key.2 == high))),
            ("delivered_pps", over(&|o| o.delivered_pps(|key| key.2 == high))),
            ("lost_frames", over(&|o| o.lost_of(|key| key.2 == high) as f64)),
            ("median_latency_ns", latency(1)),
            ("p99_latency_ns", latency(2)),
        ])
    };
    let summary = Json::object([
        ("scenario", scenario.name.as_str().into()),
        ("tag", "modelled".into()),
        ("seeds", seeds.to_vec().into()),
        ("delivered_bps", over(&Outcome::delivered_bps)),
        ("bus_busy", over(&Outcome::bus_busy)),
        ("classes", Json::List([true, false].map(class).into())),
        ("runs", Json::List(outcomes.iter().map(Outcome::to_json).collect())),
    ]);
    Ok((summary, outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        assert_eq!(Interval::new(&[3.0]), Interval { mean: 3.0, half_width: None });
        // Standard deviation 1, so 4.303 / sqrt(3).
        let three = Interval::new(&[1.0, 2.0, 3.0]);
        assert_eq!(three.mean, 2.0);
        assert!((three.half_width.unwrap() - 2.484).abs() < 0.001);
        let many = Interval::new(&(0..100).map(|n| f64::from(n % 2)).collect::<Vec<_>>());
        assert!((many.half_width.unwrap() - 1.96 * 0.050_25).abs() < 0.001);
    }
}
