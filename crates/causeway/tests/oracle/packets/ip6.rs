//! IPv6.

use super::Packets;
use crate::plan::PORTS;

const SITE: u128 = 0x2001_0db8 << 96;

/// Addresses that are nobody's, everybody's, or no longer anybody's.
const ODD: [u128; 14] = [
    0,
    1,
    0x0a40_0001,
    0xffff_0a40_0001,
    0x0064_ff9b << 96 | 0x0a40_0001,
    0xfe80 << 112 | 5,
    0xfe80 << 112 | 0x00c0_00ff_fe00_0000,
    0xfec0 << 112 | 5,
    0xfc00 << 112 | 5,
    0xff02 << 112 | 1,
    0xff02 << 112 | 2,
    0xff05 << 112 | 1,
    0xff0e << 112 | 1,
    0x2002_0a40_0001 << 80 | 1,
];

impl Packets<'_> {
    /// A packet, and what kind it is.
    pub(super) fn ip6(&mut self, port: usize) -> (&'static str, Vec<u8>) {
        let (mut next, mut payload) = self.transport(true);
        let (source, destination) = (self.source6(port), self.destination6());
        let mut limit = self.rng.u8(2..=63);
        let kind = match self.rng.u32(0..24) {
            0 => {
                limit = self.pick(&[0, 1, 2, 255]);
                "v6-limit"
            }
            1 | 2 => {
                for _ in 0..self.rng.usize(1..4) {
                    let (header, kind) = self.extension(next);
                    payload = [header, payload].concat();
                    next = kind;
                }
                "v6-extension"
            }
            3 => {
                (next, limit) = (58, self.pick(&[64, 255]));
                payload = self.neighbour_discovery();
                "v6-ndisc"
            }
            4 => {
                next = self.pick(&[59, 0, 43, 44, 60, 135, 139, 140]);
                "v6-strange"
            }
            _ => "v6",
        };
        let first =
            0x6000_0000 | if self.chance(3) { self.rng.u32(..) & 0x0fff_ffff } else { self.number & 0xfffff };
        let len = payload.len() as u16;
        let mut packet = first.to_be_bytes().to_vec();
        packet.extend(len.to_be_bytes());
        packet.extend([next, limit]);
        packet.extend(source.to_be_bytes());
        packet.extend(destination.to_be_bytes());
        packet.extend(&payload);
        let kind = match self.rng.u32(0..60) {
            0 => {
                let len = self.pick(&[0, 1, len + 1, len.saturating_sub(1), 65535]);
                packet[4..6].copy_from_slice(&len.to_be_bytes());
                "v6-length"
            }
            1 => {
                packet[0] = self.pick(&[0x40, 0x50, 0x00, 0x70]);
                "v6-version"
            }
            _ => kind,
        };
        (kind, packet)
    }

    /// An extension header before one of the kind `next`, and its own kind.
    fn extension(&mut self, next: u8) -> (Vec<u8>, u8) {
        match self.rng.u32(0..6) {
            0 => (vec![next, 0, 1, 4, 0, 0, 0, 0], 0),
            1 => (vec![next, 0, 5, 2, 0, 0, 1, 0], 0),
            2 => {
                let option = self.pick(&[0x1e, 0x5e, 0x9e, 0xde]);
                (vec![next, 0, option, 4, 0, 0, 0, 0], self.pick(&[0, 60]))
            }
            3 => (vec![next, 0, 1, 4, 0, 0, 0, 0], 60),
            4 => {
                let flags = self.pick(&[0u8, 1, 8, 9]);
                (vec![next, 0, 0, flags, 1, 2, 3, self.number as u8], 44)
            }
            _ => {
                let kind = self.pick(&[0, 2, 4, 99]);
                let left = self.rng.u8(0..2);
                let segment = (SITE | 0x40 << 80 | 9).to_be_bytes();
                ([&[next, 2, kind, left, 0, 0, 0, 0][..], &segment].concat(), 43)
            }
        }
    }

    fn neighbour_discovery(&mut self) -> Vec<u8> {
        let kind = self.pick(&[133u8, 134, 135, 136, 137, 130, 143]);
        let target = self.destination6().to_be_bytes();
        let mark = self.payload();
        [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, &mark].concat()
    }

    fn source6(&mut self, port: usize) -> u128 {
        let host = |port: usize, last: u16| SITE | (port as u128) << 80 | u128::from(last);
        match self.rng.u32(0..40) {
            0 => self.pick(&ODD),
            1 => {
                let other = self.rng.usize(0..PORTS);
                let last = self.pick(&[0, 1, 5, 9]);
                host(other, last)
            }
            2..8 => self.inside6(),
            8..11 => {
                let other = self.rng.usize(0..PORTS);
                host(other, self.rng.u16(8..250))
            }
            11 => 0x2001_0db9 << 96 | u128::from(self.rng.u64(..)),
            _ => host(port, self.rng.u16(8..250)),
        }
    }

    fn destination6(&mut self) -> u128 {
        match self.rng.u32(0..40) {
            0 => self.pick(&ODD),
            1 => {
                let port = self.rng.u32(0..PORTS as u32);
                SITE | u128::from(port) << 80 | self.pick(&[0u128, 1, 5])
            }
            2 => SITE | self.pick(&[0xffu128 << 80 | 1, 0x41 << 80 | 1 << 64 | 4, 0x42 << 80 | 4]),
            3 => 0x2001_0db9 << 96 | u128::from(self.rng.u64(..)),
            _ => self.inside6(),
        }
    }

    /// An address that some route may lead to.
    fn inside6(&mut self) -> u128 {
        let index = self.rng.usize(0..self.facts.prefixes6.len());
        let (address, len) = self.facts.prefixes6[index];
        let net = u128::from(self.rng.u32(0..8)) << 80 | u128::from(self.rng.u32(0..4)) << 64;
        let host = net | u128::from(self.rng.u8(..));
        match len {
            0 => SITE | 0x40 << 80 | host,
            _ => address | host & u128::MAX.checked_shr(len.into()).unwrap_or(0),
        }
    }
}
