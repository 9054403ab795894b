//! NotifierQueue.

use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "NotifierQueue",
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue whose pullers sleep",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "As Queue, but sources do not sleep while it is full: what does not fit goes to output 1 if that is connected, and is dropped otherwise.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> NotifierQueue(200) -> Unqueue -> Discard;",
    see: &["Queue", "SimpleQueue"],
    notifies: Notifies { packets: true, room: false },
    stores: true,
    build: fifo::build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
