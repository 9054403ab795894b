//! Offloads: what a device does to packets that the stack would do otherwise, as ethtool's ioctl shows and sets it.

use crate::ethtool::{is_active, set};
use crate::interface::{control, ethtool};
use crate::{ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

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
    /// Packets merged by the device in such a way that the stack can take them apart again; XDP sees them merged.
    GroHw,
    /// VLAN tags taken out of frames by the device: XDP and AF_XDP never see them.
    RxVlan,
    /// Packets merged by the stack before a packet socket sees them.
    Gro,
    /// Checksums left to the device on transmission: what the stack sends through a veth is then unfinished.
    TxChecksum,
}

/// The name of the feature that has no request of its own.
const GRO_HW: &str = "rx-gro-hw";

impl Offload {
    /// Those that break forwarding, or that drivers want off before they take an XDP program.
    pub const HARMFUL: [Offload; 3] = [Offload::Lro, Offload::GroHw, Offload::RxVlan];

    /// Its name, as `ethtool -K` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Lro => "lro",
            Offload::GroHw => GRO_HW,
            Offload::RxVlan => "rxvlan",
            Offload::Gro => "gro",
            Offload::TxChecksum => "tx",
        }
    }

    /// The one of [`Offload::HARMFUL`] with that name.
    pub fn by_name(name: &str) -> Option<Offload> {
        Offload::HARMFUL.into_iter().find(|o| o.name() == name)
    }

    fn get(self, fd: &OwnedFd, name: &str) -> Result<bool> {
        Ok(match self {
            Offload::Lro => value(fd, name, ETHTOOL_GFLAGS, 0)? & FLAG_LRO != 0,
            Offload::GroHw => is_active(fd, name, GRO_HW)?,
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
            Offload::GroHw => {
                set(fd, name, GRO_HW, on)?;
                return Ok(());
            }
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

/// What is told of offloads that are changed: interface, offload, and whether it is off on our account.
pub type Journal = dyn Fn(&str, Offload, bool) + Send + Sync;

static JOURNAL: OnceLock<Box<Journal>> = OnceLock::new();

/// Has `journal` told of every offload before a port turns it off, and after it was restored, so that somebody can
/// restore it if the process is killed. Only the first journal counts.
pub fn keep_journal(journal: Box<Journal>) {
    let _ = JOURNAL.set(journal);
}

fn note(name: &str, offload: Offload, off: bool) {
    if let Some(journal) = JOURNAL.get() {
        journal(name, offload, off);
    }
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
            note(name, offload, true);
            match offload.set(&guard.fd, name, false) {
                Ok(()) if !offload.get(&guard.fd, name).unwrap_or(true) => {
                    guard.turned_off.push(offload);
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Privilege => return Err(e),
                _ => guard.stuck.push(offload),
            }
            note(name, offload, false);
        }
        Ok(guard)
    }
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        for offload in self.turned_off.drain(..).rev() {
            // The interface may be gone; then there is nothing to restore.
            let _ = offload.set(&self.fd, &self.name, true);
            note(&self.name, offload, false);
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
