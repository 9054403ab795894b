//! Who runs on which worker, and who never runs.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

#[test]
fn what_has_no_worker_never_runs() {
    let text = "StaticThreadSched(s -1, t -1); s :: InfiniteSource(LIMIT 5) -> a :: Counter -> Discard; \
                t :: TimedSource(1ms) -> b :: Counter -> Discard; \
                InfiniteSource(LIMIT 5) -> c :: Counter -> Discard; TimedSource(0.1s, LIMIT 1, STOP true) -> Discard;";
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    assert_eq!(router.wait(Some(Duration::from_secs(60))), Some(Event::StopRequested { worker: 0 }));
    // To set it going by hand changes nothing either.
    router.write("s", "active", "true").unwrap();
    let count = |element: &str| router.read(element, "count", "").unwrap();
    assert_eq!(["a", "b", "c"].map(count), ["0", "0", "5"]);
}
