//! `causeway run FILE --driver`: part of any graph runs in the driver, and nobody can tell but by the time it takes.

use crate::flow::Flow;
use crate::log::Log;
use crate::net::{CAUSEWAY, Net, Router, wait_for};
use crate::wire::Wire;
use rustix::net::sockopt::set_ipv6_unicast_hops;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A configuration of the test's own, removed with the value.
pub struct Configuration(PathBuf);

impl Configuration {
    /// A graph from `ra` to `rb` with other names of the same length of the hosts' addresses: NEAR is that of `rb`, FAR that of
    /// host `b`.
    pub fn new(net: &Net, text: &str) -> Configuration {
        let path = std::env::temp_dir().join(format!("{}.click", net.name("driver")));
        std::fs::write(&path, filled(net, text)).expect("written");
        Configuration(path)
    }

    pub fn run(&self, net: &Net, driver: bool) -> Router {
        self.run_with(net, driver, Stdio::inherit())
    }

    /// As [`Configuration::run`], with another standard error.
    pub fn run_with(&self, net: &Net, driver: bool, stderr: Stdio) -> Router {
        let driver = if driver { "--driver" } else { "" };
        net.start_with("r", &format!("run {} {driver}", self.0.display()), stderr)
    }

    /// Runs it with the driver, with its log.
    pub fn log(&self, net: &Net) -> (Router, Log) {
        Log::run(net, "r", &format!("{} --driver", self.0.display()))
    }

    /// Of `causeway`, to run it with the driver.
    pub fn arguments(&self) -> String {
        format!("run {} --driver", self.0.display())
    }
}

