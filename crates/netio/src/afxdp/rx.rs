//! The receiving half of an AF_XDP queue.

use super::demand;
use super::level::Level;
use super::ring::{Consumer, Producer};
use super::{Ends, Seen};
use crate::port::Rx;
use crate::statistics::{Statistic, Statistics, Tally};
use causeway_packet::ledger::RingFrames;
use causeway_packet::{BATCH, Batch, Receiver};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The fill ring is topped up when this many entries are missing (fewer if it is small). A queue that cannot have as
/// many at the start is left to the kernel.
pub const FILL_CHUNK: u32 = 64;

/// Receives from one queue.
#[derive(Debug)]
pub struct AfXdpRx {
    rx: Consumer<libc::xdp_desc>,
    fill: Producer<u64>,
    /// Those in the rings or with the kernel.
    frames: RingFrames,
    /// After the rings and their frames, because the socket's end lets go of them.
    ends: Ends,
    /// Frames that the rings get; none if the queue is left to the kernel.
    level: Level,
    /// The fill ring is topped up when this many frames are missing.
    chunk: u32,
    /// What the clock of arrivals is ahead of `CLOCK_REALTIME`, in nanoseconds, if they stand in front of the frames.
    arrivals: Option<u64>,
    /// The pool was empty when the fill ring was to be topped up.
    hungry: bool,
    counts: Arc<Tally<4>>,
}

/// The numbers of a receiving half.
const PACKETS: usize = 0;
const BYTES: usize = 1;
/// Times the fill ring could not be topped up because the pool was empty.
const STARVED: usize = 2;
/// Descriptors of frames that the rings did not have.
const BAD: usize = 3;
const NAMES: [&str; 4] = ["rx_packets", "rx_bytes", "rx_pool_empty", "rx_drop_bad_descriptor"];

/// Frames that the rings of a receive queue get at least and at most, with a receive ring of `ring` entries. A copying
/// socket uses no more than that ring can show and one batch to go on with; a driver that shares frames keeps some in
/// its own ring.
fn frames_for(ring: u32, zero_copy: bool) -> (u32, u32) {
    match zero_copy {
        true => (ring + ring / 2, ring + ring / 2),
        false => (ring / 2 + BATCH as u32, ring + BATCH as u32),
    }
}

/// Frames that the rings of a receive queue get at most, with a receive ring of `ring` entries.
pub fn most_frames(ring: u32, zero_copy: bool) -> u32 {
    frames_for(ring, zero_copy).1
}

impl AfXdpRx {
    /// Receives by these rings, which are empty. The queue's slot in the socket map is set by the caller, if the queue
    /// [is fed](AfXdpRx::is_fed): a queue without frames would swallow its packets.
    ///
    /// `arrivals`: what their clock is ahead of `CLOCK_REALTIME`, in nanoseconds, where packets have their times of arrival
    /// in front.
    pub fn new(
        ends: Ends,
        rx: Consumer<libc::xdp_desc>,
        fill: Producer<u64>,
        frames: RingFrames,
        arrivals: Option<u64>,
    ) -> AfXdpRx {
        let (low, most) = frames_for(rx.size(), ends.socket.zero_copy);
        let level = Level::new(low, most.min(fill.size()).min(demand::share()));
        let chunk = FILL_CHUNK.min(level.frames() / 2).max(1);
        let mut half = AfXdpRx {
            rx,
            fill,
            frames,
            ends,
            level,
            chunk,
            arrivals,
            hungry: false,
            counts: Tally::new(NAMES),
        };
        let mut first = [0; FILL_CHUNK as usize];
        let first = &mut first[..half.chunk as usize];
        let n = half.frames.lend(first);
        if n < first.len() {
            half.level = Level::new(0, 0);
            // SAFETY: the kernel has never seen these addresses.
            unsafe { half.frames.release(&first[..n]) };
        }
        if half.is_fed() {
            first.iter().for_each(|&address| half.fill.write(address));
            half.refill();
        }
        half
    }

    /// Whether the pool had enough frames for the queue to start with.
    pub fn is_fed(&self) -> bool {
        self.level.frames() > 0
    }

