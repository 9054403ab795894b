//! KernelForward on tables made by hand.

use super::*;
use causeway_engine::Persistent;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_fib::{Adjacencies, AdjacencyIndex, Domain, Fib4, Fib6, Table};
use causeway_netio::front::monotonic_ns;
use causeway_packet::{Packet, checksum};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why routes are left to the kernel.
const REASONS: &[&str] = &["local", "blackhole"];
/// Inputs and outputs of the element under test.
const PORTS: usize = 3;

/// Tables of a router with the ports `a`, `b` and `c`, of which the element under test holds `b` and `a`, in this
/// order, and one that has gone.
struct Tables {
    v4: Fib4,
    v6: Fib6,
    neighbours: Adjacencies<Neighbour>,
    forwarding: Arc<Forwarding>,
    lease: Arc<AtomicU64>,
    serial: u32,
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// Inputs and outputs by port of the element under test.
const IN_B: usize = 0;
const IN_A: usize = 1;

fn kernel_output(input: usize) -> usize {
    PORTS - 1 + input
}

const OPEN: PortPolicy =
    PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: false };

impl Tables {
    /// 10.1.0.0/16 and 2001:db8:1::/48 by `a`, 10.2.0.0/16 and 2001:db8:2::/48 by `b`, 10.3.0.0/16 by `c`,
    /// 10.0.0.1 is ours, 10.9.0.0/16 is a blackhole.
    fn new() -> Tables {
        let domain = Domain::new();
        let (v4, v6) = (Fib4::in_domain(&domain).unwrap(), Fib6::in_domain(&domain).unwrap());
        let neighbours = Adjacencies::in_domain(&domain);
        let lease = Arc::new(AtomicU64::new(u64::MAX));
        let names = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let forwarding =
            Arc::new(Forwarding::new(names, REASONS, lease.clone(), (&domain, &v4, &v6, &neighbours)));
        (0..PORTS).for_each(|port| forwarding.set_policy(port, OPEN));
        forwarding.set_flow_hash((1, 0), (1, 0), 0);
        let mut t = Tables { v4, v6, neighbours, forwarding, lease, serial: 0 };
        for (port, v4, v6) in [
            (A, "10.1.0.0/16", "2001:db8:1::/48"),
            (B, "10.2.0.0/16", "2001:db8:2::/48"),
            (C, "10.3.0.0/16", "2001:db8:3::/48"),
        ] {
            let index = t.neighbour(port, 100);
            t.v4.insert(v4.parse().unwrap(), index).unwrap();
            t.v6.insert(v6.parse().unwrap(), index).unwrap();
        }
        let ours = t.left(0, Paths::ours());
        t.v4.insert("10.0.0.1/32".parse().unwrap(), ours).unwrap();
        let hole = t.left(1, Paths::nowhere());
        t.v4.insert("10.9.0.0/16".parse().unwrap(), hole).unwrap();
        let strange = t.left(1, Paths::unknown());
        t.v4.insert("10.8.0.0/16".parse().unwrap(), strange).unwrap();
        t.v6.insert("2001:db8:8::/48".parse().unwrap(), strange).unwrap();
        t
    }

    fn acquire(&mut self, neighbour: Neighbour, paths: Paths) -> AdjacencyIndex {
        self.serial += 1;
        let index = self.neighbours.acquire(Neighbour { serial: self.serial, ..neighbour }).unwrap();
        self.forwarding.set_paths(index, paths);
        index
    }

    /// A neighbour at `port`, whose addresses and mark are its number from 1.
    fn neighbour(&mut self, port: usize, mtu_bytes: u32) -> AdjacencyIndex {
        let n = port as u8 + 1;
        let neighbour = Neighbour {
            port: port as u16,
            reason: 0,
            mtu_bytes,
            addresses: [n; 12],
            mark: n.into(),
            serial: 0,
        };
        self.acquire(neighbour, Paths::unicast([port]))
    }

    fn left(&mut self, reason: u8, paths: Paths) -> AdjacencyIndex {
        let neighbour =
            Neighbour { port: KERNEL, reason, mtu_bytes: 0, addresses: [0; 12], mark: 0, serial: 0 };
        self.acquire(neighbour, paths)
    }

    fn policy(&self, port: usize, policy: PortPolicy) {
        self.forwarding.set_policy(port, policy);
    }

    fn harness(&self) -> Harness {
        self.configured("b, a", PORTS - 1).unwrap()
    }

