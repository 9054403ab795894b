//! What single messages do to the mirror, and which tables it asks for then.

#[path = "../common/mod.rs"]
mod common;
mod links;
#[allow(dead_code, reason = "sequences ask more of it")]
#[path = "../model/mod.rs"]
mod model;
mod objects;
mod routes;
mod rules;
mod rules_followed;

use causeway_kernel::{
    Address, Family, Link, Message, Mirror, Neighbour, NextHop, NextHopKind, Object, Operation, Path, Prefix,
    PuntReason, Qdisc, ReversePath, Rewrite, Route, Rule, RuleAction, Scope, Setting, SettingScope, Snapshot,
    Target,
};
use common::{describe, describe_reverse};
use model::{NaiveKernel, PORTS, blackhole, local};
use std::net::IpAddr;

const ADDED: Operation = Operation::Added { replace: false, append: false };
const APPENDED: Operation = Operation::Added { replace: false, append: true };
const SHOWN: Operation = Operation::Dumped;
const GONE: Operation = Operation::Removed;

const BY_BOTH: &str = "p1 via 10.1.0.9 weight 1 unresolved, p2 via 10.2.0.9 weight 1 unresolved";
const BY_FIRST: &str = "p1 via 10.1.0.9 weight 1 unresolved";
const BY_SECOND: &str = "p2 via 10.2.0.9 weight 1 unresolved";

/// What has to be dumped to know which routes are left.
fn routing() -> Scope {
    Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6
}

/// A mirror of a kernel with three links, of which two are ports, and nothing else; nothing is needed.
fn mirror() -> Mirror {
    let mut mirror = Mirror::new(PORTS);
    NaiveKernel::new(false).dump(&mut mirror, Scope::ALL);
    forget(&mut mirror);
    mirror
}

/// All that is pending has been seen.
fn forget(mirror: &mut Mirror) {
    mirror.collect(|| {});
    let _ = (mirror.take_needs(), mirror.take_urgent());
}

fn tell(mirror: &mut Mirror, operation: Operation, object: Object) {
    mirror.apply(Message { operation, object });
}

/// A dump of `table` that shows these objects and no more.
fn dump(mirror: &mut Mirror, table: Scope, objects: impl IntoIterator<Item = Object>) {
    mirror.begin_resync();
    objects.into_iter().for_each(|object| tell(mirror, SHOWN, object));
    mirror.end_resync(table);
}

fn link(index: u32) -> Link {
    NaiveKernel::new(false).links[&index].clone()
}

fn without_carrier(index: u32) -> Link {
    Link { carrier: false, ..link(index) }
}

fn down(index: u32) -> Link {
    Link { up: false, ..without_carrier(index) }
}

fn path(ifindex: u32) -> Path {
    Path { ifindex, gateway: Some([10, ifindex as u8, 0, 9].into()), weight: 1 }
}

/// A route to 192.0.`net`.0/24.
fn route(net: u8, target: Target) -> Route {
    Route {
        prefix: Prefix::new([192, 0, net, 0].into(), 24),
        table: 254,
        tos: 0,
        metric: 0,
        protocol: 3,
        source_specific: false,
        target,
        mtu_bytes: None,
        source: None,
        dead: Vec::new(),
        identity: 0,
    }
}

/// A route by these ports.
fn by(ports: &[u32]) -> Route {
    route(0, Target::Paths(ports.iter().copied().map(path).collect()))
}

/// An IPv4 prefix.
fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), len.parse().unwrap())
}

/// A route to an IPv4 prefix in a table.
fn in_table(table: u32, to: &str, target: Target) -> Route {
    Route { table, prefix: prefix(to), ..route(0, target) }
}

/// The way by a port.
fn way(port: u32) -> Target {
    Target::Paths(vec![path(port)])
}

/// By both ports, to 2001:db8::/32.
fn by_both6() -> Route {
    let path = |ifindex: u32| {
        let gateway = Some(format!("2001:db8:{ifindex}::9").parse().unwrap());
        Path { ifindex, gateway, weight: 1 }
    };
    let target = Target::Paths(PORTS.map(path).into());
    Route { prefix: Prefix::new("2001:db8::".parse().unwrap(), 32), ..route(0, target) }
}

fn object(id: u32, kind: NextHopKind) -> Object {
    Object::NextHop(NextHop { id, kind })
}

fn qdisc(ifindex: u32) -> Object {
    Object::Qdisc(Qdisc { ifindex, handle: 1, parent: u32::MAX, kind: "htb".to_owned() })
}

fn address(text: &str, ifindex: u32) -> Address {
    Address { address: text.parse().unwrap(), prefix_len: 16, ifindex }
}

/// What becomes of packets to a destination, and what a check of it as a source asks.
fn answers(mirror: &mut Mirror, to: &str) -> (String, String) {
    mirror.collect(|| {});
    let seen: Snapshot = mirror.snapshot();
    let hop = seen.lookup(to.parse::<IpAddr>().unwrap());
    hop.map_or_else(Default::default, |hop| (describe(&seen, hop), describe_reverse(&seen, hop)))
}

fn answer(mirror: &mut Mirror) -> String {
    answers(mirror, "192.0.0.1").0
}
