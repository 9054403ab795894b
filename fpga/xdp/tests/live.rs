//! Programs on interfaces: frames really go from one to the other, and what is left really reaches the kernel.

mod common;

use causeway_bpf::{Asm, Program, ProgramKind, Reg, XdpLink, XdpMode, action};
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, set_offload};
use causeway_netio::{Port, afpacket};
use causeway_nic_driver::corpus::{self, Random};
use causeway_nic_driver::golden::process;
use causeway_nic_driver::{RuleTable, Verdict};
use causeway_nic_xdp::{Error, Router};
use causeway_packet::{BATCH, Batch, Packet};
use common::Testbed;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A native program that passes everything: gives a veth the NAPI that redirects to its peer need.
fn pass_program(name: &str) -> XdpLink {
    let mut a = Asm::new();
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    let program = Program::load(ProgramKind::Xdp, "pass", &a.finish().unwrap()).unwrap();
    XdpLink::attach(&program, name, Interface::open(name).unwrap().index, XdpMode::Native).unwrap()
}

/// Receives until there are `want` frames, or none came for a second.
fn receive(port: &mut Port, want: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut idle_ms = 0;
    while frames.len() < want && idle_ms < 1_000 {
        let mut batch = Batch::new();
        port.queues[0].rx.poll(&mut batch, BATCH);
        if batch.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
            idle_ms += 1;
        }
        frames.extend(batch.drain().map(|packet| packet.data().to_vec()));
    }
    frames
}

/// Where a card's frames come out: the own number is the kernel.
struct Taps {
    sender: Port,
    sinks: Vec<Port>,
}

impl Taps {
    fn open(bed: &Testbed) -> Self {
        let host = |n: usize| bed.hosts[n].enter(|| afpacket::open("h", false).unwrap());
        let mut sinks = vec![bed.router.enter(|| afpacket::open("p0", false).unwrap())];
        sinks.extend((1..4).map(host));
        Taps { sender: host(0), sinks }
    }

    /// Sends `frames` to card 0 and compares what comes out at each end with the golden model's word.
    fn agree(&mut self, table: &RuleTable, frames: impl Iterator<Item = Vec<u8>>) -> [usize; 4] {
        let frames: Vec<Vec<u8>> = frames.collect();
        let mut counts = [0; 4];
        // A port's queue holds 256 frames; what is in flight stays far below.
        for frames in frames.chunks(64) {
            let mut expected: [Vec<Vec<u8>>; 4] = Default::default();
            let mut batch = Batch::new();
            for frame in frames {
                batch.extend(Packet::from_bytes(frame));
                let mut after = frame.clone();
                match process(table, 0, &mut after) {
                    Verdict::Fast { nic, .. } => expected[usize::from(nic)].push(after),
                    Verdict::Slow { .. } => expected[0].push(after),
                    Verdict::Drop(_) => {}
                }
            }
            assert_eq!(self.sender.queues[0].tx.offer(&mut batch), frames.len());
            self.sender.queues[0].tx.flush();
            for (n, (sink, expected)) in self.sinks.iter_mut().zip(&expected).enumerate() {
                assert_eq!(&receive(sink, expected.len()), expected, "sink {n}");
                counts[n] += expected.len();
            }
        }
        // And nothing more than that.
        for sink in &mut self.sinks {
            assert_eq!(sink.queues[0].rx.waiting(), 0);
        }
        counts
    }
}

fn frames_agree(mode: XdpMode) {
    let Some(bed) = Testbed::new() else { return };
    let _peers: Vec<XdpLink> = (1..4).map(|n| bed.hosts[n].enter(|| pass_program("h"))).collect();
    let table = corpus::table();
    let mut router = bed.router.enter(|| Router::attach(&table, &Testbed::ports(), mode).unwrap());
    let reachable: Vec<bool> = router.reachable().map(|port| port.1).collect();
    // The first host's end has neither XDP nor GRO: redirects to it would be lost in the driver.
    assert_eq!(reachable, [mode == XdpMode::Generic, true, true, true]);
    let mut taps = Taps::open(&bed);
    let counts = taps.agree(&table, corpus::frames(31).take(2_500));
    assert!(counts.iter().all(|&n| n > 100), "{counts:?}");

    // Many random tables leave nearly everything to the host.
    let forwards = |table: &RuleTable| {
        let fast = |frame: Vec<u8>| matches!(process(table, 0, &mut frame.clone()), Verdict::Fast { .. });
        corpus::frames(32).skip(1_500).take(500).filter(|frame| fast(frame.clone())).count()
    };
    let tables = (0..20).map(|seed| corpus::random_table(&mut Random::new(seed), 0));
    let other = tables.max_by_key(forwards).unwrap();
    bed.router.enter(|| router.replace(&other).unwrap());
    let counts = taps.agree(&other, corpus::frames(32).skip(1_500).take(500));
    assert!(counts.iter().filter(|&&n| n > 20).count() > 1, "{counts:?}");
    let received = router.counters().next().unwrap().read().unwrap()[0].clone();
    assert_eq!(received, ("rx_frames".to_owned(), 3_000));

    drop(router);
    // The kernel lets go of a program a little after its last descriptor is closed.
    let gone = || !bed.router.ip("link show").contains("prog/xdp");
    let deadline = Instant::now() + Duration::from_secs(5);
    while !gone() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone());
}

