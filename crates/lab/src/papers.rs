//! The papers' experiments, each under its name, between network namespaces of this machine.
//!
//! An experiment is one comparison or several, of routers that differ in what the paper varies: the mechanism of reception, the
//! quota, the number of ports, the lookup. The router is this program's plain IPv4 router, whose reception mechanisms are the
//! papers' ([`causeway_engine::reception`]). Each experiment says what it needs ([`Needs`]): what a veth lacks is a reason to
//! refuse it wherever it is, and processors that this machine lacks are one to refuse it here. Several figures of a paper are
//! often several views of the same trials: they are pictures of one experiment.
//!
//! In the papers an interrupt takes the processor from the forwarding code; here a worker does first what an interrupt would
//! do. The order is the same, and so is livelock, but the interrupt itself costs nothing.
//!
//! A tester on one processor cannot saturate the router on another of the same machine. So each packet makes a detour, a
//! lookup in a long list, and costs about what it did on the papers' machines: what the mechanisms do at saturation can be
//! seen, and the rates are not the router's.

mod aff;
mod chart;
mod claim;
mod cvl;
mod lut;
mod needs;
mod osr;
mod page;
mod routers;
mod setup;

use crate::report::{begun, write};
use crate::run::{Comparison, ENDED_EARLY, Preset, Progress, keep, verdict};
use anyhow::{Context, Result, anyhow, bail};
use causeway_engine::usable_processors;
use causeway_results::Document;
use chart::Shows;
use claim::{Claim, Found};
pub use needs::Needs;
use needs::share_cache;
pub use page::pages;
use routers::{name_processors, restrict};
use setup::Setup;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment of a paper.
pub struct Experiment {
    /// What is varied.
    pub about: &'static str,
    /// What the paper found.
    pub paper: &'static str,
    /// What it needs to be measured between namespaces.
    pub needs: Needs,
    /// The paper's figures that it has, at least one.
    pictures: &'static [Picture],
    what: What,
}

/// A figure.
struct Picture {
    figure: &'static str,
    shows: Shows,
    /// How the names of the routers that it shows begin.
    of: &'static str,
    /// Points of the paper's curves in the figure's units: those that its text gives.
    points: &'static [Curve],
}

/// What the model calls the experiment of recycling alone.
const RECYCLING: &str = "LUT-skb";

/// A curve's name, and its points.
type Curve = (&'static str, &'static [(f64, f64)]);

enum What {
    Measured {
        /// Comparisons, one after the other.
        setups: fn() -> Vec<Setup>,
        /// What the paper found, as far as it is a ratio of what is measured.
        claims: &'static [Claim],
        /// What is not as in the paper, and why.
        here: &'static str,
    },
    /// Why no machine can measure it between namespaces, or what else has of it what can be.
    Refused(&'static str),
}

/// The setting of a document that says which routers were measured, if not all were.
const ROUTERS: &str = "routers";
/// What has the experiments that a machine cannot measure.
const MODEL: &str = "`causeway model` has it";

/// A figure of all routers, without points.
const fn picture(figure: &'static str, shows: Shows) -> Picture {
    Picture { figure, shows, of: "", points: &[] }
}

/// All experiments that are known here.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    [osr::EXPERIMENTS, cvl::EXPERIMENTS, lut::EXPERIMENTS, aff::EXPERIMENTS].into_iter().flatten()
}

