//! What can be wrong with a document.

use crate::format::{FORMAT, VERSION};
use std::fmt;

/// Why a document cannot be read or written.
#[derive(Debug)]
pub enum Error {
    /// The text is not JSON, or lacks what a document has.
    Json(serde_json::Error),
    /// It is JSON of another kind.
    Format(String),
    /// It is a document of another version.
    Version(u64),
    /// What it says is not possible; in words.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Json(error) => write!(f, "not a document of results: {error}"),
            Error::Format(found) => write!(f, "the format is '{found}', not '{FORMAT}'"),
            Error::Version(found) => write!(
                f,
                "the results are of version {found} of the format, and only version {VERSION} is understood: \
                 run the measurement again, or read them with the program that wrote them"
            ),
            Error::Invalid(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Json(error) => Some(error),
            Error::Format(_) | Error::Version(_) | Error::Invalid(_) => None,
        }
    }
}
