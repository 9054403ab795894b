//! LinearIPLookup.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::LeftRight;
use causeway_fib::baseline::linear::Linear;

pub(crate) static SPEC: Spec = Spec {
    name: "LinearIPLookup",
    aliases: &["SortedIPLookup"],
    category: "iproute",
    summary: "looks up IPv4 routes in a list",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, over a list of routes, longest prefix first, that each lookup searches from the start. For a \
          handful of routes.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: LinearIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "StaticIPLookup"],
    build: build::<u32, LeftRight<u32, Linear<u32>>>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
