//! The paper's scenarios A to F and more cards, on both buses: what comes out, for people and for the common format.

use super::{OVERHEAD_BYTES, PCI_66_PS, PCI_133_PS, Scenario, Source, Statistics, mesh, predict};
use crate::figures::{commercial_cards, write};
use crate::machine::Machine;
use crate::run::{Effort, parallel, run};
use crate::series::modelled;
use anyhow::Result;
use causeway_results::{Document, Measurement, Run, Series, Source as From};
use std::path::{Path, PathBuf};

/// Both buses: megahertz and period.
const BUSES: [(u32, u64); 2] = [(66, PCI_66_PS), (133, PCI_133_PS)];
/// Cards that a bus has in the growth, each sending to all others.
const CARDS: std::ops::RangeInclusive<u8> = 2..=8;
/// What is measured with many cards.
const GROWTH_NS: u64 = 4_000_000;
/// Bits of the shortest frame on the line.
const FRAME_BITS: f64 = ((64 + OVERHEAD_BYTES) * 8) as f64;

/// The paper's scenarios of the fast path (section IV-B), and what it found, Gbit/s.
fn routing() -> [(&'static str, f64, Scenario); 5] {
    let full = Source::full;
    [
        ("B", 1.0, Scenario::new(2, vec![full(0, &[1])])),
        ("C", 2.0, Scenario::new(2, vec![full(0, &[1]), full(1, &[0])])),
        ("D", 1.0, Scenario::new(3, vec![full(0, &[2]), full(1, &[2])])),
        ("E", 1.0, Scenario::new(3, vec![full(0, &[1, 2])])),
        ("F", 3.0, Scenario::new(3, mesh(3, 64))),
    ]
}

/// What one scenario gave on one bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name: a letter of the paper, or how many cards send to all others.
    pub name: String,
    /// The bus's clock, MHz.
    pub bus_mhz: u32,
    /// What was offered, Gbit/s with preamble and gap.
    pub offered_gbps: f64,
    /// What the paper found.
    pub paper_gbps: Option<f64>,
    /// What came out.
    pub found: Statistics,
}

