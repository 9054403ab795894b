//! A cluster's runs, from arguments to files.

use super::daemon::{Kind, Timers};
use super::records::Record;
use super::runs::{Course, Found};
use super::site::Plan;
use super::trial::{FLOWS, LENGTH, RATE_FPS};
use super::{Hashing, Run};
use crate::report::begun;
use crate::run::keep;
use anyhow::{Context, Result, ensure};
use causeway_results::Document;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Nodes that the configuration of the router in front has.
pub const MOST_NODES: usize = 4;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Task {
    /// Names of runs; all if empty.
    pub runs: Vec<String>,
    /// How many nodes there are.
    pub nodes: usize,
    /// Whose daemons run.
    pub daemon: String,
    /// How the front chooses nodes; one way after the other without.
    pub hashing: Option<String>,
    /// Where the document goes; a table and a page go beside it.
    pub output: PathBuf,
}

/// A cluster, and what happens to it.
type Part = (Plan, Vec<Run>);

impl Plan {
    /// What its results are called.
    pub fn name(self) -> String {
        match self.timers {
            Timers::Stated => self.hashing.name().to_owned(),
            Timers::Default => format!("{}, {}", self.hashing.name(), self.daemon.timers(self.timers)),
        }
    }
}

impl Task {
    pub(super) fn parts(&self) -> Result<Vec<Part>> {
        let named: Vec<Run> = self.runs.iter().map(|name| Run::by_name(name)).collect::<Result<_>>()?;
        let runs: Vec<Run> =
            Run::ALL.into_iter().filter(|run| named.is_empty() || named.contains(run)).collect();
        ensure!(
            (2..=MOST_NODES).contains(&self.nodes),
            "a cluster has 2 to {MOST_NODES} nodes, not {}",
            self.nodes
        );
        let daemon = Kind::by_name(&self.daemon)?;
        let plan = |hashing, timers| Plan { nodes: self.nodes, daemon, timers, hashing };
        let hashings = match &self.hashing {
            Some(name) => vec![Hashing::by_name(name)?],
            None => Hashing::ALL.to_vec(),
        };
        let part = |hashing: &Hashing| (plan(*hashing, Timers::Stated), runs.clone());
        let mut parts: Vec<Part> = hashings.iter().map(part).collect();
        // Where the defaults are other timers: only what they decide.
        if hashings.contains(&Hashing::Threshold)
            && daemon.timers(Timers::Default) != daemon.timers(Timers::Stated)
            && runs.contains(&Run::Silent)
        {
            parts.push((plan(Hashing::Threshold, Timers::Default), vec![Run::Silent]));
        }
        Ok(parts)
    }

    /// Runs it, and writes what was found, also when it ends early. `say` is given lines for people, as they come.
    ///
    /// # Errors
    /// What is wrong with the task or missing on this machine, what ended it, or that the files cannot be written.
    pub fn run(&self, interrupted: &Arc<AtomicBool>, say: &mut dyn FnMut(&str)) -> Result<()> {
        let parts = self.parts()?;
        ensure!(rustix::process::geteuid().is_root(), "a cluster of network namespaces needs root");
        parts.iter().try_for_each(|(plan, _)| plan.daemon.check())?;
        let mut document = Document::new(begun());
        self.settings(&parts, &mut document)?;
        let outcome = run(&parts, interrupted, &mut document, say);
        if let Err(error) = &outcome {
            document.run.settings.insert("ended early".to_owned(), format!("{error:#}"));
        }
        if document.series.is_empty() {
            return outcome;
        }
        keep(&self.output, "A cluster", &document)?;
        outcome.with_context(|| format!("ended early; what was found is in {}", self.output.display()))
    }

    /// What the numbers depend on.
    fn settings(&self, parts: &[Part], document: &mut Document) -> Result<()> {
        let daemon = Kind::by_name(&self.daemon)?;
        document.run.versions.insert(daemon.name().to_owned(), daemon.version());
        let timers: Vec<&str> = parts.iter().map(|(plan, _)| daemon.timers(plan.timers)).collect();
        for (name, value) in [
            ("nodes", self.nodes.to_string()),
            ("routing daemon, in front and on the nodes", daemon.name().to_owned()),
            ("timers", timers.join("; ")),
            ("traffic", format!("{FLOWS} flows of {LENGTH} bytes, {RATE_FPS} frames/s together")),
            ("in front", "the kernel's forwarding, its nodes chosen by addresses and ports".to_owned()),
            (
                "what the rate of a flood says",
                "all nodes share this machine's processors with the tester: it does not grow with them"
                    .to_owned(),
            ),
        ] {
            document.run.settings.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

fn run(
    parts: &[Part],
    interrupted: &Arc<AtomicBool>,
    document: &mut Document,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let seconds: u64 = parts.iter().map(estimate_s).sum();
    say(&format!(
        "about {}:{:02} minutes on a machine that has little else to do",
        seconds / 60,
        seconds % 60
    ));
    for (plan, runs) in parts {
        say(&format!("{} nodes, {}, {}", plan.nodes, plan.hashing.name(), plan.daemon.timers(plan.timers)));
        let mut headed = false;
        let mut found = |found: Found| match found {
            Found::Steady(steady) => {
                say(&steady.line());
                steady.put(document);
            }
            Found::Event(record) => {
                if !std::mem::replace(&mut headed, true) {
                    say(&Record::head());
                }
                say(&record.line());
                record.put(document);
            }
        };
        let mut course = Course::new(*plan, interrupted.clone(), &mut found)?;
        course.start(runs.contains(&Run::Steady))?;
        runs.iter().try_for_each(|run| course.run(*run))?;
    }
    Ok(())
}

/// How many seconds a part takes, by rough estimate.
fn estimate_s((plan, runs): &Part) -> u64 {
    let of = |run: &Run| match run {
        Run::Steady => 4 * plan.nodes,
        Run::Router => 4,
        Run::Silent => 8 * plan.nodes,
        Run::Cable => 8,
        Run::Drain => 6,
    };
    (6 + runs.iter().map(of).sum::<usize>()) as u64
}
