use super::*;
use crate::analyser::Counts;
use causeway_results::traffic::{Matrix, Schedule};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// 10 000 frames at 100 000 a second, from port 0 to port 1.
fn trial(device: Device) -> Outcome {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
    let mut tester = Simulated::new(traffic, 2, device).expect("a tester");
    tester.trial(&Request::new(100_000.0, 100 * MS)).expect("an outcome")
}

#[test]
fn a_device_without_faults_forwards_all() {
    let outcome = trial(Device { delay_ns: 700, ..Device::default() });
    assert_eq!((outcome.intended, outcome.sent(), outcome.received()), (10_000, 10_000, 10_000));
    assert_eq!((outcome.loss_ratio(), outcome.forwarding_fps()), (0.0, 100_000.0));
    let latency = &outcome.analysis.latency;
    assert_eq!(
        (latency.min_ns(), latency.percentile_ns(0.5), latency.max_ns()),
        (Some(700), Some(700), Some(700))
    );
    assert_eq!((outcome.analysis.ipdv.max_ns(), outcome.analysis.pdv_ns()), (Some(0), Some(0)));
    assert_eq!((outcome.analysis.last_loss_ns, outcome.analysis.longest_silence_ns), (None, 10_000));
}

#[test]
fn each_fault_is_found_and_no_other() {
    let clean = Counts { sent: 10_000, in_order: 10_000, ..Counts::default() };
    let lossy = trial(Device { lose_every: 100, ..Device::default() });
    assert_eq!(lossy.analysis.total(), Counts { in_order: 9_900, lost: 100, ..clean });
    assert_eq!(lossy.analysis.last_loss_ns, Some(9_999 * 10_000), "the last frame is lost");
    assert_eq!(lossy.loss_ratio(), 0.01);
    let doubling = trial(Device { duplicate_every: 100, ..Device::default() });
    assert_eq!(doubling.analysis.total(), Counts { duplicated: 100, ..clean });
    let breaking = trial(Device { corrupt_every: 100, ..Device::default() });
    assert_eq!(breaking.analysis.total(), Counts { in_order: 9_900, lost: 100, ..clean });
    assert_eq!(breaking.analysis.corrupt, 100);
    // Three frames and a half overtake each that is held; the last one has nobody to overtake it.
    let mixing = trial(Device { hold_every: 100, hold_ns: 35_000, ..Device::default() });
    let told = Counts { in_order: 9_901, reordered: 99, farthest_behind: 3, ..clean };
    assert_eq!(mixing.analysis.total(), told);
    assert_eq!(mixing.analysis.latency.max_ns().map(|ns| ns / 100), Some(350));
}

#[test]
fn a_full_queue_loses_what_is_beyond_the_rate() {
    // 80 000 frames a second, one in service and 99 waiting.
    let outcome = trial(Device { service_ns: 12_500, queue: 99, ..Device::default() });
    let total = outcome.analysis.total();
    // Served in 100 ms: 8 000, and the queue is full at the end.
    assert!((8_098..=8_100).contains(&total.in_order), "{total:?}");
    let longest_ns = outcome.analysis.latency.max_ns().expect("frames");
    assert!((99 * 12_500..=100 * 12_520).contains(&longest_ns), "{longest_ns}");
}

#[test]
fn flows_of_several_ports_are_told_apart() {
    let traffic = Traffic {
        matrix: Matrix::Custom(vec![vec![0, 10], vec![1, 0]]),
        schedule: Schedule::Bursts { frames: 8, gap_ns: 0 },
        ..Traffic::simple(64)
    };
    let device = Device { delay_ns: 5, ..Device::default() };
    let mut tester = Simulated::new(traffic, 2, device).expect("a tester");
    let outcome = tester.trial(&Request::new(110_000.0, 100 * MS)).expect("an outcome");
    let sent: Vec<u64> = outcome.analysis.flows.iter().map(|flow| flow.in_order).collect();
    assert_eq!(sent, [10_000, 1_000]);
}

#[test]
fn a_blocked_device_loses_what_comes_meanwhile() {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
    let device = Device { blocked_ns: 5 * MS, ..Device::default() };
    let mut tester = Simulated::new(traffic, 2, device).expect("a tester");
    let request = Request { event: Some((Event::Reset, 20 * MS)), ..Request::new(100_000.0, 100 * MS) };
    let outcome = tester.trial(&request).expect("an outcome");
    assert_eq!(outcome.analysis.total().lost, 500);
    assert_eq!(outcome.analysis.longest_silence_ns, 5 * MS + 10_000);
    assert_eq!(outcome.analysis.last_loss_ns, Some(25 * MS));
    assert!(tester.trial(&Request::new(1_000.0, S)).expect("an outcome").loss_ratio() == 0.0);
}
