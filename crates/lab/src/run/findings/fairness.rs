//! What each flow has of a device, and how fair that is.
//!
//! Fair is max-min fair here, as a round of NAPI with equal quotas is (OSR §3.3, §4.3): none gets more than it asks for, and
//! what is left is shared equally by those that want more. Jain's index (Jain, Chiu and Hawe, *A Quantitative Measure of
//! Fairness*, DEC-TR-301, 1984) is of what each flow has of its max-min share: 1 if each has just that. The same index of
//! what each has of what it offered is another: by that a device is fair that loses as large a part of all flows.

use super::{Findings, axis};
use crate::run::Place;
use crate::search::Outcome;

/// What each of those that ask for `demands` has of `capacity` if it is shared max-min fair: who asks for least is served
/// first, with at most an equal part of what is left for those that are not served yet.
fn max_min(demands: &[f64], capacity: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|&a, &b| demands[a].total_cmp(&demands[b]));
    let (mut left, mut shares) = (capacity, vec![0.0; demands.len()]);
    for (served, &at) in order.iter().enumerate() {
        shares[at] = demands[at].min(left / (order.len() - served) as f64);
        left -= shares[at];
    }
    shares
}

/// Jain's index: 1 if all have the same, 1/n if one has all; `None` if nobody has anything.
fn jain(parts: &[f64]) -> Option<f64> {
    let (sum, squares) = (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (parts.len() as f64 * squares))
}

/// The index of what each has of its max-min share, of those that have one.
fn index(rates: &[f64], shares: &[f64]) -> Option<f64> {
    let parts = rates.iter().zip(shares).filter(|(_, share)| **share > 0.0);
    jain(&parts.map(|(rate, share)| rate / share).collect::<Vec<_>>())
}

impl Findings<'_> {
    /// What each flow has of the forwarding rate at a load, what its max-min share of it is, and Jain's index of the two.
    pub(in crate::run) fn flows(
        &mut self,
        place: &Place<'_>,
        load: f64,
        flows: &[String],
        outcome: &Outcome,
    ) {
        let x = || (axis("offered load", "frames/s"), load.round());
        let seconds = outcome.effective_ns as f64 / 1e9;
        let of = |frames: u64| frames as f64 / seconds;
        let counts = &outcome.analysis.flows;
        let (offered, rates): (Vec<f64>, Vec<f64>) =
            counts.iter().map(|flow| (of(flow.sent), of(flow.received()))).unzip();
        let shares = max_min(&offered, rates.iter().sum());
        let rest = format!("{}, {}", place.device, place.size);
        for (name, (&rate, &share)) in flows.iter().zip(rates.iter().zip(&shares)) {
            for (what, value) in [("flows", rate), ("max-min shares", share)] {
                let name = format!("{name}/{rest}: {what}");
                self.add(&name, ("forwarding rate", "frames/s"), x(), value, "");
            }
        }
        if let Some(index) = index(&rates, &shares) {
            let name = format!("{}/{}/max-min fairness", place.device, place.size);
            self.add(&name, ("Jain's index", ""), x(), index, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_little_has_it_and_the_rest_is_shared() {
        // Keshav's example: of 10, demands of 2, 2.6, 4 and 5 get 2, 2.6, 2.7 and 2.7.
        let shares = max_min(&[5.0, 2.0, 4.0, 2.6], 10.0);
        let expected = [2.7, 2.0, 2.7, 2.6];
        assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
        assert_eq!(max_min(&[10.0, 1.0], 5.5), [4.5, 1.0]);
        assert_eq!(max_min(&[10.0, 6.0], 5.0), [2.5, 2.5], "equal parts, whatever is asked for");
        assert_eq!(max_min(&[3.0, 2.0], 9.0), [3.0, 2.0], "there is enough");
        assert_eq!((max_min(&[3.0, 0.0], 0.0), max_min(&[], 1.0)), (vec![0.0, 0.0], vec![]));
    }

    #[test]
    fn a_router_that_is_fair_to_a_load_of_ten_to_one_has_an_index_of_one() {
        let (offered, capacity) = ([10.0, 1.0], 5.5);
        let shares = max_min(&offered, capacity);
        assert_eq!(index(&[4.5, 1.0], &shares), Some(1.0));
        let proportional = index(&[5.0, 0.5], &shares).expect("an index");
        assert!((proportional - 0.874).abs() < 1e-3, "{proportional}: it loses as large a part of both");
        assert_eq!(index(&[5.5, 0.0], &shares), Some(0.5), "one has all");
        assert_eq!(index(&[0.0, 0.0], &[0.0, 0.0]), None);
    }

    #[test]
    fn the_index_is_between_one_and_one_of_n() {
        assert_eq!(jain(&[0.5; 4]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[])), (None, None));
    }
}
