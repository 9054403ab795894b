//! How a worker learns of packets: the papers' reception mechanisms, free of I/O.
//!
//! The live router runs this over sockets and epoll, the model over simulated rings: one implementation. A port's
//! packets come from a [`Receiver`]; [`Ports`] says which port has which, and forwards. [`Reception`] decides when to ask
//! whom for how many.
//!
//! | mechanism | on an interrupt | papers |
//! | --- | --- | --- |
//! | interrupt | drain the ring into a backlog of 300 packets, drop when it is full; forwarding empties the backlog when no interrupt waits: receive livelock under load | OSR §3.3 |
//! | moderated | the same, but the interrupt comes only after a number of packets or a time, whichever is first | OSR §3.3 |
//! | NAPI | mask; poll the ports in turn, at most a quota each and a budget in all a run; a port that gave less than its quota goes back to interrupts | OSR §3.3, CvL §3.1 |
//! | Disable–Enable | mask, receive until the ring is empty, unmask | AFF §2.1 |
//! | polling | there are none: every run looks at the ring | CvL §3.2 |

mod mechanism;
mod state;
#[cfg(test)]
mod tests;

pub use mechanism::{BACKLOG, DEFAULT_BUDGET, DEFAULT_QUOTA, Mechanism};
pub use state::PortCounters;

use causeway_packet::Receiver;
use state::{State, Turn};
use std::collections::VecDeque;

/// Packets forwarded from the backlog between two looks for interrupts. One would be exact; a few keep the cost
/// of looking out of the measurement.
const BACKLOG_WEIGHT: usize = 8;
/// Packets taken at a time where the mechanism sets no limit.
const CHUNK: usize = 64;
/// Packets that an interrupt handler takes at most, and Disable–Enable before another port has its turn: more than a ring holds,
/// so that receive livelock is what it was, and not so many that nobody else is ever heard.
const DRAIN_MOST: usize = 4_096;

/// What came of receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets taken.
    pub packets: usize,
    /// Whether more may wait.
    pub more: bool,
}

/// The ports of one worker, as the mechanisms need them.
pub trait Ports {
    /// Where the packets of `port` come from; `None` if there is no such port.
    fn receiver(&mut self, port: usize) -> Option<&mut dyn Receiver>;
    /// Polls `port` for at most `budget` packets and forwards them.
    fn receive(&mut self, port: usize, budget: usize) -> Received;
    /// Polls `port` for at most `budget` packets, puts at most `room` of them on the backlog and drops the others.
    fn enqueue(&mut self, port: usize, room: usize, budget: usize) -> Received;
    /// Forwards at most `max` packets from the backlog; returns how many.
    fn forward(&mut self, max: usize) -> usize;
    /// Whether what is forwarded waits to be delivered until a run is over, so that the run stops with the first.
    fn defers(&self) -> bool {
        false
    }
}

/// What a run does, in that order. One that stopped goes on where it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Interrupts,
    Backlog,
    Listed,
    Always,
}

/// The reception mechanisms of one worker.
#[derive(Clone, Debug, Default)]
pub struct Reception {
    ports: Vec<State>,
    /// Ports to poll, the next one first.
    list: VecDeque<usize>,
    /// Packets in a NAPI run over all ports.
    budget: usize,
    /// Of those, packets that the NAPI run under way may still take.
    budget_left: Option<usize>,
    /// Packets on the backlog.
    backlog: usize,
    /// Where the next run begins: in which phase, and with which port.
    phase: Phase,
    next: usize,
    /// Whether the last run stopped at its limit.
    under_way: bool,
    /// Runs that ended because the budget was used up.
    pub budget_exhausted: u64,
}

impl Reception {
    /// Mechanisms for a worker whose NAPI runs take at most `budget` packets.
    pub fn new(budget: usize) -> Self {
        Reception { budget: budget.max(1), ..Reception::default() }
    }

