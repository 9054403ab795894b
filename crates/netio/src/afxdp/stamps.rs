//! Tagged packets in a transmit ring: asks the kernel for the time of each, and finds it when the frame comes back.
//!
//! The request and its answer stand in the bytes right before the packet, `struct xsk_tx_metadata`. The kernel looks
//! there if the memory was registered with XDP_UMEM_TX_METADATA_LEN (Linux 6.11).

use super::socket::TX_METADATA;
use crate::completion::{Clock, Completion, Completions};
use causeway_packet::{Packet, pool};
use std::collections::VecDeque;

/// In a descriptor: there is metadata before the packet.
const XDP_TX_METADATA: u32 = 1 << 1;
/// In the metadata's first word: a time is asked for.
const XDP_TXMD_FLAGS_TIMESTAMP: u64 = 1 << 0;
/// Where the answer stands in the metadata.
const ANSWER: u64 = 8;

/// The tagged packets that are under way.
#[derive(Debug)]
pub struct Stamps {
    /// The clock of the answers; `None` where there are none.
    clock: Option<Clock>,
    /// Where each packet begins, and its tag, as they were sent: mostly they come back in that order.
    under_way: VecDeque<(u64, u64)>,
    done: Completions,
}

impl Stamps {
    /// For a queue that tells the time by `clock`, or does not.
    pub fn new(clock: Option<Clock>) -> Stamps {
        Stamps { clock, under_way: VecDeque::new(), done: Completions::default() }
    }

    /// Asks for the time of a tagged packet, which has room before it; returns the options of its descriptor.
    #[inline]
    pub fn prepare(&self, packet: &mut Packet) -> u32 {
        if packet.transmit_tag().is_none() || self.clock.is_none() {
            return 0;
        }
        let mut metadata = [0; TX_METADATA as usize];
        metadata[..8].copy_from_slice(&XDP_TXMD_FLAGS_TIMESTAMP.to_ne_bytes());
        if let Ok(room) = packet.push(metadata.len()) {
            room[..metadata.len()].copy_from_slice(&metadata);
            // What was pushed can be pulled.
            let _ = packet.pull(metadata.len());
        }
        XDP_TX_METADATA
    }

    /// A packet with this tag went into the ring; its first byte is at `address`.
    pub fn sent(&mut self, address: u64, tag: u64) {
        self.under_way.push_back((address, tag));
    }

    /// Frames came back: finds the tagged ones. Before the frames are anybody else's.
    #[inline]
    pub fn complete(&mut self, addresses: &[u64]) {
        if !self.under_way.is_empty() {
            addresses.iter().for_each(|&address| self.find(address));
        }
    }

    fn find(&mut self, address: u64) {
        let Some(at) = self.under_way.iter().position(|&(a, _)| a == address) else { return };
        let Some((_, tag)) = self.under_way.remove(at) else { return };
        let answer = self.clock.and_then(|clock| Some((answer(address)?, clock)));
        // A device that took no time left the zero that was written there.
        self.done.add(Completion { tag, sent: answer.filter(|&(ns, _)| ns > 0) });
    }

    /// Tells of those that came back.
    pub fn take(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.done.take(sink);
    }
}

/// The time that the kernel wrote for the packet at `address` of the pool's region.
fn answer(address: u64) -> Option<u64> {
    let (base, len) = pool::region();
    let at = address.checked_sub(u64::from(TX_METADATA) - ANSWER)?;
    if at + 8 > len as u64 {
        return None;
    }
    // SAFETY: inside the region, whose memory is there as long as the process. The kernel has given the frame back, so
    // nobody writes to it. It may not be aligned.
    Some(unsafe { base.add(at as usize).cast::<u64>().read_unaligned() })
}
