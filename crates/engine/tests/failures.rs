//! What fails and what it must not take along: workers that panic or are stuck, graphs that cannot be put in place.

use causeway_engine::drops::DropDoc;
use causeway_engine::spec::{phase, reads, writes};
use causeway_engine::{
    Cx, Element, Error, Event, Invalid, Library, NoAnswer, OnFailure, Options, Persistent, Plan, Router, Run,
    Spec,
};
use causeway_lang::NoLibraries;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// What the elements of a test do, one word each: `name:what`.
type Diary = Mutex<Vec<String>>;

/// Notes what happens to it. Its task panics, or is stuck until the gate opens, once a handler says so; STICKS lets it be stuck
/// when it is put in place.
static WITNESS: Spec = Spec {
    name: "Witness",
    ports: "0/0",
    handlers: &[reads("runs", "runs of its task"), writes("do", "`panic` or `stick`")],
    drops: &[DropDoc { name: "told", doc: "what a test adds" }],
    build: |conf| {
        let fails = conf.keyword("FAILS", false);
        let sticks = conf.keyword("STICKS", false);
        conf.finish()?;
        let diary = conf.env.persistent("diary", Diary::default).ok_or(Invalid)?;
        let gate = conf.env.persistent("gate", AtomicBool::default).ok_or(Invalid)?;
        let name = conf.name().to_string();
        Ok(Box::new(Witness { diary, gate, name, fails, sticks, next: String::new(), runs: 0 }))
    },
    ..Spec::DEFAULT
};

struct Witness {
    diary: Arc<Diary>,
    gate: Arc<AtomicBool>,
    name: String,
    fails: bool,
    sticks: bool,
    next: String,
    runs: u64,
}

impl Witness {
    fn note(&self, what: &str) {
        self.diary.lock().unwrap().push(format!("{}:{what}", self.name));
    }

