//! Programs that run while the tables change.

mod check;
mod full;
mod mixed;
mod recorded;

use super::*;
use crate::commands::up::policy::Policies;
use crate::commands::up::rest::Rest;
use crate::commands::up::tables::Tables;
use causeway_bpf::{ErrorKind, XdpContext, action};
use causeway_elements::kernel::{PORTS_MAX, PortPolicy, ReversePath};
use causeway_kernel::{
    Action as HopAction, Adjacency, AdjacencyId, Changes, Hop as KernelHop, HopId, Leg, Prefix,
    ReversePath as WayBack, Rewrite,
};
use causeway_netio::front::Take;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loopback device.
const LOOPBACK: u32 = 1;
/// Routes are of a group, and so are the hops that they ever lead to.
const GROUPS: u32 = 8;
/// Hops at a time, and those that are replaced in a round.
const HOPS: u32 = 64;
const REPLACED: u32 = 8;
const ROUNDS: u32 = 30;

/// Routes of the length 24, and a sixteenth as many longer ones inside of them; `DRIVER_ROUTES` says how many.
fn prefixes() -> Vec<(u32, u8)> {
    let wanted = std::env::var("DRIVER_ROUTES").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let first = |n: u32| (16 << 24) + (n << 8);
    let longer = (0..wanted).step_by(16).map(|n| (first(n) + 16, 28));
    (0..wanted).map(|n| (first(n), 24)).chain(longer).collect()
}

/// The group of a route.
fn group(prefix: (u32, u8)) -> u32 {
    (prefix.0 >> 4).wrapping_mul(0x9e37_79b1) >> 29
}

/// Hop number `n`, of group `n % GROUPS`, and what a frame to it looks like in version `version`.
fn adjacency(n: u32, version: u32) -> Adjacency {
    let tail = version.to_be_bytes();
    let address = |first: u8| [first, (n % GROUPS) as u8, tail[0], tail[1], tail[2], tail[3]];
    let rewrite = Rewrite { destination: address(2), source: address(4), mtu_bytes: 1500 };
    Adjacency { ifindex: LOOPBACK, address: Ipv4Addr::from(n).into(), rewrite: Some(rewrite) }
}

fn hop(n: u32) -> KernelHop {
    let legs = vec![Leg { adjacency: AdjacencyId(n), weight: 1 }];
    KernelHop { action: HopAction::Forward { legs, mtu_bytes: None }, reverse_path: WayBack::Unknown }
}

/// A packet from nowhere to an address.
fn frame(to: u32) -> Vec<u8> {
    let mut ip = [0u8; 46];
    (ip[0], ip[3], ip[8], ip[9]) = (0x45, 46, 64, 17);
    ip[12..16].copy_from_slice(&[203, 0, 113, 1]);
    ip[16..20].copy_from_slice(&to.to_be_bytes());
    let sum: u32 = ip[..20].as_chunks::<2>().0.iter().map(|&w| u32::from(u16::from_be_bytes(w))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], &ip[..]].concat()
}

/// Sends packets to random routes until it is told to end: each leaves to a hop of its route's group, in one piece.
fn send(program: &Program, prefixes: &[(u32, u8)], seed: u64, done: &AtomicBool) -> usize {
    let rng = &mut fastrand::Rng::with_seed(seed);
    let mut sent = 0;
    while !done.load(Ordering::Relaxed) {
        let prefix = prefixes[rng.usize(..prefixes.len())];
        // Of a /24, the part that the longer one does not have.
        let to = prefix.0 + if prefix.1 == 24 { 32 + rng.u32(..224) } else { rng.u32(..16) };
        let context = XdpContext { ingress_ifindex: LOOPBACK, rx_queue_index: 0 };
        let run = program.test_run(&frame(to), Some(context), 1).expect("run");
        assert_eq!(run.verdict, action::XDP_REDIRECT, "{}", Ipv4Addr::from(to));
        let (destination, source) = (&run.data[..6], &run.data[6..12]);
        assert_eq!(u32::from(destination[1]), group(prefix), "{}: another's hop", Ipv4Addr::from(to));
        assert_eq!(destination[1..], source[1..], "{}: half of a hop", Ipv4Addr::from(to));
        sent += 1;
    }
    sent
}

