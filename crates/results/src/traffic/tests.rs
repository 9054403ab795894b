use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn the_simple_mix_has_the_ratio_seven_to_four_to_one() {
    let sizes = Sizes::simple_imix().sequence().expect("a sequence");
    assert_eq!(sizes, [[64; 7].as_slice(), &[594; 4], &[1518]].concat());
    let mean = |size: Sizes| {
        let stream = Stream::new("mix", Family::Ipv4, size);
        let rounded =
            Traffic { streams: vec![stream], ..Traffic::simple(64) }.mean_length().expect("sizes") * 10.0;
        rounded.round() / 10.0
    };
    assert_eq!(mean(Sizes::simple_imix()), 361.8);
    assert_eq!(mean(Sizes::csit_imix()), 353.8);
}

#[test]
fn a_genome_is_a_sequence_of_letters() {
    let mix = |genome: &str| Sizes::Mix {
        genome: genome.to_owned(),
        custom: BTreeMap::from([('A', 90), ('b', 1)]),
    };
    assert_eq!(mix("abcdefg").sequence(), Ok(vec![64, 128, 256, 512, 1024, 1280, 1518]));
    assert_eq!(mix("2aA3b").sequence(), Ok(vec![64, 64, 90, 128, 128, 128]));
    for (genome, part) in [
        ("", "no letters"),
        ("3", "no letters"),
        ("aB", "'B' has no length"),
        ("a?", "'?' is no letter"),
        ("0a", "at least once"),
        ("a7", "ends with a number"),
        ("99999999999999999999999999a", "at least once"),
        ("65536aa", "at least once"),
    ] {
        let error = mix(genome).sequence().expect_err(genome);
        assert!(error.contains(part), "{genome}: {error}");
    }
}

#[test]
fn a_sweep_goes_to_its_end_by_steps() {
    let sweep = |first, last, step| Sizes::Sweep { first, last, step }.sequence();
    assert_eq!(sweep(64, 70, 3), Ok(vec![64, 67, 70]));
    assert_eq!(sweep(64, 71, 3), Ok(vec![64, 67, 70]));
    assert_eq!(sweep(64, 64, 1), Ok(vec![64]));
    for (first, last, step) in [(65, 64, 1), (64, 65, 0), (64, 70_000, 1)] {
        assert!(sweep(first, last, step).is_err(), "{first} {last} {step}");
    }
}

#[test]
fn what_is_not_possible_is_refused_with_its_place() {
    let refused = |change: fn(&mut Traffic)| {
        let mut traffic = Traffic::simple(64);
        change(&mut traffic);
        traffic.check().expect_err("not possible").to_string()
    };
    assert_eq!(refused(|t| t.streams.clear()), "the traffic has no streams");
    assert_eq!(refused(|t| t.streams.push(t.streams[0].clone())), "there are two streams 'ipv4'");
    assert!(refused(|t| t.streams[0].size = Sizes::Fixed(63)).contains("63 bytes has no room"));
    assert!(refused(|t| t.streams[0].family = Family::Ipv6).contains("the shortest has 84"));
    assert!(refused(|t| t.streams[0].source_port = Values::Fixed(65_536)).contains("source_port: "));
    assert!(
        refused(|t| t.streams[0].source_host = Values::Counted { first: 1, count: 0 }).contains("no values")
    );
    assert!(refused(|t| t.schedule = Schedule::Bursts { frames: 0, gap_ns: 0 }).starts_with("schedule: "));
}