impl Experiment {
    /// The one that has a figure of this name, in small or capital letters. That of recycling alone has no figure in its paper.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn find(figure: &str) -> Result<&'static Experiment> {
        let figure = if figure.eq_ignore_ascii_case("recycling") { RECYCLING } else { figure };
        let has = |one: &&Experiment| one.figures().any(|name| name.eq_ignore_ascii_case(figure));
        experiments().find(has).ok_or_else(|| {
            let all: Vec<&str> = experiments().flat_map(Experiment::figures).collect();
            anyhow!("there is no experiment '{figure}'; there are {}", all.join(", "))
        })
    }

    /// Its name: its first figure.
    pub fn name(&self) -> &'static str {
        self.pictures.first().map_or("", |one| one.figure)
    }

    /// The figures that come of it.
    pub fn figures(&self) -> impl Iterator<Item = &'static str> {
        self.pictures.iter().map(|one| one.figure)
    }

    /// Whether there are machines that can measure it.
    pub fn is_measured(&self) -> bool {
        matches!(self.what, What::Measured { .. })
    }

    /// Why it cannot be measured with these processors, if it cannot.
    pub fn refusal(&self, usable: &[usize]) -> Option<String> {
        let lacking = self.needs.places(usable, share_cache).err().map(|error| error.to_string());
        match (&self.what, lacking) {
            (What::Refused(why), Some(lacking)) => Some(format!("{lacking}; {why}")),
            (What::Refused(why), None) => Some((*why).to_owned()),
            (What::Measured { .. }, lacking) => lacking.map(|lacking| format!("{lacking}; {MODEL}")),
        }
    }

    fn comparisons(&self, preset: &Preset, repetitions: usize, usable: &[usize]) -> Result<Vec<Comparison>> {
        if let Some(why) = self.refusal(usable) {
            bail!("{} is not measured here: {why}", self.name());
        }
        let What::Measured { setups, .. } = &self.what else { return Ok(Vec::new()) };
        let places = self.needs.places(usable, share_cache)?;
        let comparison = |one: Setup| one.comparison(preset.clone(), repetitions, &places);
        Ok(setups().into_iter().map(comparison).collect())
    }

    /// Measures it, or `only` some of its routers if any are named, and writes the document, also when it ends early. The lines
    /// are for people.
    ///
    /// # Errors
    /// That it cannot be measured here or has no such router, and those of a [`Comparison`].
    pub fn run(
        &self,
        (preset, repetitions): (&Preset, usize),
        only: &[String],
        output: &Path,
        interrupted: &Arc<AtomicBool>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<String>> {
        let mut comparisons = self.comparisons(preset, repetitions, &usable_processors())?;
        restrict(&mut comparisons, only)?;
        let mut document = Document::new(begun());
        document.run.settings.insert("experiment".to_owned(), format!("{}: {}", self.name(), self.about));
        document.run.settings.insert("the paper".to_owned(), self.paper.to_owned());
        if !only.is_empty() {
            document.run.settings.insert(ROUTERS.to_owned(), format!("only {}", only.join("; ")));
        }
        let mut tested = None;
        let outcome: Result<()> =
            comparisons.iter().try_for_each(|one| one.run(&mut document, &mut tested, interrupted, progress));
        if let Err(error) = &outcome {
            document.run.settings.insert(ENDED_EARLY.to_owned(), format!("{error:#}"));
        }
        comparisons.iter().for_each(|one| name_processors(&mut document, one));
        if document.series.is_empty() {
            outcome?;
        } else {
            keep(output, self.name(), &document)?;
            self.draw(output, &document)?;
            outcome.with_context(|| format!("ended early; what was found is in {}", output.display()))?;
        }
        let mut lines = vec![format!("the paper: {}", self.paper)];
        lines.extend(verdict(&document));
        lines.extend(self.found(&document).into_iter().map(|(says, found)| format!("{says}: {found}")));
        Ok(lines)
    }

    /// The paper's findings, each with whether the document shows it.
    fn found(&self, document: &Document) -> Vec<(&'static str, Found)> {
        let What::Measured { claims, .. } = self.what else { return Vec::new() };
        claims.iter().filter_map(|claim| Some((claim.says, claim.found(document)?))).collect()
    }

    /// Draws the figures beside the document: the first under its name, the others with theirs behind it.
    fn draw(&self, output: &Path, document: &Document) -> Result<()> {
        for one in self.pictures {
            let Some(chart) = chart::chart(one, self.about, document) else { continue };
            let file = match one.figure == self.name() {
                true => output.with_extension("svg"),
                false => other_picture(output, one.figure),
            };
            write(&file, &chart.svg()?)?;
        }
        Ok(())
    }
}

