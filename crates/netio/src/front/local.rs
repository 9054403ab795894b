//! The machine's own addresses, as the program looks them up.

use crate::Result;
use causeway_bpf::{Map, MapKind};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

/// Most addresses of this machine, per family.
const LOCAL_MAX: u32 = 16_384;

/// The addresses that the kernel keeps for itself: hash maps shared by the programs of all ports, changed from user
/// space while they run. Besides host addresses, put subnet broadcast and anycast addresses here: all that the
/// kernel's local table holds.
#[derive(Debug)]
pub struct LocalAddresses {
    v4: Map,
    v6: Map,
}

impl LocalAddresses {
    /// Empty sets.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<LocalAddresses> {
        Ok(LocalAddresses {
            v4: Map::new(MapKind::Hash, "local4", 4, 4, LOCAL_MAX)?,
            v6: Map::new(MapKind::Hash, "local6", 16, 4, LOCAL_MAX)?,
        })
    }

    /// The sets of IPv4 and of IPv6 addresses, for the program.
    pub(super) fn maps(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.v4.as_fd(), self.v6.as_fd())
    }

    /// Adds an IPv4 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v4(&self, address: Ipv4Addr) -> Result<()> {
        self.v4.insert(&address.octets(), &[1, 0, 0, 0])
    }

    /// Adds an IPv6 address.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_v6(&self, address: Ipv6Addr) -> Result<()> {
        self.v6.insert(&address.octets(), &[1, 0, 0, 0])
    }

    /// Removes an IPv4 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v4(&self, address: Ipv4Addr) -> Result<bool> {
        self.v4.remove(&address.octets())
    }

    /// Removes an IPv6 address; tells whether it was there.
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub fn remove_v6(&self, address: Ipv6Addr) -> Result<bool> {
        self.v6.remove(&address.octets())
    }
}
