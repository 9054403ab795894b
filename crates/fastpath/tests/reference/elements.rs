//! The elements' own programs: a router for IPv4, with its table in memory that the driver reads.

use crate::frames;
use crate::plain::Elements;
use crate::twin::Twin;
use crate::whole;
use causeway_fastpath::{
    Above, Counters, Exit, Graph, Hook, Hop, Hops, NextHops, Node, Place, Routes, SharedRegion, Table,
    Target, Trie,
};
use causeway_fib::{Domain, Fib, Rank24, Rank24Layout, Table as _};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROUTES: &[(&str, u16, Option<u32>)] = &[
    ("10.0.0.0/16", 0, None),
    ("10.1.0.0/16", 1, None),
    ("10.1.1.0/24", 0, Some(0x0a00_0009)),
    ("10.2.0.0/15", 1, Some(0x0a01_0009)),
    ("10.2.1.4/30", 0, Some(0x0a00_0008)),
    ("10.2.2.3/32", 1, None),
];

const TABLE: &str = "RadixIPLookup";

/// The table of [`ROUTES`] in the driver: its memory, and its hops.
struct Driver {
    memory: Arc<SharedRegion>,
    hops: Hops,
    layout: Rank24Layout,
    _fib: Fib<u32, Rank24>,
}

const HOPS: u32 = 64;

impl Driver {
    fn new() -> Driver {
        let layout = Rank24Layout::new(16);
        let memory = Arc::new(SharedRegion::new(layout.bytes()).expect("memory"));
        let mut hops = Hops::new(HOPS).expect("memory");
        let structure = Rank24::in_region(layout, memory.clone(), &Domain::new()).expect("room");
        let mut fib = Fib::with_structure(structure);
        for (n, &(prefix, output, gateway)) in (1..).zip(ROUTES) {
            fib.insert(prefix.parse().expect("a prefix"), n).expect("room");
            let words = [output.into(), gateway.unwrap_or(0).into(), 0];
            hops.set(n, Some(Hop { words, on_link: gateway.is_none(), mark: n as u16 }));
        }
        Driver { memory, hops, layout, _fib: fib }
    }

    fn table(&self) -> Table<'_> {
        let trie = Trie::V4 { memory: &self.memory, layout: self.layout };
        let next_hops = NextHops { hops: &self.hops, interfaces: None, check: None };
        Table::Routes(Routes { trie, next_hops, group: None })
    }
}

/// An element of the router: class, configuration, and where its outputs lead.
pub type Part = (&'static str, String, Vec<Option<Target>>);

/// A router with two ports, its rules in front of the table if it has any.
pub fn router(with_rules: bool) -> Vec<Part> {
    let node = |n| Some(Target::Node(n));
    let (up, table) = (Some(Target::Up(99, 0)), if with_rules { 5 } else { 4 });
    let arp = "12/0806 20/0001, 12/0806 20/0002, 12/0800, -";
    let mut parts: Vec<Part> = vec![
        ("Classifier", arp.to_owned(), vec![up, up, node(1), None]),
        ("Paint", "1".to_owned(), vec![node(2)]),
        ("Strip", "14".to_owned(), vec![node(3)]),
        ("CheckIPHeader", "INTERFACES 10.0.0.1/16 10.1.0.1/16".to_owned(), vec![node(4), None]),
    ];
    if with_rules {
        let rules = "deny src 10.1.2.3, deny tcp and dst port 53, 1 udp and src net 10.2.0.0/16, \
                     deny ip frag and not dst 10.1.1.0/24, allow all";
        parts.push(("IPFilter", rules.to_owned(), vec![node(table), Some(Target::Emit(2))]));
    }
    let routes: Vec<String> = ROUTES
        .iter()
        .map(|(prefix, output, gateway)| match gateway {
            Some(gateway) => format!("{prefix} {} {output}", std::net::Ipv4Addr::from(*gateway)),
            None => format!("{prefix} {output}"),
        })
        .collect();
    parts.push((TABLE, routes.join(", "), vec![node(table + 1), node(table + 6)]));
    for (port, own) in [(0, "10.0.0.1"), (1, "10.1.0.1")] {
        let first = table + 1 + 5 * port;
        let header = "0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2";
        parts.extend([
            ("DropBroadcasts", String::new(), vec![node(first + 1)]),
            ("PaintTee", "2".to_owned(), vec![node(first + 2), up]),
            ("FixIPSrc", own.to_owned(), vec![node(first + 3)]),
            ("DecIPTTL", String::new(), vec![node(first + 4), up]),
            ("EtherEncap", header.to_owned(), vec![Some(Target::Emit(port))]),
        ]);
    }
    parts
}

/// What the parts lower to.
fn nodes<'m>(parts: &[Part], elements: &Elements, driver: &'m Driver) -> Vec<Node<Table<'m>>> {
    let node = |(at, (class, _, outputs)): (usize, &Part)| {
        let program = elements.lower(at).map(causeway_engine::ir::as_diagram);
        assert!(program.is_some(), "{class} says what it does");
        let tables = vec![(*class == TABLE).then(|| driver.table())];
        Node { name: (*class).to_owned(), program, tables, outputs: outputs.clone() }
    };
    parts.iter().enumerate().map(node).collect()
}

