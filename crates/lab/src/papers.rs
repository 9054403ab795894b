//! The papers' experiments, each under its name, between network namespaces of this machine.
//!
//! An experiment is one comparison or several, of routers that differ in what the paper varies: the mechanism of reception, the
//! quota, the number of ports. The router is this program's plain IPv4 router, whose reception mechanisms are the
//! papers' ([`causeway_engine::reception`]). What this machine lacks for an experiment is a reason to refuse it.
//!
//! In the papers an interrupt takes the processor from the forwarding code; here a worker does first what an interrupt would
//! do. The order is the same, and so is livelock, but the interrupt itself costs nothing.
//!
//! A tester on one processor cannot saturate the router on another of the same machine. So each packet makes a detour, a
//! lookup in a long list, and costs about what it did on the papers' machines: what the mechanisms do at saturation can be
//! seen, and the rates are not the router's.

mod chart;

use crate::bed::Kind;
use crate::report::{begun, write};
use crate::run::{Comparison, Description, Preset, Progress, keep, verdict};
use anyhow::{Context, Result, anyhow, bail};
use causeway_results::Document;
use causeway_results::traffic::{Matrix, Sizes, Traffic};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment of a paper.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What is varied.
    pub about: &'static str,
    /// What the paper found.
    pub paper: &'static str,
    /// Points of the paper's curves, in thousands of frames a second: those that its text gives.
    points: &'static [Curve],
    shows: Shows,
    what: What,
}

/// What an experiment's picture shows of the forwarding rates.
#[derive(Clone, Copy)]
enum Shows {
    /// Each router's, against the offered load.
    Loads,
    /// Each router's at saturation, against the frame length.
    Lengths,
    /// Each flow's, against the offered load.
    Flows,
}

/// A curve's name, and its points.
type Curve = (&'static str, &'static [(f64, f64)]);

