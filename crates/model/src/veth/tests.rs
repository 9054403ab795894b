//! The bed against schedules by hand, and against bounds.

use super::device::Turn;
use super::machine::{DeviceValues, TesterValues, ThisMachine};
use super::*;
use crate::event::MICROSECOND;
use proptest::prelude::*;

const US: Time = MICROSECOND;
const LONG: Time = 50 * MILLISECOND;

/// A frame takes the tester 1 us for a call, 1 us of writing and 1 us of sending, and the device 5 us until it is awake, 1 us
/// for the turn, 1 us before others of its turn leave and 1 us by itself; to take it out is 1 us, and a look is 1 us.
fn by_hand(device: &str) -> BedValues {
    let mut values = ThisMachine::ready(device).expect("a bed");
    let (t, d) = (&mut values.tester, &mut values.device);
    (t.call.value, t.look.value, t.send.value, t.byte.value) = (US, US, 2 * US, 0);
    (t.together.value, t.receive.value) = (500, US);
    (t.single.value, t.single_byte.value, t.receive_byte.value) = (2 * US, 0, 0);
    t.many_call.value = 0;
    (t.wakes.value, t.watched.value, d.watched.value) = (0, 0, 0);
    (d.single.value, d.many_call.value) = (0, 0);
    (d.wake.value, d.turn.value, d.frame.value, d.byte.value) = (5 * US, US, 2 * US, 0);
    d.together.value = 500;
    (t.vary.value, d.vary.value) = (0, 0);
    values
}

fn trial(load_fps: f64) -> Trial {
    Trial { bytes: 64, load_fps, group: (1, 256), duration_ps: LONG, seed: 1, followed: None }
}

