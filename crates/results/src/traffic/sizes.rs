//! Lengths of frames: fixed, swept, or mixed as an IMIX genome says (RFC 6985).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Lengths of a genome's small letters (RFC 6985 §4).
const LETTERS: [(char, u32); 7] =
    [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518)];
/// The length of the longest sequence; the genomes that are in use have a few dozen.
const LONGEST_SEQUENCE: usize = 65_536;
/// The longest frame of any link, in bytes.
const LONGEST_FRAME: u32 = 65_535;

/// Lengths of a stream's frames in bytes, with the checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// From the first to at most the last by steps, then from the first again.
    Sweep {
        /// The first length.
        first: u32,
        /// The longest that may be.
        last: u32,
        /// By how much each is longer than the one before.
        step: u32,
    },
    /// A sequence that repeats itself (RFC 6985).
    Mix {
        /// A letter for each frame, `a` to `g` for 64, 128, 256, 512, 1024, 1280 and 1518 bytes, capital letters for
        /// lengths of one's own; a number before a letter says how often it is repeated.
        genome: String,
        /// The lengths of capital letters.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        custom: BTreeMap<char, u32>,
    },
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::Fixed(64)
    }
}

impl Sizes {
    /// The mix that is called simple: 64, 594 and 1518 bytes in the ratio 7:4:1, mean 361.8.
    pub fn simple_imix() -> Sizes {
        Sizes::Mix { genome: "7a4A1g".to_owned(), custom: BTreeMap::from([('A', 594)]) }
    }

    /// The mix of FD.io's CSIT, in the same ratio: 64, 570 and 1518 bytes, mean 353.8.
    pub fn csit_imix() -> Sizes {
        Sizes::Mix { genome: "28a16A4g".to_owned(), custom: BTreeMap::from([('A', 570)]) }
    }

    /// The lengths in order: the n-th frame has that of the place n modulo their number. It is not empty.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn sequence(&self) -> Result<Vec<u32>, String> {
        let sequence = match self {
            Sizes::Fixed(length) => vec![*length],
            Sizes::Sweep { step: 0, .. } => return Err("the step of a sweep is at least 1".to_owned()),
            Sizes::Sweep { first, last, .. } if first > last => {
                return Err(format!("a sweep from {first} to {last} has no lengths"));
            }
            Sizes::Sweep { last, .. } if *last > LONGEST_FRAME => {
                return Err(format!("a frame has at most {LONGEST_FRAME} bytes"));
            }
            Sizes::Sweep { first, last, step } => (*first..=*last).step_by(*step as usize).collect(),
            Sizes::Mix { genome, custom } => decode(genome, custom)?,
        };
        match sequence.iter().find(|&&length| length > LONGEST_FRAME) {
            Some(_) => Err(format!("a frame has at most {LONGEST_FRAME} bytes")),
            None => Ok(sequence),
        }
    }
}

impl fmt::Display for Sizes {
    /// As a description has it behind `size.`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(length) => write!(f, "fixed = {length}"),
            Sizes::Sweep { first, last, step } => {
                write!(f, "sweep = {{ first = {first}, last = {last}, step = {step} }}")
            }
            Sizes::Mix { genome, custom } => {
                write!(f, "mix = {{ genome = \"{genome}\"")?;
                let all: Vec<String> =
                    custom.iter().map(|(letter, length)| format!("{letter} = {length}")).collect();
                if !all.is_empty() {
                    write!(f, ", custom = {{ {} }}", all.join(", "))?;
                }
                f.write_str(" }")
            }
        }
    }
}

fn decode(genome: &str, custom: &BTreeMap<char, u32>) -> Result<Vec<u32>, String> {
    let (mut sequence, mut count) = (Vec::new(), None::<usize>);
    for letter in genome.chars() {
        if let Some(digit) = letter.to_digit(10) {
            // Saturates far beyond what is refused below.
            count = Some(count.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
            continue;
        }
        let known = LETTERS.iter().find(|(l, _)| *l == letter).map(|(_, length)| *length);
        let own = custom.get(&letter).copied().filter(|_| letter.is_ascii_uppercase());
        let length = known.or(own).ok_or_else(|| match letter {
            'A'..='Z' => format!("the genome's letter '{letter}' has no length among custom"),
            _ => {
                format!("'{letter}' is no letter of a genome: they are a to g, and A to Z for custom lengths")
            }
        })?;
        let times = count.take().unwrap_or(1);
        if times == 0 || sequence.len().saturating_add(times) > LONGEST_SEQUENCE {
            return Err(format!("a genome has 1 to {LONGEST_SEQUENCE} frames, each letter at least once"));
        }
        sequence.extend(std::iter::repeat_n(length, times));
    }
    match count {
        _ if sequence.is_empty() => Err("the genome has no letters".to_owned()),
        Some(_) => Err("the genome ends with a number; a letter must follow it".to_owned()),
        None => Ok(sequence),
    }
}