enum What {
    /// Comparisons, one after the other.
    Measured(fn() -> Vec<Setup>),
    /// Why it is not measured here.
    Refused(&'static str),
}

/// Routers that are compared on a bed.
struct Setup {
    ports: usize,
    matrix: Matrix,
    sizes: Vec<(String, Sizes)>,
    /// Each with a name and the arguments of FromDevice at each port, and those of the program.
    routers: Vec<(String, Vec<String>, Vec<String>)>,
}

/// Frame lengths of OSR: payloads of IP, with the headers of IP and Ethernet and the checksum.
const OSR_SIZES: [u32; 6] = [82, 146, 274, 530, 1042, 1518];
const QUOTA: u32 = 64;
const BUDGET: u32 = 300;
/// Routes of the detour, some 2 us: OSR's processor took 5 500 cycles of 2.8 GHz for a packet (section 4.2).
const DETOUR_ROUTES: u32 = 2_000;
/// What a gigabit link carries of minimum-size frames, in thousands a second.
const LINE_KPPS: f64 = 1488.0;

fn router(name: &str, reception: &str) -> (String, Vec<String>, Vec<String>) {
    let budget = vec!["--budget".to_owned(), BUDGET.to_string()];
    (name.to_owned(), vec![format!("RECEPTION {reception}")], budget)
}

fn napi(name: &str, quotas: &[u32]) -> (String, Vec<String>, Vec<String>) {
    let (name, _, budget) = router(name, "napi");
    let of = |quota: &u32| format!("RECEPTION napi, QUOTA {quota}");
    (name, quotas.iter().map(of).collect(), budget)
}

fn two_ports(matrix: Matrix, sizes: &[u32], routers: Vec<(String, Vec<String>, Vec<String>)>) -> Vec<Setup> {
    vec![Setup { ports: 2, matrix, sizes: sizes.iter().copied().map(fixed).collect(), routers }]
}

fn fixed(bytes: u32) -> (String, Sizes) {
    (format!("{bytes} bytes"), Sizes::Fixed(bytes))
}

/// From ports 0 and 1 to port 2, by those of AFF's mechanisms that it compares.
fn two_to_one(size: (String, Sizes)) -> Vec<Setup> {
    let matrix = Matrix::Custom(vec![vec![0, 0, 1], vec![0, 0, 1], vec![0; 3]]);
    let de = router("disable-enable", "disable-enable");
    let routers = vec![napi("napi, Q 300", &[300]), napi("napi, Q 2", &[2]), de];
    vec![Setup { ports: 3, matrix, sizes: vec![size], routers }]
}

/// From port 0 to 1 ten times of what goes from port 2 to 3.
fn uneven(routers: Vec<(String, Vec<String>, Vec<String>)>) -> Vec<Setup> {
    let matrix = Matrix::Custom(vec![vec![0, 10, 0, 0], vec![0; 4], vec![0, 0, 0, 1], vec![0; 4]]);
    vec![Setup { ports: 4, matrix, sizes: vec![fixed(64)], routers }]
}

fn many(matrix: Matrix, ports: usize, name: &str) -> Setup {
    let routers = vec![napi(&format!("napi, {ports} ports, {name}"), &[QUOTA])];
    Setup { ports, matrix, sizes: vec![fixed(64)], routers }
}

/// All experiments that are known here.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "OSR-4",
        about: "mechanisms of reception: forwarding rate against offered load, one way, 64 bytes",
        paper: "interrupts peak at 230 kpps and moderated ones at 500 kpps, then both fall to 0; NAPI stays at 510 kpps",
        points: &[
            ("interrupt", &[(230.0, 230.0), (LINE_KPPS, 0.0)]),
            ("moderated", &[(500.0, 500.0), (LINE_KPPS, 0.0)]),
            ("napi", &[(510.0, 510.0), (LINE_KPPS, 510.0)]),
        ],
        shows: Shows::Loads,
        what: What::Measured(|| {
            let mechanisms = ["interrupt", "moderated", "napi", "disable-enable", "polling"];
            let routers = mechanisms.map(|mechanism| router(mechanism, mechanism));
            two_ports(Matrix::Unidirectional, &[64], routers.to_vec())
        }),
    },
    Experiment {
        name: "OSR-5",
        about: "lengths of frames with NAPI, one way",
        paper: "near 500 kpps up to 128 bytes of payload, where the processor is the limit; 1 Gbit/s from 512 bytes on",
        points: &[(
            "napi",
            &[(82.0, 500.0), (146.0, 500.0), (530.0, 227.0), (1042.0, 118.0), (1518.0, 81.0)],
        )],
        shows: Shows::Lengths,
        what: What::Measured(|| two_ports(Matrix::Unidirectional, &OSR_SIZES, vec![napi("napi", &[QUOTA])])),
    },
    Experiment {
        name: "OSR-6",
        about: "one way and both ways with NAPI, 64 bytes",
        paper: "510 kpps one way, 620 kpps both ways",
        points: &[("napi, one way", &[(LINE_KPPS, 510.0)]), ("napi, both ways", &[(LINE_KPPS, 620.0)])],
        shows: Shows::Loads,
        what: What::Measured(|| {
            let one = two_ports(Matrix::Unidirectional, &[64], vec![napi("napi, one way", &[QUOTA])]);
            let both = two_ports(Matrix::OneToOne, &[64], vec![napi("napi, both ways", &[QUOTA])]);
            one.into_iter().chain(both).collect()
        }),
    },
    Experiment {
        name: "OSR-7",
        about: "recycling of buffers",
        paper: "620 kpps without, 730 kpps with it",
        points: &[],
        shows: Shows::Loads,
        what: What::Refused(
            "ports over AF_XDP need the pool that recycles; without it the kernel copies each packet once more, which would \
             be the difference",
        ),
    },
    Experiment {
        name: "OSR-8",
        about: "ports with loads of 10:1, quota 64, budget 300",
        paper: "past saturation the smaller flow grows at the cost of the other, to max-min fairness; the sum is constant",
        points: &[],
        shows: Shows::Flows,
        what: What::Measured(|| uneven(vec![napi("napi, Q 64", &[QUOTA])])),
    },
    Experiment {
        name: "OSR-9",
        about: "as OSR-8, with quotas in the ratio of the loads",
        paper: "the shares follow the quotas 270 and 27, and the sum is higher",
        points: &[],
        shows: Shows::Flows,
        what: What::Measured(|| uneven(vec![napi("napi, Q 270 and 27", &[270, 270, 27, 27])])),
    },
    Experiment {
        name: "OSR-10",
        about: "6, 10 and 14 ports in pairs, both ways",
        paper: "the saturation rate falls slightly with the number of ports",
        points: &[],
        shows: Shows::Loads,
        what: What::Measured(|| [6, 10, 14].map(|ports| many(Matrix::OneToOne, ports, "in pairs")).into()),
    },
    Experiment {
        name: "OSR-11",
        about: "14 ports, in pairs and each to all others",
        paper: "each to all others is slightly lower",
        points: &[],
        shows: Shows::Loads,
        what: What::Measured(|| {
            vec![many(Matrix::OneToOne, 14, "in pairs"), many(Matrix::Uniform, 14, "each to all")]
        }),
    },
    Experiment {
        name: "AFF-5",
        about: "two ports to a third one, NAPI with quotas of 300 and 2, and Disable-Enable, 64 bytes",
        paper: "saturation near 500 kpps in all, whatever the mechanism; its modes of affinity take four processors",
        points: &[("all", &[(500.0, 500.0), (1400.0, 500.0)])],
        shows: Shows::Loads,
        what: What::Measured(|| two_to_one(fixed(64))),
    },
    Experiment {
        name: "AFF-11",
        about: "as AFF-5, with frames of 64, 594 and 1 518 bytes, 7:4:1",
        paper: "saturation at 280 kpps in all",
        points: &[("all", &[(280.0, 280.0), (320.0, 280.0)])],
        shows: Shows::Loads,
        what: What::Measured(|| two_to_one(("imix".to_owned(), Sizes::simple_imix()))),
    },
];

