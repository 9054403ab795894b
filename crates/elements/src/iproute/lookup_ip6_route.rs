//! LookupIP6Route.

use super::lookup::{ARGS, DROPS, HANDLERS, build};
use causeway_engine::Spec;
use causeway_fib::Lines6;

pub(crate) static SPEC: Spec = Spec {
    name: "LookupIP6Route",
    category: "iproute",
    summary: "looks up IPv6 routes",
    ports: "1/-",
    processing: "h/h",
    doc: "Looks up the IPv6 destination annotation of each packet; otherwise as RadixIPLookup.",
    args: ARGS,
    handlers: HANDLERS,
    drops: DROPS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: LookupIP6Route(2001:db8::/32 0, ::/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["CheckIP6Header", "GetIP6Address"],
    build: build::<u128, Lines6>,
    ..Spec::DEFAULT
};