impl Drop for Configuration {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn filled(net: &Net, text: &str) -> String {
    text.replace("NEAR", &net.mac("r", "rb")).replace("FAR", &net.mac("b", "b0"))
}

/// Host `a` knows its gateway without asking, since the graph does not answer.
pub fn settle(net: &Net) {
    let mac = net.mac("r", "ra");
    net.ip("a", &format!("neigh replace 10.77.1.1 lladdr {mac} dev a0 nud permanent"));
    net.ip("a", &format!("neigh replace 2001:db8:1::1 lladdr {mac} dev a0 nud permanent"));
}

/// A datagram of host `a`: to where, the port that it comes from, and how far it may go.
pub struct Datagram {
    to: SocketAddr,
    from: u16,
    hops: u32,
}

/// Sends datagrams from host `a`.
pub fn send(net: &Net, datagrams: Vec<Datagram>) {
    let sender = net.spawn("a", move || {
        for (number, Datagram { to, from, hops }) in datagrams.into_iter().enumerate() {
            // The ring of a veth holds few, and what empties it may wait for a processor.
            if number % 8 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            let any = if to.is_ipv6() { "[::]" } else { "0.0.0.0" };
            let socket = UdpSocket::bind(format!("{any}:{from}")).expect("a socket");
            match to.is_ipv6() {
                true => set_ipv6_unicast_hops(&socket, Some(hops as u8)).expect("set"),
                false => socket.set_ttl(hops).expect("set"),
            }
            socket.send_to(b"through the driver", to).expect("sent");
        }
    });
    sender.join().expect("the sender");
}

/// What came of datagrams: the frames with the text in them that host `b` saw, in order of their bytes and without what the
/// sender chooses anew each time, and what the graph counted, by element and counter, and by edge.
struct Result {
    frames: Vec<Vec<u8>>,
    counters: BTreeMap<(String, String), u64>,
    edges: Vec<String>,
}

/// Elements whose names begin so count what hosts say unasked.
const NOISE: &str = "other";
/// Elements of the optimiser's have this in their names.
const FUSED: &str = "@fused";

fn counted(router: &Router) -> BTreeMap<(String, String), u64> {
    let all = router.counters().into_iter().map(|([_, element, name], n)| ((element, name), n));
    let steady = |((element, name), n): &((String, String), u64)| {
        let noisy =
            element.is_empty() || element.starts_with(NOISE) || ["in", "kind"].contains(&element.as_str());
        !noisy && !element.contains(FUSED) && *n > 0 && !name.starts_with("port.") && !name.starts_with("rx.")
    };
    // How many at a time is not the same.
    all.filter(steady).filter(|((_, name), _)| !name.contains("batch")).collect()
}

fn edges(router: &Router) -> Vec<String> {
    let text = router.read("edges");
    let steady = |line: &&str| !line.contains(NOISE) && !line.contains(FUSED) && !line.starts_with("in ");
    text.lines().filter(steady).map(str::to_owned).collect()
}

/// Runs a graph while host `a` sends these, and waits until `all` went somewhere.
fn passes(
    net: &Net,
    graph: &str,
    driver: bool,
    datagrams: Vec<Datagram>,
    all: impl Fn(&Router) -> bool,
) -> (Result, u64) {
    let configuration = Configuration::new(net, graph);
    settle(net);
    let wire = Wire::tap(net, "b", "b0");
    // The tap has turned it off, and without it the device takes no redirected frames.
    net.inside("b", "ethtool", "-K b0 gro on");
    let router = configuration.run(net, driver);
    send(net, datagrams);
    wait_for("all packets to be somewhere", || all(&router));
    let (counters, edges) = (counted(&router), edges(&router));
    wire.wait(router.number("out.count"));
    let above = router.counted("in", |name| name == "port.rx_packets");
    let is_one = |frame: &Vec<u8>| frame.windows(18).any(|bytes| bytes == b"through the driver");
    let mut frames: Vec<Vec<u8>> = wire.frames().into_iter().filter(is_one).collect();
    for frame in &mut frames {
        // Identification and so the checksum, or the flow label.
        let chosen = if frame[12] == 8 { [18, 19, 24, 25] } else { [15, 16, 17, 17] };
        chosen.into_iter().for_each(|at| frame[at] = 0);
    }
    frames.sort();
    (Result { frames, counters, edges }, above)
}

/// A graph whose packets come in at tcx.
pub fn at_tcx(graph: &str) -> String {
    graph.replace("FromDevice(ra)", "FromDevice(ra, METHOD TCX)")
}

/// The same with the driver, at XDP and at tcx, and without; at most `above` frames come up with it, and all without.
fn same(
    graph: &str,
    datagrams: impl Fn() -> Vec<Datagram>,
    all: impl Fn(&Router) -> bool,
    above: u64,
) -> Option<Result> {
    let net = Net::new()?;
    let (without, came) = passes(&net, graph, false, datagrams(), &all);
    assert!(came >= datagrams().len() as u64, "{came}");
    for graph in [graph.to_owned(), at_tcx(graph)] {
        let (with, came) = passes(&net, &graph, true, datagrams(), &all);
        assert_eq!(with.counters, without.counters);
        assert_eq!(with.edges, without.edges);
        assert_eq!(with.frames.len(), without.frames.len());
        assert!(
            with.frames == without.frames,
            "{:02x?}",
            with.frames.iter().zip(&without.frames).find(|(a, b)| a != b)
        );
        assert!(came <= above + 50, "{came} of {} came up", datagrams().len());
    }
    Some(without)
}

/// Datagrams to ports from 5000 on.
pub fn v4(n: u16) -> Vec<Datagram> {
    let to = |port: u16| SocketAddr::from(([10, 77, 2, 2], port));
    (0..n)
        .map(|i| Datagram {
            to: to(5_000 + i % 200),
            from: 20_000 + i,
            hops: 64 - 63 * u32::from(i % 20 == 7),
        })
        .collect()
}

#[test]
fn a_firewall_of_a_hundred_rules_is_the_same_in_the_driver() {
    let rules: Vec<String> = (0..99).map(|i| format!("deny udp and dst port {}", 5_001 + 2 * i)).collect();
    let graph = format!(
        "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
         kind[0] -> Strip(14) -> check :: CheckIPHeader -> fw :: IPFilter({}, allow all) -> ttl :: DecIPTTL
         -> EtherEncap(0x0800, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb); ttl[1] -> late :: Discard;",
        rules.join(", ")
    );
    // Every twentieth has come too far, and half of those are denied before: 7, 27, ... are odd.
    let all = |router: &Router| {
        router.number("out.count") + router.line("fw.drop_reasons", "denied") + router.number("late.count")
            == 400
    };
    let Some(result) = same(&graph, || v4(400), all, 20) else { return };
    assert_eq!(result.frames.len(), 202, "the even ports, and the one that no rule names");
    assert!(
        result.counters.contains_key(&("fw".to_owned(), "drop.denied".to_owned())),
        "{:?}",
        result.counters
    );
}

#[test]
fn a_load_balancer_by_hash_is_the_same_in_the_driver() {
    let ways: Vec<String> = (0..4)
        .map(|i| format!("lb[{i}] -> Strip(14) -> EtherEncap(0x0800, NEAR, 2:0:0:0:0:{i}) -> q;"))
        .collect();
    let graph = format!(
        "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
         q :: Queue -> out :: ToDevice(rb); kind[0] -> lb :: HashSwitch(34, 2); {}",
        ways.join("\n")
    );
    let Some(result) = same(&graph, || v4(256), |router| router.number("out.count") >= 256, 0) else {
        return;
    };
    let to = |server: u8| result.frames.iter().filter(|frame| frame[5] == server).count();
    let spread = [0, 1, 2, 3].map(to);
    assert!(spread.iter().all(|&n| n > 30) && spread.iter().sum::<usize>() == 256, "{spread:?}");
}

#[test]
fn a_router_for_ipv6_is_the_same_in_the_driver() {
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/86dd 20/11, -); kind[1] -> other :: Discard;
        kind[0] -> Strip(14) -> check :: CheckIP6Header(ff01::1) -> rt :: LookupIP6Route(2001:db8:2::/64 0,
        2001:db8:7::/48 2001:db8:2::2 1, 2001:db8:7:8::/64 2001:db8:2::2 2);
        rt[0] -> hops :: DecIP6HLIM -> encap :: EtherEncap(0x86dd, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb);
        rt[1] -> hops1 :: DecIP6HLIM -> encap; hops[1] -> late :: Discard; hops1[1] -> late;
        rt[2] -> third :: Discard;";
    let datagrams = || {
        let to = |i: u16| match i % 4 {
            0 => "[2001:db8:2::2]:4000",
            1 => "[2001:db8:7:1::1]:4000",
            2 => "[2001:db8:7:8::1]:4000",
            _ => "[2001:db8:9::1]:4000",
        };
        let one = |i| Datagram {
            to: to(i).parse().expect("an address"),
            from: 20_000 + i,
            hops: 64 - 63 * u32::from(i % 20 == 8),
        };
        (0..200).map(one).collect()
    };
    let ends = ["out.count", "late.count", "third.count"];
    let all = |router: &Router| {
        let missing = router.line("rt.drop_reasons", "no-route");
        ends.iter().map(|end| router.number(end)).sum::<u64>() + missing >= 200
    };
    // Up go those without a route, those to what throws away, and those that came too far.
    let Some(result) = same(graph, datagrams, all, 110) else { return };
    assert_eq!(result.frames.len(), 90, "half but the ten that came too far");
}

