//! SimpleQueue.

use super::fifo;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SimpleQueue",
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue that wakes nobody",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "A Queue without notifiers: pullers ask it again and again while it is empty, and sources go on while it \
          is full. A packet that finds the queue full goes to output 1 if that is connected and is dropped \
          otherwise. A hot swap keeps the packets, also from and to a Queue.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> SimpleQueue(200) -> Unqueue -> Discard;",
    see: &["Queue", "Unqueue"],
    stores: true,
    build: fifo::build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
