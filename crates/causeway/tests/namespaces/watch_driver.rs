//! Watching packets that are forwarded in the driver otherwise, and counting them.

use crate::driver::{TCX, XDP, pings, start};
use crate::net::{CAUSEWAY, Net, Router, wait_for};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What `causeway` says on standard error to whoever watches.
const SAID: &str = "packets that are forwarded in the driver go through the graph meanwhile";
/// The same where packets come to no graph.
const UNSEEN: &str = "packets that are forwarded in the stack, at tcx, go through no graph";

/// A command of a running router.
fn causeway(router: &Router, args: &[&str]) -> Command {
    let mut command = Command::new(CAUSEWAY);
    command.args(args).arg("--socket").arg(&router.socket);
    command
}

/// `causeway capture EDGE`, running.
pub struct Capture {
    child: Child,
    pub file: PathBuf,
}

impl Capture {
    pub fn start(router: &Router, edge: &str, args: &[&str]) -> Capture {
        let file = router.socket.with_extension(format!("{}.pcapng", edge.replace(' ', "")));
        let mut command = causeway(router, &["capture", edge]);
        let child =
            command.arg("--write").arg(&file).args(args).stderr(Stdio::piped()).spawn().expect("causeway");
        Capture { child, file }
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("kill");
    }

    /// Waits for its end; whether all went well, and what it said.
    pub fn end(&mut self) -> (bool, String) {
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        (self.child.wait().expect("wait").success(), said)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Waits until all packets go through the graph, or through the driver.
fn wait_for_way(net: &Net, up: &Router, graph: bool) {
    let taken = if graph { 20 } else { 0 };
    let way = if graph { "the graph" } else { "the driver" };
    wait_for(way, || pings(net, up) == (true, taken));
}

#[test]
fn a_capture_sees_what_the_driver_forwards_otherwise() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    // Ten of a round that goes through the graph altogether, and some of the one before: fewer than it waits for.
    let mut capture = Capture::start(&up, "forward [1] -> [0] out1", &["--count", "20"]);
    wait_for_way(&net, &up, true);
    assert!(net.ping("-c 10 10.77.2.2").0);
    let (good, said) = capture.end();
    assert!(good && said.contains("20 packets captured"), "{said}");
    assert_eq!(said.matches(SAID).count(), 1, "{said}");
    assert!(!said.contains(UNSEEN), "{said}");
    wait_for_way(&net, &up, false);
}

#[test]
fn a_capture_says_that_it_does_not_see_what_is_forwarded_in_the_stack() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, TCX);
    let mut capture = Capture::start(&up, "forward", &["--seconds", "1"]);
    assert!(net.ping("-c 10 10.77.2.2").0);
    let (good, said) = capture.end();
    assert!(good && said.contains(UNSEEN) && !said.contains(SAID), "{said}");
}

#[test]
fn a_trace_sees_what_the_driver_forwards_otherwise() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    let command = causeway(&up, &["trace", "--filter", "icmp and dst 10.77.2.2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    assert!(net.ping("-c 20 -i 0.1 10.77.2.2").0);
    let output = command.expect("causeway").wait_with_output().expect("causeway");
    let (way, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = way.lines().collect();
    assert_eq!(lines.len(), 3, "{way}{said}");
    assert!(lines[0].contains("in0 [0] -> [0] forward  ") && lines[0].contains("TTL 64"), "{way}");
    assert!(lines[1].contains("forward [1] -> [0] out1  ") && lines[1].contains("TTL 63"), "{way}");
    assert!(lines[2].ends_with("taken by out1 :: ToDevice"), "{way}");
    assert_eq!(said.matches(SAID).count(), 1, "{said}");
    wait_for_way(&net, &up, false);
}

#[test]
fn the_driver_goes_on_when_the_last_watcher_has_gone_in_whatever_way() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    // Nothing passes the one edge, and much the other.
    let mut killed = Capture::start(&up, "forward [1]", &[]);
    let mut stopped = Capture::start(&up, "forward [2]", &[]);
    wait_for_way(&net, &up, true);
    // Both have begun, or the second begins with the driver aside.
    wait_for("both", || killed.file.exists() && stopped.file.exists());
    killed.signal(rustix::process::Signal::KILL);
    killed.end();
    for _ in 0..3 {
        assert_eq!(pings(&net, &up), (true, 20), "somebody watches still");
    }
    stopped.signal(rustix::process::Signal::STOP);
    wait_for_way(&net, &up, false);
    stopped.signal(rustix::process::Signal::CONT);
    let (good, said) = stopped.end();
    assert!(!good && said.contains("does not answer"), "{said}");
    // One that is stopped with its hands full.
    let full = Capture::start(&up, "forward", &[]);
    wait_for_way(&net, &up, true);
    full.signal(rustix::process::Signal::STOP);
    wait_for_way(&net, &up, false);
    full.signal(rustix::process::Signal::CONT);
}

#[test]
fn a_port_that_comes_while_somebody_watches_is_the_drivers_as_ever() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, XDP);
    let mut capture = Capture::start(&up, "in0", &[]);
    wait_for_way(&net, &up, true);
    let attached = log.count("port-attached", "attached again");
    net.ip("r", "link del ra");
    let (good, said) = capture.end();
    assert!(!good && said.contains("the graph was replaced"), "{said}");
    net.link("a", 1);
    log.wait(attached, "port-attached", "attached again");
    wait_for_way(&net, &up, false);
    // The same graph, put in its own place.
    let mut capture = Capture::start(&up, "in0", &[]);
    wait_for_way(&net, &up, true);
    let graph = up.read("config");
    up.write("hotconfig", &graph).expect("the graph");
    assert!(!capture.end().0);
    wait_for_way(&net, &up, false);
}

