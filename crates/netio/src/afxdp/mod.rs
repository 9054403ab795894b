//! AF_XDP ports: the kernel keeps the interface, and gives what the XDP program redirects.
//!
//! [`open`] attaches the program of [`crate::front`], in the driver if it can, and binds a socket to every
//! receive queue, sharing frames with the driver if it can. All sockets use the packet pool's region as one UMEM,
//! so a frame received on one port is transmitted on another without a copy of ours. Copy-mode ports send large
//! batches through [`crate::live`].
//!
//! What is held on the interface (program, offloads turned off, promiscuous mode) goes with the last half dropped, and
//! all but the offloads when the device is gone.

mod demand;
#[cfg(test)]
mod frames_tests;
mod level;
mod release;
mod ring;
mod rx;
mod socket;
mod stamps;
#[cfg(test)]
mod tests;
mod tx;

use crate::attachment::{Attachment, Followed, Held, Link};
use crate::completion::Clock;
use crate::device_counters::DeviceCounters;
use crate::features::{FeatureQuery, Features};
use crate::front::{Claim, Front, Rules, Take};
use crate::interface::{Interface, PromiscuousGuard};
use crate::link::LinkEvents;
use crate::live::LiveTx;
use crate::offload::{Offload, OffloadGuard};
use crate::port::{Capabilities, Events, Port, Queue};
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{XdpLink, XdpMode};
use causeway_packet::pool;
pub use demand::Demand;
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};
use rx::AfXdpRx;
use socket::{Rings, Socket};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use tx::AfXdpTx;

/// Nanoseconds of a second.
const NS: i128 = 1_000_000_000;
/// Bytes that the kernel keeps free before a received frame in a chunk.
pub const XDP_HEADROOM: u32 = 256;

/// How to open a port.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is taken from the kernel at first.
    pub take: Take,
    /// Receive frames to other Ethernet addresses too.
    pub promiscuous: bool,
    /// Entries of the transmit ring, a power of two; the receive ring has twice as many, and the fill ring four times.
    /// Where senders are not held back by the receiver, as over veth, bursts of many TCP flows overflow what is smaller.
    pub ring: u32,
    /// Attach in generic mode even where the driver could.
    pub generic: bool,
    /// Send large batches of copy-mode ports as live frames where that is possible.
    pub live: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { take: Take::All, promiscuous: false, ring: 2048, generic: false, live: true }
    }
}

/// Most bytes of a frame: the kernel takes no longer pieces of a UMEM than its pages.
const MOST_FRAME: u32 = 4_096;

/// Whether the pool's frames, of so many bytes, can be those of a socket of AF_XDP.
fn check_frame_size(name: &str, bytes: u32) -> Result<()> {
    if bytes <= MOST_FRAME {
        return Ok(());
    }
    let what =
        format!("{name}: AF_XDP takes frames of at most {MOST_FRAME} bytes, and the pool's have {bytes}");
    let help = format!("run with `--frame-size {MOST_FRAME}`, or have the port opened by METHOD PACKET");
    Err(Error::new(ErrorKind::Unsupported, what).help(help))
}

