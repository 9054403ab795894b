//! Trials over memory ports: a cable, and a device of a few lines.

use super::*;
use crate::search::{Event, Request, Tester as _};
use anyhow::ensure;
use causeway_netio::{Port, Rx, Tx, memory};
use causeway_packet::wire::MacAddr;
use causeway_packet::{BATCH, Batch, Packet};
use causeway_results::traffic::{Matrix, Schedule};
use std::sync::atomic::AtomicU64;

pub const MS: u64 = 1_000_000;
const CAPACITY: usize = 4_096;

pub fn attached(port: Port, network: &str) -> Attached {
    let hosts = [Some(network.parse().expect("a network")), None];
    Attached::new(port, MacAddr([2, 0, 0, 0, 0, 9]), hosts).expect("a port")
}

pub fn manner() -> Manner {
    Manner { processors: Vec::new(), settle: Duration::from_millis(300), pause: Duration::ZERO }
}

pub fn control() -> Control {
    Control::new(Arc::default())
}

/// Two ports of a tester, joined by a cable.
fn cable(name: &str, traffic: Traffic) -> Result<Ports> {
    let (a, b) = memory::pair(name, CAPACITY).expect("a pair");
    let ports = vec![attached(a, "198.18.0.0/18"), attached(b, "198.18.64.0/18")];
    Ports::new(ports, traffic, manner(), control())
}

#[test]
fn over_a_cable_every_frame_comes_as_it_was_sent() {
    let traffic = Traffic { schedule: Schedule::Poisson, ..Traffic::simple(128) };
    let mut tester = cable("every-frame", traffic).expect("a tester");
    for _ in 0..2 {
        let outcome = tester.trial(&Request::new(20_000.0, 100 * MS)).expect("an outcome");
        let total = outcome.analysis.total();
        assert!(total.sent > 0, "{total:?}");
        assert_eq!((total.lost, total.reordered, total.duplicated), (0, 0, 0));
        assert_eq!((outcome.analysis.corrupt, outcome.analysis.foreign, outcome.analysis.earlier), (0, 0, 0));
        assert_eq!(outcome.analysis.latency.count(), total.sent);
        assert!(outcome.analysis.flows.iter().all(|flow| flow.sent > 0), "both directions");
        assert!(outcome.intended >= total.sent);
    }
}

