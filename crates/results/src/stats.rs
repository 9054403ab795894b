//! Statistics of repetitions.
//!
//! Repetitions on a shared machine have long tails to one side, so nothing here assumes a distribution: medians, and
//! intervals by the bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, chapter 13, percentiles).
//! What is compared was measured in turns, so each pair of repetitions saw the same machine: the ratio of a pair is
//! what counts, not the ratio of two medians. Pairs that were not made in turns get a wider interval, not a wrong one.

use fastrand::Rng;

/// The seed of the intervals in tables and charts, so that both show the same.
pub const SEED: u64 = 1;
/// Resamples of a bootstrap. The ends of a 95 % interval are then quantiles that 50 resamples lie beyond.
const RESAMPLES: usize = 2_000;
/// The share of the resamples beyond each end of an interval.
const BEYOND: f64 = 0.025;

/// Where a value lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How many times its baseline something is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the ratios of all pairs.
    pub ratio: f64,
    /// Where that median lies; not known of a single pair.
    pub interval: Option<Interval>,
}

impl Comparison {
    /// Whether the two differ for certain: whether 1 is outside the interval.
    pub fn differs(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
    }
}

/// The value that `share` of all values are not above, with straight lines between the values (definition 7 of Hyndman
/// and Fan, 1996). `None` without values, with one that is not finite, or with a share outside 0 to 1.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values)?;
    (0.0..=1.0).contains(&share).then(|| quantile_sorted(&sorted, share))
}

/// The value that half of all values are not above.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Where the median lies: the 95 % interval of medians of resamples. `None` as for [`quantile`], and of a single value,
/// which says nothing of its spread.
pub fn median_interval(values: &[f64], seed: u64) -> Option<Interval> {
    let sorted = sorted(values).filter(|sorted| sorted.len() > 1)?;
    let mut rng = Rng::with_seed(seed);
    let mut places = vec![0; sorted.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            places.fill_with(|| rng.usize(..sorted.len()));
            // Places in sorted values sort faster than the values, and alike.
            places.sort_unstable();
            let half = (places.len() - 1) / 2;
            let other = places.len() / 2;
            f64::midpoint(sorted[places[half]], sorted[places[other]])
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some(Interval { low: quantile_sorted(&medians, BEYOND), high: quantile_sorted(&medians, 1.0 - BEYOND) })
}

/// Compares repetitions with those of a baseline that were made in turns with them. `None` if there are not as many of
/// both, or none, or one of the baseline is zero.
pub fn compare(values: &[f64], baseline: &[f64], seed: u64) -> Option<Comparison> {
    if values.len() != baseline.len() {
        return None;
    }
    let ratios: Vec<f64> = values.iter().zip(baseline).map(|(value, base)| value / base).collect();
    Some(Comparison { ratio: median(&ratios)?, interval: median_interval(&ratios, seed) })
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// Of at least one value.
fn quantile_sorted(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    // The difference of two finite values may not be finite; each part of a weighted sum is.
    let part = place.fract();
    below * (1.0 - part) + above * part
}

#[cfg(test)]
mod tests;