/// Opens the interface `name` of the calling thread's network namespace behind `front`.
///
/// # Errors
/// One line each, with what to do: missing privileges, no such interface, an MTU too large for the pool's frames,
/// another XDP program or socket on the interface, an interface or kernel without AF_XDP.
pub fn open(name: &str, options: &Options, front: &Arc<Front>) -> Result<Port> {
    let interface = Interface::open(name)?;
    if pool::config().mode != pool::Mode::Recycle {
        let what = format!("{name}: AF_XDP needs the packet pool that recycles its frames");
        let help = "run without --no-recycling, or have the port opened by METHOD PACKET";
        return Err(Error::new(ErrorKind::Unsupported, what).help(help));
    }
    check_frame_size(name, pool::config().frame_size)?;
    if options.take == Take::All {
        // Who owns the interface expects all its frames; in transit the kernel takes those that do not fit.
        interface.check_mtu(|_| XDP_HEADROOM, MOST_FRAME)?;
    }
    let features = FeatureQuery::new().and_then(|q| q.get(interface.index)).ok();
    // Before the program is attached: some drivers refuse one while they merge frames.
    let offloads = OffloadGuard::turn_off(&interface, &Offload::HARMFUL)?;
    if options.take != Take::All
        && let Some(stuck) = offloads.stuck.first()
    {
        // It hides VLAN tags or merges frames, and what is forwarded would not be what came.
        let what = format!("{name}: the driver keeps {} on", stuck.name());
        return Err(Error::new(ErrorKind::Unsupported, what).help("leave it out: the kernel forwards to it"));
    }
    let partial_checksums = interface.has_partial_checksums();
    let rules = Rules { mac: Some(interface.mac), take: options.take, partial_checksums };
    let longest = Interface::longest_frame(XDP_HEADROOM);
    let claim = front.claim(interface.index, interface.queues, longest, rules)?;
    let (link, why) = attach(&interface, &claim, features, options.generic)?;
    let promiscuous = options.promiscuous.then(|| PromiscuousGuard::new(&interface)).transpose()?;
    let counters = DeviceCounters::new(&interface);
    let attached = link.mode();
    let attachment = Attachment::new(
        Held { _link: Link::Xdp(link), claim, _promiscuous: promiscuous },
        offloads,
        counters,
    );
    let mut mode = format!("AF_XDP, {}{why}", attached.name());
    let arrivals = front.tells_arrivals().then(tai_ahead_ns);
    let (mut queues, mut unfed, mut capabilities) = (Vec::new(), Vec::new(), None);
    for queue in 0..interface.queues {
        let how = How { attached, features, arrivals, options };
        let opened = open_queue(&attachment, &interface, queue, &how)?;
        if queue == 0 {
            mode.push_str(&opened.mode);
            capabilities = Some(opened.capabilities);
        }
        unfed.extend((!opened.fed).then_some(queue));
        queues.push(opened.queue);
    }
    if !unfed.is_empty() {
        mode.push_str(&format!("; queues {unfed:?} are left to the kernel: the pool has no frames for them"));
    }
    if !attachment.offloads.stuck.is_empty() {
        mode.push_str(&format!(
            "; the driver keeps {:?} on, which breaks forwarding",
            attachment.offloads.stuck
        ));
    }
    mode.push_str(&interface.down_note());
    let capabilities = capabilities.unwrap_or_default();
    let weak = Arc::downgrade(&attachment);
    let followed = |link| -> Box<dyn Events> { Box::new(Followed { link, attachment: weak }) };
    let events = LinkEvents::open(&interface).map(followed);
    let Interface { name, index, mac, mtu, .. } = interface;
    let generic = attached == XdpMode::Generic;
    Ok(Port { name, mac, mtu, ifindex: index, mode, generic, capabilities, events, queues })
}

/// Attaches in the driver, or else in the stack; the text says why not in the driver.
fn attach(
    interface: &Interface,
    claim: &Claim,
    features: Option<Features>,
    generic: bool,
) -> Result<(Arc<XdpLink>, &'static str)> {
    let try_mode = |mode| claim.attach(&interface.name, mode);
    if generic {
        return Ok((try_mode(XdpMode::Generic)?, " (as asked)"));
    }
    match try_mode(XdpMode::Native) {
        Ok(link) => Ok((link, "")),
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            let why = match features {
                Some(f) if !f.native() => " (the driver has no XDP)",
                _ => " (the driver refuses the program at this MTU or with these offloads)",
            };
            // If generic mode fails too, its error is the one to show: it is the last resort.
            Ok((try_mode(XdpMode::Generic)?, why))
        }
        Err(e) => Err(e),
    }
}

/// A queue, and what is to be said of it.
struct Opened {
    queue: Queue,
    mode: String,
    /// Whether it gets packets.
    fed: bool,
    capabilities: Capabilities,
}

/// How queues are opened.
struct How<'a> {
    attached: XdpMode,
    features: Option<Features>,
    /// What the clock of arrivals is ahead, where frames bring them.
    arrivals: Option<u64>,
    options: &'a Options,
}

/// What `CLOCK_TAI` is ahead of `CLOCK_REALTIME`, in nanoseconds: whole seconds.
#[expect(clippy::disallowed_methods, reason = "once a port, when it is opened")]
fn tai_ahead_ns() -> u64 {
    let ns = |now: Timespec| i128::from(now.tv_sec) * NS + i128::from(now.tv_nsec);
    let realtime = ns(clock_gettime(ClockId::Realtime));
    // A kernel that has no such clock has no times of arrival by it either.
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).map_or(realtime, ns);
    // A moment lies between the two looks.
    u64::try_from((tai - realtime + NS / 2) / NS * NS).unwrap_or(0)
}

