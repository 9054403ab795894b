//! IPLookup.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::Rank24;

pub(crate) static SPEC: Spec = Spec {
    name: "IPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a table of any size that can change",
    ports: "1/-",
    processing: "h/h",
    doc: "The default IPv4 routing table, and the one to take: as StaticIPLookup, with handlers that change the table \
          while packets flow. A million routes load in well under a second, a lookup costs a few nanoseconds, and \
          changes never stop the packets. It takes 4 MB even for a single route; StaticIPLookup takes less. The \
          other classes with handlers are for comparison and for configurations written for Click: each uses the \
          structure of its name, with the same routes and handlers. LookupIP6Route is the default for IPv6.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: IPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["StaticIPLookup", "LookupIP6Route", "RadixIPLookup", "CachedIPLookup", "PolicyIPLookup"],
    build: build::<u32, Rank24>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