    fn configured(&self, config: &str, n: usize) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![false; n], outputs: vec![Output::Pushed; 2 * n] };
        let values = Persistent::default();
        values.lock().unwrap().insert(FORWARDING.to_owned(), self.forwarding.clone());
        Harness::with_values(&kernel_forward::SPEC, config, &ports, values)
    }
}

/// A program in the stack would send it; there is nothing that the element could write in front of it.
#[test]
fn what_leaves_without_an_ethernet_header_is_the_kernels() {
    let mut t = Tables::new();
    let bare =
        Neighbour { port: B as u16, reason: 1, mtu_bytes: 100, addresses: [0; 12], mark: 9, serial: 0 };
    let index = t.acquire(bare, Paths::unicast([B]));
    t.v4.insert("10.7.0.0/16".parse().unwrap(), index).unwrap();
    let mut h = t.harness();
    let frame = udp4([10, 1, 0, 2], [10, 7, 0, 1], 60);
    h.push(IN_A, Packet::from_bytes(&frame).unwrap());
    let to_kernel = h.take(kernel_output(IN_A));
    assert_eq!(to_kernel.len(), 1);
    assert_eq!(to_kernel[0].data(), frame, "as it came");
    assert!(!t.forwarding.take_mark(9), "nothing was sent there");
    assert_eq!(h.read_with("lookup", "10.7.0.1").unwrap(), "b");
}

/// A frame to `to` from `from` with a UDP packet of `len` octets.
fn udp4(from: [u8; 4], to: [u8; 4], len: usize) -> Vec<u8> {
    let mut frame = vec![0xee; 14 + len];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..26].copy_from_slice(&[0x45, 0, 0, len as u8, 0, 0, 0, 0, 9, 17, 0, 0]);
    frame[26..30].copy_from_slice(&from);
    frame[30..34].copy_from_slice(&to);
    let sum = checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn udp6(from: &str, to: &str, len: usize) -> Vec<u8> {
    let mut frame = vec![0xee; 14 + len];
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, len as u8 - 40, 17, 9]);
    frame[22..38].copy_from_slice(&from.parse::<std::net::Ipv6Addr>().unwrap().octets());
    frame[38..54].copy_from_slice(&to.parse::<std::net::Ipv6Addr>().unwrap().octets());
    frame
}

/// From a host behind `a` to one behind `b`.
fn a_to_b() -> Vec<u8> {
    udp4([10, 1, 0, 2], [10, 2, 0, 2], 60)
}

fn push(h: &mut Harness, input: usize, frame: &[u8]) {
    h.push(input, Packet::from_bytes(frame).unwrap());
}

/// The output that the frame left by, and as what.
fn pass(h: &mut Harness, input: usize, frame: &[u8]) -> (usize, Vec<u8>) {
    push(h, input, frame);
    let mut left: Vec<(usize, Vec<u8>)> = (0..2 * (PORTS - 1))
        .flat_map(|output| h.take(output).into_iter().map(move |p| (output, p.data().to_vec())))
        .collect();
    assert_eq!(left.len(), 1, "one frame in, one out");
    left.remove(0)
}

/// Why the frame was left to the kernel, exactly as it came.
fn reason(h: &mut Harness, input: usize, frame: &[u8]) -> String {
    let before = h.read("punts").unwrap();
    let (output, bytes) = pass(h, input, frame);
    assert_eq!((output, &bytes[..]), (kernel_output(input), frame), "to the kernel of its input, unchanged");
    let after = h.read("punts").unwrap();
    let new: Vec<&str> = after.lines().filter(|line| !before.lines().any(|b| b == *line)).collect();
    assert_eq!(new.len(), 1, "one reason: {before} then {after}");
    new[0].split(' ').next().unwrap().to_owned()
}

#[test]
fn packets_leave_as_the_next_hop_needs_them() {
    let t = Tables::new();
    let mut h = t.harness();
    // Padding behind the packet does not go on.
    let frame = [a_to_b(), vec![0; 7]].concat();
    let (output, out) = pass(&mut h, IN_A, &frame);
    assert_eq!((output, out.len()), (IN_B, 74));
    assert_eq!(out[..14], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8, 0]);
    assert_eq!((out[22], checksum::verify(&out[14..34])), (8, true));
    assert_eq!((&out[14..22], &out[26..]), (&frame[14..22], &frame[26..74]));

    let frame = udp6("2001:db8:2::2", "2001:db8:1::2", 80);
    let (output, out) = pass(&mut h, IN_B, &frame);
    assert_eq!((output, out[21]), (IN_A, 8));
    assert_eq!((&out[..12], &out[12..21], &out[22..]), (&[1u8; 12][..], &frame[12..21], &frame[22..]));
    assert_eq!(h.read("count").unwrap(), "2");
    assert_eq!(h.read_with("lookup", "10.2.3.4").unwrap(), "b 02:02:02:02:02:02");
    assert_eq!(h.read_with("lookup", "10.9.3.4").unwrap(), "kernel blackhole");
    assert_eq!(h.read_with("lookup", "2001:db8:9::").unwrap(), "none");
    h.assert_balanced();
}

