//! IPv4.

use super::Packets;
use crate::plan::PORTS;
use causeway_packet::checksum::checksum;

/// Options, padded to four octets each.
const OPTIONS: [&[u8]; 8] = [
    &[1, 1, 1, 0],
    &[148, 4, 0, 0],
    &[7, 7, 4, 0, 0, 0, 0, 0],
    &[131, 7, 4, 10, 64, 0, 9, 0],
    &[137, 7, 4, 10, 1, 1, 8, 0],
    &[68, 12, 5, 3, 192, 0, 2, 9, 0, 0, 0, 0],
    &[30, 4, 9, 9],
    &[7, 99, 4, 0],
];

impl Packets<'_> {
    /// A packet, and what kind it is.
    pub(super) fn ip4(&mut self, port: usize) -> (&'static str, Vec<u8>) {
        let (protocol, payload) = self.transport(false);
        let (source, destination) = (self.source4(port), self.destination4());
        let mut header = [0; 20];
        header[0] = 0x45;
        header[1] = if self.chance(4) { self.rng.u8(..) } else { 0 };
        header[4..6].copy_from_slice(&(self.number as u16).to_be_bytes());
        header[6] = if self.rng.bool() { 0x40 } else { 0 };
        header[8] = self.rng.u8(2..=63);
        header[9] = protocol;
        header[12..16].copy_from_slice(&source.to_be_bytes());
        header[16..20].copy_from_slice(&destination.to_be_bytes());
        let mut options = Vec::new();
        let kind = match self.rng.u32(0..24) {
            0 => {
                header[8] = self.pick(&[0, 1, 2, 255]);
                "v4-ttl"
            }
            1 => {
                for _ in 0..self.rng.usize(1..4) {
                    options.extend(self.pick(&OPTIONS));
                }
                "v4-options"
            }
            2 => {
                let flags = self.pick(&[0x2000u16, 0x2005, 0x0005, 0x1fff, 0x4005, 0x8000, 0xe000]);
                header[6..8].copy_from_slice(&flags.to_be_bytes());
                "v4-fragment"
            }
            _ => "v4",
        };
        header[0] += options.len() as u8 / 4;
        let len = (20 + options.len() + payload.len()) as u16;
        header[2..4].copy_from_slice(&len.to_be_bytes());
        let mut packet = [&header[..], &options, &payload].concat();
        let end = 20 + options.len();
        let sum = checksum(&packet[..end]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let kind = self.break4(&mut packet, end).unwrap_or(kind);
        (kind, packet)
    }

    /// Breaks some packets.
    fn break4(&mut self, packet: &mut [u8], header: usize) -> Option<&'static str> {
        let (kind, again) = match self.rng.u32(0..100) {
            0 => {
                packet[10] ^= 1 << self.rng.u32(0..8);
                ("v4-checksum", false)
            }
            1 => {
                let len =
                    self.pick(&[0, 19, 20, 24, packet.len() as u16 + 1, packet.len() as u16 - 1, 65535]);
                packet[2..4].copy_from_slice(&len.to_be_bytes());
                ("v4-length", true)
            }
            2 => {
                packet[0] = self.pick(&[0x44, 0x40, 0x46, 0x4f, 0x65, 0x05]);
                ("v4-version", true)
            }
            3 => {
                // Either zero of one's complement.
                packet[10..12].copy_from_slice(&self.pick(&[[0; 2], [255; 2]]));
                ("v4-checksum", false)
            }
            _ => return None,
        };
        if again {
            packet[10..12].fill(0);
            let sum = checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(kind)
    }

    fn source4(&mut self, port: usize) -> u32 {
        let host = |port: usize, last: u8| 0x0a01_0000 | (port as u32) << 8 | u32::from(last);
        match self.rng.u32(0..40) {
            0 => self.odd4(),
            1 => {
                let other = self.rng.usize(0..PORTS);
                let last = self.pick(&[0, 1, 5, 9, 255]);
                host(other, last)
            }
            2..6 => self.inside4(),
            6..9 => {
                let other = self.rng.usize(0..PORTS);
                host(other, self.rng.u8(8..250))
            }
            9 => 0xac10_0000 | self.rng.u32(..) & 0xffff,
            _ => host(port, self.rng.u8(8..250)),
        }
    }

    fn destination4(&mut self) -> u32 {
        match self.rng.u32(0..40) {
            0 => self.odd4(),
            1 => {
                let port = self.rng.u32(0..PORTS as u32);
                0x0a01_0000 | port << 8 | u32::from(self.pick(&[0u8, 1, 5, 255]))
            }
            2 => self.pick(&[0x0aff_0001, 0x0a40_0004, 0x0a41_0104, 0x0a41_0107, 0x0a42_0002, 0x0a43_0007]),
            3 => 0xac10_0000 | self.rng.u32(..) & 0xffff,
            _ => self.inside4(),
        }
    }

    /// An address that some route may lead to.
    fn inside4(&mut self) -> u32 {
        let index = self.rng.usize(0..self.facts.prefixes4.len());
        let (address, len) = self.facts.prefixes4[index];
        let host = match len {
            0 => 0x0a40_0000 | self.rng.u32(0..0x4_0000),
            32 => 0,
            _ => self.rng.u32(..) & (u32::MAX >> len),
        };
        // Some at the edges.
        let host = if self.chance(8) {
            self.rng.u32(0..16) & (u32::MAX.checked_shr(len.into()).unwrap_or(0))
        } else {
            host
        };
        address | host
    }

    /// An address that is nobody's, or everybody's.
    fn odd4(&mut self) -> u32 {
        self.pick(&[
            0,
            0x0000_0005,
            0x7f00_0001,
            0x7f01_0203,
            0xa9fe_0101,
            0xe000_0001,
            0xe000_0005,
            0xef01_0203,
            0xf000_0001,
            0xffff_ffff,
            0xc000_0008,
            0x6440_0001,
        ])
    }
}
