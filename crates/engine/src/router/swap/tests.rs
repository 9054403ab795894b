use super::*;
use crate::library::Library;
use crate::spec::{Spec, reads, writes};
use crate::{Cx, Element, Error, Options, Run};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static GATE: AtomicBool = AtomicBool::new(false);
static AT_GATE: AtomicBool = AtomicBool::new(false);

/// Counts the runs of its task; one of them waits at the gate.
static RUNNER: Spec = Spec {
    name: "Runner",
    ports: "0/0",
    handlers: &[reads("runs", "runs of its task"), writes("wait", "waits at the gate in the next")],
    build: |_| Ok(Box::new(Runner { runs: 0, waits: false })),
    ..Spec::DEFAULT
};

struct Runner {
    runs: u64,
    waits: bool,
}

impl Element for Runner {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, _: &mut Cx<'_>) -> Run {
        self.runs += 1;
        while self.waits && !GATE.load(Ordering::Relaxed) {
            AT_GATE.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        Run::Idle
    }

    fn read(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        cx.wake();
        Ok(self.runs.to_string())
    }

    fn write(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.waits = true;
        cx.wake();
        Ok(())
    }
}

fn runs(router: &Router) -> u64 {
    router.read("r", "runs", "").unwrap().parse().unwrap()
}

/// Waits until the graph that has run before runs again.
fn runs_on(router: &Router, before: u64) {
    let start = Instant::now();
    while runs(router) <= before + 3 {
        assert!(start.elapsed() < Duration::from_secs(20), "the old graph does not run");
    }
}

#[test]
fn a_worker_gets_its_graph_back_when_there_is_no_other() {
    let library = Library::new([&RUNNER]);
    let compiled = causeway_lang::compile("t", b"r :: Runner;", &causeway_lang::NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|_| panic!("a good configuration")));
    let router = Router::start(library, plan, Options::default()).unwrap();
    router.resume();
    runs_on(&router, 0);
    let before = runs(&router);
    drop(router.ask_to_park(0).unwrap().wait(Limit::new()).unwrap());
    runs_on(&router, before);

    // Asked while it is stuck, it finds out too late that nobody waits any more.
    router.write("r", "wait", "").unwrap();
    while !AT_GATE.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    assert!(router.ask_to_park(0).unwrap().wait(Limit::new()).is_err());
    GATE.store(true, Ordering::Relaxed);
    runs_on(&router, before);
}

static MADE: AtomicUsize = AtomicUsize::new(0);

/// Has the element `second` live on worker 1.
static APART: Spec = Spec {
    name: "Apart",
    ports: "0/0",
    phase: crate::spec::phase::INFO,
    build: |conf| {
        conf.env.threads.push(("second".to_owned(), Some(1)));
        Ok(Box::new(Nothing))
    },
    ..Spec::DEFAULT
};

struct Nothing;
impl Element for Nothing {}

/// Holds three packets.
static HOLDER: Spec = Spec {
    name: "Holder",
    ports: "0/0",
    build: |_| {
        MADE.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Holder))
    },
    ..Spec::DEFAULT
};

struct Holder;

impl Element for Holder {
    fn held(&self) -> usize {
        3
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        MADE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn until(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::yield_now();
    }
}

fn holders(library: &Library) -> Plan {
    let text = b"Apart; first :: Holder; second :: Holder;";
    let compiled = causeway_lang::compile("t", text, &causeway_lang::NoLibraries, library, &[]);
    Plan::new(&compiled.unwrap_or_else(|_| panic!("a good configuration")))
}

#[test]
fn no_graph_stays_with_a_worker_that_is_stuck_and_what_a_late_one_holds_is_counted() {
    let library = Library::new([&APART, &HOLDER]);
    let plan = holders(&library);
    let mut router = Router::start(library, plan, Options { workers: 2, ..Options::default() }).unwrap();
    let gate = Arc::new(AtomicBool::new(false));
    let opened = gate.clone();
    let is_stuck = move |_: &mut Driver| {
        while !opened.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    };
    let stuck = router.ask(Command::Call, 1, is_stuck).unwrap();
    assert!(router.swap(holders(&router.library)).is_err());
    until("both parts of the new graph are dropped", || MADE.load(Ordering::Relaxed) == 2);
    gate.store(true, Ordering::Relaxed);
    stuck.wait(Limit::new()).unwrap();

    let mut parked = router.ask_to_park(1).unwrap().wait(Limit::new()).unwrap();
    let worker = parked.worker.take().unwrap();
    let (back, given_back) = mpsc::channel();
    assert!(back.send(Back::Replaced(Replaced { worker, stood_still: Duration::ZERO })).is_ok());
    drop((parked, back));
    router.drop_late(given_back);
    let counted =
        || router.counters().filter(|(line, _)| line.name == "drop.swap").map(|(_, n)| n).sum::<u64>();
    until("what it held is counted, and it is dropped", || {
        (counted(), MADE.load(Ordering::Relaxed)) == (3, 1)
    });
}
