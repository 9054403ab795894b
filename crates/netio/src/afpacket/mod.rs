//! AF_PACKET ports: the fallback that every interface and kernel has.
//!
//! Received frames come through a memory-mapped TPACKET_V3 ring and are copied once into the pool; a block of the ring
//! is handed over when it is full or after a millisecond, so latency is in milliseconds at low rates. Frames are sent
//! with one sendmmsg(2) a batch, past the queueing discipline.
//!
//! The kernel still sees every received frame and acts on it: turn its forwarding off (`sysctl net.ipv4.ip_forward=0`)
//! where this port forwards, or packets arrive twice.

mod counts;
mod entry;

use crate::completion::{Clock, Completion, Completions};
use crate::device_counters::DeviceCounters;
use crate::interface::{Interface, PromiscuousGuard, plain, set_option};
use crate::link::LinkEvents;
use crate::offload::{Offload, OffloadGuard};
use crate::port::{Capabilities, Port, Queue, Rx, Tx};
use crate::statistics::{Statistics, Tally};
use crate::{Error, Result};
use causeway_packet::{BATCH, Batch, Packet, Receiver, pool};
use counts::{Lost, RxStatistics, TxStatistics, rx, tx};
use entry::{entry, word};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const PACKET_IGNORE_OUTGOING: i32 = 23;
const TPACKET_V3: i32 = 2;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;

/// The ring has 8 MiB. Many blocks, because at low rates each is handed over almost empty: a receiver that does not
/// run for `BLOCKS * RETIRE_MS` milliseconds loses packets, however few they are.
const BLOCK_SIZE: usize = 1 << 15;
const BLOCKS: usize = 256;
/// Room in a block for what the kernel writes before a packet: the block's header, the packet's, and the link layer's.
const BEFORE_PACKET: u32 = 256;
/// Time after which a block that is not full is handed over.
const RETIRE_MS: u32 = 1;

/// Offsets in the header of a block, `struct tpacket_block_desc`.
mod block {
    pub const STATUS: usize = 8;
    pub const PACKETS: usize = 12;
    pub const FIRST: usize = 16;
}

/// `struct tpacket_req3`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Request {
    block_size: u32,
    block_count: u32,
    frame_size: u32,
    frame_count: u32,
    retire_ms: u32,
    private_size: u32,
    features: u32,
}

plain!(Request);

/// What is turned off on the interface: a packet socket would see packets merged.
pub(crate) const OFF: [Offload; 2] = [Offload::Lro, Offload::Gro];

/// What both halves keep: the descriptor, and what was changed on the interface.
#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    _offloads: Option<OffloadGuard>,
    _promiscuous: Option<PromiscuousGuard>,
    device: DeviceCounters,
}

/// The receive ring.
#[derive(Debug)]
struct RxRing {
    base: NonNull<u8>,
}

// SAFETY: the mapping is used by the one thread that owns the value.
unsafe impl Send for RxRing {}

impl RxRing {
    fn map(fd: &OwnedFd) -> io::Result<RxRing> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let size = BLOCK_SIZE * BLOCKS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, prot, flags, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast()) {
            Some(base) if base.as_ptr() as isize != -1 => Ok(RxRing { base }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn status(&self, block: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned; shared with the kernel, hence atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(block * BLOCK_SIZE + block::STATUS).cast()) }
    }

    /// The bytes of a block that the kernel has handed over.
    fn block(&self, block: usize) -> Option<&[u8]> {
        if self.status(block).load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: inside the mapping; the kernel does not write to a block until its status is given back, which
        // needs `&mut` of the receiving half and so cannot happen during this borrow.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(block * BLOCK_SIZE), BLOCK_SIZE) })
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: our own mapping, no longer used.
        unsafe { libc::munmap(self.base.as_ptr().cast(), BLOCK_SIZE * BLOCKS) };
    }
}

#[derive(Debug)]
struct PacketRx {
    shared: Arc<Shared>,
    ring: RxRing,
    block: usize,
    /// Packets left in the block, and where the next one is.
    left: usize,
    next: usize,
    counts: Arc<Tally<5>>,
    lost: Arc<Lost>,
}

