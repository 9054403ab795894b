//! The two halves of an AF_XDP queue.

use super::Device;
use super::ring::{Consumer, Producer};
use super::socket::{Rings, Socket};
use crate::live::LiveTx;
use crate::port::{Counter, Rx, Tx};
use causeway_packet::{Batch, Packet};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Batches of at least this many packets leave a copy-mode port through a live-frame run. Its fixed cost is that of
/// a dozen packets through the socket (`examples/veth_rates.rs` measures both).
const LIVE_MIN: usize = 16;
/// Flushes without a completion, while frames are in flight, after which a ring counts as stalled.
const STALL_FLUSHES: u32 = 64;
/// The fill ring is topped up when this many entries are missing.
const FILL_CHUNK: u32 = 64;

/// Receives from one queue.
#[derive(Debug)]
pub struct AfXdpRx {
    device: Arc<Device>,
    socket: Arc<Socket>,
    queue: u32,
    rx: Consumer<libc::xdp_desc>,
    fill: Producer<u64>,
    packets: u64,
    bytes: u64,
    /// Times the fill ring could not be filled because the pool was empty.
    starved: u64,
    /// Descriptors outside the packet memory.
    bad: u64,
}

/// Transmits to one queue.
#[derive(Debug)]
pub struct AfXdpTx {
    /// Kept until both halves are gone.
    device: Arc<Device>,
    socket: Arc<Socket>,
    queue: u32,
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    live: Option<LiveTx>,
    in_flight: u32,
    packets: u64,
    bytes: u64,
    /// Calls of `transmit` that left packets.
    full: u64,
    /// Calls of the kernel that failed for another reason than "call again".
    kick_errors: u64,
    flushes_without_progress: u32,
    stalls: u64,
}

/// The halves over a bound socket. The queue's slot in the socket map is set by the caller.
pub fn halves(
    device: &Arc<Device>,
    socket: &Arc<Socket>,
    queue: u32,
    rings: Rings,
    live: Option<LiveTx>,
) -> (AfXdpRx, AfXdpTx) {
    let Rings { rx, fill, tx, completion } = rings;
    let (device, socket) = (device.clone(), socket.clone());
    let mut receiver = AfXdpRx {
        device: device.clone(),
        socket: socket.clone(),
        queue,
        rx,
        fill,
        packets: 0,
        bytes: 0,
        starved: 0,
        bad: 0,
    };
    receiver.refill();
    let transmitter = AfXdpTx {
        device,
        socket,
        queue,
        tx,
        completion,
        live,
        in_flight: 0,
        packets: 0,
        bytes: 0,
        full: 0,
        kick_errors: 0,
        flushes_without_progress: 0,
        stalls: 0,
    };
    (receiver, transmitter)
}

impl AfXdpRx {
    /// Puts empty frames into the fill ring, in chunks.
    fn refill(&mut self) {
        let room = self.fill.room();
        if room < FILL_CHUNK {
            return;
        }
        for _ in 0..room {
            let Some(frame) = Packet::with_headroom(0) else {
                self.starved += 1;
                break;
            };
            self.fill.write(frame.into_region().0);
        }
        self.fill.publish();
    }
}

impl Rx for AfXdpRx {
    fn pending(&mut self) -> usize {
        let n = self.rx.waiting() as usize;
        if n == 0 && self.fill.needs_wakeup() {
            // A driver without empty frames would sleep for ever.
            self.refill();
            self.socket.kick_rx();
        }
        n
    }

    fn receive(&mut self, batch: &mut Batch, max: usize) -> usize {
        let n = self.pending().min(max).min(batch.room());
        let before = batch.len();
        for _ in 0..n {
            let desc = self.rx.read();
            // SAFETY: the frame went into the fill ring by `into_region`, and the kernel gave it back just now.
            match unsafe { Packet::from_region(desc.addr, desc.len) } {
                Some(packet) => {
                    self.bytes += u64::from(desc.len);
                    // There is room for `n`.
                    let _ = batch.push(packet);
                }
                None => self.bad += 1,
            }
        }
        if n > 0 {
            self.rx.release();
            self.refill();
        }
        let got = batch.len() - before;
        self.packets += got as u64;
        got
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.socket.fd.as_raw_fd())
    }

    fn counters(&self) -> Vec<Counter> {
        let mut list = vec![
            ("rx_packets", self.packets),
            ("rx_bytes", self.bytes),
            ("rx_pool_empty", self.starved),
            ("rx_drop_bad_descriptor", self.bad),
        ];
        if let Ok(s) = self.socket.statistics() {
            // The kernel found no empty frame, or the packet was longer than one.
            list.push(("rx_drop_no_frame", s.rx_dropped));
            list.push(("rx_drop_ring_full", s.rx_ring_full));
            list.push(("rx_fill_ring_empty", s.rx_fill_ring_empty_descs));
            list.push(("rx_invalid_descriptor", s.rx_invalid_descs));
        }
        if self.queue == 0 {
            list.extend(self.device.verdicts());
            list.extend(self.device.counters.received());
        }
        list
    }
}

