//! Making and binding AF_XDP sockets on the one packet memory.

use super::ring::{Consumer, Producer};
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{get_option, set_option};
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

/// A bound socket. The halves of its queue share it.
#[derive(Debug)]
pub struct Socket {
    /// The descriptor.
    pub fd: OwnedFd,
    /// Whether frames are shared with the driver instead of copied.
    pub zero_copy: bool,
}

/// A socket's rings.
#[derive(Debug)]
pub struct Rings {
    /// Received frames.
    pub rx: Consumer<libc::xdp_desc>,
    /// Empty frames for reception.
    pub fill: Producer<u64>,
    /// Frames to transmit.
    pub tx: Producer<libc::xdp_desc>,
    /// Frames transmitted.
    pub completion: Consumer<u64>,
}

/// Bound sockets by whose UMEM later ones may share: all of one kind, because the kernel wants every socket of a
/// UMEM in the same mode.
static BOUND: Mutex<Vec<Weak<Socket>>> = Mutex::new(Vec::new());

/// Whose UMEM a new socket takes.
enum Memory {
    /// Registers the pool's region.
    Own,
    /// That of another socket.
    Shared(Arc<Socket>),
}

/// Binds a socket to queue `queue` of the interface `ifindex`, with rings of `ring` entries and a fill ring of twice
/// as many. With `zero_copy` it must get that mode, without it copies.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the driver lacks the mode; [`ErrorKind::Busy`] if another socket has the queue.
pub fn bind(
    ifname: &str,
    ifindex: u32,
    queue: u32,
    ring: u32,
    zero_copy: bool,
) -> Result<(Arc<Socket>, Rings)> {
    if pool::config().mode != pool::Mode::Recycle {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("{ifname}: AF_XDP needs the recycling packet pool"),
        ));
    }
    // Held until the new socket is listed, so that two ports opened at once do not register two UMEMs.
    let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    bound.retain(|w| w.strong_count() > 0);
    for attempt in 0.. {
        let other = bound.iter().filter_map(Weak::upgrade).find(|s| s.zero_copy == zero_copy);
        let memory = other.map_or(Memory::Own, Memory::Shared);
        match try_bind(ifindex, queue, ring, zero_copy, &memory) {
            Ok((fd, rings)) => {
                let socket = Arc::new(Socket { fd, zero_copy });
                bound.push(Arc::downgrade(&socket));
                return Ok((socket, rings));
            }
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && attempt < BUSY_TRIES => {
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(e) => return Err(explain(ifname, queue, e)),
        }
    }
    unreachable!("the loop above only ends by returning")
}

fn explain(ifname: &str, queue: u32, e: io::Error) -> Error {
    let errno = e.raw_os_error();
    let error = Error::system(format!("{ifname}: bind an AF_XDP socket to queue {queue}"), e);
    match errno {
        Some(libc::EBUSY) => error
            .help(format!("another program, perhaps a second router, has the queue of {ifname}: stop it")),
        Some(libc::ENETDOWN) => error.help(format!("`ip link set dev {ifname} up`")),
        Some(libc::ENOBUFS | libc::ENOMEM) => error.help(
            "the memory-lock limit is too low: raise it (`ulimit -l unlimited`) or ask for fewer frames",
        ),
        Some(libc::EAFNOSUPPORT) => {
            error.help("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): use AF_PACKET")
        }
        _ => error,
    }
}

fn try_bind(
    ifindex: u32,
    queue: u32,
    ring: u32,
    zero_copy: bool,
    memory: &Memory,
) -> io::Result<(OwnedFd, Rings)> {
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    if matches!(memory, Memory::Own) {
        register(&fd)?;
    }
    let sizes = [
        (libc::XDP_UMEM_FILL_RING, ring * 2),
        (libc::XDP_UMEM_COMPLETION_RING, ring),
        (libc::XDP_RX_RING, ring),
        (libc::XDP_TX_RING, ring),
    ];
    for (name, size) in sizes {
        set_option(&fd, libc::SOL_XDP, name, &size)?;
    }
    // Older kernels do not know it; then one call transmits 32 packets and we call more often.
    let _ = set_option(&fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &ring);
    let rings =
        map_rings(&fd, ring).map_err(|e| io::Error::from_raw_os_error(e.errno().unwrap_or(libc::EIO)))?;
    let mode = if zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
    let (flags, shared) = match memory {
        Memory::Own => (mode | libc::XDP_USE_NEED_WAKEUP, 0),
        // Mode and wake-up are those of the socket that is shared with; other flags are refused.
        Memory::Shared(other) => (libc::XDP_SHARED_UMEM, other.fd.as_raw_fd() as u32),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared,
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the address is live and its size is given.
    let r = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    if r < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((fd, rings))
}

/// Registers the pool's region as the socket's UMEM.
fn register(fd: &OwnedFd) -> io::Result<()> {
    let (base, len) = pool::region();
    // SAFETY: plain data, for which zeros are valid.
    let mut umem: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    umem.addr = base as u64;
    umem.len = len as u64;
    umem.chunk_size = pool::config().frame_size;
    // The region lives as long as the process, so the kernel may write to it as long as it likes.
    set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem)
}

fn map_rings(fd: &OwnedFd, ring: u32) -> Result<Rings> {
    // SAFETY: plain data, for which zeros are valid.
    let zero: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let offsets = get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, zero)
        .map_err(|e| Error::system("ask for AF_XDP ring offsets", e))?;
    Ok(Rings {
        rx: Consumer::map(fd, &offsets.rx, libc::XDP_PGOFF_RX_RING, ring)?,
        tx: Producer::map(fd, &offsets.tx, libc::XDP_PGOFF_TX_RING, ring)?,
        fill: Producer::map(fd, &offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, ring * 2)?,
        completion: Consumer::map(fd, &offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, ring)?,
    })
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
