//! Traces: packets from capture files and into them.

use causeway_engine::prelude::*;

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

/// A turn of a dump that pulls: at most `max` packets are written, and go on to its output if it has one.
fn pull_and_write(dump: &mut impl Element, max: usize, cx: &mut Cx<'_>) -> Run {
    let mut batch = cx.lend_batch();
    cx.pull(0, max, &mut batch);
    let pulled = batch.len();
    dump.push(0, &mut batch, cx);
    cx.emit_batch(0, batch);
    match pulled {
        0 if !cx.packets_upstream(0) => Run::Sleep,
        0 => Run::Idle,
        _ => Run::Worked,
    }
}
