//! What the caller asks the kernel in our stead, because it takes calls that need unsafe code.

use std::io;
use std::os::fd::BorrowedFd;

/// Questions that this crate, which has no unsafe code, hands to its caller.
///
/// `()` asks none of them: no program is known to be attached, no route exception, and tables of the old packet filter refuse if they are there at
/// all.
pub trait Probe: Send + Sync {
    /// `getsockopt(2)`: fills `value`, which also holds what the option wants to be told, and says how many octets there are.
    ///
    /// # Errors
    /// The kernel's.
    fn socket_option(
        &self,
        _socket: BorrowedFd<'_>,
        _level: i32,
        _name: i32,
        _value: &mut [u8],
    ) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lets the kernel show in dumps to this netlink socket only what is asked for (`NETLINK_GET_STRICT_CHK`).
    ///
    /// # Errors
    /// The kernel's.
    fn filter_dumps(&self, _socket: BorrowedFd<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The BPF programs that are not the caller's own and that forwarded packets go through: those attached to the interfaces
    /// with these indices, and those in the packet filter's hooks.
    ///
    /// # Errors
    /// The kernel's.
    fn programs(&self, _ports: &[u32]) -> io::Result<Vec<Program>> {
        Ok(Vec::new())
    }
}

impl Probe for () {}

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attachment {
    /// In the driver of the interface with this index, or where a driver has no such place.
    Xdp(u32),
    /// Where packets come in by that interface (tcx).
    Ingress(u32),
    /// Where packets leave by it (tcx).
    Egress(u32),
    /// In the packet filter's hooks.
    Netfilter,
}

/// A BPF program that is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program {
    /// Where.
    pub attachment: Attachment,
    /// Its number, as `bpftool prog` shows it.
    pub id: u32,
}
