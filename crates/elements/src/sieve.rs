//! The commonest shape of an element: each packet passes, or is dropped for a reason.

use causeway_engine::Cx;
use causeway_packet::{Batch, Packet};

/// Leaves in `batch` the packets that `step` changes with success; the others are dropped for the reason it gives.
#[inline(always)]
pub(crate) fn pass_or_drop(
    batch: &mut Batch,
    cx: &mut Cx<'_>,
    mut step: impl FnMut(&mut Packet) -> Result<(), usize>,
) {
    batch.filter_map(|mut packet| match step(&mut packet) {
        Ok(()) => Some(packet),
        Err(reason) => {
            cx.drop(reason, packet);
            None
        }
    });
}
