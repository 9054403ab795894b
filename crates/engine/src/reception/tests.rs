//! The mechanisms over simulated rings.

mod adversary;
mod stopped;

use super::*;
use causeway_packet::{Batch, Packet};
use proptest::prelude::*;
use std::os::fd::BorrowedFd;

/// A ring fed by the test.
#[derive(Default)]
struct Ring {
    waiting: usize,
    armed: bool,
}

/// Rings, fed by the test; the backlog is a count.
#[derive(Default)]
struct Rings {
    rings: Vec<Ring>,
    forwarded: Vec<usize>,
    backlog: VecDeque<usize>,
    /// Packets that arrive on port 0 whenever one packet is forwarded: load that does not wait.
    arrivals_per_forward: usize,
}

impl Receiver for Ring {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let n = self.waiting.min(budget).min(batch.room());
        self.waiting -= n;
        batch.extend((0..n).filter_map(|_| Packet::new()));
        self.waiting > 0
    }

    fn arm(&mut self) -> bool {
        self.armed = true;
        self.waiting > 0
    }

    fn disarm(&mut self) {
        self.armed = false;
    }

    fn waiting(&mut self) -> usize {
        self.waiting
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Rings {
    fn new(ports: usize) -> Self {
        let rings = (0..ports).map(|_| Ring::default()).collect();
        Rings { rings, forwarded: vec![0; ports], ..Rings::default() }
    }

    fn arrive(&mut self, reception: &mut Reception, port: usize, n: usize) {
        self.rings[port].waiting += n;
        if self.rings[port].armed {
            reception.interrupt(port);
        }
    }

    /// Polls a ring until it is empty or the budget used up.
    fn take(&mut self, port: usize, budget: usize) -> Received {
        let mut received = Received { packets: 0, more: true };
        while received.more && received.packets < budget {
            let mut batch = Batch::new();
            received.more = self.rings[port].poll(&mut batch, budget - received.packets);
            received.packets += batch.len();
        }
        received
    }
}

impl Ports for Rings {
    fn receiver(&mut self, port: usize) -> Option<&mut dyn Receiver> {
        self.rings.get_mut(port).map(|ring| ring as &mut dyn Receiver)
    }

    fn receive(&mut self, port: usize, budget: usize) -> Received {
        let received = self.take(port, budget);
        self.forwarded[port] += received.packets;
        received
    }

    fn enqueue(&mut self, port: usize, room: usize, budget: usize) -> Received {
        let received = self.take(port, budget);
        self.backlog.extend(std::iter::repeat_n(port, received.packets.min(room)));
        received
    }

    fn forward(&mut self, max: usize) -> usize {
        assert!(max > 0, "nothing is asked of an empty backlog");
        let n = max.min(self.backlog.len());
        for port in self.backlog.drain(..n) {
            self.forwarded[port] += 1;
            self.rings[0].waiting += self.arrivals_per_forward;
        }
        n
    }
}

fn with(mechanisms: &[Mechanism], budget: usize) -> (Reception, Rings) {
    let mut reception = Reception::new(budget);
    for &m in mechanisms {
        reception.add(m);
    }
    let mut rings = Rings::new(mechanisms.len());
    reception.start(&mut rings);
    (reception, rings)
}

const NAPI_4: Mechanism = Mechanism::Napi { quota: 4 };

#[test]
fn napi_masks_on_the_interrupt_and_unmasks_below_the_quota() {
    let (mut r, mut rings) = with(&[NAPI_4], 300);
    assert!(rings.rings[0].armed);
    rings.arrive(&mut r, 0, 10);
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (10, false));
    assert!(rings.rings[0].armed);
    let c = r.counters(0).unwrap();
    assert_eq!((c.interrupts, c.polls, c.packets, c.quota_hits), (1, 3, 10, 2));
}

#[test]
fn napi_shares_by_quota_and_stops_at_the_budget() {
    let (mut r, mut rings) = with(&[Mechanism::Napi { quota: 6 }, Mechanism::Napi { quota: 2 }], 16);
    rings.arrive(&mut r, 0, 1_000);
    rings.arrive(&mut r, 1, 1_000);
    let (forwarded, more) = r.run(&mut rings, 0, usize::MAX);
    assert_eq!((forwarded, more, r.budget_exhausted), (16, true, 1));
    for _ in 0..9 {
        r.run(&mut rings, 0, usize::MAX);
    }
    assert_eq!(rings.forwarded, [120, 40], "shares follow the quotas (OSR-9)");
    assert!(!rings.rings[0].armed && !rings.rings[1].armed);
}

