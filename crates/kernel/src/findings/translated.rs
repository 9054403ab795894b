//! The finding about connections whose addresses the kernel goes on translating when there are no rules for it any more.
//!
//! A rule decides of a connection's first packet. What comes later is translated by what the kernel keeps of the connection, as long
//! as its translator is called: that is, as long as any chain for it is there, also an empty one. There are no messages about this
//! that do not come for every connection.

use std::io;

use super::inquiry::{big_endian, netfilter_dump};
use super::{Check, Finding};
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attributes, Frame, Malformed, Request};

/// Octets of `struct nfgenmsg`.
const HEADER_LEN: usize = 4;

/// Whether the kernel translates some connection.
///
/// # Errors
/// The kernel's; [`Interrupted`](io::ErrorKind::Interrupted) if something changed meanwhile.
pub(super) fn finding(socket: &mut Socket) -> io::Result<Option<Finding>> {
    const MEND: &str =
        "nft delete chain ... (of type nat, all that there are), or wait until these connections have ended";
    for bit in [IPS_SRC_NAT, IPS_DST_NAT] {
        match dump(socket, bit) {
            Ok(0) => {}
            Ok(connections) => {
                let what = format!(
                    "forwarded packets would pass by the translation of addresses, which {connections} connection(s) \
                     that began before still have"
                );
                return Ok(Some(Check::NetfilterHook.refuse("connections", what, MEND)));
            }
            // Without its module the kernel cannot be asked.
            Err(error) if matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP)) => {
                let what =
                    "the kernel's translator of addresses is called, and does not say whether it translates";
                return Ok(Some(Check::NetfilterHook.refuse(
                    "connections",
                    what,
                    "modprobe nf_conntrack_netlink; or nft delete chain ... (of type nat, all that there are)",
                )));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// How many connections have this bit of the status.
fn dump(socket: &mut Socket, bit: u32) -> io::Result<usize> {
    let kind = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET;
    // Older kernels do not know the filter, and show all.
    let only = |request: Request| {
        request.attribute(CTA_STATUS, &bit.to_be_bytes()).attribute(CTA_STATUS_MASK, &bit.to_be_bytes())
    };
    let found =
        netfilter_dump(socket, kind, AF_UNSPEC, only, |frame| Ok((status(frame)? & bit != 0).then_some(())))?;
    Ok(found.len())
}

fn status(frame: &Frame<'_>) -> Result<u32, Malformed> {
    let mut status = 0;
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        if let (CTA_STATUS, value) = attribute? {
            status = big_endian(value).ok_or(Malformed("connection"))?;
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Frames;
    use proptest::prelude::*;

    #[test]
    fn the_status_is_read_wherever_it_stands() {
        for (length, expected) in [(4, Some(IPS_SRC_NAT)), (3, None)] {
            let bytes = Request::new(0, 0, &[2, 0, 0, 0])
                .attribute(1, b"tuple")
                .attribute(CTA_STATUS, &IPS_SRC_NAT.to_be_bytes()[..length])
                .finish(1);
            assert_eq!(status(&Frames(&bytes).next().unwrap().unwrap()).ok(), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = status(&Frame { kind: 0, flags: 0, sequence: 0, payload: &bytes });
        }
    }
}
