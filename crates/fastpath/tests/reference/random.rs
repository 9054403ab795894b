//! Programs at random, joined at random.

use crate::frames;
use crate::twin::Twin;
use crate::whole;
use causeway_engine::Counter;
use causeway_engine::Counters as Words;
use causeway_engine::ir::{self, Alu, At, Base, Builder, Field, Program, Reg, Test, Value};
use causeway_engine::measure::Unit;
use causeway_fastpath::{Above, Counters, Exit, Graph, Hook, Node, Table, Target};
use fastrand::Rng;
use std::collections::BTreeMap;

/// A table that is in both: numbers below 64 lead somewhere.
#[derive(Clone, Copy)]
struct Known;

impl Known {
    fn words(key: [u64; 2]) -> Option<[u64; 3]> {
        (key[0] < 64 && key[1] == 0).then_some([key[0] % 3, key[0] * 257, 0x0102_0304_0506_0708 ^ key[0]])
    }

    fn map() -> causeway_bpf::Map {
        let map = causeway_bpf::Map::new(causeway_bpf::MapKind::Hash, "known", 16, 24, 64).expect("a map");
        for n in 0..64 {
            let bytes = |words: &[u64]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>();
            let key = [n, 0];
            map.insert(&bytes(&key), &bytes(&Known::words(key).unwrap_or_default())).expect("room");
        }
        map
    }
}

impl ir::Table for Known {
    fn look_up(&mut self, [first, second, ..]: ir::Key<u64>, _now_ns: u64) -> Option<[u64; 3]> {
        Known::words([first, second])
    }
}

struct Writer<'r> {
    rng: &'r mut Rng,
    b: Builder,
    known: Vec<Reg>,
    /// Not in use yet: each counts for one place alone.
    counters: &'r mut dyn Iterator<Item = Counter>,
    tables: usize,
}

impl Writer<'_> {
    fn value(&mut self) -> Value {
        const NUMBERS: &[u64] =
            &[0, 1, 2, 7, 14, 20, 34, 0xff, 300, 0x0800, 0xffff, 1 << 31, 1 << 40, u64::MAX];
        match self.rng.choice(&self.known) {
            Some(&reg) if self.rng.u8(..3) > 0 => reg.into(),
            _ => (*self.rng.choice(NUMBERS).unwrap_or(&0)).into(),
        }
    }

    fn at(&mut self) -> At {
        let base = [Base::Data, Base::Data, Base::Network, Base::Transport][self.rng.usize(..4)];
        At { base, offset: self.rng.u32(..24) }
    }

    fn field(&mut self) -> Field {
        let anno = Field::Anno(self.rng.u8(..12), self.rng.u8(1..=8));
        [Field::Length, Field::PacketType, Field::Mac, Field::Network, Field::Transport, anno, anno]
            [self.rng.usize(..7)]
    }

    fn op(&mut self) {
        let at = self.at();
        let known = match self.rng.u8(..18) {
            0..=3 => {
                let bytes = self.rng.u8(1..=8);
                self.b.load(at, bytes)
            }
            4 | 5 => {
                let field = self.field();
                self.b.get(field)
            }
            6..=9 => {
                use Alu::*;
                let how = [Add, Sub, And, Or, Xor, Shl, Shr, OnesAdd][self.rng.usize(..8)];
                let (x, y) = (self.value(), self.value());
                self.b.compute(how, x, y)
            }
            10 => {
                let bytes = match self.rng.bool() {
                    true => self.rng.u64(..=64).into(),
                    false => {
                        let value = self.value();
                        Value::Of(self.b.compute(Alu::And, value, 63))
                    }
                };
                self.b.sum(at, bytes)
            }
            11 => {
                let of = self.value();
                let set: Vec<u64> = (0..self.rng.usize(..12)).map(|_| self.rng.u64(..40)).collect();
                self.b.member(of, set)
            }
            12 if self.tables < 2 => {
                self.tables += 1;
                let low = self.value();
                let key = self.b.compute(Alu::And, low, 127);
                self.known.extend(self.b.look_up(Box::new(Known), [key.into(), 0.into()]));
                return;
            }
            13 | 14 => {
                let (bytes, value) = (self.rng.u8(1..=8), self.value());
                return self.b.store(at, bytes, value);
            }
            15 => {
                let (field, value) = (self.field(), self.value());
                return self.b.put(field, value);
            }
            16 => {
                let n = self.rng.u32(..20);
                return if self.rng.bool() { self.b.pull(n) } else { self.b.push(n) };
            }
            _ => {
                let (counter, by) = (self.counters.next().expect("a counter"), self.value());
                return self.b.count(&counter, by);
            }
        };
        self.known.push(known);
    }

    fn test(&mut self) -> Test {
        match self.rng.u8(..3) {
            0 => Test::Equal(self.value(), self.value()),
            1 => Test::Above(self.value(), self.value()),
            _ => Test::Has(self.at(), self.rng.u32(..40)),
        }
    }
}

