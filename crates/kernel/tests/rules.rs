//! Random policy rules and routes in a network namespace, and routes in the table local: what the mirror has forwarded, the
//! kernel would forward so.

mod common;

use std::net::IpAddr;

use causeway_kernel::{Action, Family, PuntReason, ReversePath};
use common::{Follower, Testbed};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PORTS: [&str; 2] = ["r0", "r1"];
const FAMILIES: [(Family, &str); 2] = [(Family::V4, "-4"), (Family::V6, "-6")];
/// States that are tried.
const STATES: u32 = 16;

/// Of IPv4; those of IPv6 are made of them.
const PREFIXES: [&str; 7] =
    ["10.9.0.0/16", "10.9.1.0/24", "10.8.0.0/16", "10.8.3.0/24", "10.9.1.7/32", "10.0.0.0/8", "0.0.0.0/0"];
const HOSTS: [&str; 7] =
    ["10.9.1.7", "10.9.1.8", "10.9.2.1", "10.8.3.1", "10.8.4.1", "10.7.0.1", "203.0.113.1"];
const TABLES: [&str; 6] = ["main", "main", "100", "100", "101", "default"];

fn address(family: Family, v4: &str) -> String {
    match (family, v4.parse::<std::net::Ipv4Addr>()) {
        (Family::V6, Ok(v4)) => v4.to_ipv6_mapped().to_string().replacen("::ffff:", "2001:db8:a::", 1),
        _ => v4.to_owned(),
    }
}

fn prefix(family: Family, v4: &str) -> String {
    let (first, len) = v4.split_once('/').unwrap();
    match (family, len) {
        (Family::V4, _) => v4.to_owned(),
        (Family::V6, "0") => "::/0".to_owned(),
        (Family::V6, _) => format!("{}/{}", address(family, first), len.parse::<u8>().unwrap() + 96),
    }
}

/// A selector of a rule.
fn selector(family: Family, kind: usize, at: usize) -> String {
    let at = prefix(family, PREFIXES[at % 6]);
    match kind {
        0..6 => format!("to {at}"),
        6..8 => "from all".to_owned(),
        8..11 => format!("from {at}"),
        11 => "iif r0".to_owned(),
        12 | 13 => format!("iif r2 to {at}"),
        14 => "iif lo".to_owned(),
        15 => "oif r1".to_owned(),
        16 => format!("fwmark 1 to {at}"),
        17 => format!("not from {at}"),
        18 => format!("to {at} ipproto tcp dport 80"),
        19 => format!("iif r1 from {at}"),
        20 => "tos 0x10".to_owned(),
        _ => format!("from {at} to {}", prefix(family, "10.8.0.0/16")),
    }
}

fn action(kind: usize) -> &'static str {
    [
        "lookup 100",
        "lookup 101",
        "lookup 100",
        "lookup main",
        "lookup 101",
        "lookup main suppress_prefixlength 0",
        "lookup 100 suppress_prefixlength 16",
        "blackhole",
        "unreachable",
        "nop",
        "goto 32766",
    ][kind]
}

/// Rules by priority, selector, prefix and action; routes by prefix, table and target; whether sources are checked strictly.
type State = (Vec<(u32, usize, usize, usize)>, Vec<(usize, usize, usize)>, bool);

fn state() -> impl Strategy<Value = State> {
    let rule = (100u32..106, 0usize..22, 0usize..6, 0usize..11);
    let route = (0usize..7, 0usize..6, 0usize..8);
    (
        proptest::collection::vec(rule, 1..6),
        proptest::collection::vec(route, 8..24),
        (0u8..4).prop_map(|n| n == 0),
    )
}

