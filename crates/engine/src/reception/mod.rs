//! How a worker learns of packets: the papers' reception mechanisms, free of I/O.
//!
//! The live router runs this over sockets and epoll, the model over simulated rings: one implementation. A port is
//! anything that can be armed (it will interrupt when packets arrive), disarmed, asked whether packets wait, and
//! told to receive; [`Ports`] is that much. [`Reception`] decides when to call which.
//!
//! | mechanism | on an interrupt | papers |
//! | --- | --- | --- |
//! | interrupt | drain the ring into a backlog of 300 packets, drop when it is full; forwarding empties the backlog when no interrupt waits: receive livelock under load | OSR §3.3 |
//! | moderated | the same, but the interrupt comes only after a number of packets or a time, whichever is first | OSR §3.3 |
//! | NAPI | mask; poll the ports in turn, at most a quota each and a budget in all a run; a port that gave less than its quota goes back to interrupts | OSR §3.3, CvL §3.1 |
//! | Disable–Enable | mask, receive until the ring is empty, unmask | AFF §2.1 |
//! | polling | there are none: every run looks at the ring | CvL §3.2 |

mod mechanism;
#[cfg(test)]
mod tests;

pub use mechanism::{BACKLOG, DEFAULT_BUDGET, DEFAULT_QUOTA, Mechanism};

use std::collections::VecDeque;

/// Packets forwarded from the backlog between two looks for interrupts. One would be exact; a few keep the cost
/// of looking out of the measurement.
const BACKLOG_WEIGHT: usize = 8;
/// Packets taken at a time where the mechanism sets no limit.
const CHUNK: usize = 64;
/// Packets that an interrupt handler takes at most: more than a ring holds, so that receive livelock is what it was, and
/// not so many that nobody else is ever heard.
pub const DRAIN_MOST: usize = 4_096;
/// Runs of Disable–Enable's drain before other work gets a turn; its ring may never be empty.
const DRAIN_LIMIT: usize = 64;

/// The ports of one worker, as the mechanisms need them.
pub trait Ports {
    /// Lets `port` interrupt when packets arrive.
    fn arm(&mut self, port: usize);
    /// Masks the interrupt of `port`.
    fn disarm(&mut self, port: usize);
    /// Packets that wait on `port`; a lower bound above zero is enough where the device does not know better.
    fn pending(&mut self, port: usize) -> usize;
    /// Takes at most `max` packets from `port` and forwards them; returns how many.
    fn receive(&mut self, port: usize, max: usize) -> usize;
    /// Takes all packets from `port`, as far as [`DRAIN_MOST`] goes, puts at most `room` of them on the backlog and drops
    /// the others; returns how many it put and dropped.
    fn enqueue(&mut self, port: usize, room: usize) -> (usize, usize);
    /// Forwards at most `max` packets from the backlog; returns how many.
    fn forward(&mut self, max: usize) -> usize;
}

/// What happened on one port (LUT §3.4 counts the same).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Interrupts taken.
    pub interrupts: u64,
    /// Times the ring was looked at for packets.
    pub polls: u64,
    /// Of those, times it was empty.
    pub empty_polls: u64,
    /// Packets received.
    pub packets: u64,
    /// Polls that used up the quota.
    pub quota_hits: u64,
    /// Packets dropped because the backlog was full.
    pub backlog_drops: u64,
    /// Times interrupts were unmasked again.
    pub rearms: u64,
}

#[derive(Clone, Debug)]
struct Port {
    mechanism: Mechanism,
    /// An interrupt came and was not served yet.
    raised: bool,
    /// Interrupts are unmasked.
    armed: bool,
    /// On the polling list.
    listed: bool,
    /// When the first packet of a moderated interrupt came.
    since_ns: Option<u64>,
    counters: PortCounters,
}

/// The reception mechanisms of one worker.
#[derive(Clone, Debug, Default)]
pub struct Reception {
    ports: Vec<Port>,
    /// Ports to poll, the next one first.
    list: VecDeque<usize>,
    /// Packets in a NAPI run over all ports.
    budget: usize,
    /// Packets on the backlog.
    backlog: usize,
    /// Runs that ended because the budget was used up.
    pub budget_exhausted: u64,
}

