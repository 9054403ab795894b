//! What is asked for and what is said of it. Clusters themselves are tested beside the binary, which their nodes run.

use super::daemon::{Kind, Timers};
use super::paths::{Moved, Paths};
use super::records::{Record, Steady};
use super::trial::{FLOWS, Observed, PERIOD_NS};
use super::*;
use crate::analyser::{Analyser, Sent};
use crate::frame::{Seen, Tag};
use crate::search::Outcome;
use causeway_packet::wire::MacAddr;
use causeway_results::{Document, Run as Provenance, csv, html};

fn task(runs: &[&str], nodes: usize, daemon: &str) -> Task {
    let runs = runs.iter().map(|&name| name.to_owned()).collect();
    Task { runs, nodes, daemon: daemon.to_owned(), hashing: None, output: "cluster.json".into() }
}

#[test]
fn what_is_asked_for_is_what_runs() {
    let parts = task(&["drain", "silent"], 2, "bird").parts().expect("possible");
    let [threshold, resilient, default] = &parts[..] else { panic!("{} parts", parts.len()) };
    assert_eq!(threshold.1, [Run::Silent, Run::Drain], "in the order of the runs");
    assert_eq!((threshold.0.hashing, resilient.0.hashing), (Hashing::Threshold, Hashing::Resilient));
    assert_eq!((default.0.timers, &default.1[..]), (Timers::Default, &[Run::Silent][..]));
    assert!(parts.iter().all(|(plan, _)| plan.nodes == 2 && plan.daemon == Kind::Bird));
    assert_eq!(task(&[], 4, "bird").parts().expect("possible")[0].1, Run::ALL);
    let alone = Task { hashing: Some("resilient".to_owned()), ..task(&["silent"], 2, "bird") };
    assert_eq!(alone.parts().expect("possible").len(), 1);
    // The timers that are stated are the defaults of FRR, and decide nothing where no node falls silent.
    assert_eq!(task(&[], 3, "frr").parts().expect("possible").len(), 2);
    assert_eq!(task(&["cable"], 3, "bird").parts().expect("possible").len(), 2);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let error = |task: Task| task.parts().expect_err("refused").to_string();
    assert_eq!(
        error(task(&["sleep"], 3, "bird")),
        "there is no run 'sleep'; they are steady, router, silent, cable, drain"
    );
    assert_eq!(error(task(&[], 1, "bird")), "a cluster has 2 to 4 nodes, not 1");
    assert_eq!(error(task(&[], 5, "bird")), "a cluster has 2 to 4 nodes, not 5");
    assert_eq!(
        error(Task { hashing: Some("modulo".to_owned()), ..task(&[], 3, "bird") }),
        "there is no hashing 'modulo'; there are hash-threshold, resilient"
    );
    assert_eq!(error(task(&[], 3, "quagga")), "there is no daemon 'quagga'; there are bird and frr");
}

#[test]
fn settings_are_read_as_sysctl_reads_them() {
    let found: Vec<_> = pairs("# a = b\nnet.ipv4.ip_forward = 1\n\nnet.x=2\n").collect();
    assert_eq!(found, [("net.ipv4.ip_forward", "1"), ("net.x", "2")]);
    assert!(pairs(FRONT_SETTINGS).any(|pair| pair == ("net.ipv4.fib_multipath_hash_policy", "1")));
    assert!(pairs(NODE_SETTINGS).any(|pair| pair == ("net.ipv4.ip_forward", "1")));
}

/// Two flows through two nodes, a frame a period; node 0 loses the frames 2 and 3 of flow 0, which then goes through
/// node 1.
fn observed() -> Observed {
    let macs = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
    let (mut analyser, mut paths) = (Analyser::new(1, 2), Paths::new(macs.to_vec(), 2));
    for sequence in 0..6 {
        for flow in 0..2 {
            let node = usize::from(flow == 1 || sequence > 3);
            if flow == 0 && (sequence == 2 || sequence == 3) {
                continue;
            }
            let sent_ns = u64::from(sequence) * PERIOD_NS;
            let tag = Tag { trial: 1, flow, sequence, sent_ns };
            let mut frame = [0; 60];
            frame[6..12].copy_from_slice(&macs[node].0);
            analyser.record(Seen::Test(tag), sent_ns + 1);
            paths.saw(tag, &frame);
        }
    }
    let analysis = analyser.finish(&[Sent { frames: 6, last_ns: 5 * PERIOD_NS }; 2]);
    Observed {
        outcome: Outcome { intended: 12, effective_ns: 6 * PERIOD_NS, limited: false, analysis },
        paths,
    }
}

#[test]
fn a_record_says_what_was_lost_and_what_moved() {
    let (seen, at_ns) = (observed(), PERIOD_NS + PERIOD_NS / 2);
    let record = Record::new("g", "node hangs", 1, (at_ns, Some(at_ns + 7_000_000)), &seen);
    assert_eq!((record.sent, record.lost, record.reordered, record.strange), (12, [2, 0], 0, 0));
    assert_eq!(record.moved, Moved { flows: 2, of_node: 1, of_others: 0 });
    assert_eq!(record.shares, [vec![1, 1], vec![0, 2]]);
    // The last frame that was lost was sent one and a half periods after the event.
    assert_eq!(record.recovery_ms, Some(1.5 * PERIOD_NS as f64 / 1e6));
    assert_eq!(record.known_ms, Some(7.0));
    let other = Record::new("g", "node hangs", 2, (at_ns, None), &seen);
    assert_eq!((other.lost, other.moved.of_others, other.known_ms), ([0, 2], 1, None));
}

#[test]
fn results_are_a_document_a_table_and_a_page() {
    let mut document = Document::new(Provenance::default());
    let record = Record::new("g", "node hangs", 1, (PERIOD_NS, None), &observed());
    record.put(&mut document);
    Record { node: 2, lost: [5, 1], ..record }.put(&mut document);
    for shares in [vec![512], vec![300, 212]] {
        Steady { group: "g".to_owned(), shares, sent: 9, lost: 0, flood_fps: 1e5, forwarded: 8 }
            .put(&mut document);
    }
    let lost = document.series("g/node hangs: frames lost of the node's flows").expect("there");
    assert_eq!(lost.measurements[0].repetitions, [2.0, 5.0]);
    assert!(document.series("g/node hangs: time until the front knows").is_none(), "it was not to know");
    let busiest = document.series("g/steady: flows of the busiest node").expect("there");
    let points: Vec<_> = busiest.measurements.iter().map(|one| (one.x, one.repetitions[0])).collect();
    assert_eq!(points, [(Some(1.0), 1.0), (Some(2.0), 300.0 / 256.0)]);
    assert!(document.to_json().expect("valid").contains("\"measured\"") && !csv::table(&document).is_empty());
    assert!(html::page("A cluster", &document).expect("a page").contains("node hangs"));
}

#[test]
fn every_flow_has_addresses_and_ports_of_its_own() {
    let traffic = super::trial::traffic();
    traffic.check().expect("possible");
    let mut seen: Vec<_> = traffic
        .streams
        .iter()
        .map(|s| [s.source_host, s.destination_host, s.source_port, s.destination_port].map(|v| v.range()))
        .collect();
    assert!(seen.iter().flatten().all(|(first, last)| first == last), "the same in all frames of a flow");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), FLOWS as usize);
}
