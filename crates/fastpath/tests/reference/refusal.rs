//! What the verifier refuses is told with the element that it came from; and which program has what is given up.

use crate::frames::OURS;
use causeway_bpf::{Asm, ErrorKind, Map, MapKind, Program, ProgramKind, Reg, action};
use causeway_engine::ir::{self, At, Builder, Test};
use causeway_fastpath::{
    Action, Counters, Exit, Graph, Hook, Luggage, Node, Options, Place, Table, Target, compile,
};
use std::os::fd::{AsFd, AsRawFd};

struct Nothing;

impl ir::Table for Nothing {
    fn look_up(&mut self, _key: ir::Key<u64>, _now_ns: u64) -> Option<[u64; 3]> {
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
        without_room: None,
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

#[test]
fn what_looks_up_more_words_than_a_table_has_goes_up() {
    if !crate::is_root() {
        return;
    }
    let map = Map::new(MapKind::Hash, "two", 16, 24, 4).expect("a map");
    let counters = Counters::new().expect("counters");
    let left = |last: ir::Value| {
        let mut b = Builder::new();
        b.look_up(Box::new(Nothing), [1.into(), 2.into(), last]);
        b.leave(0);
        let (tables, outputs) = (vec![Some(Table::Exact(&map))], vec![Some(Target::Emit(0))]);
        let nodes = vec![Node { name: "a".to_owned(), program: b.finish(), tables, outputs }];
        let options = Options {
            hook: Hook::Xdp(OURS),
            ports: &[Action::Return(action::XDP_TX)],
            up: Action::Return(action::XDP_PASS),
            anew: None,
            doubted: None,
            without_room: None,
            counters: &counters,
            edges: false,
            first_number: 1,
        };
        compile(&Graph { nodes }, &options).expect("a program").left
    };
    assert_eq!(left(0.into()), []);
    assert_eq!(left(3.into()), [(0, "its keys have more words than its table in the driver")]);
}

#[test]
fn what_was_written_to_goes_up_by_a_program_of_its_own() {
    if !crate::is_root() {
        return;
    }
    let array = Map::new(MapKind::ProgArray, "up", 4, 4, 2).expect("a map");
    for (number, verdict) in [(0, action::XDP_TX), (1, action::XDP_REDIRECT)] {
        let mut a = Asm::new();
        a.mov(Reg::R0, verdict);
        a.exit();
        let program = Program::load(ProgramKind::Xdp, "up", &a.finish().expect("assembled")).expect("loaded");
        array.insert_u32(number, program.as_fd().as_raw_fd() as u32).expect("inserted");
    }
    // Writes to frames whose first byte is 1.
    let mut b = Builder::new();
    let byte = b.load(At::data(0), 1);
    let (writes, not) = (b.block(), b.block());
    b.branch(Test::Equal(byte.into(), 1.into()), writes, not);
    b.at(writes);
    b.store(At::data(1), 1, 7);
    b.leave(0);
    b.at(not);
    b.leave(0);
    let outputs = vec![Some(Target::Up(5, 0))];
    let nodes = vec![Node { name: "a".to_owned(), program: b.finish(), tables: Vec::new(), outputs }];
    let counters = Counters::new().expect("counters");
    let hook = Hook::Xdp(OURS);
    let options = Options {
        hook,
        ports: &[],
        up: Action::Program(&array),
        anew: None,
        doubted: None,
        without_room: None,
        counters: &counters,
        edges: false,
        first_number: 1,
    };
    let compiled = compile(&Graph::<Table<'_>> { nodes }, &options).expect("a program");
    let program = compiled.load(hook, "up").expect("loaded");
    let verdict = |first: u8| {
        let mut frame = [0; 60];
        frame[0] = first;
        program.test_run(&frame, None, 1).expect("run").verdict
    };
    assert_eq!([verdict(0), verdict(1)], [action::XDP_TX, action::XDP_REDIRECT]);
}

/// What the second byte of a frame says that is done with it.
const AS_IT_CAME: u8 = 0;
const CHANGED: u8 = 1;
const SHORTENED: u8 = 2;

/// Frames leave by the port that their first byte says.
fn leaves() -> Option<ir::Program> {
    let mut b = Builder::new();
    let [port, what] = [0, 1].map(|at| b.load(At::data(at), 1));
    let (as_it_came, other, changed, shortened) = (b.block(), b.block(), b.block(), b.block());
    b.branch(Test::Equal(what.into(), u64::from(AS_IT_CAME).into()), as_it_came, other);
    b.at(as_it_came);
    b.leave_by(port);
    b.at(other);
    b.branch(Test::Equal(what.into(), u64::from(CHANGED).into()), changed, shortened);
    b.at(changed);
    b.store(At::data(6), 1, 7);
    b.pull(4);
    b.leave_by(port);
    b.at(shortened);
    b.pull(50);
    b.leave_by(port);
    b.finish()
}

/// Each frame is counted once: where it was sent, where it went up, or where it was dropped.
#[test]
fn a_frame_whose_way_out_is_gone_goes_up_as_what_was_to_go_out() {
    if !crate::is_root() {
        return;
    }
    let map = Map::new(MapKind::DevMap, "ports", 4, 4, 2).expect("a map");
    let ports = [Action::Redirect(&map, 0), Action::Redirect(&map, 1)];
    map.insert_u32(1, 1).expect("the loopback device");
    let outputs = vec![Some(Target::Emit(0)), Some(Target::Emit(1))];
    let nodes = vec![Node { name: "a".to_owned(), program: leaves(), tables: Vec::new(), outputs }];
    let counters = Counters::new().expect("counters");
    let (hook, up) = (Hook::Xdp(OURS), Action::Return(action::XDP_TX));
    let options = Options {
        hook,
        ports: &ports,
        up,
        anew: None,
        doubted: None,
        without_room: None,
        counters: &counters,
        edges: false,
        first_number: 1,
    };
    let compiled = compile(&Graph::<Table<'_>> { nodes }, &options).expect("a program");
    assert_eq!(compiled.left, []);
    let program = compiled.load(hook, "out").expect("loaded");
    let counts = || (0..compiled.exits.len()).map(|exit| counters.get(compiled.first_exit + exit));
    let run = |port: u8, what: u8| {
        let mut frame: Vec<u8> = (0..60).collect();
        (frame[0], frame[1]) = (port, what);
        let before: Vec<u64> = counts().collect();
        let run = program.test_run(&frame, None, 1).expect("run");
        let more = counts().zip(before).map(|(now, before)| now - before);
        let taken: Vec<(usize, u64)> = more.enumerate().filter(|(_, more)| *more > 0).collect();
        let [(exit, 1)] = taken[..] else { panic!("{taken:?} of {:?}", compiled.exits) };
        (frame, run, exit)
    };
    for what in [AS_IT_CAME, CHANGED] {
        let (_, sent, exit) = run(1, what);
        assert_eq!((sent.verdict, compiled.exits[exit]), (action::XDP_REDIRECT, Exit::Emit(1)));
        let (frame, up, exit) = run(0, what);
        assert_eq!((up.verdict, compiled.exits[exit]), (action::XDP_TX, Exit::Up(Place::Port(0))));
        let luggage = compiled.luggage[exit].as_ref().expect("it goes up");
        let (metadata, there) = up.data.split_at(luggage.len());
        assert_eq!(Luggage::number(metadata), Some(1 + exit as u32));
        let arrival = luggage.unpack(metadata).expect("it can be read");
        assert_eq!((arrival.data, arrival.end, arrival.headers), (0, None, [None; 3]));
        let mut expected = frame;
        if what == CHANGED {
            expected[6] = 7;
            expected.drain(..4);
        }
        assert_eq!((there, luggage.is_touched()), (&expected[..], what == CHANGED));
    }
    for port in [0, 1] {
        let (_, short, exit) = run(port, SHORTENED);
        assert_eq!((short.verdict, compiled.exits[exit]), (action::XDP_DROP, Exit::Refused));
    }
}
