//! SpinlockInfo, SpinlockAcquire, SpinlockRelease and SpinlockPush.

use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, phase};

/// Why nothing is locked.
const DOC: &str = "Nothing is locked: an element belongs to one worker, and what several workers reach together is made for that. \
Configurations that lock run as they are.";
const LOCK: ArgDoc = required("LOCK", "name", "the lock");

pub(crate) static INFO: Spec = Spec {
    name: "SpinlockInfo",
    category: "control",
    summary: "names locks, which are not needed",
    ports: "0/0",
    doc: DOC,
    args: &[rest("LOCK", "name", "a lock")],
    example: "SpinlockInfo(a); InfiniteSource(LIMIT 9, STOP true) -> SpinlockAcquire(a) -> SpinlockRelease(a) -> Discard;",
    see: &["SpinlockAcquire", "StaticThreadSched"],
    phase: phase::INFO,
    build: |conf| {
        let names: Vec<String> = conf.rest();
        conf.finish()?;
        for name in names {
            conf.env.shared(&key(&name), || ());
        }
        Ok(Box::new(Unlocked))
    },
    ..Spec::DEFAULT
};

/// What the elements of a router share of the lock called `name`: that there is one.
fn key(name: &str) -> String {
    format!("lock {name}")
}

pub(crate) static ACQUIRE: Spec = Spec { name: "SpinlockAcquire", ..PASSES };
pub(crate) static RELEASE: Spec = Spec { name: "SpinlockRelease", ..PASSES };
pub(crate) static PUSH: Spec = Spec { name: "SpinlockPush", processing: "h/h", ..PASSES };

const PASSES: Spec = Spec {
    category: "control",
    summary: "passes packets; locks are not needed",
    doc: DOC,
    args: &[LOCK],
    example: "SpinlockInfo(a); InfiniteSource(LIMIT 9, STOP true) -> SpinlockAcquire(a) -> SpinlockPush(a) -> SpinlockRelease(a) -> Discard;",
    see: &["SpinlockInfo", "StaticThreadSched"],
    build: |conf| {
        let lock = conf.required::<String>("LOCK");
        conf.finish()?;
        // What is written to `config` is read where the locks are not known.
        if !conf.env.elements.is_empty() && conf.env.shared_if_made::<()>(&key(&lock)).is_none() {
            conf.error(format!("cannot locate spinlock {lock}"));
            return Err(Invalid);
        }
        Ok(Box::new(Unlocked))
    },
    ..Spec::DEFAULT
};

struct Unlocked;

impl Element for Unlocked {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }
}
