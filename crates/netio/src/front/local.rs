//! The machine's own addresses, as the program looks them up.

use super::code::FILTER_MULTIPLIER;
use crate::Result;
use causeway_bpf::{Map, MapKind, MappedArray};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Most addresses of this machine, per family.
const LOCAL_MAX: u32 = 16_384;

/// The addresses that the kernel keeps for itself: hash maps shared by the programs of all ports, changed from user
/// space while they run. Besides host addresses, put subnet broadcast and anycast addresses here: all that the
/// kernel's local table holds.
///
/// Next to no packet is for one of them, so programs look into a [`Filter`] first, which is one load instead of a call and a
/// hash.
#[derive(Debug)]
pub struct LocalAddresses {
    v4: Map,
    v6: Map,
    filter: Filter,
}

/// A bit for each of 65 536 hashes of addresses, set if one in the sets may have it.
#[derive(Debug)]
struct Filter {
    bits: MappedArray,
    /// By bit, how many addresses have it.
    counts: Mutex<BTreeMap<u16, u32>>,
}

impl LocalAddresses {
    /// Empty sets.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<LocalAddresses> {
        let bits = MappedArray::new("local_filter", FILTER_BYTES, 1)?;
        Ok(LocalAddresses {
            v4: Map::new(MapKind::Hash, "local4", 4, 4, LOCAL_MAX)?,
            v6: Map::new(MapKind::Hash, "local6", 16, 4, LOCAL_MAX)?,
            filter: Filter { bits, counts: Mutex::default() },
        })
    }

    /// The sets of IPv4 and of IPv6 addresses and the filter of both, for the program.
    pub(super) fn maps(&self) -> [BorrowedFd<'_>; 3] {
        [self.v4.as_fd(), self.v6.as_fd(), self.filter.bits.map().as_fd()]
    }

    /// Adds an IPv4 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v4(&self, address: Ipv4Addr) -> Result<()> {
        self.insert(&self.v4, &address.octets())
    }

    /// Adds an IPv6 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v6(&self, address: Ipv6Addr) -> Result<()> {
        self.insert(&self.v6, &address.octets())
    }

    /// Removes an IPv4 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v4(&self, address: Ipv4Addr) -> Result<bool> {
        self.remove(&self.v4, &address.octets())
    }

    /// Removes an IPv6 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v6(&self, address: Ipv6Addr) -> Result<bool> {
        self.remove(&self.v6, &address.octets())
    }

    fn insert(&self, set: &Map, octets: &[u8]) -> Result<()> {
        let is_new = set.get(octets)?.is_none();
        set.insert(octets, &[1, 0, 0, 0])?;
        if is_new {
            self.filter.add(bit(octets));
        }
        Ok(())
    }

    fn remove(&self, set: &Map, octets: &[u8]) -> Result<bool> {
        let was_there = set.remove(octets)?;
        if was_there {
            self.filter.take(bit(octets));
        }
        Ok(was_there)
    }
}

impl Filter {
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn add(&self, bit: u16) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(bit).or_default() += 1;
        let (word, mask) = place(bit);
        self.bits.word(word).fetch_or(mask, Ordering::Release);
    }

    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn take(&self, bit: u16) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let left = counts.get(&bit).map_or(0, |count| count - 1);
        if left > 0 {
            counts.insert(bit, left);
            return;
        }
        counts.remove(&bit);
        let (word, mask) = place(bit);
        self.bits.word(word).fetch_and(!mask, Ordering::Release);
    }
}

/// Bytes of a filter.
pub(super) const FILTER_BYTES: usize = 1 << 13;

/// The offset of the word that a bit is in, and its mask.
pub(super) fn place(bit: u16) -> (usize, u64) {
    (usize::from(bit / 64) * 8, 1 << (bit % 64))
}

/// The bit of an address, 4 or 16 octets, as [`code`](super::code::code) computes it.
pub(super) fn bit(octets: &[u8]) -> u16 {
    let (words, _) = octets.as_chunks();
    let folded = words.iter().fold(0, |folded, word| folded ^ u32::from_ne_bytes(*word));
    (folded.wrapping_mul(FILTER_MULTIPLIER) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::ErrorKind;

    #[test]
    fn a_bit_stays_until_the_last_address_that_has_it_is_gone() {
        let local = match LocalAddresses::new() {
            Ok(local) => local,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let one = Ipv4Addr::new(10, 0, 0, 1);
        let same = |a: &Ipv4Addr| bit(&a.octets()) == bit(&one.octets());
        let other = (1..).map(|n| Ipv4Addr::from_bits(one.to_bits() + n)).find(same).expect("one in 65 536");
        let is_set = || {
            let (word, mask) = place(bit(&one.octets()));
            local.filter.bits.word(word).load(Ordering::Relaxed) & mask != 0
        };
        for address in [one, other, one] {
            local.insert_v4(address).expect("insert");
        }
        assert!(local.remove_v4(one).expect("remove") && is_set());
        assert!(!local.remove_v4(one).expect("remove") && is_set(), "it was there once");
        assert!(local.remove_v4(other).expect("remove") && !is_set());
    }
}
