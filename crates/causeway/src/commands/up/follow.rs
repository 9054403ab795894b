//! The thread that keeps the tables in step with the kernel.

use super::policy::{Policies, is_fit};
use super::rest::Rest;
use super::tables::Tables;
use crate::attendant::Present;
use crate::control::Claim;
use crate::lease::{Lease, Objector, Voucher};
use anyhow::{Context, Result};
use causeway_kernel::{Cause, Changes, Doubt, Family, ManagedNeighbour, Pulse, Scope, Settings, Watcher};
use causeway_netio::front::{Front, monotonic_ns};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread waits for changes before it looks at other things.
const TURN: Duration = Duration::from_millis(250);
/// How long it waits when the kernel cannot be asked.
const RETRY: Duration = Duration::from_millis(500);
/// How far the tables may be behind the kernel: changes are gathered for a second at most, and take some time to make.
const LAG: Duration = Duration::from_secs(3);
/// The code of the objection to tables that come to follow other policy rules.
const RULES_CODE: &str = "rules-followed";
/// The code of the objection to tables that were not read yet.
const START: &str = "tables-not-read";

/// Objects while what the watcher says is in doubt: for [`causeway_kernel::WatcherConfig::on_doubt`].
pub fn object_in_doubt(objector: Objector) -> impl Fn(Doubt) + Send + Sync {
    const CAUSES: [Cause; 4] =
        [Cause::MessagesLost, Cause::MessageMalformed, Cause::DumpInterrupted, Cause::DumpFailed];
    objector.doubt(START, "the kernel's tables are read");
    move |doubt| match doubt {
        Doubt::Raised(cause) => {
            let what = match cause {
                Cause::MessagesLost => "the kernel's messages about routes were lost",
                Cause::MessageMalformed => "a message of the kernel's about routes cannot be read",
                Cause::DumpInterrupted => "the kernel's routes change while they are read",
                _ => "the kernel's routes cannot be read",
            };
            objector.object(cause.name(), what);
        }
        Doubt::Cleared => {
            objector.withdraw(START);
            CAUSES.iter().for_each(|cause| objector.withdraw(cause.name()));
        }
    }
}

/// Records the neighbours that the kernel keeps resolved for the router: for
/// [`causeway_kernel::WatcherConfig::on_managed`].
pub fn record_managed(claim: &Claim, list: &[ManagedNeighbour]) {
    let entry = |n: &ManagedNeighbour| (n.ifname.clone(), n.ifindex, n.address);
    if let Err(error) = claim.change(|undo| undo.neighbours = list.iter().map(entry).collect()) {
        log::warn!("which neighbours are kept resolved cannot be recorded: {error}");
    }
}

/// What the follower is told by others: by the inspector what the kernel's tables hold and its messages do not say, and what
/// was left to this router by the one before it.
#[derive(Default)]
pub struct Unsaid(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// The largest IPv6 packet of each port, octets.
    mtus: BTreeMap<String, u32>,
    /// They have changed.
    look_again: bool,
    /// Destinations that something was learned of, when that has changed.
    exceptions: Option<BTreeSet<IpAddr>>,
    /// Neighbours that another router kept resolved, if this one is in its place now.
    adopted: Option<Vec<ManagedNeighbour>>,
}

impl Unsaid {
    /// These neighbours are this router's to keep resolved, or to give back.
    pub fn adopt(&self, list: Vec<ManagedNeighbour>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).adopted = Some(list);
    }

    /// What was found.
    pub fn tell(&self, settings: &Settings, exceptions: BTreeSet<IpAddr>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mtus: BTreeMap<String, u32> =
            settings.ports.iter().map(|(port, settings)| (port.clone(), settings.v6.mtu_bytes)).collect();
        told.look_again |= mtus != told.mtus;
        told.mtus = mtus;
        told.exceptions = Some(exceptions);
    }

    /// Hands it to the watcher.
    fn hand_over(&self, watcher: &mut Watcher) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut told.look_again) {
            watcher.look_again(Scope::LINKS);
        }
        if let Some(exceptions) = told.exceptions.take() {
            watcher.set_exceptions(exceptions);
        }
        if let Some(adopted) = told.adopted.take() {
            watcher.adopt(&adopted);
        }
    }
}

/// What follows the kernel, before its thread runs.
pub struct Follow {
    /// What tells of the kernel's changes.
    pub watcher: Watcher,
    /// Its pulse.
    pub pulse: Pulse,
    /// What workers look up in.
    pub tables: Tables,
    /// Who says that the tables are between two states.
    pub objector: Objector,
    /// The programs in front of the ports.
    pub front: Arc<Front>,
    /// What each port may do.
    pub policies: Arc<Policies>,
    /// What the inspector was not told either, and asked for.
    pub unsaid: Arc<Unsaid>,
    /// Names of the ports, by number.
    pub names: Vec<String>,
    /// The ports that are there, by number.
    pub present: Vec<Option<u32>>,
    /// Who attaches ports.
    pub attendant: Sender<Vec<Present>>,
    /// It is to end.
    pub stop: Arc<AtomicBool>,
}

