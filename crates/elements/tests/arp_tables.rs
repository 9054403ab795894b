//! ARPQueriers that share a table of neighbours.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

fn start(text: &str) -> Result<Router, String> {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    Router::start(library, plan, options).map_err(|e| e.to_string())
}

/// Two queriers send to a neighbour; only the second one hears its answer, after a second.
const PAIR: &str = "
    RatedSource(RATE 10, LIMIT 1000) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> GetIPAddress(16) -> t :: Tee;
    t[0] -> q :: ARPQuerier(1.0.0.1/24, 2:0:0:0:0:1 MORE) -> a :: Classifier(12/0800, -) -> ac :: Counter -> Discard; a[1] -> Discard;
    t[1] -> r :: ARPQuerier(1.0.0.1/24, 2:0:0:0:0:1 MORE) -> b :: Classifier(12/0800, -) -> bc :: Counter -> Discard; b[1] -> Discard;
    TimedSource(INTERVAL 1.05, LIMIT 1, DATA \\<02 00 00 00 00 01  02 00 00 00 00 02  08 06  00 01 08 00 06 04 00 02
        02 00 00 00 00 02  01 00 00 02  02 00 00 00 00 01  01 00 00 01>) -> [1] r;
    Idle -> [1] q;
    TimedSource(INTERVAL 1.025, LIMIT 1, STOP true) -> Discard;";

#[test]
fn what_one_learns_all_know() {
    let router = start(&format!("x :: ARPTable; {}", PAIR.replace("MORE", ", TABLE x"))).unwrap();
    router.resume();
    assert_eq!(router.wait(Some(Duration::from_secs(30))), Some(Event::StopRequested { worker: 0 }));
    let number =
        |element: &str, handler: &str| router.read(element, handler, "").unwrap().parse::<u64>().unwrap();
    // Ten packets go by the first in the second behind the answer; what waited, its own and the other's, leaves by the second.
    assert_eq!((number("ac", "count"), number("bc", "count")), (10, 32));
    assert_eq!((number("x", "count"), number("x", "length"), number("q", "count")), (1, 0, 1));
    let table = router.read("x", "table", "").unwrap();
    assert!(table.starts_with("1.0.0.2 1 02-00-00-00-00-02 "), "{table}");
    assert_eq!(router.read("q", "table", "").unwrap().split(' ').next(), Some("1.0.0.2"));
    // Together they asked as often as one, ten times a second, until the back-off.
    assert!(number("q", "queries") + number("r", "queries") <= 11);
    router.write("x", "delete", "1.0.0.2").unwrap();
    assert_eq!(number("r", "count"), 0);
    router.write("x", "insert", "1.0.0.7 2:0:0:0:0:7").unwrap();
    router.write("q", "insert", "1.0.0.8 2:0:0:0:0:8").unwrap();
    assert_eq!(number("x", "count"), 2);
    router.write("x", "clear", "").unwrap();
    assert_eq!(number("q", "count"), 0);
}

#[test]
fn without_a_table_in_common_each_learns_for_itself() {
    let router = start(&PAIR.replace("MORE", "")).unwrap();
    router.resume();
    assert_eq!(router.wait(Some(Duration::from_secs(30))), Some(Event::StopRequested { worker: 0 }));
    assert_eq!(router.read("ac", "count", "").unwrap(), "0");
    assert_eq!(router.read("q", "length", "").unwrap(), "21");
}

#[test]
fn a_table_must_be_there() {
    let error = start(
        "ARPTable; Idle -> q :: ARPQuerier(1.0.0.1/24, 2:0:0:0:0:1, TABLE x) -> Discard; Idle -> [1] q;",
    );
    assert!(error.err().unwrap().contains("TABLE: no ARPTable named 'x' on this worker"));
}
