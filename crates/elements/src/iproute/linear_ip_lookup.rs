//! LinearIPLookup.

use super::lookup::{ARGS, DROPS, HANDLERS, build};
use causeway_engine::Spec;
use causeway_fib::Compact16;

pub(crate) static SPEC: Spec = Spec {
    name: "LinearIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a small table that can change",
    ports: "1/-",
    processing: "h/h",
    doc: "As StaticIPLookup, with handlers that change the table while packets flow. For a few routes.",
    args: ARGS,
    handlers: HANDLERS,
    drops: DROPS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: LinearIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["StaticIPLookup", "RadixIPLookup"],
    build: build::<u32, Compact16>,
    ..Spec::DEFAULT
};
