//! From answers to outputs: what all classifiers do with a batch.

use super::program::{Bases, DROP, Program, link};
use causeway_engine::{Cx, DropReason};
use causeway_packet::{BATCH, Batch, Packet};

/// Sends each packet of `batch` to the output that `program` says; `bases` finds its headers. Packets that no
/// pattern matches are dropped for `no_match`.
#[inline]
pub(crate) fn dispatch(
    program: &Program,
    no_match: impl Into<DropReason>,
    batch: &mut Batch,
    cx: &mut Cx<'_>,
    bases: impl Fn(&Packet) -> Bases,
) {
    let mut outputs = [Cx::NOWHERE; BATCH];
    for i in 0..batch.len() {
        batch.prefetch_data(i + 4);
        let packet = &batch[i];
        let answer = program.run(packet.data(), &bases(packet), || link(packet));
        if answer != DROP {
            outputs[i] = answer as u32;
        }
    }
    let n = batch.len();
    cx.emit_each_or_drop(batch, &outputs[..n], no_match);
}
