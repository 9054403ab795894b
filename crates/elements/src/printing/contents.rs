//! What printing elements share: bytes as text, timestamps, and the way out.

use causeway_engine::value::Value;
use causeway_engine::{Error, Scope};
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// How the bytes of a packet are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Not at all.
    None,
    /// As hexadecimal digits.
    Hex,
    /// As characters, with a dot for what is none.
    Ascii,
}

/// `NONE`, `HEX` or `ASCII` in any case, or a boolean that stands for the first two.
impl Value for Contents {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let word = String::parse(text, scope).map_err(Error::whole)?;
        match (bool::parse(&word, scope), word.to_ascii_uppercase().as_str()) {
            (Ok(true), _) | (_, "HEX") => Ok(Contents::Hex),
            (Ok(false), _) | (_, "NONE") => Ok(Contents::None),
            (_, "ASCII") => Ok(Contents::Ascii),
            (_, other) => {
                let what = format!("bad contents value '{other}'; should be 'NONE', 'HEX', or 'ASCII'");
                Err(Error::new(what).whole())
            }
        }
    }

    fn placeholder() -> Self {
        Contents::None
    }
}

/// Appends a byte in hexadecimal digits.
pub(crate) fn hex(text: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{byte:02x}");
}

/// The character for a byte: itself if it is printable ASCII, else a dot.
pub(super) fn printable(byte: u8) -> char {
    if (32..=126).contains(&byte) { byte as char } else { '.' }
}

/// Appends a time since the epoch, in seconds with six decimals, or nine if it is not a whole number of microseconds.
pub(crate) fn timestamp(text: &mut String, ns: u64) {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = match rest.is_multiple_of(1_000) {
        true => write!(text, "{seconds}.{:06}", rest / 1_000),
        false => write!(text, "{seconds}.{rest:09}"),
    };
}

/// Writes the lines of one batch to standard error, in one go. A closed standard error is no reason to stop.
pub(crate) fn to_stderr(lines: &str) {
    // Tests see it where they fail.
    #[cfg(test)]
    eprint!("{lines}");
    #[cfg(not(test))]
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// Writes to standard output what is to be there at once.
pub(crate) fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
