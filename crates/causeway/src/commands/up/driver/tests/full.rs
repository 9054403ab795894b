//! The driver's memory with as many routes as it is said to hold: prefixes as long, and as often inside of or beside each other,
//! as on the Internet.

use super::*;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

/// The shortest length, and how many prefixes of that length and of each longer one there are in a table of May 2026 (RIPE RIS,
/// AS3333).
type Lengths = (u8, &'static [u32]);
const LENGTHS4: Lengths = (
    8,
    &[
        16, 14, 39, 95, 297, 584, 1_201, 2_129, 13_635, 8_347, 13_387, 25_516, 45_627, 52_463, 113_741,
        107_869, 657_365,
    ],
);
const LENGTHS6: Lengths = (
    19,
    &[
        1, 14, 3, 6, 6, 42, 12, 17, 18, 161, 5_435, 827, 341, 26_740, 5_407, 5_197, 1_837, 9_424, 1_208,
        2_677, 1_829, 23_096, 1_697, 2_924, 1_453, 24_860, 4_511, 5_640, 8_925, 111_866,
    ],
);
/// The ports' interfaces; all routes lead to the second, which need not be there.
const DEVICES: [u32; 2] = [LOOPBACK, 4_000];
/// Packets that are looked up.
const PACKETS: usize = 5_000;

/// A prefix: its first address in the upper bits, and its length.
type Route = (u128, u8);

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

/// Routes of these lengths, the longer ones mostly inside of shorter ones and many beside the one before.
fn routes(
    (first, shares): Lengths,
    top: impl Fn(&mut fastrand::Rng) -> u128,
    count: usize,
    rng: &mut fastrand::Rng,
) -> HashSet<Route> {
    let total: u32 = shares.iter().sum();
    let (mut all, mut seen) = (Vec::<Route>::new(), HashSet::new());
    for (len, &share) in (first..).zip(shares) {
        let (wanted, shorter) = (share as usize * count / total as usize, all.len());
        let (end, mut before) = (shorter + wanted, None);
        for _ in 0..20 * wanted + 1_000 {
            if all.len() == end {
                break;
            }
            let beside = before.filter(|_| rng.bool());
            let address = match beside {
                Some(address) => mask(len) & u128::wrapping_add(address, 1 << (128 - len)),
                None if shorter > 0 && rng.u8(..4) > 0 => {
                    let (address, shorter) = all[rng.usize(..shorter)];
                    address | rng.u128(..) & !mask(shorter)
                }
                None => top(rng),
            };
            let route = (address & mask(len), len);
            if seen.insert(route) {
                all.push(route);
                before = Some(route.0);
            }
        }
    }
    seen
}

/// In the space that is routed.
fn top4(rng: &mut fastrand::Rng) -> u128 {
    u128::from(rng.u8(1..224)) << 120 | rng.u128(..) >> 8
}

fn top6(rng: &mut fastrand::Rng) -> u128 {
    const TOPS: [u16; 8] = [0x2001, 0x2400, 0x2402, 0x2404, 0x2600, 0x2602, 0x2620, 0x2804];
    let top = if rng.bool() { TOPS[rng.usize(..TOPS.len())] } else { rng.u16(0x2a00..0x2a10) };
    u128::from(top) << 112 | rng.u128(..) >> 16
}

fn address(first: u128, is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::from((first >> 96) as u32).into() } else { Ipv6Addr::from(first).into() }
}

/// The hop that a route leads to.
fn hop_of(route: Route) -> u32 {
    let folded = (route.0 >> 64) as u64 ^ u64::from(route.1);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u32
}

/// The hop of the longest prefix of an address.
fn expected(routes: &HashSet<Route>, to: u128) -> Option<u32> {
    let found = (0..=64).rev().map(|len| (to & mask(len), len)).find(|route| routes.contains(route));
    found.map(hop_of)
}

