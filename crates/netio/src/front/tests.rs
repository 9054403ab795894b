//! One corpus, two machines: the interpreter always, the kernel where it lets us.

mod arrivals;
mod at_tcx;
mod checksums;
mod graphs;
mod losses;

use super::code::near;
use super::local::{FILTER_BYTES, bit, place};
use super::*;
use crate::ErrorKind;
use causeway_bpf::interp::{self, FakeMap};
use causeway_bpf::{Code, Program, action};
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

const MAC: [u8; 6] = [2, 0x11, 0x22, 0x33, 0x44, 0x55];
const LOCAL4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn local6() -> Ipv6Addr {
    "2001:db8::1".parse().expect("an address")
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&MAC[..], &[2, 0, 0, 0, 0, 9], &ethertype.to_be_bytes(), payload].concat()
}

/// A UDP packet of 40 bytes from 192.0.2.9, changed by `edit`.
fn v4(edit: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut p = vec![0u8; 40];
    p[0] = 0x45;
    p[3] = 40;
    p[8] = 64;
    p[9] = 17;
    p[12..16].copy_from_slice(&[192, 0, 2, 9]);
    p[16..20].copy_from_slice(&[198, 51, 100, 7]);
    edit(&mut p);
    ethernet(0x0800, &p)
}

/// A UDP packet of 60 bytes from 2001:db8:9::9, changed by `edit`.
fn v6(edit: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut p = vec![0u8; 60];
    p[0] = 0x60;
    p[5] = 20;
    p[6] = 17;
    p[7] = 64;
    p[8..24].copy_from_slice(&"2001:db8:9::9".parse::<Ipv6Addr>().expect("an address").octets());
    p[24..40].copy_from_slice(&"2001:db8:7::7".parse::<Ipv6Addr>().expect("an address").octets());
    edit(&mut p);
    ethernet(0x86dd, &p)
}

