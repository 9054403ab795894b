//! Results of the experiments as one versioned JSON file, plots, and a page against the paper.

pub mod experiments;
mod page;
mod plot;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::json::Json;
use crate::scenario::summary::run_all;
use crate::scenario::{Outcome, Scenario};

/// Version of the result format.
pub const FORMAT_VERSION: u32 = 1;

/// One experiment's outcomes, run by run.
pub struct Results {
    /// What was run.
    pub experiment: experiments::Experiment,
    /// What came out, in the same order.
    pub outcomes: Vec<Outcome>,
}

/// Runs everything and writes `fpga-nic.json`, `fpga-nic-*.svg` and `fpga-nic.md` into a directory.
///
/// # Errors
/// A file that cannot be written, or a run in which the scoreboard found a violation.
pub fn write_all(directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let experiments = experiments::all();
    let scenarios: Vec<Scenario> =
        experiments.iter().flat_map(|e| &e.runs).map(|run| run.scenario.clone()).collect();
    let outcomes =
        run_all(&scenarios, |o| eprintln!("{:32} {:.3} Gbit/s", o.scenario.name, o.delivered_bps() / 1e9))?;
    if let Some((outcome, error)) = outcomes.iter().find_map(|o| Some((o, o.errors.first()?))) {
        return Err(format!("{}: {error}", outcome.scenario.name).into());
    }
    let mut outcomes = outcomes.into_iter();
    let all: Vec<Results> = experiments
        .into_iter()
        .map(|experiment| {
            let outcomes = outcomes.by_ref().take(experiment.runs.len()).collect();
            Results { experiment, outcomes }
        })
        .collect();
    fs::write(directory.join("fpga-nic.json"), format!("{}\n", to_json(&all)))?;
    for results in all.iter().filter(|r| !r.experiment.x_axis.is_empty()) {
        let path = directory.join(format!("fpga-nic-{}.svg", results.experiment.name));
        fs::write(path, plot::svg(results))?;
    }
    fs::write(directory.join("fpga-nic.md"), page::markdown(&all))?;
    Ok(())
}

fn to_json(all: &[Results]) -> Json {
    let experiments = all.iter().map(|results| {
        let runs: Vec<Json> = results.outcomes.iter().map(Outcome::to_json).collect();
        Json::object([
            ("name", results.experiment.name.into()),
            ("title", results.experiment.title.into()),
            ("runs", Json::List(runs)),
        ])
    });
    Json::object([
        ("format", "causeway-nic-results".into()),
        ("version", FORMAT_VERSION.into()),
        ("tag", "modelled".into()),
        ("experiments", Json::List(experiments.collect())),
    ])
}