#[test]
fn matrices_say_who_sends_to_whom() {
    let shares = |matrix: Matrix, ports| matrix.shares(ports).map_err(|e| e.to_string());
    assert_eq!(shares(Matrix::OneToOne, 2), Ok(vec![vec![0, 1], vec![1, 0]]));
    assert_eq!(shares(Matrix::Unidirectional, 2), Ok(vec![vec![0, 1], vec![0, 0]]));
    assert_eq!(shares(Matrix::ManyToOne(1), 3), Ok(vec![vec![0, 1, 0], vec![0, 0, 0], vec![0, 1, 0]]));
    assert_eq!(shares(Matrix::Uniform, 3), Ok(vec![vec![0, 1, 1], vec![1, 0, 1], vec![1, 1, 0]]));
    let uneven = vec![vec![0, 10], vec![1, 0]];
    assert_eq!(shares(Matrix::Custom(uneven.clone()), 2), Ok(uneven));
    for (matrix, ports) in [
        (Matrix::OneToOne, 3),
        (Matrix::ManyToOne(2), 2),
        (Matrix::Custom(vec![vec![0, 1]]), 2),
        (Matrix::Custom(vec![vec![0, 0], vec![0, 0]]), 2),
        (Matrix::Uniform, 1),
        (Matrix::Uniform, 0),
    ] {
        assert!(shares(matrix.clone(), ports).is_err(), "{matrix:?} {ports}");
    }
}

#[test]
fn a_port_sends_its_streams_by_their_weights_evenly_spread() {
    let mut traffic = Traffic::simple(64);
    traffic.matrix = Matrix::Custom(vec![vec![0, 10], vec![1, 0]]);
    let stream = |name: &str, weight| Stream { weight, ..Stream::new(name, Family::Ipv4, Sizes::Fixed(64)) };
    traffic.streams = vec![stream("a", 4), stream("b", 2), stream("none", 0)];
    let plan = Plan::new(&traffic, 2).expect("a plan");
    let ends: Vec<_> = plan.flows().iter().map(|flow| (flow.from, flow.to, flow.stream)).collect();
    assert_eq!(ends, [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)]);
    assert_eq!(plan.order(0), [0, 1, 0]);
    assert_eq!(plan.order(1), [2, 3, 2]);
    assert_eq!((plan.share(0) * 11.0, plan.share(1) * 11.0), (10.0, 1.0));
    assert!(plan.order(2).is_empty());
    traffic.streams[1].weight = 0;
    traffic.streams[0].weight = 0;
    assert_eq!(Plan::new(&traffic, 2).expect_err("nothing to send").to_string(), "all weights are zero");
    traffic.streams = vec![stream("a", 65_537), stream("b", 2)];
    assert!(Plan::new(&traffic, 2).is_err());
}

#[test]
fn a_constant_rate_is_exact_for_ever() {
    let rate = 3_000_000.0;
    let day_ns = 86_400_000_000_000u64;
    let exact = 86_400 * 3_000_000;
    let count = Schedule::Constant.departures(rate, 0).count_before(day_ns);
    assert!(count.abs_diff(exact) <= 1, "{count}");
    let first: Vec<u64> = Schedule::Constant.departures(3e8, 0).take(4).collect();
    assert_eq!(first, [0, 3, 6, 10]);
    assert_eq!(Schedule::Constant.departures(0.0, 0).next(), None);
    assert_eq!(Schedule::Constant.departures(f64::NAN, 0).next(), None);
}

#[test]
fn bursts_and_on_off_times_are_where_they_are_said_to_be() {
    let bursts = Schedule::Bursts { frames: 3, gap_ns: 100 }.departures(1e6, 0);
    assert_eq!(bursts.take(7).collect::<Vec<_>>(), [0, 100, 200, 3000, 3100, 3200, 6000]);
    let together = Schedule::Bursts { frames: 3, gap_ns: 5000 }.departures(1e6, 0);
    assert_eq!(together.take(4).collect::<Vec<_>>(), [0, 1000, 2000, 3000]);
    let on_off = Schedule::OnOff { on_ns: 2000, off_ns: 6000 }.departures(1e6, 0);
    assert_eq!(on_off.take(10).collect::<Vec<_>>(), [0, 250, 500, 750, 1000, 1250, 1500, 1750, 8000, 8250]);
}

