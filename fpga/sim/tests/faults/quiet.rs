//! One frame or none at a time: what a fault does at each moment, and what a driver can do wrong.

use super::common::CORE;
use causeway_nic_driver::Mac;
use causeway_nic_driver::registers as reg;
use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::scenario::{counted_losses, read_counters, table};
use causeway_nic_sim::testbed::{PCI_66_PS, PCI_133_PS, Setup, Testbed};
use causeway_nic_sim::traffic::Stamp;

/// Idle bus cycles of a tick.
const PATIENCE: u64 = 32;
/// In which all links are up again when the cause of a failure has gone and the bus is idle.
const RECOVERY_TICKS: u64 = 64;

/// A frame of 64 bytes from a port to another one's network.
pub(super) fn frame_between(port: u8, dest: u8) -> Vec<u8> {
    let stamp = Stamp { port, dest, high: false, sequence: 1, sent_ns: 0, frame_bytes: 64 };
    stamp.frame(Mac([2, 0, 0, 0, 0, port]))
}

/// Times from a frame's end on to where it has arrived: every other cycle of the bus, from now.
fn while_it_crosses(testbed: &Testbed, n: u64) -> u64 {
    testbed.now_ps() + 1_000_000 + 30_000 * n
}

/// So many moments with `NIC_LONG` in the environment; otherwise every third of them.
pub(super) fn moments(count: u64) -> impl Iterator<Item = u64> {
    (0..count).step_by(if std::env::var_os("NIC_LONG").is_some() { 1 } else { 3 })
}

#[test]
fn whenever_a_card_vanishes_its_frame_has_left_or_is_counted() {
    let frame = frame_between(0, 1);
    let mut flushed = 0;
    for victim in [0, 1] {
        let mut testbed = quiet(2);
        let lost = |testbed: &mut Testbed| {
            let counters = [0, 1].map(|nic| read_counters(testbed, nic));
            counted_losses(&counters, &testbed.host().counters)
        };
        let [mut tried, mut left, mut counted] = [0, 0, 0];
        for n in moments(100) {
            tried += 1;
            let before = (testbed.raw.len(), lost(&mut testbed));
            testbed.send_raw(0, &frame, check_sequence(&frame));
            let at_ps = while_it_crosses(&testbed, n);
            testbed.schedule([
                Scheduled { at_ps, fault: Fault::Unplug(victim) },
                Scheduled { at_ps: at_ps + 20_000_000, fault: Fault::Plug(victim) },
            ]);
            testbed.run_until(at_ps / 1_000 + 20_000 + RECOVERY_TICKS * PATIENCE * PCI_66_PS / 1_000);
            assert!(testbed.is_linked(0), "{victim} {n}");
            testbed.run_until(testbed.now_ns() + 80_000);
            let [leaves, counts] = [testbed.raw.len() - before.0, (lost(&mut testbed) - before.1) as usize];
            // Both, if the last word was taken in the very cycle, which its receiver cannot say any more.
            assert!(leaves <= 1 && counts <= 1 && leaves + counts >= 1, "{victim} {n}: {leaves} {counts}");
            left += leaves;
            counted += counts;
        }
        let some = tried / 10;
        assert!(left > some && counted > some && left + counted <= tried + 3, "{left} {counted} of {tried}");
        flushed += count(&mut testbed, "drop_peer_down");
        let whole = |(port, sent): &(u8, Vec<u8>)| *port == 1 && sent[34..] == frame[34..];
        assert!(testbed.raw.iter().all(whole), "what was cut off stayed");
    }
    assert!(flushed > 1, "{flushed}: a frame for a card that is down waits for its return");
}