/// Between two pairs: loses every hundredth frame and sends what is left on.
fn device(mut from: Box<dyn Rx>, mut to: Box<dyn Tx>, stop: &AtomicBool, seen: &AtomicU64) {
    let mut batch = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        from.poll(&mut batch, BATCH);
        batch.retain(|_| !(seen.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(100));
        while !batch.is_empty() && !stop.load(Ordering::Relaxed) {
            to.offer(&mut batch);
            to.flush();
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_a_device_loses_is_what_is_missing() {
    let (t0, r0) = memory::pair("loses-in", CAPACITY).expect("a pair");
    let (r1, t1) = memory::pair("loses-out", CAPACITY).expect("a pair");
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let half = |port: Port| port.queues.into_iter().next().expect("a queue");
    let (from, to) = (half(r0), half(r1));
    std::thread::scope(|scope| {
        scope.spawn(|| device(from.rx, to.tx, &stop, &seen));
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
        let ports = vec![attached(t0, "198.18.0.0/18"), attached(t1, "198.18.64.0/18")];
        let mut tester = Ports::new(ports, traffic, manner(), control()).expect("a tester");
        let outcome = tester.trial(&Request::new(10_000.0, 100 * MS));
        stop.store(true, Ordering::Relaxed);
        let total = outcome.expect("an outcome").analysis.total();
        assert_eq!((total.sent, total.lost), (seen.load(Ordering::Relaxed), total.sent / 100));
        assert_eq!(total.reordered + total.duplicated, 0);
    });
}

#[test]
fn the_self_test_notices_a_counter_that_disagrees() {
    let traffic = || Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
    let mut tester = cable("self-test", traffic()).expect("a tester");
    let counter = tester.ports[1].rx.statistics();
    let received = || counter.list().iter().filter(|one| one.0 == "rx_packets").map(|one| one.1).sum::<u64>();
    let loads = [1_000.0, 5_000.0, 10_000.0];
    let found = self_test(&mut tester, &loads, 50 * MS, || Ok(received())).expect("they agree");
    assert_eq!(found.steps.iter().map(|step| step.asked_fps).collect::<Vec<_>>(), loads);
    assert!(found.bias_ns.is_some());
    // A cable that carries more than the tester says it sent, as that of a generator which counts badly does.
    let mut calls = 0;
    let wrong = || {
        calls += 1;
        Ok(received() + calls)
    };
    let error = self_test(&mut tester, &loads, 50 * MS, wrong).expect_err("they do not agree").to_string();
    assert!(error.contains("the tester says it sent"), "{error}");
}

#[test]
fn a_rate_near_the_testers_own_is_limited_by_it() {
    let step = |received_fps| Step { asked_fps: 2e6, offered_fps: 1e6, received_fps, limited: true };
    let test = SelfTest { steps: vec![step(1e6), step(0.5e6)], bias_ns: None };
    assert_eq!(test.most_fps(), 1e6);
    assert!(test.limits(0.95e6) && !test.limits(0.9e6));
}

#[test]
fn traffic_that_the_ports_cannot_carry_is_refused() {
    let refused = |traffic| cable("refused", traffic).err().expect("refused").to_string();
    let long = refused(Traffic::simple(9_000));
    assert!(long.contains("9000 bytes is longer than"), "{long}");
    let mut six = Traffic::simple(84);
    six.streams[0].family = causeway_results::traffic::Family::Ipv6;
    assert!(refused(six).contains("nobody of its family"));
    assert!(refused(Traffic { matrix: Matrix::ManyToOne(2), ..Traffic::simple(64) }).contains("no port 2"));
}

#[test]
fn an_interrupt_and_a_dead_device_end_trials() {
    let mut tester = cable("interrupt", Traffic::simple(64)).expect("a tester");
    tester.control.interrupted.store(true, Ordering::Relaxed);
    let error = tester.trial(&Request::new(1_000.0, 10_000 * MS)).expect_err("interrupted").to_string();
    assert_eq!(error, "interrupted");
    tester.control.interrupted.store(false, Ordering::Relaxed);
    let mut calls = 0;
    tester.control.alive = Box::new(move || {
        calls += 1;
        ensure!(calls < 2, "the device died");
        Ok(())
    });
    let error = tester.trial(&Request::new(1_000.0, 10 * MS)).expect_err("dead").to_string();
    assert_eq!(error, "the device died");
}

#[test]
fn what_happens_to_the_device_happens_in_a_trial_or_fails_it() {
    let mut tester = cable("disturb", Traffic::simple(64)).expect("a tester");
    let request = |event| Request { event: Some((event, 20 * MS)), ..Request::new(1_000.0, 60 * MS) };
    let error = tester.trial(&request(Event::Reset)).expect_err("nobody to reset");
    assert_eq!(format!("{error:#}"), "reset of the device: there is none that could be disturbed");
    let seen = Arc::new(AtomicU64::new(0));
    let count = seen.clone();
    tester.control.disturb = Box::new(move |event| {
        assert_eq!(event, Event::Swap);
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let outcome = tester.trial(&request(Event::Swap)).expect("an outcome");
    assert_eq!((seen.load(Ordering::Relaxed), outcome.loss_ratio()), (1, 0.0));
    assert_eq!(outcome.analysis.timeline.iter().sum::<u64>(), outcome.received());
}

#[test]
fn one_side_by_itself_sends_and_counts() {
    let (a, b) = memory::pair("alone", CAPACITY).expect("a pair");
    let (mut a, mut b) = (attached(a, "198.18.0.0/18"), attached(b, "198.18.64.0/18"));
    let destinations = [b.hosts4, b.hosts6];
    let running = AtomicBool::new(false);
    let traffic = Traffic::simple(64);
    let request = Request::new(5_000.0, 100 * MS);
    let sent = transmit_only(&mut a, &traffic, destinations, &request, &[], &running).expect("sent");
    assert!(sent.frames > 0 && sent.intended == 500, "{sent:?}");
    let received = receive_only(&mut b, Duration::from_millis(50), &[], &running);
    let total = received.analysis.total();
    assert_eq!((total.in_order, total.lost, received.analysis.foreign), (sent.frames, 0, 0));
    assert!(transmit_only(&mut a, &traffic, [None, None], &request, &[], &running).is_err());
}

#[test]
fn a_frame_that_a_port_cannot_carry_is_refused_one_way_too() {
    let (a, b) = memory::pair("too-long", CAPACITY).expect("a pair");
    let (mut a, mut b) = (attached(a, "198.18.0.0/18"), attached(b, "198.18.64.0/18"));
    let (request, running) = (Request::new(1_000.0, 20 * MS), AtomicBool::new(false));
    let destinations = [b.hosts4, b.hosts6];
    // As of an MTU of 1 500: 1 518 bytes with header and check sequence.
    (a.max_frame, b.max_frame) = (1_514, 1_514);
    let alone = |a: &mut Attached, length| {
        transmit_only(a, &Traffic::simple(length), destinations, &request, &[], &running).map(|_| ())
    };
    let both = |a: &mut Attached, b: &mut Attached, length| {
        let traffic = Traffic::simple(length);
        one_way([a, b], &traffic, &request, &manner(), 1, |_, _| {}, |_| Ok(())).map(|_| ())
    };
    alone(&mut a, 1_518).expect("it has room");
    both(&mut a, &mut b, 1_518).expect("it has room");
    for error in [alone(&mut a, 1_519), both(&mut a, &mut b, 1_519)] {
        let error = error.expect_err("refused").to_string();
        let (before, after) = (
            "stream 'ipv4': a frame of 1519 bytes is longer than too-long",
            " can carry, 1518: raise its MTU",
        );
        assert!(error.starts_with(before) && error.ends_with(after), "{error}");
    }
    // So is one that the other end cannot carry.
    b.max_frame = 1_000;
    alone(&mut a, 1_518).expect("there is no other end");
    assert!(both(&mut a, &mut b, 1_518).is_err());
}

#[test]
fn a_bare_generator_sends_one_frame_again_and_again() {
    let (a, b) = memory::pair("bare", CAPACITY).expect("a pair");
    let (mut a, mut b) = (attached(a, "198.18.0.0/18"), attached(b, "198.18.64.0/18"));
    let (destinations, running) = ([b.hosts4, b.hosts6], AtomicBool::new(false));
    let traffic = Traffic::simple(64);
    let how = (500, Duration::from_secs(10));
    let sent = transmit_bare(&mut a, &traffic, destinations, how, &running).expect("sent");
    assert_eq!((sent.frames, sent.intended), (500, 500));
    let total = receive_only(&mut b, Duration::from_millis(50), &[], &running).analysis.total();
    assert_eq!((total.in_order, total.duplicated), (1, 499));
    // It ends when its time is over, too, though nobody takes what the ring has.
    let how = (u64::MAX, Duration::from_millis(20));
    let sent = transmit_bare(&mut a, &traffic, destinations, how, &running).expect("sent");
    assert!(sent.frames <= CAPACITY as u64, "{sent:?}");
    assert!(transmit_bare(&mut a, &Traffic::simple(9_000), destinations, how, &running).is_err());
}

#[test]
fn frames_at_the_wrong_port_are_foreign() {
    // A device that sends everything back where it came from.
    let (t0, r0) = memory::pair("hairpin", CAPACITY).expect("a pair");
    let (t1, _r1) = memory::pair("nothing", CAPACITY).expect("a pair");
    let half = r0.queues.into_iter().next().expect("a queue");
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| device(half.rx, half.tx, &stop, &seen));
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
        let ports = vec![attached(t0, "198.18.0.0/18"), attached(t1, "198.18.64.0/18")];
        let mut tester = Ports::new(ports, traffic, manner(), control()).expect("a tester");
        let outcome = tester.trial(&Request::new(1_000.0, 50 * MS));
        stop.store(true, Ordering::Relaxed);
        let outcome = outcome.expect("an outcome");
        assert_eq!((outcome.received(), outcome.analysis.foreign), (0, outcome.sent()));
        assert_eq!(outcome.loss_ratio(), 1.0);
    });
    assert!(Packet::new().is_some(), "frames went back to the pool");
}

/// Ports of a device that forwards nothing, and the tester's.
fn apart(name: &str, alone: Alone, counting: Counting) -> (Ports, Vec<Port>) {
    let pair = |i: usize| memory::pair(&format!("{name}-{i}"), CAPACITY).expect("a pair");
    let (own, others): (Vec<Port>, Vec<Port>) = (0..3).map(pair).unzip();
    let networks = ["198.18.0.0/18", "198.18.64.0/18", "198.18.128.0/18"];
    let ports = own.into_iter().zip(networks).map(|(port, network)| attached(port, network)).collect();
    let traffic = Traffic { matrix: Matrix::ManyToOne(2), ..Traffic::simple(64) };
    let control = Control { alone: Some((alone, counting)), ..control() };
    (Ports::new(ports, traffic, manner(), control).expect("a tester"), others)
}

#[test]
fn what_a_device_receives_alone_is_what_it_counts() {
    // It had counted before, and its second port gets less than is sent there.
    let mut asked = 0;
    let counting = move || {
        asked += 1;
        Ok(if asked % 2 == 1 { vec![1_000, 70] } else { vec![1_000_000, 90] })
    };
    let (mut tester, _others) = apart("receives-alone", Alone::Receive, Box::new(counting));
    assert_eq!(tester.flows().len(), 2);
    assert!(tester.flows().iter().all(|flow| !flow.contains(" to ")), "{:?}", tester.flows());
    for _ in 0..2 {
        let outcome = tester.trial(&Request::new(10_000.0, 100 * MS)).expect("an outcome");
        let [all, some] = &outcome.analysis.flows[..] else { panic!("two flows") };
        assert!(
            all.sent > 100 && all.received() == all.sent && all.lost == 0,
            "no more than was sent: {all:?}"
        );
        assert_eq!((some.received(), some.lost), (20, some.sent - 20));
    }
}

#[test]
fn what_a_device_transmits_alone_is_heard_beside_its_own_count() {
    let (stop, sent) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    let counted = sent.clone();
    // It says that it sent twice as much as comes.
    let counting = move || Ok(vec![2 * counted.load(Ordering::Relaxed), 0]);
    let (mut tester, others) = apart("transmits-alone", Alone::Transmit, Box::new(counting));
    let mut queue =
        others.into_iter().next().and_then(|port| port.queues.into_iter().next()).expect("a queue");
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = Batch::new();
            while !stop.load(Ordering::Relaxed) {
                batch.extend_copies(std::iter::repeat_n(&[7; 60][..], 20));
                let before = batch.len();
                queue.tx.offer(&mut batch);
                queue.tx.flush();
                sent.fetch_add((before - batch.len()) as u64, Ordering::Relaxed);
                batch.clear();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let outcome = tester.trial(&Request::new(1.0, 200 * MS));
        stop.store(true, Ordering::Relaxed);
        outcome.expect("an outcome")
    });
    let [one, none] = &outcome.analysis.flows[..] else { panic!("two flows") };
    assert!(one.received() > 0 && one.sent > one.received(), "{one:?}");
    assert_eq!((none.sent, none.received()), (0, 0));
    assert_eq!((outcome.intended, outcome.limited), (outcome.sent(), false));
    assert!(outcome.effective_ns >= 200 * MS);
}
