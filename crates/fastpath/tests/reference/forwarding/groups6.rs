//! Groups of IPv6: each flow takes the same member in all ways.

use super::ways::{Ways4, Went};
use super::*;
use std::collections::BTreeMap;

const OPEN: PortPolicy = PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: true };
/// Flows sent to a group.
const FLOWS: u32 = 200;
/// The protocols behind which the first four octets are ports; others; and an ICMPv6 echo request.
const WITH_PORTS: [u8; 6] = [6, 17, 33, 50, 132, 136];
const WITHOUT: [u8; 6] = [4, 41, 47, 58, 59, 89];
const ECHO: u8 = 128;

/// What belongs to a flow.
#[derive(Clone, Copy)]
struct Flow {
    from: u64,
    label: u32,
    protocol: u8,
    ports: u32,
}

/// Members by port, each with its weight; the Ethernet address of one ends with its place.
type Of = &'static [(u16, u32)];
/// One member; weights; two ports beside each other; one port that is not the driver's and a member that is the kernel's; as
/// many as there is room for.
const GROUPS6: [Of; 5] = [
    &[(1, 1)],
    &[(1, 1), (3, 3)],
    &[(1, 1), (3, 1), (1, 2), (3, 5)],
    &[(1, 1), (DEAF as u16, 1), (KERNEL, 1), (3, 1), (IN as u16, 1)],
    &[(1, 1); 16],
];

/// Destinations of group number `n`.
fn prefix(n: usize) -> Prefix6 {
    Prefix6::truncated(0x2001_0db8_0900_u128 << 80 | (n as u128) << 80, 48)
}

impl Router {
    fn member(&mut self, port: u16, place: usize) -> AdjacencyIndex {
        let mut neighbour =
            Neighbour { port, reason: 0, mtu_bytes: 1500, addresses: [6; 12], mark: 0, serial: 0 };
        (neighbour.addresses[5], neighbour.serial) = (place as u8, 1_000 + place as u32);
        let index = self.neighbours.acquire(neighbour).expect("room");
        let hop = Hop { words: neighbour.words(), on_link: false, mark: 0 };
        self.hops.set(index, (port != KERNEL).then_some(hop));
        index
    }

    /// Has a prefix lead to a group of these members; gives its index, and theirs with their weights.
    fn lead(&mut self, to: Prefix6, members: Of) -> (AdjacencyIndex, Vec<(AdjacencyIndex, u32)>) {
        let members = members.iter().enumerate();
        let members: Vec<_> =
            members.map(|(place, &(port, weight))| (self.member(port, place), weight)).collect();
        let group = self.neighbours.group(&members).expect("room");
        self.forwarding.set_paths(group, Paths::unicast([1]));
        self.hops.set_group(group, &self.neighbours.regions(group));
        self.fib6.replace(to, group).expect("room");
        (group, members)
    }
}

fn flow(rng: &mut Rng, protocols: &[u8]) -> Flow {
    let protocol = protocols[rng.usize(..protocols.len())];
    Flow { from: rng.u64(..), label: rng.u32(..1 << 20), protocol, ports: rng.u32(..) }
}

/// A packet to group number `n` with this behind its header.
fn packet(n: usize, flow: Flow, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0; 40];
    ip[..4].copy_from_slice(&(0x6120_0000 | flow.label).to_be_bytes());
    ip[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    (ip[6], ip[7]) = (flow.protocol, 64);
    // Some are from the same network, so that only the lower halves of the addresses differ.
    let network = if flow.from & 3 == 0 { prefix(n).first() } else { 0x2001_0db8_ffff_u128 << 80 };
    let (from, to) = (network | u128::from(flow.from), u128::from(flow.from.rotate_left(8)));
    ip[8..24].copy_from_slice(&from.to_be_bytes());
    ip[24..40].copy_from_slice(&(prefix(n).first() | to).to_be_bytes());
    [&crate::frames::OURS[..], &[2, 0, 0, 0, 0, 9], &[0x86, 0xdd], &ip, payload].concat()
}