fn open_queue(
    attachment: &Arc<Attachment>,
    interface: &Interface,
    queue: u32,
    how: &How<'_>,
) -> Result<Opened> {
    let How { attached, features, arrivals, options } = *how;
    let native = attached == XdpMode::Native;
    let driver_zero_copy = features.is_none_or(Features::zero_copy);
    let bind = |zero_copy| {
        let ring = options.ring;
        socket::bind(&socket::Wanted { interface, queue, ring, zero_copy, driver_zero_copy })
    };
    let tried = (native && driver_zero_copy).then(|| bind(true));
    let (bound, mut text) = match tried {
        Some(Ok(bound)) => (bound, ", zero-copy".to_owned()),
        Some(Err(e)) if matches!(e.kind(), ErrorKind::Busy | ErrorKind::Privilege) => return Err(e),
        Some(Err(e)) => (bind(false)?, format!(", copy (zero-copy: {e})")),
        None if native => (bind(false)?, ", copy (the driver has no zero-copy)".to_owned()),
        None => (bind(false)?, ", copy (generic mode)".to_owned()),
    };
    let (socket, rings) = bound;
    let live = match (socket.zero_copy, options.live) {
        (false, true) => match LiveTx::new(interface.index) {
            Ok(live) => {
                text.push_str(", live-frame transmission of large batches");
                Some(live)
            }
            Err(e) => {
                text.push_str(&format!(", no live-frame transmission ({e})"));
                None
            }
        },
        _ => None,
    };
    let capabilities = Capabilities {
        tx_timestamps: tx_clock(&socket, features),
        rx_timestamps: arrivals.map(|_| Clock::Realtime),
        max_frame: Interface::longest_frame(XDP_HEADROOM),
        headroom: XDP_HEADROOM,
        queues: interface.queues,
        zero_copy: socket.zero_copy,
    };
    let Rings { rx, fill, rx_frames, tx, completion, tx_frames } = rings;
    let tx = AfXdpTx::new(
        Ends { attachment: attachment.clone(), socket: socket.clone(), queue },
        tx,
        completion,
        tx_frames,
        live,
        capabilities.tx_timestamps,
    );
    let ends = Ends { attachment: attachment.clone(), socket: socket.clone(), queue };
    let rx = AfXdpRx::new(ends, rx, fill, rx_frames, arrivals);
    let fed = rx.is_fed();
    if fed {
        attachment.set_socket(queue, socket.fd.as_fd())?;
    }
    Ok(Opened { queue: Queue { rx: Box::new(rx), tx: Box::new(tx) }, mode: text, fed, capabilities })
}

/// The clock of transmitted frames: the device's where frames are shared with it, else the kernel's, which says when it
/// had done with its copy.
fn tx_clock(socket: &Socket, features: Option<Features>) -> Option<Clock> {
    match (socket.tx_metadata, socket.zero_copy) {
        (false, _) => None,
        (true, false) => Some(Clock::Tai),
        (true, true) => features.is_some_and(Features::tx_timestamps).then_some(Clock::Device),
    }
}

/// What the halves of a queue keep open.
#[derive(Debug)]
struct Ends {
    /// Dropped first.
    attachment: Arc<Attachment>,
    socket: Arc<Socket>,
    queue: u32,
}

impl Ends {
    /// What their statistics look at, as long as it is there.
    fn downgrade(&self) -> Seen {
        let (attachment, socket) = (Arc::downgrade(&self.attachment), Arc::downgrade(&self.socket));
        Seen { attachment, socket, queue: self.queue }
    }
}

/// [`Ends`] for who only looks: a queue that is closed must go, whoever still knows its numbers.
#[derive(Debug)]
struct Seen {
    attachment: Weak<Attachment>,
    socket: Weak<Socket>,
    queue: u32,
}

impl Seen {
    fn socket(&self) -> Option<libc::xdp_statistics> {
        self.socket.upgrade()?.statistics().ok()
    }

    /// What is counted for all queues together, which the first one tells.
    fn attachment(&self) -> Option<Arc<Attachment>> {
        self.attachment.upgrade().filter(|_| self.queue == 0)
    }
}
