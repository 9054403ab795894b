//! How much hangs on what nobody says: each assumed value of a paper's machine a quarter less and a quarter more, and what that
//! does to the numbers of its paper.

use super::{Curve, Figure, Found, Told};
use crate::event::MILLISECOND;
use crate::machine::Machine;
use crate::router::Scenario;
use crate::run::{Effort, run_all};
use anyhow::Result;

/// The papers' machines, by what the names of their figures begin with.
pub const MACHINES: [(&str, &str); 5] = [
    ("OSR", include_str!("../../machines/osr.toml")),
    ("CvL", include_str!("../../machines/cvl.toml")),
    ("LUT", include_str!("../../machines/lut.toml")),
    ("AFF", include_str!("../../machines/aff.toml")),
    ("FPGA", include_str!("../../machines/fpga.toml")),
];
/// What a value is multiplied by.
pub const FACTORS: [f64; 2] = [0.75, 1.25];
/// What is run for each: changes of a few percent are told, no numbers.
pub const EFFORT: Effort =
    Effort { warm_up_ps: 4 * MILLISECOND, window_ps: 4 * MILLISECOND, windows: 1, windows_most: 1 };
/// Points of a curve of which all are run.
const FEW: usize = 9;

/// What an assumed value does.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// Its place in the file, and what stands there.
    pub key: String,
    /// As above.
    pub value: String,
    /// Of either factor: the number that changes most, and by how many percent.
    pub most: [(String, f64); 2],
}

/// A number of a paper as the model has it: figure and name, value, and whether the machine was calibrated on it.
type Known = (String, f64, bool);

/// A value of a machine's file: its place, as `memory.latency`, what stands there, and where in the text that is.
struct Assumed<'a> {
    key: String,
    value: &'a str,
    at: std::ops::Range<usize>,
}

/// All assumed values of a file, which has one in a line.
fn assumed(text: &str) -> Vec<Assumed<'_>> {
    let (mut section, mut place, mut found) = ("", 0, Vec::new());
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.trim().strip_prefix('[') {
            section = name.trim_matches(['[', ']']);
        }
        let value = line.split_once("value = \"").and_then(|(before, rest)| {
            let (value, origin) = rest.split_once('"')?;
            origin.contains("assumed = \"").then_some((before.len() + "value = \"".len(), value))
        });
        if let Some((offset, value)) = value {
            let key = line.split(" = ").next().unwrap_or_default();
            let at = place + offset..place + offset + value.len();
            found.push(Assumed { key: format!("{section}.{key}"), value, at });
        }
        place += line.len();
    }
    found
}

/// The machine with a value multiplied; `None`: it is no number.
fn with(text: &str, one: &Assumed<'_>, factor: f64) -> Result<Option<Machine>> {
    let Some((number, unit)) = one.value.split_once(' ') else { return Ok(None) };
    let Ok(number) = number.parse::<f64>() else { return Ok(None) };
    let (before, after) = (&text[..one.at.start], &text[one.at.end..]);
    Machine::parse(&format!("{before}{} {unit}{after}", number * factor), &one.key).map(Some)
}

/// Of a curve of many points each third one, back from the last: all of them would take hours.
fn thinned(curve: Curve) -> Curve {
    let (every, behind) = if curve.points.len() > FEW { (3, (curve.points.len() - 1) % 3) } else { (1, 0) };
    Curve { points: curve.points.into_iter().skip(behind).step_by(every).collect(), ..curve }
}

