//! The same judgments of packets of the stack.

use super::checksums::transport;
use super::*;
use crate::interface::Interface;
use crate::{tap, testnet};
use causeway_bpf::{Asm, ProgramKind, Reg, Size, SkbContext, TcxLink, sk_buff};
use causeway_packet::{Batch, Packet};

/// What a packet is marked with that came to the program of the graph.
const SEEN: u8 = 0xaa;

/// A program of a graph: writes the first word of the control buffer, which says what packets are to be cut into, in the place
/// of the Ethernet source, and drops.
fn graph() -> Program {
    let (mut a, data, end) = (Asm::new(), Reg::R7, Reg::R8);
    let short = a.label();
    a.mov(Reg::R6, Reg::R1);
    a.skb_data(Reg::R6, data, end);
    a.xdp_require(data, end, 12, Reg::R2, short);
    a.load(Size::W, Reg::R2, Reg::R6, sk_buff::CB);
    a.store(Size::B, data, 6, i32::from(SEEN));
    a.store(Size::H, data, 8, Reg::R2);
    a.bind(short);
    a.mov(Reg::R0, action::TCX_DROP);
    a.exit();
    Program::load(ProgramKind::SchedCls, "graph", &a.finish().expect("assembled")).expect("loaded")
}

/// A front with a port at tcx whose graph drops what comes to it; none where that is not allowed.
fn port() -> Option<(Arc<Front>, Claim)> {
    let front = match Front::with_graphs(Take::NOTHING) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => {
            eprintln!("skipped: needs root: {e}");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    front.local().insert_v4(LOCAL4).expect("insert");
    front.local().insert_v6(local6()).expect("insert");
    front.lease().renew(u64::MAX);
    front.set_graph(Place::Tcx, LOOPBACK, Some(Arc::new(graph()))).expect("set");
    let port = front.claim_at_tcx(LOOPBACK, Some(MAC)).expect("claimed");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    Some((front, port))
}

/// What becomes of a packet: none if the graph has it, with the length of what it is to be cut into, or why not.
fn judge(port: &Claim, packet: &[u8], gso_size: u32) -> std::result::Result<u16, Reason> {
    let counts = || Reason::ALL.map(|reason| port.count(reason).expect("count"));
    let before = counts();
    let run = port
        .program()
        .test_run_at_tcx(packet, SkbContext { gso_size, ..SkbContext::default() })
        .expect("run");
    let counted: Vec<Reason> = Reason::ALL
        .into_iter()
        .zip(counts())
        .zip(before)
        .filter(|((_, now), before)| now > before)
        .map(|((r, _), _)| r)
        .collect();
    match run.verdict {
        action::TCX_DROP => {
            assert_eq!((run.data[6], &counted[..]), (SEEN, &[][..]));
            Ok(u16::from_ne_bytes([run.data[8], run.data[9]]))
        }
        verdict => {
            assert_eq!((verdict, &run.data[..]), (action::TCX_NEXT, packet), "left to the kernel as it came");
            assert_eq!(counted.len(), 1, "one count a packet, not {counted:?}");
            Err(counted[0])
        }
    }
}

#[test]
fn packets_of_the_stack_are_judged_as_frames_are() {
    let Some((front, port)) = port() else { return };
    // Of what is too short for the header that it says it has, test runs make no packet.
    for (what, frame, want) in
        corpus().into_iter().filter(|(what, frame, _)| frame.len() > 14 && !what.ends_with("cut"))
    {
        let want = if want == Reason::Taken { Ok(0) } else { Err(want) };
        assert_eq!(judge(&port, &frame, 0), want, "{what}");
    }
    let plain = v4(|_| ());
    front.lease().revoke();
    assert_eq!(judge(&port, &plain, 0), Err(Reason::Lease));
    front.lease().renew(u64::MAX);
    front.set_transit(LOOPBACK, Some(MAC), false, true).expect("set");
    assert_eq!(judge(&port, &plain, 0), Err(Reason::NotTaken));
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    front.set_graph(Place::Tcx, LOOPBACK, None).expect("set");
    assert_eq!(judge(&port, &plain, 0), Err(Reason::NotTaken), "without a program for it");
    front.set_graph(Place::Tcx, LOOPBACK, Some(Arc::new(graph()))).expect("set");
    assert_eq!(judge(&port, &plain, 0), Ok(0));
    drop(port);
    let port = front.claim_at_tcx(LOOPBACK, Some(MAC)).expect("claimed again");
    assert_eq!(judge(&port, &plain, 0), Ok(0), "the program is the next port's");
}

/// A super-packet of TCP with a header of so many octets and 3 000 of payload.
fn super_packet(version: u8, header: usize) -> Vec<u8> {
    let ip = if version == 4 { 20 } else { 40 };
    let mut frame = transport(version, 6);
    frame.resize(14 + ip + header + 3_000, 0);
    let length = (frame.len() - 14 - if version == 4 { 0 } else { 40 }) as u16;
    let at = if version == 4 { 16 } else { 18 };
    frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
    frame[14 + ip + 12] = ((header / 4) << 4) as u8;
    frame
}

#[test]
fn of_super_packets_it_is_known_what_they_are_to_be_cut_into() {
    let Some((_front, port)) = port() else { return };
    for (version, ip) in [(4, 20), (6, 40)] {
        for header in [20, 32, 60] {
            let packet = super_packet(version, header);
            assert_eq!(
                judge(&port, &packet, 1_000),
                Ok((ip + header + 1_000) as u16),
                "version {version}, {header}"
            );
            assert_eq!(judge(&port, &packet, 0), Ok(0), "one that is as long");
        }
        let mut fragment = super_packet(version, 20);
        fragment[20] = if version == 4 { 0x20 } else { 44 };
        assert_eq!(judge(&port, &fragment, 1_000), Err(Reason::Transport), "a fragment");
        for protocol in [17, 47, 132] {
            let mut packet = super_packet(version, 20);
            packet[if version == 4 { 23 } else { 20 }] = protocol;
            assert_eq!(judge(&port, &packet, 1_000), Err(Reason::Transport), "protocol {protocol}");
        }
    }
}

#[test]
fn counters_of_ports_at_tcx_are_named_so() {
    let names: Vec<&str> =
        Reason::ALL.iter().filter(|r| r.is_of(Place::Tcx)).map(|r| r.name(Place::Tcx)).collect();
    let (others, passes): (Vec<&str>, _) = names.iter().partition(|name| !name.starts_with("tcx_pass_"));
    assert!(
        others == ["tcx_taken", "tcx_drop_no_room", "tcx_drop_half_done"] && passes.len() > 10,
        "{names:?}"
    );
    assert!(!names.contains(&"tcx_pass_no_socket"), "there are none");
    assert_eq!(Reason::Taken.name(Place::Xdp), "xdp_taken");
}

#[test]
fn padding_is_cut_off_before_the_graph_and_of_super_packets_by_nobody() {
    let Some((_front, port)) = port() else { return };
    for plain in [v4(|_| ()), v6(|_| ())] {
        let padded = [&plain[..], &[0; 6]].concat();
        let run = port.program().test_run_at_tcx(&padded, SkbContext::default()).expect("run");
        assert_eq!((run.verdict, run.data.len()), (action::TCX_DROP, plain.len()));
    }
    let padded = [super_packet(4, 20), vec![0; 6]].concat();
    assert_eq!(judge(&port, &padded, 1_000), Err(Reason::GivenUp), "it would be none any more");
}

/// A port at tcx on `r0`, whose graph drops what comes to it, and its Ethernet address.
fn at_r0() -> (Claim, TcxLink, [u8; 6]) {
    let front = Arc::new(Front::with_graphs(Take::NOTHING).expect("a front"));
    front.lease().renew(u64::MAX);
    let Interface { index, mac, .. } = Interface::open("r0").expect("r0");
    front.set_graph(Place::Tcx, index, Some(Arc::new(graph()))).expect("set");
    front.set_transit(index, Some(mac), true, true).expect("set");
    let port = front.claim_at_tcx(index, Some(mac)).expect("claimed");
    let link = port.attach_at_tcx("r0").expect("attached");
    (port, link, mac)
}

/// Waits for a packet that is the kernel's for this reason; all others were the graph's.
fn assert_one(port: &Claim, reason: Reason) {
    let counted = |reason| port.count(reason).expect("count");
    let came = (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        counted(reason) > 0
    });
    assert!(came, "{:?}", Reason::ALL.map(counted));
    assert_eq!(Reason::ALL.map(counted).iter().sum::<u64>(), 1, "the others are the graph's");
}

