//! The papers' figures: what is run for each, what the paper found, and how far the model is from it.

mod aff;
mod cvl;
mod drawn;
mod fpga;
mod lut;
mod osr;
mod report;
pub mod sensitivity;
mod shown;
#[cfg(test)]
mod tests;

pub use drawn::Drawn;
pub(crate) use fpga::commercial_cards;
pub(crate) use report::write;
pub use report::{document, keep, lines, ways, why};

use crate::machine::Machine;
use crate::router::Scenario;
use crate::run::{Effort, Outcome, run_all};
use crate::several::Affinity;
use crate::software::linux::Role;
use anyhow::{Result, anyhow};

/// A figure of a paper.
pub struct Figure {
    /// Its name, as that of the laboratory's experiment.
    pub name: &'static str,
    /// What is varied.
    pub about: &'static str,
    /// What the paper found.
    pub paper: &'static str,
    /// What the model misses, and why; empty if nothing.
    pub missed: &'static str,
    machine: fn() -> Result<Machine>,
    curves: fn() -> Vec<Curve>,
    drawn: &'static [Drawn],
    /// The numbers of the paper's text.
    pub numbers: &'static [Number],
}

/// What varies along a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Offered frames a second.
    Load,
    /// Bytes of a frame.
    Length,
    /// Cards or flows that are active.
    Active,
}

impl Along {
    /// As an axis: quantity and unit.
    const fn axis(self) -> [&'static str; 2] {
        match self {
            Along::Load => ["offered load", "frames/s"],
            Along::Length => ["frame length", "bytes"],
            Along::Active => ["active cards or flows", "of them"],
        }
    }
}

/// A curve of a figure: what is run, and at which place it stands.
pub struct Curve {
    /// What differs from the other curves, as the laboratory calls it.
    pub name: String,
    /// What varies.
    pub along: Along,
    /// The flows that are shown by themselves: the port that they come in by, and a name.
    pub flows: Vec<(usize, &'static str)>,
    /// What is run.
    pub points: Vec<(f64, Scenario)>,
}

impl Curve {
    /// What its frames are, as the laboratory calls it.
    fn frames(&self) -> &'static str {
        let mixed = |role| matches!(role, Role::Affinity(Affinity { mixed: true, .. }));
        let first = self.points.first();
        if first.is_some_and(|(_, scenario)| mixed(scenario.kernel.role)) { "imix" } else { "64 bytes" }
    }

    /// What the series of its rates is called behind its name.
    fn rest(&self) -> String {
        match self.along {
            Along::Load => format!("{}/forwarding rate", self.frames()),
            Along::Length | Along::Active => "saturation forwarding rate".to_owned(),
        }
    }
}

/// Where a number of the paper stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// In its text.
    Text,
    /// In its text, and the machine was calibrated on it: it is no result.
    Calibrated,
}

/// A number of the paper, and how the model has it.
pub struct Number {
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper says.
    pub paper: f64,
    /// Where.
    pub told: Told,
    /// Where it is shown: on the rates of this curve, or on the series of this name, at this place.
    pub shown: (&'static str, f64),
    of: fn(&Found) -> f64,
}

/// What was found for a figure.
pub struct Found {
    /// Each curve with its outcomes, in the order of the points.
    pub curves: Vec<(Curve, Vec<Outcome>)>,
}

impl Found {
    /// The outcomes of a curve.
    ///
    /// # Panics
    ///
    /// If there is no such curve.
    pub fn curve(&self, name: &str) -> &[Outcome] {
        &self.curve_of(name).1
    }

    fn curve_of(&self, name: &str) -> &(Curve, Vec<Outcome>) {
        let found = self.curves.iter().find(|(curve, _)| curve.name == name);
        found.unwrap_or_else(|| panic!("there is no curve '{name}'"))
    }

    /// The highest rate of a curve, thousands of packets a second.
    pub fn peak_kpps(&self, name: &str) -> f64 {
        self.curve(name).iter().map(Outcome::rate_fps).fold(0.0, f64::max) / 1e3
    }

    /// The rate at a curve's last point.
    pub fn last_kpps(&self, name: &str) -> f64 {
        self.curve(name).last().map_or(0.0, Outcome::rate_fps) / 1e3
    }

    /// The outcome nearest to a place.
    ///
    /// # Panics
    ///
    /// If there is no such curve, or it has no points.
    pub fn near(&self, name: &str, x: f64) -> &Outcome {
        let (curve, outcomes) = self.curve_of(name);
        let distance = |&n: &usize| (curve.points[n].0 - x).abs();
        let nearest = (0..outcomes.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        &outcomes[nearest.expect("a curve has points")]
    }
}

impl Figure {
    /// All figures, by paper.
    pub fn all() -> impl Iterator<Item = &'static Figure> {
        [osr::FIGURES, cvl::FIGURES, lut::FIGURES, aff::FIGURES, fpga::FIGURES].into_iter().flatten()
    }

    /// The figure of this name, in small or capital letters.
    ///
    /// # Errors
    ///
    /// If there is none, with those that there are.
    pub fn find(name: &str) -> Result<&'static Figure> {
        let names = || Figure::all().map(|one| one.name).collect::<Vec<_>>().join(", ");
        let found = Figure::all().find(|one| one.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| anyhow!("there is no figure '{name}'; there are {}", names()))
    }

    /// The paper's machine.
    ///
    /// # Errors
    ///
    /// None, or the program was built with a file that is wrong.
    pub fn machine(&self) -> Result<Machine> {
        (self.machine)()
    }

    /// Runs it on a machine. Same seed, same numbers.
    ///
    /// # Errors
    ///
    /// If the machine has too few ports.
    pub fn run(&self, machine: &Machine, seed: u64, effort: Effort, followed: Option<u64>) -> Result<Found> {
        let curves = (self.curves)();
        let scenarios: Vec<&Scenario> =
            curves.iter().flat_map(|curve| curve.points.iter().map(|(_, scenario)| scenario)).collect();
        let mut outcomes = run_all(machine, &scenarios, seed, effort, followed)?.into_iter();
        let found = curves.into_iter().map(|curve| {
            let of_curve = outcomes.by_ref().take(curve.points.len()).collect();
            (curve, of_curve)
        });
        Ok(Found { curves: found.collect() })
    }
}
