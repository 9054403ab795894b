//! Handing packets back to the kernel as if they had just come in by the true interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attribute, Request};

/// `EEXIST`.
const EXISTS: i32 = 17;
/// Among the filters of one place, the first.
const PREFERENCE: u32 = 1;

/// Runs a BPF program (of type `SCHED_CLS`, direct action) on all that comes in by a device.
///
/// Meant for a TAP device whose frames were taken from a port and turned out to be the kernel's: the program redirects them to
/// the ingress of the port, so that the kernel sees them come in where they did, and its ICMP errors, ARP replies and reverse
/// path checks are right. The discipline and the filter go with the device.
///
/// # Errors
/// The kernel's: no such device, not such a program, no right to do it.
pub fn attach_clsact_redirect(tap_ifindex: u32, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut socket = Socket::open(None)?;
    let create = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    let header = header(tap_ifindex, TC_H_CLSACT & 0xffff_0000, TC_H_CLSACT, 0);
    let qdisc = Request::new(RTM_NEWQDISC, create | NLM_F_EXCL, &header).attribute(TCA_KIND, b"clsact\0");
    match socket.request(qdisc) {
        Err(error) if error.raw_os_error() == Some(EXISTS) => {}
        result => result?,
    }
    let options = Attribute::default()
        .with(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes())
        .with(TCA_BPF_NAME, b"causeway-punt\0")
        .with(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes());
    let info = PREFERENCE << 16 | u32::from(ETH_P_ALL.to_be());
    let filter =
        Request::new(RTM_NEWTFILTER, create | NLM_F_REPLACE, &self::header(tap_ifindex, 0, TC_INGRESS, info))
            .attribute(TCA_KIND, b"bpf\0")
            .nested(TCA_OPTIONS, options);
    socket.request(filter)
}

/// `struct tcmsg`.
fn header(ifindex: u32, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut header = [0; 20];
    for (place, value) in header[4..].chunks_exact_mut(4).zip([ifindex, handle, parent, info]) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
    header
}
