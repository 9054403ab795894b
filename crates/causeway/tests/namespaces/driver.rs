//! `causeway up --driver`: what is forwarded in the driver is counted and forwarded as by the graph, and what is not, as ever.

use crate::faults::{DEATH, HANG};
use crate::flow::Flow;
use crate::hold::Hold;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use rustix::process::Signal;
use std::net::{IpAddr, UdpSocket};

pub const XDP: &str = "ra rb --attach xdp --driver";
/// Where it attaches to virtual interfaces by itself.
pub const TCX: &str = "ra rb --driver";

/// Starts the router and waits until it forwards in the driver.
pub fn start(net: &Net, args: &str) -> (Router, Log) {
    let (up, log) = Log::up(net, "r", args);
    net.meet(&up, false);
    wait_for("the driver to forward", || pings(net, &up) == (true, 0));
    (up, log)
}

/// Frames that the programs sent to the graph.
pub fn taken(up: &Router) -> u64 {
    up.counted("", |name| name == "port.xdp_taken")
}

/// Frames that the programs sent to the graph, and packets that the kernel forwarded.
pub fn elsewhere(net: &Net, up: &Router) -> u64 {
    taken(up) + by_kernel(net)
}

/// Packets that the router's kernel forwarded.
pub fn by_kernel(net: &Net) -> u64 {
    let text = net.inside("r", "nstat", "-asz IpForwDatagrams Ip6OutForwDatagrams");
    text.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

/// Sends ten packets there and back: whether all were answered, and how many did not go through the driver.
pub fn pings(net: &Net, up: &Router) -> (bool, u64) {
    let before = elsewhere(net, up);
    let (good, text) = net.ping("-c 10 10.77.2.2");
    (good && text.contains("ttl=63"), elsewhere(net, up) - before)
}

#[test]
fn what_the_driver_forwards_is_counted_as_if_the_graph_had() {
    is_counted(XDP);
}

pub fn is_counted(args: &str) {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, args);
    let counts =
        || ["in0.count", "in1.count", "forward.count", "out0.count", "out1.count"].map(|h| up.number(h));
    wait_for("twenty packets in the driver", || {
        let before = counts();
        let (good, taken) = pings(&net, &up);
        assert!(good);
        let more: Vec<u64> = counts().iter().zip(before).map(|(now, before)| now - before).collect();
        // A few are the kernel's while something is looked at anew.
        taken == 0 && more == [10, 10, 20, 10, 10]
    });
    // The words that everybody may read, which no element is asked for.
    let handler = up.number("forward.count");
    wait_for("the counters", || up.counted("forward", |name| name == "count") >= handler);
}

#[test]
fn rules_are_followed_in_the_driver_or_left_to_the_kernel() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    let to = |route: &str| net.ip("r", &format!("route replace {route} table 100"));
    let rule = |rule: &str| net.ip("r", &format!("rule {rule} priority 100"));
    to("10.77.2.0/24 dev rb");
    rule("add to 10.77.2.0/24 lookup 100");
    wait_for("the driver to forward by the rule's table", || pings(&net, &up) == (true, 0));
    to("unreachable 10.77.2.0/24");
    wait_for("the rule's table to count", || !net.ping("-c 1 10.77.2.2").0);
    rule("del");
    wait_for("the driver to forward by the table main", || pings(&net, &up) == (true, 0));
    to("10.77.2.0/24 dev rb");
    rule("add from 10.77.1.0/24 lookup 100");
    // Those that come back are to the rule's sources, and not from there.
    wait_for("the kernel to forward what the rule is about", || {
        let before = (by_kernel(&net), up.number("forward.count"));
        let good = net.ping("-c 10 10.77.2.2").0;
        let more = (by_kernel(&net) - before.0, up.number("forward.count") - before.1);
        good && more == (10, 10)
    });
    rule("del");
    wait_for("the driver to forward all", || pings(&net, &up) == (true, 0));
    assert_eq!(up.number("forward.differences"), 0);
}

