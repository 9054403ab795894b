//! Traces: packets from capture files and into them.

use causeway_engine::Spec;

mod capture;
mod compressed;
pub(crate) mod encap;
pub(crate) mod fields;
mod file_pattern;
mod flow_dump;
mod from_dump;
mod from_ip_summary_dump;
mod lines;
mod range;
mod records;
mod several;
mod to_dump;
mod to_ip_flow_dumps;
mod to_ip_summary_dump;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &from_dump::SPEC,
    &from_ip_summary_dump::SPEC,
    &to_dump::SPEC,
    &to_ip_flow_dumps::SPEC,
    &to_ip_summary_dump::SPEC,
];