/// The numbers of all figures whose name begins so. Runs that several figures show are made once.
fn numbers(figures: &str, machine: &Machine, seed: u64, effort: Effort) -> Result<Vec<Known>> {
    let figures = Figure::all().filter(|one| one.name.starts_with(figures) && !one.numbers.is_empty());
    let figures: Vec<(&Figure, Vec<Curve>)> =
        figures.map(|one| (one, (one.curves)().into_iter().map(thinned).collect())).collect();
    let mut scenarios: Vec<&Scenario> = Vec::new();
    for (_, scenario) in figures.iter().flat_map(|(_, curves)| curves).flat_map(|curve| &curve.points) {
        if !scenarios.contains(&scenario) {
            scenarios.push(scenario);
        }
    }
    let outcomes = run_all(machine, &scenarios, seed, effort, None)?;
    let of =
        |scenario: &Scenario| scenarios.iter().position(|one| *one == scenario).map(|n| outcomes[n].clone());
    let found: Vec<Vec<_>> = figures
        .iter()
        .map(|(_, curves)| {
            curves.iter().map(|curve| curve.points.iter().filter_map(|(_, one)| of(one)).collect()).collect()
        })
        .collect();
    let mut known = Vec::new();
    for ((figure, curves), outcomes) in figures.into_iter().zip(found) {
        let found = Found { curves: curves.into_iter().zip(outcomes).collect() };
        known.extend(figure.numbers.iter().map(|number| {
            let what = format!("{}, {}", figure.name, number.what);
            (what, (number.of)(&found), number.told == Told::Calibrated)
        }));
    }
    Ok(known)
}

/// The number that changed most, in percent of what it was. What was next to nothing is left out.
fn most(before: &[Known], after: &[Known]) -> (String, f64) {
    let changed = before.iter().zip(after).filter(|((_, was, _), _)| was.abs() > 1e-3);
    let changed = changed.map(|((what, was, fitted), (_, is, _))| {
        let note = if *fitted { " (calibrated)" } else { "" };
        (format!("{what}{note}"), (is / was - 1.0) * 100.0)
    });
    changed.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap_or_default()
}

/// What each assumed value of a machine's file does to the numbers of the figures whose names begin so; `told` hears of each.
///
/// # Errors
///
/// If the file is wrong, or the machine has too few ports.
pub fn look(
    figures: &str,
    text: &str,
    effort: Effort,
    mut told: impl FnMut(&Sensitivity),
) -> Result<Vec<Sensitivity>> {
    let before = numbers(figures, &Machine::parse(text, figures)?, 1, effort)?;
    let mut found = Vec::new();
    for value in assumed(text) {
        let mut both = [(String::new(), 0.0), (String::new(), 0.0)];
        for (factor, one) in FACTORS.into_iter().zip(&mut both) {
            if let Some(machine) = with(text, &value, factor)? {
                *one = most(&before, &numbers(figures, &machine, 1, effort)?);
            }
        }
        let one = Sensitivity { key: value.key, value: value.value.to_owned(), most: both };
        told(&one);
        found.push(one);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_assumed_is_moved_and_each_of_it() {
        for (name, text) in MACHINES {
            let all = assumed(text);
            assert_eq!(all.len(), text.matches("assumed = \"").count(), "{name}");
            for one in &all {
                assert!(with(text, one, FACTORS[1]).expect("in range").is_some(), "{name}: {}", one.key);
            }
        }
        let (_, osr) = MACHINES[0];
        let all = assumed(osr);
        let latency = all.iter().find(|one| one.key == "memory.latency").expect("it is assumed");
        let moved = with(osr, latency, 1.25).expect("in range").expect("a number");
        assert_eq!((moved.memory.latency.value, moved.software.receive.value), (150_000, 1_180));
    }

    #[test]
    fn the_number_that_changes_most_is_told() {
        let known = |values: [f64; 3]| values.map(|value| (format!("of {value}"), value, value == 4.0));
        let (what, by) = most(&known([0.0, 4.0, 10.0]), &known([9.0, 3.0, 12.0]));
        assert_eq!((what.as_str(), by), ("of 4 (calibrated)", -25.0));
        // What a card waits for a read is what OSR-tx is; that it is calibrated does not matter here.
        let [slow, quick] = [1_500_000, 1_000_000].map(|latency_ps| {
            let mut machine = Machine::osr().expect("right");
            machine.bus.values_mut().for_each(|bus| bus.read_latency.value = latency_ps);
            numbers("OSR-tx", &machine, 1, Effort::SHORT).expect("a port")[0].1
        });
        assert!(quick > 1.2 * slow, "{quick} {slow}");
    }
}
