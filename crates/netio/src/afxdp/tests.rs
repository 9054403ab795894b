//! AF_XDP between the ends of a veth pair, in a network namespace of the test's own.

use super::*;
use crate::front::Take;
use crate::offload::is_on;
use crate::port::Event;
use crate::statistics::Statistic;
use crate::testnet::{self, Raw, ip, udp_frame};
use causeway_packet::{Batch, Packet, pool};
use std::net::Ipv4Addr;

/// Receives until `want` packets came or a while passed.
pub(super) fn receive(port: &mut Port, want: usize) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..400 {
        let missing = want - batch.len();
        port.queues[0].rx.poll(&mut batch, missing);
        if batch.len() == want {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    batch
}

pub(super) fn counter(list: &[Statistic], name: &str) -> u64 {
    list.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

fn forward_one_way(options: &Options) {
    let mut a = open("r0", options, &testnet::front()).expect("r0");
    let mut b = open("r1", options, &testnet::front()).expect("r1");
    eprintln!("r0: {}", a.mode);
    let (host, sink) = (Raw::open("g0"), Raw::open("s0"));
    // Small batches through the ring, large ones as live frames where allowed.
    for n in [1usize, 3, 40] {
        let frames: Vec<Vec<u8>> = (0..n).map(|i| udp_frame(a.mac, i as u8, 60 + i * 7)).collect();
        frames.iter().for_each(|f| host.send(f));
        let mut batch = receive(&mut a, n);
        assert_eq!(batch.len(), n, "{:?}", a.queues[0].rx.statistics().list());
        for (packet, frame) in batch.iter().zip(&frames) {
            assert_eq!(packet.data(), &frame[..]);
            assert!(packet.headroom() >= Packet::HEADROOM, "room for headers");
        }
        let before = testnet::free_frames();
        assert_eq!(b.queues[0].tx.offer(&mut batch), n);
        while b.queues[0].tx.in_flight() > 0 {
            b.queues[0].tx.flush();
        }
        assert_eq!(testnet::free_frames(), before + n as u64, "every frame came back");
        let got = sink.receive(n);
        assert_eq!(got, frames, "what leaves is what came");
    }
    let counters = b.queues[0].tx.statistics().list();
    assert_eq!(counter(&counters, "tx_packets"), 44);
    let live = counter(&counters, "tx_live_packets");
    assert_eq!(live > 0, b.mode.contains("live-frame transmission of"));
    // What went by the ring was cleaned out of it, in one go or in several.
    let (cleanings, cleaned) = (counter(&counters, "tx_cleanings"), counter(&counters, "tx_cleaned_frames"));
    assert!(cleaned == 44 - live && (2..=cleaned).contains(&cleanings), "{counters:?}");
    assert_eq!(counter(&a.queues[0].rx.statistics().list(), "rx_packets"), 44);
    assert_eq!(counter(&a.queues[0].rx.statistics().list(), "xdp_taken"), 44);
}

#[test]
fn frames_pass_in_every_mode() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        // What the sink's end needs to take redirected frames.
        let _napi = testnet::pass_program("s0");
        forward_one_way(&Options::default());
        forward_one_way(&Options { live: false, ..Options::default() });
        forward_one_way(&Options { generic: true, live: false, ring: 64, ..Options::default() });
    });
}

#[test]
fn as_many_copies_may_be_under_way_as_the_ring_has_entries() {
    testnet::run(&[("g0", "r0")], || {
        let interface = crate::interface::Interface::open("r0").expect("r0");
        let wanted = socket::Wanted {
            interface: &interface,
            queue: 0,
            ring: 1_024,
            zero_copy: false,
            driver_zero_copy: false,
        };
        let (socket, _rings) = socket::bind(&wanted).expect("bound");
        let bytes = crate::interface::get_option(&socket.fd, libc::SOL_SOCKET, libc::SO_SNDBUF, 0i32);
        assert!(bytes.expect("an option") >= 1_024 * 4_096);
    });
}

/// Waits until the port is told.
fn told(events: &mut dyn Events, wanted: Event) {
    let mut all = std::iter::from_fn(|| Some(events.next(std::time::Duration::from_millis(100))));
    assert!(all.by_ref().take(100).any(|event| event == Some(wanted)), "waited in vain for {wanted:?}");
}