#[test]
fn a_router_does_in_the_driver_what_its_elements_say() {
    compare(Hook::Xdp(frames::OURS));
}

#[test]
fn a_router_does_at_tcx_what_its_elements_say() {
    compare(Hook::Tcx(Above::Graph));
}

/// Small elements, one behind the other.
fn small() -> Vec<Part> {
    let node = |n| Some(Target::Node(n));
    let row = [
        ("Null", ""),
        ("Counter", ""),
        ("MarkMACHeader", "0, 14"),
        ("CheckLength", "120"),
        ("MarkIPHeader", "14"),
        ("SetIPDSCP", "46"),
        ("MarkIPCE", "true"),
        ("SetIPAddress", "10.0.0.9"),
        ("SetAnnoByte", "20, 1"),
        ("GetEtherAddress", "24, src"),
        ("StoreEtherAddress", "OFFSET 0, ANNO 24"),
        ("EtherMirror", ""),
        ("VLANDecap", "true, ETHERTYPE 0x0800"),
        ("MarkIP6Header", "14"),
        ("GetIP6Address", "40"),
        ("Strip", "14"),
        ("Unstrip", "10"),
        ("Truncate", "70"),
        ("Counter", ""),
    ];
    let first = ("Classifier", "12/0800, -".to_owned(), vec![node(2), node(1)]);
    let mut parts = vec![first, ("Discard", String::new(), vec![])];
    for (class, config) in row {
        // Packets that go elsewhere are given up.
        parts.push((class, config.to_owned(), vec![node(parts.len() + 1)]));
    }
    // Some are painted, and none has so high a paint.
    let by_tos = vec![node(parts.len() + 1), node(parts.len() + 2)];
    parts.push(("HashSwitch", "50, 1".to_owned(), by_tos));
    parts.push(("StaticSwitch", "0".to_owned(), vec![node(parts.len() + 2)]));
    parts.push(("Idle", String::new(), vec![]));
    parts.push(("PaintSwitch", "20".to_owned(), vec![None, Some(Target::Emit(0))]));
    parts
}

#[test]
fn small_elements_do_in_the_driver_what_they_do() {
    for hook in [Hook::Xdp(frames::OURS), Hook::Tcx(Above::Graph)] {
        let Some((wanted, seen)) = agree(&small(), hook) else { return };
        let last = small().len() - 1;
        for exit in [Exit::Drop(1, 0), Exit::Drop(last - 1, 0), Exit::Up(Place::Node(5))] {
            assert!(often(&seen, exit, wanted), "{exit:?}: {seen:?}");
        }
    }
}

/// Compares what elements do to super-packets with what they do to their parts; how many took each exit.
fn agree_whole(parts: &[Part], packets: usize) -> BTreeMap<Exit, usize> {
    let driver = Driver::new();
    let nodes = nodes(parts, &Elements::new(parts), &driver);
    let counters = Counters::new().expect("counters");
    let mut twin = Twin::new(Graph { nodes }, &counters, 3, whole::HOOK);
    let (rng, mut seen) = (&mut Rng::with_seed(7), BTreeMap::new());
    for _ in 0..packets {
        let exit = whole::compare(&mut twin, rng).unwrap_or_else(|why| panic!("{parts:?}: {why}"));
        *seen.entry(exit).or_default() += 1;
    }
    seen
}

/// One element in front of the way out.
fn alone((class, config, outputs): &Part) -> Vec<Part> {
    let outputs = outputs.iter().map(|_| Some(Target::Emit(0))).collect();
    vec![("Null", String::new(), vec![Some(Target::Node(1))]), (*class, config.clone(), outputs)]
}