#[test]
fn whenever_a_card_gets_no_bus_the_others_are_served() {
    let mut testbed = quiet(3);
    let (slow, other) = (frame_between(1, 0), frame_between(2, 0));
    for n in moments(100) {
        let before = testbed.raw.len();
        testbed.send_raw(1, &slow, check_sequence(&slow));
        let at_ps = while_it_crosses(&testbed, n);
        testbed.schedule([Scheduled { at_ps, fault: Fault::Starve(1) }]);
        testbed.run_until(testbed.now_ns() + 5_000);
        let arrived = testbed.raw.len() - before;
        testbed.send_raw(2, &other, check_sequence(&other));
        testbed.run_until(testbed.now_ns() + 60_000);
        assert_eq!(testbed.raw.len() - before, arrived + 1, "{n}");
        testbed.schedule([Scheduled { at_ps: testbed.now_ps(), fault: Fault::Feed(1) }]);
        testbed.run_until(testbed.now_ns() + 150_000);
        assert!((0..3).all(|nic| testbed.is_linked(nic)), "{n}");
    }
}

/// Some cards and no traffic.
pub(super) fn quiet(cards: usize) -> Testbed {
    let mut testbed = Testbed::new(&Setup::new(&table(cards, true, false).unwrap()));
    (0..cards as u8).for_each(|nic| testbed.host_mut().write(nic, reg::PATIENCE, PATIENCE));
    testbed
}

#[test]
fn descriptors_that_cannot_be_meant_are_refused_and_told() {
    let mut testbed = quiet(2);
    let post = |tag: u64, bytes: u64, address: u64| (reg::TX_POST, tag << 48 | bytes << 32 | address);
    let bad = [
        post(1, 0, 0x1000),
        post(2, 13, 0x1000),
        post(3, 1519, 0x1000),
        post(4, 2047, 0x1000),
        post(5, 64, 0x1004),
    ];
    for (register, value) in bad {
        testbed.host_mut().write(0, register, value);
    }
    testbed.host_mut().write(0, reg::IRQ_ENABLE, reg::IRQ_ERROR);
    testbed.drain(1_000_000);
    assert_eq!(testbed.raw, []);
    assert_eq!(count(&mut testbed, "tx_refused"), 5);
    // Five finished, the fifth the last, five failed.
    assert_eq!(testbed.read_register(0, reg::TX_STATUS), 5 << 32 | 5 << 16 | 5);
    assert_eq!(testbed.read_register(0, reg::ERRORS), reg::ERROR_DESCRIPTOR);
    assert_eq!(testbed.read_register(0, reg::IRQ_STATUS) & reg::IRQ_ERROR, reg::IRQ_ERROR);
    // Cleared by ones, and only those.
    testbed.host_mut().write(0, reg::ERRORS, !reg::ERROR_DESCRIPTOR);
    testbed.drain(10_000);
    assert_eq!(testbed.read_register(0, reg::ERRORS), reg::ERROR_DESCRIPTOR);
    testbed.host_mut().write(0, reg::ERRORS, reg::ERROR_DESCRIPTOR);
    testbed.drain(10_000);
    assert_eq!(testbed.read_register(0, reg::ERRORS), 0);
    // More than the queue holds, faster than the line: each is sent once or refused.
    for n in 0..200 {
        let (register, value) = post(100 + n, 1514, 0x1000);
        testbed.host_mut().write(0, register, value);
    }
    testbed.drain(10_000_000);
    let refused = count(&mut testbed, "tx_refused") - 5;
    assert!(refused > 50, "{refused}");
    assert_eq!(testbed.raw.len() as u64 + refused, 200);
    let status = testbed.read_register(0, reg::TX_STATUS);
    assert_eq!((status & 0xffff, status >> 32), (205, 5 + refused));
}

/// The value of a counter of card 0.
pub(super) fn count(testbed: &mut Testbed, name: &str) -> u64 {
    read_counters(testbed, 0).into_iter().find(|c| c.0 == name).unwrap().1
}

