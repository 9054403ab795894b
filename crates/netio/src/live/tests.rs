//! Live frames between the ends of a veth pair: what is said to be sent has arrived.

use super::*;
use crate::interface::Interface;
use crate::testnet::{self, udp_frame};
use causeway_bpf::{Map, MapKind, XdpLink, XdpMode};

fn batch_of(n: usize, len: usize) -> Batch {
    let mut batch = Batch::new();
    batch.extend((0..n).filter_map(|i| Packet::from_bytes(&udp_frame([2; 6], i as u8, len))));
    assert_eq!(batch.len(), n);
    batch
}

fn transmitter() -> LiveTx {
    LiveTx::new(Interface::open("r1").expect("r1").index).expect("live frames")
}

fn counter(live: &LiveTx, name: &str) -> u64 {
    live.statistics().list().iter().find(|(n, _)| *n == name).expect("a counter").1
}

/// All packets that were taken are in one counter.
fn taken(live: &LiveTx) -> u64 {
    live.statistics()
        .list()
        .iter()
        .filter(|(n, _)| *n == "tx_live_packets" || n.starts_with("tx_drop_"))
        .map(|c| c.1)
        .sum()
}

/// A native XDP program on `name` that counts and drops everything.
struct Sink {
    counter: Map,
    _link: XdpLink,
}

impl Sink {
    fn new(name: &str) -> Sink {
        let counter = Map::new(MapKind::PerCpuArray, "sink", 4, 8, 1).expect("a map");
        let mut a = Asm::new();
        let (key, end) = (a.slot(4), a.label());
        a.mov(Reg::R6, 0);
        a.count_per_cpu(counter.as_fd(), Reg::R6, key, end);
        a.bind(end);
        a.mov(Reg::R0, action::XDP_DROP);
        a.exit();
        let program =
            Program::load(ProgramKind::Xdp, "sink", &a.finish().expect("assembled")).expect("loaded");
        let index = Interface::open(name).expect("interface").index;
        Sink { counter, _link: XdpLink::attach(&program, name, index, XdpMode::Native).expect("attached") }
    }

    /// What arrived, when no more does.
    fn count(&self) -> u64 {
        let mut last = u64::MAX;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = self.counter.per_cpu_sum(0).expect("a count");
            if now == std::mem::replace(&mut last, now) {
                return now;
            }
        }
    }
}

#[test]
fn what_is_said_to_be_sent_has_arrived() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        // The other end's work is done by a thread of its own, so that its ring overflows.
        std::fs::write("/sys/class/net/s0/threaded", "1").ok();
        let mut live = transmitter();
        let (mut sent, mut offered) = (0, 0);
        for round in 0..400 {
            let n = [256, 16, 100][round % 3];
            let (packets, bytes) = live.send(&mut batch_of(n, 60)).expect("usable");
            assert!(packets <= n && bytes == packets * 60);
            sent += packets as u64;
            offered += n as u64;
        }
        assert_eq!(sent, sink.count());
        assert_eq!(counter(&live, "tx_live_packets"), sent);
        assert_eq!(counter(&live, "tx_drop_live_full"), offered - sent);
    });
}

#[test]
fn packets_to_an_interface_that_is_down_are_counted() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        let mut live = transmitter();
        assert_eq!(live.send(&mut batch_of(100, 60)), Some((100, 6_000)));
        testnet::ip("ip link set dev r1 down");
        assert_eq!(live.send(&mut batch_of(100, 60)), Some((0, 0)));
        assert_eq!(counter(&live, "tx_drop_live_down"), 100);
        testnet::up("r1");
        assert_eq!(live.send(&mut batch_of(20, 60)), Some((20, 1_200)), "usable again at once");
        assert_eq!((sink.count(), taken(&live)), (120, 220));
    });
}

#[test]
fn a_peer_that_takes_no_frames_is_left_alone() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        let mut live = transmitter();
        drop(sink);
        assert_eq!(
            live.send(&mut batch_of(50, 60)),
            Some((0, 0)),
            "the peer is not ready for frames any more"
        );
        assert_eq!(counter(&live, "tx_drop_live_refused"), 50);
        let mut next = batch_of(50, 60);
        assert_eq!(live.send(&mut next), None, "others go another way");
        assert_eq!(next.len(), 50);
        // As long as it takes none it is only asked, and nothing more is lost.
        let other_way = |live: &mut LiveTx, next: &mut Batch| {
            (0..FIRST_RETRY_PACKETS * 8 / 50).take_while(|_| live.send(next).is_none()).count()
        };
        assert_eq!(other_way(&mut live, &mut next), (FIRST_RETRY_PACKETS * 8 / 50) as usize);
        let sink = Sink::new("s0");
        other_way(&mut live, &mut next);
        assert_eq!(sink.count(), 50, "it was tried again");
        assert_eq!(taken(&live), 100);
    });
}

