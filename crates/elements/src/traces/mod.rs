//! Traces: packets from capture files and into them.

use causeway_engine::Spec;

mod capture;
pub(crate) mod encap;
mod from_dump;
mod range;
mod to_dump;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&from_dump::SPEC, &to_dump::SPEC];
