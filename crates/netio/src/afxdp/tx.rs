//! The transmitting half of an AF_XDP queue.

use super::ring::{Consumer, Producer};
use super::socket::TX_METADATA;
use super::stamps::Stamps;
use super::{Ends, Seen};
use crate::completion::{Clock, Completion};
use crate::live::LiveTx;
use crate::port::Tx;
use crate::statistics::{Statistic, Statistics, Tally};
use causeway_packet::ledger::RingFrames;
use causeway_packet::{BATCH, Batch, NoRoom, Packet};
use std::sync::Arc;
use std::time::Duration;

/// So many packets leave a copy-mode port through a live-frame run, or more, up to a batch. Its fixed cost is that of
/// a dozen packets through the socket, and four runs cost twice what one of all their packets does
/// (`examples/veth_rates.rs` measures both).
const LIVE_MIN: usize = 16;
/// Flushes without a completion, while frames are in flight, after which a ring counts as stalled.
const STALL_FLUSHES: u32 = 64;
/// How often a half that is dropped tries once more to send what waits, and how long after the last time.
const LAST_FLUSHES: u32 = 50;
const LAST_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of an Ethernet header. The kernel skips an empty packet without giving its frame back.
const SHORTEST: usize = 14;

/// Transmits to one queue.
#[derive(Debug)]
pub struct AfXdpTx {
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    /// Those in the rings or with the kernel.
    frames: RingFrames,
    /// The tagged packets among them.
    stamps: Stamps,
    /// After the rings and their frames, because the socket's end lets go of them.
    ends: Ends,
    live: Option<LiveTx>,
    /// Packets since the last flush, which decides how they go, if there are two ways. None while it does.
    gathered: Option<Box<Batch>>,
    flushes_without_progress: u32,
    counts: Arc<Tally<11>>,
}

/// The numbers of a transmitting half.
const PACKETS: usize = 0;
const BYTES: usize = 1;
/// Calls of `offer` that left packets.
const FULL: usize = 2;
/// Calls of the kernel that failed for another reason than "call again".
const KICK_ERRORS: usize = 3;
const STALLS: usize = 4;
/// Frames reported as sent that the rings did not have.
const BAD: usize = 5;
const TOO_SHORT: usize = 6;
const NO_ROOM: usize = 7;
/// Packets that were taken and that the kernel did not take before the half was dropped. Those that were in the ring are
/// among those that went there too.
const CLOSED: usize = 8;
/// How often the completion ring was cleaned, of those times that there was something in it, and of how many frames.
const CLEANINGS: usize = 9;
const CLEANED: usize = 10;
const NAMES: [&str; 11] = [
    "tx_packets",
    "tx_bytes",
    "tx_ring_full",
    "tx_kick_error",
    "tx_stall",
    "tx_bad_completion",
    "tx_drop_too_short",
    "tx_drop_no_headroom",
    "tx_drop_closed",
    "tx_cleanings",
    "tx_cleaned_frames",
];

/// Room for what the device is told of the packet and tells of it.
fn make_room(packet: &mut Packet) -> Result<(), NoRoom> {
    if packet.headroom() < TX_METADATA as usize {
        packet.push(TX_METADATA as usize)?;
        packet.pull(TX_METADATA as usize)?;
    }
    Ok(())
}

impl AfXdpTx {
    /// Transmits by these rings, which are empty; large batches by `live`, if there is one.
    pub fn new(
        ends: Ends,
        tx: Producer<libc::xdp_desc>,
        completion: Consumer<u64>,
        frames: RingFrames,
        live: Option<LiveTx>,
        clock: Option<Clock>,
    ) -> AfXdpTx {
        AfXdpTx {
            tx,
            completion,
            frames,
            stamps: Stamps::new(clock),
            ends,
            live,
            gathered: Some(Box::default()),
            flushes_without_progress: 0,
            counts: Tally::new(NAMES),
        }
    }

    /// Takes back the frames of what was sent.
    fn complete(&mut self) {
        let mut addresses = [0; BATCH];
        let mut left = self.completion.waiting() as usize;
        if left == 0 {
            return;
        }
        self.counts.add(CLEANINGS, 1);
        self.counts.add(CLEANED, left as u64);
        while left > 0 {
            let n = left.min(BATCH);
            addresses[..n].fill_with(|| self.completion.read());
            self.stamps.complete(&addresses[..n]);
            // SAFETY: read where the kernel gives back what it took from the transmit ring.
            let released = unsafe { self.frames.release(&addresses[..n]) };
            self.counts.add(BAD, (n - released) as u64);
            left -= n;
        }
        self.completion.release();
        self.flushes_without_progress = 0;
    }

    fn kick(&mut self) {
        // In copy mode a call sends up to a budget of packets; a budget below the ring's size means more calls.
        for _ in 0..=self.tx.waiting() / 32 {
            match self.ends.socket.kick_tx().map_err(|e| e.raw_os_error()) {
                Ok(()) => return,
                Err(Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) if self.tx.waiting() > 0 => {
                    self.complete();
                }
                Err(Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) => return,
                Err(_) => {
                    self.counts.add(KICK_ERRORS, 1);
                    return;
                }
            }
        }
    }

