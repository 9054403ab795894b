//! RadixIPLookup and RadixIP6Lookup.

use super::lookup::{ARGS, HANDLERS, Reason, build};
use causeway_engine::prelude::*;
use causeway_fib::LeftRight;
use causeway_fib::baseline::radix::Radix;

pub(crate) static SPEC: Spec = Spec {
    name: "RadixIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a radix tree",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, over a path-compressed binary tree as BSD's (Sklower, USENIX Winter 1991), one of the two \
          structures that Bolla and Bruschi compare in *The IP Lookup Mechanism in a Linux Software Router*. A lookup \
          reads a node for each place where routes part on its way.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: RadixIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "LCTrieIPLookup", "CachedIPLookup", "RadixIP6Lookup"],
    build: build::<u32, LeftRight<u32, Radix<u32>>>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

pub(crate) static SPEC6: Spec = Spec {
    name: "RadixIP6Lookup",
    summary: "looks up IPv6 routes in a radix tree",
    doc: "RadixIPLookup for IPv6.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: RadixIP6Lookup(2001:db8::/32 0, ::/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["LookupIP6Route", "RadixIPLookup", "LCTrieIP6Lookup"],
    build: build::<u128, LeftRight<u128, Radix<u128>>>,
    ..SPEC
};
