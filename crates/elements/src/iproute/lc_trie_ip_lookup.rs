//! LCTrieIPLookup and LCTrieIP6Lookup.

use super::family::Family;
use super::lookup::{HANDLERS, ROUTES, Reason, build_over};
use causeway_engine::prelude::*;
use causeway_engine::spec::ArgDoc;
use causeway_fib::LeftRight;
use causeway_fib::baseline::lctrie::{FILL_FACTOR, LcTrie, ROOT_BITS, ROOT_BITS_MAX};

pub(crate) static SPEC: Spec = Spec {
    name: "LCTrieIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in an LC-trie",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, over a level- and path-compressed trie (Nilsson and Karlsson, JSAC 1999), the other of the two \
          structures that Bolla and Bruschi compare in *The IP Lookup Mechanism in a Linux Software Router*. A node \
          branches on as many bits as keep the share FILL of its children in use; the root branches on ROOT bits \
          whatever its routes. A change compiles anew what lies under the children of the root that it touches: fewer \
          bits at the root cost longer changes, more bits cost memory.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: LCTrieIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1, FILL 0.5, ROOT 16);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "RadixIPLookup", "CachedIPLookup", "LCTrieIP6Lookup"],
    build: build::<u32>,
    lowers: Lowers::Route,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

pub(crate) static SPEC6: Spec = Spec {
    name: "LCTrieIP6Lookup",
    summary: "looks up IPv6 routes in an LC-trie",
    doc: "LCTrieIPLookup for IPv6.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: LCTrieIP6Lookup(2001:db8::/32 0, ::/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["LookupIP6Route", "LCTrieIPLookup", "RadixIP6Lookup"],
    build: build::<u128>,
    ..SPEC
};

const ARGS: &[ArgDoc] = &[
    ROUTES,
    keyword("FILL", "real, above 0 to 1", "least share of a node's children in use; default 0.5"),
    keyword("ROOT", "bits, 1 to 20", "bits that the root branches on; default 16"),
];

fn build<A: Family>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let fill: f64 = conf.keyword("FILL", f64::from(FILL_FACTOR));
    let root: u8 = conf.keyword("ROOT", ROOT_BITS);
    if !(fill > 0.0 && fill <= 1.0) {
        conf.error(format!("FILL: {fill} is not above 0 and at most 1"));
    }
    if !(1..=ROOT_BITS_MAX).contains(&root) {
        conf.error(format!("ROOT: {root} is not 1 to {ROOT_BITS_MAX}"));
    }
    build_over(conf, || Ok(LeftRight::<A, _>::new(LcTrie::with_parameters(fill as f32, root))))
}
