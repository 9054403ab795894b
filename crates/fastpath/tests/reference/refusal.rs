//! What the verifier refuses is told with the element that it came from.

use crate::frames::OURS;
use causeway_bpf::{ErrorKind, Map, MapKind, action};
use causeway_engine::ir::{self, At, Builder};
use causeway_fastpath::{Action, Counters, Graph, Hook, Node, Options, Table, Target, compile};

struct Nothing;

impl ir::Table for Nothing {
    fn look_up(&mut self, _key: [u64; 2], _now_ns: u64) -> Option<[u64; 3]> {
        None
    }
}

#[test]
fn a_refusal_names_the_element() {
    if !crate::is_root() {
        return;
    }
    // Its values have one word where three are read.
    let map = Map::new(MapKind::Hash, "short", 16, 8, 4).expect("a map");
    let node = |name: &str, looks_up: bool, to| {
        let mut b = Builder::new();
        let byte = b.load(At::data(3), 1);
        if looks_up {
            b.look_up(Box::new(Nothing), [byte.into(), 0.into()]);
        }
        b.leave(0);
        let (name, program) = (name.to_owned(), b.finish());
        Node { name, program, tables: vec![Some(Table::Exact(&map))], outputs: vec![Some(to)] }
    };
    let nodes = vec![
        node("first", false, Target::Node(1)),
        node("second", true, Target::Node(2)),
        node("third", false, Target::Emit(0)),
    ];
    let counters = Counters::new().expect("counters");
    let (hook, up) = (Hook::Xdp(OURS), Action::Return(action::XDP_PASS));
    let ports = [Action::Return(action::XDP_TX)];
    let options = Options {
        hook,
        ports: &ports,
        up,
        anew: None,
        doubted: None,
        counters: &counters,
        edges: false,
        first_number: 0,
    };
    let compiled = compile(&Graph { nodes }, &options).expect("a program");
    let error = compiled.load(hook, "refused").expect_err("a refusal");
    assert_eq!(error.kind(), ErrorKind::Verifier);
    let text = error.to_string();
    assert!(text.contains("refuses second: R0 min value is outside"), "{text}");
    assert!(text.lines().count() < 12, "the log's end alone: {text}");
}