fn commands(family: Family, (rules, routes, _): &State) -> String {
    let mut lines = String::new();
    for (priority, kind, at, what) in rules {
        lines +=
            &format!("rule add priority {priority} {} {}\n", selector(family, *kind, *at), action(*what));
    }
    for (at, table, target) in routes {
        let prefix = prefix(family, PREFIXES[*at]);
        let gateway = |port: usize| match family {
            Family::V4 => format!("via 10.0.{port}.2 dev r{port}"),
            Family::V6 => format!("via 2001:db8:{port}::2 dev r{port}"),
        };
        let (kind, way) = match target {
            0..3 => ("", gateway(0)),
            3..6 => ("", gateway(1)),
            6 => ("", gateway(2)),
            _ => ("unreachable ", String::new()),
        };
        lines += &format!("route replace {kind}{prefix} {way} table {}\n", TABLES[*table]);
    }
    lines
}

/// Port and gateway by which packets are forwarded that come in by `iif`, unless they are left to the kernel.
fn forwarded(
    follower: &Follower,
    to: IpAddr,
    from: IpAddr,
    iif: &str,
    strict: bool,
) -> Option<(String, String)> {
    let seen = &follower.seen;
    if follower.watcher.mirror().is_ruled(Family::of(to), iif) {
        return None;
    }
    let back = seen.lookup(from);
    // What comes from an address of this machine is the kernel's.
    if back.is_some_and(|hop| matches!(hop.action, Action::Punt(PuntReason::Local))) {
        return None;
    }
    let is_nowhere = back.is_some_and(|hop| {
        hop.reverse_path == ReversePath::NotUnicast
            && matches!(hop.action, Action::Punt(PuntReason::Blackhole | PuntReason::Unreachable))
    });
    let back = back.map(|hop| &hop.reverse_path);
    let ifindex = seen.links.values().find(|link| link.name == iif)?.index;
    let may = match back {
        Some(ReversePath::Ruled) => false,
        _ if to.is_ipv6() => true,
        Some(back) if strict => back.has(ifindex),
        Some(back) => is_nowhere || matches!(back, ReversePath::Interfaces(_)),
        None => !strict,
    };
    let Action::Forward { legs, .. } = &seen.lookup(to)?.action else { return None };
    let adjacency = &seen.adjacencies[&legs[0].adjacency];
    let name = seen.links[&adjacency.ifindex].name.clone();
    (may && adjacency.rewrite.is_some() && name != iif).then(|| (name, adjacency.address.to_string()))
}

/// The same of the kernel.
fn truth(bed: &Testbed, to: &str, from: &str, iif: &str) -> Option<(String, String)> {
    let text = bed.router.try_show(&format!("route get {to} from {from} iif {iif}"))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |word: &str| words.iter().position(|w| *w == word).map(|at| words[at + 1].to_owned());
    Some((after("dev")?, after("via")?))
}

/// A router with three ports, of which it holds two, in a state.
fn bed(state: &State) -> Option<Testbed> {
    let bed = Testbed::with_ports("rules", 3)?;
    let strict = u8::from(state.2);
    bed.router.sysctl("ipv4.ip_forward=1");
    bed.router.sysctl("ipv6.conf.all.forwarding=1");
    bed.router.sysctl(&format!("ipv4.conf.all.rp_filter={strict}"));
    for port in 0..3 {
        bed.router.sysctl(&format!("ipv4.conf.r{port}.rp_filter={strict}"));
        for gateway in [format!("10.0.{port}.2"), format!("2001:db8:{port}::2")] {
            let mac = format!("02:00:00:00:01:0{}", port + 1);
            bed.router.ip(&format!("neigh replace {gateway} lladdr {mac} dev r{port} nud permanent"));
        }
    }
    for (family, option) in FAMILIES {
        // The kernel refuses some: a rule that it has, a selector that its family does not have.
        for command in commands(family, state).lines() {
            bed.router.try_show(&format!("{option} {command}"));
        }
    }
    Some(bed)
}