    fn stick(&self) {
        self.note("stuck");
        while !self.gate.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Element for Witness {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.note("initialize");
        cx.wake();
        if self.fails { Err(Error::new("it never works")) } else { Ok(()) }
    }

    fn commit(&mut self, _: &mut Cx<'_>) {
        self.note("commit");
        if self.sticks {
            self.stick();
        }
    }

    fn task(&mut self, _: &mut Cx<'_>) -> Run {
        self.runs += 1;
        match std::mem::take(&mut self.next).as_str() {
            "panic" => panic!("as it was told"),
            "stick" => self.stick(),
            _ => {}
        }
        Run::Sleep
    }

    fn read(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        cx.wake();
        Ok(self.runs.to_string())
    }

    fn write(&mut self, _: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.next = value.to_owned();
        cx.wake();
        Ok(())
    }

    fn take_state(&mut self, _: &mut dyn Element, _: &mut Cx<'_>) {
        self.note("take-state");
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let thread = std::thread::current();
        if thread.name().is_some_and(|name| name.starts_with("worker-")) {
            self.note("dropped-by-a-worker");
        }
        self.note("drop");
    }
}

/// Names the worker that an element is to live on, as `ELEMENT WORKER`.
static PIN: Spec = Spec {
    name: "Pin",
    ports: "0/0",
    phase: phase::INFO,
    build: |conf| {
        for arg in conf.rest() {
            if let Some((name, worker)) = arg.split_once(' ') {
                conf.env.threads.push((name.to_owned(), worker.parse().ok()));
            }
        }
        conf.finish()?;
        Ok(Box::new(Nothing))
    },
    ..Spec::DEFAULT
};

struct Nothing;
impl Element for Nothing {}

fn library() -> Library {
    Library::new([&WITNESS, &PIN])
}

fn plan(text: &str) -> Plan {
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library(), &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

/// The values that the elements of a test share with it.
#[derive(Default)]
struct Shared {
    diary: Arc<Diary>,
    gate: Arc<AtomicBool>,
}

impl Shared {
    fn options(&self) -> Options {
        let persistent = Persistent::default();
        let mut values = persistent.lock().unwrap();
        values.insert("diary".to_owned(), self.diary.clone());
        values.insert("gate".to_owned(), self.gate.clone());
        drop(values);
        Options { persistent, ..Options::default() }
    }

    fn diary(&self) -> Vec<String> {
        self.diary.lock().unwrap().clone()
    }
}

fn start(text: &str, options: Options) -> Router {
    let router = Router::start(library(), plan(text), options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_panic_is_told_at_once_and_before_the_elements_go() {
    let shared = Shared::default();
    let (told, failure) = mpsc::channel();
    let diary = shared.diary.clone();
    let on_failure = OnFailure::new(move |worker| {
        let dropped = diary.lock().unwrap().iter().any(|d| d == "c:drop");
        told.send((worker, dropped)).unwrap();
    });
    let options = Options { workers: 2, on_failure: Some(on_failure), ..shared.options() };
    let router = start("a :: Witness; b :: Witness; c :: Witness; Pin(a 0, b 1, c 1);", options);
    router.write("b", "do", "panic").unwrap();
    assert_eq!(failure.recv_timeout(Duration::from_secs(20)), Ok((1, false)));
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::Ended { worker: 1 }));
    assert_eq!(router.read("b", "runs", "").unwrap_err().to_string(), "worker 1 does not answer");
    assert!(router.read("a", "runs", "").is_ok(), "the other worker runs on");
    assert_eq!(router.close(), Ok(()));
    assert!(failure.try_recv().is_err(), "ending as told is no failure");
    assert_eq!(shared.diary().iter().filter(|d| d.ends_with(":drop")).count(), 3);
}

#[test]
fn a_worker_that_sleeps_has_a_pulse_and_one_that_is_stuck_has_none() {
    let shared = Shared::default();
    let router =
        start("a :: Witness; b :: Witness; Pin(a 0, b 1);", Options { workers: 2, ..shared.options() });
    let pulses = router.pulses();
    let beats = |n: usize| {
        for _ in 0..n {
            let latest_ns = pulses[0].latest_ns();
            until("worker 0 wakes by itself", || pulses[0].latest_ns() > latest_ns);
        }
    };
    until("both ran", || pulses.iter().all(|p| p.latest_ns() > 0));
    let before_ns = pulses[1].latest_ns();
    until("worker 1 wakes by itself", || pulses[1].latest_ns() > before_ns);
    router.write("b", "do", "stick").unwrap();
    // The rounds before it sticks are over when the other worker has slept twice.
    beats(2);
    let stuck_ns = pulses[1].latest_ns();
    beats(4);
    assert_eq!(pulses[1].latest_ns(), stuck_ns);
    shared.gate.store(true, Ordering::Relaxed);
    until("it goes on", || pulses[1].latest_ns() > stuck_ns);
}

#[test]
fn a_worker_says_since_when_its_rings_were_found_empty() {
    let shared = Shared::default();
    let router = start("a :: Witness;", shared.options());
    let pulse = router.pulses().remove(0);
    for _ in 0..2 {
        let latest_ns = pulse.latest_ns();
        until("it looks again", || pulse.empty_ns() > latest_ns);
        assert!(pulse.empty_ns() <= pulse.latest_ns(), "it says so of a time before");
    }
}

#[test]
fn simulated_time_has_no_pulse() {
    let shared = Shared::default();
    let options = Options { simulated_ns: Some(0), ..shared.options() };
    let router = start("a :: Witness;", options);
    until("it ran", || router.read("a", "runs", "").unwrap() != "0");
    assert_eq!(router.pulses()[0].latest_ns(), 0);
}

#[test]
fn a_stuck_worker_keeps_nobody_waiting_for_ever() {
    let shared = Shared::default();
    let options = Options { workers: 2, ..shared.options() };
    let mut router = start("a :: Witness; b :: Witness; Pin(a 0, b 1);", options);
    router.write("b", "do", "stick").unwrap();
    until("it is stuck", || shared.diary().contains(&"b:stuck".to_owned()));
    assert_eq!(router.read("b", "runs", "").unwrap_err().to_string(), "worker 1 does not answer");
    let swapped = router.swap(plan("a :: Witness; c :: Witness; Pin(a 0, c 1);"));
    assert_eq!(swapped.unwrap_err().to_string(), "worker 1 does not answer");
    assert!(router.read("a", "runs", "").is_ok(), "the old graph runs on");
    assert!(!shared.diary().iter().any(|d| d == "a:take-state" || d == "c:commit"), "{:?}", shared.diary());
    assert_eq!(router.close(), Err(NoAnswer(1)));
    assert!(!shared.diary().contains(&"b:drop".to_owned()), "it is still stuck");
    shared.gate.store(true, Ordering::Relaxed);
    until("the thread that was left behind ends", || shared.diary().contains(&"b:drop".to_owned()));
}

#[test]
fn a_graph_that_is_not_used_is_dropped_by_no_worker() {
    let shared = Shared::default();
    let options = Options { workers: 2, ..shared.options() };
    let mut router = start("a :: Witness; b :: Witness; Pin(a 0, b 1);", options);
    router.write("b", "do", "stick").unwrap();
    until("it is stuck", || shared.diary().contains(&"b:stuck".to_owned()));
    // One worker gets its part of the graph, and the other finds too late that it was to have one.
    assert!(router.swap(plan("c :: Witness; d :: Witness; Pin(c 0, d 1);")).is_err());
    until("the first part is dropped", || shared.diary().contains(&"c:drop".to_owned()));
    shared.gate.store(true, Ordering::Relaxed);
    until("the late part is dropped", || shared.diary().contains(&"d:drop".to_owned()));
    assert!(!shared.diary().iter().any(|d| d.ends_with("dropped-by-a-worker")), "{:?}", shared.diary());
    assert!(
        router.read("a", "runs", "").is_ok() && router.read("c", "runs", "").is_err(),
        "the old graph runs"
    );
}

#[test]
fn workers_that_are_stuck_are_waited_for_together_and_drop_nothing_later() {
    let shared = Shared::default();
    let options = Options { workers: 3, ..shared.options() };
    let pin = "Pin(a 0, b 1, c 2);";
    let mut router = start(&format!("a :: Witness; b :: Witness; c :: Witness; {pin}"), options);
    let start = Instant::now();
    let stuck = "a :: Witness(STICKS true); b :: Witness(STICKS true); c :: Witness;";
    router.swap(plan(&format!("{stuck} {pin}"))).unwrap();
    assert!(start.elapsed() < 2 * Duration::from_secs(5), "each of them had a time of its own");
    let has = |what: &str| shared.diary().iter().any(|d| d == what);
    assert!(has("c:drop") && !has("a:drop") && !has("b:drop"), "{:?}", shared.diary());
    shared.gate.store(true, Ordering::Relaxed);
    until("what came back late is dropped", || has("a:drop") && has("b:drop"));
    assert!(!shared.diary().iter().any(|d| d.ends_with("dropped-by-a-worker")), "{:?}", shared.diary());
    assert!(router.read("b", "runs", "").is_ok(), "the new graph runs");
}

#[test]
fn what_stuck_workers_are_to_add_is_given_back_after_one_wait_for_all() {
    let shared = Shared::default();
    let options = Options { workers: 3, ..shared.options() };
    let router = start("a :: Witness; b :: Witness; c :: Witness; Pin(a 0, b 1, c 2);", options);
    for name in ["a", "b"] {
        router.write(name, "do", "stick").unwrap();
        until("it is stuck", || shared.diary().contains(&format!("{name}:stuck")));
    }
    let [a, b, c] = ["a", "b", "c"].map(|name| router.counter(name, "drop.told").unwrap());
    let start = Instant::now();
    let left = router.add(vec![(a.clone(), 1), (b.clone(), 2), (c.clone(), 3)]).unwrap_err();
    assert!(start.elapsed() < 2 * Duration::from_secs(5), "each of them had a time of its own");
    assert_eq!((left.sums, c.get()), (vec![(a.clone(), 1), (b.clone(), 2)], 3));
    shared.gate.store(true, Ordering::Relaxed);
    until("they go on", || router.read("a", "runs", "").is_ok() && router.read("b", "runs", "").is_ok());
    assert_eq!((a.get(), b.get()), (0, 0), "it was too late");
}

#[test]
fn what_cannot_be_undone_is_done_when_nothing_can_fail_any_more() {
    let shared = Shared::default();
    let bad = "a :: Witness; b :: Witness(FAILS true);";
    assert!(Router::start(library(), plan(bad), shared.options()).is_err());
    assert_eq!(shared.diary(), ["a:initialize", "b:initialize", "a:drop", "b:drop"]);
    shared.diary.lock().unwrap().clear();

    let mut router = start("a :: Witness;", shared.options());
    assert_eq!(shared.diary(), ["a:initialize", "a:commit"]);
    assert!(router.swap(plan(bad)).is_err());
    assert_eq!(shared.diary()[2..], ["a:initialize", "b:initialize", "a:drop", "b:drop"]);
    shared.diary.lock().unwrap().clear();
    router.swap(plan("a :: Witness;")).unwrap();
    assert_eq!(shared.diary(), ["a:initialize", "a:take-state", "a:commit", "a:drop"]);
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("causeway-engine-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the directory of the counters' file names a counter of `element`.
fn counts(file: &Path, element: &str) -> bool {
    let bytes = std::fs::read(file).unwrap();
    String::from_utf8_lossy(&bytes).contains(&format!("\t0\t{element}\t"))
}

#[test]
fn the_counters_file_is_that_of_the_graph_that_runs_and_goes_with_the_router() {
    let (shared, folder) = (Shared::default(), Folder::new("counters"));
    let file = folder.0.join("counters");
    let options = Options { counters: Some(file.clone()), ..shared.options() };
    let bad = Router::start(library(), plan("a :: Witness(FAILS true);"), options.clone());
    assert!(bad.is_err());
    assert_eq!(folder.files(), [""; 0], "a graph that fails leaves nothing");

    let mut router = start("a :: Witness;", options);
    assert!(counts(&file, "a"));
    assert!(router.swap(plan("b :: Witness; c :: Witness(FAILS true);")).is_err());
    assert!(counts(&file, "a") && !counts(&file, "b"), "the counters of the old graph are still there");
    router.swap(plan("b :: Witness;")).unwrap();
    assert!(!counts(&file, "a") && counts(&file, "b"));
    assert_eq!(folder.files(), ["counters"]);
    drop(router);
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn the_file_of_another_router_is_not_removed() {
    let (shared, folder) = (Shared::default(), Folder::new("other"));
    let file = folder.0.join("counters");
    let router = start("a :: Witness;", Options { counters: Some(file.clone()), ..shared.options() });
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "of another").unwrap();
    drop(router);
    assert_eq!(std::fs::read(&file).unwrap(), b"of another");
}
