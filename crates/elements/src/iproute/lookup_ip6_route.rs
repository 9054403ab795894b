//! LookupIP6Route.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::Lines6;

pub(crate) static SPEC: Spec = Spec {
    name: "LookupIP6Route",
    category: "iproute",
    summary: "looks up IPv6 routes in a table of any size that can change",
    ports: "1/-",
    processing: "h/h",
    doc: "The default IPv6 routing table: looks up the IPv6 destination annotation of each packet, and is otherwise as \
          IPLookup. Click has one IPv6 routing table, and this is its name there.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: LookupIP6Route(2001:db8::/32 0, ::/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &[
        "IPLookup",
        "RadixIP6Lookup",
        "CachedIP6Lookup",
        "PolicyIP6Lookup",
        "CheckIP6Header",
        "GetIP6Address",
    ],
    build: build::<u128, Lines6>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
