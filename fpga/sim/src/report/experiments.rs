//! The experiments: the paper's, and what it could not run.

pub use causeway_model::enhanced::mesh;
use causeway_results::Axis;

use super::document::Curve;
use crate::scenario::{Outcome, ResponsePolicy, Scenario, source};
use crate::testbed::PCI_133_PS;
use crate::traffic::{Source, Spacing};

/// One run of an experiment, and its place on the plot's x axis.
pub struct Run {
    /// What is simulated.
    pub scenario: Scenario,
    /// The series it belongs to, if the experiment has an x.
    pub series: String,
    /// The x value; runs of the same series and x differ by their seeds alone.
    pub x: f64,
}

/// Runs that belong together.
pub struct Experiment {
    /// Short name, of the result file's section and the plot.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What varies along a series, and its unit; nothing if every run stands alone.
    pub x: Option<(&'static str, &'static str)>,
    /// The quantities that its chart shows.
    pub plotted: &'static [&'static str],
    /// The series that the others are compared with, seed by seed.
    pub baseline: Option<&'static str>,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Experiment {
    /// What varies along a series.
    pub fn axis(&self) -> Option<Axis> {
        self.x.map(|(quantity, unit)| Axis { quantity: quantity.into(), unit: unit.into() })
    }

    /// The names of the series, in order.
    pub fn series_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !names.contains(&run.series.as_str()) {
                names.push(&run.series);
            }
        }
        names
    }

    /// The outcomes of the runs, which are in the same order, by series and x.
    pub fn curves<'a>(&self, outcomes: &'a [Outcome]) -> Vec<Curve<'a>> {
        let runs: Vec<(&Run, &Outcome)> = self.runs.iter().zip(outcomes).collect();
        let curve = |name: &str, runs: Vec<(&Run, &'a Outcome)>| {
            let same = runs.chunk_by(|a, b| a.0.x == b.0.x);
            let points = same.map(|group| (group[0].0.x, group.iter().map(|run| run.1).collect())).collect();
            let baseline = self.baseline.filter(|baseline| *baseline != name);
            Curve {
                name: format!("{}/{name}", self.name),
                x: self.axis(),
                points,
                baseline: baseline.map(|name| format!("{}/{name}", self.name)),
            }
        };
        if self.x.is_none() {
            return runs.iter().map(|run| curve(&run.0.scenario.name, vec![*run])).collect();
        }
        let of_series = |name: &str| runs.iter().filter(|run| run.0.series == name).copied().collect();
        self.series_names().into_iter().map(|name| curve(name, of_series(name))).collect()
    }
}

fn run(scenario: Scenario, series: impl Into<String>, x: f64) -> Run {
    Run { scenario, series: series.into(), x }
}

/// The scenarios A to F of the paper's figure 3.
pub fn routing() -> Vec<Scenario> {
    let slow = |mut scenario: Scenario| {
        scenario.fast_path = false;
        scenario
    };
    vec![
        slow(Scenario::new("A", 2, vec![source(0, &[1])])),
        Scenario::new("B", 2, vec![source(0, &[1])]),
        Scenario::new("C", 2, vec![source(0, &[1]), source(1, &[0])]),
        Scenario::new("D", 3, vec![source(0, &[2]), source(1, &[2])]),
        Scenario::new("E", 3, vec![source(0, &[1, 2])]),
        Scenario::new("F", 3, mesh(3, 64)),
    ]
}

/// Scenario D with a load, a frame size and a share of the high class.
pub fn two_to_one(name: &str, load: f64, frame_bytes: u16, high_share: f64) -> Scenario {
    let sources = [0, 1].map(|n| Source { load, frame_bytes, high_share, ..source(n, &[2]) });
    let mut scenario = Scenario::new(name, 3, sources.to_vec());
    scenario.classify = high_share > 0.0;
    scenario
}

/// Scenario A with a load and a share of the high class.
pub fn slow_mix(name: &str, load: f64, high_share: f64, classify: bool) -> Scenario {
    let mut scenario = Scenario::new(name, 2, vec![Source { load, high_share, ..source(0, &[1]) }]);
    scenario.fast_path = false;
    scenario.classify = classify;
    scenario
}

