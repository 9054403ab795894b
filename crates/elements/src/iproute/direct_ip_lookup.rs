//! DirectIPLookup.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::LeftRight;
use causeway_fib::baseline::dir24_8::Dir24_8;

pub(crate) static SPEC: Spec = Spec {
    name: "DirectIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a DIR-24-8 table",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, over DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998): an entry for every /24, and 256 more \
          where longer routes are. One load for most lookups, in 32 MB, and as much again from the first change on. At \
          most 32 768 /24s can have longer routes inside.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: DirectIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "RangeIPLookup"],
    build: build::<u32, LeftRight<u32, Dir24_8>>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