/// Another namespace, as long as the process lives that is in it.
struct Elsewhere(std::process::Child);

impl Elsewhere {
    fn new() -> Elsewhere {
        let child = std::process::Command::new("unshare").args(["--net", "sleep", "60"]).spawn();
        let this = Elsewhere(child.expect("unshare"));
        let here = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let there = || std::fs::read_link(format!("/proc/{}/ns/net", this.0.id())).expect("a namespace");
        while there() == here {
            std::thread::yield_now();
        }
        this
    }

    fn run(&self, line: &str) -> String {
        ip(&format!("nsenter --net=/proc/{}/ns/net {line}", self.0.id()))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_device_that_is_gone_is_let_go_and_can_be_opened_again_when_it_is_back() {
    testnet::run(&[("g0", "r0")], || {
        let front = testnet::front();
        let mut old = open("r0", &Options::default(), &front).expect("r0");
        let mut events = old.events.take().expect("events");
        let (elsewhere, ifindex) = (Elsewhere::new(), old.ifindex);
        ip(&format!("ip link set dev r0 netns {}", elsewhere.0.id()));
        told(&mut *events, Event::Gone);
        let link = elsewhere.run("ip link show dev r0");
        assert!(!link.contains("xdp"), "the program went: {link}");
        let mut batch = Batch::new();
        batch.extend((0..40).filter_map(|_| Packet::from_bytes(&[0; 60])));
        let tx = &mut old.queues[0].tx;
        assert_eq!(tx.offer(&mut batch), 0, "nothing is sent to what may be another's index");
        tx.flush();
        assert_eq!((batch.len(), tx.in_flight()), (40, 0));
        batch.clear();
        let counted = old.queues[0].rx.statistics().list().iter().any(|(name, _)| *name == "xdp_taken");
        assert!(counted, "what was counted can be read");

        // SAFETY: asks for a number.
        let tid = unsafe { libc::gettid() };
        elsewhere.run(&format!("ip link set dev r0 netns {tid}"));
        testnet::up("r0");
        told(&mut *events, Event::Back);
        let mut new = open("r0", &Options::default(), &front).expect("opened while the old port is there");
        assert_eq!(new.ifindex, ifindex);
        drop(old);
        for offload in Offload::HARMFUL {
            assert!(!is_on("r0", offload).unwrap_or(false), "{offload:?}");
        }
        Raw::open("g0").send(&udp_frame(new.mac, 1, 60));
        assert_eq!(receive(&mut new, 1).len(), 1);
    });
}

#[test]
fn the_kernel_says_when_it_has_sent_a_tagged_packet() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let _napi = testnet::pass_program("s0");
        let mut port = open("r1", &Options::default(), &testnet::front()).expect("r1");
        if port.capabilities.tx_timestamps.is_none() {
            return eprintln!("skipped: needs a kernel that knows of transmit metadata (Linux 6.11)");
        }
        assert_eq!(port.capabilities.tx_timestamps, Some(Clock::Tai), "it copies");
        let tx = &mut port.queues[0].tx;
        // Enough for a live-frame run, of which nobody would tell the times.
        let mut batch = Batch::new();
        batch.extend((0..40).filter_map(|i| Packet::from_bytes(&udp_frame([2; 6], i, 60))));
        batch.iter_mut().zip(100..).step_by(2).for_each(|(packet, tag)| packet.set_transmit_tag(tag));
        assert_eq!(tx.offer(&mut batch), 40);
        let mut told = Vec::new();
        while tx.in_flight() > 0 {
            tx.flush();
            tx.completions(&mut |c| told.push(c));
        }
        let tags: Vec<u64> = told.iter().map(|c| c.tag).collect();
        assert_eq!(tags, (100..140).step_by(2).collect::<Vec<_>>());
        let times: Vec<u64> = told.iter().filter_map(|c| Some(c.sent?.0)).collect();
        assert!(times.len() == 20 && times.is_sorted() && times[0] > 1_600_000_000_000_000_000, "{times:?}");
        assert_eq!(counter(&tx.statistics().list(), "tx_live_packets"), 0);
    });
}