/// The same of IPv6.
fn pings6(net: &Net, up: &Router) -> (bool, u64) {
    let before = elsewhere(net, up);
    let (good, text) = net.ping("-c 10 2001:db8:2::2");
    (good && text.contains("ttl=63"), elsewhere(net, up) - before)
}

#[test]
fn ipv6_is_forwarded_in_the_driver_and_counted() {
    forwards_ipv6(XDP);
}

pub fn forwards_ipv6(args: &str) {
    let Some(net) = Net::new() else { return };
    let (up, _log) = Log::up(&net, "r", args);
    net.meet(&up, true);
    let counts = || ["in0.count", "forward.count", "out1.count"].map(|h| up.number(h));
    wait_for("twenty packets in the driver", || {
        let before = counts();
        let (good, taken) = pings6(&net, &up);
        assert!(good);
        let more: Vec<u64> = counts().iter().zip(before).map(|(now, before)| now - before).collect();
        // Hosts ask for each other now and then.
        taken == 0 && more == [10, 20, 10]
    });
    assert_eq!(programs_counted(&up, "pass_self_check"), 0);
    // Routes and neighbours are followed.
    net.ip("b", "addr add 2001:db8:78::1 dev lo");
    net.ip("r", "-6 route add 2001:db8:78::/48 via 2001:db8:2::2");
    wait_for("the new route in the driver", || {
        let before = elsewhere(&net, &up);
        net.ping("-c 5 2001:db8:78::1").0 && elsewhere(&net, &up) == before
    });
    net.ip("r", "-6 route replace 2001:db8:78::/48 via 2001:db8:1::2");
    wait_for("the way back", || up.read("forward.lookup 2001:db8:78::1").starts_with("ra "));
    assert!(!net.ping("-c 1 2001:db8:78::1").0, "it leads away");
    net.ip("b", "link set b0 address 02:00:00:00:77:02");
    net.ip("r", "neigh flush dev rb");
    wait_for("the neighbour", || pings6(&net, &up) == (true, 0));
}

#[test]
fn the_kernel_answers_for_the_ipv6_that_the_driver_gives_up() {
    gives_ipv6_up(XDP);
}

pub fn gives_ipv6_up(args: &str) {
    let Some(net) = Net::new() else { return };
    for (space, device) in [("r", "rb"), ("b", "b0")] {
        net.ip(space, &format!("link set {device} mtu 1280"));
    }
    let (up, _log) = Log::up(&net, "r", args);
    net.meet(&up, true);
    let (_, text) = net.ping("-c 1 -t 1 2001:db8:2::2");
    assert!(text.contains("Hop limit"), "{text}");
    let (_, text) = net.ping("-c 1 -M do -s 1400 2001:db8:2::2");
    assert!(text.contains("Packet too big: mtu=1280"), "{text}");
    assert!(net.ping("-c 2 -s 1400 2001:db8:2::2").0, "fragments are the kernel's");
    assert!(net.ping("-c 2 2001:db8:2::1").0, "the router's own address");
}

/// How many of 64 UDP packets, each from a port of its own, reach host `b` by each of two paths.
fn spread(net: &Net, target: IpAddr) -> [u64; 2] {
    const PORT: u16 = 4000;
    let any: IpAddr = if target.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let counts = || ["b0", "y0"].map(|device| received(net, device));
    let before = counts();
    // Or the host answers that nobody listens.
    let listener = net.spawn("b", move || UdpSocket::bind((any, PORT)).expect("a port"));
    let _listener = listener.join().expect("the listener");
    let sent = net.spawn("a", move || {
        for port in 20_000..20_064 {
            let socket = UdpSocket::bind((any, port)).expect("a port");
            socket.send_to(b"spread", (target, PORT)).expect("sent");
        }
    });
    sent.join().expect("the sender");
    wait_for("all to come", || {
        counts().iter().zip(before).map(|(now, before)| now - before).sum::<u64>() >= 64
    });
    let now = counts();
    std::array::from_fn(|path| now[path] - before[path])
}

/// UDP packets to the target that a device of `b` has seen.
fn received(net: &Net, device: &str) -> u64 {
    let text = net.inside("b", "nft", &format!("list counter inet seen {device}"));
    let packets = text.split_once("packets ").and_then(|(_, rest)| rest.split_whitespace().next());
    packets.and_then(|n| n.parse().ok()).expect("a number")
}

