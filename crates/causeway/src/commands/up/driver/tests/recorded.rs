//! `make changes`: how many changes of routes a second the mirror and the driver's tables take. What the kernel says of a churn is
//! recorded once, and taken in from memory again and again, so that neither the kernel nor `ip` is in it.
//!
//! `CHANGES_ROUTES` says how many routes there are, and `CHANGES_CHURN` how many of them change.

#[path = "../../../../../tests/netlink/mod.rs"]
mod netlink;

use super::*;
use causeway_kernel::{Mirror, Watcher, WatcherConfig, interfaces};
use causeway_lab::namespace::Namespace;
use netlink::{Change, Listener, churn};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

const GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
/// Messages between two times that changes are put into the tables: at 200 000 a second, as many as the follower gathers in a
/// storm in a tenth of its longest wait.
const STRETCH: usize = 20_000;
const ROUNDS: usize = 5;
/// Octets of messages that the kernel keeps for who records them.
const ROOM: usize = 1 << 30;

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// What this thread has had: on a busy machine the clock tells of the others.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A router's namespace with one port, two gateways behind it, and so many routes to the first.
fn namespace(routes: u32) -> Namespace {
    let space = Namespace::new(&format!("cwrec-{}-r", std::process::id())).expect("a namespace");
    for line in [
        "link set lo up",
        "link add r0 type veth peer name h0",
        "addr add 10.0.0.1/24 dev r0",
        "link set r0 up",
        "link set h0 up",
        "neigh replace 10.0.0.2 lladdr 2:0:0:0:0:2 dev r0 nud permanent",
        "neigh replace 10.0.0.3 lladdr 2:0:0:0:0:3 dev r0 nud permanent",
    ] {
        space.ip(line).expect(line);
    }
    let all: Vec<Change> = (0..routes).map(|n| (n, Some(GATEWAYS[0]))).collect();
    space.run(|| Ok(netlink::change(&all)?)).expect("routes");
    space
}

/// The mirror of the namespace, and the driver's tables with what it told.
fn follow(space: &Namespace) -> Option<(Mirror, Tables)> {
    let opened = space.run(|| {
        let port = interfaces()?.into_iter().find(|i| i.link.name == "r0").expect("a port").link.index;
        let config = WatcherConfig { keep_resolved: false, ..WatcherConfig::new([port]) };
        Ok((Watcher::open(config)?, port))
    });
    let (mut watcher, port) = opened.expect("a watcher");
    let mut tables = tables(port, u32::MAX)?;
    while watcher.in_doubt() {
        let changes = watcher.wait(Duration::from_millis(200)).expect("changes");
        tables.apply(&changes, &mut || ());
    }
    Some((watcher.into_mirror(), tables))
}

/// What the kernel says of the changes, in stretches, and how many messages that is.
fn record(space: &Namespace, changes: &[Change]) -> (Vec<Vec<u8>>, usize) {
    space
        .run(|| {
            let listener = Listener::open(ROOM)?;
            listener.wait_at_most(Duration::from_secs(1))?;
            netlink::change(changes)?;
            let (mut stretches, mut messages, mut buffer) = (vec![Vec::new()], 0, vec![0; 1 << 17]);
            // One message a datagram, of which none was lost: that would be an error.
            while messages < changes.len() {
                let len = listener.next(&mut buffer)?;
                if messages > 0 && messages % STRETCH == 0 {
                    stretches.push(Vec::new());
                }
                stretches.last_mut().expect("a stretch").extend_from_slice(&buffer[..len]);
                messages += 1;
            }
            Ok((stretches, messages))
        })
        .expect("recorded")
}

#[test]
#[ignore = "takes a minute; make changes"]
fn recorded_changes_are_taken_in() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let (routes, changed) = (number("CHANGES_ROUTES", 1_000_000), number("CHANGES_CHURN", 200_000));
    let space = namespace(routes);
    let Some((mut mirror, mut tables)) = follow(&space) else { return };
    let began = Instant::now();
    let (stretches, messages) = record(&space, &churn(routes, changed, GATEWAYS));
    println!("{routes} routes, {messages} changes recorded in {:.2} s", began.elapsed().as_secs_f64());
    let before = (mirror.route_count(), tables.routes());
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let (mut by_mirror, mut by_tables) = (Duration::ZERO, Duration::ZERO);
        let busy = processor_time();
        for stretch in &stretches {
            let began = Instant::now();
            mirror.take_in(stretch).expect("messages");
            let changes = mirror.collect(|| ());
            by_mirror += began.elapsed();
            let began = Instant::now();
            tables.apply(&changes, &mut || ());
            by_tables += began.elapsed();
        }
        let busy = processor_time() - busy;
        for (rates, time) in rates.iter_mut().zip([by_mirror, by_tables, by_mirror + by_tables, busy]) {
            rates.push(messages as f64 / time.as_secs_f64());
        }
    }
    assert_eq!((mirror.route_count(), tables.routes()), before, "all are back");
    assert!(tables.are_whole());
    let names = ["mirror", "tables in the driver's memory", "both", "both, by processor time"];
    for (name, mut rates) in names.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| rates[at]);
        println!("{name:30} {median:10.0} changes/s ({least:.0} to {most:.0})");
    }
}
