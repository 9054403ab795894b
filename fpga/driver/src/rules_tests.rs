//! The text form of the rule table and its checks.

use super::*;
use crate::corpus::{Random, random_table};
use proptest::prelude::*;

const TEXT: &str = "
    nic 0 mac 02:00:00:00:00:00
    nic 1 mac 02:00:00:00:00:01   # the second card
    route 10.0.1.0/24 nic 1 mac 02:00:00:00:01:fe
    route 10.0.0.0/255.255.255.0 nic 0 mac 02:00:00:00:00:fe
    route 10.0.1.1/32 host
    class nic 1 tos 0xb8/0xfc proto 17
    class host src 192.0.2.0/24
    policy ttl-expired host";

#[test]
fn the_text_form_is_read() {
    let table = RuleTable::parse(TEXT).unwrap();
    assert_eq!(table.nics.len(), 2);
    let nic = |dst| match table.lookup(dst).unwrap().to {
        Target::Nic { nic, .. } => Some(nic),
        Target::Host => None,
    };
    assert_eq!(nic(0x0a00_0105), Some(1));
    assert_eq!(nic(0x0a00_0005), Some(0));
    assert_eq!(nic(0x0a00_0101), None);
    assert_eq!(table.lookup(0x0a00_0205), None);
    let class = table.classes[1].unwrap();
    assert!(class.matches(ClassKey::new(0xb9, 1, 2, 17)));
    assert!(!class.matches(ClassKey::new(0xb0, 1, 2, 17)));
    assert!(!class.matches(ClassKey::new(0xb8, 1, 2, 6)));
    assert!(table.policy.ttl_expired_to_host && !table.policy.drop_bad_checksum);
}

#[test]
fn routes_through_cards_that_overlap_are_refused_and_too_many() {
    let text = format!("{TEXT}\nroute 10.0.1.128/25 nic 0 mac 02:00:00:00:00:fe");
    assert_eq!(RuleTable::parse(&text), Err(RuleError::Overlap(0, 3)));
    let text = format!("{TEXT}\nroute 10.0.1.128/25 host");
    assert!(RuleTable::parse(&text).is_ok());
    let many: String = (0..14).map(|n| format!("\nroute 10.1.{n}.0/24 host")).collect();
    assert_eq!(RuleTable::parse(&format!("{TEXT}{many}")), Err(RuleError::RouteCount(17)));
}

#[test]
fn prefixes_have_edges_but_the_longest_and_masks_of_other_shapes() {
    let route = |mask| Route { value: 0, mask, to: Target::Nic { nic: 0, next_hop: Mac::default() } };
    for (mask, edges) in
        [(0xffff_ff00, true), (0xffff_fffc, true), (0xffff_fffe, false), (u32::MAX, false), (0, true)]
    {
        assert_eq!(route(mask).has_edges(), edges, "{mask:#x}");
    }
    assert!(!route(0xff00_ff00).has_edges());
    assert!(!Route { to: Target::Host, ..route(0xffff_ff00) }.has_edges());
}

#[test]
fn bad_lines_are_named() {
    for (line, text) in [(1, "nic 1 mac 02:00:00:00:00:00"), (2, "\nroute 10.0.0.0/33 nic 0 mac 0:0:0:0:0:0")]
    {
        assert!(matches!(RuleTable::parse(text), Err(RuleError::Line(n, _)) if n == line), "{text}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let twice = format!("{TEXT}\nclass host tos 1");
    assert!(
        matches!(RuleTable::parse(&twice), Err(RuleError::Line(10, _))),
        "{:?}",
        RuleTable::parse(&twice)
    );
    let absent = format!("{TEXT}\nclass nic 2 tos 1");
    assert_eq!(RuleTable::parse(&absent), Err(RuleError::UnknownNic(2)));
    let mut loose = RuleTable::parse(TEXT).unwrap();
    loose.host_class.as_mut().unwrap().value.0 |= 1;
    assert_eq!(loose.check(), Err(RuleError::LooseClassBits(None)));
    loose.host_class.as_mut().unwrap().mask.0 |= 1 | 1 << 80;
    assert_eq!(loose.check(), Err(RuleError::LooseClassBits(None)));
}

/// A table as somebody might write it.
fn written(table: &RuleTable) -> String {
    let mut text = String::new();
    for (n, mac) in table.nics.iter().enumerate() {
        text += &format!("nic {n} mac {mac:?}\n");
    }
    for Route { value, mask, to } in &table.routes {
        let (value, mask) = (Ipv4Addr::from(*value), Ipv4Addr::from(*mask));
        text += &match to {
            Target::Nic { nic, next_hop } => format!("route {value}/{mask} nic {nic} mac {next_hop:?}\n"),
            Target::Host => format!("route {value}/{mask} host\n"),
        };
    }
    let class = |to: String, rule: &ClassRule| {
        let (v, m) = (rule.value.0, rule.mask.0);
        let address = |bits: u128| Ipv4Addr::from(bits as u32);
        let (tos, tos_mask, proto, proto_mask) = ((v >> 72) as u8, (m >> 72) as u8, v as u8, m as u8);
        let (src, src_mask) = (address(v >> 40), address(m >> 40));
        let (dst, dst_mask) = (address(v >> 8), address(m >> 8));
        format!(
            "class {to} tos {tos:#x}/{tos_mask} src {src}/{src_mask} dst {dst}/{dst_mask} proto {proto}/{proto_mask:#x}\n"
        )
    };
    for (n, rule) in table.classes.iter().enumerate() {
        text.extend(rule.iter().map(|rule| class(format!("nic {n}"), rule)));
    }
    text.extend(table.host_class.iter().map(|rule| class("host".into(), rule)));
    let policies = [
        (table.policy.drop_bad_checksum, "bad-checksum drop"),
        (table.policy.ttl_expired_to_host, "ttl-expired host"),
        (table.policy.keep_source_mac, "source-mac keep"),
    ];
    text.extend(policies.iter().filter(|p| p.0).map(|p| format!("policy {}\n", p.1)));
    text
}

proptest! {
    #[test]
    fn what_is_written_is_read(seed: u64, nic in 0u8..4) {
        let table = random_table(&mut Random::new(seed), nic);
        prop_assert_eq!(RuleTable::parse(&written(&table)), Ok(table));
    }

    #[test]
    fn any_words_are_a_checked_table_or_an_error(
        words in proptest::collection::vec(
            prop::sample::select(vec![
                "nic", "route", "class", "host", "route 10.0.0.1/32 host\n", "policy", "mac", "tos", "src", "dst", "proto", "\n", "\n", "#", "0", "1",
                "0x", "8", "255/", "256", "0xff/0xff", "10.0.0.0/8", "10.0.0.0/33", "1.2.3.4/0.0.255.0", "2:0:0:0:0:1",
                "2:0:0:0:0:1:", "bad-checksum", "drop", "nic 0 mac 2:0:0:0:0:0\n", "\u{feff}",
            ]),
            0..40,
        ),
    ) {
        if let Ok(table) = RuleTable::parse(&words.join(" ")) {
            prop_assert_eq!(table.check(), Ok(()));
        }
    }
}

#[test]
fn the_readmes_example_is_a_table() {
    let readme = include_str!("../../README.md");
    let example = readme.split("# rules.txt\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let table = RuleTable::parse(example).unwrap();
    assert_eq!((table.nics.len(), table.routes.len()), (2, 4));
}