#[test]
fn what_is_cut_off_goes_on_above_with_what_was_known_of_it() {
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> which :: Classifier(37/01%01, -); which[0] -> Paint(7) -> strip :: Strip(14); which[1] -> Paint(3) -> strip;
        strip -> check :: CheckIPHeader -> ttl :: DecIPTTL -> held :: Queue -> Unqueue
        -> sw :: PaintSwitch; sw[3] -> Unstrip(14) -> even :: Counter -> q :: Queue -> out :: ToDevice(rb);
        sw[7] -> IPPrint(odd, ACTIVE false) -> Unstrip(14) -> odd :: Counter -> q; ttl[1] -> late :: Discard;
        Idle -> [0] sw2 :: PaintSwitch; sw[0] -> nobody :: Discard; sw[1] -> nobody; sw[2] -> nobody; sw[4] -> nobody;
        sw[5] -> nobody; sw[6] -> nobody; sw2[0] -> nobody;";
    let all = |router: &Router| router.number("out.count") + router.number("late.count") == 100;
    let Some(result) = same(graph, || v4(100), all, 100) else { return };
    let count = |element: &str| result.counters[&(element.to_owned(), "out.0".to_owned())];
    assert_eq!((count("even"), count("odd"), result.frames.len()), (50, 45, 95));
}

