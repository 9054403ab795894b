//! Switching: which output a packet takes, whatever is in it.

use causeway_engine::Spec;

mod switch;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&switch::SPEC];
