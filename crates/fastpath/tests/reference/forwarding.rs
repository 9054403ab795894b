//! The router that follows the kernel: its element, its program by the interpreter, and the same in the driver.

mod bare;
mod groups6;
mod packets;
mod super_packets;
mod ways;

use causeway_bpf::{Map, MapKind, Program, ProgramKind, SkbContext, TestRun, XdpContext, action};
use causeway_elements::kernel::lower::Begins;
use causeway_elements::kernel::{
    FORWARDING, Forwarding, InDriver, KERNEL, Neighbour, Paths, PortPolicy, ReversePath, lower,
};
use causeway_engine::Persistent;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_engine::ir::{self, Outcome};
use causeway_fastpath::{
    Above, Action, Compiled, Counters, Exit, Graph, Hook, Hop, Hops, Members, NextHops, Node, Options, Place,
    Routes, SharedRegion, Table, Target, Trie, Version, Ways, Words, compile,
};
use causeway_fib::{
    ADJACENCIES_MAX, Adjacencies, AdjacencyIndex, Domain, Fib, Fib6, Lines6, Lines6Layout, MISS, Prefix4,
    Prefix6, Rank24, Rank24Layout, Region, Table as _,
};
use causeway_packet::Packet;
use fastrand::Rng;
use packets::{address, address6, frame};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ways::Ways4;

const PORTS: usize = 4;
const XDP: Hook = Hook::Xdp([0; 6]);
/// The port that frames come in by.
const IN: usize = 0;
/// The port that no packet can be redirected to.
const DEAF: usize = 2;
/// Next hops: the last are groups, and the one before them is the kernel's.
const HOPS: u32 = 16;
const GROUPS: u32 = 4;
const PLAIN: u32 = HOPS - GROUPS - 1;

/// A router as the control side keeps it.
struct Router {
    memory: Arc<SharedRegion>,
    memory6: Arc<SharedRegion>,
    paths: SharedRegion,
    policies: SharedRegion,
    spread: Spread,
    hops: Hops,
    interfaces: Map,
    interfaces_at_tcx: Map,
    forwarding: Arc<Forwarding>,
    fib: Fib<u32, Rank24>,
    neighbours: Adjacencies<Neighbour>,
    fib6: Fib6,
}

/// How flows are spread, as the program sees it.
#[derive(Clone)]
struct Spread(Arc<SharedRegion>);

impl InDriver for Spread {
    fn set_paths(&self, _: AdjacencyIndex, _: Paths) {}
    fn set_policy(&self, _: usize, _: PortPolicy) {}
    fn set_flow_hashes(&self, bits: [u64; 2]) {
        self.0.words().iter().zip(bits).for_each(|(word, bits)| word.store(bits, Ordering::Relaxed));
    }
}

const LAYOUT: Rank24Layout = Rank24Layout::new(17);
const LAYOUT6: Lines6Layout = Lines6Layout::new(16);

fn addresses(rng: &mut Rng) -> [u8; 12] {
    std::array::from_fn(|_| rng.u8(..))
}

impl Router {
    fn new(rng: &mut Rng, routes6: usize) -> Router {
        Router::with_bare(rng, routes6, None)
    }

