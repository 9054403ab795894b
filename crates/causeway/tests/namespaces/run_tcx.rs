//! `causeway run FILE --driver` at tcx: part of the graph runs in the kernel's stack, on packets as that has them.

use crate::flow::Flow;
use crate::net::{Net, Router, wait_for};
use crate::new_router;
use crate::offloads::{offloads, refused};
use crate::run_driver::{self, Configuration, SWITCHED, at_tcx, in_driver, settle, switched_by};
use crate::tcx::programs;
use crate::transfer::{datagrams, streams};
use std::process::Command;

/// Octets of a stream, and of the payload of a packet that a wire could carry at most.
const LENGTH: usize = 8 << 20;
const SEGMENT: usize = 1_460;

/// Both ways between the hosts, for either version.
const BOTH: &str = "a :: FromDevice(ra, METHOD TCX) -> ca :: Classifier(12/0800, 12/86dd, 12/0806, -);
    b :: FromDevice(rb, METHOD TCX) -> cb :: Classifier(12/0800, 12/86dd, 12/0806, -);
    qa :: Queue(10000) -> outa :: ToDevice(ra); qb :: Queue(10000) -> outb :: ToDevice(rb);
    ca[0] -> c4 :: Counter -> Strip(14) -> CheckIPHeader -> fw :: IPFilter(deny udp and dst port 7, allow all)
    -> DecIPTTL -> EtherEncap(0x0800, NEARB, FARB) -> qb;
    cb[0] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, NEARA, FARA) -> qa;
    ca[1] -> c6 :: Counter -> Strip(14) -> CheckIP6Header(ff01::1) -> DecIP6HLIM -> EtherEncap(0x86dd, NEARB, FARB) -> qb;
    cb[1] -> Strip(14) -> CheckIP6Header(ff01::1) -> DecIP6HLIM -> EtherEncap(0x86dd, NEARA, FARA) -> qa;
    ca[2] -> ARPResponder(10.77.1.1 NEARA) -> qa; cb[2] -> ARPResponder(10.77.2.1 NEARB) -> qb;
    ca[3] -> othera :: Discard; cb[3] -> otherb :: Discard;";

/// A graph between both hosts, which know each other's gateway without asking.
fn both(net: &Net, graph: &str) -> Configuration {
    for (host, n) in [("a", 1), ("b", 2)] {
        let mac = net.mac("r", &format!("r{host}"));
        net.ip(host, &format!("neigh replace 10.77.{n}.1 lladdr {mac} dev {host}0 nud permanent"));
        net.ip(host, &format!("neigh replace 2001:db8:{n}::1 lladdr {mac} dev {host}0 nud permanent"));
    }
    let mut graph = graph.to_owned();
    for (name, host, device) in
        [("NEARA", "r", "ra"), ("FARA", "a", "a0"), ("NEARB", "r", "rb"), ("FARB", "b", "b0")]
    {
        graph = graph.replace(name, &net.mac(host, device));
    }
    Configuration::new(net, &graph)
}

fn taken(router: &Router) -> u64 {
    router.counted("", |name| name == "port.tcx_taken")
}

/// What is to be seen of streams to both addresses.
struct Streamed {
    /// Packets that came up, in segments.
    above: u64,
    /// Those that elements have counted.
    counted: u64,
    /// Those that came to host `b`.
    arrived: u64,
}

/// Sends streams and datagrams both ways through a graph, which must come as they were sent.
fn stream(net: &Net, router: &Router) -> Vec<Streamed> {
    let mut seen = Vec::new();
    for (target, counter) in [("10.77.2.2", "c4"), ("2001:db8:2::2", "c6")] {
        for flows in [1, 16] {
            let above = || router.counted("", |name| name == "port.rx_packets");
            let now = || [above(), router.number(&format!("{counter}.count")), packets(net)];
            let before = now();
            streams(net, target, flows, LENGTH / flows);
            let after = now();
            let [above, counted, arrived] = std::array::from_fn(|i| after[i] - before[i]);
            seen.push(Streamed { above, counted, arrived });
        }
        datagrams(net, target, 400);
    }
    assert_eq!(refused(net), 0, "what sums hosts left unfinished, somebody finished");
    seen
}

/// Packets that a wire would have had to carry, at least.
const SEGMENTS: u64 = (LENGTH / SEGMENT) as u64;

/// Streams come through as the super-packets that they were.
fn go_whole(net: &Net, router: &Router) {
    for Streamed { above, counted, arrived } in stream(net, router) {
        assert!(above < 50, "{above} came up");
        assert!(counted > SEGMENTS, "{counted} are counted as on a wire");
        assert!(arrived < SEGMENTS / 2, "{arrived} came to the other host");
    }
}

