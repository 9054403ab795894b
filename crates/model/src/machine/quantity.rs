//! Quantities of machine files: a number, its unit, and where it comes from.

use crate::event::{NANOSECOND, Time};
use serde::Deserialize;
use std::fmt;
use std::marker::PhantomData;

/// What is measured, by which units, and which values make sense.
pub trait Kind {
    /// The units that may be written, each with how many of the smallest it is.
    const UNITS: &'static [(&'static str, u64)];
    /// The least and the greatest value, in the smallest unit.
    const RANGE: (u64, u64);
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $units:expr, $range:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Kind for $name {
            const UNITS: &'static [(&'static str, u64)] = &$units;
            const RANGE: (u64, u64) = $range;
        }
    )*};
}

kinds! {
    /// Cycles a second.
    Frequency: [("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)], (1_000_000, 100_000_000_000);
    /// Bytes of memory.
    Size: [("bytes", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)], (1, 1 << 30);
    /// Bytes of a cache.
    CacheSize: [("bytes", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)], (1 << 10, 256 << 20);
    /// Bytes of a cache's line.
    LineSize: [("bytes", 1)], (32, 1_024);
    /// Bytes a second.
    ByteRate: [("MB/s", 1_000_000), ("GB/s", 1_000_000_000)], (1_000_000, 10_000_000_000_000);
    /// Lines of a bus.
    Width: [("bit", 1)], (8, 1_024);
    /// Picoseconds.
    Span: [("ps", 1), ("ns", NANOSECOND), ("us", 1_000 * NANOSECOND), ("ms", 1_000_000 * NANOSECOND)],
        (0, 1_000_000_000 * NANOSECOND);
    /// Cycles of a processor or a bus.
    Cycles: [("cycles", 1)], (0, 1_000_000);
    /// Ways of a cache.
    Ways: [("ways", 1)], (1, 64);
    /// Places on a ring.
    Descriptors: [("descriptors", 1)], (1, 65_536);
    /// Processors.
    Processors: [("processors", 1)], (1, 64);
    /// Lines of a cache of what is known of a packet: of it, and one of its buffer.
    Lines: [("lines", 1)], (1, 5);
    /// Places of a hash table.
    Buckets: [("buckets", 1)], (1, 1 << 20);
    /// Runs of deferred work.
    Runs: [("runs", 1)], (1, 1_000);
    /// Places in a queue.
    Packets: [("packets", 1)], (1, 1_000_000);
    /// Bits a second of a link.
    BitRate: [("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)], (10_000_000, 800_000_000_000);
    /// Parts of a whole, in thousandths.
    Part: [("%", 10)], (0, 1_000);
    /// Millions of transfers a second.
    Transfers: [("MT/s", 1)], (100, 20_000);
    /// Channels of memory.
    Channels: [("channels", 1)], (1, 32);
    /// Processors.
    Cores: [("cores", 1)], (1, 256);
    /// A generation of PCI Express.
    Generation: [("generation", 1)], (1, 5);
    /// Lanes of PCI Express.
    Lanes: [("lanes", 1)], (1, 16);
    /// What is under way at a time, or has room.
    Count: [("at a time", 1)], (1, 4_096);
    /// Ways of a cache that cards write into.
    CardWays: [("ways", 1)], (0, 64);
    /// Flows.
    Flows: [("flows", 1)], (1, 100_000_000);
    /// Routes.
    Routes: [("routes", 1)], (1, 100_000_000);
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper says it: where.
    Given(String),
    /// A data sheet or other literature: which.
    Literature(String),
    /// A point of a figure was made to fit: which. It is no result.
    Calibrated(String),
    /// Nobody says: why it is so.
    Assumed(String),
}

impl Origin {
    /// As files call it, and what they say.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Origin::Given(what) => ("given", what),
            Origin::Literature(what) => ("literature", what),
            Origin::Calibrated(what) => ("calibrated", what),
            Origin::Assumed(what) => ("assumed", what),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (origin, what) = self.parts();
        write!(f, "{origin}: {what}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    value: String,
    given: Option<String>,
    literature: Option<String>,
    calibrated: Option<String>,
    assumed: Option<String>,
}

/// A value of a machine file.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Raw", bound = "K: Kind")]
pub struct Value<K> {
    /// In the smallest unit of its kind.
    pub value: u64,
    /// Where it comes from.
    pub origin: Origin,
    kind: PhantomData<K>,
}

impl<K: Kind> Value<K> {
    /// A value in the smallest unit of its kind; one out of its range is the next that is not.
    pub fn new(value: u64, origin: Origin) -> Value<K> {
        Value { value: value.clamp(K::RANGE.0, K::RANGE.1), origin, kind: PhantomData }
    }

    /// As a file has it.
    pub fn text(&self) -> String {
        let (origin, what) = self.origin.parts();
        let value = written::<K>(self.value);
        format!("{{ value = {}, {origin} = {} }}", quoted(&value), quoted(what))
    }
}

/// A string of TOML; what cannot be printed is left out.
pub(crate) fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

impl<K: Kind> TryFrom<Raw> for Value<K> {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let origins = [
            raw.given.map(Origin::Given),
            raw.literature.map(Origin::Literature),
            raw.calibrated.map(Origin::Calibrated),
            raw.assumed.map(Origin::Assumed),
        ];
        let mut origins = origins.into_iter().flatten();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return Err(
                "it says where it comes from by one of given, literature, calibrated, assumed".to_owned()
            );
        };
        Ok(Value { value: parse::<K>(&raw.value)?, origin, kind: PhantomData })
    }
}

fn parse<K: Kind>(text: &str) -> Result<u64, String> {
    let units = || K::UNITS.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ");
    let (number, unit) =
        text.split_once(' ').ok_or_else(|| format!("'{text}' is no number and unit: {}", units()))?;
    let number: f64 = number.parse().map_err(|_| format!("'{number}' is no number"))?;
    let known = K::UNITS.iter().find(|(known, _)| *known == unit);
    let (_, factor) =
        known.ok_or_else(|| format!("the unit '{unit}' does not fit; possible are {}", units()))?;
    let value = (number * *factor as f64).round();
    let (least, most) = K::RANGE;
    if !(least as f64..=most as f64).contains(&value) {
        return Err(format!("'{text}' is out of range: {} to {}", written::<K>(least), written::<K>(most)));
    }
    Ok(value as u64)
}

/// A value in the greatest unit in which it is whole.
fn written<K: Kind>(value: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| value > 0 && value.is_multiple_of(*factor);
    let (unit, factor) = K::UNITS.iter().rev().find(fits).unwrap_or(&K::UNITS[0]);
    format!("{} {unit}", value / factor)
}

impl Value<Cycles> {
    /// Picoseconds at a clock.
    pub fn at(&self, clock: &Value<Frequency>) -> Time {
        (u128::from(self.value) * 1_000_000_000_000 / u128::from(clock.value)) as Time
    }
}
