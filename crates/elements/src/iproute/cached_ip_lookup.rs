//! CachedIPLookup and CachedIP6Lookup.

use super::family::Family;
use super::lookup::{ADD, CTRL, FLUSH, LENGTH, LOOKUP, REMOVE, ROUTES, Reason, SET, TABLE, Table};
use causeway_engine::ControlSide;
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};
use causeway_engine::value::Nanoseconds;
use causeway_fib::baseline::{lctrie::LcTrie, radix::Radix};
use causeway_fib::route_cache::{CacheConfig, CacheKey, RouteCache};
use causeway_fib::{LeftRight, Lines6, Lookup, Rank24, Shared};

pub(crate) static SPEC: Spec = Spec {
    name: "CachedIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in a route cache first, and then in a table",
    ports: "1/-",
    processing: "h/h",
    doc: "As IPLookup, with the route cache of Linux 2.6 before the table, which Bolla and Bruschi measure in *The IP \
          Lookup Mechanism in a Linux Software Router*: a hash table with chains and an entry for each KEY seen. With \
          the flow as key that is source, destination and type of service, so each new source needs an entry; with \
          the destination it is the destination annotation alone; with none every packet is looked up in the table. \
          From THRESHOLD entries on an insertion collects garbage, the longest unused first; past LIMIT entries new \
          keys go without one. Sources and type of service are those of the network header. Each worker has a cache \
          of its own; a change of the routes empties it. The cache is here to be measured: the default table answers \
          faster than any cache does.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> rt :: CachedIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1, KEY destination, TABLE radix);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "RadixIPLookup", "LCTrieIPLookup", "CachedIP6Lookup"],
    build: build::<u32, Rank24>,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

pub(crate) static SPEC6: Spec = Spec {
    name: "CachedIP6Lookup",
    summary: "looks up IPv6 routes in a route cache first, and then in a table",
    doc: "CachedIPLookup for IPv6, with the traffic class as type of service.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: CachedIP6Lookup(2001:db8::/32 0, ::/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["LookupIP6Route", "CachedIPLookup", "RadixIP6Lookup", "LCTrieIP6Lookup"],
    build: build::<u128, Lines6>,
    ..SPEC
};

const ARGS: &[ArgDoc] = &[
    ROUTES,
    keyword(
        "TABLE",
        "default, radix or lctrie",
        "structure of the table; default `default`, that of IPLookup",
    ),
    keyword("KEY", "flow, destination or none", "what an entry is found by; default flow"),
    keyword("BUCKETS", "number", "chains of the hash table, rounded up to a power of two; default 4096"),
    keyword("THRESHOLD", "entries", "garbage is collected from here on; default BUCKETS"),
    keyword("LIMIT", "entries", "most entries; default 16 times BUCKETS"),
    keyword("ELASTICITY", "entries", "length of the chains from which collection works harder; default 8"),
    keyword("TIMEOUT", "time", "age from which an unused entry is garbage; default 300 s"),
    keyword("INTERVAL", "time", "least time between two collections; default 500 ms"),
];

const HANDLERS: &[HandlerDoc] = &[
    TABLE,
    LENGTH,
    LOOKUP,
    ADD,
    SET,
    REMOVE,
    CTRL,
    FLUSH,
    reads("active", "entries of the cache that hold a key").measures(Unit::Entries),
    reads("total", "entries of the cache, in use or not").measures(Unit::Entries),
    reads("hits", "packets answered by the cache").counts(Unit::Packets),
    reads("misses", "packets answered by the table").counts(Unit::Packets),
    reads("steps", "entries passed over in chains").counts(Unit::None),
    reads("collections", "runs of the garbage collector").counts(Unit::None),
    reads("overflows", "keys that found no room").counts(Unit::None),
    writes("flush_cache", "empties the cache"),
];

struct Cached<A: Family, S: Shared<A>> {
    table: Table<A, S>,
    cache: RouteCache<A>,
    /// Version of the table that the cache's entries are of.
    version: u64,
    hits: Counter,
    misses: Counter,
}

fn build<A: Family, D: Shared<A> + Send + 'static>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let structure: String = conf.keyword("TABLE", "default".to_owned());
    let config = config(conf);
    match structure.as_str() {
        "default" => build_over::<A, D>(conf, config),
        "radix" => build_over::<A, LeftRight<A, Radix<A>>>(conf, config),
        "lctrie" => build_over::<A, LeftRight<A, LcTrie<A>>>(conf, config),
        other => {
            conf.error(format!("TABLE: '{other}' is not default, radix or lctrie"));
            Err(Invalid)
        }
    }
}

