//! The walk of the IPv6 table in the driver, and the table's own.

use causeway_bpf::{ProgramKind, action};
use causeway_engine::ir::{self, At, Builder, Test};
use causeway_fastpath::{
    Action, Counters, Graph, Hook, Node, Options, SharedRegion, Table, Target, Trie, Words, compile,
};
use causeway_fib::{
    ADJACENCIES_MAX, Domain, Fib, Lines6, Lines6Layout, Lookup, MISS, Prefix6, Region, Table as _,
};
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const LAYOUT: Lines6Layout = Lines6Layout::new(17);

/// Stands for what the program finds in the driver only.
struct Nothing;

impl ir::Table for Nothing {
    fn look_up(&mut self, _: ir::Key<u64>, _: u64) -> Option<[u64; 3]> {
        None
    }
}

/// Writes what is found for the first 16 bytes over the first four.
fn program() -> Option<ir::Program> {
    let mut b = Builder::new();
    b.require(Test::Has(At::data(0), 16));
    let key = [b.load(At::data(0), 8), b.load(At::data(8), 8)].map(ir::Value::Of);
    let [found, ..] = b.look_up(Box::new(Nothing), key);
    b.store(At::data(0), 4, found);
    b.leave(0);
    b.finish()
}

/// Routes that are dense, that are apart, and that lie in each other.
fn prefix(rng: &mut Rng) -> Prefix6 {
    let (site, dense) = (u128::from(rng.u32(..40)), u128::from(rng.u16(..2_000)));
    let base = 0x2001_0db8_u128 << 96;
    let address = match rng.u8(..5) {
        0 | 1 => return Prefix6::truncated(base | site << 88 | dense << 64, 64),
        2 => return Prefix6::truncated(base | dense << 80, 48),
        3 => base | site << 88 | dense << 64 | u128::from(rng.u8(..8)),
        _ => base | u128::from(rng.u64(..)) << 24,
    };
    Prefix6::truncated(address, [rng.u8(24..=128), 128, 127, 96][rng.usize(..4)])
}

#[test]
fn the_walk_in_the_driver_finds_what_the_table_finds() {
    if !crate::is_root() {
        return;
    }
    let memory = Arc::new(SharedRegion::new(LAYOUT.bytes()).expect("memory"));
    let words = SharedRegion::new(8 * ADJACENCIES_MAX as usize).expect("memory");
    (0..).zip(words.words()).for_each(|(n, word)| word.store(n, Ordering::Relaxed));
    let structure = Lines6::in_region(LAYOUT, memory.clone(), &Domain::new()).expect("room");
    let mut fib = Fib::with_structure(structure);
    let trie = Trie::V6 { memory: &memory, layout: LAYOUT };
    let table = Table::RouteWords(trie, Words { memory: &words, len: ADJACENCIES_MAX });
    let outputs = vec![Some(Target::Emit(0))];
    let node = Node { name: "walk".to_owned(), program: program(), tables: vec![Some(table)], outputs };
    let (counters, up) = (Counters::new().expect("counters"), Action::Return(action::XDP_PASS));
    let ports = [Action::Return(action::XDP_TX)];
    let options = Options {
        hook: Hook::Xdp([0; 6]),
        ports: &ports,
        up,
        anew: Some(up),
        doubted: None,
        without_room: None,
        counters: &counters,
        edges: false,
        first_number: 0,
    };
    let compiled = compile(&Graph { nodes: vec![node] }, &options).expect("a program");
    let walk = compiled.load_as(ProgramKind::Xdp, "walk").expect("loaded");
    let rng = &mut Rng::with_seed(6);
    let (mut found, mut deep) = (0, 0);
    for round in 0..10 {
        let mut addresses = vec![0, u128::MAX];
        for _ in 0..[20, 2_000][round % 2] {
            let prefix = prefix(rng);
            fib.replace(prefix, MISS + 1 + rng.u32(..1_000)).expect("room");
            let (first, last) = (prefix.first(), prefix.last());
            addresses.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
        }
        for address in addresses {
            let mut frame = [0; 64];
            frame[..16].copy_from_slice(&address.to_be_bytes());
            let run = walk.test_run(&frame, None, 1).expect("run");
            if run.verdict == action::XDP_PASS {
                deep += 1;
                continue;
            }
            let got = run.data.first_chunk().copied().map(u32::from_be_bytes);
            assert_eq!(got, Some(fib.lookup(address)), "{address:032x}");
            found += 1;
        }
    }
    eprintln!("found {found}, too deep {deep}");
    assert!(found > 30_000 && deep * 100 < found, "{found} {deep}");
}
