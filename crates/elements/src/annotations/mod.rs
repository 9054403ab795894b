//! Annotations: notes on a packet that travel with it.

use causeway_engine::Spec;
use causeway_engine::spec::{ArgDoc, optional};

mod check_paint;
mod paint;
mod paint_switch;
pub(crate) mod paint_tee;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =

/// Place of the first-timestamp annotation, eight bytes: nanoseconds since the epoch, 0 = none.
pub(crate) const FIRST_TIMESTAMP: u8 = 32;

/// Where a packet's paint is looked for.
const ANNO: ArgDoc = optional("ANNO", "annotation", "where the paint is, one byte; default PAINT");
