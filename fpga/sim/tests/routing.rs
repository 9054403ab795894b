//! The paper's scenarios on three cards, shorter than the experiments: the same rates, losses only where they may be.

use causeway_nic_driver::RuleTable;
use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::report::experiments::{mesh, routing, slow_mix, two_to_one, unequal};
use causeway_nic_sim::scenario::{Outcome, ResponsePolicy, Scenario, run, source, table};
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::Source;

fn outcome(name: &str) -> Outcome {
    let scenario = routing().into_iter().find(|s| s.name == name).unwrap();
    checked(scenario.lasting(800, 1_200))
}

/// Runs, and holds the scoreboard's word: every frame bit-exact and in order, every loss counted.
fn checked(scenario: Scenario) -> Outcome {
    let outcome = run(&scenario).unwrap();
    assert!(outcome.errors.is_empty(), "{}: {:?}", scenario.name, outcome.errors);
    outcome
}

fn assert_gbps(outcome: &Outcome, expected: f64) {
    let gbps = outcome.delivered_bps() / 1e9;
    assert!(
        (gbps / expected - 1.0).abs() < 0.005,
        "{}: {gbps} Gbit/s, not {expected}",
        outcome.scenario.name
    );
}

#[test]
fn a_slow_path_is_bound_by_the_host() {
    let outcome = outcome("A");
    assert_gbps(&outcome, 0.403);
    assert_eq!(outcome.lost(), outcome.counted("drop_fifo_host_low"));
}

#[test]
fn b_c_e_f_lose_nothing() {
    for (name, gbps) in [("B", 1.0), ("C", 2.0), ("E", 1.0), ("F", 3.0)] {
        let outcome = outcome(name);
        assert_gbps(&outcome, gbps);
        assert_eq!(outcome.lost(), 0, "{name}");
        assert_eq!(outcome.counted("rx_slow"), 0, "{name}");
    }
}

#[test]
fn d_halves_both_inputs_and_drops_only_there() {
    let outcome = outcome("D");
    assert_gbps(&outcome, 1.0);
    for port in 0..2 {
        let share = outcome.delivered_pps(|key| key.0 == port) / outcome.offered_pps(|key| key.0 == port);
        assert!((share - 0.5).abs() < 0.01, "port {port}: {share}");
    }
    assert_eq!(outcome.lost(), outcome.counted("drop_fifo_nic2_low"));
    assert!(outcome.lost() > 1_000);
}

#[test]
fn large_frames_and_odd_sizes_cross_whole() {
    for frame_bytes in [65, 71, 127, 1513, 1518] {
        let mut scenario = Scenario::new("sizes", 3, mesh(3, frame_bytes)).lasting(200, 300);
        assert_eq!(checked(scenario.clone()).lost(), 0, "{frame_bytes}");
        scenario.fast_path = false;
        scenario.sources.iter_mut().for_each(|s| s.load = 0.1);
        assert_eq!(checked(scenario).lost(), 0, "{frame_bytes}, slow path");
    }
}

#[test]
fn random_spacing_loses_nothing_either() {
    let mut scenario = Scenario::new("poisson", 4, mesh(4, 64)).lasting(300, 1_200);
    for source in &mut scenario.sources {
        source.spacing = causeway_nic_sim::traffic::Spacing::Poisson;
        source.load = 0.7;
    }
    assert_eq!(checked(scenario).lost(), 0);
}

#[test]
fn classified_slow_path_loses_low_class_only() {
    // 0.7 Gbit/s are 1.04 Mpkt/s, half of them high: 521 k, below the host's 600 k.
    let on = checked(slow_mix("on", 0.7, 0.5, true).lasting(1_500, 1_500));
    assert_eq!(on.counted("drop_fifo_host_high"), 0);
    assert!(on.counted("drop_fifo_host_low") > 500);
    let off = checked(slow_mix("off", 0.7, 0.5, false).lasting(1_500, 1_500));
    let part = |high| off.delivered_pps(|k| k.2 == high) / off.offered_pps(|k| k.2 == high);
    assert!((part(true) - part(false)).abs() < 0.03, "{} {}", part(true), part(false));
}

#[test]
fn classified_fast_path_loses_low_class_only() {
    let outcome = checked(two_to_one("D", 0.8, 64, 0.25).lasting(1_500, 1_500));
    assert_eq!(outcome.counted("drop_fifo_nic2_high"), 0);
    assert_gbps(&outcome, 1.0);
    let low = outcome.delivered_pps(|k| !k.2) / outcome.offered_pps(|k| !k.2);
    assert!((low - 0.5).abs() < 0.02, "{low}");
}

#[test]
fn what_is_lost_of_the_high_class_is_counted_as_such() {
    let outcome = checked(two_to_one("D-high", 1.0, 64, 1.0).lasting(1_200, 500));
    assert!(outcome.lost() > 100);
    assert_eq!(outcome.lost(), outcome.counted("drop_fifo_nic2_high"));
    let slow = checked(slow_mix("slow-high", 1.0, 1.0, true).lasting(1_200, 500));
    assert!(slow.lost() > 100);
    assert_eq!(slow.lost(), slow.counted("drop_fifo_host_high"));
}

