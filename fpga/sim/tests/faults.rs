//! What happens to a router when something around a card fails: nothing goes to a wrong port, comes twice or comes
//! wrong, flows between healthy cards lose nothing, every loss is counted, and when the fault ends the router is whole
//! again within a stated time.

#[allow(dead_code)] // Each test file uses its own part.
mod common;

use causeway_nic_driver::registers as reg;
use causeway_nic_sim::card::Edges;
use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::scenario::{counted_losses, read_counters, source, table};
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::{Source, Stamp};
use common::{CORE, Router, mesh, setup};

#[test]
fn a_peer_that_is_not_there_costs_the_others_nothing() {
    let mut setup = setup(1);
    setup.absent = vec![2];
    let mut sources = mesh(0.3);
    sources.pop();
    let mut router = Router::new(&setup, &sources);
    router.run(2_000_000);
    let done = router.finish();
    assert_eq!(done.lost_between(0, 1), 0);
    assert_eq!(done.slow_between(0, 1), 0);
    // What was for it went to the host, which could not send it either.
    for nic in 0..2 {
        assert!(done.counted(nic, "slow_no_port") > 300, "{:?}", done.counters);
    }
    assert!(done.testbed.host().counters.tx_full > 300);
}

#[test]
fn a_peer_that_vanishes_and_comes_back_takes_nobody_with_it() {
    for (seed, at_ns) in [(1, 100_000), (2, 103_417), (3, 107_001), (4, 109_123)] {
        let mut router = Router::new(&setup(seed), &mesh(0.3));
        router.schedule(&[(at_ns, Fault::Unplug(2)), (at_ns + 700_000, Fault::Plug(2))]);
        router.run(at_ns + 700_000);
        router.heal();
        let done = router.finish();
        assert_eq!(done.lost_between(0, 1), 0, "seed {seed}");
        assert_eq!(done.slow_between(0, 1), 0, "seed {seed}");
        assert!(done.counted(0, "slow_no_port") > 50);
        assert!(done.counted(0, "bus_aborts") > 0);
        done.assert_all_counted();
    }
}

#[test]
fn whenever_a_peer_vanishes_its_frame_has_left_or_is_counted() {
    let mut testbed = quiet();
    testbed.host_mut().write(0, reg::PATIENCE, 32);
    let frame = Stamp { port: 0, dest: 1, high: false, sequence: 1, sent_ns: 0, frame_bytes: 64 };
    let frame = frame.frame(causeway_nic_driver::Mac([2, 0, 0, 0, 0, 0]));
    let lost = |testbed: &mut Testbed| counted_losses(&[read_counters(testbed, 0)], &testbed.host().counters);
    let [mut left, mut counted] = [0, 0];
    for n in 0..100 {
        testbed.run_until(testbed.now_ns() + 100_000);
        assert!(testbed.is_linked(0), "{n}");
        let before = (testbed.raw.len(), lost(&mut testbed));
        testbed.send_raw(0, &frame, check_sequence(&frame));
        // From the frame's end on to where it has arrived, every other cycle of the bus.
        let at_ps = testbed.now_ps() + 1_000_000 + 30_000 * n;
        testbed.schedule([
            Scheduled { at_ps, fault: Fault::Unplug(1) },
            Scheduled { at_ps: at_ps + 20_000_000, fault: Fault::Plug(1) },
        ]);
        testbed.run_until(testbed.now_ns() + 30_000);
        let [leaves, counts] = [testbed.raw.len() - before.0, (lost(&mut testbed) - before.1) as usize];
        // Both, if it vanishes in the very cycle in which it has taken the last word: then it cannot say so.
        assert!(leaves <= 1 && counts <= 1 && leaves + counts >= 1, "{n}: {leaves} {counts}");
        left += leaves;
        counted += counts;
    }
    println!("{left} {counted}");
    assert!(left > 10 && counted > 10 && left + counted <= 103, "{left} {counted}");
}

#[test]
fn a_peer_that_is_reset_takes_nobody_with_it() {
    for (seed, at_ns) in [(5, 100_000), (6, 103_417), (7, 107_001), (8, 109_123)] {
        let mut router = Router::new(&setup(seed), &mesh(0.3));
        router.schedule(&[
            (at_ns, Fault::Reset(2, CORE)),
            (at_ns + 1_000, Fault::Release(2)),
            (at_ns + 200_000, Fault::SetUp(2)),
        ]);
        router.run(at_ns + 200_000);
        router.heal();
        let done = router.finish();
        assert_eq!(done.lost_between(0, 1), 0, "seed {seed}");
        assert_eq!(done.slow_between(0, 1), 0, "seed {seed}");
        assert!(done.counted(2, "rx_disabled") > 10);
        assert!(done.uncounted < 300, "{}", done.uncounted);
    }
}