#[test]
fn super_packets_go_through_whole() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let more = "-> CheckLength(1514) -> IPFragmenter(1500) -> SetIPDSCP(46) -> SetIPECN(no) -> DecIPTTL";
    for graph in [BOTH, &BOTH.replace("-> DecIPTTL", more)] {
        let (router, log) = both(&net, graph).log(&net);
        log.wait(0, "driver", "rb: ");
        go_whole(&net, &router);
        assert!(!log.text().contains("super-packets go up"), "{}", log.text());
    }
}

/// The whole of it, whose neighbours are found and routes looked up.
#[test]
fn super_packets_go_whole_through_a_plain_router() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let path = new_router::written(&net);
    let mut graph = std::fs::read_to_string(&path).expect("a configuration");
    let _ = std::fs::remove_file(&path);
    for (from, to) in [
        ("FromDevice(ra)", "FromDevice(ra, METHOD TCX)"),
        ("FromDevice(rb)", "FromDevice(rb, METHOD TCX)"),
        ("kind0 [2] ->", "kind0 [2] -> c4 :: Counter ->"),
        ("kind0 [5] ->", "kind0 [5] -> c6 :: Counter ->"),
    ] {
        assert!(graph.contains(from), "{from}: {graph}");
        graph = graph.replace(from, to);
    }
    let (router, log) = Configuration::new(&net, &graph).log(&net);
    log.wait(0, "driver", "rb: ");
    let above = || router.counted("", |name| name == "port.rx_packets");
    for target in ["10.77.2.2", "2001:db8:2::2"] {
        wait_for("neighbours to be known in the driver", || {
            let before = above();
            net.ping(&format!("-c 1 {target}")).0 && above() == before
        });
    }
    go_whole(&net, &router);
}

/// Most are as long as a wire allows, which is for the segments to be told.
#[test]
fn super_packets_of_long_segments_go_up_where_lengths_are_looked_at() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let graph = BOTH.replacen("-> DecIPTTL", "-> cut :: CheckLength(1000) -> ttl :: DecIPTTL", 1);
    let (router, log) = both(&net, &(graph + "cut[1] -> long :: Counter -> ttl;")).log(&net);
    log.wait(0, "driver", "rb: ");
    let above = || router.counted("", |name| name == "port.rx_packets");
    let now = || [above(), router.number("c4.count"), router.number("long.count")];
    let before = now();
    streams(&net, "10.77.2.2", 1, LENGTH);
    let after = now();
    let [above, counted, long] = std::array::from_fn(|i| after[i] - before[i]);
    assert!(above > SEGMENTS && counted > SEGMENTS, "{above} came up, {counted} were counted");
    assert!(long > SEGMENTS, "{long} were long");
}

/// Their bytes are those of their segments, too.
#[test]
fn super_packets_count_as_the_segments_that_they_are() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let (router, log) = both(&net, BOTH).log(&net);
    log.wait(0, "driver", "rb: ");
    let octets = || router.number("c4.byte_count");
    let before = (router.number("c4.count"), octets());
    streams(&net, "10.77.2.2", 1, LENGTH);
    let (packets, octets) = (router.number("c4.count") - before.0, octets() - before.1);
    // Ethernet, IPv4 and TCP with time stamps; few packets have other options. Some segments may have been sent again.
    let payload = octets - packets * 66;
    let length = LENGTH as u64;
    assert!((length - 200..length + length / 10).contains(&payload), "{payload} in {packets} packets");
}

#[test]
fn super_packets_go_up_in_segments_where_they_are_cut_off() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    // One that looks at the length, and one of which nobody knows what it does.
    let lengths = "Classifier(2/ffff, -); cut1[0] -> Discard; cut1[1]";
    for (element, why) in [(lengths, "differs"), ("AverageCounter", "does not say what it does")] {
        let graph = BOTH.replacen("-> DecIPTTL", &format!("-> cut1 :: {element} -> DecIPTTL"), 1);
        let (router, log) = both(&net, &graph).log(&net);
        log.wait(0, "driver", "rb: ");
        assert!(log.text().contains("cut1") && log.text().contains(why), "{}", log.text());
        let seen = stream(&net, &router);
        for Streamed { above, counted, .. } in &seen[..2] {
            assert!(*above > SEGMENTS && *counted > SEGMENTS, "{above} came up, {counted} were counted");
        }
        assert!(seen[2].above < 50, "those of IPv6 do not come there");
        assert_eq!(router.line("a.drop_reasons", "given-up"), 0);
    }
}

