//! The format.

use crate::format::{FORMAT, VERSION};
use crate::{Error, Machine};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Everything that one run gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// Always `causeway-results`.
    #[cfg_attr(test, schemars(extend("const" = FORMAT)))]
    format: String,
    /// Version of the format.
    #[cfg_attr(test, schemars(extend("const" = VERSION)))]
    version: u32,
    /// What was run, where and when.
    pub run: Run,
    /// What came out, in the order in which it is shown.
    pub series: Vec<Series>,
}

/// What was run, where and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub began_unix_s: u64,
    /// The machine it ran on.
    pub machine: Machine,
    /// Versions of programs and libraries that took part, by name.
    pub versions: BTreeMap<String, String>,
    /// What else the numbers depend on, by name.
    pub settings: BTreeMap<String, String>,
}

/// Measurements of one quantity, of one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// What was measured, such as `memory/1000 routes/fused`. No two series have the same name.
    pub name: String,
    /// The quantity, such as `forwarding rate`.
    pub quantity: String,
    /// The unit of all values, such as `Mpps`.
    pub unit: String,
    /// What varies from one measurement to the next, if there are several.
    pub x: Option<Axis>,
    /// The series it is compared with: repetition by repetition, which were made in turns.
    pub baseline: Option<String>,
    /// The measurements, by rising `x`.
    pub measurements: Vec<Measurement>,
}

/// What varies along a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Axis {
    /// The quantity, such as `frame length`.
    pub quantity: String,
    /// Its unit, such as `bytes`; empty for what is counted.
    pub unit: String,
}

/// One thing measured as often as was thought necessary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Where it lies on the series' `x`.
    pub x: Option<f64>,
    /// Where the numbers come from.
    pub source: Source,
    /// The value of each repetition, in the order in which they were made.
    pub repetitions: Vec<f64>,
    /// What else there is to say, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Where numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Source {
    /// Real packets or lookups on the machine that the document names.
    Measured,
    /// A simulation or a formula.
    Modelled,
}

impl Source {
    /// As the document has it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Modelled => "modelled",
        }
    }
}

impl Measurement {
    /// What was measured, without `x` and note.
    pub fn measured(repetitions: impl Into<Vec<f64>>) -> Measurement {
        Measurement {
            x: None,
            source: Source::Measured,
            repetitions: repetitions.into(),
            note: String::new(),
        }
    }
}

impl Series {
    /// A series of one measurement.
    pub fn single(name: &str, quantity: &str, unit: &str, measurement: Measurement) -> Series {
        Series {
            name: name.to_owned(),
            quantity: quantity.to_owned(),
            unit: unit.to_owned(),
            x: None,
            baseline: None,
            measurements: vec![measurement],
        }
    }

    fn check(&self, names: &HashMap<&str, &Series>) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Invalid(format!("series '{}': {what}", self.name)));
        for one in &self.measurements {
            if one.repetitions.is_empty() {
                return wrong("a measurement has no repetitions");
            }
            if one.repetitions.iter().chain(&one.x).any(|value| !value.is_finite()) {
                return wrong("a number is not finite");
            }
            if one.x.is_some() != self.x.is_some() {
                return wrong("either it and all its measurements have an x, or none of them");
            }
        }
        if !self.measurements.is_sorted_by(|a, b| a.x.is_none() || a.x < b.x) {
            return wrong("the measurements are not in the order of x");
        }
        if self.x.is_none() && self.measurements.len() > 1 {
            return wrong("several measurements need an x");
        }
        match self.baseline.as_deref().map(|name| (name, names.get(name))) {
            Some((name, None)) => wrong(&format!("the baseline '{name}' is not among the series")),
            Some((name, Some(of))) if of.unit != self.unit || of.x != self.x => {
                wrong(&format!("the baseline '{name}' has another unit or another x"))
            }
            _ => Ok(()),
        }
    }
}

impl Document {
    /// A document without series.
    pub fn new(run: Run) -> Document {
        Document { format: FORMAT.to_owned(), version: VERSION, run, series: Vec::new() }
    }

    /// The series of a name.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If the text is no document, or one of another version, or contradicts itself.
    pub fn from_json(text: &str) -> Result<Document, Error> {
        // The head first: what else there is depends on the version.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
        }
        let head: Head = serde_json::from_str(text).map_err(Error::Json)?;
        if head.format != FORMAT {
            return Err(Error::Format(head.format));
        }
        if head.version != u64::from(VERSION) {
            return Err(Error::Version(head.version));
        }
        let document: Document = serde_json::from_str(text).map_err(Error::Json)?;
        document.check()?;
        Ok(document)
    }

    /// The document as text, which ends with a line feed.
    ///
    /// # Errors
    /// If it contradicts itself, or a number is not finite.
    pub fn to_json(&self) -> Result<String, Error> {
        self.check()?;
        serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(Error::Json)
    }

    fn check(&self) -> Result<(), Error> {
        let mut names = HashMap::new();
        for series in &self.series {
            if names.insert(series.name.as_str(), series).is_some() {
                return Err(Error::Invalid(format!("there are two series '{}'", series.name)));
            }
        }
        self.series.iter().try_for_each(|series| series.check(&names))
    }
}

#[cfg(test)]
mod tests;
