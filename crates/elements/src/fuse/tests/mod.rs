//! Chains with and without the optimiser: they may not differ in anything but the time they take.

mod chains;
mod directed;
mod ends;
mod frames;
mod programs;

use super::optimise;
use causeway_engine::spec::Access;
use causeway_engine::{Library, Options, Plan, Router, Spec};
use causeway_lang::NoLibraries;
use chains::Chain;
use ends::{Arrivals, CAPTURE, Desk, INJECT, NO_FLOW};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

fn library() -> Library {
    let own = crate::library();
    Library::new(own.iter().chain([&INJECT, &CAPTURE]))
}

fn plan(text: &str) -> Plan {
    let compiled = causeway_lang::compile("chain", text.as_bytes(), &NoLibraries, &library(), &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{text}\n{:?}", f.diagnostics.messages())))
}

/// All there is to see of a run.
#[derive(PartialEq)]
struct Outcome {
    arrivals: Arrivals,
    /// What became of the handlers written.
    writes: Vec<bool>,
    /// Counters and handlers, by name.
    values: BTreeMap<String, String>,
}

impl Outcome {
    /// What differs from `other`, if anything does.
    fn difference(&self, other: &Outcome) -> Option<String> {
        fn differing<K: Ord + Clone + Debug, V: PartialEq + Debug>(
            a: &BTreeMap<K, V>,
            b: &BTreeMap<K, V>,
        ) -> String {
            let keys: BTreeSet<&K> = a.keys().chain(b.keys()).collect();
            let differ = keys.into_iter().filter(|k| a.get(k) != b.get(k));
            differ.map(|k| format!("{k:?}\n  {:?}\n  {:?}\n", a.get(k), b.get(k))).collect()
        }
        let arrivals = differing(&self.arrivals, &other.arrivals);
        let values = differing(&self.values, &other.values);
        (self != other).then(|| format!("{arrivals}{values}{:?} {:?}", self.writes, other.writes))
    }
}

/// Runs `chain` as `plan`; also says how many packets were taken by fused elements.
fn run(chain: &Chain, plan: Plan) -> (Outcome, u64) {
    let desk = Arc::new(Desk::default());
    *desk.rounds.lock().unwrap() = chain.packets();
    let options = Options {
        simulated_ns: Some(1_000_000_000_000),
        seed: Some(1),
        persistent: ends::values(&desk),
        ..Options::default()
    };
    let router = Router::start(library(), plan, options).unwrap_or_else(|e| panic!("{}\n{e}", chain.text()));
    let mut writes = Vec::new();
    for querier in chain.queriers() {
        for host in (0..64).flat_map(|n| [[10, 0, 0, n], [10, 1, 0, n]]) {
            let [a, b, c, d] = host;
            router.write(&querier, "insert", &format!("{a}.{b}.{c}.{d} 2:0:0:0:{b}:{d}")).unwrap();
        }
    }
    for round in 0..chain.packets().len() {
        router.write("in", "round", &round.to_string()).unwrap();
        for (element, handler, value) in chain.writes(round) {
            writes.push(router.write(&element, handler, value).is_ok());
        }
    }
    let is_fused = |name: &str| name.contains("@fused");
    // What passed edges is asked for as such: the short way passes others.
    let is_edge = |name: &str| name.starts_with("out.") || name.starts_with("in.");
    let lines = router.counters().filter(|(line, _)| !is_fused(&line.element) && !is_edge(&line.name));
    let counters = lines.map(|(line, n)| (format!("{} counts {}", line.element, line.name), n.to_string()));
    let mut values: BTreeMap<_, _> = counters.collect();
    let mut taken = 0;
    for edge in router.edges().unwrap() {
        // In front of the first element of a chain there may be another one.
        if !is_fused(&edge.from.0) && !is_fused(&edge.to.0) && edge.from.0 != "in" {
            values.insert(edge.to_string(), edge.packets.to_string());
        }
    }
    for element in &router.plan().elements {
        let read = |handler: &str| router.read(&element.name, handler, "").unwrap();
        if is_fused(&element.name) {
            taken += read("count").parse::<u64>().unwrap();
            continue;
        }
        let has = |handler: &String| router.access(&element.name, handler).unwrap().is_some();
        for handler in readable(router.library().get(&element.class).unwrap()).into_iter().filter(has) {
            values.insert(format!("{}.{handler}", element.name), read(&handler));
        }
    }
    let mut arrivals = std::mem::take(&mut *desk.arrivals.lock().unwrap());
    for ((_, flow), seen) in &mut arrivals {
        if *flow == NO_FLOW {
            seen.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        }
    }
    (Outcome { arrivals, writes, values }, taken)
}

/// The read handlers of a class and the configuration, but nothing that shows the time, of which the chain asks more often.
fn readable(spec: &Spec) -> Vec<String> {
    if spec.handlers.is_empty() {
        return Vec::new();
    }
    let own = spec.handlers.iter().filter(|h| matches!(h.access, Access::Read | Access::ReadWrite));
    let own = own.flat_map(|h| h.names(1)).filter(|h| !h.contains("rate") && h != "table");
    own.chain(["config".to_owned()]).collect()
}

#[test]
fn fused_chains_are_the_chains_themselves() {
    const CASES: u32 = 200;
    let (all, taken, fused) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let result = runner.run(&chains::chain(), |chain| {
        let plain = plan(&chain.text());
        let (expected, _) = run(&chain, plain.clone());
        let (outcome, short) = run(&chain, optimise(&plain).plan);
        all.set(all.get() + chain.packets().iter().map(Vec::len).sum::<usize>() as u64);
        taken.set(taken.get() + short);
        fused.set(fused.get() + (short > 0) as u32);
        match outcome.difference(&expected) {
            Some(difference) => Err(TestCaseError::fail(difference)),
            None => Ok(()),
        }
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    // Else the test shows nothing.
    assert!(taken.get() > all.get() / 50, "{} of {} packets take the short way", taken.get(), all.get());
    assert!(fused.get() > CASES / 10, "{} of {CASES} chains are fused", fused.get());
}