impl Case {
    /// What left the ports, Gbit/s with preamble and gap.
    pub fn delivered_gbps(&self) -> f64 {
        self.found.delivered_pps * FRAME_BITS / 1e9
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// A, whose packets no card has a route for: they take the processor's way, packets a second.
    pub slow_pps: f64,
    /// B to F on both buses.
    pub routing: Vec<Case>,
    /// 2 to 8 cards on both buses.
    pub growth: Vec<(u8, Case)>,
}

/// Asks the model for all of them. Same seed, same numbers.
///
/// # Errors
///
/// None, or the program was built with a machine's file that is wrong.
pub fn ask(seed: u64) -> Result<Answer> {
    let slow = run(&Machine::fpga()?, &commercial_cards(), seed, Effort::FULL, None)?;
    let mut jobs = Vec::new();
    for (mhz, bus_period_ps) in BUSES {
        for (name, paper, scenario) in routing() {
            jobs.push((
                None,
                name.to_owned(),
                mhz,
                Some(paper),
                Scenario { bus_period_ps, seed, ..scenario },
            ));
        }
        for cards in CARDS {
            let all = Scenario::new(cards.into(), mesh(cards, 64));
            let scenario = Scenario { bus_period_ps, seed, measure_ns: GROWTH_NS, ..all };
            jobs.push((Some(cards), format!("{cards} cards"), mhz, None, scenario));
        }
    }
    let cases = parallel(&jobs, |(cards, name, bus_mhz, paper_gbps, scenario)| {
        let offered_gbps = scenario.sources.iter().map(|source| source.load).sum();
        let (name, bus_mhz, paper_gbps) = (name.clone(), *bus_mhz, *paper_gbps);
        (*cards, Case { name, bus_mhz, offered_gbps, paper_gbps, found: predict(scenario) })
    });
    let (growth, routing): (Vec<_>, Vec<_>) = cases.into_iter().partition(|(cards, _)| cards.is_some());
    Ok(Answer {
        slow_pps: slow.rate_fps(),
        routing: routing.into_iter().map(|(_, case)| case).collect(),
        growth: growth.into_iter().filter_map(|(cards, case)| Some((cards?, case))).collect(),
    })
}

/// For people.
pub fn lines(answer: &Answer) -> Vec<String> {
    let slow_gbps = answer.slow_pps * FRAME_BITS / 1e9;
    let mut lines = vec![
        "enhanced cards, modelled: scenarios A to F of FPGA, 64-byte frames at line rate; Gbit/s with preamble and gap".to_owned(),
        format!(
            "  {:<8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>10} {:>16}",
            "", "bus", "offered", "paper", "model", "bus busy", "its data", "bursts/ms", "packets a burst"
        ),
        format!(
            "  {:<8} {:>8} {:>8.2} {:>8.2} {slow_gbps:>8.2}  by the processor: {:.0} kpps on the machine of FPGA-4",
            "A", "133 MHz", 1.0, 0.4, answer.slow_pps / 1e3
        ),
    ];
    for case in answer.routing.iter().chain(answer.growth.iter().map(|(_, case)| case)) {
        let found = &case.found;
        let paper = case.paper_gbps.map_or(String::new(), |gbps| format!("{gbps:.2}"));
        lines.push(format!(
            "  {:<8} {:>8} {:>8.2} {paper:>8} {:>8.2} {:>7.1} % {:>7.1} % {:>10.0} {:>16.2}",
            case.name,
            format!("{} MHz", case.bus_mhz),
            case.offered_gbps,
            case.delivered_gbps(),
            found.bus_busy * 100.0,
            found.bus_data * 100.0,
            found.bursts_pps / 1e3,
            found.delivered_pps / found.bursts_pps.max(f64::MIN_POSITIVE),
        ));
    }
    lines
}

/// Writes the document into a folder, with a table and a page beside it; says which file it is.
///
/// # Errors
///
/// If it cannot be written.
pub fn keep(folder: &Path, answer: &Answer, seed: u64) -> Result<PathBuf> {
    write(folder, "cards", &document(answer, seed))
}

/// What was found, in the common format. Everything in it is modelled but the paper's numbers.
pub fn document(answer: &Answer, seed: u64) -> Document {
    let command = ["causeway", "model", "cards", "--seed", &seed.to_string()].map(str::to_owned);
    let about = "modelled: the enhanced cards of FPGA on a shared bus".to_owned();
    let machine = causeway_results::Machine { processor: about, processors: 1, ..Default::default() };
    let mut document = Document::new(Run { command: command.into(), machine, ..Run::default() });
    let (rate, axis) = (["delivered load", "Gbit/s"], ["cards", "of them"]);
    let slow = vec![(None, vec![answer.slow_pps * FRAME_BITS / 1e9])];
    document.series.push(modelled("A, by the processor/delivered", rate, axis, slow));
    for case in &answer.routing {
        let of = |what: &str| format!("{}, {} MHz/{what}", case.name, case.bus_mhz);
        let one = |value: f64| vec![(None, vec![value])];
        document.series.push(modelled(of("delivered"), rate, axis, one(case.delivered_gbps())));
        let busy = one(case.found.bus_busy * 100.0);
        document.series.push(modelled(of("bus busy"), ["bus busy", "%"], axis, busy));
        document.series.extend(case.paper_gbps.filter(|_| case.bus_mhz == BUSES[0].0).map(|gbps| {
            let note = "text of the paper, section IV-B".to_owned();
            let paper = Measurement { x: None, source: From::Measured, repetitions: vec![gbps], note };
            Series::single(&format!("the paper: {}/delivered", case.name), rate[0], rate[1], paper)
        }));
    }
    for (mhz, _) in BUSES {
        let all = || answer.growth.iter().filter(move |(_, case)| case.bus_mhz == mhz);
        let over = |value: fn(&Case) -> f64| {
            all().map(|(cards, case)| (Some(f64::from(*cards)), vec![value(case)])).collect()
        };
        let of = |what: &str| format!("{mhz} MHz/{what}, each card to all others");
        document.series.push(modelled(of("delivered"), rate, axis, over(Case::delivered_gbps)));
        let busy = over(|case| case.found.bus_busy * 100.0);
        document.series.push(modelled(of("bus busy"), ["bus busy", "%"], axis, busy));
    }
    document
}
