//! Packets that come or leave without an Ethernet header.

use super::*;

/// A program at tcx with what it counts.
struct Seat<'m> {
    compiled: Compiled,
    graph: Graph<Table<'m>>,
    program: Program,
    counters: &'m Counters,
}

impl<'m> Seat<'m> {
    fn new(router: &'m Router, begins: Begins, counters: &'m Counters) -> Seat<'m> {
        let (compiled, graph) = router.compiled_for((Hook::Tcx(Above::Kernel), begins), counters);
        assert_eq!(compiled.left, [], "all of it is there");
        let program = compiled.load(Hook::Tcx(Above::Kernel), "reference").expect("loaded");
        Seat { compiled, graph, program, counters }
    }

    /// Where a packet leaves, and how; none if it is given up. It is as the interpreter says, but for what only the graph knows.
    fn run(&mut self, packet: &[u8]) -> Option<(usize, Vec<u8>)> {
        let before = counted(&self.compiled, self.counters);
        let run = run_at_tcx(&self.program, packet, 0);
        let exit = which(&self.compiled, &before, &counted(&self.compiled, self.counters));
        let said = self.graph.nodes[0].program.as_mut().expect("it can be said");
        let interpreted = interpret(said, packet);
        let [forwarded, up] = verdicts(Hook::Tcx(Above::Kernel));
        match exit {
            Exit::Emit(port) => {
                assert_eq!(run.verdict, forwarded);
                let way = Some((port, run.data));
                assert_eq!(way, interpreted, "{packet:02x?}");
                way
            }
            Exit::Up(Place::Node(0)) => {
                assert_eq!((run.verdict, &run.data[..]), (up, packet), "what is given up is as it came");
                None
            }
            exit => panic!("{exit:?}: {packet:02x?}"),
        }
    }
}

/// What comes without a header is treated as what comes with one: it leaves with the header that it would have had, or without.
#[test]
fn packets_are_forwarded_alike_with_and_without_an_ethernet_header() {
    if !crate::is_root() {
        return;
    }
    // IPv4 and IPv6, with and without a header.
    let (mut sent, mut kept) = ([[0; 2]; 2], 0);
    let wanted = crate::frames_wanted(8_000);
    for seed in 0..8 {
        let rng = &mut Rng::with_seed(seed);
        // IPv6 packets never leave by the port that they came in by.
        let bare = [IN, 1][seed as usize % 2];
        let router = Router::with_bare(rng, 100, Some(bare as u16));
        let counters = [(); 2].map(|()| Counters::new().expect("counters"));
        let mut framed = Seat::new(&router, Begins::Ethernet, &counters[0]);
        let mut plain = Seat::new(&router, Begins::Ip, &counters[1]);
        let mut element = router.element();
        for n in 0..wanted / 8 {
            if n % 16 == 0 {
                router.set_policy(policy(rng));
                router.forwarding.set_flow_hash((rng.u8(..2), 0x37), (0, 0), rng.u32(..));
            }
            let frame = frame(rng);
            // Of what is too short for the header that it says it has, test runs make no packet. And the type is what the stack
            // says, which the program in front looks at.
            let version = match frame[12..14] {
                [0x08, 0x00] => 4,
                [0x86, 0xdd] => 6,
                _ => continue,
            };
            if frame.len() < 54 || frame[14] >> 4 != version {
                continue;
            }
            let with = framed.run(&frame);
            let without = plain.run(&frame[14..]);
            let expected = with.as_ref().map(|(port, frame)| match *port {
                port if port == bare => (port, frame[14..].to_vec()),
                _ => (*port, frame.clone()),
            });
            assert_eq!(without, expected, "{frame:02x?}");
            let by_element = by_element(&mut element, &frame);
            match &with {
                Some((port, bytes)) if *port == bare => {
                    assert_eq!(bytes[..12], [0; 12], "there is nobody to address");
                    assert_eq!(by_element, None, "the graph cannot send it");
                }
                Some(_) => assert_eq!(with, by_element),
                None => kept += 1,
            }
            if let Some((port, _)) = with {
                assert_ne!(port, DEAF);
                sent[usize::from(version == 6)][usize::from(port == bare)] += 1;
            }
        }
    }
    eprintln!("sent {sent:?}, kept {kept}");
    assert!(sent.as_flattened().iter().all(|&n| n > wanted / 1_000), "{sent:?}");
    assert!(kept > wanted / 10, "{kept}");
}
