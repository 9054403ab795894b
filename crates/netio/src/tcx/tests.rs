//! Ports at tcx whose packets come here, as their users see them.

use super::*;
use crate::front::{Place, Take};
use crate::port::Event;
use crate::testnet::{self, Raw, ip, udp_frame};
use std::time::Duration;

/// A port at `r0`, whose peer is `g0`.
fn port() -> Port {
    let front = Arc::new(Front::with_luggage(Take::TRANSIT).expect("a front"));
    let port = open("r0", 1, false, &front).expect("r0");
    assert_eq!((front.place_of(port.ifindex), port.queues.len()), (Some(Place::Tcx), 1), "{}", port.mode);
    port
}

/// The next frames that are among these, with the word in front of each that says where they enter a graph.
fn received(port: &mut Port, wanted: &[Vec<u8>]) -> Vec<(Vec<u8>, [u8; 16])> {
    let mut found = Vec::new();
    for _ in 0..2_000 {
        let mut batch = Batch::new();
        port.queues[0].rx.poll(&mut batch, 8);
        let ours = batch.iter().filter(|packet| wanted.iter().any(|frame| packet.data() == &frame[..]));
        found.extend(ours.map(|packet| (packet.data().to_vec(), packet.in_front().expect("room"))));
        if found.len() >= wanted.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    found
}

fn number(port: &Port, name: &str) -> u64 {
    let list = port.queues[0].rx.statistics().list();
    list.into_iter().filter(|(n, _)| *n == name).map(|(_, n)| n).sum()
}

#[test]
fn all_packets_come_as_on_a_wire_and_none_to_the_kernel() {
    testnet::run(&[("g0", "r0")], || {
        ip("ip addr add 10.9.0.1/24 dev r0");
        let mut port = port();
        let guest = Raw::open("g0");
        let plain = udp_frame(port.mac, 1, 60);
        // The kernel keeps a tag beside the packet.
        let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
        let other = udp_frame([2, 9, 9, 9, 9, 9], 2, 60);
        let frames = [plain, tagged, other];
        frames.iter().for_each(|frame| guest.send(frame));
        let expected: Vec<_> = frames.iter().map(|frame| (frame.clone(), [0; 16])).collect();
        assert_eq!(received(&mut port, &frames), expected);
        assert!(number(&port, "tcx_taken") >= 3 && number(&port, "rx_packets") >= 3);
        assert_eq!(number(&port, "rx_error"), 0);
        drop(port);
        assert!(ip("ip link").lines().all(|line| !line.contains("above")), "it goes with the port");
    });
}

/// Of a frame that a sender has not finished the kernel finishes the checksum.
#[test]
fn checksums_are_finished_on_the_way() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        let guest = Raw::open("g0");
        let mut frame = udp_frame(port.mac, 1, 60);
        let finished = frame.clone();
        // Whatever is there: the sum is made over it.
        frame[40..42].fill(0);
        guest.send_unfinished(&frame, 34, 6);
        let mut seen = Vec::new();
        while seen.is_empty() {
            let mut batch = Batch::new();
            port.queues[0].rx.poll(&mut batch, 8);
            let is_one =
                |packet: &&Packet| packet.len() == frame.len() && packet.data()[..40] == finished[..40];
            seen.extend(batch.iter().filter(is_one).map(|packet| packet.data().to_vec()));
        }
        let sum: u32 =
            seen[0][34..].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
        assert_eq!((sum >> 16) + (sum & 0xffff), 0xffff, "{:02x?}", seen[0]);
    });
}

/// Receives until all numbers are these.
fn receive_until(port: &mut Port, numbers: &[(&str, u64)]) {
    for _ in 0..2_000 {
        port.queues[0].rx.poll(&mut Batch::new(), 8);
        if numbers.iter().all(|&(name, n)| number(port, name) == n) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{:?}", port.queues[0].rx.statistics().list());
}

/// The port's interface, and the host's at its other end, have this MTU from now on, which is more than was allowed.
fn lengthen(mtu: u32) {
    for name in ["g0", "r0"] {
        ip(&format!("ip link set {name} mtu {mtu}"));
    }
}

/// What does not fit a frame of the pool is lost, and what others write to the TAP is nobody's.
#[test]
fn what_cannot_come_is_counted() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        lengthen(4_000);
        Raw::open("g0").send(&udp_frame(port.mac, 1, 3_000));
        Raw::open("above0").send(&udp_frame(port.mac, 1, 60));
        receive_until(&mut port, &[("rx_drop_too_long", 1), ("rx_error", 1)]);
    });
}

