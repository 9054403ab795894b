//! The example configurations that are joined with hosts and networks, each with real packets: in namespaces of their own
//! where the kernel is at the other end, else at cables in memory.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_netio::{Port, memory};
use causeway_packet::{Batch, Packet};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// `conf/FILE` with those parameters, running.
fn start(file: &str, params: &[(&str, &str)]) -> Router {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf").join(file);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    start_text(file, &text, params)
}

fn start_text(file: &str, text: &[u8], params: &[(&str, &str)]) -> Router {
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile(file, text, &NoLibraries, &library, &params);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let router = Router::start(library, plan, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

/// Asks again and again until the answer is true.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn count(router: &Router, element: &str) -> u64 {
    router.read(element, "count", "").unwrap().parse().unwrap()
}

/// A namespace of the network, removed at the end.
struct Namespace(String);

impl Namespace {
    /// A new one; `None` with a message where that is not allowed.
    fn new() -> Option<Namespace> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        if !Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: needs /dev/net/tun");
            return None;
        }
        let name = format!("elem-net-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        if !Command::new("ip").args(["netns", "add", &name]).status().is_ok_and(|s| s.success()) {
            eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
            return None;
        }
        let namespace = Namespace(name);
        namespace.ip("link set lo up");
        Some(namespace)
    }

    fn ip(&self, args: &str) {
        let all = ["-n", &self.0].into_iter().chain(args.split(' '));
        assert!(Command::new("ip").args(all).status().unwrap().success(), "ip {args}");
    }

    /// Runs `test` in it, on a thread of its own.
    fn run<T: Send>(&self, test: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                test()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn a_tunnel_joins_two_hosts() {
    let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else { return };
    a.ip(&format!("link add wire type veth peer name wire netns {}", b.0));
    for (end, address) in [(&a, "192.0.2.1/24"), (&b, "192.0.2.2/24")] {
        end.ip(&format!("addr add {address} dev wire"));
        end.ip("link set wire up");
    }
    let there = b.run(|| {
        let router = start(
            "tunnel.click",
            &[("local", "192.0.2.2"), ("remote", "192.0.2.1"), ("addr", "10.8.0.2/24")],
        );
        let socket = UdpSocket::bind("10.8.0.2:7000").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (router, socket)
    });
    a.run(|| {
        let router = start(
            "tunnel.click",
            &[("local", "192.0.2.1"), ("remote", "192.0.2.2"), ("addr", "10.8.0.1/24")],
        );
        let socket = UdpSocket::bind("10.8.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for bytes in [&b"through"[..], &[7; 1_444]] {
            let mut got = [0; 2_000];
            socket.send_to(bytes, "10.8.0.2:7000").unwrap();
            let (n, from) = there.1.recv_from(&mut got).unwrap();
            assert_eq!((&got[..n], from.ip().to_string().as_str()), (bytes, "10.8.0.1"));
            there.1.send_to(&got[..n], from).unwrap();
            assert_eq!(socket.recv(&mut got).unwrap(), bytes.len());
        }
        assert!(count(&router, "sent") >= 2 && count(&router, "received") >= 2);
        assert_eq!(router.read("tun", "dev_name", "").unwrap(), "tunnel0");
    });
}

#[test]
fn pings_are_sent_and_answered() {
    let Some(host) = Namespace::new() else { return };
    host.run(|| {
        let responder = start("responder.click", &[]);
        // The host itself answers the first, the responder the second.
        for dst in ["10.9.0.1", "10.9.0.77"] {
            let params = [("src", "10.9.0.1"), ("dst", dst), ("interval", "0.02"), ("verbose", "false")];
            let ping = start("ping.click", &params);
            assert!(ping.wait(Some(Duration::from_secs(20))).is_some());
            let summary = ping.read("ping", "summary", "").unwrap();
            assert!(
                summary.starts_with("5 packets transmitted, 5 received, 0% packet loss\n"),
                "{dst}: {summary}"
            );
        }
        assert_eq!(count(&responder, "answered"), 5);
    });
}

#[test]
fn hosts_share_an_ethernet_made_of_multicast() {
    let Some(host) = Namespace::new() else { return };
    host.ip("link add wire type veth peer name other");
    host.ip("link set other up");
    host.ip("addr add 192.0.2.1/24 dev wire");
    host.ip("link set wire up multicast on");
    host.ip("route add 224.0.0.0/4 dev wire");
    host.run(|| {
        let other = start("lan.click", &[("ip", "10.0.0.1"), ("mac", "2:0:0:0:0:1")]);
        // Another one, which asks for the first by ARP and pings it.
        let text = "link :: McastSocket(239.0.0.1, 1234, 192.0.2.1);
            p :: ICMPPingSource(10.0.0.2, 10.0.0.1, LIMIT 3, INTERVAL 0.02, VERBOSE false)
              -> arp :: ARPQuerier(10.0.0.2, 2:0:0:0:0:2) -> link;
            link -> k :: Classifier(12/0806, 12/0800);
            k[0] -> a :: Classifier(20/0001, 20/0002); a[0] -> ARPResponder(10.0.0.2 2:0:0:0:0:2) -> link; a[1] -> [1]arp;
            k[1] -> Strip(14) -> CheckIPHeader -> p;";
        let router = start_text("test", text.as_bytes(), &[]);
        until("replies come", || router.read("p", "summary", "").unwrap().starts_with("3 packets transmitted, 3 received"));
        assert_eq!(count(&other, "answered"), 3);
    });
}

#[test]
fn taps_carry_frames_and_get_what_they_are_told() {
    let Some(host) = Namespace::new() else { return };
    host.run(|| {
        let text = "tap :: KernelTap(10.9.0.1/24, 10.9.0.7, ETHER 2:0:0:0:0:9, MTU 1400, IGNORE_QUEUE_OVERFLOWS true)
              -> c :: Classifier(12/0806, 12/0800);
            q :: Queue -> tap;
            c[0] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> q;
            c[1] -> Strip(14) -> CheckIPHeader -> IPClassifier(dst udp port 7) -> IPMirror
              -> EtherEncap(0x800, 1:1:1:1:1:1, 2:0:0:0:0:9) -> q;";
        let router = start_text("test", text.as_bytes(), &[]);
        let name = router.read("tap", "dev_name", "").unwrap();
        assert!(name.starts_with("tap"), "{name}");
        let show = |args: &str| {
            let out = Command::new("ip").args(args.split(' ')).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        let link = show(&format!("link show {name}"));
        assert!(link.contains("mtu 1400") && link.contains("02:00:00:00:00:09"), "{link}");
        assert!(show("route show default").starts_with(&format!("default via 10.9.0.7 dev {name}")));
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.send_to(b"mirrored", "10.9.0.55:7").unwrap();
        let mut bytes = [0; 100];
        assert_eq!(socket.recv(&mut bytes).unwrap(), 8);
        assert!(router.read("tap", "packets", "").unwrap().parse::<u64>().unwrap() >= 2);
    });
}

/// The other end of a cable in memory.
struct Station(Port, u8);

impl Station {
    fn new(cable: &str, number: u8) -> Station {
        Station(memory::open(&format!("{cable}.1")).unwrap(), number)
    }

    /// Sends a frame to another station, with a tag in front of its type if there is one.
    fn send(&mut self, to: u8, tag: &[u8]) {
        let station = |n| [2, 0, 0, 0, 0, n];
        let frame = [&station(to)[..], &station(self.1), tag, &[0x12, 0x34], &[7; 46]].concat();
        let mut batch = Batch::new();
        batch.extend(Packet::from_bytes(&frame));
        assert_eq!(self.0.queues[0].tx.offer(&mut batch), 1);
        self.0.queues[0].tx.flush();
    }

    /// Who has sent the frames that have come, with their tags.
    fn received(&mut self) -> Vec<(u8, Option<u16>)> {
        let mut batch = Batch::new();
        self.0.queues[0].rx.poll(&mut batch, 256);
        let tag = |p: &Packet| {
            (p.data()[12..14] == [0x81, 0]).then(|| u16::from_be_bytes([p.data()[14], p.data()[15]]))
        };
        batch.iter().map(|p| (p.data()[11], tag(p))).collect()
    }
}

/// Waits until a station has received that and nothing else.
fn assert_received(station: &mut Station, wanted: &[(u8, Option<u16>)]) {
    let mut got = Vec::new();
    until("frames come", || {
        got.extend(station.received());
        got.len() >= wanted.len()
    });
    assert_eq!(got, wanted);
}

#[test]
fn a_switch_learns_who_is_where() {
    let cables = ["switch0", "switch1", "switch2"];
    let mut stations: Vec<Station> =
        cables.iter().zip(1..).map(|(cable, n)| Station::new(cable, n)).collect();
    let params = [("dev0", "switch0.0"), ("dev1", "switch1.0"), ("dev2", "switch2.0"), ("method", "memory")];
    let router = start("switch.click", &params);
    stations[0].send(2, &[]);
    assert_received(&mut stations[1], &[(1, None)]);
    assert_received(&mut stations[2], &[(1, None)]);
    stations[1].send(1, &[]);
    assert_received(&mut stations[0], &[(2, None)]);
    stations[2].send(1, &[]);
    assert_received(&mut stations[0], &[(3, None)]);
    assert_eq!(stations[1].received(), [], "what is for the first goes to the first");
    let table = router.read("table", "table", "").unwrap();
    let mut table: Vec<&str> = table.lines().collect();
    table.sort_unstable();
    assert_eq!(table, ["02-00-00-00-00-01 0", "02-00-00-00-00-02 1", "02-00-00-00-00-03 2"]);
}

#[test]
fn networks_share_a_trunk_and_nothing_else() {
    let cables = ["vlan0", "vlan1", "trunk"];
    let mut stations: Vec<Station> =
        cables.iter().zip(1..).map(|(cable, n)| Station::new(cable, n)).collect();
    let params = [("dev0", "vlan0.0"), ("dev1", "vlan1.0"), ("trunk", "trunk.0"), ("method", "memory")];
    let router = start("vlan.click", &params);
    stations[0].send(9, &[]);
    assert_received(&mut stations[2], &[(1, Some(10))]);
    stations[1].send(9, &[]);
    assert_received(&mut stations[2], &[(2, Some(20))]);
    stations[2].send(1, &[0x81, 0, 0x60, 10]);
    assert_received(&mut stations[0], &[(3, None)]);
    stations[2].send(2, &[0x81, 0, 0, 20]);
    assert_received(&mut stations[1], &[(3, None)]);
    for tag in [&[0x81, 0, 0, 11][..], &[]] {
        stations[2].send(1, tag);
    }
    until("others are counted", || count(&router, "other") == 2);
    assert!(stations.iter_mut().all(|s| s.received().is_empty()));
}
