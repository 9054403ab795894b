//! Random routes, next hop objects and policy rules.

use crate::plan::{self, PORTS};
use crate::state::Draft;
use std::fmt::Write;

/// What a route may say of its packets, besides where they go.
const ATTRIBUTES4: [&str; 13] = [
    "mtu 1300",
    "mtu lock 1300",
    "mtu 1000",
    "mtu lock 600",
    "src 10.255.0.1",
    "tos 0x10",
    "tos 0x08",
    "advmss 1000",
    "window 1000",
    "initcwnd 5",
    "quickack 1",
    "hoplimit 9",
    "realm 7",
];
const ATTRIBUTES6: [&str; 9] = [
    "mtu 1300",
    "mtu lock 1300",
    "src 2001:db8:ff::1",
    "pref high",
    "pref low",
    "hoplimit 9",
    "advmss 1000",
    "expires 600",
    "features ecn",
];

/// One route or more, to a prefix that packets will be sent to.
pub fn route(draft: &mut Draft) {
    let v6 = draft.rng.bool();
    let prefix = if v6 { draft.prefix6() } else { draft.prefix4() };
    let mut tail = String::new();
    if draft.chance(3) {
        let _ = write!(tail, " metric {}", draft.rng.u32(1..4) * 100);
    }
    if draft.chance(3) {
        let attribute = if v6 { *draft.pick(&ATTRIBUTES6) } else { *draft.pick(&ATTRIBUTES4) };
        if !(draft.facts.any_path && attribute.contains("mtu")) {
            let _ = write!(tail, " {attribute}");
        }
    }
    match draft.rng.u32(0..24) {
        0 | 1 => tail += " table 100",
        2 => tail += " table local",
        _ => {}
    }
    let protocol = if draft.chance(12) { "ra" } else { "77" };
    let verb = *draft.pick(&["add", "add", "append", "prepend", "replace"]);
    let target = target(draft, v6);
    let route = match target.split_once('!') {
        Some((kind, rest)) => format!("{kind} {prefix} {rest}"),
        None => format!("{prefix} {target}"),
    };
    // What is said of the route stands before its next hops.
    let line = match route.split_once(" nexthop ") {
        Some((head, hops)) => format!("route {verb} {head} proto {protocol}{tail} nexthop {hops}"),
        None => format!("route {verb} {route} proto {protocol}{tail}"),
    };
    draft.ip(line);
    if draft.chance(10) {
        let verb = *draft.pick(&["del", "change"]);
        draft.ip(format!("route {verb} {route}"));
    }
}

fn gateway(draft: &mut Draft, v6: bool) -> (String, usize) {
    let port = draft.port();
    // Sometimes one that must be asked for.
    let list = if draft.chance(6) { plan::ASKED } else { plan::KNOWN };
    let last = *draft.pick(&list);
    let gateway =
        if v6 { format!("2001:db8:{port}::{:x}", last.1) } else { format!("10.1.{port}.{}", last.0) };
    (gateway, port)
}

/// Where a route leads; a kind of route before an exclamation mark.
fn target(draft: &mut Draft, v6: bool) -> String {
    match draft.rng.u32(0..26) {
        0..8 => {
            let (gateway, port) = gateway(draft, v6);
            let onlink = if draft.chance(5) { " onlink" } else { "" };
            format!("via {gateway} dev p{port}{onlink}")
        }
        8 => {
            // A gateway that is on no subnet of its port.
            let port = draft.port();
            let far = if v6 { "2001:db8:99::9" } else { "10.99.0.9" };
            draft.ip(format!("neigh replace {far} lladdr 02:bb:99:00:00:0{port} nud permanent dev p{port}"));
            format!("via {far} dev p{port} onlink")
        }
        9 => format!("dev p{}", draft.port()),
        10 => "blackhole!".into(),
        11 => "unreachable!".into(),
        12 => "prohibit!".into(),
        13 => "throw!".into(),
        14 => {
            format!("{}!dev p{}", draft.pick(&["local", "broadcast", "anycast", "multicast"]), draft.port())
        }
        15..19 => paths(draft, v6),
        19 => {
            let port = draft.port();
            format!("via inet6 2001:db8:{port}::10 dev p{port}")
        }
        20 if v6 => {
            let (gateway, port) = gateway(draft, v6);
            format!("from 2001:db8:{}::/48 via {gateway} dev p{port}", draft.rng.u32(0..5))
        }
        20 => "dev lo".into(),
        21 => encapsulated(draft, v6),
        _ => object(draft, v6),
    }
}

