//! Rewriters whose handlers are written, whose graph is replaced, and that share a table.

use super::rewriters::NAT;
use super::*;

#[test]
fn rewriters_share_a_capacity() {
    let router = run(&format!(
        "a :: UDPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0, MAPPING_CAPACITY 3, GUARANTEE 0); \
         b :: UDPRewriter(pattern 1.0.0.2 1024-65535# - - 0 0, MAPPING_CAPACITY a, GUARANTEE 0); \
         {} -> c :: IPClassifier(src port < 3, -); c[0] -> a -> Discard; c[1] -> b -> Discard;",
        source(
            "src sport dst dport proto",
            &[
                "1.1.1.1 1 2.2.2.2 5 U",
                "1.1.1.1 2 2.2.2.2 5 U",
                "1.1.1.1 3 2.2.2.2 5 U",
                "1.1.1.1 4 2.2.2.2 5 U"
            ]
        ),
    ));
    let all = |handler| ["a", "b"].map(|e| read(&router, e, handler));
    assert_eq!(
        (all("size"), all("table_size"), all("capacity")),
        (["3"; 2].map(str::to_owned), ["1", "2"].map(str::to_owned), ["3"; 2].map(str::to_owned))
    );
    router.write("b", "capacity", "1").unwrap();
    assert_eq!((all("size"), all("capacity")), (["1"; 2].map(str::to_owned), ["1"; 2].map(str::to_owned)));
}

#[test]
fn patterns_are_written_and_the_inputs_flows_go() {
    let router = run(&format!(
        "{NAT} {} -> rw; rw[0] -> Discard; rw[1] -> Discard;",
        source("src sport dst dport proto", &["1.1.1.1 1 2.2.2.2 5 U"])
    ));
    assert_eq!(read(&router, "rw", "size"), "1");
    router.write("rw", "pattern0", "pattern 2.0.0.2 - - - 0 1").unwrap();
    assert_eq!(
        (read(&router, "rw", "size"), read(&router, "rw", "pattern0")),
        ("0".into(), "2.0.0.2 - - -\n".into())
    );
    let error = router.write("rw", "pattern1", "keep 0 7").unwrap_err().to_string();
    assert_eq!(error, "input spec 1: output port out of range");
}

#[test]
fn a_hot_swap_keeps_the_flows_whose_inputs_stay() {
    let graph = |more: &str| {
        let lines = ["1.1.1.1 1 2.2.2.2 5 U", "1.1.1.1 2 2.2.2.2 5 U"];
        format!(
            "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop{more}); Idle -> [1] rw; {} -> rw; rw[0] -> Discard; rw[1] -> Discard;",
            source("src sport dst dport proto", &lines)
        )
    };
    let mut router = run(&graph(""));
    assert_eq!(read(&router, "rw", "size"), "2");
    router.swap(plan(&graph("").replace("STOP true", "ACTIVE false"))).unwrap();
    assert_eq!(read(&router, "rw", "size"), "2");
    router.swap(plan(&graph(", MAPPING_CAPACITY 1").replace("STOP true", "ACTIVE false"))).unwrap();
    assert_eq!([read(&router, "rw", "size"), read(&router, "rw", "capacity")], ["1", "1"]);
    router.swap(plan(&graph("").replace("1.0.0.1", "1.0.0.2").replace("STOP true", "ACTIVE false"))).unwrap();
    assert_eq!(read(&router, "rw", "size"), "0");
}

#[test]
fn a_hot_swap_ends_the_flows_of_one_that_shares_a_table_if_its_input_changes() {
    let graph = |pattern: &str| {
        let lines = ["1.1.1.1 1 2.2.2.2 5 U", "1.1.1.1 2 2.2.2.2 5 U", "1.1.1.1 3 2.2.2.2 5 U"];
        format!(
            "a :: UDPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0); b :: UDPRewriter({pattern}, MAPPING_CAPACITY a); \
             {} -> c :: IPClassifier(src port < 3, -); c[0] -> a -> Discard; c[1] -> b -> Discard;",
            source("src sport dst dport proto", &lines)
        )
    };
    let [first, second] = ["1.0.0.2", "1.0.0.3"].map(|to| format!("pattern {to} 1024-65535# - - 0 0"));
    let mut router = run(&graph(&first));
    let sizes = |router: &Router| ["a", "b"].map(|e| read(router, e, "table_size"));
    let swapped = |router: &mut Router, pattern: &str| {
        router.swap(plan(&graph(pattern).replace("STOP true", "ACTIVE false"))).unwrap();
        sizes(router)
    };
    assert_eq!(swapped(&mut router, &first), ["2", "1"]);
    assert_eq!(swapped(&mut router, &second), ["2", "0"]);
    // What a handler has written is what the next graph goes on from.
    let mut router = start(&graph(&first)).unwrap();
    router.write("b", "pattern0", &second).unwrap();
    wait(&router);
    assert_eq!(swapped(&mut router, &second), ["2", "1"]);
    assert_eq!(swapped(&mut router, &first), ["2", "0"]);
}

