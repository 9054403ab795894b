//! Growth and failures, for people and in the common format. Everything says that it is modelled.

use super::failure::{Failure, Offered, Report};
use super::hashing::Hashing;
use super::network::{Layout, Outcome, Rates, run};
use super::timers::Notice;
use crate::figures::write;
use crate::series::modelled;
use anyhow::Result;
use causeway_results::stats::median;
use causeway_results::{Document, Run};
use std::path::{Path, PathBuf};

/// Nodes that are looked at.
const NODES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// What varies along a curve.
const NODES_AXIS: [&str; 2] = ["nodes", "nodes"];
/// Nodes of the failures, as `make cluster` has them.
const FAILING: usize = 3;
/// Times that each failure is tried.
const TRIALS: usize = 200;
/// Parts of what a layout carries at best: where delays are looked at, and a flood.
const LOADS: [f64; 2] = [0.7, 1.5];

/// A layout at both loads.
pub struct Growth {
    /// For people.
    pub name: &'static str,
    /// Nodes, or routers behind.
    pub nodes: usize,
    /// Machines in all.
    pub machines: usize,
    /// At both loads.
    pub outcomes: [Outcome; 2],
}

/// What was found.
pub struct Found {
    /// What machines can.
    pub rates: Rates,
    /// What was offered where a node fails.
    pub offered: Offered,
    /// Layouts by number of nodes.
    pub growth: Vec<Growth>,
    /// Failures.
    pub failures: Vec<(Failure, Report)>,
    /// What part of all flows moves that need not when one of so many nodes goes: by way of choosing.
    pub moved: Vec<(usize, [f64; 3])>,
}

fn layouts(nodes: usize, rates: &Rates) -> [(&'static str, Layout); 4] {
    // As many front ends as carry what the routers behind can.
    let fronts = (2.0 * nodes as f64 * rates.node_fps / rates.front_fps).ceil().max(1.0) as usize;
    let stages = |by_frame| Layout::Stages { fronts, backs: nodes, by_frame };
    [
        ("behind one front", Layout::Behind { nodes, hashing: Hashing::Threshold }),
        ("stages, by flow", stages(false)),
        ("stages, by frame", stages(true)),
        ("mesh", Layout::Mesh { nodes }),
    ]
}

/// Looks at everything. Same seed, same numbers.
pub fn find(rates: &Rates, offered: Offered, frames: u64, seed: u64) -> Found {
    let mut growth = Vec::new();
    for nodes in NODES {
        for (name, layout) in layouts(nodes, rates) {
            let at =
                |part: f64| run(layout, rates, offered.flows, part * layout.ideal_fps(rates), frames, seed);
            growth.push(Growth { name, nodes, machines: layout.machines(), outcomes: LOADS.map(at) });
        }
    }
    let notices =
        [Notice::STATED, Notice::BIRD, Notice::HOLD[0], Notice::HOLD[1], Notice::Carrier, Notice::Drained];
    let mut failures = Vec::new();
    for hashing in Hashing::ALL {
        for notice in notices {
            let failure = Failure { nodes: FAILING, node: 0, hashing, notice };
            failures.push((failure, failure.run(offered, TRIALS, seed)));
        }
    }
    let moved = NODES.into_iter().skip(1).map(|nodes| {
        let part = |hashing| {
            // Each node in turn: which one it is matters.
            let of = |node| {
                Failure { nodes, node, hashing, notice: Notice::Drained }.run(offered, 1, seed).moved[1]
            };
            (0..nodes).map(of).sum::<usize>() as f64 / nodes as f64 / f64::from(offered.flows)
        };
        (nodes, Hashing::ALL.map(part))
    });
    Found { rates: *rates, offered, growth, failures, moved: moved.collect() }
}

/// For people.
pub fn lines(found: &Found) -> Vec<String> {
    let Rates { front_fps, node_fps, room } = found.rates;
    let mut lines = vec![
        format!(
            "many machines, modelled: a front or front end of {:.1} Mpps, nodes of {:.1} Mpps, room for {room} frames each, {} flows",
            front_fps / 1e6,
            node_fps / 1e6,
            found.offered.flows
        ),
        format!(
            "  {:<18} {:>5} {:>8} | at 70 %: {:>9} {:>9} {:>10} {:>8} | flooded: {:>9} {:>15}",
            "", "nodes", "machines", "Mpps", "median us", "99 % us", "overtaken", "Mpps", "lost most"
        ),
    ];
    for one in &found.growth {
        let [calm, flooded] = &one.outcomes;
        let places = ["in front", "behind", "on the way out"];
        let most = (0..3).max_by(|&a, &b| flooded.lost[a].total_cmp(&flooded.lost[b])).unwrap_or_default();
        lines.push(format!(
            "  {:<18} {:>5} {:>8} | {:>18.2} {:>9.2} {:>10.2} {:>7.3} % | {:>18.2} {:>15}",
            one.name,
            one.nodes,
            one.machines,
            calm.left_fps / 1e6,
            calm.delay_us[0],
            calm.delay_us[1],
            calm.reordered * 100.0,
            flooded.left_fps / 1e6,
            places[most]
        ));
    }
    lines.push(format!(
        "  the first of {FAILING} nodes fails under {:.0} frames/s of {} flows (medians of {TRIALS} trials)",
        found.offered.rate_fps, found.offered.flows
    ));
    for (failure, report) in &found.failures {
        lines.push(format!(
            "  {:<16} {:<28} lost {:>9.0} | moved: its {:>4}, of others {:>4}; back {:>4} | in front {:>7.0} ms",
            failure.hashing.name(),
            failure.notice.name(),
            median(&report.lost).unwrap_or_default(),
            report.moved[0],
            report.moved[1],
            report.moved_back.iter().sum::<usize>(),
            median(&report.known_ms).unwrap_or_default(),
        ));
    }
    lines.push("  flows of others that move when one node goes, part of all".to_owned());
    for (nodes, parts) in &found.moved {
        let each = Hashing::ALL.iter().zip(parts);
        let each: Vec<String> =
            each.map(|(hashing, part)| format!("{} {:.1} %", hashing.name(), part * 100.0)).collect();
        lines.push(format!("  {nodes:>5} nodes: {}", each.join(", ")));
    }
    lines
}

/// Writes the document into a folder, with a table and a page beside it; says which file it is.
///
/// # Errors
///
/// If it cannot be written.
pub fn keep(folder: &Path, found: &Found, seed: u64) -> Result<PathBuf> {
    write(folder, "scale-out", &document(found, seed))
}

/// What is told of each layout: its name, quantity and unit, and how it is had.
type Quantity = (&'static str, [&'static str; 2], fn(&Growth) -> f64);

