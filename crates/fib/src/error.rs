//! What can be wrong with a prefix or a change to a table.

use std::error::Error;
use std::fmt;

/// Why a text or a pair of address and length is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// The length is longer than an address.
    Length {
        /// The length given, in bits.
        len: u32,
        /// The longest length of the family, in bits.
        longest: u8,
    },
    /// The netmask has a zero before a one.
    Mask(String),
    /// An address of the other family.
    Family(String),
    /// Not an address at all.
    Syntax(String),
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixError::Length { len, longest } => {
                write!(f, "prefix length {len} is longer than the {longest} bits of an address")
            }
            PrefixError::Mask(text) => write!(f, "netmask {text} has a zero bit before a one bit"),
            PrefixError::Family(text) => write!(f, "{text} is an address of the other IP version"),
            PrefixError::Syntax(text) => write!(f, "{text:?} is not an IP address"),
        }
    }
}

impl Error for PrefixError {}

/// Why a change to a table was refused; the table is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FibError {
    /// `insert` of a prefix that has a route.
    Exists,
    /// `withdraw` of a prefix that has none.
    NotFound,
    /// There is no room, and waiting makes none.
    Full,
    /// There is no room until readers are done with what earlier changes replaced: the same change may fit then.
    Busy,
    /// The system gives no address space to a new table.
    Memory {
        /// What was asked for, in bytes.
        bytes: usize,
    },
    /// The adjacency index is zero (which means "no route") or above what the structure stores.
    AdjacencyRange {
        /// The index given.
        adjacency: u32,
        /// The largest index the structure stores.
        largest: u32,
    },
    /// Nobody holds this adjacency.
    AdjacencyUnused {
        /// The index given.
        adjacency: u32,
    },
    /// The adjacency is a group where a next hop is wanted, or the reverse.
    AdjacencyKind {
        /// The index given.
        adjacency: u32,
    },
    /// No member of the group has a weight.
    NoWeight,
}

impl fmt::Display for FibError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FibError::Exists => f.write_str("the prefix has a route already"),
            FibError::NotFound => f.write_str("the prefix has no route"),
            FibError::Full => f.write_str("the table is full; it is as it was before"),
            FibError::Busy => {
                f.write_str("readers hold the room that is left; the table is as it was before")
            }
            FibError::Memory { bytes } => {
                write!(f, "the system gives no address space for a part of a table, {bytes} bytes")
            }
            FibError::AdjacencyRange { adjacency, largest } => {
                write!(f, "adjacency {adjacency} is outside 1 to {largest}, which this table stores")
            }
            FibError::AdjacencyUnused { adjacency } => write!(f, "adjacency {adjacency} is not in use"),
            FibError::AdjacencyKind { adjacency } => {
                write!(f, "adjacency {adjacency} is a group where a next hop is wanted, or the reverse")
            }
            FibError::NoWeight => f.write_str("no member of the group has a weight"),
        }
    }
}

impl Error for FibError {}
