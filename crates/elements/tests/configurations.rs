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
    run_compiled(file, &text, params)
}

/// Runs `text` until it stops.
fn run_text(text: &str) -> Router {
    run_compiled("test", text.as_bytes(), &[])
}

fn run_compiled(file: &str, text: &[u8], params: &[(&str, &str)]) -> Router {
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile(file, text, &NoLibraries, &library, &params);
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

/// A capture file of IP packets made of lines of fields, which goes with the test.
struct Trace(std::path::PathBuf);

impl Trace {
    fn new(test: &str, lines: &[&str]) -> Trace {
        let path = std::env::temp_dir().join(format!("causeway-conf-{test}-{}.pcap", std::process::id()));
        let lines: String = lines.iter().map(|l| format!("{l}\\n")).collect();
        let text = format!(
            "FromIPSummaryDump(DATA \"!data timestamp src sport dst dport proto icmp_type icmp_flowid tcp_flags\\n{lines}\", \
             STOP true, CHECKSUM true) -> ToDump({}, ENCAP IP);",
            path.display()
        );
        drop(run_text(&text));
        Trace(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The packets' fields.
    fn fields(&self, fields: &str) -> Vec<String> {
        let out = self.0.with_extension("txt");
        let text = format!(
            "FromDump({}, FORCE_IP true, STOP true) -> CheckIPHeader -> ToIPSummaryDump({}, FIELDS {fields}, HEADER false);",
            self.path(),
            out.display()
        );
        drop(run_text(&text));
        let lines = std::fs::read_to_string(&out).unwrap().lines().map(str::to_owned).collect();
        std::fs::remove_file(out).unwrap();
        lines
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn nat_translates_there_and_back() {
    let inside = Trace::new(
        "inside",
        &[
            "1 10.0.0.2 5000 9.9.9.9 80 T - - S",
            "2 10.0.0.3 5000 9.9.9.9 53 U - - -",
            "3 10.0.0.2 - 9.9.9.9 - I 8 7 -",
        ],
    );
    let outside = Trace::new(
        "outside",
        &[
            "4 9.9.9.9 80 1.0.0.1 5000 T - - SA",
            "5 9.9.9.9 53 1.0.0.1 5000 U - - -",
            "6 9.9.9.9 80 1.0.0.1 5001 T - - S",
        ],
    );
    let (out, back) = (Trace::new("out", &[]), Trace::new("back", &[]));
    let params =
        [("inside", inside.path()), ("outside", outside.path()), ("out", out.path()), ("in", back.path())];
    let router = run("nat.click", &params);
    router.write("answers", "active", "true").unwrap();
    router.resume();
    assert!(router.wait(Some(Duration::from_secs(60))).is_some());
    drop(router);
    assert_eq!(
        out.fields("src sport dst proto"),
        ["1.0.0.1 5000 9.9.9.9 T", "1.0.0.1 5000 9.9.9.9 U", "1.0.0.1 - 9.9.9.9 I"]
    );
    assert_eq!(back.fields("src dst dport proto"), ["9.9.9.9 10.0.0.2 5000 T", "9.9.9.9 10.0.0.3 5000 U"]);
}

#[test]
fn the_balancer_keeps_connections_together() {
    let lines: Vec<String> =
        [1, 2, 3, 4, 1, 2].iter().map(|p| format!("{p} 9.9.9.9 {p} 1.0.0.1 80 T - - S")).collect();
    let lines: Vec<&str> =
        lines.iter().map(String::as_str).chain(["9 10.0.0.3 80 9.9.9.9 2 T - - SA"]).collect();
    let (trace, out) = (Trace::new("balanced", &lines), Trace::new("servers", &[]));
    drop(run("balancer.click", &[("trace", trace.path()), ("out", out.path())]));
    assert_eq!(
        out.fields("sport dst"),
        ["1 10.0.0.2", "2 10.0.0.3", "3 10.0.0.4", "4 10.0.0.2", "1 10.0.0.2", "2 10.0.0.3", "80 9.9.9.9"]
    );
}

#[test]
fn flows_are_exported() {
    let trace = Trace::new(
        "exported",
        &[
            "1 10.0.0.2 7 9.9.9.9 53 U - - -",
            "2 9.9.9.9 53 10.0.0.2 7 U - - -",
            "200 10.0.0.2 7 9.9.9.9 53 U - - -",
        ],
    );
    let out = std::env::temp_dir().join(format!("causeway-conf-flows-{}", std::process::id()));
    drop(run("flows.click", &[("trace", trace.path()), ("out", out.to_str().unwrap())]));
    let text = std::fs::read_to_string(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('!')).collect();
    assert_eq!(
        lines,
        [
            "1 9.9.9.9 53 10.0.0.2 7 U 2 1.000000 2.000000",
            "2 10.0.0.2 7 9.9.9.9 53 U 1 200.000000 200.000000"
        ]
    );
}

#[test]
fn traces_are_analysed() {
    let trace = Trace::new(
        "analysed",
        &[
            "1 10.0.0.2 7 9.9.9.9 53 U - - -",
            "2 9.9.9.9 53 10.0.0.2 7 U - - -",
            "9 10.0.0.2 7 9.9.9.8 53 T - - S",
        ],
    );
    let out = std::env::temp_dir().join(format!("causeway-conf-analysed-{}", std::process::id()));
    let params = [("trace", trace.path()), ("out", out.to_str().unwrap()), ("interval", "5")];
    let router = run("analyse.click", &params);
    assert_eq!((number(&router, "lengths", "nagg"), number(&router, "networks", "nagg")), (1.0, 2.0));
    assert_eq!(router.read("span", "range", "").unwrap(), "1.000000 2.000000");
    drop(router);
    let text = std::fs::read_to_string(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    assert_eq!(text.lines().filter(|l| !l.starts_with('!')).count(), 2);
    assert!(!text.contains("10.0.0.2"), "addresses are others: {text}");
}

#[test]
fn fragments_in_a_trace_are_put_together() {
    let fragments = std::env::temp_dir().join(format!("causeway-conf-fragments-{}.pcap", std::process::id()));
    let text = format!(
        "InfiniteSource(LENGTH 1000, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 5, 10.0.0.2, 7) -> IPFragmenter(300)
         -> ToDump({}, ENCAP IP);",
        fragments.display()
    );
    drop(run_text(&text));
    let (out, rest) = (Trace::new("whole", &[]), Trace::new("rest", &[]));
    let params = [("trace", fragments.to_str().unwrap()), ("out", out.path()), ("rest", rest.path())];
    let router = run("defragment.click", &params);
    assert!(router.read("join", "dump", "").unwrap().contains("good reassemblies:   3\n"));
    drop(router);
    std::fs::remove_file(fragments).unwrap();
    assert_eq!(out.fields("src sport dst dport ip_len"), ["10.0.0.1 5 10.0.0.2 7 1028"; 3]);
    assert_eq!(rest.fields("src"), [""; 0]);
}
