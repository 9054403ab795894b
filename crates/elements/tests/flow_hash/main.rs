//! The kernel's choice among the paths of a route, held against real packets that the kernel forwards.

mod packets;
mod rig;

use causeway_elements::kernel::{FlowFields, FlowHash, FlowPolicy};
use packets::{Kind, Packets};
use rig::{PATHS, Rig};

/// Packets of each kind and setting.
const PACKETS: usize = 150;

/// Fields of the policies "custom" that are tried: usual ones, single ones, inner ones, all.
const FIELDS: [u32; 8] = [0x0007, 0x0037, 0x0001, 0x0020, 0x0fc0, 0x0803, 0x0208, 0x0fff];

fn policies() -> impl Iterator<Item = (u8, u32)> {
    (0..3).map(|policy| (policy, 7)).chain(FIELDS.map(|fields| (3, fields)))
}

#[test]
fn packets_go_where_the_kernel_sends_them() {
    rig::run("flow", |rig| {
        let mut packets = Packets::new(1);
        for (i, (policy, fields)) in policies().enumerate() {
            let seed = [1, 0xffff_ffff, 0x1234_5678, 77][i % 4];
            rig.set(policy, fields, seed);
            let hash = FlowHash::new(FlowPolicy::new(policy, fields).unwrap(), seed);
            for kind in Kind::ALL {
                compare(rig, &hash, kind, &mut packets);
            }
        }
    });
}

fn compare(rig: &mut Rig, hash: &FlowHash, kind: Kind, packets: &mut Packets) {
    for _ in 0..PACKETS {
        for packet in [packets.v4(kind), packets.v6(kind)] {
            let told = if packet[0] >> 4 == 4 { hash.v4(&packet) } else { hash.v6(&packet) };
            let Some(told) = told else {
                assert!(kind.may_be_left(), "{hash:?} {kind:?} {packet:02x?}");
                continue;
            };
            let taken = rig.path_of(&packet);
            assert_eq!(rig::path(told), taken, "{hash:?} {kind:?} {packet:02x?}");
        }
    }
}

/// What `ip route get` says agrees with what packets do: the same answer by another way into the kernel.
#[test]
fn route_requests_say_the_same() {
    rig::run("ask", |rig| {
        let mut packets = Packets::new(2);
        for policy in [0, 1] {
            rig.set(policy, 7, 4711);
            let hash = FlowHash::new(FlowPolicy::new(policy, 7).unwrap(), 4711);
            for _ in 0..PACKETS {
                let packet = packets.v4(Kind::Udp);
                let told = hash.v4(&packet).unwrap();
                assert_eq!(rig.asked(&packet), rig::path(told), "{packet:02x?}");
            }
        }
    });
}

#[test]
fn without_a_seed_a_flow_has_one_hash_and_flows_spread() {
    let mut packets = Packets::new(3);
    for (policy, fields) in policies() {
        let hash = FlowHash::new(FlowPolicy::new(policy, fields).unwrap(), 0);
        let mut paths = [0; PATHS];
        for _ in 0..4000 {
            let mut packet = packets.v4(Kind::Udp);
            let told = hash.v4(&packet).unwrap();
            paths[rig::path(told)] += 1;
            // What is not of the flow: TTL, type of service, identification, payload.
            for at in [1, 4, 5, 8, packet.len() - 1] {
                packet[at] ^= 0x55;
            }
            assert_eq!(hash.v4(&packet), Some(told), "{hash:?}");
        }
        // Of custom fields that a UDP packet does not have nothing can be chosen by.
        let FlowPolicy::Custom(FlowFields(fields)) = FlowPolicy::new(policy, fields).unwrap() else {
            assert_even(&paths);
            continue;
        };
        if fields & 0x33 != 0 {
            assert_even(&paths);
        }
    }
}

/// Of 4000 flows over paths of equal weight none is off by six standard deviations.
fn assert_even(paths: &[usize; PATHS]) {
    let weights = rig::weights();
    let total: u32 = weights.iter().sum();
    for (&flows, &weight) in paths.iter().zip(&weights) {
        let share = f64::from(weight) / f64::from(total);
        let (mean, deviation) = (4000.0 * share, (4000.0 * share * (1.0 - share)).sqrt());
        assert!((flows as f64 - mean).abs() < 6.0 * deviation, "{paths:?}");
    }
}

#[test]
fn both_directions_of_a_flow_have_one_hash() {
    let mut packets = Packets::new(4);
    for seed in [0, 5] {
        for policy in 0..3 {
            let hash = FlowHash::new(FlowPolicy::new(policy, 7).unwrap(), seed);
            for _ in 0..1000 {
                let (mut v4, mut v6) = (packets.v4(Kind::Tcp), packets.v6(Kind::Tcp));
                let there = (hash.v4(&v4), hash.v6(&v6));
                swap(&mut v4, 12, 4);
                swap(&mut v4, 20, 2);
                swap(&mut v6, 8, 16);
                swap(&mut v6, 40, 2);
                assert_eq!((hash.v4(&v4), hash.v6(&v6)), there);
            }
        }
    }
}

/// Swaps two fields of `len` octets that stand side by side.
fn swap(packet: &mut [u8], at: usize, len: usize) {
    packet[at..at + 2 * len].rotate_left(len);
}

#[test]
fn any_bytes_do_no_harm() {
    let mut packets = Packets::new(5);
    for (policy, fields) in policies() {
        let hash = FlowHash::new(FlowPolicy::new(policy, fields).unwrap(), 9);
        for kind in Kind::ALL {
            for _ in 0..200 {
                for mut packet in [packets.v4(kind), packets.v6(kind)] {
                    packets.damage(&mut packet);
                    let _ = (hash.v4(&packet), hash.v6(&packet));
                }
            }
        }
    }
}
