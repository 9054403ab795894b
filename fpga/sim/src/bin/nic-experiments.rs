//! Runs the NIC's experiments and writes their results.
//!
//! `nic-experiments DIRECTORY` runs all and writes `fpga-nic.json`, plots and `fpga-nic.md` there.
//! `nic-experiments --one NAME [WAVES]` runs one and prints its result; with the directory WAVES, 100 microseconds of it
//! and the draining after, with waves of every card in `WAVES/cardN.vcd` (build with `--features waves`).

use std::path::Path;
use std::process::ExitCode;

use causeway_nic_sim::report::{self, experiments};
use causeway_nic_sim::scenario::{self, Scenario};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--one", name] => one(name, None),
        ["--one", name, waves] => one(name, Some(Path::new(waves))),
        [directory] if !directory.starts_with('-') => report::write_all(Path::new(directory)),
        _ => Err("usage: nic-experiments DIRECTORY | --one NAME [WAVES]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nic-experiments: {e}");
            ExitCode::FAILURE
        }
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
    println!("{}", outcome.to_json());
    Ok(())
}