/// One input all high class at 0.8 Gbit/s, the other all low class at line rate, to one output.
pub fn unequal(name: &str, policy: ResponsePolicy) -> Scenario {
    let high = Source { load: 0.8, high_share: 1.0, ..source(0, &[2]) };
    let mut scenario = Scenario::new(name, 3, vec![high, source(1, &[2])]);
    scenario.classify = true;
    scenario.policy = policy;
    scenario
}

const LOADS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const FRAME_SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// All experiments.
pub fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            name: "routing",
            title: "Routing, scenarios A to F (paper section IV-B), 64-byte frames at line rate",
            x: None,
            plotted: &[],
            baseline: None,
            runs: routing().into_iter().map(|s| run(s, "", 0.0)).collect(),
        },
        Experiment {
            name: "sources",
            title: "C and E with phases and random spacing: no lock-in behind the zero loss",
            x: None,
            plotted: &[],
            baseline: None,
            runs: other_sources(),
        },
        Experiment {
            name: "frame-size",
            title: "Slow path against frame size (paper figure 4): one flow, and three bidirectional ports",
            x: Some(("frame size", "bytes")),
            plotted: &["delivered"],
            baseline: None,
            runs: frame_sizes(),
        },
        Experiment {
            name: "qos-slow",
            title: "Two classes on the slow path (paper figure 5), half of the packets high, classification off and on",
            x: Some(("offered load", "Gbit/s")),
            plotted: &["delivered high", "delivered low"],
            baseline: None,
            runs: qos_slow(),
        },
        Experiment {
            name: "qos-fast",
            title: "Two classes on the fast path, scenario D (paper figure 6), shares of the high class",
            x: Some(("load of each input", "Gbit/s")),
            plotted: &["delivered high", "delivered low"],
            baseline: None,
            runs: qos_fast(),
        },
        Experiment {
            name: "saturation",
            title: "Beyond the paper: scenario D at line rate, the high class near what one output takes, by rule of the \
                    response scheduler",
            x: Some(("share of the high class", "")),
            plotted: &["lost high"],
            baseline: Some("round-robin"),
            runs: saturation(),
        },
        Experiment {
            name: "uneven",
            title: "Beyond the paper: the same with 0.96 of the line high class in all, one input more of it than the other",
            x: Some(("share above and below 0.48", "")),
            plotted: &["lost high"],
            baseline: Some("round-robin"),
            runs: uneven(),
        },
        Experiment {
            name: "cards",
            title: "Beyond the paper: 2 to 8 ports at line rate, all to all, up to the bus limit",
            x: Some(("ports", "")),
            plotted: &["delivered"],
            baseline: None,
            runs: cards(),
        },
        Experiment {
            name: "bus-133",
            title: "The paper's 8 Gbit/s bus: A to F, the mesh and the slow path by frame size at 133 MHz",
            x: None,
            plotted: &[],
            baseline: None,
            runs: faster_bus(),
        },
        Experiment {
            name: "grant-minimum",
            title: "Beyond the paper: D with the minimum-grant register, 64 and 1518 bytes",
            x: None,
            plotted: &[],
            baseline: None,
            runs: grant_minimum(),
        },
        Experiment {
            name: "unequal",
            title: "Beyond the paper: one input all high class (0.8 Gbit/s), the other all low (1 Gbit/s), one output",
            x: None,
            plotted: &[],
            baseline: None,
            runs: ResponsePolicy::ALL
                .map(|policy| run(unequal(&format!("unequal-{}", policy.name()), policy), "", 0.0))
                .into(),
        },
    ]
}

fn other_sources() -> Vec<Run> {
    let mut runs = Vec::new();
    for mut scenario in routing().into_iter().filter(|s| s.name == "C" || s.name == "E") {
        let name = scenario.name.clone();
        for (phase_ns, suffix) in [(336, "phase-half"), (111, "phase-odd")] {
            scenario.name = format!("{name}-{suffix}");
            scenario.sources.iter_mut().for_each(|s| s.start_ns = u64::from(s.port) * phase_ns);
            runs.push(run(scenario.clone(), "", 0.0));
        }
        scenario.name = format!("{name}-poisson");
        scenario.sources.iter_mut().for_each(|s| (s.spacing, s.load) = (Spacing::Poisson, 0.9));
        runs.push(run(scenario, "", 0.0));
    }
    runs
}