fn encapsulated(draft: &mut Draft, v6: bool) -> String {
    let (gateway, port) = gateway(draft, v6);
    if v6 {
        format!("encap seg6 mode encap segs 2001:db8:40::1 via {gateway} dev p{port}")
    } else {
        format!("encap ip id 5 dst 10.64.0.1 via {gateway} dev p{port}")
    }
}

fn paths(draft: &mut Draft, v6: bool) -> String {
    let mut text = String::new();
    for _ in 0..draft.rng.usize(2..6) {
        let (gateway, port) = gateway(draft, v6);
        let weight = if draft.chance(2) { 1 } else { draft.rng.u32(1..20) };
        let _ = write!(text, " nexthop via {gateway} dev p{port} weight {weight}");
    }
    text.trim_start().to_owned()
}

/// Makes next hop objects; a route by one of them.
fn object(draft: &mut Draft, v6: bool) -> String {
    let first = draft.objects;
    let count = draft.rng.u32(1..5);
    for _ in 0..count {
        draft.objects += 1;
        let id = draft.objects;
        let line = match draft.rng.u32(0..10) {
            0 if !v6 => format!("nexthop add id {id} blackhole"),
            1 => format!("nexthop add id {id} dev p{}", draft.port()),
            _ => {
                let (gateway, port) = gateway(draft, v6);
                format!("nexthop add id {id} via {gateway} dev p{port}")
            }
        };
        draft.ip(line);
    }
    if count == 1 && draft.rng.bool() {
        return format!("nhid {}", first + 1);
    }
    let members: Vec<String> =
        (1..=count).map(|n| format!("{},{}", first + n, draft.rng.u32(1..9))).collect();
    draft.objects += 1;
    let id = draft.objects;
    let kind = if draft.chance(4) { " type resilient buckets 16 idle_timer 0" } else { "" };
    draft.ip(format!("nexthop add id {id} group {}{kind}", members.join("/")));
    // Objects change and go while routes use them.
    match draft.rng.u32(0..12) {
        0 => {
            let (gateway, port) = gateway(draft, v6);
            draft.later.push(format!("nexthop replace id {} via {gateway} dev p{port}", first + 1));
        }
        1 => draft.later.push(format!("nexthop del id {}", first + 1)),
        2 => draft.later.push(format!("nexthop replace id {id} group {}", first + 1)),
        _ => {}
    }
    format!("nhid {id}")
}

/// A policy rule.
pub fn rule(draft: &mut Draft) {
    let v6 = draft.rng.bool();
    let family = if v6 { "-6" } else { "-4" };
    let prefix = if v6 { draft.prefix6() } else { draft.prefix4() };
    let port = draft.rng.usize(0..PORTS);
    let selector = match draft.rng.u32(0..12) {
        0 | 8..12 => format!("to {prefix}"),
        1 => format!("from {prefix}"),
        2 => format!("iif p{port}"),
        3 => "tos 0x10".to_owned(),
        4 => "ipproto udp dport 1000-40000".to_owned(),
        5 => "fwmark 7".to_owned(),
        6 => format!("oif p{port}"),
        _ => "from all".to_owned(),
    };
    let action = *draft.pick(&[
        "lookup 100",
        "lookup 101",
        "lookup main",
        "lookup 101",
        "blackhole",
        "unreachable",
        "prohibit",
        "lookup main suppress_prefixlength 15",
    ]);
    draft.shell(format!("ip {family} rule add prio {} {selector} {action}", draft.objects + 1000));
    draft.undo_shell(
        "ip -4 rule flush; ip -4 rule add prio 32766 lookup main; ip -4 rule add prio 32767 lookup default"
            .into(),
    );
    draft.undo_shell("ip -6 rule flush; ip -6 rule add prio 32766 lookup main".into());
    let via = if v6 { "2001:db8:1::11" } else { "10.1.1.9" };
    draft.ip(format!("route replace {prefix} via {via} table 101 proto 77"));
}
