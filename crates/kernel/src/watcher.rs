//! The mirror's I/O: subscriptions, dumps and the neighbours that are asked for.

use std::io;
use std::net::IpAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rustix::net::netlink;

use crate::changes::Changes;
use crate::decode::{Source, decode};
use crate::keeper::{Ask, Keeper};
use crate::mirror::{Mirror, Scope};
use crate::reader::{Batch, Reader};
use crate::requests::{ask, resync};
use crate::schedule::{Coalescer, Resync};
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::Frames;

/// How often the keeper looks after its neighbours.
const KEEPER_PERIOD: Duration = Duration::from_secs(1);

/// How often everything is dumped again, in case the kernel did something that it did not tell and that is not known to be of
/// that kind.
const AUDIT_PERIOD: Duration = Duration::from_secs(300);

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

/// How a [`Watcher`] is to work.
#[derive(Clone, Debug)]
pub struct WatcherConfig {
    /// The interfaces that the router holds, by index.
    pub ports: Vec<u32>,
    /// The kernel's buffer for messages that have not been read, octets.
    pub receive_buffer_bytes: usize,
    /// Keep the gateways in use resolved, by entries in the kernel's neighbour tables.
    pub keep_resolved: bool,
}

impl WatcherConfig {
    /// The usual settings, for a router that holds these interfaces.
    pub fn new(ports: impl IntoIterator<Item = u32>) -> Self {
        WatcherConfig {
            ports: ports.into_iter().collect(),
            receive_buffer_bytes: 128 << 20,
            keep_resolved: true,
        }
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatcherStats {
    /// Messages taken in, of events and dumps.
    pub messages: u64,
    /// Messages that could not be parsed; each led to a new dump.
    pub malformed: u64,
    /// Times that the kernel dropped messages because they were not read fast enough.
    pub overruns: u64,
    /// Dumps after the first.
    pub resyncs: u64,
    /// Dumps that had to be begun again because the kernel's tables changed under them.
    pub interrupted: u64,
    /// Neighbours that the kernel was asked about.
    pub asked: u64,
    /// How long the last dump took, nanoseconds.
    pub resync_ns: u64,
}

/// A [`Mirror`] that follows the kernel of the network namespace it was opened in.
///
/// It is driven by [`Watcher::wait`] from one thread, which should not be a worker's; a second thread of its own copies
/// messages out of the kernel.
pub struct Watcher {
    mirror: Mirror,
    control: Socket,
    reader: Reader,
    coalescer: Coalescer,
    resync: Resync,
    keeper: Option<Keeper>,
    keeper_due: Instant,
    audit_due: Instant,
    stats: WatcherStats,
}

impl Watcher {
    /// Subscribes to the kernel's messages, then dumps its tables.
    ///
    /// # Errors
    /// The kernel's, when sockets cannot be opened; a dump that cannot be parsed, or that changes interrupt again and again.
    pub fn open(config: WatcherConfig) -> io::Result<Self> {
        let events = Socket::subscribe(None, &GROUPS, config.receive_buffer_bytes)?;
        let netfilter = Socket::subscribe(Some(netlink::NETFILTER), &[NFNLGRP_NFTABLES], 0).ok();
        let reader = Reader::spawn(events, netfilter)?;
        let now = Instant::now();
        let mut watcher = Watcher {
            mirror: Mirror::new(config.ports),
            control: Socket::open(None)?,
            reader,
            coalescer: Coalescer::default(),
            resync: Resync::default(),
            keeper: config.keep_resolved.then(|| Keeper::new(kernel_manages_neighbours())),
            keeper_due: now,
            audit_due: now + AUDIT_PERIOD,
            stats: WatcherStats::default(),
        };
        watcher.dump(Scope::ALL, now)?;
        watcher.coalescer.hurry();
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

    /// Whether some of the kernel's tables wait to be dumped again, because messages were lost or do not tell what happened.
    pub fn in_doubt(&self) -> bool {
        self.resync.due_at().is_some()
    }

    /// Asks the kernel to find out about a host on a port's link, or whether it is still there. Cheap to call for the same host
    /// again and again; the rate of requests is limited.
    pub fn solicit(&mut self, ifindex: u32, address: IpAddr) {
        if let Some(keeper) = &mut self.keeper {
            keeper.solicit((ifindex, address));
            self.keeper_due = Instant::now();
        }
    }

    /// Waits for changes, no longer than `timeout`; empty if there were none. The first call returns all that there is.
    ///
    /// # Errors
    /// Messages from the kernel that cannot be had or not be parsed. What was published may be out of date then, and should not
    /// be forwarded by; a later call tries again.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Changes> {
        let deadline = Instant::now() + timeout;
        loop {
            let now = Instant::now();
            if self.audit_due <= now {
                self.audit_due = now + AUDIT_PERIOD;
                self.resync.want(Scope::ALL, now);
            }
            if self.resync.due_at().is_some_and(|at| at <= now) {
                let scope = self.resync.take();
                self.dump(scope, now)?;
                continue;
            }
            if self.coalescer.due_at().is_some_and(|at| at <= now) {
                self.coalescer.clear();
                let changes = self.mirror.collect();
                self.look_after_neighbours(now);
                if !changes.is_empty() {
                    return Ok(changes);
                }
                continue;
            }
            if self.keeper_due().is_some_and(|at| at <= now) {
                self.look_after_neighbours(now);
            }
            if deadline <= now {
                return Ok(Changes::default());
            }
            let until =
                [self.resync.due_at(), self.coalescer.due_at(), self.keeper_due(), Some(self.audit_due)];
            let until = until.into_iter().flatten().fold(deadline, Instant::min);
            match self.reader.batches.recv_timeout(until.saturating_duration_since(now)) {
                Ok(batch) => self.take_in(batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("netlink reader ended")),
            }
        }
    }

    fn take_in(&mut self, batch: Batch) {
        let now = Instant::now();
        match batch {
            Batch::Events(bytes) => self.events(&bytes, now),
            Batch::Overrun => {
                self.stats.overruns += 1;
                self.resync.want(Scope::ALL, now);
            }
            Batch::Netfilter => self.mirror.apply(crate::Message {
                operation: crate::Operation::Added { replace: false, append: false },
                object: crate::Object::Setting,
            }),
        }
        self.coalescer.note(now);
    }

    fn events(&mut self, bytes: &[u8], now: Instant) {
        for frame in Frames(bytes) {
            self.stats.messages += 1;
            match frame.and_then(|frame| decode(&frame, Source::Event)) {
                Ok(Some(message)) => self.mirror.apply(message),
                Ok(None) => {}
                Err(_) => {
                    self.stats.malformed += 1;
                    self.resync.want(Scope::ALL, now);
                }
            }
        }
        self.resync.want(self.mirror.take_needs(), now);
        if self.mirror.take_urgent() {
            self.coalescer.hurry();
        }
    }

    fn dump(&mut self, scope: Scope, now: Instant) -> io::Result<()> {
        let resynced = resync(&mut self.control, &mut self.mirror, scope);
        let end = Instant::now();
        self.resync.done(now, end);
        self.stats.resyncs += 1;
        self.stats.resync_ns = (end - now).as_nanos() as u64;
        self.coalescer.note(end);
        // Tables are dumped in such an order that the dump itself settles the doubts that it raises.
        self.resync.want(self.mirror.take_needs().without(scope), end);
        match resynced {
            Ok(resynced) => {
                self.stats.messages += resynced.messages;
                self.stats.interrupted += resynced.interrupted;
                self.resync.want(resynced.unfinished, end);
                Ok(())
            }
            Err(error) => {
                self.resync.want(scope, end);
                Err(error)
            }
        }
    }

    fn keeper_due(&self) -> Option<Instant> {
        self.keeper.as_ref().filter(|keeper| !keeper.is_idle()).map(|_| self.keeper_due)
    }

    fn look_after_neighbours(&mut self, now: Instant) {
        self.keeper_due = now + KEEPER_PERIOD;
        let Some(keeper) = &mut self.keeper else { return };
        let mut asks = keeper.keep(&self.mirror.gateways());
        self.mirror.take_stale_hosts().into_iter().for_each(|host| keeper.solicit(host));
        asks.extend(keeper.due(now, |(ifindex, address)| self.mirror.neighbour_entry(ifindex, address)));
        for question in asks {
            self.stats.asked += 1;
            // A refusal is not an error of ours: the device may be gone, and then a message says so.
            if let (Err(error), Ask::Manage(_)) = (ask(&mut self.control, question), question)
                && error.kind() == io::ErrorKind::InvalidInput
            {
                keeper.cannot_manage();
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let managed: Vec<Ask> = self.keeper.iter().flat_map(Keeper::managed).collect();
        for release in managed {
            // An entry that is gone already needs nothing.
            let _ = ask(&mut self.control, release);
        }
    }
}

/// Managed entries came with Linux 5.16. Older kernels do not refuse the flag but take the request for one to forget what they
/// know of the neighbour, so trying is no way to find out.
fn kernel_manages_neighbours() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse::<u32>().unwrap_or(0)
    });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 16)
}
