//! FrontDropQueue.

use super::deque::{self, Loser};
use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "FrontDropQueue",
    category: "queues",
    summary: "stores packets in a FIFO queue that drops the oldest",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "Keeps at most CAPACITY packets, first in, first out. When it is full the packet that waited longest makes room \
          for the one that comes: it goes to output 1 if that is connected, and is dropped otherwise. Pullers sleep while \
          the queue is empty. A hot swap keeps the packets.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> FrontDropQueue(200) -> Unqueue -> Discard;",
    see: &["Queue", "MixedQueue", "RED"],
    notifies: Notifies { packets: true, room: false },
    stores: true,
    build: |conf| deque::build(conf, Loser::First),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