/// Two paths to host `b`.
pub struct TwoPaths {
    prefix: &'static str,
    target: &'static str,
    /// What the addresses of the paths' networks begin with, and how long that is.
    networks: [&'static str; 2],
    len: u8,
    /// Settings of hosts, in turns.
    settings: &'static [&'static [(&'static str, &'static str)]],
}

pub const IPV4: TwoPaths = TwoPaths {
    prefix: "10.78.0.0/24",
    target: "10.78.0.1",
    networks: ["10.77.2.", "10.77.3."],
    len: 24,
    settings: &[&[("r", "ipv4.fib_multipath_hash_policy=1")]],
};

/// The sender's kernel hashes ports for the flow label, and a hash of ports that comes with the packet over a virtual link is one
/// that the router's would take for its own.
pub const IPV6: TwoPaths = TwoPaths {
    prefix: "2001:db8:78::/48",
    target: "2001:db8:78::1",
    networks: ["2001:db8:2::", "2001:db8:3::"],
    len: 64,
    settings: &[
        &[("r", "ipv6.fib_multipath_hash_policy=0"), ("a", "ipv6.auto_flowlabels=1")],
        &[("r", "ipv6.fib_multipath_hash_policy=1"), ("a", "ipv6.auto_flowlabels=0")],
    ],
};

#[test]
fn flows_are_spread_in_the_driver_as_the_kernel_spreads_them() {
    spreads_flows("--attach xdp", &IPV4);
}

#[test]
fn ipv6_flows_are_spread_in_the_driver_as_the_kernel_spreads_them() {
    spreads_flows("--attach xdp", &IPV6);
}

pub fn spreads_flows(args: &str, paths: &TwoPaths) {
    let Some(net) = Net::new() else { return };
    if std::process::Command::new("nft").arg("--version").output().is_err() {
        return eprintln!("skipped: needs nft (apt install nftables)");
    }
    let target: IpAddr = paths.target.parse().expect("an address");
    let (ip, nodad) = if target.is_ipv4() { ("-4", "") } else { ("-6", "nodad") };
    let [first, second] = paths.networks.map(|network| format!("{network}2"));
    net.cables(1);
    for (space, device, end) in [("r", "x0", 1), ("b", "y0", 2)] {
        let address = format!("{}{end}/{}", paths.networks[1], paths.len);
        net.ip(space, &format!("addr add {address} dev {device} {nodad}"));
    }
    net.inside("b", "ethtool", "-K y0 tx off tso off gso off gro on");
    net.ip("b", &format!("addr add {target} dev lo"));
    for set in ["add table inet seen", "add chain inet seen in { type filter hook prerouting priority 0 ; }"]
    {
        net.inside("b", "nft", set);
    }
    for device in ["b0", "y0"] {
        net.inside("b", "nft", &format!("add counter inet seen {device}"));
        net.inside(
            "b",
            "nft",
            &format!("add rule inet seen in iifname {device} udp dport 4000 counter name {device}"),
        );
    }
    net.inside("r", "sysctl", "-qw net.ipv4.fib_multipath_hash_seed=4711");
    let set = |settings: &[(&str, &str)]| {
        for (space, setting) in settings {
            net.inside(space, "sysctl", &format!("-qw net.{setting}"));
        }
    };
    let prefix = paths.prefix;
    net.ip("r", &format!("{ip} route add {prefix} nexthop via {first} nexthop via {second} weight 3"));
    for gateway in [&first, &second] {
        net.ping_from("r", &format!("-c 1 {gateway}"));
    }
    let kernels = |settings: &&'static [_]| {
        set(settings);
        let by_kernel = spread(&net, target);
        assert!(by_kernel.iter().all(|&n| n > 0), "{by_kernel:?}");
        (*settings, by_kernel)
    };
    let by_kernel: Vec<_> = paths.settings.iter().map(kernels).collect();
    let (up, _log) = Log::up(&net, "r", &format!("ra rb x0 {args} --driver --check-every 1"));
    net.meet(&up, !target.is_ipv4());
    // The last settings are those that it started with.
    for (n, &(settings, by_kernel)) in by_kernel.iter().rev().enumerate() {
        set(settings);
        wait_for("the driver to spread them", || {
            let before = (elsewhere(&net, &up), up.number("forward.count"));
            let same = spread(&net, target) == by_kernel;
            assert!(same || n > 0, "each by the kernel's path");
            same && (elsewhere(&net, &up), up.number("forward.count")) == (before.0, before.1 + 64)
        });
    }
    assert_eq!(up.number("forward.differences"), 0, "whichever member the kernel says");
    // A path fewer.
    net.ip("r", &format!("{ip} route replace {prefix} nexthop via {first}"));
    wait_for("the one path", || spread(&net, target) == [64, 0]);
}