#[test]
fn a_packet_between_the_last_poll_and_the_unmasking_is_not_forgotten() {
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt] {
        let (mut r, mut rings) = with(&[mechanism], 300);
        rings.arrive(&mut r, 0, 1);
        while r.run(&mut rings, 0, usize::MAX).1 {}
        // It came while masked, so no interrupt tells of it.
        r.ports[0].armed = false;
        rings.rings[0].waiting = 1;
        r.arm(&mut rings, 0);
        while r.run(&mut rings, 0, usize::MAX).1 {}
        assert_eq!(rings.forwarded[0], 2, "{mechanism}");
    }
}

#[test]
fn rings_are_empty_when_all_were_found_so_and_what_was_in_them_is_forwarded() {
    let moderated = Mechanism::Moderated { packets: 8, time_ns: 100 };
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt, Mechanism::Polling, moderated] {
        let (mut r, mut rings) = with(&[mechanism, NAPI_4], 64);
        r.run(&mut rings, 0, usize::MAX);
        assert!(r.emptied(), "{mechanism}: as the start has seen");
        r.look_anew();
        rings.arrive(&mut r, 0, 250);
        let mut runs = 0;
        loop {
            r.run(&mut rings, runs, usize::MAX);
            runs += 1;
            if r.emptied() {
                break;
            }
        }
        assert_eq!((rings.forwarded[0], runs > 3), (250, true), "{mechanism}");
        r.look_anew();
        for again in 0..3 {
            r.run(&mut rings, runs + again, usize::MAX);
            assert!(r.emptied(), "{mechanism}: nothing has come");
        }
    }
}

#[test]
fn interrupt_driven_reception_drops_at_the_backlog_and_livelocks_under_load() {
    let (mut r, mut rings) = with(&[Mechanism::Interrupt], 300);
    rings.arrive(&mut r, 0, 1_000);
    r.run(&mut rings, 0, usize::MAX);
    assert_eq!(r.counters(0).unwrap().backlog_drops, 700);
    // Offered load well above what is forwarded: the backlog stays full and all work goes into drops.
    rings.arrivals_per_forward = 50;
    for _ in 0..100 {
        r.run(&mut rings, 0, usize::MAX);
    }
    let c = *r.counters(0).unwrap();
    assert!(c.backlog_drops > 20 * rings.forwarded[0] as u64, "{c:?}");
    // NAPI under the same load loses nothing after reception.
    let (mut r, mut rings) = with(&[NAPI_4], 300);
    rings.arrive(&mut r, 0, 100_000);
    r.run(&mut rings, 0, usize::MAX);
    assert_eq!((rings.forwarded[0], r.counters(0).unwrap().backlog_drops), (300, 0));
}

#[test]
fn moderation_waits_for_packets_or_time_whichever_is_first() {
    let moderated = Mechanism::Moderated { packets: 8, time_ns: 100 };
    let (mut r, mut rings) = with(&[moderated], 300);
    rings.arrive(&mut r, 0, 3);
    assert_eq!(r.run(&mut rings, 1_000, usize::MAX), (0, false));
    assert_eq!(r.deadline_ns(), Some(1_100));
    assert_eq!(r.run(&mut rings, 1_099, usize::MAX).0, 0);
    assert_eq!(r.run(&mut rings, 1_100, usize::MAX).0, 3);
    assert_eq!((r.deadline_ns(), r.counters(0).unwrap().interrupts), (None, 1));
    rings.arrive(&mut r, 0, 8);
    assert_eq!(r.run(&mut rings, 2_000, usize::MAX).0, 8, "enough packets do not wait");
    let (mut r, mut rings) = with(&[Mechanism::Moderated { packets: 8, time_ns: u64::MAX }], 300);
    rings.arrive(&mut r, 0, 3);
    assert_eq!((r.run(&mut rings, 1_000, usize::MAX), r.deadline_ns()), ((0, false), Some(u64::MAX)));
}

#[test]
fn disable_enable_empties_the_ring() {
    let (mut r, mut rings) = with(&[Mechanism::DisableEnable, NAPI_4], 10);
    rings.arrive(&mut r, 0, 1_000);
    rings.arrive(&mut r, 1, 1);
    for run in 1..=100 {
        assert_eq!(
            r.run(&mut rings, 0, usize::MAX),
            (10, true),
            "those that send have a turn after each run"
        );
        assert_eq!((&rings.forwarded[..], rings.rings[0].armed), (&[run * 10, 0][..], false));
    }
    assert!(!r.run(&mut rings, 0, usize::MAX).1);
    assert_eq!((rings.rings[0].waiting, rings.rings[0].armed, rings.forwarded[1]), (0, true, 1));
    assert_eq!(r.counters(0).unwrap().rearms, 2, "at the start, and after the ring was empty");
}

