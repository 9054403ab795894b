use super::*;
use proptest::prelude::*;

/// Values as measurements are: positive, over some decades, some of them alike.
fn some() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![1e-3..1e6, (1_u32..5).prop_map(f64::from)], 2..12)
}

/// The quantile by its definition: the k-th smallest value is the one that k others, counted, are before.
fn naive_quantile(values: &[f64], share: f64) -> f64 {
    let kth = |k: usize| {
        let before = |v: f64| values.iter().filter(|o| **o < v).count();
        let upto = |v: f64| values.iter().filter(|o| **o <= v).count();
        *values.iter().find(|v| before(**v) <= k && k < upto(**v)).unwrap()
    };
    let place = (values.len() - 1) as f64 * share;
    let k = place as usize;
    if place.fract() == 0.0 { kth(k) } else { kth(k) + (kth(k + 1) - kth(k)) * place.fract() }
}

/// The medians of all resamples there are, each as likely as the others.
fn every_median(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let resample = |number: usize| -> Vec<f64> {
        (0..n).map(|place| values[number / n.pow(place as u32) % n]).collect()
    };
    (0..n.pow(n as u32)).map(|number| naive_quantile(&resample(number), 0.5)).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The probability that the median of a resample of an odd number of different values is not above the k-th of them:
/// that most of its draws, each with a chance of k in n, are not.
fn median_within(k: usize, n: usize) -> f64 {
    let chance = k as f64 / n as f64;
    let mut exactly = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; exactly.len() + 1];
        for (hits, p) in exactly.iter().enumerate() {
            next[hits] += p * (1.0 - chance);
            next[hits + 1] += p * chance;
        }
        exactly = next;
    }
    exactly[n.div_ceil(2)..].iter().sum()
}

/// Four standard errors of a share of 2.5 % among 2 000.
const TOLERANCE: f64 = 0.014;

#[test]
fn intervals_are_those_of_the_exact_distribution() {
    for n in (7..60).step_by(2) {
        let values: Vec<f64> = (1..=n).map(|k| k as f64).collect();
        let Interval { low, high } = median_interval(&values, n as u64).unwrap();
        // What is below the lower end has a probability of less than 2.5 %, together with the end of more; so above.
        for (end, n) in [(low, n), (n as f64 + 1.0 - high, n)] {
            let (less, with) = (median_within(end as usize - 1, n), median_within(end as usize, n));
            let around = (less - TOLERANCE..=with + TOLERANCE).contains(&0.025);
            assert!(around, "of {n} values {end} is no end: {less} to {with}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn intervals_are_those_of_all_resamples(values in prop::collection::vec(1.0..1e3, 6)) {
        let all = every_median(&values);
        let Interval { low, high } = median_interval(&values, 7).unwrap();
        let share =
            |test: &dyn Fn(f64) -> bool| all.iter().filter(|m| test(**m)).count() as f64 / all.len() as f64;
        let less = 1.0 - 1e-9;
        prop_assert!(share(&|m| m < low * less) <= 0.025 + TOLERANCE, "{low} is too high");
        prop_assert!(share(&|m| m <= low / less) >= 0.025 - TOLERANCE, "{low} is too low");
        prop_assert!(share(&|m| m > high / less) <= 0.025 + TOLERANCE, "{high} is too low");
        prop_assert!(share(&|m| m >= high * less) >= 0.025 - TOLERANCE, "{high} is too high");
    }
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_definition(values in some(), share in 0.0..=1.0) {
        let (found, expected) = (quantile(&values, share).unwrap(), naive_quantile(&values, share));
        prop_assert!(near(found, expected), "{found} is not {expected}");
    }

    #[test]
    fn an_interval_holds_the_median_and_depends_on_nothing_else(values in some(), seed: u64) {
        let found = median_interval(&values, seed).unwrap();
        let median = median(&values).unwrap();
        prop_assert!(found.low <= median * (1.0 + 1e-9) && median <= found.high * (1.0 + 1e-9), "{median} {found:?}");
        prop_assert_eq!(Some(found), median_interval(&values, seed));
        let backwards: Vec<f64> = values.iter().rev().copied().collect();
        prop_assert_eq!(Some(found), median_interval(&backwards, seed));
        let doubled: Vec<f64> = values.iter().map(|v| v * 2.0).collect();
        let twice = Interval { low: found.low * 2.0, high: found.high * 2.0 };
        prop_assert_eq!(Some(twice), median_interval(&doubled, seed));
    }

    #[test]
    fn what_disturbs_both_of_a_pair_does_not_count(base in some(), ratio in 0.1..10.0) {
        let values: Vec<f64> = base.iter().map(|v| v * ratio).collect();
        let found = compare(&values, &base, 3).unwrap();
        prop_assert!(near(found.ratio, ratio));
        let interval = found.interval.unwrap();
        prop_assert!(near(interval.low, ratio) && near(interval.high, ratio), "{found:?}");
    }
}

#[test]
fn what_has_no_statistics_has_none() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[1.0, f64::NAN]), None);
    assert_eq!(quantile(&[1.0], 1.5), None);
    assert_eq!(median_interval(&[f64::INFINITY], 1), None);
    assert_eq!(median_interval(&[1.0], 1), None, "one value has no spread");
    let pair = compare(&[3.0], &[2.0], 1).unwrap();
    assert!(pair == Comparison { ratio: 1.5, interval: None } && !pair.differs());
    assert_eq!(compare(&[1.0, 2.0], &[1.0], 1), None, "no pairs");
    assert_eq!(compare(&[1.0], &[0.0], 1), None, "no ratio");
}

#[test]
fn two_differ_when_one_is_outside_the_interval() {
    let base = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0];
    let times = |ratios: [f64; 7]| -> Vec<f64> { base.iter().zip(ratios).map(|(b, r)| b * r).collect() };
    let faster = compare(&times([1.2, 1.3, 1.2, 1.1, 1.2, 1.3, 1.1]), &base, 1).unwrap();
    assert!(faster.differs() && faster.ratio > 1.0, "{faster:?}");
    let slower = compare(&times([0.8; 7]), &base, 1).unwrap();
    assert!(slower.differs() && slower.ratio < 1.0, "{slower:?}");
    let neither = compare(&times([0.8, 1.3, 0.9, 1.0, 1.2, 0.7, 1.1]), &base, 1).unwrap();
    assert!(!neither.differs(), "{neither:?}");
}