#[test]
fn the_kernel_answers_for_what_the_driver_gives_up() {
    assert!(
        gives_up(XDP).is_none_or(|(up, _net)| up.line("forward.punts", "too-long") >= 1),
        "it came to the graph, and went to the kernel from there"
    );
}

pub fn gives_up(args: &str) -> Option<(Router, Net)> {
    let net = Net::new()?;
    for (space, device) in [("r", "rb"), ("b", "b0")] {
        net.ip(space, &format!("link set {device} mtu 1280"));
    }
    let (up, _log) = start(&net, args);
    let (_, text) = net.ping("-c 1 -t 1 10.77.2.2");
    assert!(text.contains("Time to live exceeded"), "{text}");
    let (_, text) = net.ping("-c 1 -M do -s 1400 10.77.2.2");
    assert!(text.contains("mtu = 1280"), "{text}");
    assert!(net.ping("-c 2 -s 1400 -M dont 10.77.2.2").0, "fragments are the kernel's");
    assert!(net.ping("-c 2 10.77.2.1").0, "the router's own address");
    Some((up, net))
}

#[test]
fn the_driver_follows_routes_and_neighbours() {
    follows(XDP);
}

pub fn follows(args: &str) {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, args);
    net.ip("b", "addr add 10.78.0.1 dev lo");
    for _ in 0..3 {
        net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
        wait_for("the new route in the driver", || {
            let before = elsewhere(&net, &up);
            let (good, _) = net.ping("-c 5 10.78.0.1");
            good && elsewhere(&net, &up) == before
        });
        net.ip("r", "route replace 10.78.0.0/24 via 10.77.1.2");
        wait_for("the way back", || up.read("forward.lookup 10.78.0.1").starts_with("ra "));
        assert!(!net.ping("-c 1 10.78.0.1").0, "it leads away");
        net.ip("r", "route del 10.78.0.0/24");
        wait_for("the route to go", || up.read("forward.lookup 10.78.0.1") == "none");
        assert!(!net.ping("-c 1 10.78.0.1").0);
    }
    // Another Ethernet address of the host behind it.
    net.ip("b", "link set b0 address 02:00:00:00:77:01");
    net.ip("r", "neigh flush dev rb");
    wait_for("the neighbour", || pings(&net, &up) == (true, 0));
}

/// A redirect to a veth whose other end is not ready for it loses frames without a word.
#[test]
fn what_cannot_be_redirected_is_the_graphs() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    net.inside("b", "ethtool", "-K b0 gro off");
    wait_for("the graph", || pings(&net, &up).1 > 0);
    assert!(pings(&net, &up).0, "the graph sends as ever");
    net.inside("b", "ethtool", "-K b0 gro on");
    wait_for("the driver", || pings(&net, &up) == (true, 0));
    net.ip("r", "link set rb down");
    net.ip("r", "link set rb up");
    wait_for("the driver again", || pings(&net, &up) == (true, 0));
}

#[test]
fn the_kernel_forwards_when_a_router_with_a_driver_path_is_killed() {
    let Some(net) = killed(XDP) else { return };
    let links = net.ip("r", "link show");
    assert!(!links.contains("xdp"), "{links}");
}