#[test]
fn a_report_that_does_not_arrive_is_made_again() {
    let mut testbed = quiet(2);
    for n in moments(60) {
        testbed.host_mut().write(0, reg::TX_POST, 64 << 32);
        let at_ps = testbed.now_ps() + 300_000 + 30_000 * n;
        testbed.schedule([Scheduled { at_ps, fault: Fault::CorruptWords(1, 2) }]);
        testbed.drain(1_000_000);
        // If nothing else has met the fault, this read does.
        testbed.read_register(0, reg::ID);
        let finished = testbed.read_register(0, reg::TX_STATUS) as u16;
        assert_eq!(testbed.host().finished(0), finished, "after {n}");
    }
    assert!(count(&mut testbed, "bus_parity") > 0);
}

#[test]
fn a_card_that_is_not_enabled_takes_nothing_and_says_so() {
    let mut testbed = quiet(2);
    let frame = frame_between(0, 1);
    for enable in [0, reg::CONTROL_ENABLE] {
        testbed.host_mut().write(0, reg::CONTROL, enable);
        testbed.drain(2_000_000);
        testbed.host_mut().write(0, reg::TX_POST, 64 << 32);
        testbed.send_raw(0, &frame, check_sequence(&frame));
        testbed.drain(2_000_000);
        assert_eq!(count(&mut testbed, "tx_refused"), 1);
        assert_eq!(count(&mut testbed, "rx_disabled"), 1);
        assert_eq!(testbed.raw.len() as u64, 2 * enable, "{enable}");
        assert_eq!(testbed.read_register(0, reg::TX_STATUS) & 0xffff, enable);
    }
}

#[test]
fn a_card_is_enabled_and_disabled_between_frames() {
    let mut testbed = quiet(2);
    let frame = Stamp { port: 0, dest: 1, high: false, sequence: 1, sent_ns: 0, frame_bytes: 1518 };
    let frame = frame.frame(Mac([2, 0, 0, 0, 0, 0]));
    // In the middle of a frame, which takes 12 us.
    for (enable, frames, refused) in [(0, 1, 0), (reg::CONTROL_ENABLE, 1, 1)] {
        testbed.send_raw(0, &frame, check_sequence(&frame));
        testbed.run_until(testbed.now_ns() + 6_000);
        testbed.host_mut().write(0, reg::CONTROL, enable);
        testbed.drain(2_000_000);
        assert_eq!(count(&mut testbed, "rx_frames"), frames, "{enable}");
        assert_eq!(count(&mut testbed, "rx_disabled"), refused, "{enable}");
        assert_eq!(count(&mut testbed, "rx_bad_length"), 0, "{enable}");
    }
    testbed.send_raw(0, &frame, check_sequence(&frame));
    testbed.drain(2_000_000);
    assert_eq!(count(&mut testbed, "rx_frames"), 2);
    assert!(testbed.raw.len() <= 2);
}

#[test]
fn interrupts_come_when_they_are_enabled_until_they_are_cleared() {
    let mut testbed = quiet(2);
    testbed.host_mut().write(0, reg::IRQ_ENABLE, 0);
    testbed.host_mut().write(0, reg::IRQ_STATUS, 7);
    testbed.host_mut().write(0, reg::TX_POST, 0);
    testbed.drain(1_000_000);
    assert_eq!(testbed.read_register(0, reg::IRQ_STATUS) & reg::IRQ_ERROR, reg::IRQ_ERROR);
    assert!(!testbed.interrupts(0));
    testbed.host_mut().write(0, reg::IRQ_ENABLE, reg::IRQ_ERROR);
    // The host's driver may clear it at once.
    let raised = (0..10_000).any(|_| {
        testbed.step();
        testbed.interrupts(0)
    });
    assert!(raised);
    testbed.host_mut().write(0, reg::IRQ_STATUS, reg::IRQ_ERROR);
    testbed.drain(10_000);
    assert!(!testbed.interrupts(0));
}