impl Reception {
    /// Mechanisms for a worker whose NAPI runs take at most `budget` packets.
    pub fn new(budget: usize) -> Self {
        Reception {
            ports: Vec::new(),
            list: VecDeque::new(),
            budget: budget.max(1),
            backlog: 0,
            budget_exhausted: 0,
        }
    }

    /// Adds a port; returns its number.
    pub fn add(&mut self, mechanism: Mechanism) -> usize {
        self.ports.push(Port {
            mechanism,
            raised: false,
            armed: false,
            listed: false,
            since_ns: None,
            counters: PortCounters::default(),
        });
        self.ports.len() - 1
    }

    /// Sets all ports going: interrupt-driven ones are armed and looked at once, because packets may have come
    /// before.
    pub fn start(&mut self, io: &mut impl Ports) {
        for port in 0..self.ports.len() {
            if self.ports[port].mechanism == Mechanism::Polling {
                io.disarm(port);
            } else {
                self.arm(io, port);
            }
        }
    }

    /// What happened on `port` so far.
    pub fn counters(&self, port: usize) -> Option<&PortCounters> {
        self.ports.get(port).map(|p| &p.counters)
    }

    /// Goes on counting for `port` from there.
    pub fn set_counters(&mut self, port: usize, counters: PortCounters) {
        if let Some(p) = self.ports.get_mut(port) {
            p.counters = counters;
        }
    }

    /// So many packets are on the backlog already.
    pub fn set_backlog(&mut self, packets: usize) {
        self.backlog = packets;
    }

    /// Whether any port is polled for ever, so that the worker must not sleep.
    pub fn polls_for_ever(&self) -> bool {
        self.ports.iter().any(|p| p.mechanism == Mechanism::Polling)
    }

    /// Whether any port can interrupt.
    pub fn any_armed(&self) -> bool {
        self.ports.iter().any(|p| p.armed)
    }

    /// The device of `port` raised its interrupt.
    pub fn interrupt(&mut self, port: usize) {
        if let Some(p) = self.ports.get_mut(port).filter(|p| p.armed) {
            p.raised = true;
        }
    }

    /// When a moderated interrupt is due, if one waits.
    pub fn deadline_ns(&self) -> Option<u64> {
        let due = |p: &Port| match p.mechanism {
            Mechanism::Moderated { time_ns, .. } => p.since_ns.map(|since| since + time_ns),
            _ => None,
        };
        self.ports.iter().filter_map(due).min()
    }

    /// One turn of reception; returns how many packets were forwarded, and whether there is more to do at once.
    pub fn run(&mut self, io: &mut impl Ports, now_ns: u64) -> (usize, bool) {
        self.take_interrupts(io, now_ns);
        let mut forwarded = self.forward_backlog(io);
        forwarded += self.poll_listed(io);
        forwarded += self.poll_always(io);
        let more =
            self.backlog > 0 || !self.list.is_empty() || self.ports.iter().any(|p| p.raised && p.due(now_ns));
        (forwarded, more)
    }

    fn arm(&mut self, io: &mut impl Ports, port: usize) {
        let p = &mut self.ports[port];
        p.armed = true;
        p.counters.rearms += 1;
        io.arm(port);
        // A packet that came before the unmasking raises no interrupt of its own.
        if io.pending(port) > 0 {
            p.raised = true;
        }
    }

    fn take_interrupts(&mut self, io: &mut impl Ports, now_ns: u64) {
        for port in 0..self.ports.len() {
            let p = &mut self.ports[port];
            // A worker with other work hears of an interrupt late; asking the ring takes a load.
            if p.armed && !p.raised && io.pending(port) > 0 {
                p.raised = true;
            }
            if !p.raised {
                continue;
            }
            match p.mechanism {
                Mechanism::Polling => p.raised = false,
                Mechanism::Napi { .. } | Mechanism::DisableEnable => {
                    p.raised = false;
                    p.armed = false;
                    p.counters.interrupts += 1;
                    io.disarm(port);
                    if !std::mem::replace(&mut p.listed, true) {
                        self.list.push_back(port);
                    }
                }
                Mechanism::Interrupt => self.drain_to_backlog(io, port),
                Mechanism::Moderated { packets, .. } => {
                    p.since_ns.get_or_insert(now_ns);
                    if p.due(now_ns) || io.pending(port) >= packets as usize {
                        self.ports[port].since_ns = None;
                        self.drain_to_backlog(io, port);
                    }
                }
            }
        }
    }

