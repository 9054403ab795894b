//! What happens to a router when something around a card fails: nothing goes to a wrong port, comes twice or comes
//! wrong, flows between healthy cards lose nothing, every loss is counted, and when the fault ends the router is whole
//! again within a stated time.

mod bursts;
#[allow(dead_code)] // Each test file uses its own part.
#[path = "../common/mod.rs"]
mod common;
mod driver;
mod quiet;

use causeway_nic_driver::registers as reg;
use causeway_nic_sim::card::Edges;
use causeway_nic_sim::faults::Fault;
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::scenario::{source, table};
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::Source;
use common::{CORE, Router, mesh, setup};

/// All cases with `NIC_LONG` in the environment; otherwise every other one.
fn some<T>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(if std::env::var_os("NIC_LONG").is_some() { 1 } else { 2 })
}

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
    for (seed, at_ns) in some([(1, 100_000), (2, 103_417), (3, 107_001), (4, 109_123)]) {
        let mut router = Router::new(&setup(seed), &mesh(0.3));
        router.schedule(&[(at_ns, Fault::Unplug(2)), (at_ns + 400_000, Fault::Plug(2))]);
        router.run(at_ns + 400_000);
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
fn a_peer_that_is_reset_takes_nobody_with_it() {
    for (seed, at_ns) in some([(5, 100_000), (6, 103_417), (7, 107_001), (8, 109_123)]) {
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
    for seed in some(10..16) {
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
        router.run(1_500_000);
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

#[test]
fn an_empty_fifo_is_room_enough_for_any_smallest_grant() {
    // Four ticks, after which any room is enough, take longer than this test.
    let registers = vec![(reg::GRANT_MIN_WORDS, 0xfff), (reg::PATIENCE, 0xffff)];
    let mut testbed = Testbed::new(&Setup { registers, ..Setup::new(&table(2, true, false).unwrap()) });
    let frame = quiet::frame_between(0, 1);
    testbed.send_raw(0, &frame, check_sequence(&frame));
    testbed.run_until(testbed.now_ns() + 100_000);
    assert_eq!(testbed.raw.len(), 1);
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
fn words_for_the_host_that_turn_over_cost_their_frames_alone() {
    // Everything to port 2 takes the slow path.
    let mut setup = setup(29);
    setup.table = table(3, false, true).unwrap();
    let sources = [Source { load: 0.2, ..source(0, &[2]) }, Source { load: 0.1, ..source(1, &[2, 0]) }];
    let mut router = Router::new(&setup, &sources);
    for n in 0..200u64 {
        // All but the highest bit, which in a descriptor says that it is one.
        let fault = Fault::CorruptWords(1, u64::MAX >> 1);
        router.schedule(&[(50_000 + 9_001 * n, fault)]);
    }
    router.run(2_000_000);
    router.heal();
    assert!(router.counted("bus_parity") > 20);
    assert!(router.counted("drop_host") > 5);
    router.finish().assert_all_counted();
}
