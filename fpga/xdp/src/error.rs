//! What can go wrong between a rule table and a running router.

use causeway_nic_driver::RuleError;
use std::fmt;

/// An error of this crate; `Display` says what failed and what to do.
#[derive(Debug)]
pub enum Error {
    /// The table breaks a rule of its own.
    Rules(RuleError),
    /// The kernel or the assembler refused.
    Kernel(causeway_netio::Error),
    /// The interfaces do not fit the table.
    Interfaces(String),
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(e) => e.fmt(f),
            Self::Kernel(e) => e.fmt(f),
            Self::Interfaces(text) => f.write_str(text),
        }
    }
}

// Without `source`: the line has it already.
impl std::error::Error for Error {}

impl From<RuleError> for Error {
    fn from(e: RuleError) -> Self {
        Self::Rules(e)
    }
}

impl From<causeway_netio::Error> for Error {
    fn from(e: causeway_netio::Error) -> Self {
        Self::Kernel(e)
    }
}