impl Drop for AfXdpRx {
    /// Takes the frames in the rings back. First the program stops sending to this queue, and every run of it that
    /// may have seen the old map ends; then nobody else touches the rings of a copy-mode socket. A zero-copy driver
    /// may still hold frames and keeps them: they are lost to the pool.
    fn drop(&mut self) {
        self.device.release_queue(self.queue);
        if self.socket.zero_copy || !grace_period() {
            return;
        }
        for _ in 0..self.rx.waiting() {
            let desc = self.rx.read();
            // SAFETY: as in `receive`.
            drop(unsafe { Packet::from_region(desc.addr, 0) });
        }
        for address in self.fill.reclaim() {
            // SAFETY: put there by us, and not taken; nobody takes it any more, see above.
            drop(unsafe { Packet::from_region(address, 0) });
        }
    }
}

/// Waits until every BPF program that runs now has ended; tells whether the kernel can do that.
fn grace_period() -> bool {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1;
    // SAFETY: the command takes no addresses. The kernel implements it as an RCU grace period.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0 }
}

impl AfXdpTx {
    /// Takes back the frames of what was sent.
    fn complete(&mut self) {
        let n = self.completion.waiting();
        for _ in 0..n {
            // SAFETY: the frame went into the transmit ring by `into_region`, and the kernel has just given it back.
            drop(unsafe { Packet::from_region(self.completion.read(), 0) });
        }
        if n > 0 {
            self.completion.release();
            self.in_flight = self.in_flight.saturating_sub(n);
            self.flushes_without_progress = 0;
        }
    }

    fn kick(&mut self) {
        // In copy mode a call sends up to a budget of packets; a budget below the ring's size means more calls.
        for _ in 0..=self.tx.waiting() / 32 {
            match self.socket.kick_tx().map_err(|e| e.raw_os_error()) {
                Ok(()) => return,
                Err(Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) if self.tx.waiting() > 0 => {
                    self.complete();
                }
                Err(Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) => return,
                Err(_) => {
                    self.kick_errors += 1;
                    return;
                }
            }
        }
    }
}

impl Tx for AfXdpTx {
    fn transmit(&mut self, batch: &mut Batch) -> usize {
        if batch.len() >= LIVE_MIN && self.live.is_some() {
            // What waits in the ring goes first, or packets would overtake each other.
            if self.in_flight > 0 {
                self.flush();
            }
            if let Some(live) = self.live.as_mut().filter(|_| self.tx.waiting() == 0)
                && let Some((packets, bytes)) = live.send(batch)
            {
                self.packets += packets as u64;
                self.bytes += bytes as u64;
                return packets;
            }
        }
        if self.tx.room() < batch.len() as u32 {
            self.flush();
        }
        let mut taken = Batch::new();
        // Frames in flight never exceed the completion ring, so the kernel can always give them back.
        let room = self.tx.room();
        let n = taken.append_up_to(batch, room as usize);
        for packet in taken.drain() {
            let (addr, len) = packet.into_region();
            self.bytes += u64::from(len);
            self.tx.write(libc::xdp_desc { addr, len, options: 0 });
        }
        self.tx.publish();
        self.in_flight += n as u32;
        self.packets += n as u64;
        self.full += u64::from(!batch.is_empty());
        n
    }

    fn flush(&mut self) {
        if self.tx.waiting() > 0 && self.tx.needs_wakeup() {
            self.kick();
        }
        self.complete();
        if self.in_flight == 0 {
            return;
        }
        self.flushes_without_progress += 1;
        if self.flushes_without_progress >= STALL_FLUSHES {
            // The kernel did not ask for a call but does not move either.
            self.flushes_without_progress = 0;
            self.stalls += 1;
            self.kick();
            self.complete();
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight as usize
    }

    fn counters(&self) -> Vec<Counter> {
        let mut list = vec![
            ("tx_packets", self.packets),
            ("tx_bytes", self.bytes),
            ("tx_ring_full", self.full),
            ("tx_kick_error", self.kick_errors),
            ("tx_stall", self.stalls),
        ];
        if let Ok(s) = self.socket.statistics() {
            list.push(("tx_invalid_descriptor", s.tx_invalid_descs));
        }
        list.extend(self.live.iter().flat_map(LiveTx::counters));
        if self.queue == 0 {
            list.extend(self.device.counters.transmitted());
        }
        list
    }
}

impl Drop for AfXdpTx {
    /// Sends what waits, then takes back what the kernel did not take. Frames that a device still holds are lost to
    /// the pool.
    fn drop(&mut self) {
        self.flush();
        if !self.socket.zero_copy {
            // In copy mode the kernel reads the ring only when we call it.
            for desc in self.tx.reclaim() {
                // SAFETY: put there by us, and not taken.
                drop(unsafe { Packet::from_region(desc.addr, 0) });
            }
        }
    }
}