/// A UDP packet from nowhere.
fn frame6(to: u128) -> Vec<u8> {
    let from = 0x2001_0002_u128 << 96 | 1;
    let mut ip = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    ip.extend(from.to_be_bytes());
    ip.extend(to.to_be_bytes());
    ip.extend([0, 9, 0, 9, 0, 8, 1, 1]);
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd], &ip[..]].concat()
}

/// Looks up addresses inside of routes; gives how many the driver left to others, which is right only where the table is too
/// deep for it.
fn look_up(program: &Program, routes: &HashSet<Route>, is_v4: bool, rng: &mut fastrand::Rng) -> usize {
    let (list, mut left) = (routes.iter().copied().collect::<Vec<_>>(), 0);
    for _ in 0..PACKETS {
        let (first, len) = list[rng.usize(..list.len())];
        let to = first | rng.u128(..) & !mask(len);
        // Of the IPv4 address that is all there is.
        let to = if is_v4 { to & mask(32) } else { to };
        let frame = if is_v4 { frame((to >> 96) as u32) } else { frame6(to) };
        let context = XdpContext { ingress_ifindex: LOOPBACK, rx_queue_index: 0 };
        let run = program.test_run(&frame, Some(context), 1).expect("run");
        if run.verdict == action::XDP_REDIRECT {
            assert_eq!(Some(u32::from(run.data[1])), expected(routes, to), "{}", address(to, is_v4));
        } else {
            left += 1;
        }
    }
    left
}

/// Fills the driver's memory and reads it back.
fn fill(count4: usize, count6: usize) {
    let front = match Front::with_graphs(Take::NOTHING) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    let names = ["in", "out"].map(str::to_owned).to_vec();
    let settings =
        Settings { places: vec![(Place::Xdp, Begins::Ethernet); 2], check_every: u32::MAX, bytes: false };
    let mut tables = Tables::in_driver(names, DEVICES.to_vec(), front, settings).expect("tables");
    tables.driver().ways.frames().insert_u32(1, LOOPBACK).expect("a device");
    let policy = PortPolicy { ipv4: true, ipv6: true, reverse_path: ReversePath::Off, hairpin: false };
    tables.forwarding().set_policy(0, policy);
    let rng = &mut fastrand::Rng::with_seed(24);
    let families =
        [(true, routes(LENGTHS4, top4, count4, rng)), (false, routes(LENGTHS6, top6, count6, rng))];
    let changed = families.iter().flat_map(|(is_v4, routes)| {
        let prefix = |route: &Route| Prefix::new(address(route.0, *is_v4), route.1);
        routes.iter().map(move |route| (prefix(route), Some(HopId(hop_of(*route)))))
    });
    let changes = Changes {
        adjacencies: (0..GROUPS)
            .map(|n| (AdjacencyId(n), Some(Adjacency { ifindex: DEVICES[1], ..adjacency(n, 0) })))
            .collect(),
        hops: (0..GROUPS).map(|n| (HopId(n), Some(hop(n)))).collect(),
        routes: changed.collect(),
        ..Changes::default()
    };
    tables.apply(&changes, &mut || ());
    assert!(tables.are_whole(), "there is room for all of them");
    let (v4, v6) = tables.routes();
    assert_eq!((v4, v6), (families[0].1.len(), families[1].1.len()));
    // Rounding down, and lengths of which there are not so many prefixes.
    assert!(v4 * 100 > count4 * 97 && v6 * 100 > count6 * 97, "{v4} {v6}");
    let program = tables.driver().programs[0].program.clone();
    let left = families.each_ref().map(|(is_v4, routes)| look_up(&program, routes, *is_v4, rng));
    eprintln!("{v4} and {v6} routes; of {PACKETS} packets each, {left:?} were left to the kernel");
    assert!(left[0] == 0 && left[1] * 100 < PACKETS, "{left:?}");
}

#[test]
fn a_full_table_of_the_internet_is_found_in_the_drivers_memory() {
    fill(1_000_000, 250_000);
}

/// What the guide's table of capacities says.
#[test]
#[ignore = "takes gigabytes; make corpus"]
fn two_million_routes_and_half_a_million_are_found_in_the_drivers_memory() {
    fill(2_000_000, 500_000);
}