/// Small elements between the others, and ends that throw away.
#[test]
fn what_counts_and_what_throws_away_is_the_same_in_the_driver() {
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> c :: Counter -> MarkIPHeader(14) -> len :: CheckLength(200) -> which :: Classifier(37/01%01, -);
        which[0] -> odd :: Counter -> away :: Discard;
        which[1] -> even :: Counter -> SetIPDSCP(46) -> Strip(20) -> Unstrip(6) -> check :: CheckIPHeader -> ttl :: DecIPTTL
        -> EtherEncap(0x0800, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb); ttl[1] -> late :: Counter -> Idle;";
    let all = |router: &Router| {
        ["out.count", "away.count", "late.count"].iter().map(|end| router.number(end)).sum::<u64>() == 200
    };
    let Some(result) = same(graph, || v4(200), all, 0) else { return };
    assert_eq!(result.frames.len(), 100);
    let counted =
        |element: &str, name: &str| result.counters.get(&(element.to_owned(), name.to_owned())).copied();
    // Ethernet, IPv4 and UDP header, and the text.
    assert_eq!([counted("c", "count"), counted("c", "byte_count")], [Some(200), Some(200 * 60)]);
    assert_eq!(
        [counted("odd", "count"), counted("away", "count"), counted("late", "count")],
        [Some(100), Some(100), None]
    );
}

#[test]
fn a_counter_in_the_driver_has_its_rate_and_is_reset() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = SWITCHED.replace("kind[0]", "kind[0] -> c :: Counter");
    let router = Configuration::new(&net, &graph).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    let rate = || router.read("c.rate").parse::<f64>().expect("a rate");
    wait_for("a rate", || rate() > 0.0);
    assert!(router.number("c.byte_count") > 0);
    let before = router.number("c.count");
    router.write("c.reset", "").expect("written");
    assert!(router.number("c.count") < before);
    flow.wait(100);
    wait_for("the count", || router.number("c.count") >= 100);
    // What calls a handler has to see its packets.
    let goal = router.number("c.count") + 200;
    router.write("c.count_call", &format!("{goal} sw.switch 1")).expect("written");
    wait_for("the call", || router.number("off.count") > 0);
    flow.end();
    wait_for("the rate to be over", || rate() == 0.0);
}

pub const SWITCHED: &str = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
    kind[0] -> sw :: Switch(0); sw[0] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, NEAR, FAR)
    -> q :: Queue -> out :: ToDevice(rb); sw[1] -> off :: Discard;";

/// Waits until packets go on that do not come up.
pub fn in_driver(router: &Router) {
    let above = || router.counted("", |name| matches!(name, "port.xdp_taken" | "port.tcx_taken"));
    wait_for("the driver", || {
        let before = (above(), router.number("out.count"));
        std::thread::sleep(Duration::from_millis(100));
        above() == before.0 && router.number("out.count") > before.1 + 50
    });
}

/// A router of [`SWITCHED`] and a flow that goes through its driver.
pub fn switched(net: &Net) -> (Router, Flow) {
    switched_by(net, SWITCHED)
}

/// The same of another graph, with the same elements.
pub fn switched_by(net: &Net, graph: &str) -> (Router, Flow) {
    settle(net);
    let router = Configuration::new(net, graph).run(net, true);
    let flow = Flow::start(net);
    in_driver(&router);
    (router, flow)
}

#[test]
fn neighbours_that_answered_are_known_in_the_driver() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> Strip(14) -> check :: CheckIPHeader -> rt :: StaticIPLookup(10.77.2.0/24 0) -> DecIPTTL
        -> [0] arp :: ARPQuerier(10.77.2.1, NEAR) -> q :: Queue -> out :: ToDevice(rb);
        back :: FromDevice(rb) -> answers :: Classifier(12/0806 20/0002, 12/0806 20/0001, -);
        answers[0] -> [1] arp; answers[1] -> ARPResponder(10.77.2.1 NEAR) -> q; answers[2] -> other;";
    let router = Configuration::new(&net, graph).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    assert!(router.number("arp.queries") >= 1);
    // The driver follows what is written.
    router.write("rt.set", "10.77.2.0/24 0").expect_err("it never changes");
    router.write("arp.clear", "").expect("written");
    in_driver(&router);
    let account = flow.end();
    let reasons = ["in", "arp", "q"].map(|element| router.read(&format!("{element}.drop_reasons")));
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?} {reasons:?}");
}

