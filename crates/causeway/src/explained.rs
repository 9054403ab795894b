//! An error that is the whole answer to the user.

use std::error::Error;
use std::fmt;

/// Why a configuration does not run, as its user is told: whole lines, each with its end, which say where and need nothing
/// in front of them.
#[derive(Debug)]
pub struct Explained(String);

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Explained {}

impl From<String> for Explained {
    fn from(lines: String) -> Explained {
        Explained(lines)
    }
}

impl From<&str> for Explained {
    fn from(lines: &str) -> Explained {
        Explained(lines.to_owned())
    }
}
