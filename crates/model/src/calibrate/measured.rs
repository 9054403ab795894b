//! What the laboratory measured in rounds, and which of its numbers calibrate.

use super::{LOAD_MOST, RATE_WITHIN};
use crate::veth::fit::{Target, What};
use anyhow::{Context, Result, ensure};
use causeway_results::stats::{median, quantile};
use causeway_results::{Document, Measurement, Series};

/// Repetitions from which on two modes can be seen.
const REPETITIONS: usize = 5;
/// A gap of this part of the median parts two modes, if it is some times wider than any other.
const GAP: (f64, f64) = (0.15, 3.0);
/// What the laboratory calls it that the tester could not offer a load: 0 or 1 for each trial.
const LIMITED: &str = "limited by the tester";
/// How names begin of what the machine takes for single things.
const SINGLE: &str = "machine/";
/// What is forwarded where more is offered than the tester sends, and what it takes to receive a frame.
const FORWARDED: &str = "/saturation forwarding rate";
const RECEIVING: &str = "/time to receive";
/// What it takes to hand frames over, by how many go together.
const HANDING_OVER: &str = "time to hand over";
/// Numbers of frames that are handed over, of which these times tell what one takes: alone, where few go together, and many.
pub const ALONE: f64 = 1.0;
pub const FEW: f64 = 4.0;
pub const MANY: f64 = 64.0;
/// The part of trials in which hand-overs found the device awake, at least: they pay for its waking otherwise.
const UNDISTURBED: f64 = 0.1;
/// Lengths below which nothing is left to predict.
const LENGTHS: usize = 3;
/// Percent of what a device carries from which on a second delay of the shortest frames calibrates.
const LOADED: u32 = 50;

/// A device's rates at a length, frames a second, where more is offered than the tester sends.
#[derive(Clone, Debug)]
pub struct Full {
    /// Length of frames.
    pub bytes: u32,
    /// What came back.
    pub forwarded: Vec<f64>,
}

/// Times inside at a load, microseconds.
#[derive(Clone, Debug)]
pub struct Look {
    /// Length of frames.
    pub bytes: u32,
    /// Percent of what the device carries.
    pub part: u32,
    /// Frames a second that were sent.
    pub load_fps: f64,
    /// The median, of each repetition.
    pub inside_us: Vec<f64>,
    /// Within which 99 of 100 are.
    pub late_us: Vec<f64>,
    /// Whether the tester could not offer it, in half of the trials or more.
    pub limited: bool,
    /// Half of all frames were handed over with so many at least.
    pub together: Option<f64>,
}

/// What the tester takes to receive frames of a length, where more is offered than it sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiving {
    /// Length of frames.
    pub bytes: u32,
    /// For each, nanoseconds.
    pub frame_ns: f64,
}

/// What the tester takes to hand frames of a length over, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOver {
    /// Length of frames.
    pub bytes: u32,
    /// One.
    pub alone_ns: f64,
    /// A few.
    pub few_ns: f64,
    /// Many.
    pub many_ns: f64,
}

impl HandOver {
    /// What is the same for one and for few.
    pub fn call_ns(self) -> f64 {
        let each_ns = (self.few_ns - self.alone_ns) / (FEW - ALONE);
        (self.alone_ns - each_ns).max(0.0)
    }
}

/// All of a device.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Rates, by rising length.
    pub full: Vec<Full>,
    /// Times, by rising length and load.
    pub looks: Vec<Look>,
    /// What the tester takes to receive, by rising length.
    pub receiving: Vec<Receiving>,
    /// What it takes to hand frames over, by rising length, where it was seen often enough.
    pub hand_overs: Vec<HandOver>,
}

/// The numbers that calibrate, and the points that they are of.
pub struct Chosen {
    /// For the fit.
    pub targets: Vec<Target>,
    /// Lengths whose rates are among them.
    pub rates: [u32; 2],
    /// Lengths and parts of delays.
    pub delays: [(u32, u32); 4],
    /// Of the shortest and the longest frames.
    pub hand_overs: [HandOver; 2],
    /// Of these too.
    pub receiving: [Receiving; 2],
}

/// What calibrates of a length.
struct Complete {
    rate: Target,
    hand_over: HandOver,
    receiving: Receiving,
}

