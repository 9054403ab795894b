//! Programs of graphs behind the one that decides.

use super::*;
use causeway_bpf::{Alu, Asm, Helper, ProgramKind, Reg, Size, xdp_md};
use std::os::fd::{FromRawFd, OwnedFd};

/// A program of a graph: changes the last byte of long frames and drops them, and gives short ones up.
fn graph(takers: &causeway_bpf::Map) -> Program {
    graph_to(takers, 0)
}

/// The same; short frames go on in this one of the takers.
fn graph_to(takers: &causeway_bpf::Map, number: i32) -> Program {
    let (mut a, data, end) = (Asm::new(), Reg::R7, Reg::R8);
    let up = a.label();
    a.mov(Reg::R6, Reg::R1);
    a.xdp_data(Reg::R6, data, end);
    a.xdp_require(data, end, 60, Reg::R2, up);
    a.store(Size::B, data, 59, 0xaa);
    a.mov(Reg::R0, action::XDP_DROP);
    a.exit();
    a.bind(up);
    a.mov(Reg::R1, Reg::R6);
    a.map(Reg::R2, takers.as_fd());
    a.load(Size::W, Reg::R3, Reg::R6, xdp_md::INGRESS_IFINDEX);
    a.alu(Alu::Rsh, Reg::R3, 31);
    a.alu(Alu::Add, Reg::R3, number);
    a.call(Helper::TailCall);
    a.mov(Reg::R0, action::XDP_ABORTED);
    a.exit();
    Program::load(ProgramKind::XdpFragments, "graph", &a.finish().expect("assembled")).expect("loaded")
}

#[test]
fn frames_in_transit_go_through_the_ports_graph_while_the_lease_stands() {
    let front = match Front::with_graphs(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.local().insert_v4(LOCAL4).expect("insert");
    front.lease().renew(u64::MAX);
    let program = Arc::new(graph(front.takers(Place::Xdp).expect("room for graphs")));
    // Before the interface is a port, and for one more, which has another number.
    front.set_graph(Place::Xdp, LOOPBACK, Some(program.clone())).expect("set");
    let other = front.claim(12, 1, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    let count = |reason| port.count(reason).expect("count");
    let run = |frame: &[u8]| {
        let run = port.program().test_run(frame, None, 1).expect("run");
        (run.verdict, run.data == frame)
    };
    let (short, long) = (v4(|_| ()), [v4(|_| ()), vec![0; 6]].concat());
    assert_eq!(run(&long), (action::XDP_DROP, false), "the graph has it");
    assert_eq!(run(&short), (action::XDP_PASS, true), "given up, and there is no socket");
    assert_eq!(count(Reason::NoSocket), 1, "counted once");
    let mut ours = long.clone();
    ours[30..34].copy_from_slice(&LOCAL4.octets());
    assert_eq!(run(&ours), (action::XDP_PASS, true), "not in transit");
    front.lease().revoke();
    assert_eq!(run(&long), (action::XDP_PASS, true));
    assert_eq!((count(Reason::Local), count(Reason::Lease)), (1, 1));
    front.lease().renew(u64::MAX);
    front.set_graph(Place::Xdp, LOOPBACK, None).expect("removed");
    assert_eq!(run(&long), (action::XDP_PASS, true));
    front.set_graph(Place::Xdp, LOOPBACK, Some(program)).expect("set again");
    assert_eq!(run(&long).0, action::XDP_DROP);
    drop(port);
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::All)).expect("claimed again");
    assert_eq!(
        port.program().test_run(&long, None, 1).expect("run").verdict,
        action::XDP_PASS,
        "not its own interface"
    );
    drop(other);
}

/// A socket that frames can be redirected to.
pub fn socket() -> OwnedFd {
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0, "an AF_XDP socket");
    // SAFETY: the descriptor is new and ours.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn a_frame_that_a_graph_has_written_to_never_goes_to_the_kernel() {
    let front = match Front::with_graphs(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.lease().renew(u64::MAX);
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    let written = graph_to(front.takers(Place::Xdp).expect("room"), 1);
    front.set_graph(Place::Xdp, LOOPBACK, Some(Arc::new(written))).expect("set");
    let run = || port.program().test_run(&v4(|_| ()), None, 1).expect("run").verdict;
    let counts =
        || [Reason::Taken, Reason::HalfDone, Reason::NoSocket].map(|r| port.count(r).expect("count"));
    assert_eq!((run(), counts()), (action::XDP_DROP, [0, 1, 0]), "nobody is there to take it");
    let socket = socket();
    port.set_socket(0, socket.as_fd()).expect("set");
    assert_eq!((run(), counts()), (action::XDP_REDIRECT, [1, 1, 0]));
}

#[test]
fn frames_that_no_graph_has_seen_are_taken_with_luggage_that_says_so() {
    let front = match Front::with_luggage(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::All)).expect("claimed");
    let (short, long) = (v4(|_| ()), [v4(|_| ()), vec![0; 6]].concat());
    let run = |frame: &[u8]| port.program().test_run(frame, None, 1).expect("run");
    let packed = [&[0; 16], &long[..]].concat();
    let socket = socket();
    port.set_socket(0, socket.as_fd()).expect("set");
    assert_eq!(run(&long).data, packed, "nobody has seen it");
    front
        .set_graph(Place::Xdp, LOOPBACK, Some(Arc::new(graph(front.takers(Place::Xdp).expect("room")))))
        .expect("set");
    assert_eq!(run(&long).verdict, action::XDP_DROP, "the graph has it");
    assert_eq!(run(&short).data, short, "given up with what the graph gave it");
    port.clear_socket(0);
    let left = run(&long);
    assert_eq!(
        (left.verdict, left.data == long),
        (action::XDP_PASS, true),
        "nobody is there for the rest of it"
    );
    port.set_socket(0, socket.as_fd()).expect("set");
    front.set_graph(Place::Xdp, LOOPBACK, None).expect("removed");
    assert_eq!(run(&long).data, packed);
    assert_eq!([Reason::NoSocket, Reason::Taken].map(|r| port.count(r).expect("count")), [1, 3]);
}

