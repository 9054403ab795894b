//! The simplest elements: pass, drop, copy, cut.

use causeway_engine::Spec;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[];
