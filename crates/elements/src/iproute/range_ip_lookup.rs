//! RangeIPLookup.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::LeftRight;
use causeway_fib::baseline::ranges::Ranges;

pub(crate) static SPEC: Spec = Spec {
    name: "RangeIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a sorted list of address ranges",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, over sorted address ranges: 16 bits of the address choose a part of the list, and binary search \
          does the rest. Compact, but a change compiles the whole list anew: for tables that seldom change.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: RangeIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "DirectIPLookup"],
    build: build::<u32, LeftRight<u32, Ranges<u32>>>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
