//! Large tables of running routers: what is done to them takes nothing from the packets.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

const ROUTES: u32 = 300_000;

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
    let mut text = String::new();
    for i in 0..ROUTES {
        let [_, a, b, c] = (i << 4).to_be_bytes();
        let _ = writeln!(text, "add {}.{a}.{b}.{c}/28 1", 11 + (i >> 20));
    }
    let (filling, filled) = rounds(&router, || router.write("rt", "ctrl", &text));
    filled.expect("good routes");
    let (showing, table) = rounds(&router, || router.read("rt", "table", "").expect("a table"));
    assert_eq!(table.lines().count(), ROUTES as usize + 1);
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
