//! Several runs, as many at a time as there are processors.

use std::sync::Mutex;
use std::thread;

use causeway_nic_driver::RuleError;

use super::{Outcome, Scenario, run};

/// Runs scenarios; `done` hears of each. The outcomes are in the scenarios' order.
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
