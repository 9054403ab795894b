//! Values of a bed by what was measured: those with which the simulation gives it, or comes nearest (Levenberg and Marquardt).
//!
//! Four values of the device are fitted, as logarithms, so that none becomes negative, to more numbers than that. What the numbers leave open
//! stays near where it began: a weak spring holds each value there.

use super::machine::BedValues;
use super::{FULL_FPS, Outcome, Trial, run};
use crate::event::{MILLISECOND, Time};
use crate::machine::{CALIBRATED_MOST, Origin, Value};
use crate::run::parallel;

/// How long the simulation runs for a delay, and for a rate: there threads make way at ticks, which are to be many.
const DELAY_PS: Time = 40 * MILLISECOND;
const RATE_PS: Time = 80 * MILLISECOND;
/// How often, each time with other chance: the geometric mean counts, which changes little where a median would jump.
const RUNS: u64 = 3;
/// Steps at most, how often one is made shorter, and by how much of the square sum it is to be better for another.
const STEPS: usize = 30;
const SHORTER: usize = 8;
const BETTER: f64 = 1e-3;
/// By how much a value is moved to see what hangs on it, as a logarithm, and how far a step may go.
const MOVED: f64 = 0.15;
const FAR: f64 = 0.5;
/// How strong the spring is beside a number that was measured.
const SPRING: f64 = 0.005;
/// What is damped first, and by how much more or less after a step in vain or a good one.
const DAMPING: f64 = 1e-2;
const DAMPED: f64 = 4.0;
/// Values are not below this: what takes nothing has no logarithm.
const LEAST_PS: u64 = 1;

/// So many values are fitted.
pub const FITTED: usize = 4;
const _: () = assert!(FITTED <= CALIBRATED_MOST);
type Vector = [f64; FITTED];

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Length of frames.
    pub bytes: u32,
    /// Frames a second that were offered; `None`: more than the tester sends.
    pub load_fps: Option<f64>,
    /// What it is.
    pub what: What,
    /// Frames a second, or microseconds.
    pub measured: f64,
}

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The rate of what comes back.
    Forwarded,
    /// The median time inside.
    Inside,
}

impl What {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            What::Forwarded => "what is forwarded",
            What::Inside => "the median delay",
        }
    }
}

/// The values that are fitted.
fn fitted(values: &mut BedValues) -> [&mut Value<crate::machine::Span>; FITTED] {
    let device = &mut values.device;
    [&mut device.wake, &mut device.turn, &mut device.frame, &mut device.byte]
}

/// The values at a place, said to be of these points.
fn at(start: &BedValues, place: &Vector, points: &str) -> BedValues {
    let mut values = start.clone();
    for (value, logarithm) in fitted(&mut values).into_iter().zip(place) {
        *value = Value::new(logarithm.exp().round() as u64, Origin::Calibrated(points.to_owned()));
    }
    values
}

