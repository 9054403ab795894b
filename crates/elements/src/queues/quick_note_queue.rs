//! QuickNoteQueue.

use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "QuickNoteQueue",
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue, as Queue does",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "As Queue. In Click it tells its pullers sooner that it is empty, which all queues do here.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> QuickNoteQueue(200) -> Unqueue -> Discard;",
    see: &["Queue", "SimpleQueue"],
    notifies: Notifies { packets: true, room: true },
    stores: true,
    build: fifo::build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
