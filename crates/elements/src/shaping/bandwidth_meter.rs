//! BandwidthMeter.

use super::measure::Bytes;
use super::meter::{HANDLERS, build};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "BandwidthMeter",
    category: "shaping",
    summary: "sends packets to outputs by the bandwidth at which they come",
    ports: "1/2-",
    processing: "h/h",
    doc: "Measures how many bytes a second come, as Counter does, and sends each packet to the output that the rate says: \
          to 0 while it is below the first RATE, to 1 while it is below the second, and so on, to the last while none is \
          above it. All packets go to the same output at a time; BandwidthRatedSplitter keeps the rate of its first one.",
    args: &[rest("RATE", "bandwidth", "rates, each above the one before")],
    handlers: HANDLERS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> m :: BandwidthMeter(8kbps) -> Discard; m[1] -> Discard;",
    see: &["Meter", "BandwidthRatedSplitter", "BandwidthShaper", "Counter"],
    copies: Copies::One,
    build: |conf| build::<Bytes>(conf),
    ..Spec::DEFAULT
};