/// Holds what is forwarded against the kernel, in a state. How many questions there were, and of those how many packets are
/// forwarded.
fn compare(bed: &Testbed, strict: bool) -> (u32, u32) {
    let mut follower = bed.follow(&PORTS);
    follower.settle();
    let (mut asked, mut taken) = (0, 0);
    for (a, b) in HOSTS.iter().flat_map(|a| HOSTS.iter().map(move |b| (a, b))) {
        for ((family, _), iif) in FAMILIES.into_iter().flat_map(|family| PORTS.map(|port| (family, port))) {
            let (to, from) = (address(family, a), address(family, b));
            let here = forwarded(&follower, to.parse().unwrap(), from.parse().unwrap(), iif, strict);
            asked += 1;
            taken += u32::from(here.is_some());
            if here.is_some() && here != truth(bed, &to, &from, iif) {
                let show = |what: &str| {
                    bed.router.show(&format!("-4 {what}")) + &bed.router.show(&format!("-6 {what}"))
                };
                let (rules, routes) = (show("rule"), show("route show table all"));
                panic!(
                    "{to} from {from} by {iif}: {here:?}, not {:?}\n{rules}{routes}",
                    truth(bed, &to, &from, iif)
                );
            }
        }
    }
    (asked, taken)
}

#[test]
fn what_is_forwarded_under_rules_the_kernel_would_forward_so() {
    let mut runner =
        TestRunner::new(Config { cases: STATES, failure_persistence: None, ..Config::default() });
    let sums = std::cell::Cell::new((0, 0));
    let result = runner.run(&state(), |state| {
        if let Some(bed) = bed(&state) {
            let (asked, taken) = compare(&bed, state.2);
            sums.set((sums.get().0 + asked, sums.get().1 + taken));
        }
        Ok(())
    });
    result.unwrap();
    let (asked, taken) = sums.get();
    println!("of {asked} packets {taken} are forwarded");
    assert!(taken * 10 >= asked, "too few: {taken} of {asked}");
}

/// Routes by prefix, whether in the table local, and target.
type Routes = Vec<(usize, bool, usize)>;

fn beside_local(family: Family, routes: &Routes) -> String {
    let mut lines = String::new();
    for &(at, is_local, target) in routes {
        let prefix = prefix(family, PREFIXES[at]);
        let port = target % 2;
        let way = match family {
            Family::V4 => format!("{prefix} via 10.0.{port}.2 dev r{port}"),
            Family::V6 => format!("{prefix} via 2001:db8:{port}::2 dev r{port}"),
        };
        let route = match target {
            0..6 => way,
            6 | 7 => format!("local {prefix} dev lo"),
            8 => format!("blackhole {prefix}"),
            _ => format!("throw {prefix}"),
        };
        lines += &format!("route replace {route} table {}\n", if is_local { "local" } else { "main" });
    }
    lines
}

/// Until there is another rule than the kernel's own its IPv4 tables local and main are one, of which the longest prefix counts,
/// and from then on they are two, of which local comes first, whether there is still such a rule or not.
#[test]
fn what_is_forwarded_beside_the_table_local_the_kernel_would_forward_so() {
    let mut runner =
        TestRunner::new(Config { cases: STATES, failure_persistence: None, ..Config::default() });
    let sums = std::cell::Cell::new((0, 0));
    let route = (0usize..7, proptest::bool::weighted(0.2), 0usize..10);
    let routes = proptest::collection::vec(route, 6..16);
    let result = runner.run(&(routes, any::<bool>()), |(routes, strict)| {
        let Some(bed) = bed(&(Vec::new(), Vec::new(), strict)) else { return Ok(()) };
        for (family, option) in FAMILIES {
            beside_local(family, &routes).lines().for_each(|line| {
                bed.router.try_show(&format!("{option} {line}"));
            });
        }
        for change in ["", "rule add to 203.0.113.0/24 lookup 100 priority 50", "rule del priority 50"] {
            if !change.is_empty() {
                bed.router.ip(change);
            }
            let (asked, taken) = compare(&bed, strict);
            sums.set((sums.get().0 + asked, sums.get().1 + taken));
        }
        Ok(())
    });
    result.unwrap();
    let (asked, taken) = sums.get();
    println!("of {asked} packets {taken} are forwarded");
    assert!(taken * 10 >= asked, "too few: {taken} of {asked}");
}

