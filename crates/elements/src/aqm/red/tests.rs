//! What RED makes of given lengths, times and random numbers, worked out by hand.

use super::*;
use causeway_engine::harness::Harness;

/// With the weight 1/16 for a new length.
fn own(min: u32, max: u32, p: f64, gentle: bool) -> Own {
    let (p, queues) = (Probability((p * 65_536.0) as u32), List::default());
    Own { min, max, p, queues, stability: 4, gentle, drops: 0 }
}

#[test]
fn max_p_moves_by_little_and_stays_within_its_bounds() {
    let moved = |p: f64, average: i64| {
        let mut own = own(10, 30, p, true);
        own.adapt(average);
        own.p.0
    };
    // In parts of 65536: a quarter more if that is less than a hundredth of one, a tenth less.
    assert_eq!(
        [moved(0.02, 21), moved(0.4, 21), moved(0.02, 19), moved(0.02, 20)],
        [1_637, 26_869, 1_179, 1_310]
    );
    assert_eq!([moved(0.5, 99), moved(0.6, 99), moved(0.01, 0)], [32_768, 39_321, 655]);
}

#[test]
fn the_probability_grows_with_the_length() {
    let at = |own: &Own, length: i64| own.probability(length << BITS, length) as f64 / 65_536.0;
    let gentle = own(10, 30, 0.5, true);
    for (length, p) in [(10, 0.0), (20, 0.25), (30, 0.5), (45, 0.75), (60, 1.0)] {
        assert!((at(&gentle, length) - p).abs() < 0.001, "{length}: {}", at(&gentle, length));
    }
    assert_eq!((gentle.most(), own(10, 30, 0.5, false).most(), own(1, 30, 1.0, true).most()), (60, 30, 30));
}

#[test]
fn max_p_follows_the_average_between_its_bounds() {
    let mut adaptive = own(10, 30, 0.02, true);
    let mut after = |average: i64, times: usize| {
        (0..times).for_each(|_| adaptive.adapt(average));
        f64::from(adaptive.p.0) / 65_536.0
    };
    assert!((after(30, 1) - 0.025).abs() < 0.0001);
    assert!((after(20, 9) - 0.025).abs() < 0.0001, "it is where it should be");
    assert!((after(19, 1) - 0.0225).abs() < 0.0001);
    assert!((0.009..0.0101).contains(&after(0, 100)));
    assert!((0.5..0.511).contains(&after(60, 100)));
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().concat();
    assert_eq!(error("5, 4, 0.1, QUEUES q"), "MIN_THRESH must be <= MAX_THRESH");
    assert_eq!(error("5, 70000, 0.1"), "MAX_THRESH must be <= 65535");
    assert_eq!(error("5, 7, 0.1, STABILITY 17"), "STABILITY must be between 0 and 16");
    assert_eq!(error("5, 7, 1.1"), "MAX_P must be between 0 and 1");
    assert_eq!(error("5, 7, -1"), "MAX_P: parse error");
    assert_eq!(error("5, 7, 0.1"), "no nearby Queues");
    assert_eq!(error("5, 7, 0.1, QUEUES q"), "no element named 'q'");
    assert_eq!(error("5, 7, 0.1, QUEUES element"), "'element' is not a Storage element");
}

const MS: u64 = 1_000_000;

fn red(own: Own) -> Red {
    Red::new(own, Defaults::Causeway)
}

/// The average in packets.
fn average(red: &Red) -> f64 {
    red.average as f64 / f64::from(1 << BITS)
}

#[test]
fn the_average_moves_by_a_sixteenth_of_the_distance() {
    let mut red = red(own(10, 30, 0.5, true));
    // (1 - w) average + w length with w = 1/16, cut to whole parts of 1/1024: 16 / 16; 1 + 15 / 16; and so on.
    for (length, expected) in
        [(16, 1.0), (16, 1.9375), (16, 2.816_406_25), (48, 5.640_625), (1, 5.350_585_937_5)]
    {
        red.observe(length, 0);
        assert_eq!(average(&red), expected);
    }
    assert_eq!((red.observe(0, 0), red.observe(60, 0)), (5, 8), "rounded: 5.02 and 8.45");
    red.own.stability = 0;
    assert_eq!((red.observe(7, 0), average(&red)), (7, 7.0), "no average");
    red.own.stability = 1;
    assert_eq!((red.observe(20, 0), average(&red)), (14, 13.5), "half of each, rounded up");
}

