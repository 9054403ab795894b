//! Whole routers from text: delivery order, scheduling, stopping, handlers, hot swap, several workers.

use causeway_engine::measure::{Across, Unit};
use causeway_engine::reception::Mechanism;
use causeway_engine::spec::{Notifies, reads, writes};
use causeway_engine::{Conf, Cx, Element, Event, Invalid, Library, Options, Plan, Router, Run, Spec};
use causeway_lang::NoLibraries;
use causeway_packet::{BATCH, Batch, Packet, Receiver};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Makes LIMIT numbered packets, one a task run; stops the driver after the last if STOP.
static SOURCE: Spec = Spec {
    name: "Source",
    ports: "0/1",
    processing: "h/h",
    handlers: &[
        reads("made", "packets made").counts(Unit::Packets),
        reads("limit", "LIMIT"),
        reads("now", "the time").measures(Unit::None).across(Across::Max),
    ],
    build: |conf| {
        let (limit, stop) = (conf.required("LIMIT"), conf.keyword("STOP", false));
        conf.finish()?;
        Ok(Box::new(Source { made: 0, limit, stop }))
    },
    ..Spec::DEFAULT
};

struct Source {
    made: u32,
    limit: u32,
    stop: bool,
}

impl Element for Source {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if self.made == self.limit {
            if self.stop {
                cx.stop_driver();
            }
            return Run::Sleep;
        }
        if !cx.room_downstream(0) {
            return Run::Sleep;
        }
        self.made += 1;
        cx.emit(0, Packet::from_bytes(&self.made.to_ne_bytes()).unwrap());
        Run::Worked
    }

    fn read(&mut self, handler: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "now" => cx.now_ns(),
            "limit" => self.limit.into(),
            _ => self.made.into(),
        }
        .to_string())
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Source>() {
            self.made = old.made;
        }
    }
}

/// Copies to all outputs.
static COPY: Spec = Spec {
    name: "Copy",
    ports: "1/1-",
    processing: "h/h",
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Copy))
    },
    ..Spec::DEFAULT
};

struct Copy;

impl Element for Copy {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            for port in (1..cx.n_outputs()).rev() {
                cx.emit(port, p.copy().unwrap());
            }
            cx.emit(0, p);
        }
    }
}

/// Writes what it sees into a log that the elements of a test share: `name:number`.
static LOG: Spec = Spec {
    name: "Log",
    ports: "1/0-1",
    processing: "h/h",
    handlers: &[reads("log", "what all of them saw")],
    build: |conf| {
        conf.finish()?;
        let log = conf.env.shared("log", || Mutex::new(String::new())).ok_or(Invalid)?;
        Ok(Box::new(Log { log, name: conf.name().to_string() }))
    },
    ..Spec::DEFAULT
};

struct Log {
    log: Arc<Mutex<String>>,
    name: String,
}

impl Element for Log {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter() {
            let number = u32::from_ne_bytes(p.data().try_into().unwrap());
            *self.log.lock().unwrap() += &format!("{}:{number} ", self.name);
        }
        if cx.n_outputs() == 0 {
            batch.clear();
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Log>() {
            self.log.lock().unwrap().insert_str(0, &std::mem::take(&mut *old.log.lock().unwrap()));
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.log.lock().unwrap().trim().to_owned())
    }
}

/// A queue of CAPACITY packets that notifies both sides.
static STORE: Spec = Spec {
    name: "Store",
    ports: "1/1",
    processing: "h/l",
    notifies: Notifies { packets: true, room: true },
    handlers: &[reads("highwater", "most packets held")],
    build: |conf| {
        let capacity = conf.optional("CAPACITY", 10u32);
        conf.finish()?;
        Ok(Box::new(Store { packets: VecDeque::new(), capacity: capacity as usize, highwater: 0 }))
    },
    ..Spec::DEFAULT
};

struct Store {
    packets: VecDeque<Packet>,
    capacity: usize,
    highwater: usize,
}

impl Element for Store {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.packets.extend(batch.drain());
        // A pusher that asks for room may push a whole batch into the last of it.
        assert!(self.packets.len() < self.capacity + BATCH, "a pusher was not held back");
        self.highwater = self.highwater.max(self.packets.len());
        cx.notify_packets(true);
        cx.notify_room(self.packets.len() < self.capacity);
    }

    fn pull(&mut self, _: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.extend(self.packets.drain(..max.min(self.packets.len())));
        cx.notify_packets(!self.packets.is_empty());
        cx.notify_room(self.packets.len() < self.capacity);
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.highwater.to_string())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Store>() {
            self.packets = std::mem::take(&mut old.packets);
            cx.notify_packets(!self.packets.is_empty());
            cx.notify_room(self.packets.len() < self.capacity);
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

/// Pulls one packet a run and pushes it; sleeps while its notifier says that there is none.
static DRAIN: Spec = Spec {
    name: "Drain",
    ports: "1/1",
    processing: "l/h",
    handlers: &[reads("runs", "times the task ran")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Drain { runs: 0 }))
    },
    ..Spec::DEFAULT
};