    /// One whose packets leave by a port without Ethernet headers.
    fn with_bare(rng: &mut Rng, routes6: usize, bare: Option<u16>) -> Router {
        let domain = Domain::new();
        let memory = Arc::new(SharedRegion::new(LAYOUT.bytes()).expect("memory"));
        let memory6 = Arc::new(SharedRegion::new(LAYOUT6.bytes()).expect("memory"));
        let (mut hops, words) = (Hops::new(ADJACENCIES_MAX).expect("memory"), |n: u32| {
            SharedRegion::new(8 * n as usize).expect("memory")
        });
        let (paths, policies) = (words(ADJACENCIES_MAX), words(64));
        let structure = Rank24::in_region(LAYOUT, memory.clone(), &domain).expect("room");
        let mut fib = Fib::with_structure(structure);
        let mut neighbours = Adjacencies::in_domain(&domain);
        let mut kind = Vec::new();
        for n in 0..HOPS {
            let port = if n == PLAIN { KERNEL } else { (n as usize % PORTS) as u16 };
            let neighbour = Neighbour {
                port,
                reason: 0,
                mtu_bytes: [1500, 40, 1280][rng.usize(..3)],
                addresses: if bare == Some(port) { [0; 12] } else { addresses(rng) },
                mark: n as u16,
                serial: n,
            };
            let index = match n {
                PLAIN.. if n > PLAIN => {
                    let members = rng.usize(1..18);
                    let members = (0..members).map(|_| (kind[rng.usize(..=PLAIN as usize)], rng.u32(1..4)));
                    neighbours.group(&members.collect::<Vec<_>>()).expect("room")
                }
                _ => neighbours.acquire(neighbour).expect("room"),
            };
            kind.push(index);
            match n {
                ..PLAIN => {
                    let hop = Hop { words: neighbour.words(), on_link: false, mark: n as u16 };
                    hops.set(index, Some(hop));
                }
                PLAIN => hops.set(index, None),
                _ => hops.set_group(index, &neighbours.regions(index)),
            }
        }
        let structure = Lines6::in_region(LAYOUT6, memory6.clone(), &domain).expect("room");
        let mut fib6 = Fib::with_structure(structure);
        let lease = Arc::new(AtomicU64::new(u64::MAX));
        let names = (0..PORTS).map(|n| format!("p{n}")).collect();
        let forwarding = Forwarding::new(names, &["x"], lease, (&domain, &fib, &fib6, &neighbours));
        let spread = Spread(Arc::new(words(2)));
        let forwarding = Arc::new(forwarding.with_driver(Arc::new(spread.clone())));
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
        for (text, n) in [("::/0", 0), ("2001:db8::/32", 1), ("2001:db8:1::/64", 2), ("2001:db8:1::1/128", 3)]
        {
            fib6.replace(text.parse().expect("a prefix"), kind[n]).expect("room");
        }
        // Neighbours that fill leaves.
        for n in 0..64 {
            let prefix = Prefix6::truncated(0x2001_0db8_0003_u128 << 80 | n << 64, 64);
            fib6.replace(prefix, kind[rng.usize(..HOPS as usize)]).expect("room");
        }
        for _ in 0..routes6 {
            let len = [rng.u8(33..=64), rng.u8(33..=128), 48, 64, 128][rng.usize(..5)];
            let prefix = Prefix6::truncated(address6(rng), len);
            fib6.replace(prefix, kind[rng.usize(..HOPS as usize)]).expect("room");
        }
        let interfaces = |kind| {
            let map = Map::new(kind, "ports", 4, 4, PORTS as u32).expect("a map");
            for port in (0..PORTS).filter(|&port| port != DEAF) {
                map.insert_u32(port as u32, 1).expect("the loopback device");
            }
            map
        };
        Router {
            memory,
            memory6,
            paths,
            policies,
            spread,
            hops,
            interfaces: interfaces(MapKind::DevMap),
            interfaces_at_tcx: interfaces(MapKind::Array),
            forwarding,
            fib,
            neighbours,
            fib6,
        }
    }

    fn set_policy(&self, policy: PortPolicy) {
        self.forwarding.set_policy(IN, policy);
        self.policies.words()[IN].store(policy.to_bits().into(), Ordering::Relaxed);
    }

