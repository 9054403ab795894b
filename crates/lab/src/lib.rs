//! The laboratory: what the router reaches on this machine, always beside a baseline of the same run.
//!
//! # What this crate is for
//!
//! It measures; nothing of it is needed to route. It has benches, of which `causeway bench` is the command line, and a
//! router tester, `causeway lab`. The bench of the lookup tables against structures and libraries of others is a program of its own
//! (`causeway-fib-bench`), so that none of those is in the router's binary.
//!
//! # The parts, in the order to read them
//!
//! The tester's core is given times and counts and says what to do next; it sends nothing and reads no clock:
//!
//! * `causeway_results::traffic` defines what is offered, which models share; [`traffic`] reads it from a file, and a
//!   [`timetable`] has the departures of one port in a trial;
//! * [`frame`] writes test frames and tells them from others; the [`analyser`] counts what came, in which order and how late;
//! * [`search`] says which trial answers a question: MLRsearch, and the tests of RFC 2544;
//! * [`simulated`] is a device of which every loss is known, to hold the others to.
//!
//! Around it:
//!
//! * [`tester`] makes trials over ports, and tests itself; a [`bed`] has namespaces, cables and a device;
//! * [`inside`] looks into the machine while a trial runs: runs of network code, where processor time goes;
//! * [`run`] compares devices and writes the document; [`regression`] compares two documents; [`papers`] has the papers'
//!   experiments;
//! * a [`cluster`] is several routers behind one that spreads packets over them, and what happens when one of them goes.
//!
//! The benches:
//!
//! * [`Settings`] is what is asked for, and [`bench`](bench()) does it: one part after another, each measured in rounds.
//! * `report` has the lines for people and the document of `causeway-results`.
//! * `graph` and `elements` are the standard router in memory: a source that plays a trace as fast as the graph takes it, and
//!   a sink. `memory` is the part that measures it.
//! * `passage` is any other graph in memory, and the same text in Click with packets from a file. `nat` is translation of
//!   addresses with few and many flows; `middleboxes` are a firewall, queues of several classes, and flows that are counted.
//! * `veth` measures between network namespaces: `testbed` makes and removes them, `traffic` loads them with `packets` of IPv4
//!   and IPv6, and what forwards takes turns (`way`): the kernel, the router's workers, the router in the driver (its graph
//!   compiled to BPF, `up --driver`), a program around `bpf_fib_lookup`, and a bare redirect. `routes` is the same with one
//!   route and with a million, `latency` is of packets at half of that load, and `tcp` of streams with a veth's default
//!   offloads, by the kernel and by the router in the driver, at tcx and at XDP.
//! * `lut` is the lookup paper's experiments, on the structures alone and inside the router.
//!
//! # Invariants
//!
//! * What is compared is measured in the same run, in interleaved rounds, on the same processor.
//! * A test bed is removed when its value is dropped, also after an error and when a signal ends the run.
//! * Traffic stays in namespaces that the run made.
//! * A figure that the tester may have limited says so, and so does a trial that is shorter than a standard has it.
//! * Nothing prints: lines go to whom the caller names.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

pub mod analyser;
pub mod bed;
pub mod cluster;
mod elements;
pub mod frame;
mod graph;
pub mod inside;
mod lut;
mod memory;
mod middleboxes;
pub mod namespace;
mod nat;
pub mod network;
pub mod papers;
mod passage;
mod primitives;
mod process;
pub mod regression;
mod report;
pub mod run;
pub mod search;
pub mod simulated;
pub mod tester;
pub mod timetable;
pub mod traffic;
mod veth;
mod yardstick;

pub use primitives::primitives;

use anyhow::{Result, bail};
use report::Report;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names of benchmarks: memory, nat, middleboxes, veth, routes, tcp, latency, lut. All but lut without any.
    pub parts: Vec<String>,
    /// Length of a round.
    pub round: Duration,
    /// Rounds of each measurement; the median counts.
    pub rounds: usize,
    /// Processor to pin the measured worker to.
    pub processor: usize,
    /// Click's program, to measure the same graphs in; only those of nat and middleboxes are.
    pub click: Option<PathBuf>,
    /// Where the document goes; a table and charts go beside it.
    pub output: PathBuf,
}

/// One benchmark: measures and reports.
type Part = fn(&Settings, &mut Report) -> Result<()>;

/// The benchmarks, by name, and whether they run unasked.
const PARTS: &[(&str, Part, bool)] = &[
    ("memory", memory::run, true),
    ("nat", nat::run, true),
    ("middleboxes", middleboxes::run, true),
    ("veth", veth::rates, true),
    ("routes", veth::routes, true),
    ("tcp", veth::tcp, true),
    ("latency", veth::latency, true),
    ("lut", lut::run, false),
];

/// Runs the benchmarks that were asked for, and says each result as it comes: a line without its end.
///
/// # Errors
/// A benchmark that is not known, one that this machine cannot do, or a file that cannot be written.
pub fn bench(settings: &Settings, say: impl Fn(&str) + 'static) -> Result<()> {
    if let Some(unknown) = settings.parts.iter().find(|p| PARTS.iter().all(|(name, ..)| name != p)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
        bail!("there is no benchmark '{unknown}'; they are {}", names.join(", "));
    }
    let mut report = Report::new(settings, Box::new(say));
    for (name, part, unasked) in PARTS {
        if (settings.parts.is_empty() && *unasked) || settings.parts.iter().any(|p| p == name) {
            part(settings, &mut report)?;
        }
    }
    report.write(&settings.output)?;
    report.heading(&format!("results in {}", settings.output.display()));
    Ok(())
}
