//! StaticIPLookup.

use super::lookup::{ARGS, Reason, STATIC_HANDLERS, build};
use causeway_engine::prelude::*;
use causeway_fib::Compact16;

pub(crate) static SPEC: Spec = Spec {
    name: "StaticIPLookup",
    aliases: &["LookupIPRouteMP"],
    category: "iproute",
    summary: "looks up IPv4 routes that never change",
    ports: "1/-",
    processing: "h/h",
    doc: "Looks up the destination annotation of each packet in a table given in the configuration. The longest prefix wins. The packet leaves by the route's output, and its destination annotation becomes the route's gateway if it has one, so that ARPQuerier asks for the gateway. Packets without a route are dropped. Bits beyond a prefix's length are ignored, with a warning.",
    args: ARGS,
    handlers: STATIC_HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: StaticIPLookup(10.0.0.0/8 192.168.0.1 0, 0.0.0.0/0 1);\n rt[0] -> Print(ten) -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "LinearIPLookup"],
    build: build::<u32, Compact16>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