/// What is sure of the two tables: the answers are the same in each state of the kernel's, and those that are not pass.
#[test]
fn a_way_out_in_the_table_local_is_the_kernels_with_all_that_it_covers() {
    let Some(bed) = bed(&(Vec::new(), Vec::new(), false)) else { return };
    for route in [
        "10.9.0.0/16 via 10.0.0.2 table local",
        "10.9.1.7/32 via 10.0.1.2",
        "local 10.8.0.0/16 dev lo table local",
        "10.8.3.0/24 via 10.0.1.2",
        "10.0.0.0/8 via 10.0.1.2",
    ] {
        bed.router.ip(&format!("route add {route}"));
    }
    let mut follower = bed.follow(&PORTS);
    let truth = |to: &str| truth(&bed, to, "203.0.113.1", "r0").map(|(_, via)| via);
    bed.router.ip("route add default via 10.0.0.2");
    assert_eq!(truth("10.9.1.7").as_deref(), Some("10.0.1.2"), "the tables are one");
    assert_eq!(truth("10.8.3.1").as_deref(), Some("10.0.1.2"), "the tables are one");
    for change in ["", "rule add to 203.0.113.0/24 lookup 100 priority 50", "rule del priority 50"] {
        if !change.is_empty() {
            bed.router.ip(change);
            assert_eq!(truth("10.9.1.7").as_deref(), Some("10.0.0.2"), "the tables are two");
            assert_eq!(truth("10.8.3.1"), None, "the tables are two");
        }
        follower.settle();
        for to in ["10.9.1.7", "10.9.1.8"] {
            assert_eq!((&*follower.to(to), &*follower.from(to)), ("punt local-table", "unknown"), "{change}");
        }
        for to in ["10.8.3.1", "10.8.4.1"] {
            assert_eq!(follower.to(to), "punt local", "{change}");
        }
        assert!(follower.to("10.7.0.1").starts_with("r1 via 10.0.1.2"), "{change}");
    }
    bed.router.ip("route del 10.9.0.0/16 table local");
    follower.until("a route of main alone", |f| f.to("10.9.1.7").starts_with("r1 via 10.0.1.2"));
    assert!(follower.to("10.9.1.8").starts_with("r1 via 10.0.1.2"));
}

/// A rule can name an interface by an alternative name, which is none that its link goes by.
#[test]
fn a_rule_about_a_port_by_another_name_is_not_missed() {
    let Some(bed) = bed(&(Vec::new(), Vec::new(), false)) else { return };
    for line in [
        "link property add dev r0 altname upstream",
        "route add 10.9.0.0/16 via 10.0.1.2",
        "route add 10.8.0.0/16 via 10.0.1.2",
        "route add 203.0.113.0/24 via 10.0.0.2",
        "route add 10.9.1.0/24 via 10.0.0.2 table 100",
        "rule add iif upstream lookup 100 priority 50",
    ] {
        bed.router.ip(line);
    }
    let mut follower = bed.follow(&PORTS);
    follower.settle();
    let truth = |to: &str| truth(&bed, to, "203.0.113.1", "r0").map(|(_, via)| via);
    assert_eq!(truth("10.9.1.7").as_deref(), Some("10.0.0.2"), "the kernel holds to the rule");
    assert_eq!(follower.to("10.9.1.7"), "punt policy-rules");
    for to in ["10.9.2.1", "10.8.3.1"] {
        assert_eq!(truth(to).as_deref(), Some("10.0.1.2"));
        assert!(
            follower.to(to).starts_with("r1 via 10.0.1.2"),
            "{to}: what the rule's table has no route for"
        );
    }
    // With a source, all from there are the kernel's.
    bed.router.ip("rule add iif upstream from 203.0.113.0/24 blackhole priority 40");
    follower.until("the sources are the kernel's", |f| f.from("203.0.113.1") == "ruled");
    assert_eq!(truth("10.8.3.1"), None);
    bed.router.ip("rule del priority 40");
    // The rule stays the port's when another interface goes by the name.
    bed.router.ip("link property del dev r0 altname upstream");
    bed.router.ip("link add upstream type veth peer name downstream");
    assert_eq!(truth("10.9.1.7").as_deref(), Some("10.0.0.2"), "the kernel holds to the rule");
    follower.until("the other interface", |f| f.seen.links.values().any(|link| link.name == "upstream"));
    follower.settle();
    assert_eq!(follower.to("10.9.1.7"), "punt policy-rules");
}