#[test]
fn frames_without_room_for_luggage_are_taken_bare_whenever_the_interface_is_a_port() {
    let front = match Front::with_luggage(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    let (socket, frame) = (socket(), v4(|_| ()));
    let claim = || {
        let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::All)).expect("claimed");
        port.set_socket(0, socket.as_fd()).expect("set");
        port
    };
    let taken = |port: &Claim| {
        let run = port.program().test_run(&frame, None, 1).expect("run");
        assert_eq!(run.verdict, action::XDP_REDIRECT);
        run.data
    };
    let port = claim();
    let packed = [&[0; 16], &frame[..]].concat();
    assert_eq!((taken(&port), front.is_bare(LOOPBACK), front.lacks_room(LOOPBACK)), (packed, false, false));
    front.set_bare(LOOPBACK).expect("set");
    assert_eq!((taken(&port), front.is_bare(LOOPBACK)), (frame.clone(), true));
    drop(port);
    let again = claim();
    assert_eq!(taken(&again), frame, "a port that comes");
    assert_eq!(again.count(Reason::Taken).expect("count"), 1);
}

#[test]
fn graphs_stand_aside_for_as_long_as_anybody_wants_them_to() {
    let front = match Front::with_graphs(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.lease().renew(u64::MAX);
    let program = Arc::new(graph(front.takers(Place::Xdp).expect("room for graphs")));
    let claim = || {
        let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::TRANSIT)).expect("claimed");
        front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
        port
    };
    let port = claim();
    front.set_graph(Place::Xdp, LOOPBACK, Some(program.clone())).expect("set");
    let long = [v4(|_| ()), vec![0; 6]].concat();
    let verdict = |port: &Claim| port.program().test_run(&long, None, 1).expect("run").verdict;
    let (graphs, users) = (action::XDP_DROP, action::XDP_PASS);
    assert_eq!(verdict(&port), graphs);
    let first = front.stand_aside().expect("room for graphs");
    let second = front.stand_aside().expect("room for graphs");
    assert_eq!(verdict(&port), users, "to user space, where no socket is");
    drop(first);
    assert_eq!(verdict(&port), users, "somebody wants it still");
    front.set_graph(Place::Xdp, LOOPBACK, Some(program.clone())).expect("set");
    assert_eq!(verdict(&port), users, "whatever program is set");
    drop(port);
    let port = claim();
    assert_eq!(verdict(&port), users, "a port that comes");
    drop(second);
    assert_eq!(verdict(&port), graphs);
    let third = front.stand_aside();
    front.set_graph(Place::Xdp, LOOPBACK, None).expect("removed");
    drop(third);
    assert_eq!(verdict(&port), users, "it has none any more");
    assert!(Front::new(Take::TRANSIT).map(Arc::new).expect("a front").stand_aside().is_none());
}

#[test]
fn frames_in_several_pieces_are_taken_without_a_look_at_the_graph() {
    let front = match Front::with_graphs(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.lease().renew(u64::MAX);
    let program = Arc::new(graph(front.takers(Place::Xdp).expect("room for graphs")));
    front.set_graph(Place::Xdp, LOOPBACK, Some(program)).expect("set");
    let port = front.claim(LOOPBACK, QUEUES, 9_000, rules(Take::TRANSIT)).expect("claimed");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    let run = |len| {
        let frame = [v4(|_| ()), vec![0; len]].concat();
        let run = port.program().test_run(&frame, None, 1).expect("run");
        (run.verdict, run.data == frame)
    };
    assert_eq!(run(3_000), (action::XDP_DROP, false), "the graph has it");
    assert_eq!(run(6_000), (action::XDP_PASS, true), "and sees no more of this one than its first page");
    assert_eq!(port.count(Reason::NoSocket).expect("count"), 1);
}

#[test]
fn a_port_has_nothing_of_the_one_that_had_its_number_before() {
    let front = match Front::with_graphs(Take::TRANSIT) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    front.lease().renew(u64::MAX);
    let program = Arc::new(graph(front.takers(Place::Xdp).expect("room for graphs")));
    front.set_graph(Place::Xdp, 12, Some(program.clone())).expect("set");
    drop(front.claim(12, 1, LONGEST, rules(Take::TRANSIT)).expect("claimed"));
    let in_the_stack = front.claim_at_tcx(13, Some(MAC)).expect("claimed");
    front.set_graph(Place::Xdp, 13, Some(program)).expect("set, for a port that is elsewhere");
    drop(in_the_stack);
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::TRANSIT)).expect("claimed");
    front.set_transit(LOOPBACK, Some(MAC), true, true).expect("set");
    let long = [v4(|_| ()), vec![0; 6]].concat();
    assert_eq!(port.program().test_run(&long, None, 1).expect("run").verdict, action::XDP_PASS);
    assert_eq!(port.count(Reason::NoSocket).expect("count"), 1, "without a program it is to be taken");
}
