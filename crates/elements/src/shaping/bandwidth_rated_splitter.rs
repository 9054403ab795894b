//! BandwidthRatedSplitter.

use super::bucket::ByteLimits;
use super::rated_splitter::{Reason, build};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "BandwidthRatedSplitter",
    category: "shaping",
    summary: "passes packets up to a bandwidth and sends the others elsewhere",
    ports: "1/1-2",
    processing: "h/h",
    doc: "Passes packets up to the bandwidth RATE. Those beyond that go to output 1 if it is connected, and are dropped \
          otherwise. A token bucket, filled each millisecond, tells them apart: what was not used of the rate is saved \
          up, as far as BURST_DURATION or BURST_BYTES allow. A packet passes if the bucket holds 128 KiB, by which it is \
          larger than they say, whatever the packet's length.",
    args: ByteLimits::ARGS,
    handlers: handlers!(ByteLimits::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> r :: BandwidthRatedSplitter(8kbps) -> Discard; r[1] -> Discard;",
    see: &["RatedSplitter", "BandwidthMeter", "BandwidthShaper", "BandwidthRatedUnqueue"],
    copies: Copies::One,
    build: |conf| build::<ByteLimits>(conf),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