#[test]
fn a_poisson_process_has_the_mean_and_the_spread_of_one() {
    let times: Vec<u64> = Schedule::Poisson.departures(1e6, 7).take(200_001).collect();
    let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Standard deviations of the estimates are 0.22 % and 0.7 %.
    assert!((mean / 1000.0 - 1.0).abs() < 0.01, "{mean}");
    assert!((variance.sqrt() / 1000.0 - 1.0).abs() < 0.02, "{variance}");
    assert_eq!(times, Schedule::Poisson.departures(1e6, 7).take(200_001).collect::<Vec<_>>());
    assert_ne!(times[1..9], Schedule::Poisson.departures(1e6, 8).take(9).collect::<Vec<_>>()[1..]);
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        Just(Schedule::Constant),
        Just(Schedule::Poisson),
        (1u32..100, 0u32..10_000).prop_map(|(frames, gap_ns)| Schedule::Bursts { frames, gap_ns }),
        (1u64..1_000_000, 0u64..1_000_000).prop_map(|(on_ns, off_ns)| Schedule::OnOff { on_ns, off_ns }),
    ]
}

proptest! {
    /// Counting is what the times say, and the mean rate is the one that was asked for, to a burst or a period.
    #[test]
    fn departures_do_not_fall_and_have_their_rate(schedule in any_schedule(), rate in 1_000.0f64..1e8, seed: u64) {
        let departures = schedule.departures(rate, seed);
        let times: Vec<u64> = departures.clone().take(3_000).collect();
        prop_assert!(times.is_sorted());
        let at = times[2_500];
        let before = times.iter().filter(|&&time| time < at).count() as u64;
        prop_assert_eq!(departures.clone().count_before(at), before);
        let mut later = departures;
        later.by_ref().take(7).for_each(drop);
        prop_assert_eq!(later.count_before(at), before.saturating_sub(7));
        let slack = match schedule {
            Schedule::Bursts { frames, .. } => f64::from(frames),
            Schedule::OnOff { on_ns, off_ns } => rate * (on_ns + off_ns) as f64 / 1e9 + 2.0,
            // Ten standard deviations.
            Schedule::Poisson => 500.0,
            Schedule::Constant => 1.0,
        };
        prop_assert!((at as f64 * rate / 1e9 - 2_500.0).abs() <= slack + 1.0 + rate / 1e9, "{}", at);
    }

    /// Values stay in their range and reach both ends.
    #[test]
    fn values_are_in_their_range(first in 0u32..1_000_000, count in 1u32..50, series: u64) {
        for values in [Values::Counted { first, count }, Values::Random { first, count }, Values::Fixed(first)] {
            let (low, high) = values.range();
            let seen: Vec<u32> = (0..2_000).map(|n| values.nth(series, n)).collect();
            prop_assert_eq!(seen.iter().min(), Some(&low));
            prop_assert_eq!(seen.iter().max(), Some(&high));
        }
    }

    /// In every stretch of an order each flow has its share, to one frame.
    #[test]
    fn orders_are_even(weights in proptest::collection::vec(1u32..40, 1..6)) {
        let streams = weights.iter().enumerate().map(|(i, &weight)| Stream {
            weight,
            ..Stream::new(&i.to_string(), Family::Ipv4, Sizes::Fixed(64))
        });
        let traffic = Traffic {
            streams: streams.collect(),
            matrix: Matrix::Unidirectional,
            ..Traffic::simple(64)
        };
        let plan = Plan::new(&traffic, 2).expect("a plan");
        let (order, total) = (plan.order(0), f64::from(weights.iter().sum::<u32>()));
        let mut counts = vec![0.0; weights.len()];
        for (n, &flow) in order.iter().enumerate() {
            counts[usize::from(flow)] += 1.0;
            for (count, &weight) in counts.iter().zip(&weights) {
                let share = (n + 1) as f64 * f64::from(weight) / total;
                prop_assert!((count - share).abs() < weights.len() as f64, "{} of {}", count, share);
            }
        }
        for (count, &weight) in counts.iter().zip(&weights) {
            prop_assert_eq!(count / f64::from(weight), order.len() as f64 / total);
        }
    }
}