impl PacketRx {
    /// Goes to the next block, if the kernel has handed it over, once the present one is used up.
    fn advance(&mut self) -> bool {
        while self.left == 0 {
            let Some(bytes) = self.ring.block(self.block) else { return false };
            self.left = word(bytes, block::PACKETS).unwrap_or(0) as usize;
            self.next = word(bytes, block::FIRST).unwrap_or(0) as usize;
            if self.left == 0 {
                self.give_back();
            }
        }
        true
    }

    fn give_back(&mut self) {
        self.ring.status(self.block).store(TP_STATUS_KERNEL, Ordering::Release);
        self.block = (self.block + 1) % BLOCKS;
        self.left = 0;
    }

    /// Takes the next packet of the present block.
    fn take(&mut self) -> Option<Packet> {
        let found = self.ring.block(self.block).and_then(|b| entry(b, self.next));
        let Some(entry) = found else {
            // The block contradicts itself: nothing more can be read from it.
            self.counts.add(rx::TOO_LONG, self.left as u64);
            self.give_back();
            return None;
        };
        let packet = entry.packet();
        match &packet {
            Some(packet) => {
                self.counts.add(rx::PACKETS, 1);
                self.counts.add(rx::BYTES, packet.len() as u64);
                self.counts.add(rx::UNFINISHED, u64::from(entry.unfinished));
            }
            None if entry.is_cut() || entry.data.len() + 4 > pool::config().frame_size as usize => {
                self.counts.add(rx::TOO_LONG, 1);
            }
            None => self.counts.add(rx::POOL_EMPTY, 1),
        }
        self.next += entry.next;
        self.left -= 1;
        if self.left == 0 {
            self.give_back();
        }
        packet
    }
}

impl Receiver for PacketRx {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let budget = budget.min(batch.room());
        let mut n = 0;
        while self.advance() {
            if n == budget {
                return true;
            }
            if let Some(packet) = self.take() {
                // There is room for so many.
                let _ = batch.push(packet);
                n += 1;
            }
        }
        false
    }

    fn waiting(&mut self) -> usize {
        if self.advance() { self.left } else { 0 }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.shared.fd.as_fd()]
    }
}

impl Rx for PacketRx {
    fn statistics(&self) -> Arc<dyn Statistics> {
        let (counts, lost) = (self.counts.clone(), self.lost.clone());
        Arc::new(RxStatistics { counts, lost, shared: Arc::downgrade(&self.shared) })
    }
}

#[derive(Debug)]
struct PacketTx {
    shared: Arc<Shared>,
    completions: Completions,
    counts: Arc<Tally<4>>,
}

impl Tx for PacketTx {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        // SAFETY: both are plain data, for which zeros are valid.
        let mut parts: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for ((part, message), packet) in parts.iter_mut().zip(&mut messages).zip(batch.iter()) {
            part.iov_base = packet.data().as_ptr().cast_mut().cast();
            part.iov_len = packet.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        let (fd, count) = (self.shared.fd.as_raw_fd(), batch.len() as u32);
        // SAFETY: `count` messages point to live parts, those to live packets; the kernel only reads the packets.
        let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
        let mut done = Batch::new();
        if sent >= 0 {
            done.append_up_to(batch, sent as usize);
            self.completions.sent(done.iter());
            self.counts.add(tx::PACKETS, done.len() as u64);
            self.counts.add(tx::BYTES, done.iter().map(|p| p.len() as u64).sum::<u64>());
        } else if !matches!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)
        ) {
            // The first packet cannot be sent (too long, interface down): it must not hold up the others.
            done.append_up_to(batch, 1);
            self.counts.add(tx::ERRORS, done.len() as u64);
        }
        self.counts.add(tx::FULL, u64::from(!batch.is_empty()));
        done.len()
    }

    fn flush(&mut self) {}

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.completions.take(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        Arc::new(TxStatistics { counts: self.counts.clone(), shared: Arc::downgrade(&self.shared) })
    }
}

