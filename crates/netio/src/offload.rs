//! Offloads: what a device does to packets that the stack would do otherwise, as ethtool's ioctl shows and sets it.

use crate::error::{ErrorKind, Result};
use crate::interface::{control, ethtool};
use std::os::fd::OwnedFd;

const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
/// Merge packets on receipt, in the device.
const FLAG_LRO: u32 = 1 << 15;
/// Take VLAN tags out of received frames.
const FLAG_RX_VLAN: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    cmd: u32,
    data: u32,
}

fn value(fd: &OwnedFd, name: &str, cmd: u32, data: u32) -> Result<u32> {
    let mut value = Value { cmd, data };
    ethtool(fd, name, std::ptr::from_mut(&mut value).cast())?;
    Ok(value.data)
}

/// An offload that a port may have to turn off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Packets merged by the device: what comes out is not what came in.
    Lro,
    /// VLAN tags taken out of frames by the device: XDP and AF_XDP never see them.
    RxVlan,
    /// Packets merged by the stack before a packet socket sees them.
    Gro,
    /// Checksums left to the device on transmission: what the stack sends through a veth is then unfinished.
    TxChecksum,
}

impl Offload {
    fn get(self, fd: &OwnedFd, name: &str) -> Result<bool> {
        Ok(match self {
            Offload::Lro => value(fd, name, ETHTOOL_GFLAGS, 0)? & FLAG_LRO != 0,
            Offload::RxVlan => value(fd, name, ETHTOOL_GFLAGS, 0)? & FLAG_RX_VLAN != 0,
            Offload::Gro => value(fd, name, ETHTOOL_GGRO, 0)? != 0,
            Offload::TxChecksum => value(fd, name, ETHTOOL_GTXCSUM, 0)? != 0,
        })
    }

    fn set(self, fd: &OwnedFd, name: &str, on: bool) -> Result<()> {
        let flag = |flag: u32| {
            let flags = value(fd, name, ETHTOOL_GFLAGS, 0)?;
            value(fd, name, ETHTOOL_SFLAGS, if on { flags | flag } else { flags & !flag })
        };
        match self {
            Offload::Lro => flag(FLAG_LRO)?,
            Offload::RxVlan => flag(FLAG_RX_VLAN)?,
            Offload::Gro => value(fd, name, ETHTOOL_SGRO, on.into())?,
            Offload::TxChecksum => value(fd, name, ETHTOOL_STXCSUM, on.into())?,
        };
        Ok(())
    }
}

/// Whether an offload is on.
///
/// # Errors
/// What ethtool's ioctl says; drivers without the offload say that it is not supported.
pub fn is_on(name: &str, offload: Offload) -> Result<bool> {
    offload.get(&control()?, name)
}

/// Offloads turned off for as long as this value lives.
#[derive(Debug)]
pub struct OffloadGuard {
    fd: OwnedFd,
    name: String,
    turned_off: Vec<Offload>,
    /// Offloads that are on and that the driver does not let go.
    pub stuck: Vec<Offload>,
}

impl OffloadGuard {
    /// Turns `offloads` off on the interface `name`; those that the driver lacks or refuses are left.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`], or no socket.
    pub fn turn_off(name: &str, offloads: &[Offload]) -> Result<OffloadGuard> {
        let mut guard =
            OffloadGuard { fd: control()?, name: name.to_owned(), turned_off: Vec::new(), stuck: Vec::new() };
        for &offload in offloads {
            if !offload.get(&guard.fd, name).unwrap_or(false) {
                continue;
            }
            match offload.set(&guard.fd, name, false) {
                Ok(()) if !offload.get(&guard.fd, name).unwrap_or(true) => guard.turned_off.push(offload),
                Err(e) if e.kind() == ErrorKind::Privilege => return Err(e),
                _ => guard.stuck.push(offload),
            }
        }
        Ok(guard)
    }
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        for offload in self.turned_off.drain(..).rev() {
            // The interface may be gone; then there is nothing to restore.
            let _ = offload.set(&self.fd, &self.name, true);
        }
    }
}

/// Turns an offload on or off for good, for interfaces that the caller made.
///
/// # Errors
/// What ethtool's ioctl says.
pub fn set_offload(name: &str, offload: Offload, on: bool) -> Result<()> {
    offload.set(&control()?, name, on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet;

    #[test]
    fn offloads_come_back() {
        testnet::run(&[("g0", "r0")], || {
            set_offload("r0", Offload::Gro, true).expect("on");
            let guard = OffloadGuard::turn_off("r0", &[Offload::Gro, Offload::Lro]).expect("off");
            assert_eq!((&guard.turned_off[..], &guard.stuck[..]), (&[Offload::Gro][..], &[][..]));
            let fd = control().expect("a socket");
            assert!(!Offload::Gro.get(&fd, "r0").expect("asked"));
            drop(guard);
            assert!(Offload::Gro.get(&fd, "r0").expect("asked"));
        });
    }
}
