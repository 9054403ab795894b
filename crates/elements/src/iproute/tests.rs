//! The lookup element under all its classes, against a naive table.

use super::family::Family;
use super::*;
use causeway_engine::harness::Harness;
use causeway_packet::Packet;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Every class of IPv4 tables that can change, with arguments behind the routes.
const CHANGEABLE: &[(&Spec, &str)] = &[
    (&ip_lookup::SPEC, ""),
    (&linear_ip_lookup::SPEC, ""),
    (&direct_ip_lookup::SPEC, ""),
    (&range_ip_lookup::SPEC, ""),
    (&radix_ip_lookup::SPEC, ""),
    (&lc_trie_ip_lookup::SPEC, ""),
    (&lc_trie_ip_lookup::SPEC, ", FILL 0.2, ROOT 3"),
    (&cached_ip_lookup::SPEC, ""),
    (&cached_ip_lookup::SPEC, ", KEY flow, TABLE radix, BUCKETS 2, THRESHOLD 1, LIMIT 3"),
    (&cached_ip_lookup::SPEC, ", KEY destination, TABLE lctrie"),
    (&cached_ip_lookup::SPEC, ", KEY none"),
    (&policy_ip_lookup::SPEC, ""),
    (&policy_ip_lookup::SPEC, ", rule 0 tos 2 unreachable, rule 1 table 9, table 9 127.0.0.1/32 0"),
];

/// Every class of IPv6 tables, likewise.
const CHANGEABLE6: &[(&Spec, &str)] = &[
    (&lookup_ip6_route::SPEC, ""),
    (&radix_ip_lookup::SPEC6, ""),
    (&lc_trie_ip_lookup::SPEC6, ""),
    (&lc_trie_ip_lookup::SPEC6, ", FILL 1, ROOT 1"),
    (&cached_ip_lookup::SPEC6, ", KEY flow, TABLE radix"),
    (&cached_ip_lookup::SPEC6, ", KEY destination, TABLE lctrie, BUCKETS 1, THRESHOLD 1, LIMIT 2"),
    (&policy_ip_lookup::SPEC6, ""),
];

fn all() -> impl Iterator<Item = (&'static Spec, &'static str)> {
    CHANGEABLE.iter().copied().chain([(&static_ip_lookup::SPEC as &Spec, "")])
}

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
    for (spec, more) in all() {
        let routes = "10.0.0.0/8 192.168.0.1 0, 10.1.0.0/16 1, 10.1.2.3/32 - 2, 0.0.0.0/0 9.9.9.9 2";
        let mut h = Harness::new(spec, &format!("{routes}{more}"), 1, 3).unwrap();
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
    for (spec, more) in all() {
        let mut h = Harness::new(spec, &format!("10.0.0.0/8 0{more}"), 1, 1).unwrap();
        h.push_all(0, [to([10, 0, 0, 1].into()), to([11, 0, 0, 1].into())]);
        assert_eq!((h.take(0).len(), h.drops()), (1, vec![("no-route", 1)]), "{}", spec.name);
        h.assert_balanced();
    }
}

#[test]
fn bad_routes_are_named_and_host_bits_only_warned_of() {
    for (spec, more) in all() {
        let errors = |text: &str| Harness::new(spec, &format!("{text}{more}"), 1, 1).err().unwrap();
        let policies = spec.name == "PolicyIPLookup";
        let syntax = |text: &str| match policies {
            true => [format!("bad route '{text}': should be 'ADDR/MASK [GATEWAY] OUTPUT'")],
            false => ["argument 1 should be 'ADDR/MASK [GATEWAY] OUTPUT'".to_owned()],
        };
        let output = match policies {
            true => "bad route '10.0.0.0/8 1': output 1 is not connected",
            false => "argument 1 bad OUTPUT",
        };
        assert_eq!(errors("10.0.0.0/8"), syntax("10.0.0.0/8"));
        assert_eq!(errors("10.0.0.0/33 0"), syntax("10.0.0.0/33 0"));
        assert_eq!(errors("10.0.0.0/8 1"), [output]);
        let mut h = Harness::new(spec, &format!("10.0.0.1/8 0{more}"), 1, 1).unwrap();
        assert!(h.warnings()[0].contains("10.0.0.1/8"), "{}", spec.name);
        assert_eq!(h.read("table").unwrap(), "10.0.0.0/8\t\t-\t\t0\n");
    }
}

