//! Names of files that tell flows apart: `%` and a letter stand for what a flow has.

use super::flow_dump::Origin;
use causeway_engine::Error;
use std::fmt::Write;

/// Of what an escape stands for.
const MOST_WIDTH: usize = 64;

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Escape { letter: char, zeros: bool, width: usize, precision: Option<usize> },
}

/// A name with escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePattern {
    parts: Vec<Part>,
}

impl FilePattern {
    /// Reads `%[0][WIDTH][.PRECISION]LETTER`.
    pub fn parse(text: &str) -> Result<FilePattern, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('%') {
            parts.push(Part::Text(before.to_owned()));
            let zeros = behind.starts_with('0');
            let (width, behind) = number(behind);
            let (precision, behind) = match behind.strip_prefix('.').map(number) {
                Some((precision, behind)) => (Some(precision), behind),
                None => (None, behind),
            };
            let letter = behind.chars().next().ok_or("bad filename pattern")?;
            if !"nxXsdSDp%".contains(letter) {
                return Err(Error::new(format!("bad filename pattern '%{letter}'")));
            }
            parts.push(Part::Escape { letter, zeros, width: width.min(MOST_WIDTH), precision });
            rest = &behind[1..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(FilePattern { parts })
    }

    /// Whether all flows have the same name.
    pub fn is_constant(&self) -> bool {
        self.parts.len() == 1
    }

    /// The name of the file of a flow.
    pub fn expand(&self, origin: &Origin) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name += text,
                Part::Escape { letter, zeros, width, precision } => {
                    let value = value(*letter, *precision, origin);
                    let fill = if *zeros { '0' } else { '_' };
                    name.extend(std::iter::repeat_n(fill, width.saturating_sub(value.len())));
                    name += &value;
                }
            }
        }
        name
    }
}

/// The number that `text` begins with, or zero, and what is behind it.
fn number(text: &str) -> (usize, &str) {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    (digits.parse().unwrap_or(0), rest)
}

fn value(letter: char, precision: Option<usize>, origin: &Origin) -> String {
    let mut text = String::new();
    // Bytes 0 to 3 from the upper end, and halves 4 and 5.
    let part = |n: u32| match precision {
        Some(byte @ 0..=3) => n >> (8 * (3 - byte)) & 0xff,
        Some(half @ 4..=5) => n >> (16 * (5 - half)) & 0xffff,
        _ => n,
    };
    let _ = match letter {
        'n' => write!(text, "{}", part(origin.aggregate)),
        'x' => write!(text, "{:x}", part(origin.aggregate)),
        'X' => write!(text, "{:X}", part(origin.aggregate)),
        's' | 'd' => {
            let address = if letter == 's' { origin.source } else { origin.destination };
            match precision {
                Some(byte @ 0..=3) => write!(text, "{}", address.octets()[byte]),
                _ => write!(text, "{address}"),
            }
        }
        'S' => write!(text, "{}", origin.ports.0),
        'D' => write!(text, "{}", origin.ports.1),
        'p' => write!(text, "{}", if origin.is_tcp { 'T' } else { 'U' }),
        _ => write!(text, "%"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Origin = Origin {
        aggregate: 0x0102_03ff,
        source: std::net::Ipv4Addr::new(10, 0, 0, 1),
        destination: std::net::Ipv4Addr::new(192, 168, 7, 9),
        ports: (80, 1024),
        is_tcp: true,
    };

    #[test]
    fn escapes_stand_for_what_the_flow_has() {
        for (pattern, name) in [
            ("flow", "flow"),
            ("a%nb%%", "a16909311b%"),
            ("%012n", "000016909311"),
            ("%12n", "____16909311"),
            ("%x-%X", "10203ff-10203FF"),
            ("%.0n.%.1n.%.2n.%.3x", "1.2.3.ff"),
            ("%.4n/%.5n", "258/1023"),
            ("%s-%d", "10.0.0.1-192.168.7.9"),
            ("%.0s.%.03d", "10.9"),
            ("%06S:%D%p", "000080:1024T"),
        ] {
            let parsed = FilePattern::parse(pattern).unwrap();
            assert_eq!(parsed.expand(&ORIGIN), name, "{pattern}");
            assert_eq!(parsed.is_constant(), pattern == "flow");
        }
        assert_eq!(FilePattern::parse("a%5"), Err(Error::new("bad filename pattern")));
        assert_eq!(FilePattern::parse("a%y"), Err(Error::new("bad filename pattern '%y'")));
    }
}
