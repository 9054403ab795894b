//! The mechanisms over simulated rings.

use super::*;

/// Rings of bounded size, fed by the test; the backlog is a count.
#[derive(Default)]
struct Rings {
    waiting: Vec<usize>,
    armed: Vec<bool>,
    forwarded: Vec<usize>,
    backlog: VecDeque<usize>,
    /// Packets that arrive on port 0 whenever one packet is forwarded: load that does not wait.
    arrivals_per_forward: usize,
}

impl Rings {
    fn new(ports: usize) -> Self {
        let zeros = || vec![0; ports];
        Rings { waiting: zeros(), armed: vec![false; ports], forwarded: zeros(), ..Rings::default() }
    }

    fn arrive(&mut self, reception: &mut Reception, port: usize, n: usize) {
        self.waiting[port] += n;
        if self.armed[port] {
            reception.interrupt(port);
        }
    }
}

impl Ports for Rings {
    fn arm(&mut self, port: usize) {
        self.armed[port] = true;
    }

    fn disarm(&mut self, port: usize) {
        self.armed[port] = false;
    }

    fn pending(&mut self, port: usize) -> usize {
        self.waiting[port]
    }

    fn receive(&mut self, port: usize, max: usize) -> usize {
        let n = self.waiting[port].min(max);
        self.waiting[port] -= n;
        self.forwarded[port] += n;
        n
    }

    fn enqueue(&mut self, port: usize, room: usize) -> (usize, usize) {
        let n = std::mem::take(&mut self.waiting[port]);
        let put = n.min(room);
        self.backlog.extend(std::iter::repeat_n(port, put));
        (put, n - put)
    }

    fn forward(&mut self, max: usize) -> usize {
        let n = max.min(self.backlog.len());
        for port in self.backlog.drain(..n) {
            self.forwarded[port] += 1;
        }
        self.waiting[0] += n * self.arrivals_per_forward;
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
    assert!(rings.armed[0]);
    rings.arrive(&mut r, 0, 10);
    assert_eq!(r.run(&mut rings, 0), (10, false));
    assert!(rings.armed[0]);
    let c = r.counters(0).unwrap();
    assert_eq!((c.interrupts, c.polls, c.packets, c.quota_hits), (1, 3, 10, 2));
}

#[test]
fn napi_shares_by_quota_and_stops_at_the_budget() {
    let (mut r, mut rings) = with(&[Mechanism::Napi { quota: 6 }, Mechanism::Napi { quota: 2 }], 16);
    rings.arrive(&mut r, 0, 1_000);
    rings.arrive(&mut r, 1, 1_000);
    let (forwarded, more) = r.run(&mut rings, 0);
    assert_eq!((forwarded, more, r.budget_exhausted), (16, true, 1));
    for _ in 0..9 {
        r.run(&mut rings, 0);
    }
    assert_eq!(rings.forwarded, [120, 40], "shares follow the quotas (OSR-9)");
    assert!(!rings.armed[0] && !rings.armed[1]);
}

#[test]
fn a_packet_between_the_last_poll_and_the_unmasking_is_not_forgotten() {
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt] {
        let (mut r, mut rings) = with(&[mechanism], 300);
        rings.arrive(&mut r, 0, 1);
        while r.run(&mut rings, 0).1 {}
        // It came while masked, so no interrupt tells of it.
        r.ports[0].armed = false;
        rings.waiting[0] = 1;
        r.arm(&mut rings, 0);
        while r.run(&mut rings, 0).1 {}
        assert_eq!(rings.forwarded[0], 2, "{mechanism}");
    }
}

#[test]
fn interrupt_driven_reception_drops_at_the_backlog_and_livelocks_under_load() {
    let (mut r, mut rings) = with(&[Mechanism::Interrupt], 300);
    rings.arrive(&mut r, 0, 1_000);
    r.run(&mut rings, 0);
    assert_eq!(r.counters(0).unwrap().backlog_drops, 700);
    // Offered load well above what is forwarded: the backlog stays full and all work goes into drops.
    rings.arrivals_per_forward = 50;
    for _ in 0..100 {
        r.run(&mut rings, 0);
    }
    let c = *r.counters(0).unwrap();
    assert!(c.backlog_drops > 20 * rings.forwarded[0] as u64, "{c:?}");
    // NAPI under the same load loses nothing after reception.
    let (mut r, mut rings) = with(&[NAPI_4], 300);
    rings.arrive(&mut r, 0, 100_000);
    r.run(&mut rings, 0);
    assert_eq!((rings.forwarded[0], r.counters(0).unwrap().backlog_drops), (300, 0));
}

#[test]
fn moderation_waits_for_packets_or_time_whichever_is_first() {
    let moderated = Mechanism::Moderated { packets: 8, time_ns: 100 };
    let (mut r, mut rings) = with(&[moderated], 300);
    rings.arrive(&mut r, 0, 3);
    assert_eq!(r.run(&mut rings, 1_000), (0, false));
    assert_eq!(r.deadline_ns(), Some(1_100));
    assert_eq!(r.run(&mut rings, 1_099).0, 0);
    assert_eq!(r.run(&mut rings, 1_100).0, 3);
    assert_eq!((r.deadline_ns(), r.counters(0).unwrap().interrupts), (None, 1));
    rings.arrive(&mut r, 0, 8);
    assert_eq!(r.run(&mut rings, 2_000).0, 8, "enough packets do not wait");
}

#[test]
fn disable_enable_empties_the_ring() {
    let (mut r, mut rings) = with(&[Mechanism::DisableEnable], 10);
    rings.arrive(&mut r, 0, 1_000);
    assert!(!r.run(&mut rings, 0).1);
    assert_eq!((rings.waiting[0], rings.forwarded[0], rings.armed[0]), (0, 1_000, true));
}

#[test]
fn a_port_whose_interrupt_is_not_heard_is_seen_by_its_ring() {
    for mechanism in [NAPI_4, Mechanism::DisableEnable, Mechanism::Interrupt] {
        let (mut r, mut rings) = with(&[mechanism, NAPI_4], 300);
        rings.arrive(&mut r, 1, 1_000);
        // The worker is busy with the other port and asks nobody for interrupts.
        rings.waiting[0] = 3;
        r.run(&mut rings, 0);
        assert_eq!(rings.forwarded[0], 3, "{mechanism}");
    }
}

#[test]
fn polling_needs_no_interrupt_and_counts_empty_polls() {
    let (mut r, mut rings) = with(&[Mechanism::Polling], 300);
    assert!(!rings.armed[0] && r.polls_for_ever());
    r.run(&mut rings, 0);
    rings.waiting[0] = 5;
    r.run(&mut rings, 0);
    let c = r.counters(0).unwrap();
    assert_eq!((c.interrupts, c.polls, c.empty_polls, c.packets), (0, 2, 1, 5));
}
