//! What a driver does to cards under traffic, at any moment: takes peers out and puts them back, stops cards and lets
//! them go on; and what it reads when words turn over.

use causeway_nic_driver::registers as reg;
use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::scenario::{read_counters, table};
use causeway_nic_sim::testbed::{Setup, Testbed};

use super::common::{Router, mesh, setup};

#[test]
fn a_peer_that_the_driver_takes_out_and_puts_back_costs_the_others_nothing() {
    let mut router = Router::new(&setup(40), &mesh(0.4));
    let base = u64::from(reg::bus_address(2, 0));
    for n in 0..40u64 {
        let at_ns = 20_000 + 10_007 * n;
        let nic = (n % 2) as u8;
        // For some bus cycles, less than a burst takes, and for longer than a tick.
        let back_ns = at_ns + [100, 600, 6_000][(n / 2 % 3) as usize];
        router.schedule(&[
            (at_ns, Fault::Write(nic, (reg::PEER_BASE + 16, base))),
            (back_ns, Fault::Write(nic, (reg::PEER_BASE + 16, base | reg::PEER_PRESENT))),
        ]);
    }
    router.run(430_000);
    router.heal();
    let done = router.finish();
    assert_eq!(done.lost_between(0, 1), 0);
    assert!(done.counted(0, "slow_no_port") > 10, "{:?}", done.counters);
    done.assert_all_counted();
}

#[test]
fn a_card_that_is_stopped_and_let_go_costs_the_others_nothing() {
    let mut router = Router::new(&setup(41), &mesh(0.4));
    for n in 0..40u64 {
        let at_ns = 20_000 + 10_007 * n;
        let back_ns = at_ns + [100, 600, 6_000][(n % 3) as usize];
        router.schedule(&[
            (at_ns, Fault::Write(2, (reg::CONTROL, 0))),
            (back_ns, Fault::Write(2, (reg::CONTROL, reg::CONTROL_ENABLE))),
        ]);
    }
    router.run(430_000);
    router.heal();
    let done = router.finish();
    assert_eq!(done.lost_between(0, 1), 0);
    assert!(done.counted(2, "rx_disabled") > 10, "{:?}", done.counters);
    done.assert_all_counted();
}

#[test]
fn what_is_read_is_right_or_nobody_answers() {
    let mut testbed = Testbed::new(&Setup::new(&table(2, true, false).unwrap()));
    let right = testbed.read_register(0, reg::PARAMETERS);
    assert_ne!(right, u64::MAX);
    // Of either parity.
    for words in [1, 3] {
        testbed.host_mut().write(0, reg::GRANT_MIN_WORDS, words);
        testbed.drain(10_000);
        assert_eq!(testbed.read_register(0, reg::GRANT_MIN_WORDS), words);
    }
    let mut refused = 0;
    for n in 0..20 {
        let at_ps = testbed.now_ps() + 15_000 * n;
        testbed.schedule([Scheduled { at_ps, fault: Fault::CorruptWords(1, 4) }]);
        let read = testbed.read_register(0, reg::PARAMETERS);
        assert!(read == right || read == u64::MAX, "{n}: {read:x}");
        refused += u32::from(read != right);
        // If nothing has met the fault, this does.
        testbed.read_register(1, reg::ID);
        assert_eq!(testbed.read_register(0, reg::PARAMETERS), right, "{n}");
    }
    assert!(refused > 2, "{refused}");
}

#[test]
fn a_read_ends_whenever_its_card_vanishes() {
    let mut testbed = Testbed::new(&Setup::new(&table(2, true, false).unwrap()));
    let right = testbed.read_register(0, reg::PARAMETERS);
    let mut unanswered = 0;
    for n in 0..24 {
        let at_ps = testbed.now_ps() + 15_000 * n;
        testbed.schedule([Scheduled { at_ps, fault: Fault::Unplug(0) }]);
        let read = testbed.read_register(0, reg::PARAMETERS);
        assert!(read == right || read == u64::MAX, "{n}: {read:x}");
        unanswered += u32::from(read != right);
        testbed.run_until(testbed.now_ns() + 1_000);
        testbed.schedule([Scheduled { at_ps: testbed.now_ps(), fault: Fault::Plug(0) }]);
        testbed.run_until(testbed.now_ns() + 1_000);
        assert_eq!(testbed.read_register(0, reg::PARAMETERS), right, "{n}");
    }
    assert!((3..24).contains(&unanswered), "{unanswered}");
}

#[test]
fn a_peer_that_goes_down_is_told_and_nothing_else() {
    let mut testbed = Testbed::new(&Setup::new(&table(2, true, false).unwrap()));
    let at_ps = testbed.now_ps();
    testbed.schedule([Scheduled { at_ps, fault: Fault::Unplug(1) }]);
    testbed.host_mut().write(0, reg::PEER_RESYNC, 2);
    testbed.run_until(testbed.now_ns() + 300_000);
    assert_eq!(testbed.read_register(0, reg::ERRORS), reg::ERROR_ABORT | reg::ERROR_PEER_DOWN);
}

#[test]
fn a_rule_that_is_not_in_force_yet_is_read_back() {
    let mut testbed = Testbed::new(&Setup::new(&table(2, true, false).unwrap()));
    testbed.host_mut().write(0, reg::CLASS, 0x0123_4567_89ab_cdef);
    testbed.run_until(testbed.now_ns() + 10_000);
    assert_eq!(testbed.read_register(0, reg::CLASS), 0x0123_4567_89ab_cdef);
}

#[test]
fn frames_with_either_tag_may_be_four_bytes_longer() {
    let mut testbed = Testbed::new(&Setup::new(&table(2, true, false).unwrap()));
    for (tag, refused) in [([0x81, 0x00], 0), ([0x88, 0xa8], 0), ([0x88, 0x00], 1)] {
        let mut frame = vec![0; 1_518];
        frame[12..14].copy_from_slice(&tag);
        testbed.send_raw(0, &frame, check_sequence(&frame));
        testbed.drain(1_000_000);
        let counters = read_counters(&mut testbed, 0);
        let bad = counters.iter().find(|c| c.0 == "rx_bad_length").unwrap().1;
        assert_eq!(bad, refused, "{tag:x?}");
    }
}
