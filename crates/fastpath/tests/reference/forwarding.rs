//! The router that follows the kernel: its element, its program by the interpreter, and the same in the driver.

use crate::frames::{self, OURS};
use causeway_bpf::{Map, MapKind, Program, ProgramKind, TestRun, XdpContext, action};
use causeway_elements::kernel::{
    FORWARDING, Forwarding, KERNEL, Neighbour, Paths, PortPolicy, ReversePath, lower,
};
use causeway_engine::Persistent;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_engine::ir::Outcome;
use causeway_fastpath::{
    Action, Compiled, Counters, Exit, Graph, Hook, Hop, Hops, Node, Options, Place, Routes, SharedRegion,
    Table, Target, Trie, Words, compile,
};
use causeway_fib::{
    ADJACENCIES_MAX, Adjacencies, Domain, Fib, Fib6, MISS, Prefix4, Rank24, Rank24Layout, Region, Table as _,
};
use causeway_packet::Packet;
use fastrand::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const PORTS: usize = 3;
/// The port that frames come in by.
const IN: usize = 0;
/// The port that no packet can be redirected to.
const DEAF: usize = 2;
/// Next hops, the last a group, and the one before that the kernel's.
const HOPS: u32 = 12;

/// A router as the control side keeps it.
struct Router {
    memory: Arc<SharedRegion>,
    paths: SharedRegion,
    policies: SharedRegion,
    hops: Hops,
    interfaces: Map,
    forwarding: Arc<Forwarding>,
    _fib: Fib<u32, Rank24>,
}

const LAYOUT: Rank24Layout = Rank24Layout::new(17);

fn addresses(rng: &mut Rng) -> [u8; 12] {
    std::array::from_fn(|_| rng.u8(..))
}

impl Router {
    fn new(rng: &mut Rng) -> Router {
        let domain = Domain::new();
        let memory = Arc::new(SharedRegion::new(LAYOUT.bytes()).expect("memory"));
        let (mut hops, words) = (Hops::new(ADJACENCIES_MAX).expect("memory"), |n: u32| {
            SharedRegion::new(8 * n as usize).expect("memory")
        });
        let (paths, policies) = (words(ADJACENCIES_MAX), words(64));
        let structure = Rank24::in_region(LAYOUT, memory.clone(), &domain).expect("room");
        let mut fib = Fib::with_structure(structure);
        let mut neighbours = Adjacencies::in_domain(&domain);
        let mut kind = Vec::new();
        for n in 0..HOPS {
            let port = if n == HOPS - 2 { KERNEL } else { (n as usize % PORTS) as u16 };
            let neighbour = Neighbour {
                port,
                reason: 0,
                mtu_bytes: [1500, 40, 1280][rng.usize(..3)],
                addresses: addresses(rng),
                mark: n as u16,
                serial: n,
            };
            let index = match n {
                _ if n == HOPS - 1 => neighbours.group(&[(kind[0], 1), (kind[1], 2)]).expect("room"),
                _ => neighbours.acquire(neighbour).expect("room"),
            };
            kind.push(index);
            let plain = n < HOPS - 2;
            hops.set(index, plain.then(|| Hop { words: neighbour.words(), on_link: false, mark: n as u16 }));
        }
        let fib6 = Fib6::in_domain(&domain).expect("memory");
        let lease = Arc::new(AtomicU64::new(u64::MAX));
        let names = (0..PORTS).map(|n| format!("p{n}")).collect();
        let forwarding = Forwarding::new(names, &["x"], lease, (&domain, &fib, &fib6, &neighbours));
        let forwarding = Arc::new(forwarding);
        for (n, &index) in kind.iter().enumerate() {
            let way = match n % 4 {
                0 => Paths::unicast([IN, 1]),
                1 => Paths::unicast([1]),
                2 => Paths::ours(),
                _ => [Paths::nowhere(), Paths::unknown()][rng.usize(..2)],
            };
            forwarding.set_paths(index, way);
            paths.words()[index as usize].store(way.to_bits(), Ordering::Relaxed);
        }
        paths.words()[MISS as usize].store(Paths::nowhere().to_bits(), Ordering::Relaxed);
        for (text, n) in [("0.0.0.0/0", 0), ("10.0.0.0/8", 1)] {
            fib.replace(text.parse().expect("a prefix"), kind[n]).expect("room");
        }
        for _ in 0..40 {
            let prefix = Prefix4::truncated(address(rng), rng.u8(9..=32));
            fib.replace(prefix, kind[rng.usize(..HOPS as usize)]).expect("room");
        }
        if rng.bool() {
            fib.withdraw("0.0.0.0/0".parse().expect("a prefix")).expect("it is there");
        }
        let interfaces = Map::new(MapKind::DevMap, "ports", 4, 4, PORTS as u32).expect("a map");
        for port in (0..PORTS).filter(|&port| port != DEAF) {
            interfaces.insert_u32(port as u32, 1).expect("the loopback device");
        }
        // What the table's owner drops first must not go with it.
        std::mem::forget((neighbours, fib6));
        Router { memory, paths, policies, hops, interfaces, forwarding, _fib: fib }
    }

