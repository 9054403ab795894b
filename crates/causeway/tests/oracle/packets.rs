//! Random frames: sound ones, odd ones, broken ones, false ones, of both versions of IP and of none.

mod ip4;
mod ip6;

use crate::plan::{PORTS, TAKEN};
use crate::state::Facts;
use fastrand::Rng;

/// What is in every frame that can carry it, before its number.
pub const MARK: [u8; 4] = *b"\xd1\x5c0\x7e";

/// A frame that is sent into both twins.
#[derive(Clone, Debug)]
pub struct Sent {
    pub number: u32,
    /// The port it comes in by.
    pub port: usize,
    pub frame: Vec<u8>,
    pub kind: &'static str,
}

/// Makes frames.
pub struct Packets<'a> {
    rng: Rng,
    facts: &'a Facts,
    number: u32,
}

impl<'a> Packets<'a> {
    /// Frames for a state, numbered from `first` on.
    pub fn new(rng: Rng, facts: &'a Facts, first: u32) -> Packets<'a> {
        Packets { rng, facts, number: first }
    }

    fn chance(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.usize(0..list.len())]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.rng.u8(..)).collect()
    }

    /// What tells this packet from all others, and some octets more.
    fn payload(&mut self) -> Vec<u8> {
        let len = match self.rng.u32(0..20) {
            0 => self.rng.usize(1200..1650),
            1 => self.rng.usize(500..1200),
            _ => self.rng.usize(0..60),
        };
        let more = self.bytes(len);
        [&MARK[..], &self.number.to_be_bytes(), &more].concat()
    }

    /// A transport header with its payload, and the protocol's number; `None` of a checksum: the sum of the pseudo-header is
    /// not known yet, so it is left wrong.
    fn transport(&mut self, v6: bool) -> (u8, Vec<u8>) {
        let payload = self.payload();
        let ports = [self.rng.u16(..), self.pick(&[53, 80, 4000, 9])].map(u16::to_be_bytes).concat();
        match self.rng.u32(0..12) {
            0..5 => {
                let len = (8 + payload.len()) as u16;
                let sum = if self.chance(4) { [0; 2] } else { self.rng.u16(..).to_be_bytes() };
                (17, [&ports[..], &len.to_be_bytes(), &sum, &payload].concat())
            }
            5..8 => {
                let flags = self.pick(&[2, 16, 24, 17, 4, 0]);
                let numbers = self.bytes(8);
                let sum = self.rng.u16(..).to_be_bytes();
                (6, [&ports[..], &numbers, &[0x50, flags, 4, 0], &sum, &[0, 0], &payload].concat())
            }
            8..10 => {
                let kind = if v6 { self.pick(&[128, 129, 200]) } else { self.pick(&[8, 13, 200]) };
                let mut message = [&[kind, 0, 0, 0], &ports[..], &payload].concat();
                if !v6 {
                    let sum = causeway_packet::checksum::checksum(&message);
                    message[2..4].copy_from_slice(&sum.to_be_bytes());
                }
                (if v6 { 58 } else { 1 }, message)
            }
            _ => (self.pick(&[47, 50, 51, 132, 136, 33, 89, 103, 2, 253, 99, 4, 41]), payload),
        }
    }

    /// The next frame.
    pub fn next(&mut self) -> Sent {
        self.number += 1;
        let up: Vec<usize> = (0..PORTS).filter(|&port| !self.facts.down[port]).collect();
        let port = loop {
            let port = self.pick(&up);
            if port < TAKEN || self.chance(4) {
                break port;
            }
        };
        let (kind, ethertype, packet) = match self.rng.u32(0..40) {
            0 => ("no-ip", self.pick(&[0x0806, 0x88cc, 0x8847, 0x0004, 0x8864, 0x05dc]), self.payload()),
            1..22 => {
                let (kind, packet) = self.ip4(port);
                (kind, 0x0800, packet)
            }
            _ => {
                let (kind, packet) = self.ip6(port);
                (kind, 0x86dd, packet)
            }
        };
        let (kind, frame) = self.frame(port, kind, ethertype, &packet);
        Sent { number: self.number, port, frame, kind }
    }

    /// Puts an Ethernet header in front, mostly a right one.
    fn frame(
        &mut self,
        port: usize,
        kind: &'static str,
        ethertype: u16,
        packet: &[u8],
    ) -> (&'static str, Vec<u8>) {
        let own = self.facts.macs[port];
        let source = [2, 0xee, port as u8, 0, 0, self.rng.u8(1..)];
        let (tag, kind, to) = match self.rng.u32(0..50) {
            0 => (None, "mac-broadcast", [255; 6]),
            1 => (None, "mac-multicast", [1, 0, 0x5e, 0, 0, 1]),
            2 => (None, "mac-foreign", [2, 0xdd, 0, 0, 0, 9]),
            3 => (Some(0u16), "vlan-0", own),
            4 => (Some(5), "vlan-5", own),
            _ => (None, kind, own),
        };
        let mut frame = [to, source].concat();
        if let Some(tag) = tag {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        // Another type than that of what follows.
        let ethertype = if self.chance(150) { 0x0800 ^ 0x86dd ^ ethertype } else { ethertype };
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        match self.rng.u32(0..60) {
            0 => {
                let len = self.rng.usize(15..=frame.len().max(16));
                frame.truncate(len);
                ("truncated", frame)
            }
            1..5 => {
                let len = self.rng.usize(1..40);
                frame.extend(self.bytes(len));
                (kind, frame)
            }
            _ => (kind, frame),
        }
    }
}
