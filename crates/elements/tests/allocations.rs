//! Per packet nothing is allocated: a forwarding graph is run, and the heap's blocks are counted.

mod counting;

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// What forwards, with queues, copies, classifiers of all kinds, tables, flows, and packets that are dropped and answered.
const GRAPH: &str = r"
    good :: InfiniteSource(DATA \<4500 001c 0000 0000 4011 65cf 0a00 0001 0a00 0102 0009 0035 0008 0000>, BURST 32);
    last :: InfiniteSource(DATA \<4500 001c 0000 0000 0111 a4cf 0a00 0001 0a00 0102 0009 0035 0008 0000>, BURST 1);
    answer :: TimedSource(0.01, DATA \<000000000001 020000000002 0806 0001 0800 06 04 0002 020000000002 0a000102 000000000001 0a000001>);
    good -> EtherEncap(0x0800, 2:0:0:0:0:2, 2:0:0:0:0:1) -> in :: Classifier(12/0806, 12/0800, -);
    in[0] -> Discard; in[2] -> Discard;
    in[1] -> Paint(1) -> Strip(14) -> check :: CheckIPHeader;
    last -> check;
    check -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0, MAPPING_CAPACITY 1000)
        -> AggregateIPFlows -> AggregateCounter -> filter :: IPFilter(deny tcp dst port 23, allow all) -> GetIPAddress(16) -> rt :: IPLookup(10.0.1.0/24 0, 0/0 1);
    rt[1] -> Discard;
    rt[0] -> DropBroadcasts -> ttl :: DecIPTTL -> IPFragmenter(1500) -> arp :: ARPQuerier(10.0.0.1, 0:0:0:0:0:1);
    ttl[1] -> ICMPError(10.0.0.9, timeexceeded, transit) -> errors :: Counter -> Discard;
    answer -> [1] arp;
    arp -> ip :: Classifier(12/0800, -) -> tee :: Tee -> q :: Queue(500) -> out :: Counter -> Unqueue(BURST 32) -> Discard;
    tee[1] -> RadixIPLookup(0/0 0) -> Discard;
    ip[1] -> Discard;";
/// Packets that are waited for.
const PACKETS: u64 = 100_000;
/// Blocks that may be allocated meanwhile: by who asks for counters and by queries for a neighbour that is known.
const BLOCKS: u64 = 1_000;

fn counted(router: &Router) -> u64 {
    let of = |(line, n): (&causeway_engine::Line, u64)| {
        (line.element == "out" && line.name == "count").then_some(n)
    };
    router.counters().find_map(of).expect("a counter")
}

#[test]
fn packets_cost_no_allocation() {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", GRAPH.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    for plan in [plan.clone(), causeway_elements::optimise(&plan).plan] {
        let router =
            Router::start(library.clone(), plan, Options::default()).unwrap_or_else(|e| panic!("{e}"));
        router.resume();
        let wait = |packets| {
            let start = Instant::now();
            while counted(&router) < packets {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "{} of {packets} packets",
                    counted(&router)
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        // Whatever grows to its size has done so.
        wait(PACKETS / 4);
        let (before, from) = (counting::blocks(), counted(&router));
        wait(from + PACKETS);
        let blocks = counting::blocks() - before;
        assert!(blocks < BLOCKS, "{blocks} blocks for {} packets", counted(&router) - from);
        assert_ne!(router.read("errors", "count", "").unwrap(), "0", "errors are made, too");
    }
}