/// Follows the kernel until it is dropped.
pub struct Follower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged by itself.
            let _ = thread.join();
        }
    }
}

impl Follow {
    /// Starts the thread; from here on nothing is forwarded without its word.
    pub fn start(mut self, lease: &Lease) -> Result<Follower> {
        let stop = self.stop.clone();
        let as_of = Arc::new(AtomicU64::new(0));
        let (pulse, read) = (self.pulse.clone(), as_of.clone());
        lease.require(Voucher {
            name: "the follower of the kernel's routes".to_owned(),
            word_ns: Arc::new(move || pulse.last_ns()),
            term: Voucher::ALIVE,
        });
        lease.require(Voucher {
            name: "news of the kernel's routes".to_owned(),
            word_ns: Arc::new(move || read.load(Ordering::Acquire)),
            term: LAG,
        });
        let thread = std::thread::Builder::new().name("kernel".to_owned());
        let thread = thread.spawn(move || self.run(&as_of)).context("cannot start a thread")?;
        Ok(Follower { stop, thread: Some(thread) })
    }

    fn run(&mut self, as_of: &AtomicU64) {
        let mut rest = Rest::new(self.tables.forwarding(), self.policies.clone(), self.tables.forwarded());
        while !self.stop.load(Ordering::Relaxed) {
            self.unsaid.hand_over(&mut self.watcher);
            match self.watcher.wait(TURN) {
                Ok(changes) => {
                    self.apply(&changes);
                    let age_ns = self.watcher.as_of().elapsed().as_nanos() as u64;
                    as_of.store(monotonic_ns().saturating_sub(age_ns), Ordering::Release);
                }
                // The watcher has raised doubt.
                Err(error) => {
                    log::warn!("the kernel's routes cannot be followed: {error}");
                    std::thread::sleep(RETRY);
                }
            }
            if self.tables.look(!self.watcher.in_doubt()) {
                self.watcher.look_again(Scope::ALL);
            }
            rest.look(monotonic_ns());
        }
    }

    /// Puts what has changed into effect.
    pub fn apply(&mut self, changes: &Changes) {
        if !changes.rules {
            return self.put_in_place(changes);
        }
        // Nothing is forwarded meanwhile: a packet's source must not be judged by the rules of now, and its destination by those
        // of before.
        self.objector.doubt(RULES_CODE, "the tables come to follow other policy rules");
        if self.tables.outlast_readers(&self.stop) {
            self.put_in_place(changes);
            self.objector.withdraw(RULES_CODE);
        }
    }

    fn put_in_place(&mut self, changes: &Changes) {
        if changes.rules || !changes.links.is_empty() {
            let mirror = self.watcher.mirror();
            for (number, name) in self.names.iter().enumerate() {
                let ruled = [Family::V4, Family::V6].map(|family| mirror.is_ruled(family, name));
                self.policies.set_ruled(number, ruled);
            }
        }
        for (address, there) in &changes.addresses {
            self.set_local(*address, *there);
        }
        if !changes.links.is_empty() || !changes.addresses.is_empty() {
            self.look_at_links();
        }
        // What did not fit is tried again, also when nothing changes.
        if !changes.is_empty() || !self.tables.are_whole() {
            self.tables.apply(changes, &mut || self.pulse.touch());
        }
    }

