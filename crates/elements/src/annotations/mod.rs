//! Annotations: notes on a packet that travel with it.

use causeway_engine::Spec;

mod check_paint;
mod color;
mod paint;
pub(crate) mod paint_tee;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_paint::SPEC, &paint::SPEC, &paint_tee::SPEC];