/// Whether values are of two kinds: two groups of at least two with a gap between them that is like no other.
pub fn has_two_modes(values: &[f64]) -> bool {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let Some(middle) = median(&values) else { return false };
    let gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let inner = 1..gaps.len().saturating_sub(1);
    let Some(widest) = inner.max_by(|&a, &b| gaps[a].total_cmp(&gaps[b])) else { return false };
    let others = gaps.iter().enumerate().filter(|(n, _)| *n != widest).map(|(_, gap)| *gap);
    gaps[widest] > GAP.0 * middle && gaps[widest] > GAP.1 * others.fold(0.0, f64::max)
}

/// The one value that repetitions say.
pub fn steady(values: &[f64], what: &str) -> Result<f64> {
    let n = values.len();
    ensure!(n >= REPETITIONS, "{what}: {n} repetitions; from {REPETITIONS} on two modes can be told apart");
    ensure!(!has_two_modes(values), "{what} has two modes, and calibrates nothing: {values:.1?}");
    median(values).filter(|value| *value > 0.0).with_context(|| format!("{what} is nothing"))
}

/// All devices of a document of the laboratory's rounds.
///
/// # Errors
///
/// If there is none.
pub fn devices(document: &Document) -> Result<Vec<Measured>> {
    let names = document.series.iter().filter_map(|series| series.name.strip_suffix(FORWARDED));
    let all: Vec<Measured> = names.filter_map(|name| device(document, name)).collect();
    ensure!(!all.is_empty(), "no device of these results was measured in rounds");
    Ok(all)
}

/// What the machine takes for single things, picoseconds: medians of the rounds.
pub fn single_things(document: &Document) -> Vec<(&str, f64)> {
    let thing = |series: &'_ Series| median(&series.measurements.first()?.repetitions);
    let all =
        document.series.iter().filter_map(|series| Some((series.name.strip_prefix(SINGLE)?, thing(series)?)));
    all.collect()
}

fn device(document: &Document, name: &str) -> Option<Measured> {
    let values =
        |rest: &str| document.series(&format!("{name}{rest}")).map(|series| &series.measurements[..]);
    let at = |all: &[Measurement], x: f64| all.iter().find(|one| one.x == Some(x)).cloned();
    let full: Vec<Full> = values(FORWARDED)?
        .iter()
        .filter_map(|one| Some(Full { bytes: one.x? as u32, forwarded: one.repetitions.clone() }))
        .collect();
    let mut looks = Vec::new();
    for bytes in full.iter().map(|full| full.bytes) {
        let of = |what: &str| values(&format!("/{bytes} bytes/{what}"));
        let (Some(inside), Some(load)) = (of("median delay"), of("offered load")) else { continue };
        for one in inside {
            let Some(x) = one.x else { continue };
            let late = of("99 of 100 within").and_then(|all| at(all, x));
            let load_fps = at(load, x).and_then(|load| median(&load.repetitions));
            let limited = of(LIMITED).and_then(|all| median(&at(all, x)?.repetitions));
            looks.push(Look {
                bytes,
                part: x as u32,
                load_fps: load_fps?,
                inside_us: one.repetitions.clone(),
                late_us: late.map(|late| late.repetitions).unwrap_or_default(),
                limited: limited.is_some_and(|limited| limited >= 0.5),
                together: of("handed over together").and_then(|all| median(&at(all, x)?.repetitions)),
            });
        }
    }
    let hand_over = |bytes: u32| {
        let all = values(&format!("/{bytes} bytes/{HANDING_OVER}"))?;
        let ns = |frames: f64| quantile(&at(all, frames)?.repetitions, UNDISTURBED);
        Some(HandOver { bytes, alone_ns: ns(ALONE)?, few_ns: ns(FEW)?, many_ns: ns(MANY)? })
    };
    let hand_overs = full.iter().filter_map(|full| hand_over(full.bytes)).collect();
    let receive = |bytes: u32| {
        let frame_ns = median(&at(values(RECEIVING)?, f64::from(bytes))?.repetitions)?;
        Some(Receiving { bytes, frame_ns })
    };
    let receiving = full.iter().filter_map(|full| receive(full.bytes)).collect();
    Some(Measured { name: name.to_owned(), full, looks, receiving, hand_overs })
}