/// The tables of a router with one port, whose packets may leave by it, and which asks the kernel about one packet in `every`.
fn tables(device: u32, every: u32) -> Option<Tables> {
    let front = match Front::with_graphs(Take::NOTHING) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => {
            eprintln!("skipped: needs root: {e}");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    let settings =
        Settings { places: vec![(Place::Xdp, Begins::Ethernet)], check_every: every, bytes: false };
    let mut tables =
        Tables::in_driver(vec!["port".to_owned()], vec![device], front, settings).expect("tables");
    // Test runs redirect nothing, so that it may be a device that takes nothing.
    tables.driver().ways.frames().insert_u32(0, device).expect("a device");
    let policy = PortPolicy { ipv4: true, ipv6: false, reverse_path: ReversePath::Off, hairpin: true };
    tables.forwarding().set_policy(0, policy);
    Some(tables)
}

#[test]
fn no_packet_leaves_to_another_routes_hop_while_routes_and_hops_change() {
    // The kernel has none of these routes.
    let Some(mut tables) = tables(LOOPBACK, u32::MAX) else { return };
    let prefixes = prefixes();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut hops: Vec<u32> = (0..HOPS).collect();
    // For each route the place of its hop.
    let place = |rng: &mut fastrand::Rng, prefix| rng.u32(..HOPS / GROUPS) * GROUPS + group(prefix);
    let mut places: Vec<u32> = prefixes.iter().map(|&prefix| place(&mut rng, prefix)).collect();
    let route = |prefix: (u32, u8), hop: u32| {
        (Prefix::new(Ipv4Addr::from(prefix.0).into(), prefix.1), Some(HopId(hop)))
    };
    tables.apply(
        &Changes {
            adjacencies: hops.iter().map(|&n| (AdjacencyId(n), Some(adjacency(n, 0)))).collect(),
            hops: hops.iter().map(|&n| (HopId(n), Some(hop(n)))).collect(),
            routes: prefixes.iter().zip(&places).map(|(&p, &at)| route(p, hops[at as usize])).collect(),
            ..Changes::default()
        },
        &mut || (),
    );
    let (program, done) = (tables.driver().programs[0].program.clone(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&program, &prefixes, 2, &done));
        let mut next = HOPS;
        for round in 1..=ROUNDS {
            if sender.is_finished() {
                break;
            }
            let mut changes = Changes::default();
            // Some hops are others from now on, with all their routes; the indices that are free then are any group's.
            for _ in 0..REPLACED {
                let at = rng.u32(..HOPS) as usize;
                let (old, new) = (hops[at], next + (at as u32 + GROUPS - next % GROUPS) % GROUPS);
                next = new + 1;
                hops[at] = new;
                changes.adjacencies.push((AdjacencyId(new), Some(adjacency(new, round))));
                changes.hops.extend([(HopId(new), Some(hop(new))), (HopId(old), None)]);
            }
            // Some keep their index and are at another address.
            for _ in 0..REPLACED {
                let n = hops[rng.usize(..hops.len())];
                changes.adjacencies.push((AdjacencyId(n), Some(adjacency(n, round))));
            }
            for (at, &prefix) in prefixes.iter().enumerate() {
                if rng.u32(..16) == 0 {
                    places[at] = place(&mut rng, prefix);
                }
            }
            let at = |(&prefix, &at): (&(u32, u8), &u32)| route(prefix, hops[at as usize]);
            changes.routes = prefixes.iter().zip(&places).map(at).collect();
            tables.apply(&changes, &mut || ());
            tables.look(true);
        }
        done.store(true, Ordering::Relaxed);
        let sent = sender.join().expect("every packet left rightly");
        eprintln!("{sent} packets, {} routes", prefixes.len());
        assert!(sent > 100, "{sent}");
    });
    assert!(tables.are_whole());
}

/// A port is left to the kernel when most of its packets are given back: those that the driver forwards are not.
#[test]
fn packets_that_the_driver_forwards_are_its_ports() {
    let Some(mut tables) = tables(LOOPBACK, u32::MAX) else { return };
    let (to, len) = prefixes()[0];
    let changes = Changes {
        adjacencies: vec![(AdjacencyId(0), Some(adjacency(0, 0)))],
        hops: vec![(HopId(0), Some(hop(0)))],
        routes: vec![(Prefix::new(Ipv4Addr::from(to).into(), len), Some(HopId(0)))],
        ..Changes::default()
    };
    tables.apply(&changes, &mut || ());
    let front = Arc::new(Front::new(Take::NOTHING).expect("another"));
    let policies = Arc::new(Policies::new(front, tables.forwarding(), &[Some(Begins::Ethernet)]));
    let rest = Rest::new(tables.forwarding(), policies, tables.forwarded());
    let context = XdpContext { ingress_ifindex: LOOPBACK, rx_queue_index: 0 };
    let program = tables.driver().programs[0].program.clone();
    for sent in 1..=3 {
        assert_eq!(
            program.test_run(&frame(to + 32), Some(context), 1).expect("run").verdict,
            action::XDP_REDIRECT
        );
        let tally = rest.tally(0);
        assert_eq!((tally.taken, tally.punted), (sent, 0));
    }
}

/// As many ports as there may be, at both places, and all that may be counted.
#[test]
fn the_kernel_takes_the_largest_programs() {
    let front = match Front::with_graphs(Take::NOTHING) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    let names = (0..PORTS_MAX).map(|n| format!("port{n}")).collect();
    let places = (0..PORTS_MAX)
        .map(|n| {
            [(Place::Xdp, Begins::Ethernet), (Place::Tcx, Begins::Ethernet), (Place::Tcx, Begins::Ip)][n % 3]
        })
        .collect();
    let settings = Settings { places, check_every: 1_000, bytes: true };
    let mut tables = Tables::in_driver(names, vec![0; PORTS_MAX], front, settings).expect("tables");
    assert_eq!(tables.driver().programs.len(), PORTS_MAX);
}