#[test]
fn messages_that_make_no_sense_are_refused_and_told() {
    let mut testbed = quiet(2);
    // REQs that lie about their source or destination, of a card that is not there, to a place that is none, a burst
    // that nobody has granted.
    let message = |kind: u64, source: u64, dest: u64| kind << 60 | source << 52 | dest << 48 | 64 << 16 | 64;
    for (register, value) in [
        (0x1040, message(1, 0, 0)),
        (0x1040, message(1, 1, 1)),
        (0x10c0, message(1, 3, 0)),
        (0x1000, message(1, 0, 0)),
        (0x1058, message(1, 1, 0)),
        (0x1050, message(9, 1, 0)),
        (0x9008, message(4, 1, 0)),
    ] {
        testbed.host_mut().write(0, register, value);
        testbed.drain(100_000);
        assert_eq!(testbed.read_register(0, reg::ERRORS), reg::ERROR_PROTOCOL, "{register:x}");
        testbed.host_mut().write(0, reg::ERRORS, reg::ERROR_PROTOCOL);
        testbed.drain(2_000_000);
        assert_eq!(testbed.read_register(0, reg::ERRORS), 0, "{register:x}");
        assert!(testbed.is_linked(0) && testbed.is_linked(1), "{register:x}");
    }
    // And it works as before.
    let frame = frame_between(1, 0);
    testbed.send_raw(1, &frame, check_sequence(&frame));
    testbed.drain(1_000_000);
    assert_eq!(testbed.raw.len(), 1);
}

#[test]
fn a_burst_that_nobody_has_granted_goes_nowhere_and_is_counted() {
    let mut testbed = quiet(2);
    // After one that was: card 0 has granted as much before.
    let frame = frame_between(1, 0);
    testbed.send_raw(1, &frame, check_sequence(&frame));
    testbed.drain(1_000_000);
    let message = |kind: u64, more: u64| kind << 60 | 1 << 52 | more;
    let burst =
        [message(3, 1 << 16 | 9), message(4, 60)].into_iter().chain([0x55; 8]).chain([message(1, 1 << 59)]);
    for (n, word) in burst.enumerate() {
        testbed.host_mut().write(0, if n == 0 { 0x9000 } else { 0x9008 }, word);
    }
    testbed.drain(1_000_000);
    assert_eq!((testbed.raw.len(), count(&mut testbed, "drop_stale")), (1, 1));
    assert!(testbed.is_linked(1));
    testbed.send_raw(1, &frame, check_sequence(&frame));
    testbed.drain(1_000_000);
    assert_eq!(testbed.raw.len(), 2);
}

#[test]
fn a_reset_of_the_card_leaves_nothing_of_a_frame() {
    let mut testbed = quiet(2);
    let long = Stamp { port: 0, dest: 1, high: false, sequence: 1, sent_ns: 0, frame_bytes: 1518 };
    let long = long.frame(Mac([2, 0, 0, 0, 0, 0]));
    let frame = frame_between(0, 1);
    // In the middle of it: it takes 12 us.
    testbed.send_raw(0, &long, check_sequence(&long));
    let at_ps = testbed.now_ps() + 6_000_000;
    testbed.schedule([
        Scheduled { at_ps, fault: Fault::Reset(0, CORE) },
        Scheduled { at_ps: at_ps + 1_000_000, fault: Fault::Release(0) },
    ]);
    testbed.run_until(testbed.now_ns() + 20_000);
    // Its rest is no frame, which a card that is not enabled would refuse.
    assert_eq!(count(&mut testbed, "rx_disabled"), 0);
    testbed.schedule([Scheduled { at_ps: testbed.now_ps(), fault: Fault::SetUp(0) }]);
    testbed.run_until(testbed.now_ns() + 300_000);
    testbed.send_raw(0, &frame, check_sequence(&frame));
    testbed.drain(1_000_000);
    assert_eq!(testbed.raw.len(), 1);
}

