//! Simulated time.

use super::{library, plan};
use causeway_engine::{Options, Router};
use std::time::Duration;

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