    fn compiled<'m>(&'m self, hook: Hook, counters: &'m Counters) -> (Compiled, Graph<Table<'m>>) {
        self.compiled_for((hook, Begins::Ethernet), counters)
    }

    /// For packets that begin so.
    fn compiled_for<'m>(
        &'m self,
        (hook, begins): (Hook, Begins),
        counters: &'m Counters,
    ) -> (Compiled, Graph<Table<'m>>) {
        let trie = Trie::V4 { memory: &self.memory, layout: LAYOUT };
        let mut tables = vec![None; lower::table::COUNT];
        tables[lower::table::POLICIES] = Some(Table::Words(Words { memory: &self.policies, len: 64 }));
        let paths = Words { memory: &self.paths, len: ADJACENCIES_MAX };
        tables[lower::table::PATHS] = Some(Table::RouteWords(trie, paths));
        let interfaces = Some(match hook {
            Hook::Xdp(_) => Ways::Frames(&self.interfaces),
            Hook::Tcx(_) => Ways::Packets(&self.interfaces_at_tcx),
        });
        let next_hops = NextHops { hops: &self.hops, interfaces, check: None };
        tables[lower::table::NEXT_HOPS] =
            Some(Table::Routes(Routes { trie, next_hops, group: Some(lower::GROUP) }));
        let members = |version| Some(Table::Members(Members { next_hops, spread: &self.spread.0, version }));
        tables[lower::table::MEMBERS] = members(Version::V4);
        tables[lower::table::MEMBERS6] = members(Version::V6);
        let trie = Trie::V6 { memory: &self.memory6, layout: LAYOUT6 };
        tables[lower::table::PATHS6] = Some(Table::RouteWords(trie, paths));
        tables[lower::table::NEXT_HOPS6] =
            Some(Table::Routes(Routes { trie, next_hops, group: Some(lower::GROUP) }));
        let program = lower::program(&self.forwarding, IN as u16, begins);
        assert!(program.is_some(), "it can be said");
        let outputs = (0..PORTS).map(|port| Some(Target::Emit(port))).collect();
        let graph = Graph { nodes: vec![Node { name: "forward".to_owned(), program, tables, outputs }] };
        let ports = [Action::Forward; PORTS];
        let up = Action::Return(verdicts(hook)[1]);
        let options = Options {
            hook,
            ports: &ports,
            up,
            anew: Some(up),
            doubted: None,
            without_room: None,
            counters,
            edges: false,
            first_number: 0,
        };
        (compile(&graph, &options).expect("a program"), graph)
    }

    /// Members of the group that a frame's packet is to; 0 if it is to none.
    fn group(&self, frame: &[u8]) -> usize {
        let index = match frame.get(12..14) {
            Some([8, 0]) => frame
                .get(30..)
                .and_then(|ip| ip.first_chunk())
                .and_then(|to| self.fib.rib().longest(u32::from_be_bytes(*to)).map(|(_, index)| index)),
            Some([0x86, 0xdd]) => frame
                .get(38..)
                .and_then(|ip| ip.first_chunk())
                .and_then(|to| self.fib6.rib().longest(u128::from_be_bytes(*to)).map(|(_, index)| index)),
            _ => None,
        };
        index.map_or(0, |index| self.neighbours.regions(index).len())
    }

    /// The element, with its inputs and outputs by port.
    fn element(&self) -> Harness {
        let library = causeway_elements::library();
        let spec = library.get("KernelForward").expect("a class");
        let values = Persistent::new(Mutex::new(
            [(FORWARDING.to_owned(), self.forwarding.clone() as Arc<_>)].into_iter().collect(),
        ));
        let ports = Ports { pulled_inputs: vec![false; PORTS], outputs: vec![Output::Pushed; 2 * PORTS] };
        Harness::with_values(spec, "p0, p1, p2, p3", &ports, values).expect("built")
    }
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
    let (mut sent, mut kept, mut deaf, mut groups, mut six) = ([0; PORTS], 0, 0, [0; 2], 0);
    let mut unclear = [0; 2];
    for seed in 0..20 {
        let rng = &mut Rng::with_seed(seed);
        let routes6 = [10, 100, 3_000][rng.usize(..3)];
        let router = Router::new(rng, routes6);
        let mut ways = Ways4::new(&router);
        for n in 0..wanted / 20 {
            if n % 16 == 0 {
                router.set_policy(policy(rng));
                let mut policy = || if rng.u8(..4) == 0 { rng.u8(2..5) } else { rng.u8(..2) };
                let policies = [policy(), policy()].map(|policy| (policy, 0x37));
                let seed = [0, rng.u32(1..)][rng.usize(..2)];
                router.forwarding.set_flow_hash(policies[0], policies[1], seed);
            }
            let frame = frame(rng);
            let went = ways.send(&router, &frame);
            let is_six = frame.get(12) == Some(&0x86);
            match (went.exit, went.interpreted) {
                (Exit::Emit(port), _) => {
                    sent[port] += 1;
                    six += usize::from(is_six);
                    groups[usize::from(is_six)] += usize::from(router.group(&frame) > 0);
                }
                (_, Some((DEAF, _))) => deaf += 1,
                (_, Some(_)) => {}
                (_, None) => {
                    kept += 1;
                    unclear[usize::from(is_six)] += usize::from(went.element.is_some());
                }
            }
        }
    }
    eprintln!(
        "sent {sent:?}, kept {kept}, for a deaf port {deaf}, of IPv6 {six}; of IPv4 and IPv6 to groups {groups:?}, and given up \
         {unclear:?} that the element sends"
    );
    assert!(six > wanted / 100, "{six}");
    assert!(groups.iter().chain(&unclear).all(|&n| n > wanted / 1_000), "{groups:?} {unclear:?}");
    assert!(sent[0] > wanted / 200 && sent[1] > wanted / 200 && sent[DEAF] == 0, "{sent:?}");
    assert!(kept > wanted / 10 && deaf > wanted / 200, "{kept} {deaf}");
}

fn run(program: &Program, frame: &[u8]) -> TestRun {
    program.test_run(frame, Some(XdpContext { ingress_ifindex: 1, rx_queue_index: 0 }), 1).expect("run")
}

fn run_at_tcx(program: &Program, frame: &[u8], cb: u32) -> TestRun {
    program.test_run_at_tcx(frame, SkbContext { cb, ..SkbContext::default() }).expect("run")
}

/// What is returned for packets that are forwarded, and for those that go up.
fn verdicts(hook: Hook) -> [i32; 2] {
    match hook {
        Hook::Xdp(_) => [action::XDP_REDIRECT, action::XDP_PASS],
        Hook::Tcx(_) => [action::TCX_REDIRECT, action::TCX_NEXT],
    }
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

fn interpret(program: &mut ir::Program, frame: &[u8]) -> Option<(usize, Vec<u8>)> {
    let mut packet = Packet::from_bytes(frame).expect("a packet");
    match program.run(&mut packet, 0) {
        Outcome::Leave(port) => Some((port, packet.data().to_vec())),
        _ => {
            assert_eq!(packet.data(), frame, "what is given up is as it came");
            None
        }
    }
}