#[test]
fn eight_cards_fill_the_bus_and_share_it() {
    let outcome = checked(Scenario::new("mesh-8", 8, mesh(8, 64)).lasting(1_000, 1_000));
    assert!(outcome.bus_busy() > 0.99);
    let gbps = outcome.delivered_bps() / 1e9;
    assert!((4.5..4.98).contains(&gbps), "{gbps}");
    let by_port: Vec<f64> = (0..8).map(|p| outcome.delivered_pps(|k| k.0 == p)).collect();
    let (least, most) = by_port.iter().fold((f64::MAX, 0.0f64), |(a, b), &v| (a.min(v), b.max(v)));
    assert!(least / most > 0.8, "{by_port:?}");
    assert_eq!(outcome.lost(), outcome.counted("drop_fifo"));
}

#[test]
fn grants_of_many_cards_are_used_in_turn() {
    // Card 7 gets the bus when much waits in it for all others: from then on several grants wait at it. That nobody has
    // a second turn before the others is an assertion of every simulation.
    let mut testbed = Testbed::new(&Setup::new(&table(8, true, true).unwrap()));
    let now_ps = testbed.now_ps();
    testbed.schedule([
        Scheduled { at_ps: now_ps, fault: Fault::Starve(7) },
        Scheduled { at_ps: now_ps + 1_500_000_000, fault: Fault::Feed(7) },
    ]);
    let others: Vec<u8> = (0..7).collect();
    testbed.add_source(Source { frame_bytes: 512, high_share: 0.5, ..source(7, &others) }, 1);
    testbed.run_until(testbed.now_ns() + 2_200_000);
    testbed.stop_sources();
    testbed.drain(50_000_000);
    assert!(testbed.scoreboard.errors.is_empty(), "{:?}", testbed.scoreboard.errors);
    assert_eq!(testbed.scoreboard.lost(), 0);
}

#[test]
fn the_minimum_grant_ends_empty_bursts() {
    let without = checked(two_to_one("D", 1.0, 1518, 0.0).lasting(1_000, 1_000));
    let mut scenario = two_to_one("D-min", 1.0, 1518, 0.0).lasting(1_000, 1_000);
    scenario.grant_min_words = 191;
    let with = checked(scenario);
    assert!(without.counted("bursts_empty") > 10 * with.counted("bursts_sent"));
    assert_eq!(with.counted("bursts_empty"), 0);
    let (with_busy, without_busy) = (with.bus_busy(), without.bus_busy());
    assert!(with_busy < 0.6 * without_busy, "{with_busy} {without_busy}");
    assert_gbps(&with, without.delivered_bps() / 1e9);
}

#[test]
fn high_first_saves_the_high_class_of_an_unequal_pair() {
    let part = |outcome: &Outcome| outcome.delivered_pps(|k| k.2) / outcome.offered_pps(|k| k.2);
    let round_robin = checked(unequal("round-robin", ResponsePolicy::RoundRobin).lasting(1_000, 1_000));
    let high_first = checked(unequal("high-first", ResponsePolicy::HighFirst).lasting(1_000, 1_000));
    assert!(part(&round_robin) < 0.7, "{}", part(&round_robin));
    assert!(part(&high_first) > 0.99, "{}", part(&high_first));
    assert_eq!(high_first.counted("drop_fifo_nic2_high"), 0);
}

#[test]
fn the_slow_path_leaves_first() {
    // Port 2 gets line rate from port 0 on the fast path, and from port 1 what only the host knows a route for.
    let mut text: String = (0..3).map(|n| format!("nic {n} mac 02:00:00:00:00:0{n}\n")).collect();
    text += "route 10.0.2.0/24 nic 2 mac 02:00:00:00:02:02\n";
    let table = RuleTable::parse(&text).unwrap();
    let host_table = RuleTable::parse(&(text + "route 10.0.3.0/24 nic 2 mac 02:00:00:00:02:03\n")).unwrap();
    let mut testbed = Testbed::new(&Setup { host_table, seed: 3, ..Setup::new(&table) });
    let begin_ns = testbed.now_ns() + 500_000;
    testbed.scoreboard.measure(begin_ns..begin_ns + 1_500_000);
    testbed.add_source(source(0, &[2]), 1);
    testbed.add_source(Source { load: 0.2, ..source(1, &[3]) }, 1);
    testbed.run_until(begin_ns + 1_500_000);
    testbed.stop_sources();
    testbed.drain(50_000_000);
    assert!(testbed.scoreboard.errors.is_empty(), "{:?}", testbed.scoreboard.errors);
    let slow = &testbed.scoreboard.flows[&(1, 3, false)];
    let fast = &testbed.scoreboard.flows[&(0, 2, false)];
    assert_eq!(slow.sent, slow.delivered);
    assert!(slow.sent > 400);
    // The fast output FIFO is full, which alone takes 143 us to pass.
    let longest_ns = *slow.latency_ns.iter().max().unwrap();
    assert!(longest_ns < 60_000, "{longest_ns}");
    assert!(fast.latency_ns.iter().max() > Some(&143_000));
    let part = fast.delivered_measured as f64 / fast.sent_measured as f64;
    assert!((part - 0.8).abs() < 0.01, "{part}");
}