#[test]
fn a_peer_that_gets_no_bus_loses_its_grant_and_the_others_go_on() {
    let mut router = Router::new(&setup(9), &mesh(0.3));
    router.schedule(&[(100_000, Fault::Starve(1)), (600_000, Fault::Feed(1))]);
    router.run(600_000);
    router.heal();
    let done = router.finish();
    assert_eq!(done.lost_between(0, 2), 0);
    // What it is sent arrives, but it cannot answer.
    assert!([0, 2].into_iter().all(|nic| done.counted(nic, "slow_no_port") > 50), "{:?}", done.counters);
    done.assert_all_counted();
}

#[test]
fn resets_of_one_clock_of_the_mac_repeat_and_break_nothing() {
    let rx = Edges { rx: true, ..Edges::default() };
    let tx = Edges { tx: true, ..Edges::default() };
    for seed in 10..16 {
        let mut router = Router::new(&setup(seed), &mesh(0.3));
        for n in 0..8 {
            let at_ns = 50_000 + 40_000 * n + 111 * seed;
            router.schedule(&[(at_ns, Fault::Reset(0, if n % 2 == 0 { rx } else { tx }))]);
            router.schedule(&[(at_ns + 300 + 900 * (n / 4), Fault::Release(0))]);
        }
        router.run(500_000);
        router.heal();
        let done = router.finish();
        assert_eq!(done.lost_between(1, 2), 0, "seed {seed}");
        // Of each reset: the frame that comes or leaves, and what lay in the crossing.
        assert!(done.uncounted <= 8 * 3, "seed {seed}: {}", done.uncounted);
        assert!(done.testbed.line_errors.iter().all(|e| e.0 == 0), "{:?}", done.testbed.line_errors);
    }
}

#[test]
fn a_link_that_is_lost_and_comes_back_is_received_again() {
    let mut router = Router::new(&setup(17), &mesh(0.3));
    let rx = Edges { rx: true, ..Edges::default() };
    router.schedule(&[
        (100_000, Fault::StopReceiveClock(1)),
        (150_000, Fault::Reset(1, rx)),
        (200_000, Fault::Release(1)),
        (300_000, Fault::StartReceiveClock(1)),
    ]);
    router.run(300_000);
    router.heal();
    let done = router.finish();
    assert_eq!(done.lost_between(0, 2), 0);
    assert!(done.uncounted <= 1, "{}", done.uncounted);
}

#[test]
fn reads_that_are_not_answered_or_too_late_cost_their_frames_alone() {
    // Everything to port 2 takes the slow path.
    let mut setup = setup(18);
    setup.table = table(3, false, true).unwrap();
    for fault in [Fault::IgnoreReads(5), Fault::AnswerLate(5), Fault::IgnoreReads(40)] {
        let sources = [Source { load: 0.2, ..source(0, &[2]) }, Source { load: 0.1, ..source(1, &[2, 0]) }];
        let mut router = Router::new(&setup, &sources);
        router.schedule(&[(200_000, fault.clone())]);
        router.run(4_000_000);
        let done = router.finish();
        let failed: u64 = (0..3).map(|nic| done.counted(nic, "tx_failed")).sum();
        assert_eq!(failed, if fault == Fault::IgnoreReads(40) { 40 } else { 5 });
        done.assert_all_counted();
    }
}

#[test]
fn words_that_turn_over_on_the_bus_are_noticed() {
    let mut errors = 0;
    for seed in 20..24 {
        let mut router = Router::new(&setup(seed), &mesh(0.3));
        for n in 0..30u64 {
            let fault = Fault::CorruptWords(1 + n as u32 % 4, 1 << (n * 13 % 64));
            router.schedule(&[(20_000 + 17_000 * n + 101 * seed, fault)]);
        }
        router.run(600_000);
        router.heal();
        errors += router.counted("bus_parity") + router.counted("bus_aborts");
        let status = router.testbed.read_register(0, reg::ERRORS);
        assert!(status & (reg::ERROR_PARITY | reg::ERROR_ABORT) != 0, "{status:x}");
        router.finish().assert_all_counted();
    }
    println!("{errors}");
    assert!(errors > 60, "{errors}");
}

#[test]
fn a_link_that_the_driver_asks_for_anew_loses_nothing() {
    let mut router = Router::new(&setup(25), &mesh(0.4));
    for n in 0..20u64 {
        let nic = (n % 3) as u8;
        router.schedule(&[(50_000 + 20_003 * n, Fault::Write(nic, (reg::PEER_RESYNC, 0b111 & !(1 << nic))))]);
    }
    router.run(500_000);
    router.heal();
    assert!(router.counted("peer_resyncs") >= 20);
    let done = router.finish();
    done.assert_all_counted();
    assert_eq!(done.testbed.scoreboard.lost(), 0);
}

