//! What XDP an interface's driver offers, asked over generic netlink (family `netdev`, Linux 6.3 and later).

use crate::netlink;
use crate::{Error, Result};
use std::io;
use std::os::fd::OwnedFd;

/// What a driver can do with XDP: `NETDEV_XDP_ACT_*`, and `NETDEV_XSK_FLAGS_*` for AF_XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    xdp: u64,
    xsk: u64,
}

impl Features {
    /// Runs programs in the driver.
    pub fn native(self) -> bool {
        self.xdp & 1 != 0
    }

    /// Can be the target of a redirect.
    pub fn redirect_target(self) -> bool {
        self.xdp & 4 != 0
    }

    /// Has zero-copy AF_XDP.
    pub fn zero_copy(self) -> bool {
        self.xdp & 8 != 0
    }

    /// Says when it has transmitted a frame of an AF_XDP socket.
    pub fn tx_timestamps(self) -> bool {
        self.xsk & 1 != 0
    }
}

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
/// Linux 6.8 and later.
const NETDEV_A_DEV_XSK_FEATURES: u16 = 6;
/// Bytes of the netlink and generic netlink headers.
const HEADERS: usize = netlink::HEADER + 4;

/// The question, kept open so that asking again costs one exchange.
#[derive(Debug)]
pub struct FeatureQuery {
    socket: OwnedFd,
    family: u16,
}

impl FeatureQuery {
    /// Opens the family.
    ///
    /// # Errors
    /// `ENOENT` on kernels without it.
    pub fn new() -> Result<FeatureQuery> {
        let failed = |e| Error::system("ask for XDP features", e);
        let socket = netlink::open(libc::NETLINK_GENERIC).map_err(failed)?;
        let reply = exchange(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"netdev\0")
            .map_err(failed)?;
        let family = attribute(&reply, CTRL_ATTR_FAMILY_ID).and_then(|v| v.first_chunk::<2>());
        match family {
            Some(id) => Ok(FeatureQuery { socket, family: u16::from_ne_bytes(*id) }),
            None => Err(failed(io::Error::from_raw_os_error(libc::ENOENT))),
        }
    }

    /// The features of the interface `ifindex` now; they change with the peer of a veth.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn get(&self, ifindex: u32) -> Result<Features> {
        let failed = |e| Error::system("ask for XDP features", e);
        let index = ifindex.to_ne_bytes();
        let reply = exchange(&self.socket, self.family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX, &index)
            .map_err(failed)?;
        let word = |kind| Some(u64::from_ne_bytes(*attribute(&reply, kind)?.first_chunk()?));
        match word(NETDEV_A_DEV_XDP_FEATURES) {
            Some(xdp) => Ok(Features { xdp, xsk: word(NETDEV_A_DEV_XSK_FEATURES).unwrap_or(0) }),
            None => Err(failed(io::Error::from_raw_os_error(libc::EPROTO))),
        }
    }
}

/// Sends one request with one attribute and returns the answer's bytes.
fn exchange(socket: &OwnedFd, family: u16, command: u8, attr: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    let mut body = vec![command, 1, 0, 0];
    netlink::put(&mut body, attr, value);
    netlink::ask(socket, family, 0, &body)
}

/// The value of the first attribute `wanted` after the headers.
fn attribute(message: &[u8], wanted: u16) -> Option<&[u8]> {
    netlink::attribute(message.get(HEADERS..)?, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_native_xdp() {
        match FeatureQuery::new() {
            Ok(query) => assert!(!query.get(1).expect("lo").native()),
            Err(e) => eprintln!("skipped: this kernel does not say: {e}"),
        }
    }

    #[test]
    fn cut_messages_are_refused() {
        let mut message = vec![0; HEADERS];
        message.extend([12, 0, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(attribute(&message, 3), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        for end in 0..message.len() {
            assert_eq!(attribute(&message[..end], 3), None);
        }
        message[HEADERS] = 0;
        assert_eq!(attribute(&message, 3), None, "a length below the header's would loop");
    }
}
