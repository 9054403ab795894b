//! Messages over netlink(7): a question and its answer, and what the kernel tells those who subscribe.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of a message's header.
pub const HEADER: usize = 16;

/// A socket of `protocol` (`NETLINK_ROUTE`, `NETLINK_GENERIC`), which stays in the calling thread's network namespace.
pub fn open(protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Appends an attribute.
pub fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Subscribes to what the kernel tells these groups, a bit each.
pub fn subscribe(socket: &OwnedFd, groups: u32) -> io::Result<()> {
    // SAFETY: plain data, for which zeros are valid.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = groups;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is live and its size is given.
    let r = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes the first message apart: its kind, what follows its header, and the messages after it. `None` at the end, and
/// where a length leads out of the bytes.
pub fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let head = bytes.first_chunk::<HEADER>()?;
    let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let body = bytes.get(HEADER..len)?;
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((u16::from_ne_bytes([head[4], head[5]]), body, rest))
}

/// The attributes and their values, as far as lengths stay inside the bytes.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<4>()?;
        let len = u16::from_ne_bytes([head[0], head[1]]) as usize;
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & 0x3fff, value))
    })
}

/// The value of the first attribute `wanted`.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// Sends a message of `kind` with what follows its header.
pub fn send(socket: &OwnedFd, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16 | flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    // SAFETY: the buffer is live and as long as given.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends a message as [`send`] and returns the whole answer; errors that it tells are ours.
pub fn ask(socket: &OwnedFd, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<Vec<u8>> {
    send(socket, kind, flags, body)?;
    let mut reply = vec![0u8; 8192];
    // SAFETY: as above.
    let got = unsafe { libc::recv(socket.as_raw_fd(), reply.as_mut_ptr().cast(), reply.len(), 0) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    reply.truncate(got as usize);
    let kind = reply.get(4..6).map(|k| u16::from_ne_bytes([k[0], k[1]]));
    if kind == Some(libc::NLMSG_ERROR as u16) {
        let code = reply.get(HEADER..HEADER + 4).and_then(<[u8]>::first_chunk);
        match code.map_or(-libc::EPROTO, |c| i32::from_ne_bytes(*c)) {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(-code)),
        }
    }
    Ok(reply)
}