#[test]
fn the_books_balance_when_rings_overflow() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let mut a = open("r0", &Options { ring: 64, ..Options::default() }, &testnet::front()).expect("r0");
        let mut b = open("r1", &Options { ring: 64, live: false, ..Options::default() }, &testnet::front())
            .expect("r1");
        let mut host = LiveTx::new(Interface::open("g0").expect("g0").index).expect("live frames");
        let mut forwarded = 0;
        for round in 0..50 {
            let mut burst = Batch::new();
            burst.extend((0..50).filter_map(|i| Packet::from_bytes(&udp_frame(a.mac, i, 60))));
            assert_eq!(host.send(&mut burst).expect("sent").0, 50);
            // Some rounds let the rings overflow.
            if round % 4 == 3 {
                let mut batch = Batch::new();
                while a.queues[0].rx.poll(&mut batch, 32) || !batch.is_empty() {
                    while !batch.is_empty() {
                        forwarded += b.queues[0].tx.offer(&mut batch) as u64;
                        b.queues[0].tx.flush();
                    }
                }
            }
        }
        // What the interrupt thread still has, if it was busy.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let waiting = a.queues[0].rx.waiting() as u64;
        let rx = a.queues[0].rx.statistics().list();
        let dropped = counter(&rx, "rx_drop_no_frame") + counter(&rx, "rx_drop_ring_full");
        assert!(dropped > 0, "{rx:?}");
        assert_eq!(counter(&rx, "xdp_taken"), counter(&rx, "rx_packets") + waiting + dropped, "{rx:?}");
        assert_eq!(counter(&rx, "rx_packets"), forwarded);
        assert_eq!(counter(&b.queues[0].tx.statistics().list(), "tx_packets"), forwarded);
    });
}

#[test]
fn closing_gives_frames_and_interface_back() {
    testnet::run(&[("g0", "r0")], || {
        for _ in 0..3 {
            let port = open("r0", &Options { promiscuous: true, ..Options::default() }, &testnet::front())
                .expect("reopened");
            assert!(
                testnet::free_frames() + 2_048 <= u64::from(pool::config().frames),
                "the fill ring is full"
            );
            let again = open("r0", &Options::default(), &testnet::front()).expect_err("a second router");
            assert_eq!(again.kind(), ErrorKind::Busy, "{again}");
            assert!(again.to_string().contains("second router"), "{again}");
            assert!(testnet::ip("ip -d link show r0").contains("promiscuity 1"));
            drop(port);
            let link = testnet::ip("ip -d link show r0");
            assert!(!link.contains("xdp") && link.contains("promiscuity 0"), "{link}");
        }
        testnet::assert_all_free();
    });
}

#[test]
fn a_closed_queue_passes_to_the_kernel() {
    testnet::run(&[("g0", "r0")], || {
        let Port { mut queues, mac, .. } = open("r0", &Options::default(), &testnet::front()).expect("r0");
        let Queue { rx, tx } = queues.remove(0);
        drop(rx);
        let (host, kernel) = (Raw::open("g0"), Raw::open("r0"));
        host.send(&udp_frame(mac, 1, 60));
        assert_eq!(kernel.receive(1).len(), 1, "the program is still there, the queue's socket is not");
        drop(tx);
    });
}

#[test]
fn a_port_that_is_down_says_so() {
    testnet::run(&[("g0", "r0")], || {
        testnet::ip("ip link set dev r0 down");
        let port = open("r0", &Options::default(), &testnet::front()).expect("r0");
        assert!(port.mode.ends_with("; it is down: `ip link set dev r0 up`"), "{}", port.mode);
    });
}

