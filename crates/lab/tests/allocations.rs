//! Nothing is allocated for a frame: trials of few and of many frames allocate alike.

#[path = "../../elements/tests/counting/mod.rs"]
mod counting;

use causeway_lab::search::{Request, Tester};
use causeway_lab::tester::{Attached, Control, Manner, Ports};
use causeway_netio::memory;
use causeway_packet::wire::MacAddr;
use causeway_results::traffic::Traffic;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Blocks by which two trials may differ: what threads and the test's own harness take now and then.
const SLACK: u64 = 100;

#[test]
fn a_frame_costs_no_allocation() {
    let (a, b) = memory::pair("allocations", 4_096).expect("a pair");
    let attach = |port, network: &str| {
        let hosts = [Some(network.parse().expect("a network")), None];
        Attached::new(port, MacAddr([2; 6]), hosts).expect("a port")
    };
    let ports = vec![attach(a, "198.18.0.0/18"), attach(b, "198.18.64.0/18")];
    let settle = Duration::from_millis(300);
    let manner = Manner { processors: Vec::new(), settle, pause: Duration::ZERO };
    let control = Control::new(Default::default());
    let mut tester = Ports::new(ports, Traffic::simple(64), manner, control).expect("a tester");
    let mut trial = |load_fps| {
        let before = counting::blocks();
        let outcome = tester.trial(&Request::new(load_fps, 200_000_000)).expect("an outcome");
        (outcome.sent(), counting::blocks() - before)
    };
    trial(1_000.0);
    let (few, blocks) = trial(1_000.0);
    let (many, more) = trial(100_000.0);
    assert!(many > few + 1_000, "{few} and {many} frames");
    assert!(more < blocks + SLACK, "{few} frames took {blocks} blocks, {many} took {more}");
}
