//! `causeway run FILE --driver` while somebody watches, a worker is stuck, or another graph takes the place of the one that runs.

use crate::flow::Flow;
use crate::net::{CAUSEWAY, Net, wait_for};
use crate::run_driver::{Configuration, SWITCHED, filled, in_driver, settle};
use crate::watch_driver::Capture;
use rustix::process::Signal;
use std::process::{Command, Stdio};

/// Packets in a file of a capture (pcapng, "Enhanced Packet Block").
fn packets(capture: &Capture) -> u64 {
    const PACKET: u32 = 6;
    let bytes = std::fs::read(&capture.file).expect("a file");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut packets) = (0, 0);
    while at < bytes.len() {
        packets += u64::from(word(at) == PACKET);
        at += word(at + 4) as usize;
    }
    packets
}

#[test]
fn who_watches_misses_nothing_when_a_hot_swap_fails() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let router = Configuration::new(&net, SWITCHED).run(&net, true);
    let mut capture = Capture::start(&router, "q [0] -> [0] out", &[]);
    wait_for("the capture", || capture.file.exists());
    let flow = Flow::start(&net);
    // It is found out late that there is no such interface.
    let bad = filled(&net, &SWITCHED.replace("ToDevice(rb)", "ToDevice(none)"));
    for _ in 0..3 {
        router.write("hotconfig", &bad).expect_err("there is no such interface");
        flow.wait(200);
    }
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    let before = router.number("out.count");
    router.write("hotconfig", &filled(&net, SWITCHED)).expect("the same graph");
    let (_, said) = capture.end();
    let (captured, after) = (packets(&capture), router.number("out.count"));
    assert!(captured >= before && captured <= after, "{captured}, and not {before} to {after}: {said}");
}

#[test]
fn who_watches_and_is_stopped_keeps_nothing_out_of_the_driver() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let router = Configuration::new(&net, SWITCHED).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    // Nothing passes there.
    let mut capture = Capture::start(&router, "sw [1]", &[]);
    wait_for("the capture", || capture.file.exists());
    capture.signal(Signal::STOP);
    in_driver(&router);
    capture.signal(Signal::CONT);
    let (good, said) = capture.end();
    assert!(!good && said.contains("does not answer"), "{said}");
    assert!(said.contains("go through the graph meanwhile"), "{said}");
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
}

#[test]
fn a_capture_that_finds_the_disk_full_says_so_and_keeps_nothing_out_of_the_driver() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let router = Configuration::new(&net, SWITCHED).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    // A device that is always full.
    let socket = router.socket.display().to_string();
    let args = ["capture", "q [0] -> [0] out", "--write", "/dev/full", "--socket", &socket];
    let output = Command::new(CAUSEWAY).args(args).output().expect("causeway");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("cannot write /dev/full: No space left"), "{said}");
    in_driver(&router);
    assert_eq!(flow.end().duplicates, 0);
}

#[test]
fn questions_that_need_no_worker_are_answered_while_one_is_stuck() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = format!("{SWITCHED} source :: InfiniteSource(ACTIVE false) -> Print -> Discard;");
    let configuration = Configuration::new(&net, &graph);
    let router = configuration.run_with(&net, true, Stdio::piped());
    let flow = Flow::start(&net);
    in_driver(&router);
    // Nobody reads what it prints; the driver goes on.
    router.write("source.active", "true").expect("written");
    wait_for("the worker to be stuck", || router.write("sw.switch", "0").is_err());
    for _ in 0..5 {
        flow.wait(2_000);
        assert!(router.read("version").contains('.'));
    }
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
}