#[test]
fn the_first_of_two_routes_counts_and_the_table_keeps_their_order() {
    for (spec, _) in all().filter(|(spec, _)| spec.name != "PolicyIPLookup") {
        let routes = "10.0.0.0/8 0, 1.2.3.4/32 192.168.100.2 1, 100.200.100.0/24 1, 10.0.0.0/8 1";
        let mut h = Harness::new(spec, routes, 1, 2).unwrap();
        assert_eq!(route(&mut h, [10, 2, 0, 1]).unwrap().0, 0, "{}", spec.name);
        assert_eq!(h.warnings().len(), 1);
        let table = "10.0.0.0/8\t\t-\t\t0\n1.2.3.4/32\t\t192.168.100.2\t1\n100.200.100.0/24\t-\t\t1\n";
        assert_eq!(h.read("table").unwrap(), table, "{}", spec.name);
        assert_eq!(h.read("length").unwrap(), "3", "{}", spec.name);
    }
}

#[test]
fn handlers_change_the_table_and_a_failing_ctrl_changes_nothing() {
    for &(spec, more) in CHANGEABLE {
        let mut h = Harness::new(spec, &format!("10.0.0.0/8 0{more}"), 1, 3).unwrap();
        assert_eq!(route(&mut h, [10, 1, 0, 1]), Some((0, [10, 1, 0, 1])));
        h.write("add", "10.1.0.0/16 1.1.1.1 1").unwrap();
        assert_eq!(route(&mut h, [10, 1, 0, 1]), Some((1, [1, 1, 1, 1])), "{}", spec.name);
        assert!(h.write("add", "10.1.0.0/16 2").unwrap_err().ends_with("'10.1.0.0/16 1.1.1.1 1'"));
        h.write("set", "10.1.0.0/16 2").unwrap();
        assert_eq!(h.read("table").unwrap(), "10.0.0.0/8\t\t-\t\t0\n10.1.0.0/16\t\t-\t\t2\n");
        for wrong in ["add 1.0.0.0/33 1", "set 1.0.0.0/8 3", "remove 2.0.0.0/8", "put 1.0.0.0/8 1"] {
            let table = h.read("table").unwrap();
            let lines = "set 10.1.0.0/16 2.2.2.2 0\nremove 10.0.0.0/8\nadd 1.0.0.0/8 1";
            assert!(h.write("ctrl", &format!("{lines}\n{wrong}")).is_err());
            assert_eq!(h.read("table").unwrap(), table);
            assert_eq!(route(&mut h, [10, 2, 0, 1]), Some((0, [10, 2, 0, 1])));
            assert_eq!(route(&mut h, [1, 2, 0, 1]), None);
        }
        h.write("ctrl", "remove 10.0.0.0/8\nadd 1.0.0.0/8 1").unwrap();
        assert_eq!(route(&mut h, [10, 2, 0, 1]), None);
        assert_eq!(route(&mut h, [1, 2, 0, 1]).unwrap().0, 1);
        h.write("flush", "").unwrap();
        assert_eq!((route(&mut h, [1, 2, 0, 1]), h.read("table").unwrap().as_str()), (None, ""));
    }
}

#[test]
fn a_full_table_says_so_and_stays_as_it_was() {
    let mut h = Harness::new(&direct_ip_lookup::SPEC, "0.0.0.0/0 0", 1, 2).unwrap();
    let host = |n: u32| format!("set {}/32 1\n", Ipv4Addr::from(0x0a00_0001 + (n << 8)));
    // One /24 more with a route inside than DIR-24-8 has room for.
    let all: String = (0..=1 << 15).map(host).collect();
    assert!(h.write("ctrl", &all).unwrap_err().contains("full"));
    assert_eq!(h.read("table").unwrap(), "0.0.0.0/0\t\t-\t\t0\n");
    assert_eq!(route(&mut h, [10, 0, 0, 1]).unwrap().0, 0);
    h.write("ctrl", &(0..1 << 15).map(host).collect::<String>()).unwrap();
    assert!(h.write("add", "11.0.0.1/32 1").unwrap_err().contains("full"));
    assert_eq!((route(&mut h, [10, 0, 0, 1]).unwrap().0, route(&mut h, [11, 0, 0, 1]).unwrap().0), (1, 0));
}