fn frame_sizes() -> Vec<Run> {
    let mut runs = Vec::new();
    for frame_bytes in FRAME_SIZES {
        for (ports, series) in [(1, "one flow"), (3, "three bidirectional")] {
            let all = mesh(3, frame_bytes);
            let sources = if ports == 1 { vec![Source { frame_bytes, ..source(0, &[1]) }] } else { all };
            let mut scenario = Scenario::new(&format!("slow-{ports}-{frame_bytes}"), 3, sources);
            scenario.fast_path = false;
            runs.push(run(scenario, series, f64::from(frame_bytes)));
        }
    }
    runs
}

fn qos_slow() -> Vec<Run> {
    let mut runs = Vec::new();
    for (classify, label) in [(false, "off"), (true, "on")] {
        for load in LOADS {
            let name = format!("qos-slow-{label}-{load}");
            runs.push(run(slow_mix(&name, load, 0.5, classify), format!("classification {label}"), load));
        }
    }
    runs
}

fn qos_fast() -> Vec<Run> {
    let mut runs = Vec::new();
    for share in [0.25, 0.5, 0.75] {
        for load in LOADS {
            let scenario = two_to_one(&format!("qos-fast-{share}-{load}"), load, 64, share);
            runs.push(run(scenario, format!("high share {share}"), load));
        }
    }
    runs
}

/// Runs of the same rule and share differ by their seed.
fn saturation() -> Vec<Run> {
    let mut runs = Vec::new();
    for policy in ResponsePolicy::ALL {
        for share in [0.4, 0.44, 0.47, 0.49, 0.5] {
            for seed in 1..=3 {
                let name = format!("D-{}-{share}-seed-{seed}", policy.name());
                let mut scenario = two_to_one(&name, 1.0, 64, share).with_seed(seed);
                scenario.policy = policy;
                runs.push(run(scenario, policy.name(), share));
            }
        }
    }
    runs
}

/// One input has a higher share of the high class than the other; all of it together would pass.
fn uneven() -> Vec<Run> {
    let mut runs = Vec::new();
    for policy in ResponsePolicy::ALL {
        for more in [0.02, 0.08, 0.24] {
            for seed in 1..=3 {
                let name = format!("D-uneven-{}-{more}-seed-{seed}", policy.name());
                let mut scenario = two_to_one(&name, 1.0, 64, 0.48).with_seed(seed);
                scenario.sources[0].high_share += more;
                scenario.sources[1].high_share -= more;
                scenario.policy = policy;
                runs.push(run(scenario, policy.name(), more));
            }
        }
    }
    runs
}

/// The same on the bus's own 133 MHz.
fn fast_bus(mut scenario: Scenario) -> Run {
    scenario.name += "-133";
    scenario.bus_period_ps = PCI_133_PS;
    run(scenario, "", 0.0)
}

fn faster_bus() -> Vec<Run> {
    let mut runs: Vec<Run> = routing().into_iter().map(fast_bus).collect();
    for cards in 4..=8 {
        let scenario = Scenario::new(&format!("mesh-{cards}"), cards.into(), mesh(cards, 64));
        runs.push(fast_bus(scenario.lasting(1_000, 4_000)));
    }
    runs.extend(frame_sizes().into_iter().map(|run| fast_bus(run.scenario)));
    runs
}

fn cards() -> Vec<Run> {
    let mut runs = Vec::new();
    for overhead in [6, 10, 16] {
        for cards in 2..=8 {
            let mut scenario =
                Scenario::new(&format!("mesh-{cards}-overhead-{overhead}"), cards.into(), mesh(cards, 64));
            scenario.bus_overhead_cycles = overhead;
            scenario = scenario.lasting(1_000, 4_000);
            runs.push(run(scenario, format!("{overhead} cycles overhead"), f64::from(cards)));
        }
    }
    runs
}

fn grant_minimum() -> Vec<Run> {
    let mut runs = Vec::new();
    for frame_bytes in [64, 1518] {
        for grant_min_words in [0, 191] {
            let name = format!("D-{frame_bytes}-minimum-{grant_min_words}");
            let mut scenario = two_to_one(&name, 1.0, frame_bytes, 0.0);
            scenario.grant_min_words = grant_min_words;
            runs.push(run(scenario, "", 0.0));
        }
    }
    runs
}
