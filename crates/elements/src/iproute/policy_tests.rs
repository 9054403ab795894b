//! PolicyIPLookup against a list of rules and routes that is searched from end to end.

use super::family::Family;
use super::policy_ip_lookup::{SPEC, SPEC6};
use super::tests::{addresses, packet};
use causeway_engine::Spec;
use causeway_engine::harness::Harness;
use causeway_packet::Packet;
use proptest::prelude::*;

/// The output of a packet.
fn output(h: &mut Harness, packet: Packet) -> Option<usize> {
    h.push(0, packet);
    (0..3).find(|&port| !h.take(port).is_empty())
}

fn of(source: u32, tos: u8, paint: u8, mark: u32) -> Packet {
    let mut p = packet(source, 0x0a00_0001, tos);
    p.set_paint(paint);
    p.set_anno_u32(causeway_packet::Anno::AGGREGATE.offset, mark);
    p
}

#[test]
fn rules_select_by_every_field_and_fall_through() {
    let rules = "rule 10 from 1.0.0.0/8 table 1, rule 20 tos 16 table 1, rule 30 mark 0x10/0xf0 table 1, \
                 rule 40 iif 3 unreachable, rule 50 from 2.0.0.0/8 table 2, table 2 11.0.0.0/8 2";
    let mut h = Harness::new(&SPEC, &format!("{rules}, table 1 10.0.0.0/8 1, 0.0.0.0/0 0"), 1, 3).unwrap();
    assert_eq!(output(&mut h, of(0x0100_0000, 0, 0, 0)), Some(1), "by source");
    assert_eq!(output(&mut h, of(0, 16, 0, 0)), Some(1), "by type of service");
    assert_eq!(output(&mut h, of(0, 0, 0, 0x1f)), Some(1), "by the masked mark");
    assert_eq!(output(&mut h, of(0, 0, 3, 0)), None, "unreachable by interface");
    assert_eq!(
        output(&mut h, of(0x0200_0000, 0, 0, 0)),
        Some(0),
        "table 2 has no route, so the next rule counts"
    );
    h.assert_balanced();
    for (key, found) in [
        ("10.0.0.1 from 1.0.0.1", "1"),
        ("10.0.0.1 tos 16", "1"),
        ("10.0.0.1 mark 0x1f", "1"),
        ("10.0.0.1 iif 3", "-1"),
        ("11.0.0.1 from 2.0.0.1", "2"),
        ("11.0.0.1", "0"),
    ] {
        assert_eq!(h.read_with("lookup", key).unwrap(), found, "{key}");
    }
    assert!(h.read_with("lookup", "10.0.0.1 to 1").is_err());
}

#[test]
fn handlers_change_rules_and_tables_all_or_none() {
    let mut h = Harness::new(&SPEC, "0.0.0.0/0 0", 1, 3).unwrap();
    assert_eq!(h.read("rules").unwrap(), "32766 table 254\n");
    h.write("add", "table 7 10.0.0.0/8 9.9.9.9 1").unwrap();
    assert_eq!(output(&mut h, of(0, 0, 0, 0)), Some(0), "no rule names table 7");
    h.write("add_rule", "5 table 7").unwrap();
    assert_eq!(output(&mut h, of(0, 0, 0, 0)), Some(1));
    assert_eq!(h.read_with("table", "7").unwrap(), "10.0.0.0/8\t\t9.9.9.9\t\t1\n");
    assert_eq!(
        (h.read("table").unwrap().as_str(), h.read("tables").unwrap().as_str()),
        ("0.0.0.0/0\t\t-\t\t0\n", "7\n254\n")
    );
    let lines = "set table 7 10.0.0.0/8 2\nremove 0.0.0.0/0\nadd table 8 0.0.0.0/0 1\n";
    assert!(h.write("ctrl", &format!("{lines}remove table 9 10.0.0.0/8")).is_err());
    assert!(h.write("ctrl", &format!("{lines}add table 0 10.0.0.0/8 1")).is_err());
    assert_eq!(output(&mut h, of(0, 0, 0, 0)), Some(1));
    assert_eq!(h.read("table").unwrap(), "0.0.0.0/0\t\t-\t\t0\n");
    assert_eq!(h.read_with("table", "8").unwrap(), "");
    h.write("ctrl", lines).unwrap();
    assert_eq!(output(&mut h, of(0, 0, 0, 0)), Some(2));
    h.write("flush", "7").unwrap();
    assert_eq!(output(&mut h, of(0, 0, 0, 0)), None);
    assert!(h.write("set_rules", "1 table 8\n2 tables 8").is_err());
    assert_eq!(h.read("rules").unwrap(), "5 table 7\n32766 table 254\n");
    h.write("set_rules", "1 table 8\n1 iif 1 unreachable").unwrap();
    assert_eq!(output(&mut h, of(0, 0, 1, 0)), Some(1), "of equal priorities the first given counts");
    h.write("remove_rule", "1").unwrap();
    assert_eq!(h.read("rules").unwrap(), "1 iif 1 unreachable\n");
    assert!(h.write("remove_rule", "7").is_err());
    let masks: String = (1..=9).map(|mask| format!("1 mark 1/{mask} table 1\n")).collect();
    assert!(h.write("set_rules", &masks).unwrap_err().contains("masks"));
    assert_eq!(h.read("rules").unwrap(), "1 iif 1 unreachable\n");
}