#[test]
fn elements_do_to_super_packets_what_they_do_to_their_parts() {
    if !crate::is_root() {
        return;
    }
    let wanted = crate::frames_wanted(400);
    small().iter().for_each(|part| drop(agree_whole(&alone(part), wanted)));
    let seen = agree_whole(&router(true), wanted);
    for port in 0..2 {
        assert!(seen.get(&Exit::Emit(port)).is_some_and(|&n| n * 20 > wanted), "port {port}: {seen:?}");
    }
}

#[test]
fn what_is_the_same_of_all_parts_is_looked_at_in_one_piece_and_nothing_else() {
    if !crate::is_root() {
        return;
    }
    let mut whole = Vec::new();
    for at in 0..70 {
        for bits in ["01", "02", "08", "80"] {
            let config = format!("{at}/00%{bits}, -");
            let seen = agree_whole(&alone(&("Classifier", config, vec![None, None])), 60);
            // Of one version it may be so, and of the other not.
            whole.extend(seen.contains_key(&Exit::Emit(0)).then_some((at, bits)));
        }
    }
    let is_whole = |at, bits| whole.contains(&(at, bits));
    assert!(is_whole(12, "01") && is_whole(33, "01") && is_whole(53, "01"), "{whole:?}");
    assert!(is_whole(67, "02") && !is_whole(67, "01"), "flags of TCP over IPv6: {whole:?}");
}

#[test]
fn a_super_packet_keeps_its_type() {
    if !crate::is_root() {
        return;
    }
    let encapsulated = |ethertype: &str| {
        let config = format!("{ethertype}, 2:0:0:0:0:1, 2:0:0:0:0:2");
        let strip = ("Strip", "14".to_owned(), vec![Some(Target::Node(1))]);
        agree_whole(&[strip, ("EtherEncap", config, vec![Some(Target::Emit(0))])], 60)
    };
    let (known, other) = (encapsulated("0x0800"), encapsulated("0x1234"));
    assert_eq!(known.keys().collect::<Vec<_>>(), [&Exit::Emit(0), &Exit::Up(Place::Node(1))]);
    assert_eq!(other.keys().collect::<Vec<_>>(), [&Exit::Up(Place::Node(1))]);
}

fn compare(hook: Hook) {
    let Some((wanted, seen)) = agree(&router(true), hook) else { return };
    for port in 0..2 {
        assert!(often(&seen, Exit::Emit(port), wanted), "port {port}: {seen:?}");
    }
    // Its Ethernet header was stripped off.
    let third = if matches!(hook, Hook::Tcx(_)) { Exit::Up(Place::Port(2)) } else { Exit::Emit(2) };
    assert!(often(&seen, third, wanted), "port 2: {seen:?}");
    // A rule denies, a broadcast, a route is missing, a header is bad.
    for exit in [Exit::Drop(4, 0), Exit::Up(Place::Node(5)), Exit::Up(Place::Node(3))] {
        assert!(often(&seen, exit, wanted), "{exit:?}: {seen:?}");
    }
}

/// Whether one of a thousand took an exit.
fn often(seen: &BTreeMap<Exit, usize>, exit: Exit, wanted: usize) -> bool {
    seen.get(&exit).is_some_and(|&n| n * 1_000 > wanted)
}

/// Runs the corpus through the parts, their programs and the compiled graph; how many frames there were, and by which exits they
/// left. `None` without root.
fn agree(parts: &[Part], hook: Hook) -> Option<(usize, BTreeMap<Exit, usize>)> {
    if !crate::is_root() {
        return None;
    }
    let driver = Driver::new();
    let mut elements = Elements::new(parts);
    let nodes = nodes(parts, &elements, &driver);
    let counters = Counters::new().expect("counters").with_bytes();
    let mut twin = Twin::new(Graph { nodes }, &counters, 3, hook);
    assert_eq!(twin.compiled.left, [], "all of it is in the driver");
    let rng = &mut Rng::with_seed(7);
    let mut seen: BTreeMap<Exit, usize> = BTreeMap::new();
    let wanted = crate::frames_wanted(10_000);
    for n in 0..wanted {
        let frame = Twin::fit(frames::frame(rng), hook);
        let done = twin.compare(&frame).and_then(|exit| {
            elements.compare(&frame, hook, &mut twin)?;
            Ok(exit)
        });
        let exit = done.unwrap_or_else(|why| panic!("frame {n}: {why}\n{frame:02x?}"));
        *seen.entry(exit).or_default() += 1;
    }
    eprintln!("{} instructions; {seen:?}", twin.compiled.code.insns().len());
    Some((wanted, seen))
}
