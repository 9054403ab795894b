//! Files that elements write: a graph that fails does not touch them, and a hot swap goes on in them.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Elements with a file that they write, `@`.
const WRITERS: &[(&str, &str)] = &[
    ("ARPPrint", "ARPPrint(OUTFILE @)"),
    ("IPPrint", "IPPrint(OUTFILE @)"),
    ("ToDump", "ToDump(@)"),
    ("ToIPSummaryDump", "ToIPSummaryDump(@, FIELDS ip_src sport, HEADER false)"),
];
/// Classes with a file that they read.
const READERS: &[&str] = &["FromDump", "FromIPSummaryDump"];
/// Classes that write a file when something has ended; the tests of these are elsewhere.
const REPORTERS: &[&str] = &["AggregateIPFlows", "ToIPFlowDumps"];
/// An element that cannot be initialised, after all others.
const FAILS: &str = "Idle -> ToDump(/no/such/folder/x);";

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

fn start(text: &str) -> Result<Router, String> {
    let router = Router::start(causeway_elements::library(), plan(text), Options::default());
    let router = router.map_err(|e| e.to_string())?;
    router.resume();
    Ok(router)
}

/// A path of a file, which goes with the test.
struct Target(PathBuf);

impl Target {
    fn new(test: &str) -> Target {
        Target(std::env::temp_dir().join(format!("causeway-files-{test}-{}", std::process::id())))
    }

    /// A graph with `element` behind a source of one packet of IPv4 or, for who prints that, of ARP.
    fn graph(&self, element: &str) -> String {
        let element = element.replace('@', &self.0.display().to_string());
        let packet = match element.starts_with("ARP") {
            true => r"\<00010800 06040001 02000000 00010a00 00010000 00000000 0a000002>",
            false => r"\<4500001c 00000000 40117cce 7f000001 7f000001 00070009 00080000>",
        };
        format!("s :: InfiniteSource({packet}, LIMIT 1) -> MarkIPHeader -> e :: {element} -> Discard;")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

#[test]
fn every_class_with_a_file_is_known_here() {
    for spec in causeway_elements::library().iter() {
        if spec.args.iter().any(|a| a.kind == "file name") {
            let writes = WRITERS.iter().any(|(class, _)| *class == spec.name);
            let known = READERS.contains(&spec.name) || REPORTERS.contains(&spec.name);
            assert!(writes || known, "{}: does it write its file?", spec.name);
        }
    }
}

#[test]
fn a_graph_that_fails_does_not_touch_its_files() {
    for (class, element) in WRITERS {
        let target = Target::new(&format!("fails-{class}"));
        let bad = format!("{} {FAILS}", target.graph(element));
        let mut other = start("Idle -> Discard;").unwrap();
        for _ in 0..2 {
            let error = start(&bad).err().expect("a graph that fails");
            assert!(error.contains("/no/such/folder/x"), "{class}: {error}");
            assert!(!target.0.exists(), "{class}: a file was made");
            assert!(other.swap(plan(&bad)).is_err());
            assert!(!target.0.exists(), "{class}: a file was made");
        }
        std::fs::write(&target.0, "what was there").unwrap();
        assert!(start(&bad).is_err() && other.swap(plan(&bad)).is_err());
        assert_eq!(std::fs::read(&target.0).unwrap(), b"what was there", "{class}");
        other.swap(plan(&target.graph(element))).unwrap();
        assert_ne!(std::fs::read(&target.0).unwrap(), b"what was there", "{class}: a good graph writes anew");
    }
}

#[test]
fn a_hot_swap_goes_on_in_the_same_file() {
    for (class, element) in WRITERS {
        let target = Target::new(&format!("swap-{class}"));
        let graph = target.graph(element);
        let mut router = start(&graph).unwrap();
        let made = |router: &Router, n: u32| {
            until("packets", || router.read("s", "count", "").unwrap() == n.to_string());
        };
        made(&router, 1);
        // The source begins again.
        router.swap(plan(&graph.replace("LIMIT 1", "LIMIT 2"))).unwrap();
        made(&router, 2);
        assert!(router.swap(plan(&format!("{graph} {FAILS}"))).is_err());
        router.write("s", "limit", "3").unwrap();
        made(&router, 3);
        router.close().expect("the worker has ended, and written its file");
        let all = len(&target.0);
        let router = start(&graph).unwrap();
        made(&router, 1);
        router.close().expect("as above");
        let one = len(&target.0);
        let head = if *class == "ToDump" { 24 } else { 0 };
        assert!(one > head);
        assert_eq!(all - head, 4 * (one - head), "{class}: one of the first graph, three of the second");
    }
}

#[test]
fn a_dump_begins_as_its_sources_say() {
    let (one, two, out) = (Target::new("encap-one"), Target::new("encap-two"), Target::new("encap-out"));
    let written = |target: &Target, encap: &str| {
        let [file, linktype] = [target.0.display().to_string(), encap.to_owned()];
        drop(start(&format!("Idle -> ToDump({file}, ENCAP {linktype});")).unwrap());
    };
    let graph = |more: &str| {
        let [one, two, out] = [&one, &two, &out].map(|target| target.0.display());
        format!(
            "a :: FromDump({one}) -> d :: ToDump({out}, USE_ENCAP_FROM a{more}); b :: FromDump({two}) -> d; n :: Null; Idle -> n -> Discard;"
        )
    };
    written(&one, "IP");
    written(&two, "IP");
    drop(start(&graph(" b")).unwrap());
    assert_eq!(std::fs::read(&out.0).unwrap()[20..24], 101u32.to_ne_bytes());
    written(&two, "PPP");
    let error = |more: &str| start(&graph(more)).err().unwrap();
    let disagree = error(" b");
    assert!(disagree.contains("source encapsulation types disagree:"), "{disagree}");
    assert!(
        disagree.contains("a :: FromDump has IP") && disagree.contains("b :: FromDump has PPP"),
        "{disagree}"
    );
    assert!(error(" n").contains("'n :: Null' has no 'encap' read handler"));
    assert!(error(" nobody").contains("no element named 'nobody'"));
}