    /// Frames that the rings may have and have not.
    fn missing(&self) -> u32 {
        self.level.frames().saturating_sub(self.frames.held())
    }

    /// Puts empty frames into the fill ring, as many as it may have or the pool has.
    fn refill(&mut self) {
        let mut addresses = [0; BATCH];
        loop {
            let room = self.fill.room().min(self.missing());
            let want = BATCH.min(room as usize);
            let n = self.frames.lend(&mut addresses[..want]);
            addresses[..n].iter().for_each(|&address| self.fill.write(address));
            self.fill.publish();
            self.hungry = n < want;
            if self.hungry {
                self.counts.add(STARVED, 1);
            }
            if n < BATCH {
                return;
            }
        }
    }

    /// Tops the fill ring up if it is time to.
    fn feed(&mut self) {
        if self.hungry || self.missing() >= self.chunk {
            self.refill();
        }
    }
}

impl Receiver for AfXdpRx {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let mut backlog = self.rx.waiting();
        if backlog == 0 {
            self.waiting();
            backlog = self.rx.waiting();
        }
        self.level.look(backlog);
        let n = (backlog as usize).min(budget).min(batch.room());
        let (before, mut bytes) = (batch.len(), 0);
        for _ in 0..n {
            let desc = self.rx.read();
            // SAFETY: read where the kernel gives back what it took from the fill ring.
            match unsafe { self.frames.receive(desc.addr, desc.len) } {
                Some(mut packet) => {
                    bytes += u64::from(desc.len);
                    if let Some((ahead_ns, arrival)) = self.arrivals.zip(packet.in_front()) {
                        packet.set_timestamp_ns(u64::from_ne_bytes(arrival).saturating_sub(ahead_ns));
                    }
                    // There is room for `n`.
                    let _ = batch.push(packet);
                }
                None => self.counts.add(BAD, 1),
            }
        }
        if n > 0 {
            self.rx.release();
            self.feed();
            self.counts.add(PACKETS, (batch.len() - before) as u64);
            self.counts.add(BYTES, bytes);
        }
        n < backlog as usize
    }

    fn waiting(&mut self) -> usize {
        let n = self.rx.waiting() as usize;
        if n > 0 {
            return n;
        }
        if self.hungry || self.fill.needs_wakeup() {
            self.feed();
        }
        if self.fill.needs_wakeup() {
            // A driver without empty frames would sleep for ever.
            self.ends.socket.kick_rx();
        }
        // With no frame left in its rings the queue is deaf: nothing would wake who sleeps on it. Only asking again
        // helps, until the pool has a frame.
        usize::from(self.hungry && self.frames.held() == 0)
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.ends.socket.fd.as_fd()]
    }
}

impl Rx for AfXdpRx {
    fn statistics(&self) -> Arc<dyn Statistics> {
        Arc::new(RxStatistics { counts: self.counts.clone(), seen: self.ends.downgrade() })
    }
}

/// All numbers of a receiving half.
struct RxStatistics {
    counts: Arc<Tally<4>>,
    seen: Seen,
}

impl Statistics for RxStatistics {
    fn list(&self) -> Vec<Statistic> {
        let mut list = self.counts.list();
        if let Some(s) = self.seen.socket() {
            // The kernel found no empty frame, or the packet was longer than one.
            list.push(("rx_drop_no_frame", s.rx_dropped));
            list.push(("rx_drop_ring_full", s.rx_ring_full));
            list.push(("rx_fill_ring_empty", s.rx_fill_ring_empty_descs));
            list.push(("rx_invalid_descriptor", s.rx_invalid_descs));
        }
        if let Some(attachment) = self.seen.attachment() {
            list.extend(attachment.verdicts());
            list.extend(attachment.counters.received());
        }
        list
    }
}

impl Drop for AfXdpRx {
    /// The kernel has the queue's packets from now on. The frames come back when the socket is gone.
    fn drop(&mut self) {
        self.ends.attachment.release_queue(self.ends.queue);
    }
}
