//! BandwidthRatedUnqueue.

use super::bucket::ByteLimits;
use super::rated_unqueue::{HANDLERS, build};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "BandwidthRatedUnqueue",
    category: "shaping",
    summary: "pulls packets at a bandwidth and pushes them on",
    ports: "1/1",
    processing: "l/h",
    doc: "Pulls packets at the bandwidth RATE, one a turn, and pushes them out. A token bucket, filled each millisecond, \
          keeps the rate: what was not used of it is saved up, as far as BURST_DURATION or BURST_BYTES allow. A packet \
          passes if the bucket holds 128 KiB, by which it is larger than they say, whatever the packet's length. It sleeps \
          until the next packet may pass, and while a notifier upstream says that there is nothing.",
    args: ByteLimits::ARGS,
    handlers: handlers!(ByteLimits::HANDLERS, HANDLERS, TASK),
    example: "InfiniteSource(LIMIT 50, STOP true) -> Queue -> BandwidthRatedUnqueue(80kbps) -> Discard;",
    see: &["RatedUnqueue", "Unqueue", "BandwidthShaper", "BandwidthRatedSplitter"],
    copies: Copies::One,
    build: |conf| build::<ByteLimits>(conf),
    ..Spec::DEFAULT
};