/// The kernel cuts what it sends to the graph; a graph above has what it would have on a wire.
#[test]
fn what_runs_above_has_all_packets() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let graph = BOTH.replace("METHOD TCX) -> ", "METHOD TCX) -> AverageCounter -> ");
    let (router, log) = both(&net, &graph).log(&net);
    log.wait(0, "driver", "rb: nothing runs in the driver");
    for Streamed { above, counted, .. } in stream(&net, &router) {
        assert!(above > SEGMENTS && counted > SEGMENTS, "{above} came up, {counted} were counted");
    }
    assert_eq!(router.counted("a", |name| name == "port.rx_error"), 0);
}

#[test]
fn what_is_written_counts_when_it_is_answered() {
    run_driver::written(&at_tcx(SWITCHED));
}

#[test]
fn who_watches_sees_its_elements() {
    run_driver::watched(&at_tcx(SWITCHED));
}

#[test]
fn a_hot_swap_loses_nothing() {
    run_driver::swapped(&at_tcx(SWITCHED));
}

#[test]
fn when_it_is_killed_the_interface_is_the_kernels() {
    let Some(net) = Net::new() else { return };
    let (mut router, flow) = switched_by(&net, &at_tcx(SWITCHED));
    drop(flow.end());
    assert_eq!(programs(&net, "ra"), 1);
    router.end(rustix::process::Signal::KILL);
    wait_for("the program to go", || programs(&net, "ra") == 0);
    let devices = net.ip("r", "-br link");
    assert!(!devices.contains("above"), "{devices}");
    assert!(net.ping("-c 3 10.77.2.2").0, "the kernel forwards");
}

#[test]
fn an_interface_that_is_deleted_and_made_anew_is_in_the_graph_again() {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched_by(&net, &at_tcx(SWITCHED));
    drop(flow.end());
    net.ip("r", "link del ra");
    wait_for("the interface to be gone", || router.line("in.events", "gone") == 1);
    net.link("a", 1);
    settle(&net);
    wait_for("the program", || programs(&net, "ra") == 1);
    let flow = Flow::start(&net);
    in_driver(&router);
    drop(flow.end());
}

/// What is longer than the way out takes is the ToDevice's, which says so.
#[test]
fn what_is_too_long_for_the_way_out_comes_up() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    net.ip("r", "link set rb mtu 1000");
    let (router, log) = Configuration::new(&net, &at_tcx(SWITCHED)).log(&net);
    log.wait(0, "driver", "ra: ");
    let flow = Flow::start(&net);
    in_driver(&router);
    assert!(!net.ping("-c 5 -i 0.01 -W 1 -s 1200 10.77.2.2").0, "they cannot be sent");
    wait_for("the packets to come up", || taken(&router) >= 5);
    let lost = flow.end().lost;
    assert_eq!(lost, 0, "the others go on in the stack");
    net.ip("r", "link set rb mtu 1500");
    wait_for("the MTU", || {
        let before = taken(&router);
        net.ping("-c 1 -W 1 -s 1200 10.77.2.2");
        taken(&router) == before
    });
}

#[test]
fn an_interface_without_ethernet_header_is_refused() {
    let Some(net) = Net::new() else { return };
    net.ip("r", "tuntap add dev t0 mode tun");
    net.ip("r", "link set t0 up");
    let configuration = Configuration::new(&net, "FromDevice(t0, METHOD TCX) -> Discard;");
    let output = net.causeway(&configuration.arguments()).output().expect("causeway");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("its packets have no Ethernet headers"), "{text}");
}

#[test]
fn without_the_driver_it_receives_over_af_xdp_and_says_so() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let router = Configuration::new(&net, &at_tcx(SWITCHED)).run(&net, false);
    let mode = router.read("in.mode");
    assert!(mode.starts_with("AF_XDP") && mode.contains("not at tcx: nothing is to run"), "{mode}");
    let flow = Flow::start(&net);
    flow.wait(100);
    assert_eq!(flow.end().lost, 0);
    assert_eq!(programs(&net, "ra"), 0);
}

/// What is explained and drawn is what runs.
#[test]
fn it_is_explained() {
    let graph = "FromDevice(v0, METHOD TCX) -> a :: Paint(1) -> AverageCounter -> Discard;";
    let output = Command::new(crate::net::CAUSEWAY).args(["check", "--explain", "-e", graph]).output();
    let text = String::from_utf8(output.expect("causeway").stdout).expect("text");
    assert!(text.contains("a :: Paint"), "{text}");
}

/// Packets that host `b` has received.
fn packets(net: &Net) -> u64 {
    net.inside("b", "cat", "/sys/class/net/b0/statistics/rx_packets").trim().parse().expect("a number")
}