/// Without a check of sources it does not matter whether there is a way back, only that they are not this machine's; of IPv6
/// the kernel does not mind those that are not known either.
#[test]
fn sources_without_a_way_back_are_fine() {
    let t = Tables::new();
    let mut h = t.harness();
    for source in [[10, 9, 0, 1], [11, 0, 0, 1]] {
        assert_eq!(pass(&mut h, IN_A, &udp4(source, [10, 2, 0, 2], 60)).0, IN_B, "{source:?}");
    }
    assert_eq!(pass(&mut h, IN_A, &udp6("2001:db8:8::1", "2001:db8:2::2", 60)).0, IN_B);
    h.assert_balanced();
}

#[test]
fn what_is_the_kernels_goes_there_as_it_came_with_its_reason() {
    let t = Tables::new();
    let mut h = t.harness();
    let to = |to| udp4([10, 1, 0, 2], to, 60);
    let edited = |at: usize, byte: u8| {
        let mut frame = a_to_b();
        frame[at] = byte;
        frame
    };
    // Flags and fragment offset, with the checksum that belongs to them.
    let fragment = |word: u16| {
        let mut frame = a_to_b();
        frame[20..22].copy_from_slice(&word.to_be_bytes());
        frame[24..26].fill(0);
        let sum = !checksum::Sum::new().array::<20>(frame[14..].first_chunk().unwrap()).fold();
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    for whole in [0, 0x4000, 0x8000] {
        assert_eq!(pass(&mut h, IN_A, &fragment(whole)).0, IN_B, "{whole:#x}");
    }
    for (what, frame, want) in [
        ("a first fragment", fragment(0x2000), "bad-header"),
        ("a later fragment", fragment(0x2001), "bad-header"),
        ("a last fragment", fragment(7), "bad-header"),
        ("IPv6 fragment", edited6(20, 44), "bad-header"),
        ("IPv6 hop-by-hop options", edited6(20, 0), "bad-header"),
        ("IPv6 routing header", edited6(20, 43), "bad-header"),
        ("no route", to([11, 0, 0, 1]), "no-route"),
        ("ours", to([10, 0, 0, 1]), "local"),
        ("blackhole", to([10, 9, 0, 1]), "blackhole"),
        ("a port that is not held", to([10, 3, 0, 1]), "other-port"),
        ("longer than the way allows", udp4([10, 1, 0, 2], [10, 2, 0, 2], 101), "too-long"),
        ("back where it came from", to([10, 1, 0, 3]), "redirect"),
        ("from us", udp4([10, 0, 0, 1], [10, 2, 0, 2], 60), "source"),
        ("perhaps from us", udp4([10, 8, 0, 1], [10, 2, 0, 2], 60), "source"),
        ("options", edited(14, 0x46), "bad-header"),
        ("a wrong checksum", edited(25, 0), "bad-header"),
        ("a length beyond the frame", edited(17, 61), "bad-header"),
        ("neither version", edited(13, 6), "bad-header"),
        ("IPv6 back where it came from", udp6("2001:db8:1::2", "2001:db8:1::3", 60), "redirect"),
        ("IPv6 of another version", edited6(14, 0x40), "bad-header"),
        ("IPv6 at its last hop", edited6(21, 1), "bad-header"),
        ("IPv6 longer than the frame", edited6(19, 21), "bad-header"),
        ("neighbour discovery", solicitation(), "bad-header"),
    ] {
        assert_eq!(reason(&mut h, IN_A, &frame), want, "{what}");
    }
    assert_eq!(
        pass(&mut h, IN_A, &udp4([10, 1, 0, 2], [10, 2, 0, 2], 100)).0,
        IN_B,
        "as long as the way allows"
    );
    for len in 0..34 {
        assert_eq!(pass(&mut h, IN_A, &a_to_b()[..len]).0, kernel_output(IN_A));
    }
    h.assert_balanced();
}

fn solicitation() -> Vec<u8> {
    let mut frame = edited6(20, 58);
    frame[54] = 135;
    frame
}

fn edited6(at: usize, byte: u8) -> Vec<u8> {
    let mut frame = udp6("2001:db8:1::2", "2001:db8:2::2", 60);
    frame[at] = byte;
    frame
}

#[test]
fn without_a_lease_everything_is_the_kernels() {
    let t = Tables::new();
    let mut h = t.harness();
    assert_eq!(pass(&mut h, IN_A, &a_to_b()).0, IN_B);
    t.lease.store(0, Ordering::Relaxed);
    assert_eq!(reason(&mut h, IN_A, &a_to_b()), "lease");
    t.lease.store(monotonic_ns() + 10_000_000_000, Ordering::Relaxed);
    assert_eq!(pass(&mut h, IN_A, &a_to_b()).0, IN_B);
    h.advance(20_000_000_000);
    assert_eq!(reason(&mut h, IN_A, &a_to_b()), "lease");
}

#[test]
fn forwarding_is_switched_a_port_and_a_version() {
    let t = Tables::new();
    let mut h = t.harness();
    let six = udp6("2001:db8:1::2", "2001:db8:2::2", 60);
    t.policy(A, PortPolicy { ipv4: false, ..OPEN });
    assert_eq!(reason(&mut h, IN_A, &a_to_b()), "not-forwarding");
    assert_eq!(pass(&mut h, IN_A, &six).0, IN_B);
    t.policy(A, PortPolicy { ipv6: false, ..OPEN });
    assert_eq!(pass(&mut h, IN_A, &a_to_b()).0, IN_B);
    assert_eq!(reason(&mut h, IN_A, &six), "not-forwarding");
    t.policy(A, PortPolicy::default());
    assert_eq!(pass(&mut h, IN_B, &udp4([10, 2, 0, 2], [10, 1, 0, 2], 60)).0, IN_A, "the way in counts");
}

#[test]
fn sources_are_checked_as_the_port_asks() {
    let t = Tables::new();
    let mut h = t.harness();
    let mut allowed = |reverse_path, from| {
        t.policy(A, PortPolicy { reverse_path, ..OPEN });
        let (output, _) = pass(&mut h, IN_A, &udp4(from, [10, 2, 0, 2], 60));
        output == IN_B
    };
    let by_this_port = [10, 1, 7, 7];
    let by_another = [10, 3, 7, 7];
    let (nowhere, discarded, ours) = ([11, 1, 1, 1], [10, 9, 0, 1], [10, 0, 0, 1]);
    use ReversePath::{Loose, Off, Strict};
    for (check, from, want) in [
        (Off, by_this_port, true),
        (Off, by_another, true),
        (Off, nowhere, true),
        (Off, discarded, true),
        (Off, ours, false),
        (Loose, by_this_port, true),
        (Loose, by_another, true),
        (Loose, nowhere, false),
        (Loose, discarded, false),
        (Loose, ours, false),
        (Strict, by_this_port, true),
        (Strict, by_another, false),
        (Strict, nowhere, false),
        (Strict, discarded, false),
        (Strict, ours, false),
    ] {
        assert_eq!(allowed(check, from), want, "{check:?} from {from:?}");
    }
    t.policy(A, PortPolicy { reverse_path: Strict, ..OPEN });
    let six = udp6("2001:db8:3::2", "2001:db8:2::2", 60);
    assert_eq!(pass(&mut h, IN_A, &six).0, IN_B, "IPv6 has no such check");
}

#[test]
fn a_packet_may_return_where_no_redirects_are_sent() {
    let t = Tables::new();
    let mut h = t.harness();
    t.policy(A, PortPolicy { hairpin: true, ..OPEN });
    assert_eq!(pass(&mut h, IN_A, &udp4([10, 1, 0, 2], [10, 1, 0, 3], 60)).0, IN_A);
    assert_eq!(reason(&mut h, IN_A, &udp6("2001:db8:1::2", "2001:db8:1::3", 60)), "redirect");
}

#[test]
fn a_flow_keeps_its_way_and_an_unresolved_way_is_the_kernels() {
    let mut t = Tables::new();
    let (a, b, unresolved) = (t.neighbour(A, 100), t.neighbour(B, 100), t.left(1, Paths::unknown()));
    let group = t.neighbours.group(&[(a, 1), (b, 1), (unresolved, 1)]).unwrap();
    t.v4.insert("0.0.0.0/0".parse().unwrap(), group).unwrap();
    t.policy(A, PortPolicy { hairpin: true, ..OPEN });
    let mut h = t.harness();
    let mut used = HashSet::new();
    for port in 0..60 {
        let mut frame = udp4([10, 1, 0, 2], [12, 0, 0, 2], 60);
        frame[36..38].copy_from_slice(&[0, port]);
        let outputs = [0; 2].map(|_| pass(&mut h, IN_A, &frame).0);
        assert_eq!(outputs[0], outputs[1]);
        used.insert(outputs[0]);
    }
    assert_eq!(used, HashSet::from([IN_A, IN_B, kernel_output(IN_A)]), "flows spread over all ways");
    t.forwarding.set_flow_hash((9, 0), (1, 0), 0);
    assert_eq!(
        reason(&mut h, IN_A, &udp4([10, 1, 0, 2], [12, 0, 0, 2], 60)),
        "flow",
        "a policy of the future"
    );
    assert_eq!(pass(&mut h, IN_A, &a_to_b()).0, IN_B, "one path needs no hash");
}

#[test]
fn neighbours_that_are_used_are_marked() {
    let t = Tables::new();
    let mut h = t.harness();
    assert!(!t.forwarding.take_mark(2));
    push(&mut h, IN_A, &a_to_b());
    assert_eq!([1, 2, 2].map(|mark| t.forwarding.take_mark(mark)), [false, true, false]);
}

#[test]
fn a_mixed_batch_keeps_each_packet_with_its_route() {
    let t = Tables::new();
    let mut h = t.harness();
    let kinds = [
        (a_to_b(), IN_B),
        (udp6("2001:db8:1::2", "2001:db8:2::2", 60), IN_B),
        (udp4([10, 1, 0, 2], [11, 0, 0, 1], 60), kernel_output(IN_A)),
        (vec![7; 60], kernel_output(IN_A)),
    ];
    let numbered = |i: usize| {
        let (mut frame, output) = kinds[(i * 7 + i / 5) % kinds.len()].clone();
        *frame.last_mut().unwrap() = i as u8;
        (frame, output)
    };
    h.push_all(IN_A, (0..200).map(|i| Packet::from_bytes(&numbered(i).0).unwrap()));
    for output in [IN_B, kernel_output(IN_A)] {
        let want: Vec<u8> = (0..200).filter(|&i| numbered(i).1 == output).map(|i| i as u8).collect();
        let got: Vec<u8> = h.take(output).iter().map(|p| *p.data().last().unwrap()).collect();
        assert_eq!(got, want, "output {output}");
    }
    h.assert_balanced();
}

#[test]
fn without_tables_everything_is_the_kernels() {
    let mut h = Harness::new(&kernel_forward::SPEC, "a", 1, 2).unwrap();
    assert!(h.warnings()[0].contains("causeway up"), "{:?}", h.warnings());
    push(&mut h, 0, &a_to_b());
    assert_eq!((h.take(0).len(), h.take(1).len()), (0, 1));
}

#[test]
fn names_may_be_quoted() {
    let t = Tables::new();
    assert!(t.configured("\"b\", 'a'", 2).is_ok());
    assert!(t.configured("\"d,\"", 1).err().unwrap()[0].contains("not for 'd,'"));
}

#[test]
fn bad_configurations_are_named() {
    let t = Tables::new();
    let errors = |config: &str, n| t.configured(config, n).err().unwrap();
    assert!(errors("d", 1)[0].contains("followed for a, b, c, not for 'd'"));
    assert!(errors("a, b", 1)[0].contains("2 interfaces need 2 inputs, and 4 outputs"));
}

proptest! {
    /// Any bytes leave by one output, and those that the kernel gets are as they came.
    #[test]
    fn any_bytes_leave_by_some_output(mut bytes in prop::collection::vec(any::<u8>(), 0..90), kind in 0..4, fix: bool) {
        let t = Tables::new();
        let mut h = t.harness();
        let template = if kind & 1 == 0 { a_to_b() } else { udp6("2001:db8:1::2", "2001:db8:2::2", 60) };
        if kind < 2 {
            // Headers that are nearly right.
            bytes.iter_mut().zip(&template).enumerate().for_each(|(i, (b, t))| {
                if i % 11 != 3 { *b = *t }
            });
        } else if bytes.len() > 14 {
            bytes[12..14].copy_from_slice(&template[12..14]);
        }
        if fix && bytes.len() >= 34 {
            bytes[24..26].fill(0);
            let sum = checksum::checksum(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        let (output, out) = pass(&mut h, IN_A, &bytes);
        if output >= kernel_output(IN_B) {
            prop_assert_eq!(out, bytes);
        } else {
            prop_assert!(out.len() <= bytes.len() && out[14..20] == bytes[14..20]);
        }
        h.assert_balanced();
    }
}
