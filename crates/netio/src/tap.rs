//! TAP and TUN ports: interfaces that this process makes and is the wire of.
//!
//! A TAP carries Ethernet frames, a TUN bare IP packets. One packet is one system call in either direction, which the
//! kernel offers no way around. The interface goes with the port.

use crate::interface::{Interface, set_flags, set_up};
use crate::port::{Counter, Port, Queue, Rx, Tx};
use crate::{Error, Result};
use causeway_packet::{Batch, Packet};
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

#[derive(Debug)]
struct TapRx {
    file: Arc<File>,
    /// A packet read to find out whether one waits.
    ahead: Option<Packet>,
    packets: u64,
    bytes: u64,
    pool_empty: u64,
    errors: u64,
}

#[derive(Debug)]
struct TapTx {
    file: Arc<File>,
    packets: u64,
    bytes: u64,
    full: u64,
    errors: u64,
}

impl TapRx {
    fn read(&mut self) -> Option<Packet> {
        let Some(mut packet) = Packet::new() else {
            self.pool_empty += 1;
            return None;
        };
        let room = packet.tailroom();
        let buffer = packet.put(room).ok()?;
        match (&*self.file).read(buffer) {
            Ok(n) => {
                packet.truncate(n);
                self.packets += 1;
                self.bytes += n as u64;
                Some(packet)
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(_) => {
                self.errors += 1;
                None
            }
        }
    }
}

impl Rx for TapRx {
    fn pending(&mut self) -> usize {
        if self.ahead.is_none() {
            self.ahead = self.read();
        }
        usize::from(self.ahead.is_some())
    }

    fn receive(&mut self, batch: &mut Batch, max: usize) -> usize {
        let max = max.min(batch.room());
        for n in 0..max {
            let Some(packet) = self.ahead.take().or_else(|| self.read()) else { return n };
            // There is room for `max`.
            let _ = batch.push(packet);
        }
        max
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            ("rx_packets", self.packets),
            ("rx_bytes", self.bytes),
            ("rx_pool_empty", self.pool_empty),
            ("rx_error", self.errors),
        ]
    }
}

impl Tx for TapTx {
    fn transmit(&mut self, batch: &mut Batch) -> usize {
        let mut taken = 0;
        for packet in batch.iter() {
            match (&*self.file).write(packet.data()) {
                Ok(n) => {
                    self.packets += 1;
                    self.bytes += n as u64;
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                // A packet that the kernel refuses (no IP version, interface down) must not hold up the others.
                Err(_) => self.errors += 1,
            }
            taken += 1;
        }
        Batch::new().append_up_to(batch, taken);
        self.full += u64::from(!batch.is_empty());
        taken
    }

    fn flush(&mut self) {}

    fn counters(&self) -> Vec<Counter> {
        vec![
            ("tx_packets", self.packets),
            ("tx_bytes", self.bytes),
            ("tx_ring_full", self.full),
            ("tx_drop_error", self.errors),
        ]
    }
}

/// Makes the interface `name` in the calling thread's network namespace, or takes a persistent one of that name, and
/// sets it up.
///
/// # Errors
/// Missing privileges, no `/dev/net/tun`, the name in use by another process or another kind of interface.
pub fn open(name: &str, kind: Kind) -> Result<Port> {
    let (file, name) = make(name, kind)?;
    finish(file, &name, kind)
}

/// Makes a TAP that gets no address and is no neighbour of anybody: for what the kernel should think of as a wire. A
/// `%d` in the name stands for the first free number.
///
/// # Errors
/// As [`open`].
pub fn open_bare(name: &str) -> Result<Port> {
    let (file, name) = make(name, Kind::Tap)?;
    // Before it is set up, or it gets a link-local address (RFC 4862 §5.3). A kernel without IPv6 has no such file.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    set_flags(&name, libc::IFF_NOARP)?;
    finish(file, &name, Kind::Tap)
}

fn make(name: &str, kind: Kind) -> Result<(File, String)> {
    const PATH: &str = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(PATH);
    let file = file.map_err(|e| match Error::system(format!("open {PATH}"), e) {
        e if e.errno() == Some(libc::ENOENT) => e.help("`modprobe tun`"),
        e => e,
    })?;
    let flags = libc::IFF_NO_PI | if kind == Kind::Tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let name = crate::interface::attach_tun(&file, name, flags).map_err(|e| match e.errno() {
        Some(libc::EBUSY) => e.help("another process holds it: stop it or choose another name"),
        Some(libc::EINVAL) => e.help("there is another kind of interface of that name: choose another name"),
        _ => e,
    })?;
    Ok((file, name))
}

fn finish(file: File, name: &str, kind: Kind) -> Result<Port> {
    set_up(name)?;
    let interface = Interface::open(name)?;
    interface.check_mtu(Packet::HEADROOM as u32)?;
    let file = Arc::new(file);
    let rx = TapRx { file: file.clone(), ahead: None, packets: 0, bytes: 0, pool_empty: 0, errors: 0 };
    let tx = TapTx { file, packets: 0, bytes: 0, full: 0, errors: 0 };
    Ok(Port {
        name: interface.name,
        mac: interface.mac,
        mtu: interface.mtu,
        ifindex: interface.index,
        generic: false,
        mode: if kind == Kind::Tap { "TAP" } else { "TUN" }.to_owned(),
        queues: vec![Queue { rx: Box::new(rx), tx: Box::new(tx) }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet::{self, Raw, udp_frame};

    #[test]
    fn frames_cross_the_interface_both_ways() {
        testnet::run(&[], || {
            let mut port = open("tap0", Kind::Tap).expect("tap0");
            let kernel = Raw::open("tap0");
            let frame = udp_frame(port.mac, 1, 60);
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&frame));
            assert_eq!(port.queues[0].tx.transmit(&mut batch), 1);
            assert!(batch.is_empty());
            assert_eq!(kernel.receive(1), vec![frame.clone()]);
            kernel.send(&frame);
            let is_ours = |p: &Packet| p.data() == &frame[..];
            // The kernel may send frames of its own first (neighbour discovery).
            while port.queues[0].rx.pending() > 0 && !batch.iter().any(is_ours) {
                port.queues[0].rx.receive(&mut batch, 1);
            }
            assert!(batch.iter().any(is_ours));
            assert!(open("tap0", Kind::Tap).expect_err("in use").to_string().contains("another process"));
            drop(port);
            assert!(Interface::open("tap0").is_err(), "it goes with the port");
        });
    }

    #[test]
    fn a_tun_refuses_what_is_not_ip() {
        testnet::run(&[], || {
            let mut port = open("tun0", Kind::Tun).expect("tun0");
            let mut batch = Batch::new();
            batch.extend([&[0u8; 40][..], &[0x45; 40]].into_iter().filter_map(Packet::from_bytes));
            assert_eq!(port.queues[0].tx.transmit(&mut batch), 2);
            let counters = port.queues[0].tx.counters();
            assert!(counters.contains(&("tx_drop_error", 1)) && counters.contains(&("tx_packets", 1)));
        });
    }
}