#[test]
fn frames_cross_in_the_driver_and_the_rest_reaches_the_kernel_untouched() {
    frames_agree(XdpMode::Native);
}

#[test]
fn frames_cross_in_generic_mode_too() {
    frames_agree(XdpMode::Generic);
}

#[test]
fn hosts_talk_through_the_fast_path_and_with_the_router_through_the_slow_one() {
    let Some(bed) = Testbed::new() else { return };
    for (n, host) in bed.hosts.iter().enumerate() {
        bed.router.ip(&format!("addr add 10.0.{n}.1/24 dev p{n}"));
        host.ip(&format!("addr add 10.0.{n}.2/24 dev h"));
        host.ip(&format!("route add default via 10.0.{n}.1"));
        host.enter(|| {
            // A packet whose checksum is left to a device would be forwarded without one.
            set_offload("h", Offload::TxChecksum, false).unwrap();
            set_offload("h", Offload::Gro, true).unwrap();
        });
    }
    let router =
        bed.router.enter(|| Router::attach(&corpus::table(), &Testbed::ports(), XdpMode::Native).unwrap());
    assert!(router.reachable().all(|port| port.1));
    let sockets: Vec<UdpSocket> = (0..3)
        .map(|n| bed.hosts[n].enter(|| UdpSocket::bind(format!("10.0.{n}.2:9")).unwrap()))
        .chain([bed.router.enter(|| UdpSocket::bind("10.0.0.1:9").unwrap())])
        .collect();
    for socket in &sockets {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    // The kernel of the router does not forward; next hops are the rules', ARP for the router's own addresses is
    // the kernel's.
    for (from, to, address) in
        [(0, 1, "10.0.1.2:9"), (1, 2, "10.0.2.2:9"), (2, 0, "10.0.0.2:9"), (0, 3, "10.0.0.1:9")]
    {
        let text = format!("from {from} to {to}");
        sockets[from].send_to(text.as_bytes(), address).unwrap();
        let mut buffer = [0; 64];
        let (n, source) = sockets[to].recv_from(&mut buffer).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((&buffer[..n], source), (text.as_bytes(), sockets[from].local_addr().unwrap()));
    }
    let fast: Vec<u64> = router.counters().map(|counters| counters.read().unwrap()[4].1).collect();
    assert_eq!(fast, [1, 1, 1, 0]);
}

#[test]
fn interfaces_that_do_not_fit_the_rules_are_refused_with_the_remedy() {
    let Some(bed) = Testbed::new() else { return };
    let attach = |ports: &[String]| match bed
        .router
        .enter(|| Router::attach(&corpus::table(), ports, XdpMode::Native))
    {
        Err(e) => e.to_string(),
        Ok(_) => panic!("attached"),
    };
    let mut ports = Testbed::ports();
    assert!(attach(&ports[..3]).contains("4 cards, but there are 3 interfaces"));
    ports.swap(0, 1);
    assert!(attach(&ports).contains("ip link set dev p1 address 02:00:00:00:00:00"));
    ports.swap(0, 1);
    let mut twice = ports.clone();
    twice[3] = "p0".into();
    assert!(attach(&twice).contains("p0: named twice"));
    bed.router.ip("link set dev p2 mtu 1400");
    assert!(attach(&ports).contains("p2 has an MTU of 1400"));
    bed.router.ip("link set dev p2 mtu 1500 down");
    assert!(attach(&ports).contains("ip link set dev p2 up"));
    bed.router.ip("link set dev p2 up");
    let router = bed.router.enter(|| Router::attach(&corpus::table(), &ports, XdpMode::Native)).unwrap();
    assert!(attach(&ports).contains("another program"));
    drop(router);
    assert!(matches!(
        bed.router.enter(|| Router::attach(&RuleTable::default(), &ports, XdpMode::Native)),
        Err(Error::Rules(_))
    ));
}
