//! Scenarios as text: a setting a line, `#` begins a comment.
//!
//! ```text
//! cards 3                       # 2 to 8; port n leads to network n
//! path fast                     # or slow: all through the host
//! classify                      # two classes, by ToS
//! scheduler surplus 256         # or round-robin, high-first, longest-high; of surplus, the words of a turn
//! grant-min 0                   # words that an output FIFO must have free before it grants
//! bus 66                        # or 133 (MHz)
//! overhead 10                   # bus cycles a sequence, 5 to 36
//! host 1667                     # nanoseconds of the host's processor a packet
//! warm-up 1000                  # microseconds, and so
//! measure 10000
//! source 0 to 2 high 0.49       # a port and its destinations: to 1,2
//! source 1 to 2 load 0.8 bytes 512 high 0.49 poisson
//! seeds 1 2 3 4 5               # a run each; phases, and random spacing, are theirs
//! ```

use std::fmt;
use std::str::FromStr;

use super::{ResponsePolicy, Scenario, source};
use crate::testbed::{PCI_66_PS, PCI_133_PS};
use crate::traffic::{Source, Spacing};

/// What a file asks for.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    /// The scenario.
    pub scenario: Scenario,
    /// A run for each; one at least.
    pub seeds: Vec<u64>,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Counted from 1; 0 for what is missing as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for FileError {}

impl ScenarioFile {
    /// Reads a file's text; `name` is the scenario's in its results.
    ///
    /// # Errors
    /// What is unknown or out of range, with its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        let mut file = Self { scenario: Scenario::new(name, 0, Vec::new()), seeds: vec![1] };
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            file.setting(&words).map_err(|what| FileError { line: number + 1, what })?;
        }
        file.check().map_err(|what| FileError { line: 0, what })?;
        Ok(file)
    }

    fn setting(&mut self, words: &[&str]) -> Result<(), String> {
        let scenario = &mut self.scenario;
        match *words {
            [] => {}
            ["cards", n] => scenario.cards = number(n, 2, 8)?,
            ["path", path] => scenario.fast_path = one_of(path, &[("fast", true), ("slow", false)])?,
            ["classify"] => scenario.classify = true,
            ["scheduler", "surplus", words] => {
                scenario.policy = ResponsePolicy::Surplus { quantum_words: number(words, 1, 2_047)? };
            }
            ["scheduler", name] => {
                scenario.policy = one_of(name, &ResponsePolicy::ALL.map(|policy| (policy.name(), policy)))?;
            }
            ["grant-min", n] => scenario.grant_min_words = number(n, 0, 1_920)?,
            ["bus", mhz] => {
                scenario.bus_period_ps = one_of(mhz, &[("66", PCI_66_PS), ("133", PCI_133_PS)])?;
            }
            ["overhead", n] => scenario.bus_overhead_cycles = number(n, 5, 36)?,
            ["host", n] => scenario.host.packet_cost_ns = number(n, 0, 1_000_000)?,
            ["warm-up", us] => scenario.warm_up_ns = 1_000 * number(us, 0, 1_000_000)?,
            ["measure", us] => scenario.measure_ns = 1_000 * number(us, 1, 1_000_000)?,
            ["seeds", first, ref more @ ..] => {
                let seeds = std::iter::once(&first).chain(more);
                self.seeds = seeds.map(|s| number(s, 0, u32::MAX.into())).collect::<Result<_, _>>()?;
            }
            ["source", port, "to", dests, ref more @ ..] => {
                scenario.sources.push(parse_source(port, dests, more)?);
            }
            _ => return Err(format!("not understood: {}", words.join(" "))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let Scenario { cards, sources, .. } = &self.scenario;
        if *cards == 0 {
            return Err("cards is missing".into());
        }
        if sources.is_empty() {
            return Err("there is no source".into());
        }
        let beyond = |&n: &u8| usize::from(n) >= *cards;
        for source in sources {
            if let Some(n) = std::iter::once(&source.port).chain(&source.dests).find(|n| beyond(n)) {
                return Err(format!("there is no port {n} with {cards} cards"));
            }
            if sources.iter().filter(|other| other.port == source.port).count() > 1 {
                return Err(format!("port {} has two sources", source.port));
            }
        }
        Ok(())
    }
}

/// The settings as a file has them, on one line.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.fast_path { "fast" } else { "slow" };
        let mhz = if self.bus_period_ps == PCI_133_PS { 133 } else { 66 };
        write!(f, "cards {}; path {path}; ", self.cards)?;
        if self.classify {
            write!(f, "classify; ")?;
        }
        write!(f, "scheduler {}", self.policy.name())?;
        if let ResponsePolicy::Surplus { quantum_words } = self.policy {
            write!(f, " {quantum_words}")?;
        }
        write!(f, "; grant-min {}; bus {mhz}; ", self.grant_min_words)?;
        write!(f, "overhead {}; host {}; ", self.bus_overhead_cycles, self.host.packet_cost_ns)?;
        write!(f, "warm-up {}; measure {}", self.warm_up_ns / 1_000, self.measure_ns / 1_000)?;
        for source in &self.sources {
            let dests: Vec<String> = source.dests.iter().map(u8::to_string).collect();
            write!(f, "; source {} to {} load {} ", source.port, dests.join(","), source.load)?;
            write!(f, "bytes {} high {}", source.frame_bytes, source.high_share)?;
            if source.spacing == Spacing::Poisson {
                write!(f, " poisson")?;
            }
        }
        Ok(())
    }
}

fn parse_source(port: &str, dests: &str, more: &[&str]) -> Result<Source, String> {
    let dests = dests.split(',').map(|n| number(n, 0, 7)).collect::<Result<Vec<u8>, _>>()?;
    let mut source = source(number(port, 0, 7)?, &dests);
    let mut words = more.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value"));
        match *word {
            "load" => source.load = number(value()?, 0.000_1, 1.0)?,
            "bytes" => source.frame_bytes = number(value()?, 64, 1_518)?,
            "high" => source.high_share = number(value()?, 0.0, 1.0)?,
            "poisson" => source.spacing = Spacing::Poisson,
            _ => return Err(format!("not understood: {word}")),
        }
    }
    Ok(source)
}

fn number<T: FromStr + PartialOrd + fmt::Display>(text: &str, least: T, most: T) -> Result<T, String> {
    match text.parse() {
        Ok(n) if n >= least && n <= most => Ok(n),
        _ => Err(format!("{text} is no number from {least} to {most}")),
    }
}

fn one_of<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{text} is none of {}", names.join(", "))
    })
}
