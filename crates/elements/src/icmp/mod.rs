//! ICMP: errors and answers.

use causeway_engine::Spec;

pub(crate) mod names;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[];
