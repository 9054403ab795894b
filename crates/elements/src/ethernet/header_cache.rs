//! The Ethernet headers that ARPQuerier has made, by destination.

use causeway_engine::ir::{Entry, Key, Table};
use causeway_packet::wire::ethernet::HEADER_LEN;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Slots, a power of two.
const SLOTS: usize = 512;

/// An Ethernet header.
pub(crate) type Header = [u8; HEADER_LEN];

/// The header for one destination: until when it may be used, the destination, and the header's first eight bytes and
/// the six behind them, as they lie in a frame.
#[derive(Default)]
#[repr(align(32))]
struct Slot {
    until_ns: AtomicU64,
    destination: AtomicU64,
    front: AtomicU64,
    back: AtomicU64,
}

/// One slot for each hash of an address. It only repeats what the table of neighbours says.
///
/// The querier writes it, and who is fused with it reads it, both on one worker: so the words of a slot belong together
/// although each is read by itself.
#[derive(Clone)]
pub(crate) struct HeaderCache(Arc<[Slot; SLOTS]>);

/// The slot of an address: the top bits of a product (Fibonacci hashing), which spread neighbouring addresses.
#[inline]
fn slot(destination: u32) -> usize {
    (destination.wrapping_mul(0x9e37_79b1) >> (32 - SLOTS.trailing_zeros())) as usize % SLOTS
}

impl HeaderCache {
    pub fn new() -> HeaderCache {
        HeaderCache(Arc::new(std::array::from_fn(|_| Slot::default())))
    }

    /// The header for a destination, if it may be used at `now_ns`.
    #[inline(always)]
    pub fn find(&self, destination: u32, now_ns: u64) -> Option<Header> {
        let slot = &self.0[slot(destination)];
        let usable =
            slot.destination.load(Relaxed) == destination.into() && now_ns < slot.until_ns.load(Relaxed);
        usable.then(|| bytes([&slot.front, &slot.back].map(|word| word.load(Relaxed).to_ne_bytes())))
    }

    /// Notes a header, which may be used until `until_ns`.
    pub fn insert(&self, destination: u32, until_ns: u64, header: &Header) {
        let slot = &self.0[slot(destination)];
        let (mut front, mut back) = ([0; 8], [0; 8]);
        front.copy_from_slice(&header[..8]);
        back[..6].copy_from_slice(&header[8..]);
        slot.until_ns.store(until_ns, Relaxed);
        slot.destination.store(destination.into(), Relaxed);
        slot.front.store(u64::from_ne_bytes(front), Relaxed);
        slot.back.store(u64::from_ne_bytes(back), Relaxed);
    }

    /// Forgets the header for a destination.
    pub fn forget(&self, destination: u32) {
        self.0[slot(destination)].until_ns.store(0, Relaxed);
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.iter().for_each(|slot| slot.until_ns.store(0, Relaxed));
    }
}

/// A header as three numbers: eight bytes and four behind them, which are the addresses, and two of the type.
pub(crate) fn words(header: &Header) -> [u64; 3] {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
    [number(&header[..8]), number(&header[8..12]), number(&header[12..])]
}

/// A header of its three numbers.
pub(crate) fn header([front, back, ether_type]: [u64; 3]) -> Header {
    bytes([front, back << 32 | ether_type << 16].map(u64::to_be_bytes))
}

/// A header of its first eight bytes and the six behind them, which start the second word.
#[inline(always)]
fn bytes([front, back]: [[u8; 8]; 2]) -> Header {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&front);
    header[8..].copy_from_slice(&back[..6]);
    header
}

impl Table for HeaderCache {
    fn look_up(&mut self, [destination, ..]: Key<u64>, now_ns: u64) -> Option<[u64; 3]> {
        Some(words(&self.find(u32::try_from(destination).ok()?, now_ns)?))
    }

    fn entries(&self, now_ns: u64) -> Option<Vec<Entry>> {
        let destinations =
            self.0.iter().filter_map(|slot| u32::try_from(slot.destination.load(Relaxed)).ok());
        let entry =
            |destination: u32| Some(([destination.into(), 0], words(&self.find(destination, now_ns)?)));
        Some(destinations.filter_map(entry).collect())
    }
}
