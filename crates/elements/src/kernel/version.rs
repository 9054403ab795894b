//! What KernelForward needs of an IP version.

use super::flow::FlowHash;
use super::forwarding::{PortPolicy, Readers};
use causeway_fib::{Address, AdjacencyIndex, Fib4Reader, Fib6Reader, Lookup, Pinned};
use causeway_packet::checksum;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// The flag of IPv4 that says nothing of fragments (RFC 791 §3.1), and the reserved one.
const DONT_FRAGMENT: u16 = 0xc000;
/// Extension headers of IPv6 (RFC 8200 §4.3 to §4.5).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;

/// What these headers ask for is the kernel's to do; of fragments as in IPv4.
pub(super) const NOT_FOR_ROUTERS: [u8; 3] = [HOP_BY_HOP, ROUTING, FRAGMENT];
/// ICMPv6, and its messages of neighbour discovery (RFC 4861 §4).
pub(super) const NEIGHBOUR_DISCOVERY: (u8, std::ops::RangeInclusive<u8>) = (58, 133..=137);

/// An IP version, as its headers show it behind an Ethernet header.
pub(super) trait Version: Address {
    type Table: Lookup<Self> + Send + 'static;
    /// The type in an Ethernet header.
    const ETHERTYPE: [u8; 2];
    /// The table of this version.
    fn table(readers: &Readers) -> Self::Table;
    /// Looks up in it under an announcement; nothing is found under one of another domain.
    fn look_up(table: &Self::Table, pinned: &Pinned<'_>, addresses: &[Self], found: &mut [AdjacencyIndex]);
    /// Destination and source of a packet that a router may forward by them alone, and its length in octets, if the
    /// header holds what RFC 1812 §5.2.2 and RFC 8200 ask for.
    fn check(frame: &[u8]) -> Option<Header<Self>>;
    /// Whether packets of this version are forwarded.
    fn forwards(policy: PortPolicy) -> bool;
    /// Whether a packet may leave by the port it came in by.
    fn may_return(policy: PortPolicy) -> bool;
    /// Decrements the time to live.
    fn decrement(frame: &mut [u8]);
    /// The hash of the packet's flow. None: only the kernel can tell.
    fn flow_hash(frame: &[u8], hash: &FlowHash) -> Option<u32>;
}

/// What is read of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<A> {
    pub destination: A,
    pub source: A,
    /// Octets of the IP packet; the frame may be longer (padding).
    pub len: usize,
}

impl Version for u32 {
    type Table = Fib4Reader;
    const ETHERTYPE: [u8; 2] = [0x08, 0x00];

    fn table(readers: &Readers) -> Fib4Reader {
        readers.v4.clone()
    }

    #[inline]
    fn look_up(table: &Fib4Reader, pinned: &Pinned<'_>, addresses: &[u32], found: &mut [AdjacencyIndex]) {
        if let Some(table) = table.under(pinned) {
            table.lookup_batch(addresses, found);
        }
    }

    #[inline]
    fn check(frame: &[u8]) -> Option<Header<u32>> {
        let header = frame.get(ETHERNET..)?.first_chunk::<20>()?;
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fits = header[0] == 0x45 && (20..=frame.len() - ETHERNET).contains(&len);
        // Where the kernel tracks connections it puts fragments together first, and drops those that stay alone.
        let whole = u16::from_be_bytes([header[6], header[7]]) & !DONT_FRAGMENT == 0;
        // One's complement: the sum with the checksum in it is all ones.
        let sound = fits && whole && header[8] > 1 && checksum::Sum::new().array(header).fold() == 0xffff;
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        sound.then(|| Header { destination: word(16), source: word(12), len })
    }

    #[inline]
    fn forwards(policy: PortPolicy) -> bool {
        policy.ipv4
    }

    #[inline]
    fn may_return(policy: PortPolicy) -> bool {
        policy.hairpin
    }

    #[inline]
    fn decrement(frame: &mut [u8]) {
        if let Some(header) = frame.get_mut(ETHERNET..).and_then(|h| h.first_chunk_mut::<20>()) {
            crate::ip::dec_ip_ttl::decrement(header);
        }
    }

    #[inline]
    fn flow_hash(frame: &[u8], hash: &FlowHash) -> Option<u32> {
        hash.v4(frame.get(ETHERNET..)?)
    }
}

fn is_neighbour_discovery(next_header: u8, frame: &[u8]) -> bool {
    let (protocol, kinds) = NEIGHBOUR_DISCOVERY;
    next_header == protocol && frame.get(ETHERNET + 40).is_some_and(|kind| kinds.contains(kind))
}

impl Version for u128 {
    type Table = Fib6Reader;
    const ETHERTYPE: [u8; 2] = [0x86, 0xdd];

    fn table(readers: &Readers) -> Fib6Reader {
        readers.v6.clone()
    }

    #[inline]
    fn look_up(table: &Fib6Reader, pinned: &Pinned<'_>, addresses: &[u128], found: &mut [AdjacencyIndex]) {
        if let Some(table) = table.under(pinned) {
            table.lookup_batch(addresses, found);
        }
    }

    #[inline]
    fn check(frame: &[u8]) -> Option<Header<u128>> {
        let header = frame.get(ETHERNET..)?.first_chunk::<40>()?;
        let len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let sound = header[0] >> 4 == 6 && len <= frame.len() - ETHERNET && header[7] > 1;
        let sound = sound && !NOT_FOR_ROUTERS.contains(&header[6]);
        // The kernel may answer for the host that is asked for (RFC 4389); else it drops what is no transit anyway.
        let sound = sound && !is_neighbour_discovery(header[6], frame);
        let address = |at: usize| header[at..].first_chunk::<16>().map_or(0, |a| u128::from_be_bytes(*a));
        sound.then(|| Header { destination: address(24), source: address(8), len })
    }

    #[inline]
    fn forwards(policy: PortPolicy) -> bool {
        policy.ipv6
    }

    /// Never: the kernel tells the sender of a better first hop (RFC 4861 §8.2).
    #[inline]
    fn may_return(_: PortPolicy) -> bool {
        false
    }

    #[inline]
    fn decrement(frame: &mut [u8]) {
        if let Some(limit) = frame.get_mut(ETHERNET + 7) {
            *limit = limit.saturating_sub(1);
        }
    }

    #[inline]
    fn flow_hash(frame: &[u8], hash: &FlowHash) -> Option<u32> {
        hash.v6(frame.get(ETHERNET..)?)
    }
}