impl Measured {
    /// What calibrates: rates of the shortest and the longest frames, their delays at the lowest load, and one more of the shortest.
    ///
    /// # Errors
    ///
    /// If one of these does not have one value, or there are too few lengths.
    pub fn chosen(&self) -> Result<Chosen> {
        let name = &self.name;
        ensure!(
            self.full.len() >= LENGTHS,
            "{name}: {} lengths; two calibrate, and others are to be predicted",
            self.full.len()
        );
        // What does not have one value leaves its place to the next length.
        let mut complete = Vec::new();
        let mut why = None;
        for full in &self.full {
            match self.complete(full) {
                Ok(numbers) => complete.push(numbers),
                Err(error) => why = why.or(Some(error)),
            }
        }
        let [first, .., last] = &complete[..] else {
            return Err(why.unwrap_or_else(|| anyhow::anyhow!("{name}: nothing calibrates")));
        };
        let mut targets = vec![first.rate.clone(), last.rate.clone()];
        let rates = [first, last].map(|one| one.hand_over.bytes);
        let mut delays = [(0, 0); 4];
        let wanted = [(rates[0], 0), (rates[0], LOADED), (rates[1], 0), (rates[1], LOADED)];
        for (place, (bytes, from)) in delays.iter_mut().zip(wanted) {
            let mut looks = self.looks.iter().filter(|look| look.bytes == bytes && look.part >= from);
            let look = looks.find_map(|look| Some((look, look.one().ok()?)));
            let (look, measured) = look.with_context(|| {
                format!("{name}, {bytes} bytes: no delay from {from} % on has one value, and none calibrates")
            })?;
            *place = (bytes, look.part);
            targets.push(Target { bytes, load_fps: Some(look.load_fps), what: What::Inside, measured });
        }
        let (hand_overs, receiving) = ([first.hand_over, last.hand_over], [first.receiving, last.receiving]);
        Ok(Chosen { targets, rates, delays, hand_overs, receiving })
    }

    /// What calibrates of a length, if all of it is there and has one value.
    fn complete(&self, full: &Full) -> Result<Complete> {
        let (name, bytes) = (&self.name, full.bytes);
        let what = What::Forwarded;
        let measured = steady(&full.forwarded, &format!("{name} at {bytes} bytes, {}", what.name()))?;
        let rate = Target { bytes, load_fps: None, what, measured };
        let hand_over = self.hand_overs.iter().find(|one| one.bytes == bytes).copied();
        let hand_over = hand_over.with_context(|| {
            format!("{name}, {bytes} bytes: how long hand-overs take is not there, or was seen too seldom")
        })?;
        let receiving = self.receiving.iter().find(|one| one.bytes == bytes).copied();
        let receiving = receiving
            .with_context(|| format!("{name}, {bytes} bytes: what it takes to receive is not there"))?;
        Ok(Complete { rate, hand_over, receiving })
    }

    /// Whether times inside are promised at a load.
    ///
    /// # Errors
    ///
    /// If the tester fell behind, or it is far more of what the device forwards than it was to be.
    pub fn is_promised(&self, look: &Look) -> Result<()> {
        look.is_offered()?;
        let forwarded = self.full.iter().find(|full| full.bytes == look.bytes);
        let Some(forwarded) = forwarded.and_then(|full| median(&full.forwarded)) else { return Ok(()) };
        let part = look.load_fps / forwarded * 100.0;
        ensure!(
            part <= f64::from(LOAD_MOST) * (1.0 + RATE_WITHIN),
            "{} was so at {part:.0} % of what the rounds found, beyond what is promised",
            look.what()
        );
        Ok(())
    }
}

impl Look {
    /// The one value that it has.
    ///
    /// # Errors
    ///
    /// Why it has none.
    pub fn one(&self) -> Result<f64> {
        self.is_offered()?;
        steady(&self.inside_us, &self.what())
    }

    /// Whether the tester offered it.
    ///
    /// # Errors
    ///
    /// If it fell behind.
    pub fn is_offered(&self) -> Result<()> {
        ensure!(!self.limited, "{} was {LIMITED}, and calibrates nothing", self.what());
        Ok(())
    }

    fn what(&self) -> String {
        format!("the delay of {} bytes at {} %", self.bytes, self.part)
    }
}

impl Chosen {
    /// In words.
    pub fn words(&self) -> String {
        let [short, long] = self.rates;
        let delays: Vec<String> =
            self.delays.iter().map(|(bytes, part)| format!("of {bytes} bytes at {part} %")).collect();
        format!("rates of {short} and {long} bytes, and median delays {}", delays.join(", "))
    }
}
