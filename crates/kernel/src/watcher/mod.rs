//! The mirror's I/O: subscriptions, dumps and the neighbours that are asked for.
//!
//! Three things decide what is handed out, and when it can be relied on:
//!
//! - While tables are dumped, and until the messages that were read meanwhile are taken in, nothing is handed out: the mirror is
//!   half of the old and half of the new. Messages that were read before a table's dump was begun are in the dump, and passed
//!   over.
//! - Messages that were lost put everything in doubt, at once and from the thread that reads them. All is known again when every
//!   table was dumped after the loss was taken in, what that came to was handed out, and no message was lost since; this is
//!   said by the next call of [`Watcher::wait`], when what was handed out has been put to use.
//! - IPv6 routes are dumped by counting them, so that changes make the kernel pass over some without a word: such a dump counts
//!   only if no message about IPv6 routes came in the meantime.

mod config;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rustix::net::netlink;

use crate::changes::Changes;
use crate::decode::{Message, Object, Operation, Source, decode};
use crate::doubt::{Cause, Herald};
use crate::managed::{Caretaker, ManagedNeighbour};
use crate::mirror::{Mirror, Scope};
use crate::model::Family;
use crate::pulse::Pulse;
use crate::reader::{Batch, Events, Reader};
use crate::requests::Dumping;
use crate::schedule::{Coalescer, Resync};
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::Frames;
pub use config::{WatcherConfig, WatcherStats};

/// How often everything is dumped again, in case the kernel did something that it did not tell and that is not known to be of
/// that kind.
const AUDIT_PERIOD: Duration = Duration::from_secs(300);
/// [`Watcher::wait`] returns after this, whatever it was told.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

const GROUPS: [u32; 12] = [
    RTNLGRP_LINK,
    RTNLGRP_NEIGH,
    RTNLGRP_TC,
    RTNLGRP_IPV4_IFADDR,
    RTNLGRP_IPV4_ROUTE,
    RTNLGRP_IPV4_RULE,
    RTNLGRP_IPV6_IFADDR,
    RTNLGRP_IPV6_ROUTE,
    RTNLGRP_IPV6_RULE,
    RTNLGRP_IPV4_NETCONF,
    RTNLGRP_IPV6_NETCONF,
    RTNLGRP_NEXTHOP,
];

/// A [`Mirror`] that follows the kernel of the network namespace it was opened in.
///
/// It is driven by [`Watcher::wait`] from one thread, which should not be a worker's; a second thread of its own copies
/// messages out of the kernel.
pub struct Watcher {
    mirror: Mirror,
    control: Socket,
    reader: Reader,
    herald: Arc<Herald>,
    pulse: Pulse,
    coalescer: Coalescer,
    resync: Resync,
    dumping: Option<Dumping>,
    /// When each table was begun to be dumped that was dumped completely, by its place.
    dumped: [Option<Instant>; Scope::COUNT],
    /// What was read until then may be older than the last dump, and has not been taken in.
    replay_to: Option<Instant>,
    trust: Trust,
    /// All that the kernel had sent before then is in the mirror.
    taken_to: Instant,
    /// The same of what was handed out.
    as_of: Instant,
    caretaker: Option<Caretaker>,
    audit_due: Instant,
    stats: WatcherStats,
}