    /// Adds a port. Ports have numbers in the order in which they were added, from 0.
    pub fn add(&mut self, mechanism: Mechanism) {
        self.ports.push(State::new(mechanism));
    }

    /// Sets all ports going: interrupt-driven ones are armed and looked at once, because packets may have come
    /// before.
    pub fn start(&mut self, io: &mut impl Ports) {
        for port in 0..self.ports.len() {
            if self.ports[port].mechanism == Mechanism::Polling {
                disarm(io, port);
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

    /// From now on it is noted which ports are found empty; what was noted before does not count.
    pub fn look_anew(&mut self) {
        self.ports.iter_mut().for_each(|p| p.emptied = false);
    }

    /// Whether each port was found empty since it was looked at anew, and nothing is on the backlog.
    pub fn emptied(&self) -> bool {
        self.backlog == 0 && self.ports.iter().all(|p| p.emptied)
    }

    /// The device of `port` raised its interrupt.
    pub fn interrupt(&mut self, port: usize) {
        if let Some(p) = self.ports.get_mut(port).filter(|p| p.armed) {
            p.raised = true;
        }
    }

    /// When a moderated interrupt is due, if one waits.
    pub fn deadline_ns(&self) -> Option<u64> {
        let due = |p: &State| match p.mechanism {
            Mechanism::Moderated { time_ns, .. } => p.since_ns.map(|since| since.saturating_add(time_ns)),
            _ => None,
        };
        self.ports.iter().filter_map(due).min()
    }

    /// One run of reception; returns how many packets were forwarded, and whether there is more to do at once.
    ///
    /// It takes at most `limit` packets, at least one, and then stops wherever it is: the next run goes on from there as
    /// if nothing had been between, but that time has passed and packets have come. A live worker sets no limit; whoever
    /// lets each packet cost time says one.
    pub fn run(&mut self, io: &mut impl Ports, now_ns: u64, limit: usize) -> (usize, bool) {
        let (mut left, mut forwarded) = (limit.max(1), 0);
        if self.under_way && self.phase == Phase::Listed {
            self.list_raised(io);
        }
        let done = self.take_interrupts(io, now_ns, &mut left)
            && self.forward_backlog(io, &mut left, &mut forwarded)
            && self.poll_listed(io, &mut left, &mut forwarded)
            && self.poll_always(io, &mut left, &mut forwarded);
        self.under_way = !done;
        let more = !done
            || self.backlog > 0
            || !self.list.is_empty()
            || self.ports.iter().any(|p| p.raised && p.due(now_ns));
        (forwarded, more)
    }

    /// Whether the last run stopped at its limit, so that the next one is the rest of it.
    pub fn under_way(&self) -> bool {
        self.under_way
    }

    /// Goes on to `phase`, from its first port on.
    fn enter(&mut self, phase: Phase) -> bool {
        (self.phase, self.next) = (phase, 0);
        true
    }

    fn arm(&mut self, io: &mut impl Ports, port: usize) {
        let p = &mut self.ports[port];
        p.armed = true;
        p.counters.rearms += 1;
        // A packet that came before the unmasking raises no interrupt of its own.
        self.ports[port].raised = self.look(io, port);
    }

    /// Unmasks the interrupt of a port, or finds it unmasked; says whether packets may wait.
    fn look(&mut self, io: &mut impl Ports, port: usize) -> bool {
        let waits = io.receiver(port).is_some_and(|receiver| receiver.arm());
        self.ports[port].emptied |= !waits;
        waits
    }

    /// False: the limit is used up.
    fn take_interrupts(&mut self, io: &mut impl Ports, now_ns: u64, limit: &mut usize) -> bool {
        if self.phase != Phase::Interrupts {
            return true;
        }
        while self.next < self.ports.len() {
            let port = self.next;
            // A worker with other work hears of an interrupt late; asking the ring takes a load.
            if self.ports[port].armed && !self.ports[port].raised {
                self.ports[port].raised = self.look(io, port);
            }
            if self.ports[port].raised && !self.serve(io, port, now_ns, limit) {
                return false;
            }
            self.next += 1;
        }
        self.enter(Phase::Backlog)
    }

    /// Ports that interrupted while a NAPI run was stopped have a turn in it, behind those that are listed, as a handler of
    /// their interrupts would put them there. A run that is never stopped hears of none.
    fn list_raised(&mut self, io: &mut impl Ports) {
        for port in 0..self.ports.len() {
            let p = &self.ports[port];
            if p.raised && matches!(p.mechanism, Mechanism::Napi { .. } | Mechanism::DisableEnable) {
                self.list(io, port);
            }
        }
    }

    /// Masks the interrupt of a port that raised it, and has it polled.
    fn list(&mut self, io: &mut impl Ports, port: usize) {
        let p = &mut self.ports[port];
        p.raised = false;
        p.armed = false;
        p.counters.interrupts += 1;
        disarm(io, port);
        if !std::mem::replace(&mut p.listed, true) {
            self.list.push_back(port);
        }
    }

    /// Serves the interrupt of a port. False: the limit is used up.
    fn serve(&mut self, io: &mut impl Ports, port: usize, now_ns: u64, limit: &mut usize) -> bool {
        let p = &mut self.ports[port];
        match p.mechanism {
            Mechanism::Polling => p.raised = false,
            Mechanism::Napi { .. } | Mechanism::DisableEnable => self.list(io, port),
            Mechanism::Interrupt => return self.drain_to_backlog(io, port, limit),
            Mechanism::Moderated { packets, .. } => {
                p.since_ns.get_or_insert(now_ns);
                if p.turn.is_some() || p.due(now_ns) || waiting(io, port) >= packets as usize {
                    let done = self.drain_to_backlog(io, port, limit);
                    if done {
                        self.ports[port].since_ns = None;
                    }
                    return done;
                }
            }
        }
        true
    }

    /// The interrupt handler of the interrupt-driven mechanisms. False: the limit is used up.
    fn drain_to_backlog(&mut self, io: &mut impl Ports, port: usize, limit: &mut usize) -> bool {
        let p = &mut self.ports[port];
        if p.turn.is_none() {
            p.counters.interrupts += 1;
        }
        let mut dropped = 0;
        let done = self.turn(port, DRAIN_MOST, limit, |backlog, budget| {
            let room = BACKLOG.saturating_sub(*backlog);
            let received = io.enqueue(port, room, budget);
            let put = received.packets.min(room);
            *backlog += put;
            dropped = received.packets - put;
            received
        });
        self.ports[port].counters.backlog_drops += dropped as u64;
        if done.is_some() {
            self.ports[port].raised = self.look(io, port);
        }
        done.is_some()
    }

    fn forward_backlog(&mut self, io: &mut impl Ports, limit: &mut usize, forwarded: &mut usize) -> bool {
        if self.phase != Phase::Backlog {
            return true;
        }
        if self.backlog > 0 {
            if *limit == 0 {
                return false;
            }
            let n = io.forward(self.backlog.min(BACKLOG_WEIGHT).min(*limit));
            self.backlog = self.backlog.saturating_sub(n.max(1));
            *forwarded += n;
            *limit = if io.defers() { 0 } else { limit.saturating_sub(n) };
            self.hear_driven(io);
        }
        self.enter(Phase::Listed)
    }

    /// Interrupts come first: those of packets that arrived meanwhile are seen before the next few packets.
    fn hear_driven(&mut self, io: &mut impl Ports) {
        for port in 0..self.ports.len() {
            let driven =
                matches!(self.ports[port].mechanism, Mechanism::Interrupt | Mechanism::Moderated { .. });
            if driven && self.look(io, port) {
                self.ports[port].raised = true;
            }
        }
    }

    /// One NAPI run: the listed ports in turn, a quota each, a budget in all. Disable–Enable has no quota: its port goes on in the
    /// next run until its ring is empty. Between runs those that send have their turn, since Linux of the paper hands each
    /// packet to the other card at once, and what is only queued here would be dropped. False: the limit is used up.
    fn poll_listed(&mut self, io: &mut impl Ports, limit: &mut usize, forwarded: &mut usize) -> bool {
        if self.phase != Phase::Listed {
            return true;
        }
        let mut left = self.budget_left.take().unwrap_or(self.budget);
        while left > 0
            && let Some(&port) = self.list.front()
        {
            let in_one_go = self.ports[port].taken_in_go;
            let quota = match self.ports[port].mechanism {
                Mechanism::Napi { quota } => quota as usize,
                _ => DRAIN_MOST - in_one_go,
            };
            let most = quota.min(left);
            let Some(Turn { left: unused, taken }) = self.poll(io, port, most, limit, forwarded) else {
                self.budget_left = Some(left);
                return false;
            };
            self.list.pop_front();
            left = left.saturating_sub(taken);
            let p = &mut self.ports[port];
            p.counters.quota_hits += u64::from(p.mechanism != Mechanism::DisableEnable && taken >= quota);
            p.taken_in_go = 0;
            if unused == 0 && p.mechanism == Mechanism::DisableEnable && taken < quota {
                p.taken_in_go = in_one_go + taken;
                self.list.push_front(port);
            } else if unused == 0 {
                self.list.push_back(port);
            } else {
                p.listed = false;
                self.arm(io, port);
            }
        }
        if !self.list.is_empty() {
            self.budget_exhausted += 1;
        }
        self.enter(Phase::Always)
    }

    fn poll_always(&mut self, io: &mut impl Ports, limit: &mut usize, forwarded: &mut usize) -> bool {
        while self.next < self.ports.len() {
            let port = self.next;
            if self.ports[port].mechanism == Mechanism::Polling {
                let Some(turn) = self.poll(io, port, CHUNK, limit, forwarded) else { return false };
                self.ports[port].emptied |= turn.left > 0;
            }
            self.next += 1;
        }
        self.enter(Phase::Interrupts)
    }

    /// A turn whose packets are forwarded at once.
    fn poll(
        &mut self,
        io: &mut impl Ports,
        port: usize,
        most: usize,
        limit: &mut usize,
        forwarded: &mut usize,
    ) -> Option<Turn> {
        let before = *forwarded;
        let turn = self.turn(port, most, limit, |_, budget| {
            let received = io.receive(port, budget);
            *forwarded += received.packets;
            received
        });
        if *forwarded > before && io.defers() {
            *limit = 0;
        }
        turn
    }

    /// Lets a port take at most `most` packets by `take`, which knows the backlog: in one go, or over several runs when
    /// the limit is used up before. `None`: it goes on with the turn in the next run.
    fn turn(
        &mut self,
        port: usize,
        most: usize,
        limit: &mut usize,
        mut take: impl FnMut(&mut usize, usize) -> Received,
    ) -> Option<Turn> {
        let p = &mut self.ports[port];
        let mut turn = p.turn.take().unwrap_or(Turn { left: most, taken: 0 });
        if *limit == 0 {
            p.turn = Some(turn);
            return None;
        }
        let budget = turn.left.min(*limit);
        let Received { packets, more } = take(&mut self.backlog, budget);
        turn = Turn { left: turn.left.saturating_sub(packets), taken: turn.taken + packets };
        *limit = limit.saturating_sub(packets);
        p.counters.packets += packets as u64;
        if turn.left > 0 && packets >= budget && more {
            p.turn = Some(turn);
            return None;
        }
        p.counters.polls += 1;
        p.counters.empty_polls += u64::from(turn.taken == 0);
        Some(turn)
    }
}

fn disarm(io: &mut impl Ports, port: usize) {
    if let Some(receiver) = io.receiver(port) {
        receiver.disarm();
    }
}

fn waiting(io: &mut impl Ports, port: usize) -> usize {
    io.receiver(port).map_or(0, |receiver| receiver.waiting())
}