#[test]
fn what_is_written_counts_in_the_driver_when_it_is_answered() {
    written(SWITCHED);
}

pub fn written(graph: &str) {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched_by(&net, graph);
    for round in 0..3 {
        router.write("sw.switch", "1").expect("written");
        let before = router.number("out.count");
        flow.run(200);
        assert_eq!(router.number("out.count"), before, "round {round}");
        wait_for("the others", || router.number("off.count") >= 200);
        router.write("sw.switch", "-1").expect("written");
        let dropped = router.line("sw.drop_reasons", "off");
        flow.run(200);
        assert_eq!(router.number("out.count"), before, "round {round}");
        assert!(router.line("sw.drop_reasons", "off") >= dropped + 150);
        router.write("sw.switch", "0").expect("written");
        flow.wait(100);
        in_driver(&router);
    }
    let account = flow.end();
    assert_eq!(account.duplicates, 0);
}

#[test]
fn who_watches_sees_the_elements_of_the_driver() {
    watched(SWITCHED);
}

pub fn watched(graph: &str) {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched_by(&net, graph);
    let socket = router.socket.display().to_string();
    let output = Command::new(CAUSEWAY).args(["trace", "--socket", &socket, "--filter", "udp"]).output();
    let way = String::from_utf8(output.expect("causeway").stdout).expect("text");
    for edge in ["kind [0] -> [0] sw", "DecIPTTL@7 [0] -> [0] EtherEncap@8", "q [0] -> [0] out"] {
        assert!(way.contains(edge), "{edge}: {way}");
    }
    // Nobody watches any more.
    in_driver(&router);
    router.write("meter", "true").expect("written");
    flow.wait(100);
    let metered = router.read("edges");
    let line = metered.lines().find(|line| line.starts_with("q [0]")).expect("an edge");
    assert!(line.split('\t').nth(3).is_some_and(|bytes| bytes != "0"), "{metered}");
    router.write("meter", "false").expect("written");
    in_driver(&router);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0));
}

#[test]
fn a_hot_swap_exchanges_graph_and_programs_and_loses_nothing() {
    swapped(SWITCHED);
}

pub fn swapped(graph: &str) {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched_by(&net, graph);
    for round in 0..6 {
        // The number of elements and outputs is another, so entries are others as well.
        let more = ["", "-> Paint(1) -> AverageCounter", "-> Paint(2)"][round % 3];
        let graph = graph.replace("kind[0]", &format!("kind[0] {more}"));
        router.write("hotconfig", &filled(&net, &graph)).expect("a good configuration");
        flow.wait(100);
        // AverageCounter is not there.
        if round % 3 != 1 {
            in_driver(&router);
        }
    }
    let bad = router.write("hotconfig", "FromDevice(ra) -> Nothing").expect_err("no such class");
    assert!(bad.contains("Nothing"), "{bad}");
    in_driver(&router);
    let account = flow.end();
    assert!(account.lost == 0 && account.duplicates == 0, "{account:?}");
    assert_eq!(router.line("in.drop_reasons", "given-up"), 0);
}

#[test]
fn a_graph_of_which_nothing_can_be_in_the_driver_says_so_and_runs_above() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = "in :: FromDevice(ra) -> c :: AverageCounter -> Strip(14) -> CheckIPHeader -> DecIPTTL
        -> EtherEncap(0x0800, NEAR, FAR) -> Queue -> out :: ToDevice(rb);";
    let configuration = Configuration::new(&net, graph);
    let (router, log) = configuration.log(&net);
    log.wait(0, "driver", "ra: nothing runs in the driver");
    // Said before there are ports.
    wait_for("the router", || log.text().contains("control socket"));
    assert!(
        log.text().contains("it is cut at c (AverageCounter): it does not say what it does"),
        "{}",
        log.text()
    );
    let flow = Flow::start(&net);
    flow.wait(100);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0));
    assert!(router.number("out.count") >= 100);
}