/// How far what was handed out can be relied on.
#[derive(Debug)]
struct Trust {
    /// Tables that must be dumped before all is known.
    unknown: Scope,
    /// Losses that the dumps make up for.
    losses: u64,
    state: TrustState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrustState {
    Doubted,
    /// All is known and handed out; the user has not come back yet.
    HandedOut,
    Trusted,
}

impl Watcher {
    /// Subscribes to the kernel's messages, then dumps its tables.
    ///
    /// # Errors
    /// The kernel's, when sockets cannot be opened; a dump that cannot be parsed.
    pub fn open(config: WatcherConfig) -> io::Result<Self> {
        let herald = Arc::new(Herald::new(config.on_doubt));
        let events = Socket::subscribe(None, &GROUPS, config.receive_buffer_bytes)?;
        let filter = Socket::subscribe(Some(netlink::NETFILTER), &[NFNLGRP_NFTABLES], 0).ok();
        let reader = Reader::spawn(events, filter, herald.clone())?;
        let now = Instant::now();
        let keeping = config.keep_resolved.then(|| Caretaker::open(config.was_used, config.on_managed));
        let mut watcher = Watcher {
            mirror: Mirror::new(config.ports),
            control: Socket::open(None)?,
            reader,
            herald,
            pulse: config.pulse,
            coalescer: Coalescer::default(),
            resync: Resync::default(),
            dumping: None,
            dumped: [None; Scope::COUNT],
            replay_to: None,
            trust: Trust { unknown: Scope::ALL, losses: 0, state: TrustState::Doubted },
            taken_to: now,
            as_of: now,
            caretaker: keeping.transpose()?,
            audit_due: now + AUDIT_PERIOD,
            stats: WatcherStats::default(),
        };
        watcher.dumping = Some(Dumping::new(Scope::ALL));
        while watcher.dumping.is_some() {
            watcher.pulse.touch();
            watcher.step_dump()?;
        }
        watcher.stats.resyncs = 0;
        Ok(watcher)
    }

    /// The mirror's state.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Counts since the start.
    pub fn stats(&self) -> WatcherStats {
        self.stats
    }

    /// Whether some of the kernel's tables are being dumped or wait for it, because messages were lost or do not tell what
    /// happened, or whether what they came to has not been put to use yet.
    pub fn in_doubt(&self) -> bool {
        self.resync.due_at().is_some() || self.dumping.is_some() || self.trust.state != TrustState::Trusted
    }

    /// How old what was handed out is: all that the kernel had sent before then is in it.
    pub fn as_of(&self) -> Instant {
        self.as_of
    }

    /// The neighbours that the kernel was told to keep resolved.
    pub fn managed(&self) -> Vec<ManagedNeighbour> {
        self.caretaker.as_ref().map(Caretaker::managed).unwrap_or_default()
    }

    /// The router holds these interfaces from now on; what that changes is in the next changes.
    pub fn set_ports(&mut self, ports: impl IntoIterator<Item = u32>) {
        self.mirror.set_ports(ports);
        self.coalescer.note(Instant::now());
        if self.mirror.take_urgent() {
            self.coalescer.hurry();
        }
    }

    /// Asks the kernel to find out about a host on a port's link, or whether it is still there. Cheap to call for the same host
    /// again and again; the rate of requests is limited.
    pub fn solicit(&mut self, ifindex: u32, address: IpAddr) {
        if let Some(caretaker) = &mut self.caretaker {
            caretaker.solicit((ifindex, address));
        }
    }

    /// Waits for changes, no longer than `timeout` and 250 ms; empty if there were none. The first call returns all that there
    /// is. What was returned before must have been put to use.
    ///
    /// # Errors
    /// Messages from the kernel that cannot be had or not be parsed, which also raises doubt; a later call tries again.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Changes> {
        self.confirm();
        let deadline = Instant::now() + timeout.min(LONGEST_WAIT);
        loop {
            self.pulse.touch();
            let now = Instant::now();
            if self.audit_due <= now {
                self.audit_due = now + AUDIT_PERIOD;
                self.resync.want(Scope::ALL, now);
            }
            if self.dumping.is_some() {
                self.step_dump()?;
            } else if let Some(to) = self.replay_to {
                self.replay(to);
            } else if self.resync.due_at().is_some_and(|at| at <= now) {
                self.dumping = Some(Dumping::new(self.resync.take()));
            } else if self.coalescer.due_at().is_some_and(|at| at <= now) {
                let changes = self.hand_out();
                if !changes.is_empty() {
                    return Ok(changes);
                }
            } else if let Some(caretaker) = self.caretaker.as_mut().filter(|c| c.due_at() <= now) {
                self.stats.asked += caretaker.look(&self.mirror, now, &self.pulse);
            } else if deadline > now {
                self.sleep(deadline, now)?;
            }
            if deadline <= Instant::now() {
                return Ok(Changes::default());
            }
        }
    }

