//! Burster.

use super::timed_unqueue::{INTERVAL, build};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Burster",
    category: "shaping",
    summary: "pulls several packets every so often and pushes them on",
    ports: "1/1",
    processing: "l/h",
    doc: "As TimedUnqueue, but BURST is 8 unless it is given, and notifiers are not heeded: it pulls every INTERVAL, \
          whether there are packets or not.",
    args: &[INTERVAL, optional("BURST", "packets", "most packets each time; default 8")],
    example: "InfiniteSource(LIMIT 50, STOP true) -> Queue -> Burster(0.1) -> Discard;",
    see: &["TimedUnqueue"],
    copies: Copies::One,
    build: |conf| build(conf, 8, false),
    ..Spec::DEFAULT
};
