//! Receiving from sockets.

use super::descriptors::Descriptors;
use super::outlet::Peer;
use super::stream::{Accepted, Stream};
use causeway_packet::{Anno, Batch, Packet, Receiver, pool};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrAny};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// What an inlet receives.
pub(super) enum Kind {
    /// Datagrams, or packets.
    Datagrams {
        /// Who sent the last one.
        peer: Option<SocketAddrAny>,
        /// Whose are not received.
        own: Option<SocketAddrAny>,
    },
    /// What comes over a connection.
    Stream(Stream),
}

/// Receives from the sockets of an element.
pub(super) struct Inlet {
    pub descriptors: Option<Arc<Descriptors>>,
    pub kind: Kind,
    /// Most bytes of a packet.
    snaplen: usize,
    headroom: usize,
    /// Where the kernel writes, kept for its memory.
    buffer: Vec<u8>,
    /// A packet read to find out whether one waits.
    ahead: Option<Packet>,
}

impl Inlet {
    pub fn new(kind: Kind, snaplen: u32, headroom: u32) -> Inlet {
        // A longer one does not fit a frame.
        let snaplen = (snaplen as usize).min(pool::config().frame_size as usize);
        let buffer = vec![0; snaplen];
        Inlet { descriptors: None, kind, snaplen, headroom: headroom as usize, buffer, ahead: None }
    }

    /// Goes on where `old` was, if it has the same sockets.
    pub fn go_on(&mut self, old: &mut Inlet) {
        let same = |a: &Arc<Descriptors>, b: &Arc<Descriptors>| Arc::ptr_eq(a, b);
        if self.descriptors.as_ref().zip(old.descriptors.as_ref()).is_some_and(|(a, b)| same(a, b)) {
            std::mem::swap(&mut self.kind, &mut old.kind);
            self.ahead = old.ahead.take();
        }
    }

    /// Whether there is anybody to send to, of those that are sent to as they are received from.
    pub fn peer(&self) -> Peer {
        match &self.kind {
            Kind::Stream(stream) => stream.peer(),
            Kind::Datagrams { peer: Some(_), .. } => Peer::There,
            Kind::Datagrams { .. } => Peer::Awaited,
        }
    }

    /// A packet of the first `n` bytes of the buffer, of `len` that there were.
    fn packet(&self, n: usize, len: usize) -> Option<Packet> {
        let room = pool::config().frame_size as usize - n;
        let mut packet = Packet::with_headroom(self.headroom.min(room))?;
        packet.put(n).ok()?.copy_from_slice(&self.buffer[..n]);
        if len > n {
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, (len - n) as u32);
        }
        Some(packet)
    }

    /// The next packet, if one waits.
    fn read(&mut self) -> Option<Packet> {
        let descriptors = self.descriptors.clone()?;
        loop {
            match &mut self.kind {
                Kind::Stream(stream) => match stream.read(&descriptors, &mut self.buffer[..self.snaplen]) {
                    Accepted::Bytes(n) => return self.packet(n, n),
                    Accepted::Question => {
                        let question = Packet::new();
                        // Who cannot be asked about is not let in.
                        if question.is_none() {
                            stream.answer(&descriptors, false);
                        }
                        return question;
                    }
                    Accepted::Nothing => return None,
                },
                Kind::Datagrams { peer, own } => {
                    let buffer = &mut self.buffer[..self.snaplen];
                    let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
                    let (n, len, from) = match rustix::net::recvfrom(&descriptors.socket, buffer, flags) {
                        Ok((n, len, from)) => (n, len, from),
                        // What a datagram that was sent before met on its way.
                        Err(Errno::CONNREFUSED | Errno::INTR) => continue,
                        Err(_) => return None,
                    };
                    if own.is_some() && *own == from {
                        continue;
                    }
                    let source = from.as_ref().map_or(0, ipv4);
                    *peer = from;
                    let mut packet = self.packet(n, len)?;
                    // Whoever takes it from here knows, and clears it.
                    packet.set_flow_hash(source);
                    return Some(packet);
                }
            }
        }
    }
}

/// The IPv4 address in `address`, 0 if it is another kind.
pub(super) fn ipv4(address: &SocketAddrAny) -> u32 {
    std::net::SocketAddrV4::try_from(address.clone()).map_or(0, |v4| v4.ip().to_bits())
}

impl Receiver for Inlet {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        for _ in 0..budget.min(batch.room()) {
            let Some(packet) = self.ahead.take().or_else(|| self.read()) else { return false };
            // There is room for so many.
            let _ = batch.push(packet);
            if matches!(&self.kind, Kind::Stream(stream) if stream.asks()) {
                return true;
            }
        }
        true
    }

    fn waiting(&mut self) -> usize {
        if self.ahead.is_none() {
            self.ahead = self.read();
        }
        usize::from(self.ahead.is_some())
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.descriptors.as_ref().map_or(Vec::new(), |d| vec![d.waits()])
    }
}
