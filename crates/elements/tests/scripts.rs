//! Scripts among packets: those that run for each packet, and those that change where packets go.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::harness::{Harness, packet};
use causeway_engine::spec::Access;
use causeway_engine::{Defaults, Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

fn script(config: &str, inputs: usize, outputs: usize) -> Result<Harness, Vec<String>> {
    Harness::new(causeway_elements::library().get("Script").unwrap(), config, inputs, outputs)
}

#[test]
fn packets_leave_as_the_script_says_and_are_counted_otherwise() {
    let mut h = script("return $input", 3, 2).unwrap();
    (0..3).for_each(|port| h.push(port, packet(b"x")));
    assert_eq!((h.take(0).len(), h.take(1).len(), h.drops()), (1, 1, vec![("no-output", 1)]));
    h.assert_balanced();
    for (config, passes) in
        [("end", true), ("exit", false), ("return -1", false), ("return x", false), ("set y 1", true)]
    {
        let mut h = script(config, 1, 1).unwrap();
        h.push(0, packet(b"x"));
        assert_eq!((h.take(0).len(), h.drops().is_empty()), (usize::from(passes), passes), "{config}");
        h.assert_balanced();
    }
}

#[test]
fn a_script_on_the_bench_waits_steps_and_stops() {
    let mut h = script("pause, set x 1, wait 1s, set x 2, pause 2, set x 3, stop", 0, 0).unwrap();
    let x = |h: &mut Harness| h.read_with("get", "x");
    assert_eq!(x(&mut h), Ok(String::new()));
    h.write("step", "").unwrap();
    assert_eq!(x(&mut h), Ok("1".to_owned()));
    h.advance(999_000_000);
    assert_eq!(x(&mut h), Ok("1".to_owned()));
    h.advance(2_000_000);
    assert_eq!(x(&mut h), Ok("2".to_owned()));
    h.write("step", "").unwrap();
    assert_eq!((x(&mut h), h.stopped()), (Ok("2".to_owned()), false));
    h.write("step", "1").unwrap();
    assert_eq!((x(&mut h), h.stopped()), (Ok("3".to_owned()), true));
    assert_eq!(h.write("step", "x"), Err("syntax error".to_owned()));
    assert_eq!(h.write("goto", "nowhere"), Err("jump to nonexistent label".to_owned()));
    assert_eq!(h.read_with("get", "z"), Err("undefined variable 'z'".to_owned()));
    assert!(h.read("nothing").is_err() && h.write("x", "1").is_err());
}

#[test]
fn a_script_that_goes_round_and_round_is_given_up() {
    let mut h = script("set x 0, label a, set x $(add $x 1), goto a", 0, 0).unwrap();
    h.advance(1);
    assert_eq!(h.read_with("get", "x"), Ok("1000".to_owned()));
}

#[test]
fn what_is_no_script_is_refused() {
    for (config, ports, why) in [
        ("TYPE FOO", 0, "bad TYPE"),
        ("TYPE ACTIVE x", 0, "bad TYPE"),
        ("TYPE SIGNAL", 0, "bad signal number"),
        ("TYPE SIGNAL 32", 0, "bad signal number"),
        ("TYPE PACKET", 0, "PACKET script must have inputs"),
        ("TYPE PASSIVE", 1, "ports allowed only on PACKET scripts"),
        ("frob", 0, "syntax error at 'frob'"),
        ("set x", 0, "syntax error at 'set'"),
        ("label a b", 0, "syntax error at 'label'"),
        ("goto a", 0, "no such label 'a'"),
    ] {
        assert_eq!(script(config, ports, ports).err().unwrap(), [why], "{config}");
    }
}

/// The counts of counters when the configuration has stopped, under simulated time.
fn counts<const N: usize>(text: &str, counters: [&str; N]) -> [u64; N] {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let simulated_ns = Some(SIMULATED_START_NS);
    let options = Options { simulated_ns, defaults: Defaults::Click, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    assert_eq!(
        router.wait(Some(Duration::from_secs(60))),
        Some(Event::StopRequested { worker: 0 }),
        "{text}"
    );
    counters.map(|name| router.read(name, "count", "").unwrap().parse().unwrap())
}

#[test]
fn the_next_packet_sees_what_a_script_has_done() {
    for burst in [1, 7, 256] {
        let text = format!(
            "InfiniteSource(LIMIT 100, BURST {burst}, STOP true) -> t :: Tee; \
             t[0] -> p :: Script(goto no $(ne $(c.count) 5), write s.switch 1, label no) -> Discard; \
             t[1] -> c :: Counter -> s :: Switch; s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;"
        );
        assert_eq!(counts(&text, ["a", "b"]), [5, 95], "{burst}");
    }
}

#[test]
fn a_manager_counts_requests_to_stop() {
    let text = "InfiniteSource(LIMIT 5, STOP true) -> a :: Counter -> Discard; \
                b :: RatedSource(RATE 10, LIMIT 20, STOP true) -> c :: Counter -> Discard; DriverManager(pause 2)";
    assert_eq!(counts(text, ["a", "c"]), [5, 20]);
    let text = "InfiniteSource(LIMIT 5, STOP true) -> a :: Counter -> Discard; \
                RatedSource(RATE 10) -> c :: Counter -> Discard; DriverManager(pause, wait 1.05s, stop)";
    assert_eq!(counts(text, ["a", "c"]), [5, 12]);
}

#[test]
fn a_script_steers_elements_of_all_workers() {
    let text = "StaticThreadSched(u 1, s 0);
        InfiniteSource(LIMIT 40) -> Queue -> u :: Unqueue -> c :: Counter -> Discard;
        s :: Script(label again, wait 10ms, goto again $(lt $(c.count) 40), set seen $(c.count), write c.reset, stop);";
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]).unwrap();
    let options = Options { workers: 2, ..Options::default() };
    let router = Router::start(library, Plan::new(&compiled), options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })));
    let read = |element: &str, handler: &str, arg: &str| router.read(element, handler, arg).unwrap();
    assert_eq!(
        (read("u", "home_thread", ""), read("s", "get", "seen"), read("c", "count", "")),
        ("1".into(), "40".into(), "0".into())
    );
}

#[test]
fn what_can_be_done_with_a_handler_is_asked_of_the_element_which_may_have_more_or_fewer_than_its_class() {
    let text = "p :: Script(TYPE PROXY, return 1); a :: CheckIPHeader(DETAILS true); b :: CheckIPHeader;
                Idle -> a -> b -> d :: Discard; Idle -> Queue -> e :: Discard;";
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options =
        Options { simulated_ns: Some(SIMULATED_START_NS), defaults: Defaults::Click, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap();
    for (element, handler, access) in [
        ("p", "any.thing", Some(Access::ReadParamWrite)),
        ("p", "step", Some(Access::Write)),
        ("p", "class", Some(Access::Read)),
        ("a", "drop_details", Some(Access::Read)),
        ("b", "drop_details", None),
        ("b", "any", None),
        ("d", "scheduled", None),
        ("e", "scheduled", Some(Access::Read)),
    ] {
        assert_eq!(router.access(element, handler).unwrap(), access, "{element}.{handler}");
        let readable = access.is_some_and(Access::reads);
        assert_eq!(router.read(element, handler, "").is_ok(), readable, "{element}.{handler}");
    }
    assert!(router.access("nobody", "class").is_err());
}
