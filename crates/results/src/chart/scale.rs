//! From values to places, with round ticks.

use super::Scale;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Ticks of an axis, about.
const TICKS: f64 = 7.0;
/// What a chart can show; beyond it differences overflow.
const LARGEST: f64 = 1e100;
const SMALLEST: f64 = 1e-100;

/// An axis as it is drawn.
pub struct Scaled {
    range: Range<f64>,
    logarithmic: bool,
    ticks: Vec<f64>,
    labels: Labels,
}

enum Labels {
    /// The numbers, with so many digits after the point.
    Numbers(usize),
    /// The numbers as short as they can be, each for itself.
    Short,
    /// All with a power of ten.
    Powers,
    /// Names of the ticks, in their order.
    Names(Vec<String>),
}

impl Scaled {
    /// An axis with room for all `values`, which ends at ticks. Lengths are compared on it if it begins at `zero`.
    pub fn over(scale: Scale, zero: bool, values: impl Iterator<Item = f64>) -> Scaled {
        let values = values.filter(|value| value.abs() <= LARGEST);
        match scale {
            Scale::Linear => linear(values.chain(zero.then_some(0.0))),
            Scale::Logarithmic(base) => logarithmic(f64::from(base.max(2)), values),
        }
    }

    /// An axis from the top down, a stretch for each name.
    pub fn names(names: &[String]) -> Scaled {
        let count = names.len().max(1) as f64;
        let ticks = (0..names.len()).map(|n| n as f64 + 0.5).collect();
        Scaled { range: count..0.0, logarithmic: false, ticks, labels: Labels::Names(names.to_vec()) }
    }

    /// Whether a value has a place here.
    pub fn shows(&self, value: f64) -> bool {
        let least = self.range.start.min(self.range.end);
        let most = self.range.start.max(self.range.end);
        (least..=most).contains(&value)
    }

    /// Where bars begin.
    pub fn start(&self) -> f64 {
        self.range.start.max(0.0).min(self.range.end)
    }

    fn label(&self, value: f64) -> String {
        match &self.labels {
            Labels::Numbers(digits) => format!("{value:.digits$}"),
            Labels::Short if (1e-4..1e7).contains(&value) => format!("{value}"),
            Labels::Short | Labels::Powers => format!("{value:e}"),
            Labels::Names(names) => names.get(value as usize).cloned().unwrap_or_default(),
        }
    }

    /// All labels, of which the longest needs room.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        self.ticks.iter().map(|tick| self.label(*tick))
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((least, most)) => Some((value.min(least), value.max(most))),
    })
}

fn linear(values: impl Iterator<Item = f64>) -> Scaled {
    let (least, most) = ends(values).unwrap_or((0.0, 1.0));
    // A single value needs a stretch around it too.
    let span =
        if most - least > SMALLEST.max(most.abs() * 1e-9) { most - least } else { most.abs().max(1.0) };
    let magnitude = 10_f64.powf((span / TICKS).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * magnitude).into_iter().find(|step| span / step <= TICKS);
    let step = step.unwrap_or(span);
    // What is a tick but for rounding is one.
    let first = (least / step + 1e-6).floor();
    let last = (most / step - 1e-6).ceil().max(first + 1.0);
    let ticks: Vec<f64> = (0..=(last - first) as usize).map(|n| (first + n as f64) * step).collect();
    let digits = (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
    let labels = if step >= 1e6 { Labels::Powers } else { Labels::Numbers(digits) };
    Scaled { range: first * step..last * step, logarithmic: false, ticks, labels }
}

fn logarithmic(base: f64, values: impl Iterator<Item = f64>) -> Scaled {
    let (least, most) = ends(values.filter(|value| *value >= SMALLEST)).unwrap_or((1.0, base));
    let first = (least.log(base) + 1e-9).floor();
    let last = (most.log(base) - 1e-9).ceil().max(first + 1.0);
    // Decades are far from each other if there are few.
    let between: &[f64] = if base == 10.0 && last - first <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = ((last - first) / TICKS).ceil() as usize;
    let powers = (0..=(last - first) as i32).step_by(stride).map(|n| base.powi(first as i32 + n));
    let all: Vec<f64> = powers.flat_map(|power| between.iter().map(move |n| n * power)).collect();
    let start = all.iter().copied().rfind(|tick| *tick <= least * (1.0 + 1e-9)).unwrap_or(least);
    let end = all.iter().copied().find(|tick| *tick >= most * (1.0 - 1e-9) && *tick > start);
    let end = end.unwrap_or_else(|| most.max(start * base));
    let ticks = all.into_iter().filter(|tick| (start..=end).contains(tick)).collect();
    Scaled { range: start..end, logarithmic: true, ticks, labels: Labels::Short }
}

impl Ranged for Scaled {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let Range { start, end } = self.range;
        let part = if self.logarithmic {
            (value.max(SMALLEST) / start).ln() / (end / start).ln()
        } else {
            (value - start) / (end - start)
        };
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Lines are drawn at the ticks and nowhere else.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Scaled {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: Scale, zero: bool, values: &[f64]) -> String {
        Scaled::over(scale, zero, values.iter().copied()).labels().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(labels(Scale::Linear, true, &[3.0, 0.97]), "0.0 0.5 1.0 1.5 2.0 2.5 3.0");
        assert_eq!(labels(Scale::Linear, false, &[64.0, 1518.0]), "0 500 1000 1500 2000");
        assert_eq!(labels(Scale::Linear, false, &[2.0, 8.0]), "2 3 4 5 6 7 8");
        assert_eq!(labels(Scale::Linear, true, &[0.03]), "0.000 0.005 0.010 0.015 0.020 0.025 0.030");
        assert_eq!(labels(Scale::Linear, true, &[2.4e7]), "0e0 5e6 1e7 1.5e7 2e7 2.5e7");
        assert_eq!(labels(Scale::Logarithmic(4), false, &[1.0, 16384.0]), "1 4 16 64 256 1024 4096 16384");
        assert_eq!(labels(Scale::Logarithmic(10), false, &[17.0, 170.0]), "10 20 50 100 200");
        assert_eq!(labels(Scale::Logarithmic(10), false, &[0.02, 900.0]), "0.01 0.1 1 10 100 1000");
    }

    #[test]
    fn nothing_and_a_single_value_have_an_axis_too() {
        assert_eq!(labels(Scale::Linear, true, &[]), labels(Scale::Linear, true, &[0.0]));
        assert_eq!(labels(Scale::Logarithmic(2), false, &[]), "1 2");
        assert_eq!(labels(Scale::Logarithmic(2), false, &[0.0, -3.0, f64::NAN]), "1 2");
        let one = Scaled::over(Scale::Linear, false, [7.0].into_iter());
        assert!(one.shows(7.0) && one.ticks.len() > 1);
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(
            values in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..6),
            base in prop::option::of(0_u32..20),
            zero: bool,
        ) {
            let scale = base.map_or(Scale::Linear, Scale::Logarithmic);
            let axis = Scaled::over(scale, zero, values.iter().copied());
            prop_assert!((2..=20).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            prop_assert!(axis.ticks.is_sorted_by(|a, b| a < b), "{:?}", axis.ticks);
            let drawn = |v: &&f64| v.abs() <= LARGEST && (base.is_none() || **v >= SMALLEST);
            for value in values.iter().filter(drawn) {
                let place = axis.map(value, (0, 1000));
                prop_assert!((-1..=1001).contains(&place), "{value} is at {place} of {:?}", axis.range);
            }
        }
    }
}
