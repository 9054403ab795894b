//! Large tables of running routers: what is done to them takes nothing from the packets.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// A hundred thousand; `make corpus` asks for a million.
fn routes() -> u32 {
    std::env::var("TABLE_ROUTES").map_or(100_000, |n| n.parse().expect("a number"))
}

fn start(text: &str) -> Router {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let router = Router::start(library, plan, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

/// Does something to the router; how many rounds its worker has told of meanwhile.
fn rounds<T>(router: &Router, act: impl FnOnce() -> T) -> (usize, T) {
    let pulse = router.pulses().remove(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut times = HashSet::new();
            while !done.load(Ordering::Relaxed) {
                times.insert(pulse.latest_ns());
            }
            times.len()
        });
        let result = act();
        done.store(true, Ordering::Relaxed);
        (watch.join().expect("the watch"), result)
    })
}

#[test]
fn a_worker_forwards_while_its_table_is_filled_shown_and_emptied() {
    let router = start(
        "InfiniteSource(DATA \\<4500 001c 0000 0000 4011 65cf 0a00 0001 0a00 0102 0009 0035 0008 0000>)
         -> MarkIPHeader(0) -> GetIPAddress(16) -> rt :: IPLookup(10.0.0.0/8 0) -> c :: Counter -> Discard; rt[1] -> Discard;",
    );
    let (routes, mut text) = (routes(), String::new());
    for i in 0..routes {
        let [_, a, b, c] = (i << 4).to_be_bytes();
        let _ = writeln!(text, "add {}.{a}.{b}.{c}/28 1", 11 + (i >> 20));
    }
    let (filling, filled) = rounds(&router, || router.write("rt", "ctrl", &text));
    filled.expect("good routes");
    let (showing, table) = rounds(&router, || router.read("rt", "table", "").expect("a table"));
    assert_eq!(table.lines().count(), routes as usize + 1);
    let (emptying, emptied) = rounds(&router, || router.write("rt", "flush", ""));
    emptied.expect("flushed");
    // A worker that did it itself would have told of one round at most.
    assert!(filling > 5 && showing > 5 && emptying > 1, "{filling}, {showing} and {emptying} rounds");
    assert_eq!(router.read("rt", "table", "").unwrap(), "");
    router.write("rt", "set", "10.0.0.0/8 0").unwrap();
    let lost = router.counters().filter(|(l, _)| l.name.starts_with("drop.") && l.name != "drop.discarded");
    let lost: Vec<_> = lost.filter(|(l, n)| *n > 0 && l.name != "drop.no-route").collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// What a rewriter, a switch and an ARP table know is copied for whoever wants to see it while packets pass.
#[test]
fn a_worker_forwards_while_what_it_has_learnt_is_shown() {
    let router = start(
        "FastUDPFlows(0, -1, 60, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.1.2, 60000, 1000000) -> Unqueue
         -> Strip(14) -> MarkIPHeader -> nat :: UDPRewriter(keep 0 1) -> Discard; nat[1] -> Discard;
         r :: RandomSource(LENGTH 64) -> [0] switch :: EtherSwitch; Idle -> [1] switch;
         switch[0] -> Discard; switch[1] -> Discard;
         Idle -> [0] arp :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1, TABLE table) -> Discard; Idle -> [1] arp; table :: ARPTable;",
    );
    for n in 0..10_000u32 {
        let [_, a, b, c] = n.to_be_bytes();
        router.write("arp", "insert", &format!("10.{a}.{b}.{c} 2:0:0:{a}:{b:x}:{c:x}")).expect("a neighbour");
    }
    let number = |handler: &str| router.read("nat", handler, "").expect("a number").parse::<usize>().unwrap();
    while number("table_size") < 20_000 {
        std::thread::yield_now();
    }
    for (element, lines) in [("nat", 2 * 20_000), ("switch", 1_000), ("arp", 10_000), ("table", 10_000)] {
        let shown = || rounds(&router, || router.read(element, "table", "").expect("a table"));
        // A worker that did it itself would have told of one round or two, whoever watches and however often.
        let goes_on = |(rounds, table): &(usize, String)| {
            assert!(table.lines().count() >= lines, "{element}: {} lines", table.lines().count());
            lines < 10_000 || *rounds > 5
        };
        assert!((0..20).map(|_| shown()).any(|seen| goes_on(&seen)), "{element}");
    }
}