#[test]
fn marks_and_interfaces_come_from_the_annotations_that_are_named() {
    let rules = "rule 1 mark 0x0102 table 1, rule 2 iif 5 table 2, table 1 0.0.0.0/0 1, table 2 0.0.0.0/0 2";
    let mut h = Harness::new(&SPEC, &format!("{rules}, MARK VLAN_TCI, INTERFACE 30"), 1, 3).unwrap();
    let mut marked = of(0, 0, 5, 0);
    marked.set_anno_bytes(causeway_packet::Anno::VLAN_TCI.offset, [1, 2]);
    assert_eq!(output(&mut h, marked), Some(1));
    let mut painted = of(0, 0, 0, 0);
    painted.set_anno_u8(30, 5);
    assert_eq!(output(&mut h, painted), Some(2));
    assert_eq!(output(&mut h, of(0, 0, 5, 0)), None);
}

#[test]
fn what_is_wrong_is_said() {
    for (text, why) in [
        ("rule 1 table 0", "bad rule '1 table 0': table: '0' is not a table"),
        ("rule 1 from 10.0.0.0/33 table 1", "parse error"),
        ("table 256 10.0.0.0/8 0", "'256' is not a table"),
        ("table 7 10.0.0.0/8", "bad route '10.0.0.0/8'"),
        ("table 7 10.0.0.0/8 1", "output 1 is not connected"),
    ] {
        let errors = Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert!(errors[0].contains(why), "{text}: {errors:?}");
    }
    let h = Harness::new(&SPEC, "rule 1 from 10.0.0.1/8 table 1, table 2 11.0.0.1/8 0", 1, 1).unwrap();
    assert!(h.warnings()[0].contains("10.0.0.1/8") && h.warnings()[1].contains("11.0.0.1/8"));
}

/// A rule: source, type of service, interface, and a table, 0 for unreachable.
type AnyRule<A> = (Option<(A, u8)>, Option<u8>, Option<u8>, u8);

fn any_rule<A: Family>() -> impl Strategy<Value = AnyRule<A>> {
    let source = prop::option::of((addresses::<A>(), 0..=A::BITS));
    (source, prop::option::of(0u8..2), prop::option::of(0u8..2), 0u8..4)
}

fn any_history<A: Family>(
    spec: &'static Spec,
    rules: &[AnyRule<A>],
    routes: &[(u8, A, u8, u16)],
    packets: &[(A, A, u8, u8)],
) -> Result<(), TestCaseError> {
    let mut h = Harness::new(spec, "", 1, 3).unwrap();
    let text = |(priority, (source, tos, iif, table)): (usize, &AnyRule<A>)| {
        let source =
            source.map_or(String::new(), |(address, len)| format!(" from {}/{len}", address.to_text()));
        let tos = tos.map_or(String::new(), |tos| format!(" tos {tos}"));
        let iif = iif.map_or(String::new(), |iif| format!(" iif {iif}"));
        let action = if *table == 0 { "unreachable".to_owned() } else { format!("table {table}") };
        format!("{priority}{source}{tos}{iif} {action}\n")
    };
    h.write("set_rules", &rules.iter().enumerate().map(text).collect::<String>()).unwrap();
    let covers = |prefix: A, len, address: A| (prefix ^ address) & A::mask(len) == A::ZERO;
    for (table, address, len, port) in routes {
        h.write("set", &format!("table {table} {}/{len} {port}", address.to_text())).unwrap();
    }
    // Of routes with one prefix the last counts.
    let longest = |table, to| {
        let in_table = routes.iter().filter(|route| route.0 == table && covers(route.1, route.2, to));
        in_table.max_by_key(|route| route.2).map(|route| route.3)
    };
    for &(source, to, tos, paint) in packets {
        let selects = |rule: &&AnyRule<A>| {
            rule.0.is_none_or(|(prefix, len)| covers(prefix, len, source))
                && rule.1.is_none_or(|wanted| wanted == tos)
                && rule.2.is_none_or(|wanted| wanted == paint)
        };
        let tables = rules.iter().filter(selects).map(|rule| rule.3).take_while(|&table| table > 0);
        let expected = tables.into_iter().find_map(|table| longest(table, to));
        let mut p = packet(source, to, tos);
        p.set_paint(paint);
        prop_assert_eq!(output(&mut h, p), expected.map(usize::from));
    }
    h.assert_balanced();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rules_and_routes_agree_with_lists(
        rules in prop::collection::vec(any_rule::<u32>(), 0..20),
        routes in prop::collection::vec((1u8..4, addresses::<u32>(), 0..=32u8, 0u16..3), 0..30),
        packets in prop::collection::vec((addresses(), addresses(), 0u8..2, 0u8..2), 1..50),
    ) {
        any_history(&SPEC, &rules, &routes, &packets)?;
    }

    #[test]
    fn any_ipv6_rules_and_routes_agree_with_lists(
        rules in prop::collection::vec(any_rule::<u128>(), 0..20),
        routes in prop::collection::vec((1u8..4, addresses::<u128>(), 0..=128u8, 0u16..3), 0..30),
        packets in prop::collection::vec((addresses(), addresses(), 0u8..2, 0u8..2), 1..50),
    ) {
        any_history(&SPEC6, &rules, &routes, &packets)?;
    }
}
