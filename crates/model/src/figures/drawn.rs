//! What a figure shows beside its curves: what is made of several of them, or stands along something else.

use super::Found;
use crate::run::Outcome;

/// A series that is made of what was found.
pub struct Drawn {
    /// Its name in the document.
    pub(super) name: &'static str,
    /// Quantity and unit.
    pub(super) what: [&'static str; 2],
    /// What varies along it, and its unit.
    pub(super) along: [&'static str; 2],
    /// The places with their values; those whose value is no number are left out.
    pub(super) of: fn(&Found) -> Vec<(f64, f64)>,
}

/// Quantities that several figures have, with their units.
pub(super) const RATE: [&str; 2] = ["forwarding rate", "frames/s"];
pub(super) const DELAY: [&str; 2] = ["delay", "us"];
pub(super) const AVAILABILITY: [&str; 2] = ["availability", "%"];
pub(super) const RATIO_OF_RATES: [&str; 2] = ["ratio of forwarding rates", ""];
pub(super) const DIFFERENCE: [&str; 2] = ["difference of forwarding rates", "frames/s"];

pub(super) const fn drawn(
    name: &'static str,
    what: [&'static str; 2],
    along: [&'static str; 2],
    of: fn(&Found) -> Vec<(f64, f64)>,
) -> Drawn {
    Drawn { name, what, along, of }
}

/// Something of each point of a curve, at its place.
pub(super) fn of_each(found: &Found, name: &str, of: impl Fn(&Outcome) -> f64) -> Vec<(f64, f64)> {
    let (curve, outcomes) = found.curve_of(name);
    curve.points.iter().map(|(x, _)| *x).zip(outcomes.iter().map(of)).collect()
}

/// One of each two values at a place.
pub(super) fn paired([one, other]: [Vec<(f64, f64)>; 2], make: impl Fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    one.into_iter().zip(other).map(|((x, one), (_, other))| (x, make(one, other))).collect()
}

/// One of each two rates of two curves.
pub(super) fn of_rates(found: &Found, names: [&str; 2], make: fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    paired(names.map(|name| of_each(found, name, Outcome::rate_fps)), make)
}

/// What the processor of a port has left of its time, in percent, where each port has its own.
pub(super) fn available(outcome: &Outcome, port: usize) -> f64 {
    // Work is booked when it begins, so that the last piece may be too much.
    (100.0 - outcome.busy[port] * 100.0).max(0.0)
}