pub fn killed(args: &str) -> Option<Net> {
    let net = Net::new()?;
    let (mut up, _log) = start(&net, args);
    let flow = Flow::start(&net);
    flow.wait(500);
    up.end(Signal::KILL);
    flow.wait(500);
    let account = flow.end();
    assert!(account.lost <= DEATH && account.duplicates == 0, "{account:?}");
    Some(net)
}

#[test]
fn the_kernel_forwards_when_a_router_with_a_driver_path_is_stopped() {
    stopped(XDP);
}

pub fn stopped(args: &str) {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, args);
    let flow = Flow::start(&net);
    let told = log.count("forwarding", "forwarding again");
    up.signal(Signal::STOP);
    // The lease runs out: from there on the kernel forwards.
    flow.run(3_000);
    let forwarded = by_kernel(&net);
    flow.wait(500);
    assert!(by_kernel(&net) >= forwarded + 400, "by the kernel, which counts it");
    up.signal(Signal::CONT);
    log.wait(told, "forwarding", "forwarding again");
    flow.wait(500);
    let account = flow.end();
    assert!(account.lost <= HANG && account.duplicates == 0, "{account:?}");
}

/// Packets that the programs counted under a name, wherever they are.
pub fn programs_counted(up: &Router, wanted: &str) -> u64 {
    up.counted("", |name| {
        let place = name.strip_prefix("port.xdp_").or(name.strip_prefix("port.tcx_"));
        place == Some(wanted)
    })
}

/// The tables are behind the kernel for as long as their follower hangs: the program itself notices.
#[test]
fn no_more_packets_go_astray_than_the_kernel_is_not_asked_about() {
    checks_itself(XDP);
}

pub fn checks_itself(args: &str) {
    const EVERY: u64 = 20;
    let Some(net) = Net::new() else { return };
    let (up, log) = Log::up(&net, "r", &format!("{args} --check-every {EVERY}"));
    net.meet(&up, false);
    net.ip("b", "addr add 10.78.0.1 dev lo");
    net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
    wait_for("the route in the driver, while nobody else forwards", || {
        let before = (elsewhere(&net, &up), up.number("forward.count"));
        net.ping("-c 5 10.78.0.1").0
            && (elsewhere(&net, &up), up.number("forward.count")) == (before.0, before.1 + 10)
    });
    assert_eq!(programs_counted(&up, "pass_self_check"), 0, "the kernel says the same");
    // No answers, about which the kernel would be asked as well.
    net.inside("b", "sysctl", "-qw net.ipv4.icmp_echo_ignore_all=1");
    let hold = Hold::thread(&up, "kernel");
    net.ip("r", "route replace 10.78.0.0/24 via 10.77.1.2");
    let before = up.number("forward.count");
    net.ping_from("a", "-c 300 -i 0.001 10.78.0.1");
    let astray = up.number("forward.count") - before;
    let processors = std::thread::available_parallelism().expect("a number").get() as u64;
    assert!(astray <= EVERY * processors, "{astray} went astray");
    net.inside("b", "sysctl", "-qw net.ipv4.icmp_echo_ignore_all=0");
    drop(hold);
    wait_for("the prefix to come back", || up.read("forward.lookup 10.78.0.1").starts_with("ra "));
    assert!(programs_counted(&up, "pass_self_check") > 0);
    log.wait(0, "self-check", "would do what the tables say");
    assert_eq!(up.number("forward.differences"), 0, "they were only behind");
    wait_for("the driver", || pings(&net, &up) == (true, 0));
}

#[test]
fn frames_that_cannot_be_redirected_are_counted() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = start(&net, XDP);
    let flow = Flow::start(&net);
    flow.wait(500);
    net.inside("b", "ethtool", "-K b0 gro off");
    flow.wait(500);
    let account = flow.end();
    assert!(account.lost > 0, "until somebody sees that the device takes none");
    let counted = || programs_counted(&up, "drop_redirect");
    wait_for("the count", || counted() > 0);
    // What lay in the other end's ring goes with it, and nobody says so.
    const RING: u64 = 256;
    let (counted, lost) = (counted(), u64::from(account.lost));
    assert!(counted <= lost && lost - counted < RING, "{counted} of {lost}");
}
