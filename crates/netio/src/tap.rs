//! TAP and TUN ports: interfaces that this process makes and is the wire of.
//!
//! A TAP carries Ethernet frames, a TUN bare IP packets. One packet is one system call in either direction, which the
//! kernel offers no way around. The interface goes with the port.

use crate::completion::{Completion, Completions};
use crate::interface::{Interface, set_flags, set_queue_length, set_up};
use crate::link::LinkEvents;
use crate::parcel;
use crate::port::{Capabilities, Port, Queue, Rx, Tx};
use crate::statistics::{Statistics, Tally};
use crate::{Error, Result};
use causeway_packet::{Batch, Packet, Receiver, pool};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

/// What an interface carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet frames.
    Tap,
    /// IPv4 and IPv6 packets without a link-layer header.
    Tun,
}

/// Packets that wait in each queue of a TAP for parcels, at most.
const QUEUE: u32 = 4_096;

/// How many that are none of ours are read at most before one that is.
const SKIPPED: usize = 64;

/// The numbers of a receiving half.
mod rx {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const POOL_EMPTY: usize = 2;
    pub const ERRORS: usize = 3;
    pub const TOO_LONG: usize = 4;
    pub const NAMES: [&str; 5] = ["rx_packets", "rx_bytes", "rx_pool_empty", "rx_error", "rx_drop_too_long"];
}

/// The numbers of a transmitting half.
mod tx {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const FULL: usize = 2;
    pub const ERRORS: usize = 3;
    pub const NAMES: [&str; 4] = ["tx_packets", "tx_bytes", "tx_ring_full", "tx_drop_error"];
}

#[derive(Debug)]
struct TapRx {
    file: Arc<File>,
    /// Whether what is read are [parcels](crate::parcel).
    parcels: bool,
    /// A packet read to find out whether one waits.
    ahead: Option<Packet>,
    counts: Arc<Tally<5>>,
}

#[derive(Debug)]
struct TapTx {
    file: Arc<File>,
    completions: Completions,
    counts: Arc<Tally<4>>,
}

impl TapRx {
    fn new(file: Arc<File>, parcels: bool) -> TapRx {
        TapRx { file, parcels, ahead: None, counts: Tally::new(rx::NAMES) }
    }

    /// The next packet, within `None` if there is nothing. One that is none of ours may lie in front of others: `None` if so many do
    /// that there may be more.
    fn read(&mut self) -> Option<Option<Packet>> {
        (0..SKIPPED).find_map(|_| self.take())
    }

    /// Reads once. `None` if that was none of ours, and within it `None` if there is nothing.
    fn take(&mut self) -> Option<Option<Packet>> {
        let Some(mut packet) = Packet::new() else {
            self.counts.add(rx::POOL_EMPTY, 1);
            return Some(None);
        };
        let room = packet.tailroom();
        let Ok(buffer) = packet.put(room) else { return Some(None) };
        match (&*self.file).read(buffer) {
            Ok(n) => {
                packet.truncate(n);
                // What fills the room may have been longer; others may write to a TAP what is no parcel.
                let wrong = match self.parcels {
                    true if n == room => Some(rx::TOO_LONG),
                    true if !parcel::unwrap(&mut packet) => Some(rx::ERRORS),
                    _ => None,
                };
                if let Some(wrong) = wrong {
                    self.counts.add(wrong, 1);
                    return None;
                }
                self.counts.add(rx::PACKETS, 1);
                self.counts.add(rx::BYTES, packet.len() as u64);
                Some(Some(packet))
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Some(None),
            Err(_) => {
                self.counts.add(rx::ERRORS, 1);
                Some(None)
            }
        }
    }
}

impl Receiver for TapRx {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        for _ in 0..budget.min(batch.room()) {
            let next = self.ahead.take().map(Some).or_else(|| self.read());
            // Whoever waits hears of those that are left no more.
            let Some(next) = next else { return true };
            let Some(packet) = next else { return false };
            // There is room for so many.
            let _ = batch.push(packet);
        }
        true
    }

    fn waiting(&mut self) -> usize {
        if self.ahead.is_none() {
            let Some(next) = self.read() else { return 1 };
            self.ahead = next;
        }
        usize::from(self.ahead.is_some())
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.file.as_fd()]
    }
}

