//! Ports at XDP and at tcx beside each other.

use super::*;
use causeway_bpf::SkbContext;

/// The interfaces of the ports. Test runs redirect nothing, so that the second need not be there.
const DEVICES: [u32; 2] = [LOOPBACK, 4_000];

#[test]
fn what_comes_in_at_one_place_leaves_at_the_other() {
    let front = match Front::with_graphs(Take::NOTHING) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    let names = ["wire", "virtual"].map(str::to_owned).to_vec();
    let places = [Place::Xdp, Place::Tcx].map(|place| (place, Begins::Ethernet)).to_vec();
    let settings = Settings { places, check_every: u32::MAX, bytes: false };
    let mut tables = Tables::in_driver(names, DEVICES.to_vec(), front, settings).expect("tables");
    let policy = PortPolicy { ipv4: true, ipv6: false, reverse_path: ReversePath::Off, hairpin: false };
    (0..2).for_each(|port| tables.forwarding().set_policy(port, policy));
    // A route by each.
    let to = |port: u32| 16 << 24 | port << 8;
    let changes = Changes {
        adjacencies: (0..2)
            .map(|n| (AdjacencyId(n), Some(Adjacency { ifindex: DEVICES[n as usize], ..adjacency(n, 0) })))
            .collect(),
        hops: (0..2).map(|n| (HopId(n), Some(hop(n)))).collect(),
        routes: (0..2).map(|n| (Prefix::new(Ipv4Addr::from(to(n)).into(), 24), Some(HopId(n)))).collect(),
        ..Changes::default()
    };
    tables.apply(&changes, &mut || ());
    let programs: Vec<_> = tables.driver().programs.iter().map(|port| port.program.clone()).collect();
    let at_xdp = |frame: &[u8]| programs[0].test_run(frame, None, 1).expect("run");
    let at_tcx = |frame: &[u8]| programs[1].test_run_at_tcx(frame, SkbContext::default()).expect("run");
    let (wire, stack) = (frame(to(0) + 1), frame(to(1) + 1));
    let left = at_tcx(&wire);
    assert_eq!((left.verdict, left.data[1]), (action::TCX_REDIRECT, 0), "from the stack to a wire");
    assert_eq!(at_tcx(&stack).verdict, action::TCX_NEXT, "the kernel sends the redirect");
    let up = at_xdp(&stack);
    assert_eq!((up.verdict, &up.data[..]), (action::XDP_PASS, &stack[..]), "it takes no frames");
    tables.driver().ways.frames().insert_u32(1, LOOPBACK).expect("a device");
    let left = at_xdp(&stack);
    assert_eq!((left.verdict, left.data[1]), (action::XDP_REDIRECT, 1), "from a wire to what takes frames");
    // An interface that is gone is nobody's way out.
    tables.set_ports(vec![0, DEVICES[1]]);
    assert_eq!(at_tcx(&wire).verdict, action::TCX_NEXT);
}