struct Drain {
    runs: u64,
}

impl Element for Drain {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.runs += 1;
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let got = batch.len();
        cx.emit_batch(0, batch);
        match got {
            0 if cx.packets_upstream(0) => Run::Idle,
            0 => Run::Sleep,
            _ => Run::Worked,
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.runs.to_string())
    }
}

/// Names the worker that an element is to live on, as `ELEMENT WORKER`.
static PIN: Spec = Spec {
    name: "Pin",
    ports: "0/0",
    phase: causeway_engine::spec::phase::INFO,
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

/// A device that has PACKETS numbered packets, one interrupt each, if there were any.
static DEVICE: Spec = Spec {
    name: "Device",
    ports: "0/1",
    processing: "h/h",
    build: |conf| {
        let left = conf.required("PACKETS");
        conf.finish()?;
        Ok(Box::new(Device { left, next: 1 }))
    },
    ..Spec::DEFAULT
};

struct Device {
    left: u32,
    next: u32,
}

impl Receiver for Device {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let n = (self.left as usize).min(budget).min(batch.room()) as u32;
        let numbers = self.next..self.next + n;
        batch.extend(numbers.map(|n| Packet::from_bytes(&n.to_ne_bytes()).unwrap()));
        (self.left, self.next) = (self.left - n, self.next + n);
        self.left > 0
    }

    fn waiting(&mut self) -> usize {
        self.left as usize
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Element for Device {
    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(self)
    }

    fn mechanism(&self) -> Option<Mechanism> {
        Some(Mechanism::Interrupt)
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Device>() {
            (self.left, self.next) = (std::mem::take(&mut old.left), old.next);
        }
    }
}

/// Pulls nothing.
static WAIT: Spec = Spec {
    name: "Wait",
    ports: "1/0",
    processing: "l/h",
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Nothing))
    },
    ..Spec::DEFAULT
};

fn build_failing(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.error("it never works");
    Err(Invalid)
}

static FAILING: Spec = Spec { name: "Failing", ports: "0/0", build: build_failing, ..Spec::DEFAULT };

/// Calls its own handler whenever that is called.
static BOUNCE: Spec = Spec {
    name: "Bounce",
    ports: "0/0",
    handlers: &[reads("bounces", "calls so far"), writes("bounce", "calls itself")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Bounce { bounces: 0 }))
    },
    ..Spec::DEFAULT
};

struct Bounce {
    bounces: u64,
}

impl Element for Bounce {
    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.bounces.to_string())
    }

    fn write(&mut self, _: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.bounces += 1;
        cx.call_later(value, value);
        Ok(())
    }
}

fn library() -> Library {
    Library::new([&BOUNCE, &SOURCE, &COPY, &LOG, &STORE, &DRAIN, &PIN, &FAILING, &DEVICE, &WAIT])
}

fn plan(text: &str) -> Plan {
    let library = library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

fn start(text: &str, workers: usize) -> Router {
    let options = Options { workers, ..Options::default() };
    let router = Router::start(library(), plan(text), options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

/// Runs until an element asks to stop, then returns `log` of the element called `l`.
fn log_of(text: &str) -> String {
    let router = start(text, 1);
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::StopRequested { worker: 0 }));
    router.read("l", "log", "").unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn delivery_is_depth_first_and_outputs_are_in_order() {
    let text = "Source(2, STOP true) -> c :: Copy; c[0] -> a :: Log -> b :: Log; c[1] -> l :: Log;";
    assert_eq!(log_of(text), "a:1 b:1 l:1 a:2 b:2 l:2");
}

#[test]
fn a_loop_in_the_graph_ends_and_is_counted() {
    let router = start("Source(1) -> l :: Log -> l;", 1);
    let loops = || router.counters().find(|(line, _)| line.name == "drop.loop").map_or(0, |(_, n)| n);
    until("the loop is cut", || loops() == 1);
}

#[test]
fn a_full_queue_holds_its_source_back_and_an_empty_one_its_drain() {
    let router = start("s :: Source(1000) -> q :: Store(5) -> d :: Drain -> l :: Log;", 1);
    until("all passed", || router.read("l", "log", "").unwrap().ends_with(":1000"));
    let runs = router.read("d", "runs", "").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(router.read("d", "runs", "").unwrap(), runs, "the drain sleeps while the queue is empty");
    assert!(router.read("q", "highwater", "").unwrap().parse::<u32>().unwrap() <= 5);
}

#[test]
fn all_configuration_errors_are_reported_with_their_places() {
    let text = "f1 :: Failing;\nSource(x) -> Log;\nf2 :: Failing;";
    let error = Router::start(library(), plan(text), Options::default()).err().unwrap().to_string();
    let expected = "test:1: While configuring 'f1 :: Failing':\n  it never works\n\
                    test:3: While configuring 'f2 :: Failing':\n  it never works\n\
                    test:2: While configuring 'Source@2 :: Source':\n  LIMIT: invalid number";
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&error), sorted(expected));
}