/// A packet of a flow with something behind its ports.
fn whole(n: usize, flow: Flow) -> Vec<u8> {
    let mut payload = [[0; 4], [9; 4], [0; 4], [0; 4]].concat();
    payload[..4].copy_from_slice(&flow.ports.to_be_bytes());
    if flow.protocol == 58 {
        payload[0] = ECHO;
    }
    packet(n, flow, &payload)
}

/// The place of the member that a packet was sent to.
fn place(went: &Went) -> Option<usize> {
    went.element.as_ref().map(|(_, frame)| usize::from(frame[5]))
}

fn is_up(went: &Went) -> bool {
    matches!(went.exit, Exit::Up(_))
}

fn router(rng: &mut Rng) -> Router {
    let mut router = Router::new(rng, 100);
    router.set_policy(OPEN);
    for (n, members) in GROUPS6.into_iter().enumerate() {
        router.lead(prefix(n), members);
    }
    router
}

/// By place, how many flows a group's members took.
fn taken(ways: &mut Ways4, router: &Router, n: usize, rng: &mut Rng) -> BTreeMap<usize, u32> {
    let mut taken = BTreeMap::new();
    for _ in 0..FLOWS {
        let went = ways.send(router, &whole(n, flow(rng, &[WITH_PORTS, WITHOUT].concat())));
        // All that the graph sends, but by a port that takes no redirected frames.
        assert_eq!(went.interpreted, went.element, "nothing of it is unclear");
        assert_eq!(is_up(&went), went.element.as_ref().is_none_or(|(port, _)| *port == DEAF));
        place(&went).into_iter().for_each(|place| *taken.entry(place).or_default() += 1);
    }
    taken
}

#[test]
fn a_flow_of_ipv6_takes_the_same_member_in_all_ways() {
    if !crate::is_root() {
        return;
    }
    let rng = &mut Rng::with_seed(6);
    let router = router(rng);
    let mut ways = Ways4::new(&router);
    for (policy, seed) in [(0, 0), (0, 7), (1, 0), (1, u32::MAX)] {
        // What holds for IPv4 is another setting.
        router.forwarding.set_flow_hash((1 - policy, 0), (policy, 0), seed);
        for (n, members) in GROUPS6.into_iter().enumerate() {
            let taken = taken(&mut ways, &router, n, rng);
            let weights = members.iter().map(|&(_, weight)| weight).sum::<u32>();
            for (place, &(port, weight)) in members.iter().enumerate() {
                let n = taken.get(&place).copied().unwrap_or(0);
                if port == KERNEL || usize::from(port) == IN {
                    assert_eq!(n, 0, "the kernel has them");
                    continue;
                }
                let share = FLOWS * weight / weights;
                assert!(n > share / 3 && n < 2 * share + 10, "{n} and not some {share}: {taken:?}");
            }
        }
    }
}

#[test]
fn what_belongs_to_a_flow_of_ipv6_is_what_the_policy_says() {
    if !crate::is_root() {
        return;
    }
    let rng = &mut Rng::with_seed(5);
    let router = router(rng);
    let mut ways = Ways4::new(&router);
    for (policy, seed) in [(0, 0), (0, 9), (1, 0), (1, 9)] {
        router.forwarding.set_flow_hash((1 - policy, 0), (policy, 0), seed);
        let first = flow(rng, &WITH_PORTS);
        let mut spread = |change: fn(&mut Rng, Flow) -> Flow| {
            let places = (0..40).map(|_| place(&ways.send(&router, &whole(4, change(rng, first)))));
            places.collect::<std::collections::BTreeSet<_>>().len() > 1
        };
        assert_eq!(spread(|rng, flow| Flow { ports: rng.u32(..), ..flow }), policy == 1, "ports");
        assert_eq!(spread(|rng, flow| Flow { label: rng.u32(..1 << 20), ..flow }), policy == 0, "label");
        assert!(spread(|rng, of| Flow { protocol: flow(rng, &WITH_PORTS).protocol, ..of }), "protocol");
        assert!(spread(|rng, flow| Flow { from: rng.u64(..), ..flow }), "addresses");
    }
}