fn config(conf: &mut Conf<'_>) -> CacheConfig {
    let word: String = conf.keyword("KEY", "flow".to_owned());
    let key = match word.as_str() {
        "flow" => CacheKey::Flow,
        "destination" => CacheKey::Destination,
        "none" => CacheKey::Off,
        other => {
            conf.error(format!("KEY: '{other}' is not flow, destination or none"));
            CacheKey::Off
        }
    };
    let usual = CacheConfig::with_buckets(key, number(conf, "BUCKETS", 4096));
    let ms = |conf: &mut Conf<'_>, name, usual_ms: u64| {
        conf.keyword(name, Nanoseconds(usual_ms * 1_000_000)).0 / 1_000_000
    };
    CacheConfig {
        gc_threshold: number(conf, "THRESHOLD", usual.gc_threshold),
        entries_max: number(conf, "LIMIT", usual.entries_max),
        elasticity: number(conf, "ELASTICITY", usual.elasticity),
        timeout_ms: ms(conf, "TIMEOUT", usual.timeout_ms),
        gc_interval_ms: ms(conf, "INTERVAL", usual.gc_interval_ms),
        ..usual
    }
}

/// Most buckets or entries that a configuration may ask for; room for them is set aside at the start.
const MOST: usize = 1 << 22;

fn number(conf: &mut Conf<'_>, name: &str, usual: usize) -> usize {
    let number = conf.keyword(name, usual);
    if !(1..=MOST).contains(&number) {
        conf.error(format!("{name}: {number} is not 1 to {MOST}"));
        return usual;
    }
    number
}

fn build_over<A: Family, S: Shared<A> + Send + 'static>(
    conf: &mut Conf<'_>,
    config: CacheConfig,
) -> Result<Box<dyn Element>, Invalid> {
    let table = Table::<A, S>::configured(conf, S::empty)?;
    let seed = conf.env.seed ^ conf.worker() as u64;
    let (hits, misses) = (conf.counter("hits"), conf.counter("misses"));
    let version = table.version();
    Ok(Box::new(Cached { table, cache: RouteCache::new(config, seed), version, hits, misses }))
}

impl<A: Family, S: Shared<A> + Send + 'static> Element for Cached<A, S> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let Cached { table, cache, version, hits, misses } = self;
        let now_ms = cx.now_ns() / 1_000_000;
        let before = cache.counts();
        table.send(batch, cx, |structure, batch, found| {
            let now = table.version();
            if std::mem::replace(version, now) != now {
                cache.flush();
            }
            for (found, packet) in found.iter_mut().zip(batch.iter()) {
                *found = cache.lookup(A::flow(packet), now_ms, |address| structure.lookup(address));
            }
        });
        let after = cache.counts();
        hits.add(after.hits - before.hits);
        misses.add(after.misses - before.misses);
    }

    fn control_side(&self, cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        Some(self.table.control_side(cx))
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let counts = self.cache.counts();
        let number = match handler {
            "active" => self.cache.active() as u64,
            "total" => self.cache.total() as u64,
            "hits" => counts.hits,
            "misses" => counts.misses,
            "steps" => counts.steps,
            "collections" => counts.collections,
            "overflows" => counts.overflows,
            _ => return Err(Error::new(format!("handler '{handler}' is not of the cache"))),
        };
        Ok(number.to_string())
    }

    /// Only the cache is the worker's own.
    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.cache.flush();
        Ok(())
    }
}
