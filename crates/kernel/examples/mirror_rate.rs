//! How fast the mirror follows: fills a routing table in a network namespace of its own and measures.
//!
//! As root: `cargo run --release -p causeway-kernel --example mirror_rate -- [ROUTES]`

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::Testbed;

fn main() {
    let count: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let Some(bed) = Testbed::new("rate") else { return };
    // Otherwise the kernel announces every route of an object that changes, and most of the time goes there.
    bed.router.run("sysctl -qw net.ipv4.nexthop_compat_mode=0");
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("nexthop add id 2 via 10.0.1.2 dev r1");
    bed.router.ip("nexthop add id 10 group 1/2");
    let prefix = |i: u32| format!("{}.{}.{}.0/24", 16 + (i >> 16), (i >> 8) & 255, i & 255);
    let target = |i: u32| if i & 1 == 0 { "nhid 10" } else { "via 10.0.0.2" };
    let lines = |verb: &str, n: u32| -> String {
        (0..n).map(|i| format!("route {verb} {} {}\n", prefix(i), target(i))).collect()
    };
    let start = Instant::now();
    bed.router.batch(&lines("add", count));
    println!("{count} routes put into the kernel by ip -batch: {:.2} s", start.elapsed().as_secs_f64());

    let start = Instant::now();
    let mut follower = bed.open(&["r0", "r1"]);
    let dump_s = start.elapsed().as_secs_f64();
    let routes = follower.watcher.mirror().route_count();
    println!("first dump: {dump_s:.2} s, {routes} routes, {:.0} routes/s", routes as f64 / dump_s);
    let start = Instant::now();
    follower.step();
    println!("first changes: {:.2} s, {} prefixes", start.elapsed().as_secs_f64(), follower.route_changes);
    follower.settle();

    let before = follower.route_changes;
    let start = Instant::now();
    bed.router.ip("nexthop replace id 10 group 2");
    follower.until("moved", |f| f.to("16.0.0.1").starts_with("r1 via 10.0.1.2"));
    let prefixes = follower.route_changes - before;
    println!("half of them moved to another gateway: {:.0} ms, {prefixes} prefixes told", ms(start));

    let start = Instant::now();
    bed.hosts.ip("link set h0 down");
    follower.until("dead", |f| f.to("16.0.1.1") == "punt link-down" || f.to("16.0.1.1") == "none");
    println!("the other half's link lost carrier: {:.0} ms until none of them is forwarded", ms(start));
    bed.hosts.ip("link set h0 up");
    follower.settle();
    println!("dump with mark and sweep: {:.2} s", follower.watcher.stats().resync_ns as f64 / 1e9);

    let churn = count.min(200_000);
    let text = lines("del", churn) + &lines("add", churn);
    let messages = follower.watcher.stats().messages;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| bed.router.batch(&text));
        while !writer.is_finished() {
            follower.step();
        }
    });
    let busy_s = start.elapsed().as_secs_f64();
    follower.settle();
    let stats = follower.watcher.stats();
    let seen = stats.messages - messages;
    println!(
        "churn: {seen} messages in {busy_s:.2} s, {:.0}/s, {} overruns",
        seen as f64 / busy_s,
        stats.overruns
    );
}

fn ms(start: Instant) -> f64 {
    // Of which the mirror waits 50 ms for more to come, unless a link went down.
    start.elapsed().as_secs_f64() * 1e3
}
