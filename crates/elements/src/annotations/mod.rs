//! Annotations: notes on a packet that travel with it.

use causeway_engine::Spec;
use causeway_engine::spec::{ArgDoc, optional};

mod check_paint;
mod paint;
mod paint_switch;
pub(crate) mod paint_tee;
mod set_anno_byte;
mod set_packet_type;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_paint::SPEC,
    &paint::SPEC,
    &paint_switch::SPEC,
    &paint_tee::SPEC,
    &set_anno_byte::SPEC,
    &set_packet_type::SPEC,
];

/// Where a packet's paint is looked for.
const ANNO: ArgDoc = optional("ANNO", "annotation", "where the paint is, one byte; default PAINT");
