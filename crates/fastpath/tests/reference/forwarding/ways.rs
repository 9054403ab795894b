//! One router by its element, by the interpreter of its program, and in the driver at either place.

use super::*;

/// The ways, with what they count.
pub struct Ways4 {
    interpreted: ir::Program,
    element: Harness,
    driver: InDriverAt,
    driver_at_tcx: InDriverAt,
}

struct InDriverAt {
    compiled: Compiled,
    program: Program,
    counters: Counters,
}

/// Where a frame went that went the same in all ways, as far as they take it.
pub struct Went {
    /// In the driver.
    pub exit: Exit,
    /// The port that it leaves by, and how, by the interpreter and by the element; none if it is given up or the kernel's.
    pub interpreted: Option<(usize, Vec<u8>)>,
    pub element: Option<(usize, Vec<u8>)>,
}

impl InDriverAt {
    fn new(router: &Router, hook: Hook) -> (InDriverAt, Option<ir::Program>) {
        let counters = Counters::new().expect("counters");
        let (compiled, mut graph) = router.compiled(hook, &counters);
        assert_eq!(compiled.left, [], "all of it is in the driver");
        let interpreted = graph.nodes[0].program.take();
        let program = match hook {
            Hook::Xdp(_) => compiled.load_as(ProgramKind::XdpFragments, "reference"),
            Hook::Tcx(_) => compiled.load(hook, "reference"),
        };
        (InDriverAt { program: program.expect("loaded"), compiled, counters }, interpreted)
    }

    /// Runs a frame; says by which exit it left.
    fn send(&self, run: impl FnOnce(&Program) -> TestRun) -> (Exit, TestRun) {
        let before = counted(&self.compiled, &self.counters);
        let run = run(&self.program);
        (which(&self.compiled, &before, &counted(&self.compiled, &self.counters)), run)
    }
}

impl Ways4 {
    pub fn new(router: &Router) -> Ways4 {
        let (driver, interpreted) = InDriverAt::new(router, XDP);
        let (driver_at_tcx, _) = InDriverAt::new(router, Hook::Tcx(Above::Kernel));
        let interpreted = interpreted.expect("it can be said");
        Ways4 { interpreted, element: router.element(), driver, driver_at_tcx }
    }

    /// Sends a frame all ways.
    pub fn send(&mut self, router: &Router, frame: &[u8]) -> Went {
        let (exit, run) = self.driver.send(|program| run(program, frame));
        let element = by_element(&mut self.element, frame);
        let interpreted = interpret(&mut self.interpreted, frame);
        // Of what is too short for the header that it says it has, test runs make no packet.
        if frame.len() >= 54 {
            let (exit_there, there) = self.driver_at_tcx.send(|program| run_at_tcx(program, frame, 0));
            assert_eq!(exit_there, exit, "{frame:02x?}");
            let forwarded = matches!(exit, Exit::Emit(_));
            assert_eq!(there.verdict, verdicts(Hook::Tcx(Above::Kernel))[usize::from(!forwarded)]);
            assert_eq!(there.data, run.data, "the same at tcx: {frame:02x?}");
        }
        match exit {
            Exit::Emit(port) => {
                assert_eq!(run.verdict, action::XDP_REDIRECT, "{frame:02x?}");
                let way = Some((port, run.data));
                assert_eq!(way, element, "{frame:02x?}");
                assert_eq!(way, interpreted, "{frame:02x?}");
            }
            Exit::Up(Place::Node(0)) => {
                assert_eq!(run.verdict, action::XDP_PASS);
                assert_eq!(run.data, frame, "what goes up is as it came");
                // A group of more than there is room for, or what cannot be redirected.
                let is_deaf = interpreted.as_ref().is_none_or(|(port, _)| *port == DEAF);
                assert!(is_deaf || router.group(frame) > 16, "{frame:02x?}");
            }
            exit => panic!("{exit:?}: {frame:02x?}"),
        }
        Went { exit, interpreted, element }
    }
}