/// Opens the interface `name` of the calling thread's network namespace.
///
/// # Errors
/// One line each, with what to do: missing privileges, no such interface, an MTU too large for the pool's frames.
pub fn open(name: &str, promiscuous: bool) -> Result<Port> {
    let interface = Interface::open(name)?;
    interface.check_mtu(headroom, pool::MOST_FRAME)?;
    let fd =
        ring_socket(&interface).map_err(|e| Error::system(format!("{name}: open a packet socket"), e))?;
    let ring = RxRing::map(&fd).map_err(|e| Error::system(format!("{name}: map the receive ring"), e))?;
    bind(&fd, &interface, libc::ETH_P_ALL)
        .map_err(|e| Error::system(format!("{name}: bind a packet socket"), e))?;
    let shared = Arc::new(Shared {
        fd,
        _offloads: Some(OffloadGuard::turn_off(&interface, &OFF)?),
        _promiscuous: promiscuous.then(|| PromiscuousGuard::new(&interface)).transpose()?,
        device: DeviceCounters::new(&interface),
    });
    let rx = PacketRx {
        shared: shared.clone(),
        ring,
        block: 0,
        left: 0,
        next: 0,
        counts: Tally::new(rx::NAMES),
        lost: Arc::default(),
    };
    let tx = PacketTx { shared, completions: Completions::default(), counts: Tally::new(tx::NAMES) };
    Ok(Port {
        capabilities: Capabilities { rx_timestamps: Some(Clock::Realtime), ..Capabilities::default() },
        events: LinkEvents::open(&interface),
        mode: format!("AF_PACKET, TPACKET_V3 ring, sendmmsg{}", interface.down_note()),
        name: interface.name,
        mac: interface.mac,
        mtu: interface.mtu,
        ifindex: interface.index,
        generic: false,
        queues: vec![Queue { rx: Box::new(rx), tx: Box::new(tx) }],
    })
}

/// A half that sends to `interface`, by a socket that receives nothing.
pub(crate) fn sender(interface: &Interface) -> Result<Box<dyn Tx>> {
    let open = || -> io::Result<OwnedFd> {
        let fd = socket()?;
        bind(&fd, interface, 0)?;
        Ok(fd)
    };
    let fd = open().map_err(|e| Error::system(format!("{}: open a packet socket", interface.name), e))?;
    let device = DeviceCounters::new(interface);
    let shared = Arc::new(Shared { fd, _offloads: None, _promiscuous: None, device });
    Ok(Box::new(PacketTx { shared, completions: Completions::default(), counts: Tally::new(tx::NAMES) }))
}

/// A packet socket that sends past the queueing discipline, not yet bound: protocol 0 receives nothing.
fn socket() -> io::Result<OwnedFd> {
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
    Ok(fd)
}

/// Bytes of a frame of so many that are not the packet's: the usual headroom, and where blocks of the ring are no longer than
/// frames what the kernel writes before a packet there.
fn headroom(frame: u32) -> u32 {
    let longer = frame + BEFORE_PACKET;
    longer.saturating_sub(BLOCK_SIZE as u32).max(Packet::HEADROOM as u32)
}

/// A packet socket with its ring, not yet bound.
fn ring_socket(interface: &Interface) -> io::Result<OwnedFd> {
    let fd = socket()?;
    set_option(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V3)?;
    set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
    let frame_size = (interface.mtu + BEFORE_PACKET).next_power_of_two().max(2048);
    let request = Request {
        block_size: BLOCK_SIZE as u32,
        block_count: BLOCKS as u32,
        frame_size,
        frame_count: (BLOCK_SIZE * BLOCKS) as u32 / frame_size,
        retire_ms: RETIRE_MS,
        private_size: 0,
        features: 0,
    };
    set_option(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
    Ok(fd)
}

/// Frames of the Ethernet type `protocol` are received from here on; none if it is 0.
fn bind(fd: &OwnedFd, interface: &Interface, protocol: i32) -> io::Result<()> {
    // SAFETY: plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface.index as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is live and its size is given.
    let r = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
