//! Making and binding AF_XDP sockets on the one packet memory.

use super::release::{OnClose, Place, Probe, bind as bind_to, taken};
use super::ring::{Consumer, Producer};
use crate::interface::{Interface, get_option, set_option};
use crate::{Error, ErrorKind, Result};
use causeway_packet::ledger::{Direction, RingFrames, RingName};
use causeway_packet::pool;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Socket option that sets how many packets one system call may transmit in copy mode (Linux 6.18).
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;
/// A queue is released some time after its last socket was closed; binding is tried this often, this far apart.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// Bytes right before a packet that is transmitted, for what is asked of the device for it and what the device says
/// of it: `struct xsk_tx_metadata`. They are registered with the memory, so every packet must leave them room.
pub const TX_METADATA: u32 = 24;

/// A bound socket. The halves of its queue share it. Fields are dropped in order: the wait for its frames begins when
/// it is closed.
#[derive(Debug)]
pub struct Socket {
    /// The descriptor.
    pub fd: OwnedFd,
    /// Whether frames are shared with the driver instead of copied.
    pub zero_copy: bool,
    /// Whether the kernel reads and writes metadata before transmitted packets.
    pub tx_metadata: bool,
    _on_close: OnClose,
}

/// A socket's rings, and the frames that are in them or with the kernel.
#[derive(Debug)]
pub struct Rings {
    /// Received frames.
    pub rx: Consumer<libc::xdp_desc>,
    /// Empty frames for reception.
    pub fill: Producer<u64>,
    /// The frames that went into `fill` and did not come back by `rx`.
    pub rx_frames: RingFrames,
    /// Frames to transmit.
    pub tx: Producer<libc::xdp_desc>,
    /// Frames transmitted.
    pub completion: Consumer<u64>,
    /// The frames that went into `tx` and did not come back by `completion`.
    pub tx_frames: RingFrames,
}

/// Which socket to make.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The interface.
    pub interface: &'a Interface,
    /// Its queue.
    pub queue: u32,
    /// Entries of the transmit ring, a power of two; the receive ring has twice as many, and the fill ring four times.
    pub ring: u32,
    /// Whether frames must be shared with the driver, or must be copied.
    pub zero_copy: bool,
    /// Whether the driver can share frames.
    pub driver_zero_copy: bool,
}

/// Bound sockets by whose UMEM later ones may share: all of one kind, because the kernel wants every socket of a
/// UMEM in the same mode.
static BOUND: Mutex<Vec<Weak<Socket>>> = Mutex::new(Vec::new());

/// Binds a socket.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the driver lacks the mode; [`ErrorKind::Busy`] if another socket has the queue.
#[expect(clippy::disallowed_methods, reason = "when a port is opened")]
pub fn bind(wanted: &Wanted<'_>) -> Result<(Arc<Socket>, Rings)> {
    let name = &wanted.interface.name;
    // Held until the new socket is listed, so that two ports opened at once do not register two UMEMs.
    let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    bound.retain(|w| w.strong_count() > 0);
    for attempt in 0.. {
        let other = bound.iter().filter_map(Weak::upgrade).find(|s| s.zero_copy == wanted.zero_copy);
        match try_bind(wanted, other.as_deref()) {
            Ok((socket, rings)) => {
                let socket = Arc::new(socket);
                bound.push(Arc::downgrade(&socket));
                return Ok((socket, rings));
            }
            Err(e) if e.errno() == Some(libc::EBUSY) && attempt < BUSY_TRIES => {
                std::thread::sleep(BUSY_PAUSE);
            }
            // The interface of the socket to share with is gone: its memory can be shared no more.
            Err(e) if e.errno() == Some(libc::EBADF) && other.is_some() => {
                bound.retain(|w| w.as_ptr() != other.as_ref().map_or(std::ptr::null(), Arc::as_ptr));
            }
            Err(e) => return Err(advise(name, e)),
        }
    }
    unreachable!("the loop above only ends by returning")
}

/// Adds what to do about a failed bind.
fn advise(name: &str, error: Error) -> Error {
    match error.errno() {
        Some(libc::EBUSY) => {
            error.help(format!("another program, perhaps a second router, has the queue of {name}: stop it"))
        }
        Some(libc::ENETDOWN) => error.help(format!("`ip link set dev {name} up`")),
        Some(libc::ENOBUFS | libc::ENOMEM) => error.help(
            "the memory-lock limit is too low: raise it (`ulimit -l unlimited`) or ask for fewer frames",
        ),
        Some(libc::EAFNOSUPPORT) => {
            error.help("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): use AF_PACKET")
        }
        _ => error,
    }
}