/// The file of another figure than the first.
fn other_picture(output: &Path, figure: &str) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}-{figure}.svg"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::Kind;
    use std::collections::BTreeSet;

    const TWO: [usize; 2] = [3, 5];

    /// As many as no experiment needs.
    const MANY: [usize; 8] = [3, 5, 6, 7, 8, 9, 10, 11];

    #[test]
    fn processors_that_are_not_there_are_a_reason_to_refuse() {
        let one = Experiment::find("OSR-4").expect("known");
        assert_eq!(one.refusal(&TWO), None);
        for (usable, many) in [(&[][..], "use 0 here"), (&[7][..], "use 1 here")] {
            let why = one.refusal(usable).expect("refused");
            assert!(why.contains("2 processors") && why.ends_with(&format!("{many}; {MODEL}")), "{why}");
            let error = one.comparisons(&Preset::quick(), 1, usable).err().expect("refused").to_string();
            assert_eq!(error, format!("OSR-4 is not measured here: {why}"));
        }
        // Those that there are, whatever their numbers.
        for comparison in one.comparisons(&Preset::quick(), 1, &[3, 5, 6]).expect("comparisons") {
            let description = comparison.description;
            assert_eq!((description.tester_processors, description.device_processors), (vec![3], vec![5]));
        }
    }

    #[test]
    fn modes_of_affinity_are_refused_only_where_there_are_too_few_processors() {
        let one = Experiment::find("AFF-8").expect("known");
        for few in [&MANY[..1], &MANY[..2], &MANY[..3]] {
            let why = one.refusal(few).expect("refused");
            assert!(why.contains("it takes 4 processors") && why.ends_with(MODEL), "{why}");
        }
        for enough in [&MANY[..4], &MANY[..]] {
            assert_eq!(one.refusal(enough), None);
            for comparison in one.comparisons(&Preset::quick(), 1, enough).expect("comparisons") {
                let router = &comparison.description.device_processors;
                assert_eq!(router.len(), 3);
                let Ok(Kind::Graph(graph)) = comparison.description.device("mode II, napi, Q 300") else {
                    panic!("no graph")
                };
                // The second port receives apart, the third sends beside the first.
                assert_eq!(graph.port_processors(router), [router[0], router[2], router[1]]);
            }
        }
        let why = Experiment::find("AFF-10").expect("known").refusal(&MANY).expect("refused anywhere");
        assert!(why.starts_with("it takes interrupts of cards") && why.contains(MODEL), "{why}");
    }

    #[test]
    fn what_an_experiment_needs_is_what_it_sets_up() {
        for one in experiments().filter(|one| one.is_measured()) {
            let comparisons = one.comparisons(&Preset::quick(), 1, &MANY).expect("comparisons");
            let ports = comparisons.iter().map(|one| one.description.ports).max();
            assert_eq!(ports, Some(one.needs.ports), "{}", one.name());
            let description = &comparisons[0].description;
            let processors = description.tester_processors.len() + description.device_processors.len();
            assert_eq!(processors, one.needs.processors, "{}", one.name());
        }
    }

    #[test]
    fn every_experiment_is_possible_or_says_why_not() {
        let mut figures = BTreeSet::new();
        for one in experiments() {
            assert!(one.figures().all(|figure| figures.insert(figure)), "{}", one.name());
            match one.comparisons(&Preset::quick(), 1, &MANY) {
                Ok(comparisons) => {
                    assert!(one.refusal(&MANY).is_none() && !comparisons.is_empty());
                    for comparison in &comparisons {
                        let traffic = comparison.description.traffic.as_ref().expect("traffic");
                        traffic.check().expect("traffic");
                        causeway_results::traffic::Plan::new(traffic, comparison.description.ports)
                            .expect("a plan");
                        let named = |name| comparison.description.device(name).is_ok();
                        assert!(comparison.devices.iter().all(|name| named(name)), "{}", one.name());
                    }
                }
                Err(error) => assert!(error.to_string().contains(&one.refusal(&MANY).expect("a reason"))),
            }
        }
    }

    #[test]
    fn trials_last_longer_than_it_takes_to_empty_the_rings_of_packet_sockets() {
        let manner = |figure| {
            let one = Experiment::find(figure).expect("known");
            let comparisons = one.comparisons(&Preset::quick(), 1, &TWO).expect("comparisons");
            (comparisons[0].preset.trial_ns, comparisons[0].preset.settle.as_millis())
        };
        assert_eq!((manner("OSR-7"), manner("OSR-6")), ((1_000_000_000, 500), (100_000_000, 80)));
    }

    #[test]
    fn names_of_routers_differ_within_an_experiment() {
        for one in experiments().filter(|one| one.is_measured()) {
            let all: Vec<String> = one
                .comparisons(&Preset::quick(), 1, &MANY)
                .expect("known")
                .into_iter()
                .flat_map(|setup| setup.devices)
                .collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{}: {all:?}", one.name());
        }
    }

    #[test]
    fn findings_are_of_routers_that_are_there() {
        for one in experiments() {
            let What::Measured { claims, .. } = one.what else { continue };
            let comparisons = one.comparisons(&Preset::quick(), 1, &MANY).expect("comparisons");
            let routers: BTreeSet<&str> =
                comparisons.iter().flat_map(|one| &one.devices).map(String::as_str).collect();
            for claim in claims.iter().filter(|claim| claim.shows != Shows::Flows) {
                for (name, _) in [claim.of, claim.to].into_iter().filter(|point| *point != claim::ITSELF) {
                    // A curve of a port or of a class has its name behind the router's.
                    let router = name.split_once(": ").map_or(name, |(router, _)| router);
                    assert!(routers.contains(router), "{}: {router}", one.name());
                }
            }
        }
    }

    #[test]
    fn uneven_ports_have_their_loads_and_quotas() {
        let comparisons = Experiment::find("osr-9")
            .expect("known")
            .comparisons(&Preset::quick(), 1, &TWO)
            .expect("comparisons");
        let Kind::Graph(graph) = comparisons[0].description.device("napi, Q 270 and 27").expect("there")
        else {
            panic!("no graph")
        };
        assert_eq!(
            (graph.reception[0].as_str(), graph.reception[2].as_str()),
            ("RECEPTION napi, QUOTA 270", "RECEPTION napi, QUOTA 27")
        );
        assert_eq!(graph.arguments, ["--budget", "300"]);
        let error = Experiment::find("OSR-12").err().expect("unknown").to_string();
        assert!(error.contains("OSR-4, OSR-5"), "{error}");
    }

    #[test]
    fn a_figure_is_found_by_its_own_name_and_drawn_into_its_own_file() {
        let found = |name| Experiment::find(name).expect("known").name();
        assert_eq!((found("AFF-6"), found("lut-12"), found("LUT-4")), ("AFF-5", "LUT-12", "LUT-2"));
        assert_eq!((found("recycling"), found("OSR-7")), ("LUT-skb", "OSR-7"));
        assert_eq!(other_picture(Path::new("a/AFF-5.json"), "AFF-6"), Path::new("a/AFF-5-AFF-6.svg"));
    }
}