    fn set_policy(&self, policy: PortPolicy) {
        self.forwarding.set_policy(IN, policy);
        self.policies.words()[IN].store(policy.to_bits().into(), Ordering::Relaxed);
    }

    fn compiled<'m>(&'m self, counters: &'m Counters) -> (Compiled, Graph<Table<'m>>) {
        let trie = Trie { memory: &self.memory, layout: LAYOUT };
        let mut tables = vec![None; 3];
        tables[lower::table::POLICIES] = Some(Table::Words(Words { memory: &self.policies, len: 64 }));
        let paths = Words { memory: &self.paths, len: ADJACENCIES_MAX };
        tables[lower::table::PATHS] = Some(Table::RouteWords(trie, paths));
        let interfaces = Some(&self.interfaces);
        tables[lower::table::NEXT_HOPS] =
            Some(Table::Routes(Routes { trie, hops: &self.hops, interfaces, check: None }));
        let program = lower::program(&self.forwarding, IN as u16);
        assert!(program.is_some(), "it can be said");
        let outputs = (0..PORTS).map(|port| Some(Target::Emit(port))).collect();
        let graph = Graph { nodes: vec![Node { name: "forward".to_owned(), program, tables, outputs }] };
        let ports = [Action::Return(action::XDP_REDIRECT); PORTS];
        let up = Action::Return(action::XDP_PASS);
        let options =
            Options { hook: Hook::Xdp([0; 6]), ports: &ports, up, anew: Some(up), doubted: None, counters };
        (compile(&graph, &options).expect("a program"), graph)
    }

    /// The element, with its inputs and outputs by port.
    fn element(&self) -> Harness {
        let library = causeway_elements::library();
        let spec = library.get("KernelForward").expect("a class");
        let values = Persistent::new(Mutex::new(
            [(FORWARDING.to_owned(), self.forwarding.clone() as Arc<_>)].into_iter().collect(),
        ));
        let ports = Ports { pulled_inputs: vec![false; PORTS], outputs: vec![Output::Pushed; 2 * PORTS] };
        Harness::with_values(spec, "p0, p1, p2", &ports, values).expect("built")
    }
}

/// Addresses of which many are alike.
fn address(rng: &mut Rng) -> u32 {
    let byte = |rng: &mut Rng| [1, 2, 3, 130][rng.usize(..4)];
    u32::from_be_bytes([10 + rng.u8(..2), byte(rng), byte(rng), byte(rng)])
}

/// An IPv4 packet in a frame, as good as any, or with something wrong.
fn frame(rng: &mut Rng) -> Vec<u8> {
    if rng.u8(..8) == 0 {
        return frames::frame(rng);
    }
    let len = rng.usize(28..80);
    let mut ip = vec![0; len];
    (ip[0], ip[8], ip[9]) = (0x45, rng.u8(1..5), 17);
    ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&rng.u16(..).to_be_bytes());
    if rng.u8(..8) == 0 {
        ip[6] = [0x40, 0x20, 0x80][rng.usize(..3)];
    }
    ip[12..16].copy_from_slice(&address(rng).to_be_bytes());
    ip[16..20].copy_from_slice(&address(rng).to_be_bytes());
    ip[28..].fill_with(|| rng.u8(..));
    let sum = ip[..20].as_chunks::<2>().0.iter().map(|&w| u32::from(u16::from_be_bytes(w))).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    if rng.u8(..16) == 0 {
        let at = rng.usize(..20);
        ip[at] ^= 1 << rng.u8(..8);
    }
    let mut frame = [&OURS[..], &[2, 0, 0, 0, 0, 9], &[8, 0], &ip].concat();
    match rng.u8(..8) {
        0 => frame.resize(frame.len() + rng.usize(1..20), 0xee),
        1 => frame.truncate(rng.usize(14..frame.len())),
        _ => {}
    }
    frame
}