    /// Takes in what comes until something is due.
    fn sleep(&mut self, deadline: Instant, now: Instant) -> io::Result<()> {
        let caretaker_due = self.caretaker.as_ref().map(Caretaker::due_at);
        let due = [self.resync.due_at(), self.coalescer.due_at(), caretaker_due, Some(self.audit_due)];
        let until = due.into_iter().flatten().fold(deadline, Instant::min);
        let complete_to = self.reader.complete_to();
        match self.reader.batches.recv_timeout(until.saturating_duration_since(now)) {
            Ok(batch) => self.take_in(batch, false),
            Err(RecvTimeoutError::Timeout) => self.caught_up(complete_to),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        if self.reader.is_alive() { Ok(()) } else { Err(io::Error::other("netlink reader ended")) }
    }

    /// There was no batch after the reader had said how far they go.
    fn caught_up(&mut self, complete_to: Instant) {
        self.taken_to = complete_to;
        if self.coalescer.due_at().is_none() && self.trust.state != TrustState::Doubted {
            self.as_of = complete_to;
        }
    }

    /// Takes in one batch that was read before a dump ended.
    fn replay(&mut self, to: Instant) {
        let complete_to = self.reader.complete_to();
        match self.reader.batches.try_recv() {
            Ok(batch) => {
                let later = matches!(&batch, Batch::Events(events) if events.read > to);
                self.take_in(batch, !later);
                if later {
                    self.replay_to = None;
                }
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                self.replay_to = None;
                self.caught_up(complete_to);
            }
        }
    }

    fn take_in(&mut self, batch: Batch, replaying: bool) {
        let now = Instant::now();
        match batch {
            Batch::Events(events) => self.events(&events, replaying, now),
            Batch::Lost(losses) => {
                self.stats.overruns += 1;
                self.mirror.lost();
                self.trust.losses = losses;
                self.forget_all(now);
            }
            Batch::Filter => self.mirror.apply(Message {
                operation: Operation::Added { replace: false, append: false },
                object: Object::Filter,
            }),
        }
        self.coalescer.note(now);
    }

    fn events(&mut self, events: &Events, replaying: bool, now: Instant) {
        self.mirror.set_replaying(replaying);
        for frame in Frames(&events.bytes) {
            self.stats.messages += 1;
            match frame.and_then(|frame| decode(&frame, Source::Event)) {
                Ok(Some(message)) if self.is_outdated(&message.object, events.read) => {
                    self.stats.outdated += 1;
                }
                Ok(Some(message)) => self.mirror.apply(message),
                Ok(None) => {}
                Err(_) => {
                    self.stats.malformed += 1;
                    self.herald.raise(Cause::MessageMalformed);
                    self.forget_all(now);
                }
            }
        }
        self.taken_to = events.complete_to;
        self.resync.want(self.mirror.take_needs(), now);
        if self.mirror.take_urgent() {
            self.coalescer.hurry();
        }
        self.stats.unclear = self.mirror.unclear_count();
    }

    /// Whether all that a message bears on was dumped after it was read.
    fn is_outdated(&self, object: &Object, read: Instant) -> bool {
        let after = |table: Scope| self.dumped[table.index()].is_some_and(|began| began > read);
        bears_on(object).tables().all(after)
    }

    /// Nothing can be relied on until all tables are dumped again.
    fn forget_all(&mut self, now: Instant) {
        self.trust.unknown = Scope::ALL;
        self.trust.state = TrustState::Doubted;
        self.resync.want(Scope::ALL, now);
    }

    fn step_dump(&mut self) -> io::Result<()> {
        let Some(dumping) = &mut self.dumping else { return Ok(()) };
        let reader = &self.reader;
        let quiet =
            |table, since| table != Scope::ROUTES6 || (reader.empty() && reader.routes6_before(since));
        let step = dumping.step(&mut self.control, &mut self.mirror, quiet);
        match step {
            Ok(false) => return Ok(()),
            Ok(true) => self.end_dump(),
            Err(_) => self.fail_dump()?,
        }
        step.map(drop)
    }

    fn end_dump(&mut self) {
        let Some(dumping) = self.dumping.take() else { return };
        // What the kernel said before the end may be in the dump. If there is no end to it, the rest is taken for later.
        self.reader.empty();
        let end = Instant::now();
        self.count_dump(&dumping, end);
        let mut complete = Scope::default();
        for &(table, began) in &dumping.complete {
            complete |= table;
            self.dumped[table.index()] = Some(began);
        }
        self.trust.unknown = self.trust.unknown.without(complete);
        // IPv6 routes are known by messages, if none was lost, and what these leave in doubt is a punt.
        let others = dumping.unfinished.without(Scope::ROUTES6);
        if !others.is_empty() || self.trust.unknown.touches(dumping.unfinished) {
            self.doubt(Cause::DumpInterrupted, others);
        }
        self.resync.want(dumping.unfinished, end);
        // Tables are dumped in such an order that the dump itself settles the doubts that it raises.
        self.resync.want(self.mirror.take_needs().without(complete), end);
        self.mirror.take_urgent();
        self.replay_to = Some(end);
        self.coalescer.note(end);
        if self.trust.state == TrustState::Doubted {
            self.coalescer.hurry();
        }
    }

    /// A dump that failed is tried again. The socket may have some of its answers left.
    fn fail_dump(&mut self) -> io::Result<()> {
        let Some(dumping) = self.dumping.take() else { return Ok(()) };
        let end = Instant::now();
        self.count_dump(&dumping, end);
        self.doubt(Cause::DumpFailed, Scope::ALL);
        self.resync.want(Scope::ALL, end);
        self.control = Socket::open(None)?;
        Ok(())
    }

    fn count_dump(&mut self, dumping: &Dumping, end: Instant) {
        self.resync.done(dumping.began, end);
        self.stats.resyncs += 1;
        self.stats.messages += dumping.messages;
        self.stats.interrupted += dumping.interrupted;
        self.stats.resync_ns = (end - dumping.began).as_nanos() as u64;
    }

    fn doubt(&mut self, cause: Cause, unknown: Scope) {
        self.trust.unknown |= unknown;
        self.trust.state = TrustState::Doubted;
        self.herald.raise(cause);
    }

    fn hand_out(&mut self) -> Changes {
        self.coalescer.clear();
        let pulse = &self.pulse;
        let changes = self.mirror.collect(|| pulse.touch());
        if self.trust.state == TrustState::Doubted && self.trust.unknown.is_empty() {
            self.trust.state = TrustState::HandedOut;
        }
        if self.trust.state != TrustState::Doubted {
            self.as_of = self.taken_to;
        }
        if changes.is_empty() {
            self.confirm();
        }
        if let Some(caretaker) = &mut self.caretaker {
            caretaker.hurry();
        }
        changes
    }

    /// What was handed out has been put to use.
    fn confirm(&mut self) {
        if self.trust.state == TrustState::HandedOut {
            // If more was lost since, the word of it is on its way, and leads to another dump.
            let clear = self.herald.clear(self.trust.losses);
            self.trust.state = if clear { TrustState::Trusted } else { TrustState::Doubted };
        }
    }
}

/// The tables that a message about the object changes, or makes the kernel change.
fn bears_on(object: &Object) -> Scope {
    match object {
        Object::Setting(setting) => Scope::settings(setting.family),
        Object::Link(_) | Object::Filter => Scope::ALL,
        Object::Address(address) => Scope::ADDRESSES | Scope::routes(Family::of(address.address)),
        Object::Neighbour(_) => Scope::NEIGHBOURS,
        Object::NextHop(_) => Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6,
        Object::Route(route) => Scope::routes(route.prefix.family()),
        Object::Rule(_) => Scope::RULES,
        Object::Qdisc(_) => Scope::QDISCS,
    }
}