#[test]
fn classified_traffic_goes_both_ways() {
    testnet::run(&[("g0", "r0")], || {
        let front = testnet::front();
        front.local().insert_v4(Ipv4Addr::new(198, 51, 100, 1)).expect("insert");
        let take = Take::TRANSIT;
        let mut port = open("r0", &Options { take, ..Options::default() }, &front).expect("r0");
        let (host, kernel) = (Raw::open("g0"), Raw::open("r0"));
        let mac = port.mac;
        host.send(&udp_frame(mac, 1, 60));
        host.send(&udp_frame(mac, 7, 60)); // another address: in transit
        let got = receive(&mut port, 1);
        assert_eq!(got[0].data(), &udp_frame(mac, 7, 60)[..]);
        assert_eq!(kernel.receive(1), vec![udp_frame(mac, 1, 60)], "the local address reaches the stack");
        let counters = port.queues[0].rx.statistics().list();
        assert_eq!((counter(&counters, "xdp_pass_local"), counter(&counters, "xdp_taken")), (1, 1));
    });
}

#[test]
fn mistakes_are_one_clear_line() {
    testnet::run(&[("g0", "r0")], || {
        let text = |name: &str, kind| {
            let e = open(name, &Options::default(), &testnet::front()).expect_err("must fail");
            assert_eq!(e.kind(), kind, "{e}");
            assert!(!e.to_string().contains('\n') && e.to_string().contains(name), "{e}");
            e.to_string()
        };
        assert!(text("nosuch0", ErrorKind::NoInterface).contains("ip link"));
        testnet::ip("ip link set dev r0 mtu 3000");
        assert!(text("r0", ErrorKind::MtuTooLarge).contains("ip link set dev r0 mtu 1770"));
    });
}

#[test]
fn every_queue_receives() {
    testnet::run(&[], || {
        let queues = "numrxqueues 2 numtxqueues 2";
        testnet::ip(&format!("ip link add r0 {queues} type veth peer name g0 {queues}"));
        ["r0", "g0"].iter().for_each(|end| testnet::up(end));
        let mut port = open("r0", &Options::default(), &testnet::front()).expect("r0");
        assert_eq!(port.queues.len(), 2);
        let mut peer =
            open("g0", &Options { live: false, ..Options::default() }, &testnet::front()).expect("g0");
        // A packet that leaves by one queue of a veth arrives at the other end's queue of the same number.
        for queue in [0, 1] {
            let mut batch = Batch::new();
            batch.extend((0..5).filter_map(|i| Packet::from_bytes(&udp_frame(port.mac, i, 60))));
            assert_eq!(peer.queues[queue].tx.offer(&mut batch), 5);
            peer.queues[queue].tx.flush();
            let mut got = Batch::new();
            assert!(!port.queues[queue].rx.poll(&mut got, 10));
            assert_eq!(got.len(), 5, "queue {queue}");
            assert_eq!(port.queues[1 - queue].rx.waiting(), 0);
        }
    });
}

/// Name of the variable that turns the test below into the router that it kills.
const HOLD: &str = "CAUSEWAY_TEST_HOLD";

#[test]
fn a_killed_router_leaves_nothing() {
    use std::io::{BufRead, BufReader};
    if let Ok(name) = std::env::var(HOLD) {
        let _port = open(&name, &Options { promiscuous: true, ..Options::default() }, &testnet::front())
            .expect("the port");
        println!("\nready");
        std::thread::sleep(std::time::Duration::from_secs(30));
        return;
    }
    testnet::run(&[("g0", "r0")], || {
        let mut router = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "afxdp::tests::a_killed_router_leaves_nothing", "--nocapture"])
            .env(HOLD, "r0")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a router");
        let lines = BufReader::new(router.stdout.take().expect("piped")).lines();
        assert!(lines.map_while(|l| l.ok()).any(|l| l == "ready"));
        let (host, kernel) = (Raw::open("g0"), Raw::open("r0"));
        let mac = Interface::open("r0").expect("r0").mac;
        host.send(&udp_frame(mac, 1, 60));
        assert!(kernel.receive(1).is_empty(), "the router takes all");
        router.kill().expect("killed");
        router.wait().expect("waited");
        host.send(&udp_frame(mac, 2, 60));
        assert_eq!(kernel.receive(1), vec![udp_frame(mac, 2, 60)], "the kernel gets the next frame");
        let link = testnet::ip("ip -d link show r0");
        assert!(!link.contains("xdp") && link.contains("promiscuity 0"), "{link}");
        open("r0", &Options::default(), &testnet::front()).expect("a new router");
    });
}
