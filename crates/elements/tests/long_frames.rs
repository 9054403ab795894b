//! What only frames have room for that are longer than usual.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_packet::pool;
use std::time::Duration;

/// Runs a configuration under simulated time, with frames of 8 KiB, until it stops.
fn run(text: &str) -> Router {
    pool::init(pool::Config { frame_size: 8_192, ..pool::Config::default() }).expect("all ask for the same");
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    assert_eq!(router.wait(Some(Duration::from_secs(60))), Some(Event::StopRequested { worker: 0 }));
    router
}

/// Whole ones of so many bytes, and fragments that had no room, of three packets of so many bytes behind the UDP header.
fn reassembled(bytes: usize, whole: usize) -> [u64; 2] {
    let router = run(&format!(
        "source :: InfiniteSource(LENGTH {bytes}, LIMIT 3, STOP false) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7)
         -> fragments :: IPFragmenter(1500) -> parts :: Counter -> r :: IPReassembler
         -> CheckIPHeader -> CheckUDPHeader -> CheckLength({whole}) -> c :: Counter -> Discard;
         fragments[1] -> Discard; TimedSource(INTERVAL 1, LIMIT 1, STOP true) -> Discard;"
    ));
    assert!(router.read("parts", "count", "").unwrap().parse::<u64>().unwrap() >= 15, "they are fragments");
    let long = router.counters().filter(|(line, _)| line.element == "r" && line.name.ends_with("too-long"));
    [router.read("c", "count", "").unwrap().parse().unwrap(), long.map(|(_, n)| n).sum()]
}

#[test]
fn a_datagram_of_nearly_8_kb_becomes_whole() {
    assert_eq!(reassembled(7_800, 7_828), [3, 0]);
}
