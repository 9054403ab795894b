//! Annotations: notes on a packet that travel with it.

use causeway_engine::Spec;

mod paint;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&paint::SPEC];