/// What was found, in the common format.
pub fn document(found: &Found, seed: u64) -> Document {
    let command = ["causeway", "model", "scale-out", "--seed", &seed.to_string()].map(str::to_owned);
    let mut document = Document::new(Run { command: command.into(), ..Run::default() });
    let quantities: [Quantity; 4] = [
        ("forwarding rate, flooded", ["forwarding rate", "frames/s"], |one| one.outcomes[1].left_fps),
        ("median time inside at 70 %", ["latency", "us"], |one| one.outcomes[0].delay_us[0]),
        ("99 of 100 inside at 70 %", ["latency", "us"], |one| one.outcomes[0].delay_us[1]),
        ("overtaken at 70 %", ["part", "%"], |one| one.outcomes[0].reordered * 100.0),
    ];
    for (what, unit, value) in quantities {
        for (name, _) in layouts(1, &found.rates) {
            let of_layout = found.growth.iter().filter(|one| one.name == name);
            let values = of_layout.map(|one| (Some(one.nodes as f64), vec![value(one)])).collect();
            document.series.push(modelled(format!("{name}/{what}"), unit, NODES_AXIS, values));
        }
    }
    for (failure, report) in &found.failures {
        let group = format!("{}, {}", failure.hashing.name(), failure.notice.name());
        let moved = report.moved.map(|flows| flows as f64);
        for (what, unit, values) in [
            ("frames lost of the node's flows", "frames", report.lost.clone()),
            ("time until the front knows", "ms", report.known_ms.clone()),
            ("flows moved that were the node's", "flows", vec![moved[0]]),
            ("flows moved of other nodes", "flows", vec![moved[1]]),
        ] {
            let series = modelled(format!("{group}: {what}"), [what, unit], NODES_AXIS, vec![(None, values)]);
            document.series.push(series);
        }
    }
    document
}
