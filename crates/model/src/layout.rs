//! Where everything is in memory.

use crate::nic::DESCRIPTOR;

/// From a region to the next: they are far from each other.
const REGION: u64 = 1 << 40;
/// From a port's ring to the next port's, and from a child's trie to the next child's: no multiple of what a cache repeats
/// after.
const RING_STRIDE: u64 = (1 << 20) + 4_096;
const TRIE_STRIDE: u64 = (1 << 20) + 4_160;
/// Bytes of a buffer: a frame of full size with room before it.
const BUFFER: u64 = 2_048;
/// Where in a buffer what the kernel knows of it begins, behind a frame of full size.
const TAIL: u64 = 1_664;
/// Bytes of what the kernel knows of a packet, and of a line of it.
const HEAD: u64 = 256;
const HEAD_LINE: u64 = 64;
/// Bytes of a bucket's head, and of an entry: `rt_hash_bucket` and `rtable` of Linux 2.6.16 on a machine of 32 bits.
const BUCKET: u64 = 4;
const ENTRY: u64 = 256;
/// Where in an entry its key is; what a packet is sent by is at its begin.
const ENTRY_KEY: u64 = 128;
/// Where entries and tries are behind what is looked at first: buckets, or children of the root.
const SECOND: u64 = 1 << 32;
/// Bytes of a child of the trie's root, of a node and of a route; routes are behind the nodes.
const ROOT: u64 = 8;
const NODE: u64 = 8;
const ROUTE: u64 = 16;
const ROUTES: u64 = 1 << 19;

/// Where what the processor touches is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A descriptor of a port's ring for reception.
    Received(usize, usize),
    /// A descriptor of a port's ring for transmission.
    Sent(usize, usize),
    /// The headers of the frame in a buffer.
    Headers(u32),
    /// What the kernel knows of the packet in a buffer: a line.
    Head(u32, u64),
    /// What the kernel knows of a buffer, behind the frame in it.
    Tail(u32),
    /// A byte of the kernel's own data, or of a table that is one piece.
    Table(u64),
    /// A bucket of the route cache.
    Bucket(u32),
    /// The key of an entry of it, and its begin.
    EntryKey(u32),
    /// As above.
    Entry(u32),
    /// A child of the trie's root.
    TrieRoot(u32),
    /// A node of a child's trie: the child and the node.
    TrieNode(u32, u32),
    /// A route behind the nodes of a child's trie.
    TrieRoute(u32, u32),
}

impl Place {
    pub(crate) fn address(self) -> u64 {
        let ring = |region, port: usize, place: usize| {
            region * REGION + port as u64 * RING_STRIDE + place as u64 * u64::from(DESCRIPTOR)
        };
        let at = |region, number: u32, bytes| region * REGION + u64::from(number) * bytes;
        match self {
            Place::Received(port, place) => ring(1, port, place),
            Place::Sent(port, place) => ring(2, port, place),
            Place::Headers(buffer) => at(3, buffer, BUFFER),
            Place::Tail(buffer) => at(3, buffer, BUFFER) + TAIL,
            Place::Head(buffer, line) => at(4, buffer, HEAD) + line * HEAD_LINE,
            Place::Table(offset) => at(5, 0, 0) + offset,
            Place::Bucket(n) => at(5, n, BUCKET),
            Place::EntryKey(n) => at(5, n, ENTRY) + SECOND + ENTRY_KEY,
            Place::Entry(n) => at(5, n, ENTRY) + SECOND,
            Place::TrieRoot(n) => at(5, n, ROOT),
            Place::TrieNode(child, n) => at(5, child, TRIE_STRIDE) + SECOND + u64::from(n) * NODE,
            Place::TrieRoute(child, n) => at(5, child, TRIE_STRIDE) + SECOND + ROUTES + u64::from(n) * ROUTE,
        }
    }
}
