//! What the verifier refuses is told with the element that it came from; and which program has what is given up.

use crate::frames::OURS;
use causeway_bpf::{Asm, ErrorKind, Map, MapKind, Program, ProgramKind, Reg, action};
use causeway_engine::ir::{self, At, Builder, Test};
use causeway_fastpath::{Action, Counters, Exit, Graph, Hook, Node, Options, Table, Target, compile};
use std::os::fd::{AsFd, AsRawFd};

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

#[test]
fn a_frame_whose_way_out_is_gone_is_counted() {
    if !crate::is_root() {
        return;
    }
    let map = Map::new(MapKind::DevMap, "ports", 4, 4, 2).expect("a map");
    let ports = [Action::Redirect(&map, 0), Action::Redirect(&map, 1)];
    map.insert_u32(1, 1).expect("the loopback device");
    // Frames leave by the port that their first byte says; those with another second byte are written to.
    let mut b = Builder::new();
    let [port, second] = [0, 1].map(|at| b.load(At::data(at), 1));
    let (writes, not) = (b.block(), b.block());
    b.branch(Test::Equal(second.into(), 0.into()), not, writes);
    b.at(writes);
    b.store(At::data(2), 1, 7);
    b.leave_by(port);
    b.at(not);
    b.leave_by(port);
    let outputs = vec![Some(Target::Emit(0)), Some(Target::Emit(1))];
    let nodes = vec![Node { name: "a".to_owned(), program: b.finish(), tables: Vec::new(), outputs }];
    let counters = Counters::new().expect("counters");
    let (hook, up) = (Hook::Xdp(OURS), Action::Return(action::XDP_TX));
    let options = Options {
        hook,
        ports: &ports,
        up,
        anew: None,
        doubted: None,
        counters: &counters,
        edges: false,
        first_number: 1,
    };
    let compiled = compile(&Graph::<Table<'_>> { nodes }, &options).expect("a program");
    let program = compiled.load(hook, "out").expect("loaded");
    let refused = || -> u64 {
        let exits = (compiled.first_exit..).zip(&compiled.exits);
        exits.filter(|(_, exit)| **exit == Exit::Refused).map(|(at, _)| counters.get(at)).sum()
    };
    let run = |port: u8, second: u8| {
        let mut frame = [0; 60];
        (frame[0], frame[1]) = (port, second);
        (program.test_run(&frame, None, 1).expect("run").verdict, refused())
    };
    assert_eq!([run(1, 0), run(1, 1)], [(action::XDP_REDIRECT, 0); 2]);
    assert_eq!(run(0, 0), (action::XDP_PASS, 1), "as it came");
    assert_eq!(run(0, 1), (action::XDP_DROP, 2), "written to");
}