    /// Puts a packet into the ring, whose room the caller has checked; returns its length if it went in.
    fn write(&mut self, mut packet: Packet) -> Option<u32> {
        if packet.len() < SHORTEST {
            self.counts.add(TOO_SHORT, 1);
            return None;
        }
        if make_room(&mut packet).is_err() {
            self.counts.add(NO_ROOM, 1);
            return None;
        }
        let options = self.stamps.prepare(&mut packet);
        let tag = packet.transmit_tag();
        let (addr, len) = self.frames.give(packet);
        if let Some(tag) = tag {
            self.stamps.sent(addr, tag);
        }
        self.tx.write(libc::xdp_desc { addr, len, options });
        Some(len)
    }
}

impl AfXdpTx {
    fn gather(&mut self, batch: &mut Batch) -> usize {
        self.gathered.as_mut().map_or(0, |gathered| gathered.append(batch))
    }

    fn gathered(&self) -> usize {
        self.gathered.as_ref().map_or(0, |gathered| gathered.len())
    }

    /// Sends the packets that were gathered, in a live-frame run if they are many; whether any went.
    fn send_gathered(&mut self) -> bool {
        let Some(mut batch) = self.gathered.take() else { return false };
        let went = self.send_live(&mut batch) || self.send_by_ring(&mut batch) > 0;
        self.gathered = Some(batch);
        went
    }

    fn send_live(&mut self, batch: &mut Batch) -> bool {
        if batch.len() < LIVE_MIN || self.live.is_none() {
            return false;
        }
        // Nobody would tell when they are sent.
        if batch.iter().any(|packet| packet.transmit_tag().is_some()) {
            return false;
        }
        // What waits in the ring goes first, or packets would overtake each other.
        if self.frames.held() > 0 {
            self.flush_ring();
        }
        if self.tx.waiting() > 0 {
            return false;
        }
        let Some((packets, bytes)) = self.live.as_mut().and_then(|live| live.send(batch)) else {
            return false;
        };
        self.counts.add(PACKETS, packets as u64);
        self.counts.add(BYTES, bytes as u64);
        true
    }

    /// Puts packets from the front of `batch` into the ring, as many as there is room for.
    fn send_by_ring(&mut self, batch: &mut Batch) -> usize {
        if self.tx.room() < batch.len() as u32 {
            self.flush_ring();
        }
        let mut taken = Batch::new();
        // Frames in flight never exceed the completion ring, so the kernel can always give them back.
        let room = self.tx.room().min(self.tx.size().saturating_sub(self.frames.held()));
        let n = taken.append_up_to(batch, room as usize);
        let (mut packets, mut bytes) = (0, 0);
        for len in taken.drain().filter_map(|packet| self.write(packet)) {
            packets += 1;
            bytes += u64::from(len);
        }
        self.counts.add(PACKETS, packets);
        self.counts.add(BYTES, bytes);
        self.tx.publish();
        n
    }

    fn flush_ring(&mut self) {
        if self.tx.waiting() > 0 && self.tx.needs_wakeup() {
            self.kick();
        }
        self.complete();
        if self.frames.held() == 0 {
            return;
        }
        self.flushes_without_progress += 1;
        if self.flushes_without_progress >= STALL_FLUSHES {
            // The kernel did not ask for a call but does not move either.
            self.flushes_without_progress = 0;
            self.counts.add(STALLS, 1);
            self.kick();
            self.complete();
        }
    }
}

impl Tx for AfXdpTx {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        if self.ends.attachment.is_gone() {
            // A run of live frames would go to whoever has the index now.
        } else if self.live.is_some() {
            while self.gather(batch) > 0 && !batch.is_empty() && self.send_gathered() {}
        } else {
            self.send_by_ring(batch);
        }
        self.counts.add(FULL, u64::from(!batch.is_empty()));
        before - batch.len()
    }

    fn flush(&mut self) {
        if self.ends.attachment.is_gone() {
            return self.complete();
        }
        if self.gathered() > 0 {
            self.send_gathered();
        }
        self.flush_ring();
    }

    fn in_flight(&self) -> usize {
        self.frames.held() as usize + self.gathered()
    }

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.stamps.take(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        let (counts, live) = (self.counts.clone(), self.live.as_ref().map(LiveTx::statistics));
        Arc::new(TxStatistics { counts, live, seen: self.ends.downgrade() })
    }
}

/// All numbers of a transmitting half.
struct TxStatistics {
    counts: Arc<Tally<11>>,
    live: Option<Arc<dyn Statistics>>,
    seen: Seen,
}

impl Statistics for TxStatistics {
    fn list(&self) -> Vec<Statistic> {
        let mut list = self.counts.list();
        if let Some(s) = self.seen.socket() {
            list.push(("tx_invalid_descriptor", s.tx_invalid_descs));
        }
        list.extend(self.live.iter().flat_map(|live| live.list()));
        if let Some(attachment) = self.seen.attachment() {
            list.extend(attachment.counters.transmitted());
        }
        list
    }
}

impl Drop for AfXdpTx {
    /// Sends what waits, which a device whose queue is full takes a little later. The frames that the kernel still has then come
    /// back when the socket is gone.
    #[expect(clippy::disallowed_methods, reason = "when a port is closed")]
    fn drop(&mut self) {
        self.flush();
        for _ in 0..LAST_FLUSHES {
            if self.tx.waiting() == 0 || self.ends.attachment.is_gone() {
                break;
            }
            std::thread::sleep(LAST_PAUSE);
            self.flush();
        }
        self.counts.add(CLOSED, self.gathered() as u64 + u64::from(self.tx.waiting()));
    }
}