fn try_bind(wanted: &Wanted<'_>, other: Option<&Socket>) -> Result<(Socket, Rings)> {
    let &Wanted { interface: Interface { name, index, .. }, queue, ring, zero_copy, driver_zero_copy } =
        wanted;
    let (fd, registered) = prepare(ring, other.is_none().then(pool::region))?;
    let tx_metadata = other.map_or(registered, |socket| socket.tx_metadata);
    // Older kernels do not know it; then one call transmits 32 packets and we call more often.
    let _ = set_option(&fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &ring);
    if !zero_copy {
        make_room_for_copies(&fd, ring);
    }
    let (rx, fill, tx, completion) = map_rings(&fd, ring)?;
    let probe = Probe::new(driver_zero_copy)?;
    let mode = if zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
    let (flags, shared) = match other {
        None => (mode | libc::XDP_USE_NEED_WAKEUP, 0),
        // Mode and wake-up are those of the socket that is shared with; other flags are refused.
        Some(other) => (libc::XDP_SHARED_UMEM, other.fd.as_raw_fd() as u32),
    };
    bind_to(&fd, flags, *index, queue, shared)
        .map_err(|e| Error::system(format!("{name}: bind an AF_XDP socket to queue {queue}"), e))?;
    let place = Place::new(&fd, *index, queue);
    taken(place);
    let frames = |direction| {
        let ring = RingName { ifindex: *index, queue: queue as u16, direction };
        RingFrames::new(ring)
            .ok_or_else(|| Error::new(ErrorKind::Busy, format!("{name}: the table of rings is full")))
    };
    let (rx_frames, rx_claim) = frames(Direction::Receive)?;
    let (tx_frames, tx_claim) = frames(Direction::Transmit)?;
    let on_close = OnClose::new(place, probe, vec![rx_claim, tx_claim]);
    let socket = Socket { fd, zero_copy, tx_metadata, _on_close: on_close };
    Ok((socket, Rings { rx, fill, rx_frames, tx, completion, tx_frames }))
}

/// In copy mode the kernel makes a socket buffer of each frame that it sends, and what all of them take is limited as for
/// any socket: to a few hundred, which is less than the ring of a device holds. Makes it as many as our own ring does.
fn make_room_for_copies(fd: &OwnedFd, ring: u32) {
    /// What a buffer takes at most for a frame of 2 KiB, by the kernel's account.
    const BUFFER: u32 = 4_096;
    // The kernel doubles what it is given. Where it may not be had, fewer are under way at a time.
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(ring * BUFFER / 2));
}

/// A new socket with a transmit ring of `ring` entries and others to go with it, not bound. It registers the given
/// memory, or will share another's. Says whether the memory was registered with metadata.
pub fn prepare(ring: u32, memory: Option<(*mut u8, usize)>) -> Result<(OwnedFd, bool)> {
    let failed = |e| Error::system("make an AF_XDP socket", e);
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let registered = memory.map(|memory| register(&fd, memory)).transpose();
    let metadata = registered.map_err(|e| Error::system("register the packet memory", e))?;
    let sizes = [
        (libc::XDP_UMEM_FILL_RING, ring * 4),
        (libc::XDP_UMEM_COMPLETION_RING, ring),
        (libc::XDP_RX_RING, ring * 2),
        (libc::XDP_TX_RING, ring),
    ];
    for (name, size) in sizes {
        set_option(&fd, libc::SOL_XDP, name, &size).map_err(failed)?;
    }
    Ok((fd, metadata.unwrap_or(false)))
}

/// Registers memory, which lives as long as the process, as the socket's UMEM: the kernel may write there as long as
/// it likes. Says whether the kernel knows of metadata.
fn register(fd: &OwnedFd, (base, len): (*mut u8, usize)) -> io::Result<bool> {
    // SAFETY: plain data, for which zeros are valid.
    let mut umem: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    umem.addr = base as u64;
    umem.len = len as u64;
    umem.chunk_size = pool::config().frame_size;
    umem.flags = libc::XDP_UMEM_TX_METADATA_LEN;
    umem.tx_metadata_len = TX_METADATA;
    match set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem) {
        // Kernels before 6.11 know no such flag.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            (umem.flags, umem.tx_metadata_len) = (0, 0);
            set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem).map(|()| false)
        }
        other => other.map(|()| true),
    }
}

type Mapped = (Consumer<libc::xdp_desc>, Producer<u64>, Producer<libc::xdp_desc>, Consumer<u64>);

fn map_rings(fd: &OwnedFd, ring: u32) -> Result<Mapped> {
    // SAFETY: plain data, for which zeros are valid.
    let zero: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let offsets = get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, zero)
        .map_err(|e| Error::system("ask for AF_XDP ring offsets", e))?;
    Ok((
        Consumer::map(fd, &offsets.rx, libc::XDP_PGOFF_RX_RING, ring * 2)?,
        Producer::map(fd, &offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, ring * 4)?,
        Producer::map(fd, &offsets.tx, libc::XDP_PGOFF_TX_RING, ring)?,
        Consumer::map(fd, &offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, ring)?,
    ))
}

impl Socket {
    /// The kernel's drops of this socket.
    ///
    /// # Errors
    /// What getsockopt(2) says.
    pub fn statistics(&self) -> Result<libc::xdp_statistics> {
        // SAFETY: plain data, for which zeros are valid.
        let zero: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        get_option(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS, zero)
            .map_err(|e| Error::system("ask for AF_XDP statistics", e))
    }

    /// Asks the kernel to transmit what waits in the ring.
    pub fn kick_tx(&self) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: an empty message without address.
        let r = unsafe { libc::sendto(fd, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Asks the driver to look at the fill ring.
    pub fn kick_rx(&self) {
        let fd = self.fd.as_raw_fd();
        let null = std::ptr::null_mut();
        // SAFETY: receives nothing into nothing; only the side effect is wanted, and its failure means "later".
        unsafe { libc::recvfrom(fd, null, 0, libc::MSG_DONTWAIT, null.cast(), null.cast()) };
    }
}
