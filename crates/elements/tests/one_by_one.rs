//! What a batch must not make visible: a packet has gone all its way when the next one comes.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

/// Runs a configuration under simulated time until it stops.
fn run(text: &str) -> Router {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    assert_eq!(
        router.wait(Some(Duration::from_secs(60))),
        Some(Event::StopRequested { worker: 0 }),
        "{text}"
    );
    router
}

fn counts<const N: usize>(text: &str, handlers: [&str; N]) -> [u64; N] {
    let router = run(text);
    handlers.map(|element| router.read(element, "count", "").unwrap().parse().unwrap())
}

#[test]
fn a_counter_calls_before_the_packet_leaves() {
    for burst in [1, 7, 32, 256] {
        let text = format!(
            "InfiniteSource(LIMIT 100, BURST {burst}, STOP true) -> Counter(COUNT_CALL 5 s.switch 1) -> s :: Switch; \
             s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;"
        );
        assert_eq!(counts(&text, ["a", "b"]), [4, 96], "{burst}");
    }
}

#[test]
fn what_is_told_of_the_call_later_holds_at_once() {
    // The call is configured while packets flow.
    let text = "InfiniteSource(LIMIT 100, BURST 32, STOP true) -> Counter(COUNT_CALL 2 c.count_call '5 s.switch 1') \
                -> c :: Counter -> s :: Switch; s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;";
    let text = text.replace("'5 s.switch 1'", "5 s.switch 1");
    assert_eq!(counts(&text, ["a", "b"]), [4, 96]);
}

#[test]
fn ways_that_part_above_see_each_packet_before_the_next() {
    for (fork, outputs) in [("Tee", [2, 98]), ("Tee(2) -> Null -> u :: Tee; u[1] -> Discard; u", [2, 98])] {
        let text = format!(
            "InfiniteSource(LIMIT 100, BURST 32, STOP true) -> t :: {fork} \
             -> Counter(COUNT_CALL 3 s.switch 1) -> Discard; t[1] -> s :: Switch; \
             s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;"
        );
        assert_eq!(counts(&text, ["a", "b"]), outputs, "{fork}");
    }
}

#[test]
fn what_is_pulled_counts_one_by_one() {
    let text = "InfiniteSource(LIMIT 100, BURST 32) -> Queue(1000) -> Null -> Counter(COUNT_CALL 5 s.switch 1) \
                -> Unqueue(BURST 32) -> s :: Switch; \
                s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter(COUNT_CALL 96 stop) -> Discard;";
    assert_eq!(counts(text, ["a", "b"]), [4, 96]);
}

#[test]
fn limits_hold_within_a_batch() {
    let text = "InfiniteSource(LIMIT 100, BURST 32, END_CALL s.switch 1) -> Counter(COUNT_CALL 100 stop) -> s :: Switch; \
                s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;";
    assert_eq!(counts(text, ["a", "b"]), [100, 0]);
    let text = "InfiniteSource(LIMIT 100, BURST 32) -> Counter(COUNT_CALL 5 i.active true) -> Discard; \
                i :: InfiniteSource(LIMIT 40, BURST 32, ACTIVE false, STOP true) -> a :: Counter -> Discard;";
    assert_eq!(counts(text, ["a"]), [40]);
}