#[test]
fn a_member_that_is_lost_takes_no_flow_of_ipv6() {
    if !crate::is_root() {
        return;
    }
    let rng = &mut Rng::with_seed(4);
    let mut router = router(rng);
    let (group, members) = router.lead(prefix(9), &[(1, 1), (3, 2), (1, 1)]);
    router.forwarding.set_flow_hash((0, 0), (1, 0), 3);
    let mut ways = Ways4::new(&router);
    let places = |ways: &mut Ways4, router: &Router, rng: &mut Rng| {
        taken(ways, router, 9, rng).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(places(&mut ways, &router, rng), [0, 1, 2]);
    for (left, expected) in
        [(&members[1..], vec![1, 2]), (&members[2..], vec![2]), (&members[..], vec![0, 1, 2])]
    {
        router.neighbours.replace(group, causeway_fib::Target::Group(left)).expect("room");
        router.hops.set_group(group, &router.neighbours.regions(group));
        assert_eq!(places(&mut ways, &router, rng), expected);
    }
}

#[test]
fn a_flow_of_ipv6_that_is_not_plain_to_see_goes_up() {
    if !crate::is_root() {
        return;
    }
    let rng = &mut Rng::with_seed(3);
    let mut router = router(rng);
    router.lead(prefix(7), &[(1, 1); 17]);
    let mut ways = Ways4::new(&router);
    let single = router.member(1, 0);
    router.fib6.replace(prefix(8), single).expect("room");
    let any = |rng: &mut Rng, protocol| flow(rng, &[protocol]);
    let header = [17, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0xa0, 0, 53, 0, 8, 0, 0];
    for (policy, seed) in [(0, 0), (0, 7), (1, 0), (1, 7)] {
        router.forwarding.set_flow_hash((policy, 0), (policy, 0), seed);
        // Hop-by-hop options, routing, fragments: the kernel's, whatever the route.
        for protocol in [0, 43, 44] {
            let went = ways.send(&router, &packet(1, any(rng, protocol), &header));
            assert!(is_up(&went) && went.element.is_none(), "{protocol}");
        }
        // Options for the destination, authentication: the graph's, but where there is one way.
        for protocol in [60, 51] {
            let flow = any(rng, protocol);
            let went = ways.send(&router, &packet(1, flow, &header));
            assert!(is_up(&went) && went.element.is_some(), "{protocol}");
            assert_eq!(ways.send(&router, &packet(8, flow, &header)).exit, Exit::Emit(1), "{protocol}");
        }
        // Errors about packets of another flow; others are plain.
        for kind in 0..8 {
            let mut error = packet(1, any(rng, 58), &[[0; 48], [0x60; 48]].concat());
            error[54] = kind;
            assert_eq!(is_up(&ways.send(&router, &error)), (1..=4).contains(&kind), "{kind}");
        }
        // What is too short for ports, in frames that are long enough and in others.
        for (protocol, octets) in [(17, 3), (6, 0), (132, 2)] {
            let mut frame = packet(1, any(rng, protocol), &header[..octets]);
            for len in [60, 0] {
                frame.resize(frame.len().max(len), 1);
                let went = ways.send(&router, &frame);
                assert!(is_up(&went) && went.element.is_some(), "{protocol}");
            }
        }
        // More members than the driver has room for.
        let flow = any(rng, 17);
        assert!(is_up(&ways.send(&router, &whole(7, flow))));
        assert_eq!(
            ways.send(&router, &whole(1, flow)).interpreted,
            ways.send(&router, &whole(1, flow)).element
        );
    }
    for policy in [2, 3, 4] {
        router.forwarding.set_flow_hash((1, 0), (policy, 0x37), 7);
        let flow = any(rng, 17);
        let went = ways.send(&router, &whole(1, flow));
        assert_eq!((is_up(&went), went.element.is_some()), (true, policy < 4), "{policy}");
        assert_eq!(ways.send(&router, &whole(8, flow)).exit, Exit::Emit(1), "one way needs no hash");
    }
}
