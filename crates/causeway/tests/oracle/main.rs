//! The kernel as the oracle: what leaves a router with `causeway up` is what leaves one that has the kernel alone.
//!
//! Two routers with the same ports, addresses and neighbours are put into the same random states, and get the same random
//! packets by every port. What leaves them is compared. Needs root, iproute2, ethtool; nftables and iptables for some states.
//!
//! The environment says what is tried: `ORACLE_SEED`, `ORACLE_FIRST` (the first state's number), `ORACLE_STATES`,
//! `ORACLE_PACKETS` (of each state). A state depends on the seed and its own number alone, so one that failed is tried again by
//! `ORACLE_SEED=s ORACLE_FIRST=n ORACLE_STATES=1`. With `ORACLE_LOG` the router says what it does.

mod cable;
mod changes;
mod control;
mod directed;
mod graphs;
mod judge;
mod lessons;
mod packets;
mod plan;
mod routes;
mod space;
mod state;
mod trial;
mod twin;

use trial::{Failure, Sums, Trial};

/// States that differ before the run is given up.
const ENOUGH: usize = 10;

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn a_router_sends_what_the_kernel_would() {
    let Some(mut trial) = Trial::new() else { return };
    is_like_the_kernel(&mut trial);
}

#[test]
fn a_router_sends_from_the_driver_what_the_kernel_would() {
    forwards_in_the_driver(&["--attach", "xdp", "--driver"]);
}

#[test]
fn a_router_sends_from_the_stack_what_the_kernel_would() {
    forwards_in_the_driver(&["--attach", "tcx", "--driver"]);
}

fn forwards_in_the_driver(options: &[&str]) {
    let Some(mut trial) = Trial::with(options) else { return };
    is_like_the_kernel(&mut trial);
    let in_driver = trial.in_driver();
    println!("{in_driver} of them in the driver");
    assert!(trial.sums.simple < 300 || in_driver > 100, "the driver forwarded too few: {in_driver}");
}

fn is_like_the_kernel(trial: &mut Trial) {
    let (seed, first) = (setting("ORACLE_SEED", 1), setting("ORACLE_FIRST", 0));
    let (states, packets) = (setting("ORACLE_STATES", 10), setting("ORACLE_PACKETS", 200) as usize);
    let mut failures = 0;
    for number in first..first + states {
        if let Some(failure) = trial.state(seed, number, packets) {
            failures += 1;
            show(&failure, seed, trial);
            if failures == ENOUGH {
                break;
            }
        }
        if number % 50 == 49 {
            println!("{}", summary(&trial.sums));
        }
    }
    println!("{}", summary(&trial.sums));
    assert_eq!(failures, 0, "states in which the router differs from the kernel");
    assert_eq!(trial.lost(), 0, "frames that the hosts had no room for");
    let Sums { simple, by_graph, .. } = trial.sums;
    // Of a few packets all may be to hosts that are not known yet.
    assert!(
        simple < 300 || by_graph * 10 > simple * 5,
        "the graph forwarded too few: {by_graph} of {simple}"
    );
}

fn summary(sums: &Sums) -> String {
    let Sums { states, sent, forwarded, simple, by_graph, left } = sums;
    format!(
        "{states} states, {sent} packets, {left} frames from the kernel alone, {forwarded} of them forwarded packets; \
         of {simple} plain ones the graph forwarded {by_graph}"
    )
}

fn show(failure: &Failure, seed: u64, trial: &mut Trial) {
    let Failure { number, steps, differences } = failure;
    println!("\nstate {number} of seed {seed}: ORACLE_SEED={seed} ORACLE_FIRST={number} ORACLE_STATES=1");
    steps.iter().for_each(|step| println!("  {step}"));
    for (difference, sent) in differences.iter().take(12) {
        println!("{difference}");
        if let Some(sent) = sent {
            println!("  for {} {} by p{}: {}", sent.kind, sent.number, sent.port, judge::hex(&sent.frame));
            if let Some(to) = judge::destination(&sent.frame) {
                println!("  to {to}: {}", trial.read(&format!("forward.lookup {to}")));
            }
        }
    }
    println!("{} differences in all; punts so far:\n{}", differences.len(), trial.read("forward.punts"));
    print!("{}", trial.unlike());
}
