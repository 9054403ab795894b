//! The lookup element under all its classes, against a naive table.

use super::*;
use causeway_engine::harness::Harness;
use causeway_packet::Packet;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const CLASSES: &[&Spec] = &[&static_ip_lookup::SPEC, &linear_ip_lookup::SPEC, &radix_ip_lookup::SPEC];

fn to(address: Ipv4Addr) -> Packet {
    let mut p = Packet::from_bytes(b"x").unwrap();
    p.set_dst_ip(address.octets());
    p
}

/// Output and destination annotation after a lookup of `address`.
fn route(h: &mut Harness, address: [u8; 4]) -> Option<(usize, [u8; 4])> {
    h.push(0, to(address.into()));
    (0..3).find_map(|port| Some((port, h.take(port).pop()?.dst_ip())))
}

#[test]
fn the_longest_prefix_wins_and_the_gateway_becomes_the_destination() {
    for spec in CLASSES {
        let routes = "10.0.0.0/8 192.168.0.1 0, 10.1.0.0/16 1, 10.1.2.3/32 - 2, 0.0.0.0/0 9.9.9.9 2";
        let mut h = Harness::new(spec, routes, 1, 3).unwrap();
        assert_eq!(route(&mut h, [10, 2, 0, 1]), Some((0, [192, 168, 0, 1])), "{}", spec.name);
        assert_eq!(route(&mut h, [10, 1, 0, 1]), Some((1, [10, 1, 0, 1])));
        assert_eq!(route(&mut h, [10, 1, 2, 3]), Some((2, [10, 1, 2, 3])));
        assert_eq!(route(&mut h, [11, 1, 2, 3]), Some((2, [9, 9, 9, 9])));
        assert_eq!(h.read_with("lookup", "10.2.0.1").unwrap(), "0 192.168.0.1");
        assert_eq!(h.read_with("lookup", "10.1.0.1").unwrap(), "1");
        assert!(h.read_with("lookup", "10.1.0.0/16").is_err() && h.read_with("lookup", "x").is_err());
    }
}

#[test]
fn no_route_is_a_counted_drop() {
    let mut h = Harness::new(&radix_ip_lookup::SPEC, "10.0.0.0/8 0", 1, 1).unwrap();
    h.push_all(0, [to([10, 0, 0, 1].into()), to([11, 0, 0, 1].into())]);
    assert_eq!((h.take(0).len(), h.drops()), (1, vec![("no-route", 1)]));
    h.assert_balanced();
}

#[test]
fn bad_routes_are_named_and_host_bits_only_warned_of() {
    let errors = |text: &str| Harness::new(&static_ip_lookup::SPEC, text, 1, 1).err().unwrap();
    assert_eq!(errors("10.0.0.0/8"), ["bad route '10.0.0.0/8': should be 'ADDR/MASK [GATEWAY] OUTPUT'"]);
    assert_eq!(errors("10.0.0.0/33 0"), ["invalid IP address prefix"]);
    assert_eq!(errors("10.0.0.0/8 1"), ["bad route '10.0.0.0/8 1': output 1 is not connected"]);
    let h = Harness::new(&static_ip_lookup::SPEC, "10.0.0.1/8 0", 1, 1).unwrap();
    assert!(h.warnings()[0].contains("10.0.0.1/8"));
}

#[test]
fn handlers_change_the_table_and_a_failing_ctrl_changes_nothing() {
    let mut h = Harness::new(&radix_ip_lookup::SPEC, "10.0.0.0/8 0", 1, 3).unwrap();
    h.write("add", "10.1.0.0/16 1.1.1.1 1").unwrap();
    assert!(h.write("add", "10.1.0.0/16 2").unwrap_err().contains("10.1.0.0/16\t1.1.1.1\t1"));
    h.write("set", "10.1.0.0/16 2").unwrap();
    assert_eq!(h.read("table").unwrap(), "10.0.0.0/8\t-\t0\n10.1.0.0/16\t-\t2\n");
    let table = h.read("table").unwrap();
    assert!(h.write("ctrl", "remove 10.0.0.0/8\nadd 1.0.0.0/8 1\nremove 2.0.0.0/8").is_err());
    assert_eq!(h.read("table").unwrap(), table);
    h.write("ctrl", "remove 10.0.0.0/8\nadd 1.0.0.0/8 1").unwrap();
    assert_eq!(route(&mut h, [10, 2, 0, 1]), None);
    assert_eq!(route(&mut h, [1, 2, 0, 1]).unwrap().0, 1);
    h.write("flush", "").unwrap();
    assert_eq!((route(&mut h, [1, 2, 0, 1]), h.read("table").unwrap().as_str()), (None, ""));
}

#[test]
fn ipv6_routes_as_ipv4() {
    let routes = "2001:db8::/32 fe80::1 0, 2001:db8:1::/48 1, 2001:db8:1::1/128 2";
    let mut h = Harness::new(&lookup_ip6_route::SPEC, routes, 1, 3).unwrap();
    for (address, port) in
        [("2001:db8:2::1", "0 fe80::1"), ("2001:db8:1::2", "1"), ("2001:db8:1::1", "2"), ("::1", "-1")]
    {
        assert_eq!(h.read_with("lookup", address).unwrap(), port);
    }
    let mut p = Packet::from_bytes(b"x").unwrap();
    p.set_dst_ip6("2001:db8:2::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    h.push(0, p);
    assert_eq!(h.take(0)[0].dst_ip6(), "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random changes and lookups agree with a map of prefixes, and no packet is lost.
    #[test]
    fn any_history_agrees_with_a_naive_table(
        changes in prop::collection::vec((0u8..3, 0u32..64, 0u8..=32, 0u16..3), 0..60),
        addresses in prop::collection::vec(0u32..64, 1..300),
    ) {
        let mut h = Harness::new(&radix_ip_lookup::SPEC, "", 1, 3).unwrap();
        let mut model: BTreeMap<(u8, u32), u16> = BTreeMap::new();
        for (verb, bits, len, port) in changes {
            // Few addresses, spread over the whole space, so that prefixes nest.
            let address = bits.reverse_bits();
            let prefix = address & u32::MAX.checked_shl(32 - len as u32).unwrap_or(0);
            let text = format!("{}/{len}", Ipv4Addr::from(prefix));
            match verb {
                0 => {
                    let fresh = !model.contains_key(&(len, prefix));
                    prop_assert_eq!(h.write("add", &format!("{text} {port}")).is_ok(), fresh);
                    model.entry((len, prefix)).or_insert(port);
                }
                1 => {
                    h.write("set", &format!("{text} {port}")).unwrap();
                    model.insert((len, prefix), port);
                }
                _ => prop_assert_eq!(h.write("remove", &text).is_ok(), model.remove(&(len, prefix)).is_some()),
            }
        }
        let covers = |(len, prefix): (u8, u32), a: u32| (a ^ prefix).leading_zeros() >= len as u32;
        for chunk in addresses.chunks(256) {
            h.push_all(0, chunk.iter().map(|a| to(Ipv4Addr::from(a.reverse_bits()))));
            for port in 0..3u16 {
                let expected: Vec<u32> = chunk
                    .iter()
                    .map(|a| a.reverse_bits())
                    .filter(|&a| model.iter().rev().find(|(p, _)| covers(**p, a)).map(|(_, port)| *port) == Some(port))
                    .collect();
                let got: Vec<u32> = h.take(port as usize).iter().map(|p| u32::from_be_bytes(p.dst_ip())).collect();
                prop_assert_eq!(got, expected);
            }
        }
        h.assert_balanced();
    }
}