#[test]
fn arguments_out_of_range_are_refused() {
    for (spec, text, why) in [
        (&lc_trie_ip_lookup::SPEC, "FILL 0", "FILL"),
        (&lc_trie_ip_lookup::SPEC, "ROOT 21", "ROOT"),
        (&cached_ip_lookup::SPEC, "KEY source", "KEY"),
        (&cached_ip_lookup::SPEC, "TABLE trie", "TABLE"),
        (&cached_ip_lookup::SPEC, "BUCKETS 0", "BUCKETS"),
        (&cached_ip_lookup::SPEC, "LIMIT 100000000", "LIMIT"),
    ] {
        let errors = Harness::new(spec, text, 1, 1).err().unwrap();
        assert!(errors[0].starts_with(why), "{text}: {errors:?}");
    }
}

#[test]
fn a_cache_has_an_entry_for_each_key_and_is_emptied_by_changes() {
    for (key, active) in [("flow", 8), ("destination", 2), ("none", 0)] {
        let mut h = Harness::new(&cached_ip_lookup::SPEC, &format!("0.0.0.0/0 0, KEY {key}"), 1, 1).unwrap();
        let packets = |tos: u8| (0..8u32).map(move |n| packet((u32::from(tos) << 8) | (n % 4), n % 2, tos));
        h.push_all(0, packets(0));
        h.push_all(0, packets(1));
        h.push_all(0, packets(1));
        let read = |h: &mut Harness, name| h.read(name).unwrap().parse::<u32>().unwrap();
        assert_eq!((read(&mut h, "active"), read(&mut h, "total")), (active, active), "{key}");
        let misses = if key == "none" { 24 } else { active };
        assert_eq!((read(&mut h, "misses"), read(&mut h, "hits")), (misses, 24 - misses));
        h.write("flush_cache", "").unwrap();
        assert_eq!(read(&mut h, "active"), 0);
        h.push_all(0, packets(0));
        h.write("set", "1.0.0.0/8 0").unwrap();
        h.push_all(0, [packet(9u32, 9, 0)]);
        assert_eq!(read(&mut h, "active"), u32::from(key != "none"));
    }
}

#[test]
fn ipv6_tables_take_the_last_of_two_routes_and_say_what_is_wrong_in_their_words() {
    let spec: &'static Spec = &lookup_ip6_route::SPEC;
    let mut h = Harness::new(spec, "5::/16 ::7 0, 5::/16 1, ::/0 0", 1, 2).unwrap();
    assert_eq!(
        (h.read("table").unwrap().as_str(), h.warnings().len()),
        ("# Active routes\n5::/16\t::\t1\n::/0\t::\t0\n", 0)
    );
    let errors = |text: &str| Harness::new(spec, text, 1, 2).err().unwrap();
    assert_eq!(errors("::/0 0, 5::/129 0"), ["argument 2 should be DADDR/MASK [GW] OUTPUT"]);
    assert_eq!(errors("::/0 2"), ["need 3 or more output ports"]);
    assert!(Harness::new(spec, "", 1, 2).unwrap().warnings()[0].ends_with(": no routes"));
}