fn policy(rng: &mut Rng) -> PortPolicy {
    let checks = [ReversePath::Off, ReversePath::Loose, ReversePath::Strict];
    PortPolicy {
        ipv4: rng.u8(..8) != 0,
        ipv6: rng.bool(),
        reverse_path: checks[rng.usize(..3)],
        hairpin: rng.bool(),
    }
}

/// What the element does: the port that the frame leaves by, and how; none if it is the kernel's.
fn by_element(element: &mut Harness, frame: &[u8]) -> Option<(usize, Vec<u8>)> {
    element.push(IN, Packet::from_bytes(frame).expect("a packet"));
    let left: Vec<(usize, Vec<u8>)> = (0..2 * PORTS)
        .flat_map(|output| element.take(output).into_iter().map(move |p| (output, p.data().to_vec())))
        .collect();
    assert_eq!(left.len(), 1, "one frame leaves");
    left.into_iter().find(|(output, _)| *output < PORTS)
}

#[test]
fn what_leaves_in_the_driver_leaves_as_the_element_says_and_all_else_is_as_it_came() {
    if !crate::is_root() {
        return;
    }
    let wanted = crate::frames_wanted(20_000);
    let (mut sent, mut kept, mut deaf) = ([0; PORTS], 0, 0);
    for seed in 0..20 {
        let rng = &mut Rng::with_seed(seed);
        let router = Router::new(rng);
        let counters = Counters::new().expect("counters");
        let (compiled, mut graph) = router.compiled(&counters);
        assert_eq!(compiled.left, [], "all of it is in the driver");
        let program = compiled.load_as(ProgramKind::XdpFragments, "reference").expect("loaded");
        let mut element = router.element();
        for n in 0..wanted / 20 {
            if n % 16 == 0 {
                router.set_policy(policy(rng));
            }
            let frame = frame(rng);
            let before = counted(&compiled, &counters);
            let run = run(&program, &frame);
            let exit = which(&compiled, &before, &counted(&compiled, &counters));
            let element = by_element(&mut element, &frame);
            let interpreted = interpret(&mut graph, &frame);
            match exit {
                Exit::Emit(port) => {
                    assert_eq!(run.verdict, action::XDP_REDIRECT, "frame {n}: {frame:02x?}");
                    let way = Some((port, run.data));
                    assert_eq!(way, element, "frame {n}: {frame:02x?}");
                    assert_eq!(way, interpreted, "frame {n}: {frame:02x?}");
                    sent[port] += 1;
                }
                Exit::Up(Place::Node(0)) => {
                    assert_eq!(run.verdict, action::XDP_PASS);
                    assert_eq!(run.data, frame, "what goes up is as it came");
                    let group_or_version_6 = element.is_some() && interpreted.is_none();
                    match &interpreted {
                        Some((port, _)) => {
                            assert_eq!(*port, DEAF, "only this is not said by the program: {frame:02x?}");
                            deaf += 1;
                        }
                        None => kept += 1 + usize::from(group_or_version_6),
                    }
                }
                exit => panic!("{exit:?}: {frame:02x?}"),
            }
        }
    }
    eprintln!("sent {sent:?}, kept {kept}, for a deaf port {deaf}");
    assert!(sent[0] > wanted / 200 && sent[1] > wanted / 200 && sent[DEAF] == 0, "{sent:?}");
    assert!(kept > wanted / 10 && deaf > wanted / 200, "{kept} {deaf}");
}

fn run(program: &Program, frame: &[u8]) -> TestRun {
    program.test_run(frame, Some(XdpContext { ingress_ifindex: 1, rx_queue_index: 0 }), 1).expect("run")
}

fn counted(compiled: &Compiled, counters: &Counters) -> Vec<u64> {
    (0..compiled.exits.len()).map(|n| counters.get(compiled.first_exit + n)).collect()
}

/// The one exit that was counted.
fn which(compiled: &Compiled, before: &[u64], after: &[u64]) -> Exit {
    let taken: Vec<usize> = (0..before.len()).filter(|&n| after[n] == before[n] + 1).collect();
    assert_eq!(taken.len(), 1, "one exit: {taken:?}");
    compiled.exits[taken[0]]
}

fn interpret(graph: &mut Graph<Table<'_>>, frame: &[u8]) -> Option<(usize, Vec<u8>)> {
    let mut packet = Packet::from_bytes(frame).expect("a packet");
    match graph.nodes[0].program.as_mut()?.run(&mut packet, 0) {
        Outcome::Leave(port) => Some((port, packet.data().to_vec())),
        _ => {
            assert_eq!(packet.data(), frame, "what is given up is as it came");
            None
        }
    }
}
