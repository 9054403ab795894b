//! A port that takes every chance to be missed.

use super::*;

/// A port into which packets come between any two calls: at every call the next number of a list, and then no more.
struct Adversary {
    ring: Ring,
    arrivals: VecDeque<usize>,
    arrived: usize,
    /// Its descriptor became readable, which the worker has not been told yet.
    edge: bool,
    forwarded: usize,
    backlog: usize,
    dropped: usize,
}

impl Adversary {
    fn come(&mut self) {
        let n = self.arrivals.pop_front().unwrap_or(0);
        self.arrived += n;
        self.ring.waiting += n;
        self.edge |= n > 0 && self.ring.armed;
    }
}

impl Receiver for Adversary {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        self.come();
        let more = self.ring.poll(batch, budget);
        self.come();
        more
    }

    fn arm(&mut self) -> bool {
        self.come();
        let waiting = self.ring.arm();
        self.come();
        waiting
    }

    fn disarm(&mut self) {
        self.come();
        self.ring.disarm();
        self.come();
    }

    fn waiting(&mut self) -> usize {
        let waiting = self.ring.waiting;
        self.come();
        waiting
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Ports for Adversary {
    fn receiver(&mut self, _port: usize) -> Option<&mut dyn Receiver> {
        Some(self)
    }

    fn receive(&mut self, _port: usize, budget: usize) -> Received {
        let mut batch = Batch::new();
        let more = self.poll(&mut batch, budget);
        self.forwarded += batch.len();
        Received { packets: batch.len(), more }
    }

    fn enqueue(&mut self, _port: usize, room: usize, budget: usize) -> Received {
        let mut batch = Batch::new();
        let more = self.poll(&mut batch, budget);
        self.backlog += batch.len().min(room);
        self.dropped += batch.len().saturating_sub(room);
        Received { packets: batch.len(), more }
    }

    fn forward(&mut self, max: usize) -> usize {
        let n = max.min(self.backlog);
        self.backlog -= n;
        self.forwarded += n;
        n
    }
}

proptest! {
    // What would be forgotten is what comes at the one wrong moment, and nothing after it.
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// However packets come, a worker that sleeps only when nothing is to be done, and only as long as nobody wakes it,
    /// forgets none.
    #[test]
    fn no_packet_waits_for_a_worker_that_sleeps(
        mechanism in woken_mechanism(),
        arrivals in proptest::collection::vec(prop_oneof![2 => Just(0usize), 1 => 1usize..9], 0..20),
        limit in prop_oneof![Just(usize::MAX), 1usize..5],
    ) {
        let (arrivals, ring) = (arrivals.into(), Ring::default());
        let mut port =
            Adversary { ring, arrivals, arrived: 0, edge: false, forwarded: 0, backlog: 0, dropped: 0 };
        let mut r = Reception::new(10);
        r.add(mechanism);
        r.start(&mut port);
        let mut now_ns = 0;
        loop {
            let (forwarded, more) = r.run(&mut port, now_ns, limit);
            if forwarded > 0 || more {
                continue;
            }
            // The worker sleeps. What wakes it is the descriptor or the time, and nothing else.
            while !port.edge && !port.arrivals.is_empty() {
                port.come();
            }
            if std::mem::take(&mut port.edge) {
                r.interrupt(0);
            } else if let Some(when_ns) = r.deadline_ns() {
                now_ns = now_ns.max(when_ns);
            } else {
                break;
            }
        }
        prop_assert_eq!((port.ring.waiting, port.backlog), (0, 0));
        prop_assert_eq!(port.arrived, port.forwarded + port.dropped);
        let c = r.counters(0).unwrap();
        prop_assert_eq!((c.packets, c.backlog_drops), (port.arrived as u64, port.dropped as u64));
    }
}