#[test]
fn however_many_of_the_shortest_frames_of_the_host_wait_all_leave() {
    // Over a fast bus they come twice as fast as they leave, so that the output FIFO is full of them.
    let setup = Setup {
        bus_period_ps: PCI_133_PS,
        bus_extra_cycles: 0,
        ..Setup::new(&table(2, true, false).unwrap())
    };
    let mut testbed = Testbed::new(&setup);
    for _ in 0..3_000 {
        while !testbed.host_mut().transmit(0, &[0; 14]) {
            testbed.step();
        }
    }
    let waiting = 3_000 - testbed.raw.len();
    testbed.drain(20_000_000);
    assert_eq!(testbed.raw.len(), 3_000);
    assert!(waiting > 600, "{waiting}");
}

#[test]
fn an_answer_that_comes_when_its_tag_has_gone_round_is_nobodys() {
    // Read after read, some sixty of them until a late answer comes: a sixteenth would be of its tag.
    let mut testbed = quiet(2);
    let begin_ps = testbed.now_ps();
    testbed.schedule(
        (0..12).map(|n| Scheduled { at_ps: begin_ps + 80_000_000 * n, fault: Fault::AnswerLate(8) }),
    );
    let mut posted = 0u32;
    while testbed.now_ps() < begin_ps + 1_040_000_000 {
        if testbed.host_mut().transmit(0, &posted.to_be_bytes().repeat(15)) {
            posted += 1;
        }
        testbed.step();
    }
    testbed.drain(20_000_000);
    let failed = count(&mut testbed, "tx_failed");
    assert_eq!(failed, 12 * 8);
    assert_eq!(testbed.raw.len() as u64 + failed, u64::from(posted));
    let mut last = None;
    for (_, frame) in &testbed.raw {
        assert!(frame.chunks(4).all(|word| *word == frame[..4]), "{frame:x?}");
        assert!(last < Some(&frame[..4]), "{last:x?} {frame:x?}");
        last = Some(&frame[..4]);
    }
}

#[test]
fn words_that_follow_each_other_count_each() {
    let mut testbed = quiet(2);
    let frame = frame_between(0, 1);
    // At the receiver: the sender stops after the first, when others are on their way.
    let wrong = |testbed: &mut Testbed| {
        let counters = read_counters(testbed, 1);
        counters.into_iter().find(|c| c.0 == "bus_parity").unwrap().1
    };
    let mut most = 0;
    for n in moments(100) {
        let before = wrong(&mut testbed);
        testbed.send_raw(0, &frame, check_sequence(&frame));
        let at_ps = while_it_crosses(&testbed, n);
        testbed.schedule([Scheduled { at_ps, fault: Fault::CorruptWords(4, 1) }]);
        testbed.run_until(testbed.now_ns() + 130_000);
        most = most.max(wrong(&mut testbed) - before);
    }
    assert!(most >= 3, "{most}");
}

#[test]
fn whenever_a_word_turns_over_on_the_way_to_the_host_its_frame_is_right_or_counted() {
    // No routes on the cards: everything goes through the host.
    let mut setup = Setup::new(&table(2, false, false).unwrap());
    setup.host_table = table(2, true, false).unwrap();
    let mut testbed = Testbed::new(&setup);
    let frame = frame_between(0, 1);
    // All but the highest bit, which in a descriptor says that it is one.
    for n in moments(130) {
        let before = (testbed.raw.len(), count(&mut testbed, "drop_host"));
        testbed.send_raw(0, &frame, check_sequence(&frame));
        let at_ps = testbed.now_ps() + 1_000_000 + 15_000 * n;
        testbed.schedule([Scheduled { at_ps, fault: Fault::CorruptWords(1, u64::MAX >> 1) }]);
        testbed.drain(200_000);
        let left = testbed.raw.len() - before.0;
        let counted = count(&mut testbed, "drop_host") - before.1;
        if let Some((_, sent)) = testbed.raw.get(before.0) {
            assert_eq!(sent[34..], frame[34..], "{n}");
        }
        assert_eq!(left as u64 + counted, 1, "{n}");
    }
    assert!(count(&mut testbed, "drop_host") > 5);
}
