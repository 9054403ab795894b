//! From answers to outputs: what all classifiers do with a batch.

use super::program::{Bases, DROP, Program, link};
use causeway_engine::{Cx, DropReason};
use causeway_packet::{BATCH, Batch, Packet};

/// Sends each packet of `batch` to the output that `program` says; `bases` finds its headers. Packets that no
/// pattern matches are dropped for `no_match`.
///
/// A batch whose packets all go one way, the usual case, moves as a whole.
#[inline]
pub(crate) fn dispatch(
    program: &Program,
    no_match: impl Into<DropReason> + Copy,
    batch: &mut Batch,
    cx: &mut Cx<'_>,
    bases: impl Fn(&Packet) -> Bases,
) {
    let mut answers = [0u32; BATCH];
    let mut same = true;
    for i in 0..batch.len() {
        batch.prefetch_data(i + 4);
        let packet = &batch[i];
        answers[i] = program.run(packet.data(), &bases(packet), || link(packet)) as u32;
        same &= answers[i] == answers[0];
    }
    match (same, answers[0] as usize) {
        (true, 0) => {}
        (true, DROP) => {
            cx.count_drops(no_match, batch.len() as u64);
            batch.clear();
        }
        (true, port) => {
            let mut out = cx.lend_batch();
            out.append(batch);
            cx.emit_batch(port, out);
        }
        (false, _) => {
            let mut answers = answers.iter();
            batch.filter_map(|packet| match answers.next().map(|&a| a as usize) {
                Some(0) | None => Some(packet),
                Some(DROP) => {
                    cx.drop(no_match, packet);
                    None
                }
                Some(port) => {
                    cx.emit(port, packet);
                    None
                }
            });
        }
    }
}