#[test]
fn on_several_workers_a_table_lives_on_one() {
    for replicate in [false, true] {
        let text = "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop); e :: ICMPRewriter(rw); StaticThreadSched(rw 1); \
             Idle -> rw; Idle -> [1] rw; Idle -> e -> Discard; rw[0] -> Discard; rw[1] -> Discard;";
        let options = Options { workers: 2, replicate, ..Options::default() };
        let router = Router::start(causeway_elements::library(), plan(text), options)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read(&router, "rw", "size"), "0");
    }
    let apart = "rw :: IPRewriter(drop); e :: ICMPRewriter(rw); StaticThreadSched(rw 1, e 0); Idle -> rw -> Discard; Idle -> e -> Discard;";
    let options = Options { workers: 2, ..Options::default() };
    let error = Router::start(causeway_elements::library(), plan(apart), options)
        .err()
        .expect("an error")
        .to_string();
    assert!(error.contains("no element 'rw' on worker 0"), "{error}");
}

/// What is left of the lines of `patterns` without the numbers of flows.
fn patterns(router: &Router, name: &str) -> Vec<String> {
    let lines = read(router, name, "patterns");
    lines.lines().map(|line| line.split(" [").next().unwrap().to_owned()).collect()
}

#[test]
fn the_configuration_is_that_of_the_rewriter_as_it_is_and_a_swap_to_it_keeps_its_flows() {
    let graph = |rw: &str, other: &str, udp: &str| {
        format!(
            "{} -> rw :: IPRewriter({rw}); Idle -> [1] rw; rw[0] -> Discard; rw[1] -> Discard; \
             Idle -> other :: TCPRewriter({other}) -> Discard; Idle -> udp :: UDPRewriter({udp}) -> Discard; M :: \
             RoundRobinIPMapper(- - 5.0.0.1 - 0 0, - - 5.0.0.2 - 0 0);",
            source("src sport dst dport proto", &["10.0.0.2 7 2.0.0.2 21 T", "10.0.0.2 7 2.0.0.2 21 U"])
        )
    };
    let first = "CAPACITY 9, UDP_TIMEOUT 60, pattern 1.0.0.1 1024-65535# - - 0 1, drop";
    let mut router = run(&graph(first, "MAPPING_CAPACITY rw, drop", "M"));
    for (name, handler, value) in [
        ("rw", "pattern1", " pass 1 "),
        ("other", "capacity", "7"),
        ("other", "pattern0", "M"),
        ("udp", "pattern0", "keep 0 0"),
        ("udp", "capacity", "3"),
    ] {
        router.write(name, handler, value).unwrap_or_else(|e| panic!("{name}.{handler}: {e}"));
    }
    let configs = ["rw", "other", "udp"].map(|name| read(&router, name, "config"));
    assert_eq!(
        configs,
        [
            "UDP_TIMEOUT 60, pattern 1.0.0.1 1024-65535# - - 0 1, pass 1, MAPPING_CAPACITY 7",
            "MAPPING_CAPACITY rw, M",
            "keep 0 0, MAPPING_CAPACITY 3"
        ]
    );
    // What is refused changes nothing.
    assert!(
        router.write("rw", "pattern0", "keep 0 9").is_err() && router.write("rw", "capacity", "x").is_err()
    );
    assert_eq!(read(&router, "rw", "config"), configs[0]);
    let state = |router: &Router| {
        let of = |name| (read(router, name, "capacity"), read(router, name, "size"), patterns(router, name));
        ["rw", "other", "udp"].map(of)
    };
    let before = state(&router);
    assert_eq!((&before[0].0[..], &before[0].1[..], &before[2].0[..]), ("7", "2", "3"));
    router.swap(plan(&graph(&configs[0], &configs[1], &configs[2]))).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(state(&router), before);
    assert_eq!(["rw", "other", "udp"].map(|name| read(&router, name, "config")), configs);
}

#[test]
fn under_clicks_defaults_the_configuration_stays_as_it_was_written() {
    let options = Options { defaults: Defaults::Click, ..Options::default() };
    let text = "Idle -> rw :: UDPRewriter(drop, CAPACITY 9) -> Discard;";
    let router = Router::start(causeway_elements::library(), plan(text), options).unwrap();
    router.write("rw", "capacity", "3").unwrap();
    router.write("rw", "pattern0", "pass").unwrap();
    assert_eq!(read(&router, "rw", "config"), "drop, CAPACITY 9");
}