#[test]
fn while_the_queues_are_empty_the_average_falls_with_time() {
    let mut red = red(own(10, 30, 0.5, true));
    let at = |red: &mut Red, length: usize, ms: u64| {
        red.observe(length, ms * MS);
        average(red)
    };
    red.average = 16 << BITS;
    assert_eq!(at(&mut red, 0, 1_000), 15.0, "once, when they are found empty");
    assert_eq!(at(&mut red, 0, 1_019), 15.0);
    assert_eq!(at(&mut red, 0, 1_040), 13.183_593_75, "twice in 40 ms: 15 * (15 / 16)^2");
    // Somebody was there meanwhile.
    red.average = 16 << BITS;
    assert_eq!(at(&mut red, 16, 5_000), 16.0);
    assert_eq!(at(&mut red, 0, 9_000), 15.0, "for how long they have been empty is not known");
    let falls = |red: &mut Red, ms: u64| {
        (red.average, red.empty_at) = (16 << BITS, Some(0));
        at(red, 0, ms)
    };
    assert!((0.01..0.1).contains(&falls(&mut red, 99 * 20)), "16 * (15 / 16)^99 is 0.027");
    assert_eq!(falls(&mut red, 100 * 20), 0.0);
}

/// Which of packets that find the queues so long are dropped, with these random numbers.
fn dropped(own: Own, lengths: &[usize], randoms: &[u16]) -> String {
    let mut red = red(Own { stability: 0, ..own });
    let mut randoms = randoms.iter();
    let dropped: String = lengths
        .iter()
        .map(|&length| {
            if red.drops(length, 0, || *randoms.next().expect("one more random number")) { 'D' } else { '.' }
        })
        .collect();
    assert_eq!(randoms.len(), 0, "random numbers are left");
    assert_eq!(red.own.drops as usize, dropped.matches('D').count());
    dropped
}

#[test]
fn a_random_number_says_how_many_packets_pass_before_one_is_dropped() {
    // Halfway the probability is 0.25: 32768 / 20 is 1638, of which 20 are 32760, less 32768 / 2: 16376 parts of 65536.
    let halfway = || own(10, 30, 0.5, true);
    for (random, passing) in
        [(0, 0), (16_375, 0), (16_376, 1), (40_000, 2), (65_503, 3), (65_504, 4), (65_535, 4)]
    {
        let expected = format!(".{}D.", ".".repeat(passing));
        let lengths = vec![20; expected.len()];
        assert_eq!(dropped(halfway(), &lengths, &[random, 65_535]), expected, "{random}");
    }
    // Each that is dropped draws the number for the next.
    assert_eq!(dropped(halfway(), &[20; 10], &[40_000, 10_000, 65_535, 0]), "...DD....D");
}

#[test]
fn packets_count_from_the_last_that_was_dropped_or_could_not_be() {
    let lengths = [20, 20, 20, 10, 20, 20, 20];
    assert_eq!(
        dropped(own(10, 30, 0.5, true), &lengths, &[40_000, 16_376, 0]),
        "......D",
        "it was at MIN_THRESH"
    );
    let lengths = [20, 20, 20, 61, 20, 20, 20];
    assert_eq!(
        dropped(own(10, 30, 0.5, true), &lengths, &[40_000, 16_376, 0]),
        "...D..D",
        "all were dropped"
    );
}

#[test]
fn above_the_greatest_length_all_are_dropped() {
    // At 60 the probability is just below 1: 32768 / 30 is 1092, of which 60 are 65520.
    assert_eq!(dropped(own(10, 30, 0.5, true), &[60, 60, 60, 61, 61], &[65_519, 65_519, 65_519]), ".DDDD");
    assert_eq!(dropped(own(10, 30, 0.5, false), &[30, 30, 31, 31, 10], &[0, 0]), ".DDD.");
    assert_eq!(dropped(own(10, 30, 0.0, false), &[30, 30, 30], &[0]), "...", "MAX_P is 0");
    // Where there is nothing between the thresholds it begins above.
    assert_eq!(dropped(own(10, 10, 0.5, false), &[10, 11], &[]), ".D");
}