    /// Which interfaces have the ports' names now, and what they may do.
    fn look_at_links(&mut self) {
        let mirror = self.watcher.mirror();
        let mut present = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            let link = mirror.link(name).filter(|link| (link.ethernet || link.bare) && link.master.is_none());
            let own = mirror.addresses().filter(|a| link.is_some_and(|link| link.index == a.ifindex));
            let addresses: Vec<IpAddr> = own.map(|a| a.address).collect();
            self.policies.set_link(number, link.filter(|link| is_fit(link)), &addresses);
            present.push(link.map(|link| link.index));
        }
        if present == self.present {
            return;
        }
        self.say_changes(&present);
        self.watcher.set_ports(present.iter().copied().flatten());
        self.tables.set_ports(present.iter().map(|index| index.unwrap_or(0)).collect());
        let named = self.names.iter().zip(&present);
        let list = named.filter_map(|(name, index)| Some((name.clone(), (*index)?))).collect();
        // It has ended with the router.
        let _ = self.attendant.send(list);
        self.present = present;
    }

    fn say_changes(&self, present: &[Option<u32>]) {
        for ((name, before), now) in self.names.iter().zip(&self.present).zip(present) {
            let elsewhere = before.and_then(|index| self.watcher.mirror().link_by_index(index));
            match (before, now) {
                (Some(_), None) => {
                    let why = match elsewhere {
                        Some(link) if link.name != *name => {
                            format!("its interface is called {} now", link.name)
                        }
                        Some(link) if link.master.is_some() => {
                            "it belongs to a bridge, a bond or a VRF now".to_owned()
                        }
                        _ => "there is no interface of that name any more".to_owned(),
                    };
                    log::warn!(code = "port-gone"; "{name}: {why}; its packets are the kernel's");
                }
                (None, Some(_)) => log::info!(code = "port-back"; "{name}: is back"),
                (Some(before), Some(now)) if before != now => {
                    log::warn!(code = "port-other"; "{name}: is another interface now");
                }
                _ => {}
            }
        }
    }

    /// An address that the set does not take comes to the kernel all the same, by way of the graph.
    fn set_local(&self, address: IpAddr, there: bool) {
        let local = self.front.local();
        let done = match (address, there) {
            (IpAddr::V4(a), true) => local.insert_v4(a),
            (IpAddr::V6(a), true) => local.insert_v6(a),
            (IpAddr::V4(a), false) => local.remove_v4(a).map(drop),
            (IpAddr::V6(a), false) => local.remove_v6(a).map(drop),
        };
        if let Err(error) = done {
            log::warn!("{address} is not told apart in the driver: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_elements::kernel::{Forwarding, InDriver, Paths, PortPolicy};
    use causeway_fib::{Adjacencies, AdjacencyIndex, Domain, Fib4, Fib6};
    use causeway_kernel::WatcherConfig;
    use causeway_netio::ErrorKind;
    use causeway_netio::front::Take;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    /// Notes whether the right to forward stands whenever something is put in place.
    struct Notes {
        front: Arc<Front>,
        stood: Mutex<Vec<bool>>,
    }

    impl Notes {
        fn stands(&self) -> bool {
            self.front.lease().deadline().load(Ordering::Acquire) > monotonic_ns()
        }

        fn stood(&self) -> Vec<bool> {
            self.stood.lock().expect("no panic").clone()
        }
    }

    impl InDriver for Notes {
        fn set_policy(&self, _port: usize, _policy: PortPolicy) {
            self.stood.lock().expect("no panic").push(self.stands());
        }

        fn set_paths(&self, _index: AdjacencyIndex, _paths: Paths) {}

        fn set_flow_hashes(&self, _bits: [u64; 2]) {}
    }

    /// What follows the kernel for one port, which is not there.
    fn follow(notes: &Arc<Notes>, lease: &Lease) -> Follow {
        let (names, front) = (vec!["none".to_owned()], &notes.front);
        let domain = Domain::new();
        let fibs = (Fib4::in_domain(&domain).expect("room"), Fib6::in_domain(&domain).expect("room"));
        let empty = (&domain, &fibs.0, &fibs.1, &Adjacencies::in_domain(&domain));
        let noted = Forwarding::new(names.clone(), &[], front.clone(), empty).with_driver(notes.clone());
        Follow {
            watcher: Watcher::open(WatcherConfig::new([])).expect("a watcher"),
            pulse: Pulse::new(),
            tables: Tables::new(names.clone(), vec![0], front.clone()).expect("tables"),
            objector: lease.objector(),
            front: front.clone(),
            policies: Arc::new(Policies::new(front.clone(), Arc::new(noted), &[None])),
            unsaid: Arc::default(),
            names,
            present: vec![None],
            attendant: channel().0,
            stop: Arc::default(),
        }
    }

    fn until(what: &str, reached: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(5);
        while !reached() {
            assert!(Instant::now() < end, "never: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn nothing_is_forwarded_between_the_rules_of_before_and_those_of_now() {
        let front = match Front::new(Take::TRANSIT) {
            Ok(front) => Arc::new(front),
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let notes = Arc::new(Notes { front: front.clone(), stood: Mutex::default() });
        let lease = Lease::keep(front, crate::lease::LEFT_TO_KERNEL).expect("a thread");
        let word_ns = Arc::new(monotonic_ns);
        lease.require(Voucher { name: "a test".to_owned(), word_ns, term: Duration::from_secs(3) });
        until("the right is had", || notes.stands());
        let mut follow = follow(&notes, &lease);
        let worker = follow.tables.domain().participant();
        let looks_up = worker.pin();
        std::thread::scope(|scope| {
            let applied = scope.spawn(|| follow.apply(&Changes { rules: true, ..Changes::default() }));
            until("the right is gone", || !notes.stands());
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(notes.stood(), [false; 0], "a worker looks something up by the rules of before");
            drop(looks_up);
            applied.join().expect("no panic");
        });
        assert_eq!(notes.stood(), [false], "what the port may do is put in place while nothing is forwarded");
        until("the right is had again", || notes.stands());
    }
}