#[test]
fn disable_enable_does_not_keep_the_others_for_ever() {
    let (mut r, mut rings) = with(&[Mechanism::DisableEnable, Mechanism::DisableEnable], 300);
    rings.arrive(&mut r, 0, 2 * DRAIN_MOST);
    rings.arrive(&mut r, 1, 1);
    let runs = (0..).take_while(|_| rings.forwarded[1] == 0 && r.run(&mut rings, 0, usize::MAX).1).count();
    assert_eq!(runs, DRAIN_MOST.div_ceil(300));
}

#[test]
fn a_port_whose_interrupt_is_not_heard_is_seen_by_its_ring() {
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt] {
        let (mut r, mut rings) = with(&[mechanism, NAPI_4], 300);
        rings.arrive(&mut r, 1, 1_000);
        // The worker is busy with the other port and asks nobody for interrupts.
        rings.rings[0].waiting = 3;
        r.run(&mut rings, 0, usize::MAX);
        assert_eq!(rings.forwarded[0], 3, "{mechanism}");
    }
}

#[test]
fn an_interrupt_without_packets_is_served() {
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt] {
        let (mut r, mut rings) = with(&[mechanism], 300);
        assert!(r.any_armed() && !r.polls_for_ever(), "{mechanism}");
        r.run(&mut rings, 0, usize::MAX);
        assert_eq!(r.counters(0).unwrap().interrupts, 0, "{mechanism}");
        r.interrupt(0);
        let (forwarded, more) = r.run(&mut rings, 0, usize::MAX);
        assert_eq!((forwarded, more), (0, false), "{mechanism}");
        assert!(r.any_armed(), "{mechanism} may interrupt again");
        assert_eq!(r.counters(0).unwrap().interrupts, 1, "{mechanism}");
    }
}

#[test]
fn a_listed_port_cannot_interrupt() {
    let (mut r, mut rings) = with(&[NAPI_4], 300);
    rings.arrive(&mut r, 0, 5);
    // A quota's worth is taken, and the port is polled again.
    r.run(&mut rings, 0, 4);
    assert!(!r.any_armed());
    r.run(&mut rings, 0, usize::MAX);
    assert!(r.any_armed() && rings.forwarded[0] == 5);
}

#[test]
fn a_backlog_that_was_there_before_is_forwarded() {
    let (mut r, mut rings) = with(&[Mechanism::Interrupt], 300);
    rings.backlog.extend([0; 7]);
    r.set_backlog(7);
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (7, false));
    assert_eq!(rings.forwarded[0], 7);
}

#[test]
fn a_long_backlog_is_forwarded_over_several_runs() {
    let (mut r, mut rings) = with(&[Mechanism::Interrupt], 300);
    rings.backlog.extend([0; BACKLOG_WEIGHT + 1]);
    r.set_backlog(BACKLOG_WEIGHT + 1);
    let first = r.run(&mut rings, 0, usize::MAX);
    assert_eq!(first, (BACKLOG_WEIGHT, true), "there is more, and no interrupt will tell of it");
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (1, false));
}

#[test]
fn packets_that_come_while_others_are_forwarded_keep_the_worker_awake() {
    let (mut r, mut rings) = with(&[Mechanism::Interrupt], 300);
    rings.arrive(&mut r, 0, 1);
    rings.arrivals_per_forward = 1;
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (1, true));
}

#[test]
fn a_turn_that_was_stopped_is_more_to_do() {
    let (mut r, mut rings) = with(&[Mechanism::Polling], 300);
    rings.rings[0].waiting = 5;
    assert_eq!((r.run(&mut rings, 0, 2), r.under_way()), ((2, true), true));
    assert_eq!((r.run(&mut rings, 0, usize::MAX), r.under_way()), ((3, false), false));
}

#[test]
fn mechanisms_are_shown_with_what_was_set() {
    let names =
        Mechanism::NAMES.iter().map(|name| Mechanism::by_name(name, 7, 8, 9_000).unwrap().to_string());
    let shown: Vec<String> = names.collect();
    assert_eq!(shown, ["interrupt", "moderated(8, 9us)", "napi(7)", "disable-enable", "polling"]);
    assert_eq!(Mechanism::by_name("interrupts", 1, 1, 1), None);
}

#[test]
fn polling_needs_no_interrupt_and_counts_empty_polls() {
    let (mut r, mut rings) = with(&[Mechanism::Polling], 300);
    assert!(!rings.rings[0].armed && r.polls_for_ever() && !r.any_armed());
    r.run(&mut rings, 0, usize::MAX);
    r.run(&mut rings, 0, usize::MAX);
    rings.rings[0].waiting = 5;
    r.run(&mut rings, 0, usize::MAX);
    let c = r.counters(0).unwrap();
    assert_eq!((c.interrupts, c.polls, c.empty_polls, c.packets), (0, 3, 2, 5));
}

