//! BandwidthShaper.

use super::measure::Bytes;
use super::shaper::{HANDLERS, build};
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "BandwidthShaper",
    category: "shaping",
    summary: "lets itself be pulled at a bandwidth",
    ports: "1/1-2",
    processing: "l/l",
    doc: "Answers pulls with packets up to the bandwidth RATE, evenly spaced by their lengths; pullers sleep in between. \
          Pulls from output 1 are answered with packets while output 0 must wait.",
    args: &[required("RATE", "bandwidth", "how much passes")],
    handlers: HANDLERS,
    example: "InfiniteSource(LIMIT 50, STOP true) -> Queue -> BandwidthShaper(100kbps) -> Discard;",
    see: &["Shaper", "BandwidthRatedSplitter", "BandwidthRatedUnqueue", "DelayShaper"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: |conf| build::<Bytes>(conf),
    ..Spec::DEFAULT
};