/// What a rule is about may be no port yet.
#[test]
fn a_name_that_a_link_had_before_it_was_a_port_is_not_forgotten() {
    let Some(bed) = bed(&(Vec::new(), Vec::new(), false)) else { return };
    for line in [
        "link property add dev r2 altname upstream",
        "route add 10.9.0.0/16 via 10.0.1.2",
        "route add 10.9.1.0/24 via 10.0.0.2 table 100",
        "rule add iif upstream lookup 100 priority 50",
    ] {
        bed.router.ip(line);
    }
    let mut follower = bed.follow(&PORTS);
    follower.settle();
    bed.router.ip("link property del dev r2 altname upstream");
    bed.router.ip("link add upstream type veth peer name downstream");
    follower.until("the other interface", |f| f.seen.links.values().any(|link| link.name == "upstream"));
    let ports = ["r0", "r1", "r2"].map(|name| follower.watcher.mirror().link(name).unwrap().index);
    follower.watcher.set_ports(ports);
    follower.settle();
    let truth = truth(&bed, "10.9.1.7", "203.0.113.1", "r2").map(|(_, via)| via);
    assert_eq!(truth.as_deref(), Some("10.0.0.2"), "the kernel holds to the rule");
    assert_eq!(follower.to("10.9.1.7"), "punt policy-rules");
}

/// A route that does not count and whose device has no carrier leaves packets to one of a higher metric or a shorter prefix, which
/// counts if it rejects them.
#[test]
fn what_is_behind_a_suppressed_route_that_is_dead_is_looked_at() {
    let Some(bed) = bed(&(Vec::new(), Vec::new(), false)) else { return };
    bed.router.sysctl("ipv4.conf.r0.ignore_routes_with_linkdown=1");
    for line in [
        "rule add lookup main suppress_prefixlength 16 priority 50",
        "rule add lookup 100 priority 51",
        "route add default via 10.0.1.2 table 100",
        "route add 10.9.0.0/16 via 10.0.0.2",
        "route add 10.9.1.0/24 via 10.0.1.2",
    ] {
        bed.router.ip(line);
    }
    let mut follower = bed.follow(&PORTS);
    follower.settle();
    let truth = |to: &str| truth(&bed, to, "203.0.113.1", "r1").map(|(_, via)| via);
    for to in ["10.9.1.7", "10.9.2.1", "10.8.3.1"] {
        assert!(follower.to(to).starts_with("r1 via 10.0.1.2"), "{to}: {}", follower.to(to));
    }
    for behind in ["unreachable 10.0.0.0/8", "unreachable 10.9.0.0/16 metric 100"] {
        bed.hosts.ip("link set h0 up");
        bed.router.ip(&format!("route add {behind}"));
        follower.until("one behind it that rejects", |f| f.to("10.9.2.1") == "punt policy-rules");
        bed.hosts.ip("link set h0 down");
        follower.until("the kernel rejects", |_| truth("10.9.2.1").is_none());
        follower.settle();
        assert_eq!(follower.to("10.9.2.1"), "punt policy-rules", "{behind}");
        assert!(follower.to("10.9.1.7").starts_with("r1 via 10.0.1.2"), "it counts");
        bed.router.ip(&format!("route del {behind}"));
        follower.until("none that rejects", |f| f.to("10.9.2.1").starts_with("r1 via 10.0.1.2"));
    }
}