/// A program that may be none.
fn attempt(rng: &mut Rng, counters: &mut dyn Iterator<Item = Counter>) -> Option<Program> {
    let blocks = rng.usize(1..6);
    let mut w = Writer { rng, b: Builder::new(), known: Vec::new(), counters, tables: 0 };
    let others: Vec<_> = (1..blocks).map(|_| w.b.block()).collect();
    for block in 0..blocks {
        w.b.at(block);
        (0..w.rng.usize(..5)).for_each(|_| w.op());
        let later = others.get(block..).unwrap_or_default();
        if later.is_empty() {
            // What was computed is seen in what is counted, whichever way the packet leaves.
            for reg in w.known.clone().into_iter().rev().take(6) {
                let counter = w.counters.next().expect("a counter");
                w.b.count(&counter, reg);
            }
        }
        match (w.rng.u8(..8), later) {
            (0..=4, [_, ..]) => {
                let (yes, no) = (later[w.rng.usize(..later.len())], later[w.rng.usize(..later.len())]);
                let test = w.test();
                w.b.branch(test, yes, no);
            }
            (5, [next, ..]) => w.b.go(*next),
            (0..=3, _) => {
                let port = w.rng.u16(..3);
                w.b.leave(port);
            }
            (4, _) => w.b.drop(1),
            (5, _) if !w.known.is_empty() => {
                let port = w.known[w.rng.usize(..w.known.len())];
                w.b.leave_by(port);
            }
            (6, _) => {
                let last = w.b.given_up();
                w.b.go(last);
            }
            _ => w.b.leave(0),
        }
    }
    w.b.finish()
}

fn graph<'m>(rng: &mut Rng, map: &'m causeway_bpf::Map, counters: &[Counter]) -> Graph<Table<'m>> {
    let mut counters = counters.iter().cloned();
    let nodes = rng.usize(1..5);
    let mut node = |n: usize| {
        let program = (0..100).find_map(|_| attempt(rng, &mut counters)).filter(|_| rng.u8(..20) > 0);
        let outputs = (0..3).map(|_| match rng.u8(..8) {
            0 => None,
            1 => Some(Target::Emit(1)),
            2 => Some(Target::Up(7, 1)),
            // Now and then back.
            3 => Some(Target::Node(rng.usize(..nodes))),
            _ if n + 1 < nodes => Some(Target::Node(rng.usize(n + 1..nodes))),
            _ => Some(Target::Emit(0)),
        });
        let tables = vec![Some(Table::Exact(map)); 2];
        Node { name: format!("n{n}"), program, tables, outputs: outputs.collect() }
    };
    Graph { nodes: (0..nodes).map(&mut node).collect() }
}

#[test]
fn random_graphs_do_in_the_driver_what_the_interpreter_does() {
    let seen = compare(Hook::Xdp(frames::OURS));
    // Else the test shows nothing.
    for (exit, least) in [("emitted", 10), ("dropped", 100), ("nowhere", 50), ("up", 5)] {
        assert!(least_of(&seen, exit, least), "{exit}: {seen:?}");
    }
}

#[test]
fn random_graphs_do_at_tcx_what_the_interpreter_does() {
    let seen = compare(Hook::Tcx(Above::Graph));
    for (exit, least) in [("emitted", 20), ("dropped", 100), ("nowhere", 50), ("up", 5)] {
        assert!(least_of(&seen, exit, least), "{exit}: {seen:?}");
    }
}

#[test]
fn random_graphs_do_to_super_packets_what_they_do_to_their_parts() {
    let seen = each(whole::HOOK, whole::compare);
    for (exit, least) in [("emitted", 200), ("dropped", 200), ("nowhere", 500), ("up", 5)] {
        assert!(least_of(&seen, exit, least), "{exit}: {seen:?}");
    }
}

fn least_of(seen: &BTreeMap<&str, usize>, exit: &str, least: usize) -> bool {
    seen.is_empty() || seen.get(exit).is_some_and(|&n| n * least > seen.values().sum::<usize>() / 10)
}

fn compare(hook: Hook) -> BTreeMap<&'static str, usize> {
    each(hook, |twin, rng| {
        let frame = frames::frame(rng);
        twin.compare(&frame).map_err(|why| format!("{why}\n{frame:02x?}"))
    })
}

/// Compares many packets on many graphs; counts by the way that they left. Without root there are none.
fn each(
    hook: Hook,
    compare: impl Fn(&mut Twin<'_>, &mut Rng) -> Result<Exit, String>,
) -> BTreeMap<&'static str, usize> {
    const EACH: usize = 40;
    let mut seen = BTreeMap::new();
    if !crate::is_root() {
        return seen;
    }
    let (wanted, map) = (crate::frames_wanted(12_000), Known::map());
    let mut words = Words::new(1, 4_096, None).expect("counters");
    let counters: Vec<_> = (0..4_000).map(|n| words.add(0, "n", &format!("c{n}"), Unit::Packets)).collect();
    for seed in 0..(wanted / EACH) as u64 {
        let rng = &mut Rng::with_seed(seed);
        let graph = graph(rng, &map, &counters);
        let shared = Counters::new().expect("counters").with_bytes();
        let mut twin = Twin::new(graph, &shared, 2, hook);
        for _ in 0..EACH {
            let exit = compare(&mut twin, rng);
            let exit = exit.unwrap_or_else(|why| panic!("seed {seed}: {why}\n{:#?}", twin.graph));
            let name = match exit {
                Exit::Emit(_) => "emitted",
                Exit::Drop(..) => "dropped",
                Exit::Nowhere(_) => "nowhere",
                Exit::Up(_) => "up",
                Exit::Refused => "refused",
                Exit::NoRoom => "without room",
                Exit::Doubted => "doubted",
            };
            *seen.entry(name).or_default() += 1;
        }
    }
    eprintln!("{seen:?}");
    seen
}