/// TUN stands for what comes without an Ethernet header. What is no IP packet at all a TUN does not take.
#[test]
fn packets_without_an_ethernet_header_are_judged_as_those_with_one_are() {
    testnet::run(&[], || {
        let mut tun = tap::open("t0", tap::Kind::Tun, 1).expect("t0");
        let front = Arc::new(Front::with_graphs(Take::NOTHING).expect("a front"));
        front.local().insert_v4(LOCAL4).expect("insert");
        front.local().insert_v6(local6()).expect("insert");
        front.lease().renew(u64::MAX);
        let index = Interface::open("t0").expect("t0").index;
        front.set_graph(Place::Tcx, index, Some(Arc::new(graph()))).expect("set");
        front.set_transit(index, None, true, true).expect("set");
        let port = front.claim_at_tcx(index, None).expect("claimed");
        let _link = port.attach_at_tcx("t0").expect("attached");
        let counts = || Reason::ALL.map(|reason| port.count(reason).expect("count"));
        let mut judged = 0;
        for (what, frame, want) in corpus() {
            let version = match (frame.get(12..14), frame.get(14).map(|first| first >> 4)) {
                (Some([0x08, 0x00]), Some(4)) | (Some([0x86, 0xdd]), Some(6)) => frame[..6] == MAC,
                _ => false,
            };
            if !version {
                continue;
            }
            let before = counts();
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&frame[14..]));
            tun.queues[0].tx.offer(&mut batch);
            let counted = Reason::ALL.into_iter().zip(counts()).zip(before);
            let counted: Vec<Reason> =
                counted.filter(|((_, now), was)| now > was).map(|((r, _), _)| r).collect();
            let expected = if want == Reason::Taken { vec![] } else { vec![want] };
            assert_eq!(counted, expected, "{what}");
            judged += 1;
        }
        assert!(judged > 40, "{judged}");
    });
}

