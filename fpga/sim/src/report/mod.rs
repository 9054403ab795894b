//! Results of the experiments as one document (`causeway-results`), charts, and a page against the paper.

pub mod document;
pub mod experiments;
mod page;
pub mod plot;

use std::error::Error;
use std::fs;
use std::path::Path;

use causeway_results::{Document, csv};

use crate::scenario::many::run_all;
use crate::scenario::{Outcome, Scenario};
use document::{Curve, document};
use experiments::Experiment;

/// One experiment's outcomes, run by run.
pub struct Results {
    /// What was run.
    pub experiment: Experiment,
    /// What came out, in the same order.
    pub outcomes: Vec<Outcome>,
}

/// The document of a scenario's runs, which differ by their seeds alone.
pub fn of_scenario(command: &[&str], outcomes: &[Outcome]) -> Document {
    let name = outcomes.first().map_or(String::new(), |outcome| outcome.scenario.name.clone());
    let points = vec![(0.0, outcomes.iter().collect())];
    document(command, &[Curve { name, x: None, points, baseline: None }])
}

/// Runs everything and writes `fpga-nic.json`, `fpga-nic.csv`, `fpga-nic-*.svg` and `fpga-nic.md` into a directory.
///
/// # Errors
/// A file that cannot be written, or a run in which the scoreboard found a violation.
pub fn write_all(directory: &Path) -> Result<(), Box<dyn Error>> {
    write(directory, &run()?)
}

fn run() -> Result<Vec<Results>, Box<dyn Error>> {
    let experiments = experiments::all();
    let scenarios: Vec<Scenario> =
        experiments.iter().flat_map(|e| &e.runs).map(|run| run.scenario.clone()).collect();
    let outcomes =
        run_all(&scenarios, |o| eprintln!("{:32} {:.3} Gbit/s", o.scenario.name, o.delivered_bps() / 1e9))?;
    if let Some((outcome, error)) = outcomes.iter().find_map(|o| Some((o, o.errors.first()?))) {
        return Err(format!("{}: {error}", outcome.scenario.name).into());
    }
    let mut outcomes = outcomes.into_iter();
    let with_outcomes = experiments.into_iter().map(|experiment| {
        let outcomes = outcomes.by_ref().take(experiment.runs.len()).collect();
        Results { experiment, outcomes }
    });
    Ok(with_outcomes.collect())
}

fn write(directory: &Path, all: &[Results]) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let curves: Vec<Curve<'_>> =
        all.iter().flat_map(|results| results.experiment.curves(&results.outcomes)).collect();
    let document = document(&["make", "fpga-experiments"], &curves);
    fs::write(directory.join("fpga-nic.json"), document.to_json()?)?;
    fs::write(directory.join("fpga-nic.csv"), csv::table(&document))?;
    for results in all.iter().filter(|r| !r.experiment.plotted.is_empty()) {
        let path = directory.join(format!("fpga-nic-{}.svg", results.experiment.name));
        fs::write(path, plot::svg(&results.experiment, &document)?)?;
    }
    fs::write(directory.join("fpga-nic.md"), page::markdown(all))?;
    Ok(())
}
