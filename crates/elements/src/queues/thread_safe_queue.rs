//! ThreadSafeQueue.

use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "ThreadSafeQueue",
    aliases: &["MSQueue"],
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue, as Queue does",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "As Queue. In Click several threads may push to it and pull from it, which they may with all queues here: an edge between two workers is a ring.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> ThreadSafeQueue(200) -> Unqueue -> Discard;",
    see: &["Queue", "SimpleQueue"],
    notifies: Notifies { packets: true, room: true },
    stores: true,
    build: fifo::build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