fn edited(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

fn v4_to(dst: [u8; 4]) -> Vec<u8> {
    v4(|p| p[16..20].copy_from_slice(&dst))
}

fn v6_at(field: usize, address: &str) -> Vec<u8> {
    v6(|p| p[field..field + 16].copy_from_slice(&address.parse::<Ipv6Addr>().expect("an address").octets()))
}

/// `(what, frame, reason)`.
fn corpus() -> Vec<(&'static str, Vec<u8>, Reason)> {
    use Reason::*;
    let mut corpus = vec![
        ("plain IPv4", v4(|_| ()), Taken),
        ("plain IPv6", v6(|_| ()), Taken),
        ("padded to 60 bytes", [v4(|_| ()), vec![0; 6]].concat(), Taken),
        ("IPv4 TTL 2", v4(|p| p[8] = 2), Taken),
        ("IPv4 next to a local address", v4_to([10, 0, 0, 2]), Taken),
        ("IPv4 later fragment", v4(|p| p[7] = 1), Taken),
        ("IPv6 fragment", v6(|p| p[6] = 44), Taken),
        ("IPv6 no next header", v6(|p| p[6] = 59), Taken),
        ("ethertype ARP", ethernet(0x0806, &[0; 28]), Arp),
        ("802.1Q", ethernet(0x8100, &[0; 46]), Vlan),
        ("802.1ad", ethernet(0x88a8, &[0; 46]), Vlan),
        ("LLDP", ethernet(0x88cc, &[0; 46]), NonIp),
        (
            "broadcast",
            {
                let mut f = v4(|_| ());
                f[..6].fill(0xff);
                f
            },
            EthernetGroup,
        ),
        ("IPv6 group", edited(v6(|_| ()), 0, 0x33), EthernetGroup),
        ("other host, high part", edited(v4(|_| ()), 1, 0x12), OtherHost),
        ("other host, low part", edited(v4(|_| ()), 5, 0x56), OtherHost),
        ("bare Ethernet header", ethernet(0x0800, &[]), Malformed),
        ("IPv4 header cut", ethernet(0x0800, &v4(|_| ())[14..33]), Malformed),
        ("IPv4 version 6", v4(|p| p[0] = 0x65), Malformed),
        ("IPv4 header of 16 bytes", v4(|p| p[0] = 0x44), Malformed),
        ("IPv4 total length 19", v4(|p| p[3] = 19), Malformed),
        ("IPv4 total length beyond the frame", v4(|p| p[3] = 41), Malformed),
        ("IPv4 options", v4(|p| p[0] = 0x46), IpOptions),
        ("IPv4 TTL 1", v4(|p| p[8] = 1), Ttl),
        ("IPv4 TTL 0", v4(|p| p[8] = 0), Ttl),
        ("IPv4 local", v4_to(LOCAL4.octets()), Local),
        ("IPv4 multicast", v4_to([224, 0, 0, 5]), SpecialAddress),
        ("IPv4 limited broadcast", v4_to([255; 4]), SpecialAddress),
        ("IPv4 loopback", v4_to([127, 0, 0, 1]), SpecialAddress),
        ("IPv4 this network", v4_to([0, 0, 0, 1]), SpecialAddress),
        ("IPv4 link-local", v4_to([169, 254, 1, 1]), SpecialAddress),
        ("IPv4 source multicast", v4(|p| p[12] = 224), SpecialAddress),
        ("IPv6 header cut", ethernet(0x86dd, &v6(|_| ())[14..53]), Malformed),
        ("IPv6 version 4", v6(|p| p[0] = 0x40), Malformed),
        ("IPv6 payload beyond the frame", v6(|p| p[5] = 21), Malformed),
        ("IPv6 hop-by-hop", v6(|p| p[6] = 0), ExtensionHeader),
        // The stack goes by the length that such a header says.
        ("IPv6 hop-by-hop and no length", v6(|p| (p[5], p[6]) = (0, 0)), ExtensionHeader),
        ("IPv6 routing", v6(|p| p[6] = 43), ExtensionHeader),
        ("IPv6 destination options", v6(|p| p[6] = 60), ExtensionHeader),
        ("IPv6 hop limit 1", v6(|p| p[7] = 1), Ttl),
        ("IPv6 local", v6_at(24, "2001:db8::1"), Local),
        ("IPv6 multicast", v6_at(24, "ff02::5"), SpecialAddress),
        ("IPv6 link-local", v6_at(24, "fe80::1"), SpecialAddress),
        ("IPv6 link-local, top of the range", v6_at(24, "febf::1"), SpecialAddress),
        ("IPv6 after link-local", v6_at(24, "fec0::1"), Taken),
        ("IPv6 loopback", v6_at(24, "::1"), SpecialAddress),
        ("IPv6 zero upper half only", v6_at(24, "::1:0:0:1"), Taken),
        ("IPv6 mapped IPv4", v6_at(24, "::ffff:192.0.2.1"), SpecialAddress),
        ("IPv6 source unspecified", v6_at(8, "::"), SpecialAddress),
        ("IPv6 source link-local", v6_at(8, "fe80::2"), SpecialAddress),
    ];
    // RFC 4302, 6275, 7401, 5533, 3692.
    for header in [51, 135, 139, 140, 253, 254] {
        corpus.push(("IPv6 and another extension header", v6(|p| p[6] = header), ExtensionHeader));
    }
    corpus
}

/// Stand-ins for descriptors: numbers of the interpreter's maps. They are never used as descriptors.
const SOCKETS: i32 = 1;
const COUNTERS: i32 = 2;
const LOCAL4_FD: i32 = 3;
const LOCAL6_FD: i32 = 4;
const PORTS_FD: i32 = 5;
const LEASE: i32 = 6;
const LOCAL_FILTER: i32 = 7;
const NEAR_FD: i32 = 8;

/// The port's queues, and the one among them that has a socket.
const QUEUES: u32 = 4;
const WITH_SOCKET: u32 = 3;
const FIRST_SOCKET: u32 = 40;
const FIRST_COUNTER: u32 = 100;
const DEADLINE_NS: u64 = 1_000;
const LONGEST: u32 = 1_792;

fn rules(take: Take) -> Rules {
    Rules { mac: Some(MAC), take, partial_checksums: false }
}

const GUARDED: Rules = Rules { mac: Some(MAC), take: Take::TRANSIT, partial_checksums: true };

fn fake_code() -> Code {
    // SAFETY: only the number is read; no system call sees it.
    let fake = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
    let maps = Maps {
        ports: fake(PORTS_FD),
        near: fake(NEAR_FD),
        sockets: fake(SOCKETS),
        counters: fake(COUNTERS),
        lease: fake(LEASE),
        local4: fake(LOCAL4_FD),
        local6: fake(LOCAL6_FD),
        local_filter: fake(LOCAL_FILTER),
        graphs: None,
        luggage: false,
        arrivals: false,
    };
    code(&maps, Place::Xdp).expect("assembled")
}

/// Runs the program in the interpreter on a port with `rules`: the verdict and the reason counted.
fn interpret(rules: Rules, frame: &[u8], queue: u32) -> (i32, Reason) {
    interpret_at(DEADLINE_NS, rules, frame, queue)
}

fn interpret_at(now_ns: u64, rules: Rules, frame: &[u8], queue: u32) -> (i32, Reason) {
    let map = |key_size, entries: Vec<(Vec<u8>, Vec<u8>)>| FakeMap {
        key_size,
        entries: entries.into_iter().map(|(k, v)| (k, v.into())).collect::<HashMap<_, _>>(),
    };
    let word = |n: u32| n.to_ne_bytes().to_vec();
    let record = PortRecord {
        first_socket: FIRST_SOCKET,
        queues: QUEUES,
        first_counter: FIRST_COUNTER,
        longest: LONGEST,
        rules,
        graph: 0,
        place: Place::Xdp,
        bare: false,
        above: 0,
    };
    // Another port's socket stands behind the last queue, and its counters around those of this port.
    let sockets = [FIRST_SOCKET + WITH_SOCKET, FIRST_SOCKET + QUEUES].map(|n| (word(n), vec![0; 4]));
    let zeros = (0..200).map(|n| (word(n), vec![0; 8])).collect();
    let mut filter = vec![0; FILTER_BYTES];
    for octets in [&LOCAL4.octets()[..], &local6().octets()] {
        let (word, mask) = place(bit(octets));
        filter[word..word + 8].copy_from_slice(&mask.to_ne_bytes());
    }
    interp::set_now_ns(now_ns);
    interp::set_maps([
        (PORTS_FD, map(4, vec![(word(interp::IFINDEX), record.to_bytes().to_vec())])),
        (SOCKETS, map(4, sockets.to_vec())),
        (COUNTERS, map(4, zeros)),
        (LEASE, map(4, vec![(word(0), DEADLINE_NS.to_ne_bytes().to_vec())])),
        (LOCAL4_FD, map(4, vec![(LOCAL4.octets().to_vec(), vec![1; 4])])),
        (LOCAL6_FD, map(16, vec![(local6().octets().to_vec(), vec![1; 4])])),
        (LOCAL_FILTER, map(4, vec![(word(0), filter)])),
        (NEAR_FD, map(4, vec![(word(0), vec![0; near::BYTES])])),
    ]);
    let (verdict, after) = interp::run_xdp(&fake_code(), frame, queue).expect("interpreted");
    assert_eq!(after, frame, "the program must not write to the frame");
    let counted = |n: &u32| interp::map_value(COUNTERS, &word(*n)).is_some_and(|v| v[0] == 1);
    let counted: Vec<u32> = (0..200).filter(counted).collect();
    assert_eq!(counted.len(), 1, "one count a frame, not {counted:?}");
    let reason = Reason::ALL.into_iter().find(|r| *r as u32 + FIRST_COUNTER == counted[0]);
    (verdict, reason.expect("a counter of this port"))
}

#[test]
fn corpus_in_the_interpreter() {
    for (what, frame, want) in corpus() {
        let (verdict, reason) = interpret(rules(Take::TRANSIT), &frame, WITH_SOCKET);
        assert_eq!(reason, want, "{what}");
        let pass = if want == Reason::Taken { action::XDP_REDIRECT } else { action::XDP_PASS };
        assert_eq!(verdict, pass, "{what}");
    }
    for queue in [0, QUEUES] {
        let got = interpret(rules(Take::TRANSIT), &v4(|_| ()), queue);
        assert_eq!(got, (action::XDP_PASS, Reason::NoSocket), "queue {queue}");
    }
}

#[test]
fn a_lease_that_has_run_out_leaves_transit_to_the_kernel() {
    for frame in [v4(|_| ()), v6(|_| ())] {
        let at = |now_ns, take| interpret_at(now_ns, rules(take), &frame, WITH_SOCKET);
        assert_eq!(at(DEADLINE_NS, Take::TRANSIT).1, Reason::Taken);
        assert_eq!(at(DEADLINE_NS + 1, Take::TRANSIT), (action::XDP_PASS, Reason::Lease));
        assert_eq!(at(DEADLINE_NS + 1, Take::All).1, Reason::Taken, "the graph's own interface needs none");
    }
}

#[test]
fn only_the_versions_that_are_forwarded_are_taken() {
    let of = |frame: &[u8], ipv4, ipv6| interpret(rules(Take::Transit { ipv4, ipv6 }), frame, WITH_SOCKET).1;
    let (four, six) = (v4(|_| ()), v6(|_| ()));
    assert_eq!((of(&four, true, false), of(&six, true, false)), (Reason::Taken, Reason::NotTaken));
    assert_eq!((of(&four, false, true), of(&six, false, true)), (Reason::NotTaken, Reason::Taken));
}

#[test]
fn frames_that_no_socket_could_take_are_passed() {
    let long = |len: u32| [v4(|_| ()), vec![0; len as usize - 54]].concat();
    for take in [Take::TRANSIT, Take::All] {
        assert_eq!(interpret(rules(take), &long(LONGEST), WITH_SOCKET).1, Reason::Taken);
        let got = interpret(rules(take), &long(LONGEST + 1), WITH_SOCKET);
        assert_eq!(got, (action::XDP_PASS, Reason::TooLong));
    }
}

#[test]
fn taking_all() {
    for (what, frame, _) in corpus() {
        let got = interpret(rules(Take::All), &frame, WITH_SOCKET);
        assert_eq!(got, (action::XDP_REDIRECT, Reason::Taken), "{what}");
    }
}

/// A front, or none where that is not allowed.
fn front() -> Option<Arc<Front>> {
    match Front::new(Take::NOTHING) {
        Ok(front) => Some(Arc::new(front)),
        Err(e) if e.kind() == ErrorKind::Privilege => {
            eprintln!("skipped: needs root: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// The loopback interface, which test runs come in by.
const LOOPBACK: u32 = 1;

#[test]
fn corpus_in_the_kernel() {
    let Some(front) = front() else { return };
    front.local().insert_v4(LOCAL4).expect("insert");
    front.local().insert_v6(local6()).expect("insert");
    front.lease().renew(u64::MAX);
    let other = front.claim(12, 3, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    let run = |frame: &[u8]| port.program().test_run(frame, None, 1).expect("run").verdict;
    let count = |reason| port.count(reason).expect("count");
    run(&v4(|_| ()));
    assert_eq!(count(Reason::NotTaken), 1, "nothing is taken until somebody says what");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    for (what, frame, want) in corpus() {
        // Without a socket, "to be taken" shows as its own reason.
        let want = if want == Reason::Taken { Reason::NoSocket } else { want };
        let before = count(want);
        assert_eq!(run(&frame), action::XDP_PASS, "{what}");
        assert_eq!(count(want), before + 1, "{what}: {want:?}");
    }
    let before = count(Reason::NoSocket);
    assert!(front.local().remove_v4(LOCAL4).expect("remove"));
    run(&v4_to(LOCAL4.octets()));
    assert!(front.local().remove_v6(local6()).expect("remove"));
    run(&v6_at(24, "2001:db8::1"));
    assert_eq!(count(Reason::NoSocket), before + 2, "removed addresses are in transit");
    let before = before + 1;
    // Programs see the time of the last tick.
    front.lease().renew(monotonic_ns() - 1_000_000_000);
    run(&v4(|_| ()));
    front.lease().renew(monotonic_ns() + 60_000_000_000);
    run(&v4(|_| ()));
    front.lease().revoke();
    run(&v4(|_| ()));
    assert_eq!((count(Reason::Lease), count(Reason::NoSocket)), (2, before + 2));
    front.set_transit(LOOPBACK, Some([2; 6]), true, true).expect("set");
    let strangers = count(Reason::OtherHost);
    run(&v4(|_| ()));
    assert_eq!(count(Reason::OtherHost), strangers + 1, "the interface has another address now");
    assert!(Reason::ALL.iter().all(|&r| other.count(r).expect("count") == 0), "counters are a port's own");
    let _first = front.claim(0, 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    assert_eq!(front.count_all(Reason::OtherHost), strangers + 1, "those of all ports together");
}

/// Records are near or in the hash alone, and change more often than there are places for near ones.
#[test]
fn a_ports_record_is_found_whoever_has_its_place() {
    let Some(front) = front() else { return };
    front.lease().renew(u64::MAX);
    let claim = |ifindex| front.claim(ifindex, 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    let there = |port: &Claim, reason| {
        let before = port.count(reason).expect("count");
        port.program().test_run(&v4(|_| ()), None, 1).expect("run");
        port.count(reason).expect("count") == before + 1
    };
    let neighbour = LOOPBACK + near::WORDS;
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    for first in [Some(claim(neighbour)), None] {
        let port = claim(LOOPBACK);
        if first.is_none() {
            front.ports.forget_far(LOOPBACK);
            assert!(there(&port, Reason::NoSocket), "it is found near");
        }
        let second = first.is_none().then(|| claim(neighbour));
        for round in 0..600u32 {
            let other = [2, 0, 0, 0, (round >> 8) as u8, round as u8];
            front.set_transit(LOOPBACK, Some(other), true, true).expect("set");
            assert!(there(&port, Reason::OtherHost), "round {round}");
            front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
            assert!(there(&port, Reason::NoSocket), "round {round}");
        }
        let count = |port: &Option<Claim>| port.as_ref().map_or(0, |p| p.count(Reason::NoSocket).unwrap());
        assert_eq!((count(&first), count(&second)), (0, 0), "the neighbour had no frames");
        drop(port);
        drop(first);
        // Nothing is found of a port that is gone.
        let other = second.unwrap_or_else(|| claim(neighbour));
        let run = other.program().test_run(&v4(|_| ()), None, 1).expect("run");
        assert_eq!((run.verdict, front.count_all(Reason::NoSocket)), (action::XDP_PASS, 0));
    }
}

#[test]
fn claims_come_and_go() {
    let Some(front) = front() else { return };
    let claim = |ifindex, queues| front.claim(ifindex, queues, LONGEST, rules(Take::All));
    let first = claim(LOOPBACK, 4_000).expect("room");
    assert_eq!(claim(LOOPBACK, 1).expect_err("twice").kind(), ErrorKind::Busy);
    assert_eq!(claim(3, 97).expect_err("no room").kind(), ErrorKind::Unsupported);
    let second = claim(3, 96).expect("room for 96 more");
    first.program().test_run(&v4(|_| ()), None, 1).expect("run");
    assert_eq!(first.count(Reason::NoSocket).expect("count"), 1);
    drop(first);
    assert_eq!(second.program().test_run(&v4(|_| ()), None, 1).expect("run").verdict, action::XDP_PASS);
    let again = claim(LOOPBACK, 4_000).expect("room again");
    assert_eq!(again.count(Reason::NoSocket).expect("count"), 0, "counts begin anew");
    front.set_transit(LOOPBACK, Some(MAC), false, false).expect("ignored");
    again.program().test_run(&v4(|_| ()), None, 1).expect("run");
    assert_eq!(again.count(Reason::NoSocket).expect("count"), 1, "who takes all goes on to");
}

#[test]
fn a_port_has_nothing_of_what_an_earlier_one_was_given() {
    let Some(front) = front() else { return };
    front.lease().renew(u64::MAX);
    let claim = |take| front.claim(LOOPBACK, QUEUES, LONGEST, rules(take)).expect("claimed");
    let run = |port: &Claim| port.program().test_run(&v4(|_| ()), None, 1).expect("run").verdict;
    let socket = graphs::socket();
    let first = claim(Take::All);
    first.set_socket(0, socket.as_fd()).expect("set");
    assert_eq!(run(&first), action::XDP_REDIRECT);
    drop(first);
    let second = claim(Take::All);
    assert_eq!(run(&second), action::XDP_PASS, "the socket is there still, and not this one's");
    drop(second);
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    front.set_transit(LOOPBACK, Some(MAC), false, false).expect("set");
    let third = claim(Take::TRANSIT);
    run(&third);
    assert_eq!(third.count(Reason::NotTaken).expect("count"), 1, "it is not to take any more");
}

proptest! {
    /// Whatever the bytes: one verdict, one count, and never a frame that is not to us.
    #[test]
    fn any_bytes(mut frame in proptest::collection::vec(any::<u8>(), 14..200), ours: bool, guarded: bool, ethertype in 0usize..4) {
        if ours {
            frame[..6].copy_from_slice(&MAC);
        }
        if let Some(e) = [[8, 0], [0x86, 0xdd], [8, 6]].get(ethertype) {
            frame[12..14].copy_from_slice(e);
        }
        let rules = if guarded { GUARDED } else { rules(Take::TRANSIT) };
        let (verdict, reason) = interpret(rules, &frame, WITH_SOCKET);
        prop_assert_eq!(verdict == action::XDP_REDIRECT, reason == Reason::Taken);
        prop_assert!(ours || frame[..6] == MAC || reason != Reason::Taken);
    }
}