#[test]
fn another_table_comes_into_force_between_two_frames() {
    let setup = setup(26);
    let mut router = Router::new(&setup, &mesh(0.4));
    let mut short = setup.table.clone();
    short.routes.truncate(1);
    for round in 0..8 {
        let table = if round % 2 == 0 { &short } else { &setup.table };
        (0..3).for_each(|nic| router.testbed.load(nic, table));
        // The writes alone take 90 us of the bus.
        router.run(200_000);
    }
    let done = router.finish();
    done.assert_all_counted();
    assert!((0..3).all(|nic| done.counted(nic, "rx_slow") > 30), "{:?}", done.counters);
}

#[test]
fn a_smallest_grant_above_the_fifo_does_not_hang() {
    let mut setup = setup(27);
    setup.registers.push((reg::GRANT_MIN_WORDS, 0xfff));
    let mut router = Router::new(&setup, &mesh(0.2));
    router.run(1_000_000);
    let done = router.finish();
    assert_eq!(done.testbed.scoreboard.lost(), 0);
}

/// Two cards and no traffic.
fn quiet() -> Testbed {
    Testbed::new(&Setup::new(&table(2, true, false).unwrap()))
}

#[test]
fn descriptors_that_cannot_be_meant_are_refused_and_told() {
    let mut testbed = quiet();
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
    assert_eq!(testbed.read_register(0, reg::TX_STATUS) & 0xffff, 205);
}

/// The value of a counter of card 0.
fn count(testbed: &mut Testbed, name: &str) -> u64 {
    read_counters(testbed, 0).into_iter().find(|c| c.0 == name).unwrap().1
}

#[test]
fn a_request_that_is_forgotten_is_made_again() {
    let mut router = Router::new(&setup(28), &mesh(0.4));
    // A SYNC that card 1 has not sent makes card 0 forget what card 1 has asked for.
    let sync = (0x1050, 5 << 60 | 1 << 52);
    for n in 0..20u64 {
        router.schedule(&[(20_000 + 20_003 * n, Fault::Write(0, sync))]);
    }
    router.run(420_000);
    router.heal();
    assert!(router.counted("peer_resyncs") > 0);
    let done = router.finish();
    done.assert_all_counted();
    assert_eq!(done.lost_between(0, 2) + done.lost_between(1, 2), 0);
}

#[test]
fn a_report_that_does_not_arrive_is_made_again() {
    let mut testbed = quiet();
    testbed.host_mut().write(0, reg::PATIENCE, 64);
    for n in 0..60 {
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
    let mut testbed = quiet();
    let frame = Stamp { port: 0, dest: 1, high: false, sequence: 1, sent_ns: 0, frame_bytes: 64 };
    let frame = frame.frame(causeway_nic_driver::Mac([2, 0, 0, 0, 0, 0]));
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
    let mut testbed = quiet();
    let frame = Stamp { port: 0, dest: 1, high: false, sequence: 1, sent_ns: 0, frame_bytes: 1518 };
    let frame = frame.frame(causeway_nic_driver::Mac([2, 0, 0, 0, 0, 0]));
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
    let mut testbed = quiet();
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
fn words_for_the_host_that_turn_over_cost_their_frames_alone() {
    // Everything to port 2 takes the slow path.
    let mut setup = setup(29);
    setup.table = table(3, false, true).unwrap();
    let sources = [Source { load: 0.2, ..source(0, &[2]) }, Source { load: 0.1, ..source(1, &[2, 0]) }];
    let mut router = Router::new(&setup, &sources);
    for n in 0..200u64 {
        let fault = Fault::CorruptWords(1, 1 << (n * 13 % 64));
        router.schedule(&[(50_000 + 9_001 * n, fault)]);
    }
    router.run(2_000_000);
    router.heal();
    assert!(router.counted("bus_parity") > 20);
    assert!(router.counted("drop_host") > 5);
    router.finish().assert_all_counted();
}

#[test]
fn messages_that_make_no_sense_are_refused_and_told() {
    let mut testbed = quiet();
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
    let frame = Stamp { port: 1, dest: 0, high: false, sequence: 1, sent_ns: 0, frame_bytes: 64 };
    let frame = frame.frame(causeway_nic_driver::Mac([2, 0, 0, 0, 0, 1]));
    testbed.send_raw(1, &frame, check_sequence(&frame));
    testbed.drain(1_000_000);
    assert_eq!(testbed.raw.len(), 1);
}
