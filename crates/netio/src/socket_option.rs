//! getsockopt(2) for options whose length only the caller knows, the network namespace's cookie, and an option of netlink sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// Reads an option of a socket into `value`, which also holds what the option wants to be told, and says how many octets of
/// it the kernel filled.
///
/// # Errors
/// What getsockopt(2) says.
pub fn socket_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let at = value.as_mut_ptr().cast();
    // SAFETY: `value` is live and `len` its size; the kernel writes no more, and octets of any value are fine.
    let r = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &mut len) };
    if r == 0 { Ok((len as usize).min(value.len())) } else { Err(io::Error::last_os_error()) }
}

/// The number of this thread's network namespace, which no other has until the machine starts anew (`SO_NETNS_COOKIE`, since Linux
/// 5.14). That of the link `/proc/PID/ns/net` is given to the next namespace as soon as one is gone.
///
/// # Errors
/// What socket(2) and getsockopt(2) say.
pub fn netns_cookie() -> io::Result<u64> {
    const SO_NETNS_COOKIE: i32 = 71;
    let mut cookie = [0; 8];
    let len =
        socket_option(UnixDatagram::unbound()?.as_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut cookie)?;
    if len == cookie.len() { Ok(u64::from_ne_bytes(cookie)) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Lets the kernel show in dumps to a netlink socket only what the request asks for, and refuse requests that it does not
/// understand (`NETLINK_GET_STRICT_CHK`, since Linux 4.20).
///
/// # Errors
/// What setsockopt(2) says.
pub fn filter_dumps(socket: BorrowedFd<'_>) -> io::Result<()> {
    const NETLINK_GET_STRICT_CHK: i32 = 12;
    let on: libc::c_int = 1;
    let len = size_of_val(&on) as libc::socklen_t;
    let value = std::ptr::from_ref(&on).cast();
    // SAFETY: the value is live and its size is given.
    let r = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, NETLINK_GET_STRICT_CHK, value, len)
    };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn an_option_is_read_and_a_wrong_one_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut value = [0xff; 16];
        let len = socket_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TYPE, &mut value).unwrap();
        assert_eq!(value[..len], libc::SOCK_DGRAM.to_ne_bytes());
        assert_eq!(value[len..], [0xff; 12]);
        let error = socket_option(socket.as_fd(), libc::SOL_SOCKET, -1, &mut value).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
        assert!(filter_dumps(socket.as_fd()).is_err(), "no netlink socket");
    }
}
