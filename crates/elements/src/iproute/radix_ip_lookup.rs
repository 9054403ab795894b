//! RadixIPLookup.

use super::lookup::{ARGS, DROPS, HANDLERS, build};
use causeway_engine::Spec;
use causeway_fib::Rank24;

pub(crate) static SPEC: Spec = Spec {
    name: "RadixIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a large table that can change",
    ports: "1/-",
    processing: "h/h",
    doc: "As LinearIPLookup, for tables of any size: a million routes load in well under a second, a lookup costs a few nanoseconds, and changes never stop the packets.",
    args: ARGS,
    handlers: HANDLERS,
    drops: DROPS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: RadixIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["StaticIPLookup", "LinearIPLookup"],
    build: build::<u32, Rank24>,
    ..Spec::DEFAULT
};