#[test]
fn ipv6_routes_as_ipv4() {
    for (spec, more) in CHANGEABLE6 {
        let routes = format!("2001:db8::/32 fe80::1 0, 2001:db8:1::/48 1, 2001:db8:1::1/128 2{more}");
        let mut h = Harness::new(spec, &routes, 1, 3).unwrap();
        for (address, port) in
            [("2001:db8:2::1", "0 fe80::1"), ("2001:db8:1::2", "1"), ("2001:db8:1::1", "2"), ("::1", "-1")]
        {
            assert_eq!(h.read_with("lookup", address).unwrap(), port, "{}", spec.name);
        }
        let mut p = Packet::from_bytes(b"x").unwrap();
        p.set_dst_ip6("2001:db8:2::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
        h.push(0, p);
        assert_eq!(h.take(0)[0].dst_ip6(), "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
        h.write("add", "2001:db8::/32 1").unwrap();
        h.write("ctrl", "remove 2001:db8:1::/48\nremove 5::/16").unwrap();
        assert!(h.write("ctrl", "remove 5::/16\nadd 6::/16 9").is_err());
        let table = "# Active routes\n2001:db8::/32\t::\t1\n2001:db8:1::1/128\t::\t2\n";
        assert_eq!(
            h.read("table").unwrap().lines().collect::<std::collections::BTreeSet<_>>(),
            table.lines().collect()
        );
    }
}

/// A packet with a header of its family around source and type of service, on its way to `destination`.
pub(super) fn packet<A: Family>(source: A, destination: A, tos: u8) -> Packet {
    let mut header = vec![0; 40];
    if A::BITS == 32 {
        header[1] = tos;
        header[12..16].copy_from_slice(&source.low_u32().to_be_bytes());
    } else {
        header[..2].copy_from_slice(&[0x60 | tos >> 4, tos << 4]);
        (0..4).for_each(|word| {
            let bits = source.bits(word * 32, 32).to_be_bytes();
            header[8 + 4 * word as usize..12 + 4 * word as usize].copy_from_slice(&bits);
        });
    }
    let mut p = Packet::from_bytes(&header).unwrap();
    p.set_network_header(0);
    destination.set_destination(&mut p);
    p
}

/// One step of a history: a change of a route, or packets.
#[derive(Clone, Debug)]
enum Step<A> {
    Add(A, u8, u16),
    Set(A, u8, u16),
    Remove(A, u8),
    Packets(Vec<(A, A, u8)>),
}

/// Addresses that share many bits at both ends, so that prefixes of all lengths nest.
pub(super) fn addresses<A: Family>() -> impl Strategy<Value = A> {
    (0u32..8, 0u32..8).prop_map(|(top, low)| A::from_u32(top) << u32::from(A::BITS - 3) | A::from_u32(low))
}

fn steps<A: Family>() -> impl Strategy<Value = Vec<Step<A>>> {
    let prefix = || (addresses::<A>(), 0..=A::BITS);
    let step = prop_oneof![
        (prefix(), 0u16..3).prop_map(|((address, len), port)| Step::Add(address, len, port)),
        (prefix(), 0u16..3).prop_map(|((address, len), port)| Step::Set(address, len, port)),
        prefix().prop_map(|(address, len)| Step::Remove(address, len)),
        prop::collection::vec((addresses(), addresses(), 0u8..2), 1..100).prop_map(Step::Packets),
    ];
    prop::collection::vec(step, 1..40)
}

/// Random changes and lookups agree with a map of prefixes, and no packet is lost.
fn agrees<A: Family>(class: (&'static Spec, &str), steps: Vec<Step<A>>) -> Result<(), TestCaseError> {
    let mut h = Harness::new(class.0, class.1.trim_start_matches(", "), 1, 3).unwrap();
    let mut model: BTreeMap<(u8, A), u16> = BTreeMap::new();
    let masked = |address: A, len| (len, address & A::mask(len));
    let text = |(len, prefix): (u8, A)| format!("{}/{len}", prefix.to_text());
    for step in steps {
        match step {
            Step::Add(address, len, port) => {
                let at = masked(address, len);
                let added = h.write("add", &format!("{} {port}", text(at))).is_ok();
                prop_assert_eq!(added, A::LAST_COUNTS || !model.contains_key(&at));
                let there = model.entry(at).or_insert(port);
                *there = if A::LAST_COUNTS { port } else { *there };
            }
            Step::Set(address, len, port) => {
                h.write("set", &format!("{} {port}", text(masked(address, len)))).unwrap();
                model.insert(masked(address, len), port);
            }
            Step::Remove(address, len) => {
                let at = masked(address, len);
                let removed = h.write("remove", &text(at)).is_ok();
                prop_assert_eq!(removed, model.remove(&at).is_some() || A::LAST_COUNTS);
            }
            Step::Packets(packets) => {
                let covers = |(len, prefix): (u8, A), address: A| address & A::mask(len) == prefix;
                let port =
                    |address| model.iter().rev().find(|(at, _)| covers(**at, address)).map(|(_, port)| *port);
                h.push_all(0, packets.iter().map(|&(source, to, tos)| packet(source, to, tos)));
                for out in 0..3u16 {
                    let all = packets.iter().map(|packet| packet.1);
                    let expected: Vec<A> = all.filter(|&to| port(to) == Some(out)).collect();
                    let got: Vec<A> = h.take(out.into()).iter().map(A::destination).collect();
                    prop_assert_eq!(got, expected);
                }
            }
        }
    }
    h.assert_balanced();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_history_agrees_with_a_naive_table(
        class in 0..CHANGEABLE.len(),
        steps in steps::<u32>(),
    ) {
        agrees(CHANGEABLE[class], steps)?;
    }

    #[test]
    fn any_ipv6_history_agrees_with_a_naive_table(
        class in 0..CHANGEABLE6.len(),
        steps in steps::<u128>(),
    ) {
        agrees(CHANGEABLE6[class], steps)?;
    }
}
