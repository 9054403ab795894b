//! `make changes`: how fast the kernel takes changes of routes, with nobody listening, with somebody who listens and does nothing,
//! and with a router; and how long after the last one the router forwards by it.
//!
//! `CHANGES_ROUTES` says how many routes there are, and `CHANGES_CHURN` how many of them change.

use crate::net::{Net, Router, wait_for};
use crate::netlink::{self, Change, Listener, churn};
use crate::throughput::median;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 2, 2)];
const ROUNDS: usize = 5;
/// Octets of messages that the kernel keeps for a listener: as many as for the router.
const ROOM: usize = 128 << 20;

/// Who listens, the baseline second.
const WAYS: [&str; 5] = ["nobody", "who reads and forgets", "who does not read", "up", "up --driver"];

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// A listener that does nothing else.
struct Idle {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Idle {
    fn start(net: &Net, reads: bool) -> Idle {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = net.spawn("r", move || {
            let listener = Listener::open(ROOM).expect("a listener");
            listener.wait_at_most(Duration::from_millis(20)).expect("a time limit");
            let mut buffer = vec![0; 1 << 17];
            while !stopped.load(Ordering::Relaxed) {
                if reads {
                    // There is nothing, or some were lost: it is all the same to who forgets.
                    let _ = listener.next(&mut buffer);
                } else {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        // It must hear the first change.
        std::thread::sleep(Duration::from_millis(100));
        Idle { stop, thread }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the listener");
    }
}

/// A connection to a router, for many questions.
struct Control(BufReader<UnixStream>);

impl Control {
    fn open(router: &Router) -> Control {
        let stream = UnixStream::connect(&router.socket).expect("the control socket");
        let mut control = Control(BufReader::new(stream));
        control.line();
        control
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line
    }

    /// What becomes of packets to an address.
    fn lookup(&mut self, address: Ipv4Addr) -> String {
        self.0.get_mut().write_all(format!("READ forward.lookup {address}\n").as_bytes()).expect("written");
        let said = self.line();
        assert!(said.starts_with("200"), "{said}");
        let data = self.line();
        let len = data.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a length");
        let mut text = vec![0; len];
        self.0.read_exact(&mut text).expect("an answer");
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A router, of whose log is counted how often messages were lost.
fn router(net: &Net, args: &str, log: &std::path::Path) -> Router {
    let file = File::create(log).expect("a log");
    net.start_with("r", &format!("up ra rb --attach xdp {args}"), file)
}

/// Makes the churn, and behind it one more change of a route of its own; seconds that the kernel took for it all, and until the
/// router knew the last.
fn once(net: &Net, changes: &[Change], marker: u32, router: Option<&Router>) -> (f64, Option<f64>) {
    let told = router.map(|router| {
        let mut control = Control::open(router);
        // The route of the marker is of the first gateway, and all routes are known by then.
        wait_for("all routes to be known", || control.lookup(marked(marker)).contains("ra"));
        control
    });
    let mut all = changes.to_vec();
    all.push((marker, Some(GATEWAYS[1])));
    let began = Instant::now();
    net.spawn("r", move || netlink::change(&all)).join().expect("a thread").expect("the churn");
    let (took, ended) = (began.elapsed().as_secs_f64(), Instant::now());
    let behind = told.map(|mut control| {
        while !control.lookup(marked(marker)).contains("rb") {
            assert!(ended.elapsed() < Duration::from_secs(60), "the last change is never known");
            std::thread::sleep(Duration::from_millis(1));
        }
        ended.elapsed().as_secs_f64()
    });
    net.spawn("r", move || netlink::change(&[(marker, Some(GATEWAYS[0]))]))
        .join()
        .expect("a thread")
        .expect("back");
    (took, behind)
}

fn marked(marker: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(netlink::prefix(marker)) + 1)
}

#[test]
#[ignore = "takes minutes; make changes"]
fn the_kernel_takes_changes_as_fast_as_with_an_idle_listener() {
    let Some(net) = Net::new() else { return };
    let (routes, changed) = (number("CHANGES_ROUTES", 1_000_000), number("CHANGES_CHURN", 200_000));
    // Both gateways are known before it begins.
    for host in ["10.77.1.2", "10.77.2.2"] {
        net.inside("r", "ping", &format!("-c 1 {host}"));
    }
    let all: Vec<Change> = (0..=routes).map(|n| (n, Some(GATEWAYS[0]))).collect();
    net.spawn("r", move || netlink::change(&all)).join().expect("a thread").expect("routes");
    let changes = churn(routes, changed, GATEWAYS);
    let log = std::env::temp_dir().join(format!("churn-{}.log", std::process::id()));
    let (mut rates, mut behind, mut lost) = ([const { Vec::new() }; 5], [const { Vec::new() }; 5], [0; 5]);
    for _ in 0..ROUNDS {
        for (way, name) in WAYS.into_iter().enumerate() {
            let idle = name.starts_with("who").then(|| Idle::start(&net, name.contains("forgets")));
            let args = name.strip_prefix("up");
            let up = args.map(|args| router(&net, args, &log));
            let (took, late) = once(&net, &changes, routes, up.as_ref());
            rates[way].push(changes.len() as f64 / took);
            behind[way].extend(late);
            drop(up);
            idle.into_iter().for_each(Idle::end);
            if args.is_some() {
                let text = std::fs::read_to_string(&log).expect("the log");
                lost[way] += text.lines().filter(|line| line.contains("messages-lost")).count();
            }
        }
    }
    let _ = std::fs::remove_file(&log);
    println!("{routes} routes, {} changes a round, {ROUNDS} rounds in turns", changes.len());
    println!("| who listens | changes a second | to the idle listener | behind at the end, s | losses |");
    println!("|---|---|---|---|---|");
    let baseline = median(&mut rates[1].clone());
    for (way, name) in WAYS.into_iter().enumerate() {
        let rate = median(&mut rates[way]);
        let (least, most) = (rates[way][0], rates[way][ROUNDS - 1]);
        let late =
            if behind[way].is_empty() { String::new() } else { format!("{:.2}", median(&mut behind[way])) };
        let ratio = rate / baseline;
        println!("| {name} | {rate:.0} ({least:.0} to {most:.0}) | {ratio:.2} | {late} | {} |", lost[way]);
    }
}