/// There the interface's number is another interface's, or nobody's.
#[test]
fn a_thread_of_another_namespace_sends_another_way() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        let mut live = transmitter();
        let (left, live) = std::thread::scope(|scope| {
            let elsewhere = scope.spawn(move || {
                // SAFETY: changes only this thread.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
                let mut batch = batch_of(50, 60);
                assert_eq!(live.send(&mut batch), None);
                (batch.len(), live)
            });
            elsewhere.join().expect("no panic")
        });
        let mut live = live;
        assert_eq!((left, taken(&live)), (50, 0));
        assert_eq!(live.send(&mut batch_of(50, 60)), Some((50, 3_000)), "at home again");
        assert_eq!(sink.count(), 50);
    });
}

#[test]
fn packets_longer_than_the_interface_takes_are_counted() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        let mut live = transmitter();
        testnet::ip("ip link set dev r1 mtu 1000");
        let mut batch = batch_of(20, 60);
        batch.extend(batch_of(10, 1_400).drain());
        assert_eq!(live.send(&mut batch).expect("usable").0, 20);
        assert_eq!(counter(&live, "tx_drop_live_too_long"), 10);
        assert_eq!(sink.count(), 20);
    });
}

/// Redirects of others, on the same processors at the same time, are not charged to a transmitter.
#[test]
fn losses_of_others_are_their_own() {
    testnet::run(&[("s0", "r1"), ("x0", "x1")], || {
        let (sink, _other_sink) = (Sink::new("s0"), Sink::new("x0"));
        let mut live = transmitter();
        let mut other = LiveTx::new(Interface::open("x1").expect("x1").index).expect("live frames");
        testnet::ip("ip link set dev x1 down");
        let losing = std::thread::spawn(move || {
            (0..200).for_each(|_| assert_eq!(other.send(&mut batch_of(64, 60)), Some((0, 0))));
            assert_eq!(counter(&other, "tx_drop_live_down"), 200 * 64);
        });
        let mut sent = 0;
        for _ in 0..200 {
            sent += live.send(&mut batch_of(64, 60)).expect("usable").0 as u64;
        }
        losing.join().expect("no panic");
        assert_eq!(sent, sink.count());
        assert_eq!(counter(&live, "tx_drop_live_down"), 0);
        assert_eq!(taken(&live), 200 * 64);
    });
}

/// The ring of a veth has room for no more frames than a run has.
#[test]
fn the_other_end_has_its_turn_before_a_long_run_is_over() {
    testnet::run(&[("s0", "r1")], || {
        let sink = Sink::new("s0");
        let mut live = transmitter();
        drop(sink);
        let seen = MappedArray::new("seen", 8, 1).expect("a map");
        let mut a = Asm::new();
        let end = a.label();
        a.map_value(Reg::R1, seen.map().as_fd(), 0);
        a.load(Size::D, Reg::R2, Reg::R1, 0);
        a.jump_if(Cond::Ne, Reg::R2, 0, end);
        a.map_value(Reg::R3, live.words.map().as_fd(), 0);
        a.load(Size::D, Reg::R2, Reg::R3, 0);
        a.store(Size::D, Reg::R1, 0, Reg::R2);
        a.bind(end);
        a.mov(Reg::R0, action::XDP_DROP);
        a.exit();
        let program = Program::load(ProgramKind::Xdp, "seen", &a.finish().expect("assembled"));
        let index = Interface::open("s0").expect("interface").index;
        let link = XdpLink::attach(&program.expect("loaded"), "s0", index, XdpMode::Native);
        assert_eq!(live.send(&mut batch_of(BATCH, 60)).expect("usable").0, BATCH);
        let sent_before = seen.word(0).load(Ordering::Relaxed);
        assert_eq!(sent_before, u64::from(RUN_BATCH), "when the first one came");
        drop(link.expect("attached"));
    });
}
