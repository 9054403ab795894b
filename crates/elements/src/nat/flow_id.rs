//! Who speaks to whom: addresses and ports of a packet.

use std::fmt;
use std::net::Ipv4Addr;

/// Addresses and ports, in host order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FlowId {
    pub source: u32,
    pub source_port: u16,
    pub destination: u32,
    pub destination_port: u16,
}

impl FlowId {
    pub fn new(source: u32, source_port: u16, destination: u32, destination_port: u16) -> FlowId {
        FlowId { source, source_port, destination, destination_port }
    }

    /// The other direction.
    #[inline]
    pub fn reverse(self) -> FlowId {
        FlowId::new(self.destination, self.destination_port, self.source, self.source_port)
    }

    /// All of it in one word, below `space`, which tells tables apart.
    #[inline]
    pub fn key(self, space: u32) -> u128 {
        let addresses = u128::from(self.source) << 32 | u128::from(self.destination);
        let ports = u128::from(self.source_port) << 16 | u128::from(self.destination_port);
        u128::from(space) << 96 | ports << 64 | addresses
    }

    pub fn source_ip(self) -> Ipv4Addr {
        self.source.into()
    }

    pub fn destination_ip(self) -> Ipv4Addr {
        self.destination.into()
    }

    /// The number by which Click's tables are ordered.
    pub fn order(self) -> u32 {
        let (sp, dp) = (u32::from(self.source_port), u32::from(self.destination_port));
        // Click takes the addresses as they lie in memory.
        let (s, d) = (self.source.swap_bytes(), self.destination.swap_bytes());
        s.rotate_left(sp % 16 + 1) ^ d.rotate_left(31 - dp % 16) ^ (dp << 16 | sp)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, d) = (self.source_ip(), self.destination_ip());
        write!(f, "({s}, {}, {d}, {})", self.source_port, self.destination_port)
    }
}