fn way(values: &BedValues, load_fps: f64, frame: u64) -> Vec<String> {
    let lines = run(values, &Trial { followed: Some(frame), ..trial(load_fps) }).trace;
    lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_frame_alone_takes_what_a_schedule_by_hand_has() {
    let expected = [
        "0 ns is written by the tester",
        "3000 ns is with the device, which is woken",
        "8000 ns is taken in a turn",
        "11000 ns has left",
    ];
    let values = by_hand("kernel");
    assert_eq!(way(&values, 10e3, 0), expected);
    let outcome = run(&values, &trial(10e3));
    assert_eq!(outcome.inside_us, [11.0, 11.0], "so do all others");
    assert_eq!((outcome.turn, outcome.wakes), (1.0, 10e3), "each wakes the device");
}

/// One is due each microsecond. At 3 us, when the first is sent, three more are due: they are with the device at 8, 9 and 10 us. It
/// is awake at 8 us, and has taken the first at 10, and until then another, which it takes too; so it goes on until 13 us, and the
/// four leave at 14, 15, 16 and 17. Where nothing joins, the first leaves at 11 us, the others are taken together until 15, and
/// leave at 16, 17 and 18.
#[test]
fn turns_gather_what_comes_while_they_take() {
    let mut values = by_hand("kernel");
    let expected = [
        "0 ns is written by the tester",
        "7000 ns is with the device, and waits",
        "9000 ns is taken in a turn",
        "14000 ns has left",
    ];
    assert_eq!(way(&values, 1e6, 3), expected);
    assert_eq!(way(&values, 1e6, 0)[3], "14000 ns has left", "the first waits for the last");
    values.device.joins.value = 1;
    let expected = [expected[0], expected[1], "8000 ns is taken in a turn", "15000 ns has left"];
    assert_eq!(way(&values, 1e6, 3), expected);
    assert_eq!(way(&values, 1e6, 0)[3], "11000 ns has left");
}

/// When the n-th frame is with the device, nanoseconds after it was written.
fn comes_ns(values: &BedValues, load_fps: f64, frame: u64) -> Option<u64> {
    way(values, load_fps, frame)[1].split(' ').next()?.parse().ok()
}

/// One is due each 5 us. The first is with the device at 3 us, and wakes it, which takes whoever sends 8 us: what became due at 5 and
/// at 10 us goes together. Where waking costs nothing each goes by itself.
#[test]
fn whoever_wakes_the_device_pays_for_it_and_frames_gather() {
    let mut values = by_hand("kernel");
    assert_eq!([1, 2].map(|frame| comes_ns(&values, 200e3, frame)), [Some(3_000); 2]);
    values.tester.wakes.value = 8 * US;
    // Both are written before the first goes, which wakes it again before the second does.
    assert_eq!([1, 2].map(|frame| comes_ns(&values, 200e3, frame)), [Some(4_000), Some(13_000)]);
    let [cheap, dear] = [0, 8 * US].map(|wakes| {
        values.tester.wakes.value = wakes;
        run(&values, &trial(200e3))
    });
    assert!(dear.together > 1.3 * cheap.together && dear.wakes < cheap.wakes, "{cheap:?} {dear:?}");
    assert!(dear.parts[0].1 > cheap.parts[0].1, "it is the sender's time");
    // A worker that looks out has not to be woken.
    let mut values = by_hand("causeway");
    let cheap = run(&values, &trial(50e3));
    values.tester.wakes.value = 8 * US;
    let dear = run(&values, &trial(50e3));
    assert_eq!((dear.inside_us, dear.parts), (cheap.inside_us, cheap.parts));
}

/// A frame at 14 us finds the processor awake at 19, and is taken at 21: but at 20 us the laboratory's watch wakes, which takes 7 us.
#[test]
fn the_laboratorys_watch_takes_time_of_the_device() {
    let mut values = by_hand("kernel").device;
    values.watched.value = 7 * US;
    let turn = |values: &DeviceValues| {
        let mut device = Device::new(values, 64, 1);
        assert_eq!(device.comes(0, 14 * US), Comes { goes_on_ps: Some(19 * US), wakes: true });
        let Goes::Takes(until_ps) = device.goes_on(19 * US) else { panic!("it takes the frame") };
        match device.goes_on(until_ps) {
            Goes::Turn(turn) => (until_ps, turn),
            other => panic!("{other:?}"),
        }
    };
    let leaves = |at_ps: Time| Turn { first_ps: at_ps, each_ps: US, end_ps: at_ps };
    assert_eq!(turn(&values), (21 * US, leaves(22 * US)), "it wakes each millisecond");
    values.watch.value = 20 * US;
    assert_eq!(turn(&values), (28 * US, leaves(29 * US)));
}

/// A frame of a quarter of the greatest length costs half as much for its bytes.
#[test]
fn bytes_cost_as_the_root_of_the_length() {
    assert_eq!([1_518, 380, 64].map(paid), [1_518, 759, 311]);
    let mut values = by_hand("kernel");
    values.device.byte.value = 10 * US / 1_518;
    let alone_us = |bytes| run(&values, &Trial { bytes, ..trial(10e3) }).inside_us[0];
    let [long, short] = [1_518, 380].map(|bytes| alone_us(bytes) - 11.0);
    assert!((long - 10.0).abs() < 0.01 && (short - 5.0).abs() < 0.01, "{long} {short}");
}

/// Each 20 us one: Causeway's worker looks out for the next for up to 50 us, and needs no waking: 3 us with the tester, half one
/// for the look, 3 us of work. Each 200 us one: it sleeps.
#[test]
fn a_worker_looks_out_for_frames_that_come_soon() {
    let values = by_hand("causeway");
    let soon = run(&values, &trial(50e3));
    assert_eq!((soon.inside_us[0], soon.wakes), (6.5, 0.0));
    let seldom = run(&values, &trial(5e3));
    assert_eq!((seldom.inside_us[0], seldom.wakes), (11.0, 5e3));
    let looks_out = |outcome: &Outcome| outcome.parts[5].1;
    assert!(looks_out(&soon) > 0.8 && looks_out(&seldom) < 0.1, "{soon:?} {seldom:?}");
}

/// The tester's time goes into sending and receiving, as long as the device keeps up: 2 us and a call and a look for each 256 frames,
/// and 1 us for what comes back.
#[test]
fn who_is_the_slower_says_what_is_forwarded() {
    let mut values = by_hand("kernel");
    (values.device.frame.value, values.device.turn.value) = (US, 0);
    let longer = Trial { duration_ps: 10 * LONG, ..trial(FULL_FPS) };
    let quick = run(&values, &longer);
    let expected = 1e6 / (2.0 + 2.0 / 256.0 + 1.0);
    assert!((quick.forwarded_fps / expected - 1.0).abs() < 0.01, "{quick:?}");
    // Turns of 64 that take 10 us for a frame and 64 us more: 11 us a frame.
    (values.device.frame.value, values.device.turn.value) = (10 * US, 64 * US);
    let slow = run(&values, &longer);
    assert!((slow.forwarded_fps / (1e6 / 11.0) - 1.0).abs() < 0.01, "{slow:?}");
    assert!((slow.turn - 64.0).abs() < 0.5 && slow.lost_fps > 0.0, "{slow:?}");
    // By hand: what it does not receive it can send.
    let sent = (1e6 - slow.forwarded_fps) / (2.0 + 2.0 / 256.0);
    assert!((slow.offered_fps / sent - 1.0).abs() < 0.01, "{slow:?}");
    let [of_tester, of_device] =
        [&slow.parts[..4], &slow.parts[4..]].map(|parts| parts.iter().map(|part| part.1).sum::<f64>());
    assert!((of_tester - 1.0).abs() < 0.01 && (of_device - 1.0).abs() < 0.01, "all of the time is told");
}

/// One is due each 10 us. The first has left at 11 us, and the second is with the device at 13: then the first is taken out, which is
/// 1 us for the look and 20 us, and what became due at 20 and at 30 us goes together at 34, before anything else is taken out. Where
/// taking out costs nothing each goes by itself.
#[test]
fn what_became_due_while_frames_were_taken_out_goes_together() {
    let mut values = by_hand("kernel");
    let comes_ns = |values: &BedValues, frame| comes_ns(values, 100e3, frame);
    values.tester.receive.value = 0;
    assert_eq!([1, 2, 3].map(|frame| comes_ns(&values, frame)), [Some(3_000); 3]);
    values.tester.receive.value = 20 * US;
    // Both are written before the first goes.
    assert_eq!([1, 2, 3].map(|frame| comes_ns(&values, frame)), [Some(3_000), Some(4_000), Some(5_000)]);
}

/// It looks each microsecond from 3 us on: what leaves at 11.4 us is seen at 12, taken out until 14, and the next is sent at 100 us
/// all the same. The watch that wakes at 98 us and takes 7 puts that off until 105, and one that wakes at 50 does not.
#[test]
fn a_look_ends_when_a_frame_comes() {
    let mut values = by_hand("kernel").tester;
    let at = |values: &TesterValues| {
        let mut tester = Tester::new(values, &trial(10e3));
        assert_eq!(tester.next(0), (Piece::Writes(1), 2 * US));
        assert_eq!(tester.next(2 * US), (Piece::HandsOver(1), 3 * US));
        assert_eq!(tester.came(US), (true, None), "it does not look");
        assert_eq!(tester.next(3 * US), (Piece::Receives(1), 5 * US));
        assert_eq!(tester.next(5 * US), (Piece::Looks, 100 * US));
        assert_eq!(tester.came(11_400 * US / 1_000), (true, Some(12 * US)));
        assert_eq!(tester.next(12 * US), (Piece::Receives(1), 14 * US));
        assert_eq!(tester.next(14 * US), (Piece::Looks, 100 * US));
        let mut now_ps = 100 * US;
        loop {
            match tester.next(now_ps) {
                (Piece::Looks, until_ps) => now_ps = until_ps,
                (Piece::Writes(1), _) => return now_ps,
                other => panic!("{other:?}"),
            }
        }
    };
    values.watched.value = 7 * US;
    assert_eq!(at(&values), 100 * US);
    values.watch.value = 98 * US;
    assert_eq!(at(&values), 105 * US);
    values.watch.value = 50 * US;
    assert_eq!(at(&values), 100 * US);
}

/// Alone: the tester's call and 3 us, 5 us until the device is awake, its turn, and 4 us. Where more is offered than is sent, turns of 64
/// take 1 and 30 us, and 2 us for each frame.
#[test]
fn few_and_many_go_by_different_ways() {
    let mut values = by_hand("causeway");
    let (t, d) = (&mut values.tester, &mut values.device);
    (t.single.value, t.send.value, t.many_call.value) = (3 * US, US, 20 * US);
    (d.single.value, d.many_call.value) = (2 * US, 30 * US);
    assert_eq!(run(&values, &trial(5e3)).inside_us[0], 14.0);
    let full = run(&values, &Trial { duration_ps: 10 * LONG, ..trial(FULL_FPS) });
    assert!((full.forwarded_fps / (64e6 / 159.0) - 1.0).abs() < 0.01, "{full:?}");
}

/// Ten leave together when the last of them is due, which at one each microsecond is at 9 us, at 19 us and so on: each is with the
/// device 1 us for the call and 2 us for each after that, as far as it was before in the group. One that is late sends two groups.
#[test]
fn frames_leave_in_groups_when_the_last_is_due() {
    let values = by_hand("kernel").tester;
    let mut tester = Tester::new(&values, &Trial { group: (10, 20), ..trial(1e6) });
    assert_eq!(tester.next(0), (Piece::Looks, 9 * US));
    assert_eq!(tester.next(9 * US), (Piece::Writes(10), 20 * US));
    (0..10).for_each(|n| assert_eq!(tester.next((20 + n) * US), (Piece::HandsOver(1), (21 + n) * US)));
    assert_eq!(tester.next(30 * US), (Piece::Writes(20), 51 * US));
    assert_eq!(
        tester.next(51 * US),
        (Piece::HandsOver(20), 71 * US),
        "many are with the device at their end"
    );
    assert_eq!(tester.next(71 * US), (Piece::Writes(20), 92 * US), "of forty");
    let groups = |load_fps| Trial::new(64, load_fps, LONG, 1).group;
    assert_eq!([groups(250e3), groups(260e3)], [(1, 8), (64, 64)]);
}

#[test]
fn what_has_no_room_is_lost() {
    let mut values = by_hand("kernel");
    values.device.room.value = 1;
    let outcome = run(&values, &trial(FULL_FPS));
    assert!(outcome.lost_fps > 0.5 * outcome.offered_fps, "{outcome:?}");
}

#[test]
fn the_same_values_give_the_same_numbers_in_any_thread() {
    let mut values = by_hand("causeway");
    values.device.vary.value = 200;
    let all: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| run(&values, &Trial { followed: Some(70), ..trial(200e3) })))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    let other = run(&values, &Trial { followed: Some(70), seed: 2, ..trial(200e3) });
    assert!(other != all[0] && (other.inside_us[0] / all[0].inside_us[0] - 1.0).abs() < 0.05, "{other:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a file says: it ends, and each frame left, was lost, waits or is on its way.
    #[test]
    fn every_frame_ends_in_one_counted_place(
        times in proptest::collection::vec(prop_oneof![1 => Just(0), 4 => 0u64..30 * US], 9),
        together in 0u64..=1_000,
        room in 1u64..200,
        load_fps in 1e3f64..2e6,
        causeway in any::<bool>(),
    ) {
        let mut values = ThisMachine::ready(if causeway { "causeway" } else { "kernel" }).expect("a bed");
        let (t, d) = (&mut values.tester, &mut values.device);
        let of_tester = [&mut t.call, &mut t.look, &mut t.send, &mut t.receive, &mut t.watched, &mut t.wakes];
        let all = of_tester.into_iter().chain([&mut d.wake, &mut d.turn, &mut d.frame]);
        all.zip(&times).for_each(|(value, time)| value.value = *time);
        (t.together.value, d.together.value) = (together, together);
        (d.room.value, t.ring.value) = (room, room);
        let mut bed = Bed::new(&values, &trial(load_fps));
        bed.from_ps = 0;
        bed.run(5 * MILLISECOND);
        let mut under_way = 0;
        while let Some(event) = bed.queue.pop() {
            under_way += u64::from(matches!(event, Event::Leaves(_)));
        }
        under_way += bed.written_ps.len() as u64 - u64::from(bed.handed_over);
        let ended = bed.inside_ps.len() as u64 + bed.tester.lost + bed.device.lost;
        prop_assert_eq!(bed.tester.sent, ended + (bed.device.queue.len() + bed.device.taken.len()) as u64 + under_way);
        prop_assert!(bed.tester.sent > 0);
    }
}
