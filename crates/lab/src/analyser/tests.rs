use super::*;
use crate::frame::Tag;
use proptest::prelude::*;
use std::collections::HashSet;

fn test(flow: u16, sequence: u32, sent_ns: u64) -> Seen {
    Seen::Test(Tag { trial: 1, flow, sequence, sent_ns })
}

/// The counts of one flow whose frames come in this order.
fn counts(order: &[u32], sent: u64) -> Counts {
    let mut analyser = Analyser::new(1, 1);
    for (at, &number) in order.iter().enumerate() {
        analyser.record(test(0, number, 0), at as u64);
    }
    analyser.finish(&[Sent { frames: sent, last_ns: 0 }]).total()
}

#[test]
fn each_thing_that_can_happen_is_counted_apart() {
    let base = Counts { sent: 5, in_order: 5, ..Counts::default() };
    assert_eq!(counts(&[0, 1, 2, 3, 4], 5), base);
    assert_eq!(counts(&[0, 1, 3, 4], 5), Counts { in_order: 4, lost: 1, ..base });
    assert_eq!(counts(&[0, 1, 2, 3], 5), Counts { in_order: 4, lost: 1, ..base });
    assert_eq!(counts(&[], 5), Counts { in_order: 0, lost: 5, ..base });
    assert_eq!(counts(&[0, 1, 1, 2, 3, 0, 4], 5), Counts { duplicated: 2, ..base });
    let late = Counts { in_order: 4, reordered: 1, farthest_behind: 2, ..base };
    assert_eq!(counts(&[0, 2, 3, 1, 4], 5), late);
    assert_eq!(counts(&[0, 2, 3, 1, 4, 1], 5), Counts { duplicated: 1, ..late });
}

#[test]
fn what_is_too_late_is_neither_reordered_nor_duplicated() {
    let last = WINDOW as u32 + 10;
    let found = counts(&[last, 11, 10, 11], u64::from(last) + 1);
    assert_eq!((found.in_order, found.reordered, found.duplicated, found.too_late), (1, 1, 1, 1));
    assert_eq!((found.lost, found.farthest_behind), (u64::from(last) - 1, WINDOW - 1));
}

#[test]
fn corrupt_foreign_and_earlier_frames_are_counted_apart() {
    let mut analyser = Analyser::new(1, 2);
    analyser.record(Seen::Corrupt, 1);
    analyser.record(Seen::Foreign, 2);
    analyser.record(Seen::Foreign, 3);
    analyser.record(Seen::Test(Tag { trial: 0, flow: 0, sequence: 0, sent_ns: 0 }), 4);
    analyser.record(test(2, 0, 0), 5);
    analyser.record(test(1, 0, 0), 6);
    let found = analyser.finish(&[Sent::default(), Sent { frames: 1, last_ns: 0 }]);
    assert_eq!((found.corrupt, found.foreign, found.earlier), (1, 2, 2));
    assert_eq!(found.flows[1], Counts { sent: 1, in_order: 1, ..Counts::default() });
}

#[test]
fn delays_and_their_variation_are_those_of_rfc_8219() {
    let mut analyser = Analyser::new(1, 1);
    // 1000 frames, a delay of 100 ns, every hundredth 900 ns, and one of them lost before.
    let delay = |n: u32| if n % 100 == 99 { 900 } else { 100 };
    for n in (0..1000).filter(|&n| n != 500) {
        let sent_ns = u64::from(n) * 10_000;
        analyser.record(test(0, n, sent_ns), sent_ns + delay(n));
    }
    let found = analyser.finish(&[Sent { frames: 1000, last_ns: 9_990_000 }]);
    assert_eq!(found.latency.count(), 999);
    let percentiles = [0.5, 0.98, 0.999, 1.0].map(|share| found.latency.percentile_ns(share));
    assert_eq!(percentiles, [Some(100), Some(100), Some(900), Some(900)]);
    assert_eq!(
        (found.latency.min_ns(), found.latency.max_ns(), found.pdv_ns()),
        (Some(100), Some(900), Some(800))
    );
    // Two pairs of the 999 are broken by the loss.
    assert_eq!((found.ipdv.count(), found.ipdv.max_ns()), (997, Some(800)));
    // Ten frames come later than the one before, eight of them earlier are followed by one: 499 is not.
    let to_and_from = 10 + 8;
    assert!((found.ipdv.mean_ns().expect("values") - 800.0 * f64::from(to_and_from) / 997.0).abs() < 0.1);
    assert_eq!(found.last_loss_ns, Some(5_010_000));
    assert_eq!(found.longest_silence_ns, 19_200);
}

