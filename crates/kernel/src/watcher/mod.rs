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
mod dumps;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::changes::Changes;
#[cfg(test)]
use crate::decode::Object;
use crate::decode::{Source, decode};
use crate::doubt::{Cause, Herald};
use crate::managed::{Caretaker, ManagedNeighbour};
use crate::mirror::{Mirror, Scope};
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
    /// What the last dump came to has not been handed out.
    settling: bool,
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
        let reader = Reader::spawn(events, herald.clone())?;
        let now = Instant::now();
        let keeping =
            config.keep_resolved.then(|| Caretaker::open(config.was_used, config.on_managed, config.manage));
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
            settling: false,
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

    /// The mirror's state by itself, which nothing changes any more but who has it. Neighbours are given back.
    pub fn into_mirror(self) -> Mirror {
        self.mirror
    }

    /// Counts since the start.
    pub fn stats(&self) -> WatcherStats {
        self.stats
    }

    /// Whether some of the kernel's tables are being dumped or wait for it, because messages were lost or do not tell what
    /// happened, or whether what they came to has not been put to use yet.
    pub fn in_doubt(&self) -> bool {
        self.resync.due_at().is_some()
            || self.dumping.is_some()
            || self.settling
            || self.trust.state != TrustState::Trusted
    }

    /// How old what was handed out is: all that the kernel had sent before then is in it.
    pub fn as_of(&self) -> Instant {
        self.as_of
    }

    /// The neighbours that the kernel was told to keep resolved.
    pub fn managed(&self) -> Vec<ManagedNeighbour> {
        self.caretaker.as_ref().map(Caretaker::managed).unwrap_or_default()
    }

    /// Takes over neighbours that another watcher had the kernel keep resolved, and has left as they are: they are given back like
    /// those of one's own. From here on the kernel is told to manage the gateways in use.
    pub fn adopt(&mut self, list: &[ManagedNeighbour]) {
        if let Some(caretaker) = &mut self.caretaker {
            caretaker.adopt(list.iter().map(|neighbour| (neighbour.ifindex, neighbour.address)));
        }
    }

    /// Dumps these tables again, because something in them is seen to have changed that the kernel says nothing of, such as the
    /// IPv6 MTU of a link.
    pub fn look_again(&mut self, scope: Scope) {
        self.resync.want(scope, Instant::now());
    }

    /// The router holds these interfaces from now on; what that changes is in the next changes.
    pub fn set_ports(&mut self, ports: impl IntoIterator<Item = u32>) {
        self.mirror.set_ports(ports);
        self.coalescer.note(Instant::now());
        if self.mirror.take_urgent() {
            self.coalescer.hurry();
        }
    }

    /// The kernel has learned of these destinations what its routes do not say
    /// ([`Inspection::Known`](crate::Inspection::Known)): their packets are the kernel's, as the next changes say.
    pub fn set_exceptions(&mut self, exceptions: BTreeSet<IpAddr>) {
        if self.mirror.set_exceptions(exceptions) {
            self.coalescer.note(Instant::now());
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

    /// Waits for changes, no longer than `timeout` and 250 ms (to hand out very many takes longer, and touches the pulse); empty
    /// if there were none. The first call returns all that there is. What was returned before must have been put to use.
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
        match self.reader.next(until.saturating_duration_since(now)) {
            Ok(batch) => self.take_in(batch, false),
            Err(complete_to) => self.caught_up(complete_to),
        }
        if self.reader.is_alive() { Ok(()) } else { Err(io::Error::other("netlink reader ended")) }
    }

    /// Nothing waits of what the reader has read.
    fn caught_up(&mut self, complete_to: Instant) {
        self.taken_to = complete_to;
        if self.coalescer.due_at().is_none() && self.trust.state != TrustState::Doubted {
            self.as_of = complete_to;
        }
    }

    /// Takes in one batch that was read before a dump ended.
    fn replay(&mut self, to: Instant) {
        match self.reader.next(Duration::ZERO) {
            Ok(batch) => {
                let later = matches!(&batch, Batch::Events(events) if events.read > to);
                self.take_in(batch, !later);
                if later {
                    self.replay_to = None;
                }
            }
            Err(complete_to) => {
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

    /// Nothing can be relied on until all tables are dumped again.
    fn forget_all(&mut self, now: Instant) {
        self.trust.unknown = Scope::ALL;
        self.trust.state = TrustState::Doubted;
        self.resync.want(Scope::ALL, now);
    }

    fn hand_out(&mut self) -> Changes {
        self.coalescer.clear();
        self.settling = false;
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::doubt::Doubt;

    /// In the network namespace that the test runs in, which it only looks at.
    #[test]
    fn a_message_that_does_not_parse_puts_all_in_doubt_until_all_is_dumped() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let ear = said.clone();
        let on_doubt = Arc::new(move |doubt| ear.lock().unwrap().push(doubt));
        let config = WatcherConfig { keep_resolved: false, on_doubt, ..WatcherConfig::new([]) };
        let mut watcher = Watcher::open(config).unwrap();
        let until_cleared = |watcher: &mut Watcher| {
            while said.lock().unwrap().last() != Some(&Doubt::Cleared) {
                watcher.wait(Duration::from_secs(1)).unwrap();
            }
        };
        until_cleared(&mut watcher);
        let resyncs = watcher.stats().resyncs;
        let now = Instant::now();
        let garbage = Events { bytes: vec![255; 20], read: now, complete_to: now };
        watcher.take_in(Batch::Events(garbage), false);
        assert_eq!(said.lock().unwrap().last(), Some(&Doubt::Raised(Cause::MessageMalformed)));
        assert!(watcher.in_doubt());
        until_cleared(&mut watcher);
        assert_eq!((watcher.stats().malformed, watcher.stats().resyncs), (1, resyncs + 1));
        assert!(watcher.stats().lines().contains(&("malformed", 1)));
    }

    #[test]
    fn a_dump_that_fails_or_is_interrupted_every_time_puts_in_doubt_what_it_was_to_tell() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let ear = said.clone();
        let on_doubt = Arc::new(move |doubt| ear.lock().unwrap().push(doubt));
        let config = WatcherConfig { keep_resolved: false, on_doubt, ..WatcherConfig::new([]) };
        let mut watcher = Watcher::open(config).unwrap();
        let mut interrupted = Dumping::new(Scope::LINKS);
        while !interrupted.step(&mut watcher.control, &mut watcher.mirror, |_, _| false).unwrap() {}
        assert_eq!((interrupted.interrupted, interrupted.unfinished), (4, Scope::LINKS));
        assert!(watcher.mirror.links().next().is_some(), "nothing is taken away by it");
        watcher.dumping = Some(interrupted);
        watcher.end_dump();
        assert_eq!(said.lock().unwrap().last(), Some(&Doubt::Raised(Cause::DumpInterrupted)));
        // A socket that cannot answer.
        let mute = Socket::open(Some(rustix::net::netlink::USERSOCK)).unwrap();
        let control = std::mem::replace(&mut watcher.control, mute);
        watcher.dumping = Some(Dumping::new(Scope::LINKS));
        assert!(watcher.wait(Duration::ZERO).is_err());
        assert_eq!(said.lock().unwrap().last(), Some(&Doubt::Raised(Cause::DumpFailed)));
        assert!(watcher.in_doubt());
        watcher.control = control;
        while said.lock().unwrap().last() != Some(&Doubt::Cleared) {
            watcher.wait(Duration::from_secs(1)).unwrap();
        }
    }

    #[test]
    fn only_what_was_dumped_since_is_outdated() {
        let config = WatcherConfig { keep_resolved: false, ..WatcherConfig::new([]) };
        let mut watcher = Watcher::open(config).unwrap();
        let earlier = Instant::now() - Duration::from_secs(60);
        let object = Object::Rule(crate::model::Rule::plain(crate::model::Family::V4, 1, 1));
        assert!(watcher.is_outdated(&object, earlier));
        assert!(!watcher.is_outdated(&object, Instant::now()));
        watcher.dumped[Scope::RULES.index()] = None;
        assert!(!watcher.is_outdated(&object, earlier));
    }
}
