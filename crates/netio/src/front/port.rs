//! What the program knows of a port.

use super::Place;

/// What the program takes from a port, besides passing what it must not take. May be changed at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The port's Ethernet address: only frames to it are in transit. None where packets come without an Ethernet header.
    pub mac: Option<[u8; 6]>,
    /// Which frames are taken.
    pub take: Take,
    /// Whether senders may leave checksums unfinished (virtual ports): such packets are passed.
    pub partial_checksums: bool,
}

/// Which frames are taken from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// All of them, whatever they are and whether the lease stands or not: for graphs that own their interface as
    /// Click's do.
    All,
    /// Those surely in transit, of these IP versions, while the lease stands.
    Transit {
        /// IPv4.
        ipv4: bool,
        /// IPv6.
        ipv6: bool,
    },
}

impl Take {
    /// Nothing.
    pub const NOTHING: Take = Take::Transit { ipv4: false, ipv6: false };
    /// What is surely in transit.
    pub const TRANSIT: Take = Take::Transit { ipv4: true, ipv6: true };
}

/// Bits of the record's flags.
pub(super) mod flag {
    pub const ALL: u16 = 1;
    pub const IPV4: u16 = 2;
    pub const IPV6: u16 = 4;
    pub const PARTIAL_CHECKSUMS: u16 = 8;
    pub const BARE: u16 = 16;
    pub const NO_ETHERNET: u16 = 32;
}

/// Offsets of the record's fields.
pub(super) mod field {
    pub const FIRST_SOCKET: i16 = 0;
    pub const QUEUES: i16 = 4;
    pub const FIRST_COUNTER: i16 = 8;
    pub const LONGEST: i16 = 12;
    pub const MAC: i16 = 16;
    pub const FLAGS: i16 = 22;
    pub const GRAPH: i16 = 24;
    pub const ABOVE: i16 = 28;
}

/// A port as the program reads it, by interface index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortRecord {
    /// Place of queue 0 among the sockets.
    pub first_socket: u32,
    pub queues: u32,
    /// Place of the first reason among the counters.
    pub first_counter: u32,
    /// Bytes of the longest frame that a socket can take.
    pub longest: u32,
    pub rules: Rules,
    /// Place of its graph's program among those of all ports.
    pub graph: u32,
    /// Where its program is, which knows.
    pub place: Place,
    /// Whether frames are taken without luggage.
    pub bare: bool,
    /// At tcx, the interface that what is taken is redirected to.
    pub above: u32,
}

impl PortRecord {
    /// Bytes of a record.
    pub const LEN: usize = 32;

    /// The record as the program reads it.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words = [self.first_socket, self.queues, self.first_counter, self.longest];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes[field::MAC as usize..][..6].copy_from_slice(&self.rules.mac.unwrap_or_default());
        bytes[field::FLAGS as usize..][..2].copy_from_slice(&self.flags().to_ne_bytes());
        bytes[field::GRAPH as usize..][..4].copy_from_slice(&self.graph.to_ne_bytes());
        bytes[field::ABOVE as usize..].copy_from_slice(&self.above.to_ne_bytes());
        bytes
    }

    fn flags(&self) -> u16 {
        let bit = |on: bool, flag: u16| if on { flag } else { 0 };
        let take = match self.rules.take {
            Take::All => flag::ALL,
            Take::Transit { ipv4, ipv6 } => bit(ipv4, flag::IPV4) | bit(ipv6, flag::IPV6),
        };
        let no_ethernet = bit(self.rules.mac.is_none(), flag::NO_ETHERNET);
        let partial_checksums = bit(self.rules.partial_checksums, flag::PARTIAL_CHECKSUMS);
        take | partial_checksums | bit(self.bare, flag::BARE) | no_ethernet
    }
}