/// A frame with a VLAN tag.
fn tagged(frame: &[u8]) -> Vec<u8> {
    let mut tagged = frame.to_vec();
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    tagged
}

/// The stack has taken the tag off by then, and only says that there was one.
#[test]
fn packets_of_a_vlan_are_the_kernels() {
    testnet::run(&[("g0", "r0")], || {
        let (port, _link, mac) = at_r0();
        let host = testnet::Raw::open("g0");
        let plain = testnet::udp_frame(mac, 7, 60);
        host.send(&plain);
        host.send(&tagged(&plain));
        assert_one(&port, Reason::Vlan);
    });
}

/// Of what is longer than a page the stack has nothing but the Ethernet header where programs read.
#[test]
fn headers_are_read_that_lie_in_pages() {
    testnet::run(&[("g0", "r0")], || {
        ["g0", "r0"].iter().for_each(|name| drop(testnet::ip(&format!("ip link set dev {name} mtu 9000"))));
        let (port, _link, mac) = at_r0();
        let host = testnet::Raw::open("g0");
        let long = testnet::udp_frame(mac, 7, 8_000);
        host.send(&long);
        let mut six = long.clone();
        six[12..14].copy_from_slice(&[0x86, 0xdd]);
        six[14..54].copy_from_slice(&v6(|p| (p[4], p[5]) = (0x1f, 0))[14..54]);
        host.send(&six);
        host.send(&tagged(&testnet::udp_frame(mac, 7, 60)));
        assert_one(&port, Reason::Vlan);
    });
}

/// The stack is to put a checksum where the packet's length says that there is nothing any more.
#[test]
fn what_the_stack_does_not_cut_is_the_kernels() {
    testnet::run(&[("g0", "r0")], || {
        let (port, _link, mac) = at_r0();
        let host = testnet::Raw::open("g0");
        let mut frame = testnet::udp_frame(mac, 7, 60);
        frame[16..18].copy_from_slice(&24u16.to_be_bytes());
        host.send_unfinished(&frame, 34, 6);
        assert_one(&port, Reason::GivenUp);
    });
}

/// A list of segments (SCTP's) is none any more once something is put in front of the first.
#[test]
fn what_is_cut_by_a_list_goes_up_past_the_graph() {
    let front = match Front::with_luggage(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.set_graph(Place::Tcx, LOOPBACK, Some(Arc::new(graph()))).expect("set");
    let port = front.claim_all_at_tcx(LOOPBACK, LOOPBACK).expect("claimed");
    let mut packet = super_packet(4, 20);
    packet[23] = 132;
    for (gso_size, verdict, taken) in
        [(1_000, action::TCX_DROP, 0), (0xffff, action::TCX_REDIRECT, 1), (0xfffe, action::TCX_DROP, 1)]
    {
        let run = port.program().test_run_at_tcx(&packet, SkbContext { gso_size, ..SkbContext::default() });
        assert_eq!((run.expect("run").verdict, port.count(Reason::Taken).expect("count")), (verdict, taken));
    }
}