#[test]
fn handlers_answer_and_say_what_is_wrong() {
    let router = start("s :: Source(3) -> q :: Store -> d :: Drain -> Log;", 1);
    let failed = |e: &str, h: &str, a: &str| router.read(e, h, a).unwrap_err().to_string();
    assert_eq!(failed("x", "made", ""), "No element named 'x'");
    assert_eq!(failed("s", "mode", ""), "No handler named 's.mode'");
    assert_eq!(failed("s", "made", "1"), "read handler 's.made' does not take parameters");
    assert_eq!(router.write("s", "made", "1").unwrap_err().to_string(), "Handler 's.made' read-only");
    assert_eq!(router.read("s", "class", "").unwrap(), "Source");
    assert_eq!(router.read("s", "config", "").unwrap(), "3");
    assert_eq!(router.read("q", "ports", "").unwrap(), "1 input\npush\t-\ts [0]\n1 output\npull\t-\t[0] d\n");
}

#[test]
fn handlers_that_call_each_other_without_end_are_cut() {
    let router = start("c/b :: Bounce; d :: Bounce;", 1);
    router.write("c/b", "bounce", "d.bounce").unwrap();
    let calls: u64 = router.read("d", "bounces", "").unwrap().parse().unwrap();
    assert!((100..10_000).contains(&calls), "{calls}");
    router.write("d", "bounce", "stop").unwrap();
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::StopRequested { worker: 0 }));
}

#[test]
fn a_swap_keeps_packets_and_state_and_a_bad_one_changes_nothing() {
    let mut router = start("s :: Source(4) -> q :: Store(10) -> Drain -> l :: Log;", 1);
    until("four passed", || router.read("s", "made", "").unwrap() == "4");
    assert!(router.swap(plan("f :: Failing;")).is_err());
    assert_eq!(router.read("s", "made", "").unwrap(), "4");
    router.swap(plan("s :: Source(9) -> q :: Store(10) -> Drain -> l :: Log;")).unwrap();
    until("the rest passed", || router.read("l", "log", "").unwrap().ends_with("l:5 l:6 l:7 l:8 l:9"));
}

#[test]
fn packets_held_at_a_swap_are_not_lost() {
    let mut router = start("s :: Source(4) -> q :: Store(10) -> [0] x :: Drain -> Log; p :: Pin;", 1);
    router.pause();
    for _ in 0..20 {
        router.swap(plan("s :: Source(2000) -> q :: Store(10) -> Drain -> l :: Log;")).unwrap();
    }
    router.resume();
    until("all passed", || router.read("l", "log", "").unwrap().ends_with(":2000"));
    let log = router.read("l", "log", "").unwrap();
    let numbers: Vec<u32> = log.split(' ').filter_map(|w| w.strip_prefix("l:")?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "none lost, none twice, in order");
}

#[test]
fn edges_between_workers_carry_every_packet_in_order() {
    for (pinned, shape) in [
        ("a 0, d 1, l 1", "pushed edge within, pulled edge across"),
        ("a 0, q 1, d 1, l 1", "pushed edge across"),
        ("a 1, q 0, d 1, l 0", "both ways"),
    ] {
        let text = format!("Pin({pinned}); a :: Source(3000) -> q :: Store(5000) -> d :: Drain -> l :: Log;");
        let router = start(&text, 2);
        until(shape, || router.read("l", "log", "").unwrap().ends_with(":3000"));
        let expected: Vec<String> = (1..=3_000).map(|n| format!("l:{n}")).collect();
        assert_eq!(router.read("l", "log", "").unwrap(), expected.join(" "), "{shape}");
    }
}

/// The numbers that element `l` saw.
fn seen(router: &Router) -> Vec<u32> {
    let log = router.read("l", "log", "").unwrap();
    log.split(' ').filter_map(|word| word.strip_prefix("l:")?.parse().ok()).collect()
}

#[test]
fn a_full_edge_between_workers_holds_the_sender_back_and_wakes_it() {
    // Many times what a ring holds. A sender that nobody wakes would need a quarter of a second for each.
    for (pinned, packets, room) in
        [("a 0, q 0, d 1, l 1", 400_000, 2_000), ("a 0, q 1, d 1, l 1", 100_000, 2_000)]
    {
        let text =
            format!("Pin({pinned}); a :: Source({packets}) -> q :: Store({room}) -> d :: Drain -> l :: Log;");
        let router = start(&text, 2);
        until("most passed", || router.read("d", "runs", "").unwrap().parse::<u32>().unwrap() >= packets);
        until("none was lost", || seen(&router).last() == Some(&packets));
        assert!(seen(&router).windows(2).all(|w| w[1] == w[0] + 1), "{pinned}");
    }
}