impl Experiment {
    /// The one of this name, in small or capital letters.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn find(name: &str) -> Result<&'static Experiment> {
        let names = || EXPERIMENTS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        let found = EXPERIMENTS.iter().find(|one| one.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| anyhow!("there is no experiment '{name}'; there are {}", names()))
    }

    /// Why it cannot be measured here, if it cannot.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.what {
            What::Refused(why) => Some(why),
            What::Measured(_) => None,
        }
    }

    fn comparisons(&self, repetitions: usize) -> Result<Vec<Comparison>> {
        match self.what {
            What::Refused(why) => bail!("{} is not measured here: {why}", self.name),
            What::Measured(setups) => {
                Ok(setups().into_iter().map(|one| one.comparison(repetitions)).collect())
            }
        }
    }

    /// Measures it and writes the document, also when it ends early. The lines are for people.
    ///
    /// # Errors
    /// That it cannot be measured here, and those of a [`Comparison`].
    pub fn run(
        &self,
        repetitions: usize,
        output: &Path,
        interrupted: &Arc<AtomicBool>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<String>> {
        let comparisons = self.comparisons(repetitions)?;
        let mut document = Document::new(begun());
        document.run.settings.insert("experiment".to_owned(), format!("{}: {}", self.name, self.about));
        document.run.settings.insert("the paper".to_owned(), self.paper.to_owned());
        let outcome: Result<()> =
            comparisons.iter().try_for_each(|one| one.run(&mut document, interrupted, progress));
        if let Err(error) = &outcome {
            document.run.settings.insert("ended early".to_owned(), format!("{error:#}"));
        }
        if document.series.is_empty() {
            outcome?;
        } else {
            keep(output, self.name, &document)?;
            if let Some(chart) = chart::chart(self, &document) {
                write(&output.with_extension("svg"), &chart.svg()?)?;
            }
            outcome.with_context(|| format!("ended early; what was found is in {}", output.display()))?;
        }
        let mut lines = vec![format!("the paper: {}", self.paper)];
        lines.extend(verdict(&document));
        Ok(lines)
    }
}

impl Setup {
    fn comparison(self, repetitions: usize) -> Comparison {
        let traffic = Traffic { matrix: self.matrix, ..Traffic::simple(64) };
        let devices: Vec<String> = self.routers.iter().map(|(name, ..)| name.clone()).collect();
        let kind = |(name, reception, arguments): (String, Vec<String>, Vec<String>)| {
            let detour_routes = DETOUR_ROUTES;
            (name, Kind::Graph { configuration: None, reception, detour_routes, arguments })
        };
        Comparison {
            description: Description {
                ports: self.ports,
                tester_processors: vec![0],
                device_processors: vec![1],
                devices: self.routers.into_iter().map(kind).collect(),
                traffic: Some(traffic),
                ..Description::default()
            },
            devices,
            sizes: self.sizes,
            preset: Preset::quick(),
            repetitions,
            only_curve: true,
            yes: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_possible_or_says_why_not() {
        for (i, one) in EXPERIMENTS.iter().enumerate() {
            assert!(EXPERIMENTS[..i].iter().all(|other| other.name != one.name), "{}", one.name);
            match one.comparisons(1) {
                Ok(comparisons) => {
                    assert!(one.refusal().is_none() && !comparisons.is_empty());
                    for comparison in &comparisons {
                        let traffic = comparison.description.traffic.as_ref().expect("traffic");
                        causeway_results::traffic::Plan::new(traffic, comparison.description.ports)
                            .expect("a plan");
                        let named = |name| comparison.description.device(name).is_ok();
                        assert!(comparison.devices.iter().all(|name| named(name)), "{}", one.name);
                    }
                }
                Err(error) => assert!(error.to_string().contains(one.refusal().expect("a reason"))),
            }
        }
    }

    #[test]
    fn uneven_ports_have_their_loads_and_quotas() {
        let comparisons = Experiment::find("osr-9").expect("known").comparisons(1).expect("comparisons");
        let Kind::Graph { reception, arguments, .. } =
            comparisons[0].description.device("napi, Q 270 and 27").expect("there")
        else {
            panic!("no graph")
        };
        assert_eq!(
            (reception[0].as_str(), reception[2].as_str()),
            ("RECEPTION napi, QUOTA 270", "RECEPTION napi, QUOTA 27")
        );
        assert_eq!(arguments, ["--budget", "300"]);
        let error = Experiment::find("OSR-12").err().expect("unknown").to_string();
        assert!(error.contains("OSR-4, OSR-5"), "{error}");
    }
}