#[test]
fn napi_is_stopped_in_the_middle_of_its_quota_and_goes_on_later() {
    let (mut r, mut rings) = with(&[NAPI_4, NAPI_4], 6);
    rings.arrive(&mut r, 0, 9);
    rings.arrive(&mut r, 1, 3);
    // Three of the first port's four; then others may run, and more packets come.
    assert_eq!((r.run(&mut rings, 0, 3), r.under_way()), ((3, true), true));
    assert_eq!((rings.forwarded.as_slice(), rings.rings[0].armed), (&[3, 0][..], false));
    assert_eq!(
        (r.counters(0).unwrap().packets, r.counters(0).unwrap().polls),
        (3, 0),
        "its turn is not over"
    );
    rings.arrive(&mut r, 1, 1);
    // The fourth, and no more of that port before the other has had its turn, and its share of the budget.
    assert_eq!(r.run(&mut rings, 0, 2), (2, true));
    assert_eq!(rings.forwarded, [4, 1]);
    assert_eq!((r.run(&mut rings, 0, usize::MAX), r.under_way()), ((1, true), false));
    assert_eq!((rings.forwarded.as_slice(), r.budget_exhausted), (&[4, 2][..], 1));
    while r.run(&mut rings, 0, 1).1 {}
    assert_eq!(rings.forwarded, [9, 4]);
    assert_eq!((r.counters(0).unwrap().packets, r.counters(1).unwrap().packets), (9, 4));
    assert!(rings.rings.iter().all(|ring| ring.armed && ring.waiting == 0));
}

#[test]
fn a_port_that_interrupts_while_a_napi_run_is_stopped_has_a_turn_in_it() {
    let (mut r, mut rings) = with(&[NAPI_4, NAPI_4], 300);
    rings.arrive(&mut r, 0, 100);
    r.run(&mut rings, 0, 2);
    rings.arrive(&mut r, 1, 3);
    r.run(&mut rings, 0, 2);
    assert_eq!((rings.forwarded.as_slice(), rings.rings[1].armed), (&[4, 0][..], false), "the turn goes on");
    r.run(&mut rings, 0, 3);
    assert_eq!(rings.forwarded, [4, 3]);
    assert_eq!(r.counters(1).unwrap().interrupts, 1);
}

/// Those that let the worker sleep.
fn woken_mechanism() -> impl Strategy<Value = Mechanism> {
    prop_oneof![
        Just(Mechanism::Interrupt),
        Just(Mechanism::Moderated { packets: 5, time_ns: 100 }),
        (1u32..9).prop_map(|quota| Mechanism::Napi { quota }),
        Just(Mechanism::DisableEnable),
    ]
}

fn any_mechanism() -> impl Strategy<Value = Mechanism> {
    prop_oneof![4 => woken_mechanism(), 1 => Just(Mechanism::Polling)]
}

proptest! {
    /// Runs that are stopped wherever it may be do what runs without a limit do, in the same order.
    #[test]
    fn where_runs_stop_makes_no_difference(
        mechanisms in proptest::collection::vec(any_mechanism(), 1..4),
        arrivals in proptest::collection::vec(0usize..400, 4),
        limits in proptest::collection::vec(1usize..7, 1..9),
    ) {
        let settle = |limits: &mut dyn Iterator<Item = usize>| {
            let (mut r, mut rings) = with(&mechanisms, 20);
            for (port, n) in arrivals.iter().enumerate().take(mechanisms.len()) {
                rings.arrive(&mut r, port, *n);
            }
            let mut quiet = 0;
            while quiet < 2 {
                // Time stands still, so that moderated interrupts are due for the number of packets alone.
                let (forwarded, more) = r.run(&mut rings, 0, limits.next().unwrap_or(usize::MAX));
                quiet = if forwarded > 0 || more { 0 } else { quiet + 1 };
            }
            let counters = (0..mechanisms.len()).map(|port| *r.counters(port).unwrap());
            // Idle looks of ports that are always polled depend on how often that is.
            let counters: Vec<_> = counters.map(|c| PortCounters { polls: 0, empty_polls: 0, ..c }).collect();
            let waiting: Vec<_> = rings.rings.iter().map(|ring| ring.waiting).collect();
            (rings.forwarded, waiting, counters)
        };
        let whole = settle(&mut std::iter::empty());
        prop_assert_eq!(settle(&mut limits.iter().copied().cycle()), whole);
    }
}
