//! One thread that sends by all ports and receives by all of them, where threads of their own would share a processor.
//!
//! Two threads on a processor wait for each other's turn, and each sleep of one ends with an interrupt and a change of thread
//! that keep the other from sending: what became due meanwhile goes together, and the device sees bursts that the timetable
//! does not have. So one thread sends what is due and takes what has come by turns, and does not sleep before all is sent. That
//! frames are taken late does not matter where the kernel stamps them. At loads at which there is no time to send frames one by one
//! a [`group`] of them goes together.

use super::generator::{Generator, Report};
use super::receiving::{PAUSE, Sink};
use super::sending::{Due, Sending};
use super::waiting::LOOK;
use super::{Manner, Since};
use crate::frame::Seen;
use causeway_results::traffic::group;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So many turns lie between two looks at ports where no frames are sent to.
const SELDOM: u64 = 256;

/// What ends a trial.
pub struct Until<'a> {
    /// When it began.
    pub since: Since,
    /// Nothing more is to be sent.
    pub over: &'a AtomicBool,
    /// Nothing more is to be waited for.
    pub interrupted: &'a AtomicBool,
}

/// Sends all that is to be sent, and takes what comes until all has come, or as long as frames are waited for.
pub fn in_turns<F: FnMut(Seen, &[u8]) -> Seen>(
    mut sendings: Vec<Sending<'_, Generator<'_>>>,
    sinks: &mut [Sink<'_, F>],
    manner: &Manner,
    until: &Until<'_>,
) -> Vec<Report> {
    let (since, mut came) = (until.since, 0);
    // A processor that is the tester's own nobody else waits for.
    let is_shared = manner.processors.is_empty();
    gather(&mut sendings);
    let (mut going, mut turn) = (true, 0_u64);
    while going && !until.over.load(Ordering::Relaxed) {
        going = false;
        for sending in &mut sendings {
            let due = sending.look(since);
            going |= due != Due::Nothing;
            let waits = due == Due::Waits || is_shared && matches!(due, Due::In(_));
            if waits {
                std::thread::yield_now();
            }
            came += take(sinks, turn.is_multiple_of(SELDOM), since).unwrap_or(0);
        }
        turn = turn.wrapping_add(1);
    }
    let reports: Vec<Report> = sendings.into_iter().map(Sending::finish).collect();
    let sent: u64 = reports.iter().flat_map(|report| &report.sent).map(|sent| sent.frames).sum();
    let mut until_ns = since.ns().saturating_add(nanoseconds(manner.settle));
    while since.ns() < until_ns && !until.interrupted.load(Ordering::Relaxed) {
        match take(sinks, true, since) {
            Some(tests) => came += tests,
            None => std::thread::sleep(PAUSE),
        }
        if came >= sent {
            // What comes once too often comes soon after, if at all.
            until_ns = until_ns.min(since.ns() + nanoseconds(LOOK));
        }
    }
    reports
}

/// Has frames leave in groups if all ports together send so many that there is no time for each by itself.
fn gather(sendings: &mut [Sending<'_, Generator<'_>>]) {
    let loads = sendings.iter().map(|sending| sending.source.load());
    let together = loads.reduce(|(all_fps, _), (fps, bytes)| (all_fps + fps, bytes));
    if let Some((load_fps, bytes)) = together {
        sendings.iter_mut().for_each(|sending| sending.source.gather(group(load_fps, bytes)));
    }
}

/// Takes what has come to `all` ports, or to those that frames are sent to. How many of the tester's frames; `None` if nothing
/// was there.
#[inline]
fn take<F: FnMut(Seen, &[u8]) -> Seen>(sinks: &mut [Sink<'_, F>], all: bool, since: Since) -> Option<u64> {
    let looked_at = sinks.iter_mut().filter(|sink| all || sink.coming.expected);
    looked_at.filter_map(|sink| sink.take(since)).reduce(|all, tests| all + tests)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Request, Tester as _};
    use crate::tester::generator::tests::with_generator;
    use crate::tester::sending::Source as _;
    use crate::tester::tests::{MS, attached, control, manner};
    use crate::tester::{Ports, TrialClock, one_way};
    use causeway_netio::{Port, memory};
    use causeway_packet::{BATCH, Batch};
    use causeway_results::traffic::{Matrix, Traffic};
    use std::sync::atomic::AtomicU64;

    /// One processor for all, whichever it is.
    fn crowded() -> Manner {
        Manner { processors: vec![causeway_engine::usable_processors()[0]], ..manner() }
    }

    fn tester(ports: Vec<Port>, matrix: Matrix) -> Ports {
        let networks = ["198.18.0.0/18", "198.18.64.0/18", "198.18.128.0/18"];
        let ports = ports.into_iter().zip(networks).map(|(port, network)| attached(port, network)).collect();
        let traffic = Traffic { matrix, ..Traffic::simple(64) };
        Ports::new(ports, traffic, crowded(), control()).expect("a tester")
    }

    /// A cable with room for 32 frames, by which far more are sent at a time than it has room for: it carries them as they are taken
    /// out, which is between one batch and the next.
    #[test]
    fn what_comes_is_taken_while_frames_are_sent() {
        let (a, b) = memory::pair("in-turns", 32).expect("a pair");
        let mut tester = tester(vec![a, b], Matrix::OneToOne);
        let outcome = tester.trial(&Request::new(20_000.0, 400 * MS)).expect("an outcome");
        let total = outcome.analysis.total();
        assert_eq!((total.lost, total.reordered, total.duplicated), (0, 0, 0));
        assert!(
            outcome.analysis.flows.iter().all(|flow| flow.received() > 100),
            "both directions: {total:?}"
        );
        assert!(tester.receiving_ns() > 0);
        // Another trial counts anew.
        let outcome = tester.trial(&Request::new(1_000.0, 50 * MS)).expect("an outcome");
        assert_eq!((outcome.received(), outcome.analysis.earlier), (outcome.sent(), 0));
    }

    /// Two ports send to a third; a device sends all of it back to the first, to which nothing is sent.
    #[test]
    fn ports_to_which_nothing_is_sent_are_looked_at_too() {
        let pair = |name| memory::pair(name, 64).expect("a pair");
        let [(t0, r0), (t1, r1), (t2, r2)] = ["astray-0", "astray-1", "astray-2"].map(pair);
        let half = |port: Port| port.queues.into_iter().next().expect("a queue");
        let (mut first, mut second, _third) = (half(r0), half(r1), r2);
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut batch = Batch::new();
                while !stop.load(Ordering::Relaxed) {
                    first.rx.poll(&mut batch, BATCH);
                    second.rx.poll(&mut batch, BATCH);
                    seen.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    while !batch.is_empty() && !stop.load(Ordering::Relaxed) {
                        first.tx.offer(&mut batch);
                    }
                    std::thread::yield_now();
                }
            });
            let outcome =
                tester(vec![t0, t1, t2], Matrix::ManyToOne(2)).trial(&Request::new(5_000.0, 100 * MS));
            stop.store(true, Ordering::Relaxed);
            let outcome = outcome.expect("an outcome");
            assert!(outcome.sent() > 0 && outcome.received() == 0);
            assert_eq!([outcome.analysis.foreign, seen.load(Ordering::Relaxed)], [outcome.sent(); 2]);
        });
    }

    /// Either port has time for 200 000 frames a second one by one, and both on one processor have not.
    #[test]
    fn frames_leave_in_groups_where_all_ports_together_have_no_time_for_each() {
        let (a, b) = memory::pair("groups", 64).expect("a pair");
        let [mut a, mut b] = [a, b].map(|port| port.queues.into_iter().next().expect("a queue").tx);
        let next_ns = |sending: &mut Sending<'_, Generator<'_>>| sending.source.fill(0, &mut Batch::new());
        with_generator(200e3, |first| {
            with_generator(200e3, |second| {
                let mut sendings = vec![Sending::new(&mut *a, first, None)];
                gather(&mut sendings);
                assert_eq!(next_ns(&mut sendings[0]), Some(5_000), "the first has left");
                sendings.push(Sending::new(&mut *b, second, None));
                gather(&mut sendings);
                assert_eq!(next_ns(&mut sendings[0]), Some(64 * 5_000));
                assert_eq!(next_ns(&mut sendings[1]), Some(63 * 5_000));
            });
        });
    }

    /// What was sent until somebody ends it has all come, and nothing else is missing.
    #[test]
    fn it_ends_when_it_is_ended_and_waits_for_what_was_sent() {
        let (a, b) = memory::pair("ended", 64).expect("a pair");
        let (mut a, mut b) = (attached(a, "198.18.0.0/18"), attached(b, "198.18.64.0/18"));
        let (traffic, request) = (Traffic::simple(64), Request::new(10_000.0, 3_600_000 * MS));
        let shown = AtomicU64::new(0);
        let show = |_, _: &[u8]| {
            shown.fetch_add(1, Ordering::Relaxed);
        };
        let meanwhile = |clock: TrialClock| {
            while shown.load(Ordering::Relaxed) < 20 {
                std::thread::yield_now();
            }
            Ok(clock.ns())
        };
        let (outcome, ended_ns) =
            one_way([&mut a, &mut b], &traffic, &request, &crowded(), 1, show, meanwhile)
                .expect("an outcome");
        assert!(ended_ns > 0 && outcome.sent() >= 20, "{ended_ns}");
        assert_eq!((outcome.received(), shown.load(Ordering::Relaxed)), (outcome.sent(), outcome.sent()));
    }
}
