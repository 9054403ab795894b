//! Whole routers from text: delivery order, scheduling, stopping, handlers, hot swap, several workers.

mod elements;
mod graph;
mod odd;
mod simulation;
mod swap;
mod time;
mod workers;

use causeway_engine::{Event, Library, Options, Plan, Router};
use causeway_lang::NoLibraries;
use elements::{COPY, DRAIN, LOG, PIN, SOURCE, STORE};
use odd::{ALARM, BOUNCE, DEVICE, FAILING, LONG, PATIENT, READER, STAMPER, TALLY, WAIT};
use std::time::{Duration, Instant};

fn library() -> Library {
    let ordinary = [&BOUNCE, &SOURCE, &COPY, &LOG, &STORE, &DRAIN, &PIN];
    let odd = [&FAILING, &DEVICE, &WAIT, &ALARM, &TALLY, &PATIENT, &LONG, &READER, &STAMPER];
    Library::new(ordinary.into_iter().chain(odd))
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

/// The numbers that element `l` saw.
fn seen(router: &Router) -> Vec<u32> {
    let log = router.read("l", "log", "").unwrap();
    log.split(' ').filter_map(|word| word.strip_prefix("l:")?.parse().ok()).collect()
}
