//! Runs the NIC's experiments and writes their results.
//!
//! `nic-experiments DIRECTORY` runs all and writes `fpga-nic.json`, the same as CSV, charts and `fpga-nic.md` there.
//! `nic-experiments --scenario FILE` runs the file's scenario once for each of its seeds and prints a table (CSV): each
//! quantity's median over the seeds with its 95 % interval; the module `scenario::file` says what can be written there.
//! `nic-experiments --one NAME [WAVES]` runs one and prints the same of it; with the directory WAVES, 100 microseconds of it
//! and the draining after, with waves of every card in `WAVES/cardN.vcd` (build with `--features waves`).

use std::path::Path;
use std::process::ExitCode;

use causeway_nic_sim::report::{self, experiments};
use causeway_nic_sim::scenario::file::ScenarioFile;
use causeway_nic_sim::scenario::{self, Outcome, Scenario, many};
use causeway_results::csv;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--scenario", file] => from_file(Path::new(file)),
        ["--one", name] => one(name, None),
        ["--one", name, waves] => one(name, Some(Path::new(waves))),
        [directory] if !directory.starts_with('-') => report::write_all(Path::new(directory)),
        _ => Err("usage: nic-experiments DIRECTORY | --scenario FILE | --one NAME [WAVES]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nic-experiments: {e}");
            ExitCode::FAILURE
        }
    }
}

fn from_file(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| said(&e))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let ScenarioFile { scenario, seeds } = ScenarioFile::parse(&name, &text).map_err(|e| said(&e))?;
    let scenarios: Vec<Scenario> = seeds.iter().map(|&seed| scenario.clone().with_seed(seed)).collect();
    let outcomes = many::run_all(&scenarios, |_| {})?;
    tell(&["nic-experiments", "--scenario", &path.to_string_lossy()], &outcomes)
}

/// Prints the table of some runs; an error if one of them was wrong.
fn tell(command: &[&str], outcomes: &[Outcome]) -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", csv::table(&report::of_scenario(command, outcomes)));
    match outcomes.iter().find_map(|outcome| outcome.errors.first()) {
        Some(error) => Err(error.as_str().into()),
        None => Ok(()),
    }
}

fn one(name: &str, waves: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
    let all: Vec<Scenario> =
        experiments::all().into_iter().flat_map(|e| e.runs).map(|run| run.scenario).collect();
    let names = || all.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(" ");
    let mut scenario =
        all.iter().find(|s| s.name == name).ok_or_else(|| format!("choose from: {}", names()))?.clone();
    if waves.is_some() {
        scenario = scenario.lasting(0, 100);
    }
    let outcome = scenario::run_with(&scenario, |testbed| {
        if let Some(folder) = waves {
            testbed.open_waves(folder);
        }
    })?;
    tell(&["nic-experiments", "--one", name], &[outcome])
}
