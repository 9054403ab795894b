//! A network namespace that forwards from a TAP to another, by a route with many paths.

use causeway_netio::tap::{self, Kind};
use causeway_netio::{Queue, Rx, Tx};
use causeway_packet::{Batch, Packet};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

/// Paths of the route.
pub const PATHS: usize = 64;

/// Their weights.
pub fn weights() -> [u32; PATHS] {
    std::array::from_fn(|i| 1 + (i as u32 * 7) % 5)
}

/// The path that takes a hash: the first whose threshold is not below.
pub fn path(hash: u32) -> usize {
    let weights = weights();
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    let mut sum = 0;
    let bound = |w: u32| {
        sum += u64::from(w);
        ((sum << 31) + total / 2) / total - 1
    };
    weights.into_iter().map(bound).position(|bound| u64::from(hash >> 1) <= bound).unwrap()
}

/// The namespace, and the ends of its TAPs.
pub struct Rig {
    tx: Box<dyn Tx>,
    rx: Box<dyn Rx>,
    mac: [u8; 6],
}

/// Removes the namespace.
struct Remove(String);

impl Drop for Remove {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Runs a test inside; skips with a message where that is not allowed.
pub fn run(tag: &str, test: impl FnOnce(&mut Rig) + Send) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to make network namespaces");
        return;
    }
    let name = format!("elem-{tag}-{}", std::process::id());
    if !Command::new("ip").args(["netns", "add", &name]).status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
        return;
    }
    let remove = Remove(name);
    let namespace = File::open(format!("/run/netns/{}", remove.0)).unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            match Rig::new() {
                Some(mut rig) => test(&mut rig),
                None => eprintln!("skipped: needs /dev/net/tun"),
            }
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Runs a command line, which must succeed.
fn sh(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Rig {
    fn new() -> Option<Rig> {
        let open = |name: &str| {
            let port = tap::open(name, Kind::Tap, 1).ok()?;
            Some((port.mac, port.queues.into_iter().next()?))
        };
        sh("sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0");
        let ((mac, Queue { tx, .. }), (_, Queue { rx, .. })) = (open("in")?, open("out")?);
        for (i, name) in ["in", "out"].iter().enumerate() {
            sh(&format!("ip addr add 10.0.{i}.1/24 dev {name}"));
            sh(&format!("ip addr add 2001:db8:{i}::1/64 dev {name} nodad"));
        }
        sh("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0");
        sh("sysctl -qw net.ipv4.conf.in.rp_filter=0");
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (i, weight) in weights().iter().enumerate() {
            let mac = format!("02:00:00:00:00:{i:02x}");
            for (gateway, id) in
                [(format!("10.0.1.{}", 10 + i), 1000 + i), (format!("2001:db8:1::1:{i:x}"), 2000 + i)]
            {
                sh(&format!("ip neigh add {gateway} lladdr {mac} dev out"));
                sh(&format!("ip nexthop add id {id} via {gateway} dev out"));
            }
            v4.push(format!("{},{weight}", 1000 + i));
            v6.push(format!("{},{weight}", 2000 + i));
        }
        sh(&format!("ip nexthop add id 1 group {}", v4.join("/")));
        sh(&format!("ip nexthop add id 2 group {}", v6.join("/")));
        sh("ip route add 10.64.0.0/10 nhid 1");
        sh("ip -6 route add 2001:db8:8000::/34 nhid 2");
        Some(Rig { tx, rx, mac })
    }

    /// Sets what the kernel hashes, for both families.
    pub fn set(&self, policy: u8, fields: u32, seed: u32) {
        for family in ["ipv4", "ipv6"] {
            sh(&format!("sysctl -qw net.{family}.fib_multipath_hash_policy={policy}"));
            sh(&format!("sysctl -qw net.{family}.fib_multipath_hash_fields={fields}"));
        }
        sh(&format!("sysctl -qw net.ipv4.fib_multipath_hash_seed={seed}"));
    }

    /// The path that the kernel sends a packet by.
    pub fn path_of(&mut self, packet: &[u8]) -> usize {
        let mut frame = [&self.mac[..], &[2, 0, 0, 0, 1, 1]].concat();
        frame.extend(if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] });
        frame.extend(packet);
        let mut batch = Batch::new();
        batch.push(Packet::from_bytes(&frame).unwrap()).unwrap();
        assert_eq!(self.tx.offer(&mut batch), 1);
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            let mut batch = Batch::new();
            self.rx.poll(&mut batch, 1);
            let Some(received) = batch.pop() else {
                std::thread::sleep(Duration::from_micros(50));
                continue;
            };
            if is_forwarded(packet, received.data().get(14..).unwrap_or_default()) {
                return usize::from(received.data()[5]);
            }
        }
        panic!("the kernel did not forward {packet:02x?}");
    }

    /// The path that `ip route get` names for a UDP packet.
    pub fn asked(&self, packet: &[u8]) -> usize {
        let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let (from, to, sport, dport) = (address(12), address(16), port(20), port(22));
        let answer =
            sh(&format!("ip route get {to} from {from} iif in ipproto udp sport {sport} dport {dport}"));
        let gateway = answer.split_whitespace().skip_while(|word| *word != "via").nth(1).unwrap();
        let last: usize = gateway.rsplit('.').next().unwrap().parse().unwrap();
        last - 10
    }
}

/// Whether what came out is what went in: the same but for TTL or hop limit, and checksum.
fn is_forwarded(sent: &[u8], received: &[u8]) -> bool {
    let changed: &[usize] = if sent[0] >> 4 == 4 { &[8, 10, 11] } else { &[7] };
    received.len() >= sent.len()
        && sent.iter().zip(received).enumerate().all(|(i, (a, b))| a == b || changed.contains(&i))
}
