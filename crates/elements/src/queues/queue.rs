//! Queue.

use super::fifo;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "Queue",
    aliases: &["FullNoteQueue"],
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "Keeps at most CAPACITY packets, first in, first out. A packet that finds the queue full goes to output 1 \
          if that is connected and is dropped otherwise. Pullers sleep while the queue is empty, and sources sleep \
          while it is full, so an InfiniteSource in front of it stops and loses nothing. A hot swap keeps the \
          packets.",
    args: fifo::ARGS,
    handlers: fifo::HANDLERS,
    drops: fifo::Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> Queue(200) -> Unqueue -> Discard;",
    see: &["SimpleQueue", "Unqueue"],
    notifies: Notifies { packets: true, room: true },
    stores: true,
    build: fifo::build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, fifo::Reason);
