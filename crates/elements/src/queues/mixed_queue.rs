//! MixedQueue.

use super::deque::{self, Loser};
use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "MixedQueue",
    category: "queues",
    summary: "stores packets in a queue that they enter at the end or at the front",
    ports: "2/1-2",
    processing: "h/lh",
    flow: "x/x",
    doc: "Keeps at most CAPACITY packets. Those of input 0 enter at the end, those of input 1 at the front, where they \
          leave. When the queue is full a packet of input 0 finds no room, and the last one makes room for one of input \
          1; what has none goes to output 1 if that is connected, and is dropped otherwise. Pullers sleep while the queue \
          is empty. A hot swap keeps the packets.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> m :: MixedQueue(200) -> Unqueue -> Discard; Idle -> [1] m;",
    see: &["Queue", "FrontDropQueue"],
    notifies: Notifies { packets: true, room: false },
    stores: true,
    build: |conf| deque::build(conf, Loser::Last),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
