//! The watcher's dumps: one datagram at a time, and what their end says of what is known.

use std::io;
use std::time::Instant;

use super::{TrustState, Watcher};
use crate::decode::Object;
use crate::doubt::Cause;
use crate::mirror::Scope;
use crate::model::Family;
use crate::requests::Dumping;

impl Watcher {
    /// Takes in the next datagram of the dumps that run.
    pub(super) fn step_dump(&mut self) -> io::Result<()> {
        let Some(dumping) = &mut self.dumping else { return Ok(()) };
        let reader = &self.reader;
        let quiet =
            |table, since| table != Scope::ROUTES6 || (reader.empty() && reader.routes6_before(since));
        let step = dumping.step(&mut self.control, &mut self.mirror, quiet);
        match step {
            Ok(false) => return Ok(()),
            Ok(true) => self.end_dump(),
            Err(_) => self.fail_dump(),
        }
        step.map(drop)
    }

    pub(super) fn end_dump(&mut self) {
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
        self.replay_to = Some(end);
        // What was left to the kernel until now need not wait any longer.
        self.settling = true;
        self.coalescer.note(end);
        self.coalescer.hurry();
    }

    /// A dump that failed is tried again, with all others.
    fn fail_dump(&mut self) {
        let Some(dumping) = self.dumping.take() else { return };
        let end = Instant::now();
        self.count_dump(&dumping, end);
        self.doubt(Cause::DumpFailed, Scope::ALL);
        self.resync.want(Scope::ALL, end);
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

    /// Whether all that a message bears on was dumped after it was read.
    pub(super) fn is_outdated(&self, object: &Object, read: Instant) -> bool {
        let after = |table: Scope| self.dumped[table.index()].is_some_and(|began| began > read);
        bears_on(object).tables().all(after)
    }
}

/// The tables that a message about the object changes, or makes the kernel change.
fn bears_on(object: &Object) -> Scope {
    match object {
        Object::Setting(setting) => Scope::settings(setting.family),
        Object::Link(_) => Scope::ALL,
        Object::Address(address) => Scope::ADDRESSES | Scope::routes(Family::of(address.address)),
        Object::Neighbour(_) => Scope::NEIGHBOURS,
        Object::NextHop(_) => Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6,
        Object::Route(route) => Scope::routes(route.prefix.family()),
        Object::Rule(_) => Scope::RULES,
        Object::Qdisc(_) => Scope::QDISCS,
    }
}