#[test]
fn clocks_that_do_not_agree_are_noticed_and_times_may_wrap() {
    let mut analyser = Analyser::new(1, 1);
    analyser.record(test(0, 0, 500), 499);
    let near_the_end = (1 << 48) - 10;
    analyser.record(test(0, 1, near_the_end), (1 << 48) + 5);
    let found = analyser.finish(&[Sent { frames: 2, last_ns: 0 }]);
    assert_eq!(found.before_sent, 1);
    assert_eq!((found.latency.count(), found.latency.max_ns()), (1, Some(15)));
    assert_eq!(found.total().lost, 0);
}

#[test]
fn frames_that_are_lost_at_the_end_are_the_last_loss() {
    let mut analyser = Analyser::new(1, 1);
    analyser.record(test(0, 0, 0), 1);
    analyser.record(test(0, 2, 20), 21);
    let found = analyser.finish(&[Sent { frames: 4, last_ns: 30 }]);
    assert_eq!(found.last_loss_ns, Some(30));
    assert_eq!(found.total().lost, 2);
}

/// What [`Sequence`] is to say, by the definitions and without its bits.
fn naive(order: &[u32], sent: u64) -> Counts {
    let (mut seen, mut next) = (HashSet::new(), 0);
    let mut counts = Counts { sent, ..Counts::default() };
    for number in order.iter().map(|&n| u64::from(n)) {
        if number >= next {
            next = number + 1;
            counts.in_order += 1;
        } else if number + WINDOW < next {
            counts.too_late += 1;
            continue;
        } else if seen.contains(&number) {
            counts.duplicated += 1;
        } else {
            counts.reordered += 1;
            counts.farthest_behind = counts.farthest_behind.max(next - 1 - number);
        }
        seen.insert(number);
    }
    counts.lost = sent.saturating_sub(counts.in_order + counts.reordered);
    counts
}

/// Numbers that mostly rise, with steps back and leaps, some beyond the window.
fn any_order() -> impl Strategy<Value = Vec<u32>> {
    let step = prop_oneof![
        6 => Just(1i64),
        3 => -20i64..20,
        1 => -2 * WINDOW as i64..2 * WINDOW as i64,
        1 => prop::sample::select(vec![WINDOW as i64, WINDOW as i64 + 1, -(WINDOW as i64), 1 - WINDOW as i64, 64, -63]),
    ];
    proptest::collection::vec(step, 1..300).prop_map(|steps| {
        let mut at = 0i64;
        let mut go = |step: i64| {
            at = (at + step).max(0);
            at as u32
        };
        steps.into_iter().map(&mut go).collect()
    })
}

#[test]
fn the_timeline_has_what_came_in_each_step() {
    let mut analyser = Analyser::new(1, 1);
    for (number, at_ns) in [(0, 0), (1, STEP_NS - 1), (1, STEP_NS), (2, 3 * STEP_NS), (3, u64::MAX)] {
        analyser.record(test(0, number, 0), at_ns);
    }
    assert_eq!(analyser.finish(&[]).timeline, [2, 0, 0, 1], "a frame that comes again does not count");
}

proptest! {
    #[test]
    fn counts_are_those_of_a_naive_model(order in any_order()) {
        let sent = u64::from(order.iter().copied().max().unwrap_or(0)) + 1;
        prop_assert_eq!(counts(&order, sent), naive(&order, sent));
    }

    /// Every frame that comes is counted once.
    #[test]
    fn nothing_is_counted_twice_or_forgotten(order in any_order(), more in 0u64..100) {
        let sent = u64::from(order.iter().copied().max().unwrap_or(0)) + 1 + more;
        let found = counts(&order, sent);
        prop_assert_eq!(found.received() + found.duplicated + found.too_late, order.len() as u64);
        prop_assert_eq!(found.received() + found.lost, sent);
    }
}