/// How far the simulation is from what was measured, as logarithms of ratios, and the springs.
fn missed(values: &BedValues, targets: &[Target], moved: &Vector, seed: u64) -> Vec<f64> {
    // What is measured at one load is so in one run.
    let mut loads: Vec<(u32, f64)> = Vec::new();
    for target in targets {
        let load = (target.bytes, target.load_fps.unwrap_or(FULL_FPS));
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let trials = |&(bytes, load_fps): &(u32, f64)| -> Vec<Outcome> {
        let duration_ps = if load_fps < FULL_FPS { DELAY_PS } else { RATE_PS };
        (0..RUNS).map(|n| run(values, &Trial::new(bytes, load_fps, duration_ps, seed + n))).collect()
    };
    let outcomes: Vec<_> = loads.iter().map(trials).collect();
    let of = |target: &Target| {
        let load = (target.bytes, target.load_fps.unwrap_or(FULL_FPS));
        let outcomes = loads.iter().zip(&outcomes).find(|(one, _)| **one == load)?.1;
        let far = |outcome: &Outcome| {
            let modelled = match target.what {
                What::Forwarded => outcome.forwarded_fps,
                What::Inside => outcome.inside_us[0],
            };
            // What came to nothing is far off, and not infinitely so.
            (modelled.max(1e-3) / target.measured.max(1e-3)).ln()
        };
        Some(outcomes.iter().map(far).sum::<f64>() / outcomes.len() as f64)
    };
    targets.iter().filter_map(of).chain(moved.iter().map(|by| SPRING * by)).collect()
}

fn squares(missed: &[f64]) -> f64 {
    missed.iter().map(|one| one * one).sum()
}

/// The values with which the simulation comes nearest to what was measured, said to be of these points.
pub fn fit(start: &BedValues, targets: &[Target], points: &str, seed: u64) -> BedValues {
    let mut first = start.clone();
    let first: Vector = fitted(&mut first).map(|value| (value.value.max(LEAST_PS) as f64).ln());
    let seen = |place: &Vector| {
        let moved = std::array::from_fn(|n| place[n] - first[n]);
        missed(&at(start, place, points), targets, &moved, seed)
    };
    let (mut place, mut damping) = (first, DAMPING);
    let mut known = seen(&place);
    for _ in 0..STEPS {
        let places: Vec<Vector> = (0..FITTED).map(|n| moved_by(&place, n, MOVED)).collect();
        let slopes: Vec<Vec<f64>> = parallel(&places, |there| seen(there))
            .iter()
            .map(|there| there.iter().zip(&known).map(|(there, here)| (there - here) / MOVED).collect())
            .collect();
        let before = squares(&known);
        // A shorter step, until one is better.
        let better = (0..SHORTER).find_map(|_| {
            let step = step(&slopes, &known, damping)?;
            let next: Vector = std::array::from_fn(|n| place[n] + step[n].clamp(-FAR, FAR));
            let there = seen(&next);
            let better = squares(&there) < before;
            damping *= if better { 1.0 / DAMPED } else { DAMPED };
            better.then_some((next, there))
        });
        let Some((next, there)) = better else { break };
        let gain = before - squares(&there);
        (place, known) = (next, there);
        if gain < BETTER * before {
            break;
        }
    }
    at(start, &place, points)
}

fn moved_by(place: &Vector, which: usize, by: f64) -> Vector {
    let mut moved = *place;
    moved[which] += by;
    moved
}

/// The step that would be right if all were straight, and shorter the more it is damped. `slopes` are by value.
fn step(slopes: &[Vec<f64>], missed: &[f64], damping: f64) -> Option<Vector> {
    const N: usize = FITTED;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: [[f64; N + 1]; N] = std::array::from_fn(|row| {
        let entry = |column: usize| match column {
            N => -product(&slopes[row], missed),
            _ => product(&slopes[row], &slopes[column]),
        };
        std::array::from_fn(entry)
    });
    for (n, row) in rows.iter_mut().enumerate() {
        row[n] *= 1.0 + damping;
    }
    // By elimination, with the greatest of a column first.
    for column in 0..N {
        let greatest =
            (column..N).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, greatest);
        let pivot = rows[column];
        if pivot[column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(pivot).for_each(|(entry, above)| *entry -= factor * above);
        }
    }
    let mut step = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| rows[row][column] * step[column]).sum();
        step[row] = (rows[row][N] - known) / rows[row][row];
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two equations that are independent, the others none but a spring: 3 x = 6, x + 2 y = 8.
    #[test]
    fn a_step_solves_what_is_straight() {
        let mut slopes = vec![vec![0.0; 6]; FITTED];
        (slopes[0][0], slopes[0][1], slopes[1][1]) = (3.0, 1.0, 2.0);
        (2..FITTED).for_each(|n| slopes[n][n] = 1.0);
        let missed = [-6.0, -8.0, 0.0, 0.0, 0.0, 0.0];
        let step = step(&slopes, &missed, 0.0).expect("it is solved");
        assert!((step[0] - 2.0).abs() < 1e-9 && (step[1] - 3.0).abs() < 1e-9, "{step:?}");
        assert!(step[2..].iter().all(|one| one.abs() < 1e-9));
        let nothing = vec![vec![0.0; 6]; FITTED];
        assert_eq!(super::step(&nothing, &missed, 0.0), None, "nothing hangs on anything");
    }
}
