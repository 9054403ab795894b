//! What a firewall of a hundred rules takes, rule by rule, as the list that the element makes of all, and as its diagram: by the
//! interpreter and in the kernel. The three must end alike; how long they take is printed, and nothing is asserted of it.
//!
//! `FIREWALL_RUNS` says how many runs there are of a measurement.

use crate::firewall::{packets, pattern_of, rules};
use causeway_bpf::{ErrorKind, Program, action};
use causeway_engine::harness::Harness;
use causeway_engine::ir;
use causeway_engine::ir::{Outcome, as_diagram};
use causeway_fastpath::{Action, Counters, Graph, Hook, Node, Options, Table, Target, compile};
use causeway_packet::{Packet, PacketType};
use std::hint::black_box;
use std::time::Instant;

/// Measurements of each way, which take turns. The median counts.
const ROUNDS: usize = 9;
const HOOK: Hook = Hook::Xdp([0; 6]);
/// What is in front of the rules.
const FRONT: usize = 2;

type Nodes = Vec<Node<Table<'static>>>;

/// Adds an element.
fn add(nodes: &mut Nodes, class: &str, config: &str, outputs: Vec<Option<Target>>) {
    let spec = causeway_elements::library().get(class).expect("a class");
    let h = Harness::new(spec, config, 1, outputs.len()).unwrap_or_else(|why| panic!("{config}: {why:?}"));
    nodes.push(Node { name: class.to_owned(), program: h.lower(), tables: Vec::new(), outputs });
}

/// The packet's headers are found, and then come the rules, which `write` adds.
fn graph(write: impl FnOnce(&mut Nodes)) -> Nodes {
    let mut nodes = Nodes::new();
    add(&mut nodes, "Strip", "14", vec![Some(Target::Node(1))]);
    add(&mut nodes, "CheckIPHeader", "CHECKSUM false", vec![Some(Target::Node(FRONT))]);
    write(&mut nodes);
    nodes
}

/// The ways through the rules; the first has none.
fn ways() -> [(&'static str, Nodes); 4] {
    let allowed = Some(Target::Emit(0));
    let all = rules().join(", ");
    let list = || graph(|nodes| add(nodes, "IPFilter", &all, vec![allowed]));
    let mut diagram = list();
    diagram[FRONT].program = diagram[FRONT].program.take().map(as_diagram);
    let by_rule = graph(|nodes| {
        for rule in rules() {
            let to = if rule.starts_with("allow") { allowed } else { None };
            let next = Some(Target::Node(nodes.len() + 1));
            add(nodes, "IPClassifier", &format!("{}, -", pattern_of(&rule)), vec![to, next]);
        }
        // "all" lets nothing by.
        if let Some(last) = nodes.last_mut() {
            last.outputs[1] = None;
        }
    });
    let none = graph(|nodes| add(nodes, "Paint", "1", vec![allowed]));
    [("no rules", none), ("rule by rule", by_rule), ("list", list()), ("diagram", diagram)]
}

/// Whether a packet leaves, by the programs.
fn interpret(nodes: &mut Nodes, packet: &mut Packet) -> bool {
    let mut at = 0;
    loop {
        let node = &mut nodes[at];
        let left = node.program.as_mut().map(|program: &mut ir::Program| program.run(packet, 0));
        match left {
            Some(Outcome::Leave(output)) => match node.outputs.get(output).copied().flatten() {
                Some(Target::Node(next)) => at = next,
                target => return target.is_some(),
            },
            Some(Outcome::Drop(_)) => return false,
            given_up => panic!("{given_up:?} of {}", node.name),
        }
    }
}

/// The packet as it comes in.
fn marked(bytes: &[u8]) -> Packet {
    let mut packet = Packet::from_bytes(bytes).expect("a packet");
    packet.set_packet_type(PacketType::Host);
    packet
}

fn load(nodes: Nodes, counters: &Counters) -> Program {
    let options = Options {
        hook: HOOK,
        ports: &[Action::Return(action::XDP_TX)],
        up: Action::Return(action::XDP_PASS),
        anew: None,
        doubted: None,
        without_room: None,
        counters,
        edges: false,
        first_number: 0,
    };
    let compiled = compile(&Graph { nodes }, &options).expect("a program");
    assert_eq!(compiled.left, [], "all of it is in the driver");
    compiled.load(HOOK, "firewall").expect("loaded")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn runs() -> u32 {
    std::env::var("FIREWALL_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

/// A table of nanoseconds a packet, with those that what is in front of the rules takes: `time` measures a way, by its place.
fn table(title: &str, names: [&str; 4], time: impl Fn(usize, &[u8]) -> f64) {
    println!("{title}, ns {:>15} {:>12} {:>8} {:>8}", names[0], names[1], names[2], names[3]);
    for (name, sent) in packets() {
        let (bytes, mut times) = (sent.bytes(), [const { Vec::new() }; 4]);
        for _ in 0..ROUNDS {
            for (way, times) in times.iter_mut().enumerate() {
                times.push(time(way, &bytes));
            }
        }
        let [none, by_rule, list, diagram] = times.map(median);
        println!("{name:36} {none:8.1} {:12.1} {:8.1} {:8.1}", by_rule - none, list - none, diagram - none);
    }
}

#[test]
fn three_ways_through_a_hundred_rules_end_alike() {
    let names = ways().map(|(name, _)| name);
    let interpreted = std::cell::RefCell::new(ways().map(|(_, nodes)| nodes));
    for (name, sent) in packets() {
        let ends = interpreted.borrow_mut().each_mut().map(|way| interpret(way, &mut marked(&sent.bytes())));
        assert_eq!(ends[1..], [ends[1]; 3], "{name}");
        assert_eq!(ends, [true, name.contains("first"), ends[2], ends[3]], "{name}");
    }
    table("by the interpreter", names, |way, bytes| {
        let way = &mut interpreted.borrow_mut()[way];
        let mut packet = marked(bytes);
        let began = Instant::now();
        for _ in 0..runs() {
            // What is stripped is put back; the classifications change nothing.
            black_box(interpret(way, &mut packet));
            packet.push(14).expect("room");
        }
        began.elapsed().as_nanos() as f64 / f64::from(runs())
    });
    let counters = match Counters::new() {
        Ok(counters) => counters,
        Err(e) if e.kind() == ErrorKind::Privilege => {
            return eprintln!("skipped: needs root to load BPF programs");
        }
        Err(e) => panic!("{e}"),
    };
    let programs = ways().map(|(_, nodes)| load(nodes, &counters));
    for (name, sent) in packets() {
        let verdict = |program: &Program| program.test_run(&sent.bytes(), None, 1).expect("run").verdict;
        let expected = if name.contains("first") { action::XDP_TX } else { action::XDP_DROP };
        assert_eq!(programs.each_ref().map(verdict)[1..], [expected; 3], "{name}");
    }
    table("in the kernel", names, |way, bytes| {
        f64::from(programs[way].test_run(bytes, None, runs()).expect("run").duration_ns)
    });
}
