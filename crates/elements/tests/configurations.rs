//! The example configurations in `conf/` that need no devices, run to their end under simulated time.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::path::Path;
use std::time::Duration;

/// Runs `conf/FILE` with those parameters until it stops.
fn run(file: &str, params: &[(&str, &str)]) -> Router {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf").join(file);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile(file, &text, &NoLibraries, &library, &params);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    assert_eq!(
        router.wait(Some(Duration::from_secs(60))),
        Some(Event::StopRequested { worker: 0 }),
        "{file}"
    );
    router
}

fn number(router: &Router, element: &str, handler: &str) -> f64 {
    router.read(element, handler, "").unwrap().parse().unwrap()
}

#[test]
fn udpgen_makes_what_it_is_told() {
    let router = run("udpgen.click", &[("limit", "5000"), ("rate", "1000")]);
    assert_eq!(number(&router, "average", "count"), 5_000.0);
    assert!((number(&router, "average", "rate") - 1_000.0).abs() < 1.0);
}

#[test]
fn fair_shares_the_link() {
    let router = run("fair.click", &[("packets", "2000")]);
    let count = |element: &str| number(&router, element, "count");
    assert_eq!(count("total"), 2_000.0);
    assert_eq!(count("voice_count") + count("greedy_count") + count("modest_count"), 2_000.0);
    assert!((count("greedy_count") - count("modest_count")).abs() <= 1.0, "the two take turns");
}

#[test]
fn what_is_recorded_is_replayed() {
    let trace = std::env::temp_dir().join(format!("causeway-configurations-{}.pcap", std::process::id()));
    let params = [("trace", trace.to_str().unwrap())];
    let router = run("record.click", &params);
    assert_eq!(number(&router, "dump", "count"), 1_000.0);
    // The file is whole once its writer is gone.
    drop(router);
    let router = run("replay.click", &params);
    std::fs::remove_file(&trace).unwrap();
    assert_eq!((number(&router, "average", "count"), number(&router, "other", "count")), (1_000.0, 0.0));
    assert!((number(&router, "average", "rate") - 1_001.0).abs() < 2.0);
}