#[test]
fn bytes_are_metered_in_the_graph() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    up.write("meter", "true").expect("metered");
    wait_for_way(&net, &up, true);
    let bytes = |edge: &str| {
        let edges = up.read("edges");
        let line = edges.lines().find(|line| line.starts_with(edge)).expect("the edge").to_owned();
        line.split('\t').nth(3).expect("bytes").parse::<u64>().expect("a number")
    };
    let before = bytes("forward [1]");
    assert!(net.ping("-c 10 10.77.2.2").0);
    assert_eq!(bytes("forward [1]") - before, 10 * 98, "Ethernet, IP, ICMP and 56 octets");
    let graph = up.read("config");
    let other = format!("{graph} Idle -> Discard;");
    let why = up.write("hotconfig", &other).expect_err("packets would pass by it");
    assert!(why.contains("would pass by other elements"), "{why}");
    up.write("hotconfig", &graph).expect("the graph");
    wait_for_way(&net, &up, false);
    up.write("meter", "true").expect("metered");
    wait_for_way(&net, &up, true);
    up.write("meter", "false").expect("not any more");
    wait_for_way(&net, &up, false);
}

/// Packets that passed an edge.
fn passed(up: &Router, edge: &str) -> u64 {
    let edges = up.read("edges");
    let line =
        edges.lines().find(|line| line.starts_with(edge)).unwrap_or_else(|| panic!("{edge} in {edges}"));
    line.split('\t').nth(2).expect("a count").parse().expect("a number")
}

#[test]
fn edges_and_metrics_have_what_the_driver_forwards() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    let edges = ["in0 [0]", "in1 [0]", "forward [0]", "forward [1]"];
    let metric = |way: &str| {
        let metrics = up.read("metrics");
        let label = format!("way=\"{way}\"}} ");
        let line =
            metrics.lines().find(|l| l.starts_with("causeway_driver_packets_total{") && l.contains(&label));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        number.unwrap_or_else(|| panic!("{way} in {metrics}")) as u64
    };
    let counts = || {
        // A handler that counts has all counted.
        let ways = ["ra>rb", "rb>ra"].map(|way| up.line("forward.driver", way));
        assert_eq!(["ra>rb", "rb>ra"].map(metric), ways, "nothing passes now");
        [ways.to_vec(), edges.map(|edge| passed(&up, edge)).to_vec()].concat()
    };
    wait_for("twenty packets in the driver", || {
        let before = counts();
        let (good, taken) = pings(&net, &up);
        assert!(good);
        // Edges are read as they were counted last.
        let mut more = Vec::new();
        wait_for("the count of the edges", || {
            let now = counts();
            more = now.iter().zip(&before).map(|(now, before)| now - before).collect::<Vec<u64>>();
            more.iter().all(|&n| n >= 10)
        });
        taken == 0 && more == [10; 6]
    });
}

#[test]
fn stats_and_the_live_graph_have_what_the_driver_forwards() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    let text = |args: &[&str]| {
        let output = causeway(&up, args).output().expect("causeway");
        String::from_utf8(output.stdout).expect("text")
    };
    let counted = || {
        let stats: serde_json::Value = serde_json::from_str(&text(&["stats", "--json"])).expect("JSON");
        ["in0", "forward", "out1"]
            .map(|element| stats["elements"][element]["count"]["value"].as_u64().unwrap_or(0))
    };
    wait_for("packets in the driver that are counted", || {
        let before = counted();
        let (_, taken) = pings(&net, &up);
        let more = |now: [u64; 3]| [now[0] - before[0], now[1] - before[1], now[2] - before[2]];
        wait_for("the counts", || more(counted()).iter().all(|&n| n >= 10));
        taken == 0
    });
    let drawn = std::thread::scope(|scope| {
        let drawn = scope.spawn(|| text(&["graph", "--live", "2", "--format", "dot"]));
        let _ = net.ping("-c 60 10.77.2.2");
        drawn.join().expect("a graph")
    });
    assert_eq!(drawn.matches("/s\"").count(), 4, "in and out by both ports: {drawn}");
}
