//! The time that elements see before the workers run.

use causeway_engine::{Cx, Element, Error, Invalid, Library, Options, Persistent, Plan, Router, Spec};
use causeway_lang::NoLibraries;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the elements read when they were initialised, nanoseconds.
type Readings = Mutex<Vec<u64>>;

/// How long the initialisation of an element takes at least.
const WORK: Duration = Duration::from_millis(2);

/// Notes the time and then takes some, as one that opens a device does.
static SLOW: Spec = Spec {
    name: "Slow",
    ports: "0/0",
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Slow(conf.env.persistent("readings", Readings::default).ok_or(Invalid)?)))
    },
    ..Spec::DEFAULT
};

struct Slow(Arc<Readings>);

impl Element for Slow {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.0.lock().unwrap().push(cx.now_ns());
        let start = Instant::now();
        while start.elapsed() < WORK {
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[test]
fn time_passes_from_one_initialisation_to_the_next() {
    let library = Library::new([&SLOW]);
    let compiled = causeway_lang::compile("test", b"Slow; Slow; Slow;", &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let (readings, persistent) = (Arc::new(Readings::default()), Persistent::default());
    persistent.lock().unwrap().insert("readings".to_owned(), readings.clone());
    let options = Options { persistent, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    let readings = readings.lock().unwrap().clone();
    assert_eq!(readings.len(), 3);
    let apart_ns = readings.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(apart_ns.min() >= Some(WORK.as_nanos() as u64), "{readings:?}");
    assert_eq!(router.close(), Ok(()));
}