#[test]
fn segments_that_cannot_come_are_counted_each() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        let mut frame = udp_frame(port.mac, 1, 54 + 7_000);
        (frame[23], frame[46]) = (6, 5 << 4);
        Raw::open("g0").send_super(&frame, 3_000);
        // Two are too long.
        receive_until(&mut port, &[("rx_drop_too_long", 2), ("rx_packets", 1), ("tcx_taken", 1)]);
    });
}

/// The kernel puts nothing in front of so long a packet that it is not to cut.
#[test]
fn what_cannot_be_taken_is_not_the_kernels() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        lengthen(30_000);
        let before = ip("nstat -asz IpInReceives");
        Raw::open("g0").send(&udp_frame(port.mac, 1, 20_000));
        receive_until(&mut port, &[("tcx_drop_no_room", 1), ("tcx_taken", 0)]);
        let received = ip("nstat -asz IpInReceives");
        assert_eq!(received, before);
    });
}

#[test]
fn what_lies_behind_many_foreign_packets_is_not_forgotten() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        let (others, frame) = (Raw::open("above0"), udp_frame(port.mac, 1, 60));
        (0..150).for_each(|_| others.send(&frame));
        let mut batch = Batch::new();
        assert!(port.queues[0].rx.poll(&mut batch, 8) && batch.is_empty(), "there may be more");
        assert_eq!(port.queues[0].rx.waiting(), 1, "who is about to wait learns of it");
        Raw::open("g0").send(&frame);
        assert_eq!(received(&mut port, &[frame]).len(), 1);
        assert_eq!(number(&port, "rx_error"), 150);
    });
}

#[test]
fn another_router_is_kept_out() {
    testnet::run(&[("g0", "r0")], || {
        let _port = port();
        let front = Arc::new(Front::with_luggage(Take::TRANSIT).expect("a front"));
        let refused = open("r0", 1, false, &front).expect_err("it is in use");
        assert!(refused.kind() == ErrorKind::Busy && refused.to_string().contains("another router"));
    });
}

fn programs_at_r0() -> usize {
    tcx_programs(Interface::open("r0").expect("r0").index, TcxSide::Ingress).expect("a list").len()
}

/// Else packets would come to a TAP that is not there any more.
#[test]
fn when_nobody_receives_any_more_the_kernel_has_the_packets() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        assert_eq!(programs_at_r0(), 1);
        let Queue { rx, tx } = port.queues.remove(0);
        let counted = rx.statistics();
        drop(rx);
        assert_eq!(programs_at_r0(), 0, "though it still transmits");
        assert!(counted.list().iter().any(|(name, _)| *name == "tcx_taken"));
        drop(tx);
    });
}

/// What happens until there is a lull.
fn events(port: &mut Port) -> Vec<Event> {
    let of = port.events.as_mut().expect("events");
    let (mut events, mut idle) = (Vec::new(), 0);
    // Messages about other devices are none.
    while idle < 5 {
        let event = of.next(Duration::from_millis(100));
        idle = if event.is_some() { 0 } else { idle + 1 };
        events.extend(event);
    }
    events
}

#[test]
fn the_way_up_is_set_up_again_when_it_was_set_down() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        events(&mut port);
        let (guest, frame) = (Raw::open("g0"), udp_frame(port.mac, 1, 60));
        ip("ip link set above0 down");
        (0..5).for_each(|_| guest.send(&frame));
        receive_until(&mut port, &[("rx_drop_ring_full", 5)]);
        assert_eq!(events(&mut port), [Event::WayUpRestored]);
        assert!(Interface::open("above0").expect("above0").up);
        guest.send(&frame);
        assert_eq!(received(&mut port, &[frame]).len(), 1);
    });
}

#[test]
fn without_the_way_up_the_port_is_gone() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = port();
        events(&mut port);
        ip("ip link set above0 name other");
        assert_eq!((events(&mut port), programs_at_r0()), (vec![], 1), "it is the same one");
        ip("ip link del other");
        assert_eq!(
            (events(&mut port), programs_at_r0()),
            (vec![Event::WayUpGone, Event::Gone, Event::Back], 0)
        );
        let again = self::port();
        assert_eq!(programs_at_r0(), 1, "it can be opened anew");
        drop((port, again));
    });
}

#[test]
fn an_mtu_that_does_not_fit_and_a_port_without_ethernet_are_refused() {
    testnet::run(&[("g0", "r0")], || {
        let front = Arc::new(Front::with_luggage(Take::TRANSIT).expect("a front"));
        ip("ip link set r0 mtu 9000");
        let refused = |name| open(name, 1, false, &front).expect_err("refused");
        assert_eq!(refused("r0").kind(), ErrorKind::MtuTooLarge);
        ip("ip tuntap add dev t0 mode tun");
        assert!(refused("t0").to_string().contains("no Ethernet headers"));
    });
}