#[test]
fn swaps_under_load_lose_nothing_on_the_way_between_workers() {
    for (pinned, packets, room) in
        [("a 0, q 0, d 1, l 1", 200_000, 2_000), ("a 0, q 1, d 1, l 1", 100_000, 2_000)]
    {
        let text =
            format!("Pin({pinned}); a :: Source({packets}) -> q :: Store({room}) -> d :: Drain -> l :: Log;");
        let mut router = start(&text, 2);
        for _ in 0..20 {
            router.swap(plan(&text)).unwrap();
        }
        until("none was lost", || seen(&router).last() == Some(&packets));
        assert!(seen(&router).windows(2).all(|w| w[1] == w[0] + 1), "{pinned}");
    }
}

#[test]
fn packets_between_interrupt_and_forwarding_outlive_a_swap() {
    let mut router = start("d :: Device(250) -> l :: Log;", 1);
    for _ in 0..20 {
        router.swap(plan("d :: Device(0) -> l :: Log;")).unwrap();
    }
    until("all passed", || seen(&router).len() == 250);
    assert_eq!(seen(&router), (1..=250).collect::<Vec<_>>());
    let counted = |name: &str| router.counters().find(|(line, _)| line.name == name).map(|(_, n)| n);
    assert_eq!((counted("rx.packets"), counted("drop.swap")), (Some(250), Some(0)), "counters go on");
}

#[test]
fn packets_without_a_place_in_the_new_graph_are_counted() {
    let mut router = start("Source(5) -> Store(10) -> Wait; Pin();", 1);
    until("five are held", || router.held().unwrap() == 5);
    router.swap(plan("Pin();")).unwrap();
    let lost: u64 = router.counters().filter(|(line, _)| line.name == "drop.swap").map(|(_, n)| n).sum();
    assert_eq!(lost, 5);
    router.swap(plan("Pin();")).unwrap();
    let lost: u64 = router.counters().filter(|(line, _)| line.name == "drop.swap").map(|(_, n)| n).sum();
    assert_eq!(lost, 5, "a worker's own counters go on, too");
}

#[test]
fn a_replicated_graph_runs_on_every_worker_and_its_handlers_say_what_is_summed() {
    let options = Options { workers: 3, replicate: true, ..Options::default() };
    let router = Router::start(library(), plan("s :: Source(7) -> Log;"), options).unwrap();
    router.resume();
    until("all made theirs", || router.read("s", "made", "").unwrap() == "21");
    assert_eq!(router.read("s", "limit", "").unwrap(), "7");
    let measures = router.measures().unwrap();
    let told =
        |name: &str| measures.iter().filter(|m| &*m.element == "s" && m.name == name).collect::<Vec<_>>();
    let [made] = told("made")[..] else { panic!("one value of three workers") };
    assert_eq!((made.value.as_str(), made.class), ("21", "Source"));
    assert!(told("limit").is_empty(), "it neither counts nor measures");
    assert!(
        told("now")[0].value.parse::<u64>().unwrap() <= router.read("s", "now", "").unwrap().parse().unwrap()
    );
}

#[test]
fn simulated_time_jumps() {
    let options = Options { simulated_ns: Some(0), seed: Some(1), ..Options::default() };
    let router = Router::start(library(), plan("Source(3, STOP true) -> l :: Log;"), options).unwrap();
    router.resume();
    assert!(router.wait(Some(Duration::from_secs(20))).is_some());
}

#[test]
fn time_goes_on_when_the_graph_is_replaced() {
    let options = Options { simulated_ns: Some(1_000), ..Options::default() };
    let mut router = Router::start(library(), plan("s :: Source(0) -> Log;"), options).unwrap();
    let now = |router: &Router| router.read("s", "now", "").unwrap().parse::<u64>().unwrap();
    let before = (0..100).fold(0, |_, _| now(&router));
    assert!(before >= 1_100);
    router.swap(plan("s :: Source(0) -> Log;")).unwrap();
    assert!(now(&router) > before);
}

#[test]
fn a_worker_in_livelock_obeys() {
    let router = start("d :: Device(4000000000) -> l :: Log;", 1);
    let dropped = || router.counters().find(|(l, _)| l.name == "rx.backlog-drops").map_or(0, |(_, n)| n);
    until("it drops", || dropped() > 100_000);
    let forwarded = seen(&router).len() as u64;
    assert!(forwarded * 50 < dropped(), "all work goes into drops: {forwarded} were forwarded");
}