    /// The interrupt handler of the interrupt-driven mechanisms.
    fn drain_to_backlog(&mut self, io: &mut impl Ports, port: usize) {
        let (put, dropped) = io.enqueue(port, BACKLOG.saturating_sub(self.backlog));
        self.backlog += put;
        let counters = &mut self.ports[port].counters;
        counters.interrupts += 1;
        counters.polls += 1;
        counters.packets += (put + dropped) as u64;
        counters.backlog_drops += dropped as u64;
        self.ports[port].raised = io.pending(port) > 0;
    }

    fn forward_backlog(&mut self, io: &mut impl Ports) -> usize {
        if self.backlog == 0 {
            return 0;
        }
        let n = io.forward(self.backlog.min(BACKLOG_WEIGHT));
        self.backlog = self.backlog.saturating_sub(n.max(1));
        // Interrupts come first: those of packets that arrived meanwhile are seen before the next few packets.
        for port in 0..self.ports.len() {
            let driven =
                matches!(self.ports[port].mechanism, Mechanism::Interrupt | Mechanism::Moderated { .. });
            if driven && io.pending(port) > 0 {
                self.ports[port].raised = true;
            }
        }
        n
    }

    /// One NAPI run: the listed ports in turn, a quota each, a budget in all.
    fn poll_listed(&mut self, io: &mut impl Ports) -> usize {
        let mut left = self.budget;
        while left > 0
            && let Some(port) = self.list.pop_front()
        {
            let (got, again) = match self.ports[port].mechanism {
                Mechanism::Napi { quota } => self.poll_quota(io, port, quota as usize, left),
                _ => self.drain(io, port),
            };
            left = left.saturating_sub(got);
            if again {
                self.list.push_back(port);
            } else {
                self.ports[port].listed = false;
                self.arm(io, port);
            }
        }
        if left == 0 && !self.list.is_empty() {
            self.budget_exhausted += 1;
        }
        self.budget - left
    }

    fn poll_quota(&mut self, io: &mut impl Ports, port: usize, quota: usize, left: usize) -> (usize, bool) {
        let got = self.poll(io, port, quota.min(left));
        let again = got >= quota.min(left);
        self.ports[port].counters.quota_hits += (got >= quota) as u64;
        (got, again)
    }

    /// Disable–Enable: until the ring is empty.
    fn drain(&mut self, io: &mut impl Ports, port: usize) -> (usize, bool) {
        let mut total = 0;
        for _ in 0..DRAIN_LIMIT {
            let got = self.poll(io, port, CHUNK);
            total += got;
            if got < CHUNK {
                return (total, false);
            }
        }
        (total, true)
    }

    fn poll_always(&mut self, io: &mut impl Ports) -> usize {
        let mut forwarded = 0;
        for port in 0..self.ports.len() {
            if self.ports[port].mechanism == Mechanism::Polling {
                forwarded += self.poll(io, port, CHUNK);
            }
        }
        forwarded
    }

    fn poll(&mut self, io: &mut impl Ports, port: usize, max: usize) -> usize {
        let got = io.receive(port, max);
        let counters = &mut self.ports[port].counters;
        counters.polls += 1;
        counters.empty_polls += (got == 0) as u64;
        counters.packets += got as u64;
        got
    }
}

impl Port {
    /// Whether a raised interrupt is to be served now rather than moderated further.
    fn due(&self, now_ns: u64) -> bool {
        match self.mechanism {
            Mechanism::Moderated { time_ns, .. } => {
                self.since_ns.is_some_and(|since| now_ns >= since + time_ns)
            }
            _ => true,
        }
    }
}