impl Rx for TapRx {
    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

impl Tx for TapTx {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        let mut taken = 0;
        for packet in batch.iter() {
            match (&*self.file).write(packet.data()) {
                Ok(n) => {
                    self.counts.add(tx::PACKETS, 1);
                    self.counts.add(tx::BYTES, n as u64);
                    self.completions.sent(std::iter::once(packet));
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                // A packet that the kernel refuses (no IP version, interface down) must not hold up the others.
                Err(_) => self.counts.add(tx::ERRORS, 1),
            }
            taken += 1;
        }
        Batch::new().append_up_to(batch, taken);
        self.counts.add(tx::FULL, u64::from(!batch.is_empty()));
        taken
    }

    fn flush(&mut self) {}

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.completions.take(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

/// Makes the interface `name` in the calling thread's network namespace, or takes a persistent one of that name, and
/// sets it up. It has so many queues, if it is not persistent with one; the kernel sends the packets of a flow through
/// the one by which the flow came last.
///
/// # Errors
/// Missing privileges, no `/dev/net/tun`, the name in use by another process or another kind of interface.
pub fn open(name: &str, kind: Kind, queues: usize) -> Result<Port> {
    let (files, name) = make_all(name, kind, queues)?;
    finish(files, &name, kind)
}

fn make_all(name: &str, kind: Kind, queues: usize) -> Result<(Vec<File>, String)> {
    if queues <= 1 {
        let (file, name) = make(name, kind, 0)?;
        return Ok((vec![file], name));
    }
    let (first, name) = match make(name, kind, libc::IFF_MULTI_QUEUE) {
        Err(e) if e.errno() == Some(libc::EINVAL) => return make_all(name, kind, 1),
        first => first?,
    };
    let more = (1..queues).map(|_| Ok(make(&name, kind, libc::IFF_MULTI_QUEUE)?.0));
    let files = std::iter::once(Ok(first)).chain(more).collect::<Result<_>>()?;
    Ok((files, name))
}

/// Makes a TAP that gets no address and is no neighbour of anybody: for what the kernel should think of as a wire. A
/// `%d` in the name stands for the first free number.
///
/// # Errors
/// As [`open`].
pub fn open_bare(name: &str) -> Result<Port> {
    let (file, name) = make(name, Kind::Tap, 0)?;
    silence(&name)?;
    finish(vec![file], &name, Kind::Tap)
}

/// Makes such a TAP with so many queues, and returns its index and what receives of each queue, which are the frames of
/// [parcels](crate::parcel).
///
/// # Errors
/// As [`open`].
pub(crate) fn open_above(name: &str, queues: usize) -> Result<(Interface, Vec<Box<dyn Rx>>)> {
    let (files, name) = make_all(name, Kind::Tap, queues)?;
    silence(&name)?;
    // A super-packet becomes as many as it has parts at once.
    set_queue_length(&name, QUEUE)?;
    set_up(&name)?;
    let receiver = |file| -> Box<dyn Rx> { Box::new(TapRx::new(Arc::new(file), true)) };
    Ok((Interface::open(&name)?, files.into_iter().map(receiver).collect()))
}

/// Has the kernel send nothing of its own there. To be called before the interface is set up, or it gets a link-local address
/// (RFC 4862 §5.3).
fn silence(name: &str) -> Result<()> {
    // A kernel without IPv6 has no such file.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    set_flags(name, libc::IFF_NOARP)
}

fn make(name: &str, kind: Kind, more: i32) -> Result<(File, String)> {
    const PATH: &str = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(PATH);
    let file = file.map_err(|e| match Error::system(format!("open {PATH}"), e) {
        e if e.errno() == Some(libc::ENOENT) => e.help("`modprobe tun`"),
        e if e.errno() == Some(libc::EACCES) => e.help(format!("run as root, or `chmod a+rw {PATH}`")),
        e => e,
    })?;
    let flags = more | libc::IFF_NO_PI | if kind == Kind::Tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let name = crate::interface::attach_tun(&file, name, flags).map_err(|e| match e.errno() {
        Some(libc::EBUSY) => e.help("another process holds it: stop it or choose another name"),
        Some(libc::EINVAL) => e.help("there is another kind of interface of that name: choose another name"),
        _ => e,
    })?;
    Ok((file, name))
}

fn finish(files: Vec<File>, name: &str, kind: Kind) -> Result<Port> {
    set_up(name)?;
    let interface = Interface::open(name)?;
    interface.check_mtu(|_| Packet::HEADROOM as u32, pool::MOST_FRAME)?;
    let queues: Vec<Queue> = files.into_iter().map(queue).collect();
    Ok(Port {
        events: LinkEvents::open(&interface),
        name: interface.name,
        mac: interface.mac,
        mtu: interface.mtu,
        ifindex: interface.index,
        generic: false,
        capabilities: Capabilities { queues: queues.len() as u32, ..Capabilities::default() },
        mode: if kind == Kind::Tap { "TAP" } else { "TUN" }.to_owned(),
        queues,
    })
}

fn queue(file: File) -> Queue {
    let file = Arc::new(file);
    let rx = TapRx::new(file.clone(), false);
    let tx = TapTx { file, completions: Completions::default(), counts: Tally::new(tx::NAMES) };
    Queue { rx: Box::new(rx), tx: Box::new(tx) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet::{self, Raw, udp_frame};

    #[test]
    fn frames_cross_the_interface_both_ways() {
        testnet::run(&[], || {
            let mut port = open("tap0", Kind::Tap, 1).expect("tap0");
            let kernel = Raw::open("tap0");
            let frame = udp_frame(port.mac, 1, 60);
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&frame));
            assert_eq!(port.queues[0].tx.offer(&mut batch), 1);
            assert!(batch.is_empty());
            assert_eq!(kernel.receive(1), vec![frame.clone()]);
            kernel.send(&frame);
            let is_ours = |p: &Packet| p.data() == &frame[..];
            // The kernel may send frames of its own first (neighbour discovery).
            while port.queues[0].rx.waiting() > 0 && !batch.iter().any(is_ours) {
                port.queues[0].rx.poll(&mut batch, 1);
            }
            assert!(batch.iter().any(is_ours));
            assert!(open("tap0", Kind::Tap, 1).expect_err("in use").to_string().contains("another process"));
            drop(port);
            assert!(Interface::open("tap0").is_err(), "it goes with the port");
        });
    }

    #[test]
    fn all_queues_of_an_interface_are_its_wire() {
        testnet::run(&[], || {
            let mut port = open("tap0", Kind::Tap, 3).expect("tap0");
            assert_eq!((port.queues.len(), port.capabilities.queues), (3, 3));
            let kernel = Raw::open("tap0");
            for (i, queue) in port.queues.iter_mut().enumerate() {
                let mut batch = Batch::new();
                batch.extend(Packet::from_bytes(&udp_frame(port.mac, i as u8, 60)));
                assert_eq!(queue.tx.offer(&mut batch), 1);
            }
            assert_eq!(kernel.receive(3).len(), 3);
            // Flows that the kernel has not seen are spread.
            let frames: Vec<Vec<u8>> = (0..60).map(|host| udp_frame([2; 6], host, 60)).collect();
            frames.iter().for_each(|frame| kernel.send(frame));
            let mut by_queue = Vec::new();
            for queue in &mut port.queues {
                let mut batch = Batch::new();
                while queue.rx.poll(&mut batch, 8) {}
                by_queue.push(batch.iter().filter(|p| frames.iter().any(|f| p.data() == &f[..])).count());
            }
            assert_eq!(by_queue.iter().sum::<usize>(), 60, "{by_queue:?}");
            assert!(by_queue.iter().all(|n| *n > 0), "{by_queue:?}");
            drop(port);
            assert!(Interface::open("tap0").is_err(), "it goes with the port");
            testnet::ip("ip tuntap add dev tap1 mode tap");
            let persistent = open("tap1", Kind::Tap, 3).expect("tap1");
            assert_eq!(persistent.queues.len(), 1, "somebody made it with one");
        });
    }

    #[test]
    fn a_tun_refuses_what_is_not_ip() {
        testnet::run(&[], || {
            let mut port = open("tun0", Kind::Tun, 1).expect("tun0");
            let mut batch = Batch::new();
            batch.extend([&[0u8; 40][..], &[0x45; 40]].into_iter().filter_map(Packet::from_bytes));
            assert_eq!(port.queues[0].tx.offer(&mut batch), 2);
            let counters = port.queues[0].tx.statistics().list();
            assert!(counters.contains(&("tx_drop_error", 1)) && counters.contains(&("tx_packets", 1)));
        });
    }
}
