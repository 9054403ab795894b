//! What is lost behind a program that redirects.

use super::graphs::socket;
use super::*;
use crate::interface::Interface;
use crate::testnet;
use causeway_bpf::{Asm, Helper, ProgramKind, Reg, XdpContext, XdpLink, XdpMode};
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

/// To all entries of a map of devices.
const BROADCAST: i32 = 8;
/// As many as a veth's ring holds.
const FRAMES: u32 = 256;

/// Redirects every frame to entry 0.
fn redirecting(to: &Map, flags: i32) -> Program {
    let mut a = Asm::new();
    a.map(Reg::R1, to.as_fd());
    a.mov(Reg::R2, 0);
    a.mov(Reg::R3, flags);
    a.call(Helper::RedirectMap);
    a.exit();
    Program::load(ProgramKind::Xdp, "redirect", &a.finish().expect("assembled")).expect("loaded")
}

#[test]
fn frames_that_are_lost_behind_a_redirect_are_counted_at_their_port() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let index = |name| Interface::open(name).expect(name).index;
        let front = Arc::new(Front::with_graphs(Take::TRANSIT).expect("a front"));
        assert!(front.why_losses_are_unknown().is_none(), "{:?}", front.why_losses_are_unknown());
        let port = front.claim(index("r0"), 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        let other = front.claim(index("r1"), 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        let counts = || [Reason::Redirect, Reason::Transmit].map(|reason| port.count(reason).expect("count"));
        let devices = Map::new(causeway_bpf::MapKind::DevMap, "devices", 4, 4, 2).expect("a map");
        devices.insert_u32(0, index("r1")).expect("a device");
        let context = XdpContext { ingress_ifindex: index("r0"), rx_queue_index: 0 };
        let run = |flags| {
            redirecting(&devices, flags).run_live(&[0; 60], context, FRAMES, FRAMES).expect("run");
        };
        run(0);
        assert_eq!(counts(), [FRAMES.into(), 0], "the other end is not ready");
        let _ready = testnet::pass_program("s0");
        run(0);
        assert_eq!(counts(), [FRAMES.into(), 0], "all are taken");
        // Each frame twice, which is more than the ring holds before its other end runs.
        devices.insert_u32(1, index("r1")).expect("a device");
        run(BROADCAST);
        assert_eq!(counts(), [FRAMES.into(), FRAMES.into()]);
        assert_eq!(other.count(Reason::Transmit).expect("count"), 0, "nothing came in there");
    });
}

#[test]
fn frames_that_a_full_device_does_not_take_from_the_stack_are_counted_at_its_port() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let index = |name| Interface::open(name).expect(name).index;
        let front = Arc::new(Front::with_graphs(Take::TRANSIT).expect("a front"));
        let port = front.claim(index("r0"), 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        let other = front.claim(index("r1"), 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        let _ready = testnet::pass_program("s0");
        // Without a queue before it the device drops by itself, and counts that.
        testnet::ip("tc qdisc add dev r1 root pfifo");
        // One frame is many at once, which is more than the ring holds before its other end runs.
        let devices = Map::new(causeway_bpf::MapKind::DevMap, "devices", 4, 4, 2 * FRAMES).expect("a map");
        (0..2 * FRAMES).for_each(|entry| devices.insert_u32(entry, index("r1")).expect("a device"));
        let program = redirecting(&devices, BROADCAST);
        let _link = XdpLink::attach(&program, "r0", index("r0"), XdpMode::Generic).expect("attached");
        testnet::Raw::open("g0").send(&testnet::udp_frame([2; 6], 1, 60));
        let lost = || other.count(Reason::Transmit).expect("count");
        (0..500).take_while(|_| lost() != FRAMES.into()).for_each(|_| sleep(Duration::from_millis(2)));
        assert_eq!(lost(), FRAMES.into());
        assert_eq!(port.count(Reason::Transmit).expect("count"), 0);
    });
}

/// Redirects frames that have come in by `r0` of this namespace.
fn redirect(to: &Map) {
    let ingress_ifindex = Interface::open("r0").expect("r0").index;
    let context = XdpContext { ingress_ifindex, rx_queue_index: 0 };
    redirecting(to, 0).run_live(&[0; 60], context, FRAMES, FRAMES).expect("run");
}

/// A map whose entry 0 is `r1` of this namespace.
fn to_r1() -> Map {
    let devices = Map::new(causeway_bpf::MapKind::DevMap, "devices", 4, 4, 1).expect("a map");
    devices.insert_u32(0, Interface::open("r1").expect("r1").index).expect("a device");
    devices
}

#[test]
fn frames_that_others_lose_are_not_counted() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let front = Arc::new(Front::with_graphs(Take::TRANSIT).expect("a front"));
        let index = Interface::open("r0").expect("r0").index;
        let port = front.claim(index, 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        let counts = || [Reason::Redirect, Reason::Transmit].map(|reason| port.count(reason).expect("count"));
        // Nobody has bound it, so it takes none; a socket's losses are told by its own counters.
        let sockets = Map::new(causeway_bpf::MapKind::XskMap, "sockets", 4, 4, 1).expect("a map");
        let socket = socket();
        sockets.insert_u32(0, socket.as_raw_fd() as u32).expect("a socket");
        redirect(&sockets);
        assert_eq!(counts(), [0, 0]);
        // Interfaces with the same indices, in another namespace.
        testnet::elsewhere(&[("g0", "r0"), ("s0", "r1")], move || {
            assert_eq!(Interface::open("r0").expect("r0").index, index);
            redirect(&to_r1());
        });
        assert_eq!(counts(), [0, 0]);
        redirect(&to_r1());
        assert_eq!(counts(), [FRAMES.into(), 0]);
    });
}
