//! Routes of IPv4 put into the kernel as fast as it takes them, by messages of our own, and what it says of that to those who
//! listen. `ip -batch` waits for an answer to each and takes a tenth of this.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

const NEW_ROUTE: u16 = 24;
const DEL_ROUTE: u16 = 25;
const ERROR: u16 = 2;
/// Flags of a request: that it is one, that it is answered, that it replaces, that it creates.
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const SET: u16 = 0x100 | 0x400;
/// The group of messages about routes of IPv4.
const ROUTES: u32 = 7;
/// Octets of a header, and how many of messages are sent at once.
const HEADER: usize = 16;
const AT_ONCE: usize = 30_000;

/// A /24 of this number leads to this gateway from now on, or nowhere.
pub type Change = (u32, Option<Ipv4Addr>);

/// The first address of a /24.
pub fn prefix(n: u32) -> Ipv4Addr {
    Ipv4Addr::from((16 << 24) + (n << 8))
}

/// A churn of so many of `routes`, which all lead to the first gateway, and do again behind it: all of them to the other
/// gateway, half of them away and back, and the rest back. The order is scattered.
pub fn churn(routes: u32, changed: u32, [first, other]: [Ipv4Addr; 2]) -> Vec<Change> {
    let place = |i: u32| (u64::from(i) * 7_919 % u64::from(routes)) as u32;
    let (all, half) = (0..changed, changed / 2);
    let moved = all.clone().map(|i| (place(i), Some(other)));
    let gone = (0..half).map(|i| (place(i), None));
    moved.chain(gone).chain(all.map(|i| (place(i), Some(first)))).collect()
}

fn open(groups: u32) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

/// Has the kernel of this thread's namespace make changes; it is done with them all when this returns.
pub fn change(changes: &[Change]) -> io::Result<()> {
    let socket = open(0)?;
    for changes in changes.chunks(AT_ONCE / message((0, Some(Ipv4Addr::LOCALHOST)), 0).len()) {
        let (last, others) = changes.split_last().expect("a chunk has one");
        let mut bytes: Vec<u8> = others.iter().flat_map(|&one| message(one, 0)).collect();
        bytes.extend(message(*last, ACK));
        send(&socket, &bytes, SendFlags::empty())?;
        // What fails is answered as well, before the last.
        let mut answer = [0; 1 << 13];
        let (len, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        let word =
            |at: usize| answer[..len].get(at..at + 4).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
        match (u16::from_ne_bytes([answer[4], answer[5]]), word(HEADER)) {
            (ERROR, Some(0)) => {}
            (ERROR, Some(error)) => return Err(io::Error::from_raw_os_error(-error)),
            _ => return Err(io::Error::other("no answer to a change of routes")),
        }
    }
    Ok(())
}

fn message((n, gateway): Change, flags: u16) -> Vec<u8> {
    let (kind, flags) = match gateway {
        Some(_) => (NEW_ROUTE, REQUEST | SET | flags),
        None => (DEL_ROUTE, REQUEST | flags),
    };
    let attribute = |kind: u16, value: Ipv4Addr| {
        [&8_u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value.octets()].concat()
    };
    // Family, lengths, type of service, table main, protocol static, scope everywhere or any, unicast; flags.
    let scope = if gateway.is_some() { 0 } else { 255 };
    let mut body = vec![2, 24, 0, 0, 254, 4, scope, 1, 0, 0, 0, 0];
    body.extend(attribute(1, prefix(n)));
    body.extend(gateway.map(|gateway| attribute(5, gateway)).unwrap_or_default());
    let len = ((HEADER + body.len()) as u32).to_ne_bytes();
    [&len[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8], &body].concat()
}

/// Hears what the kernel of a namespace says about routes of IPv4.
pub struct Listener(OwnedFd);

impl Listener {
    /// In this thread's namespace, with room for so many octets that were not read.
    pub fn open(room: usize) -> io::Result<Listener> {
        let socket = open(1 << (ROUTES - 1))?;
        sockopt::set_socket_recv_buffer_size_force(&socket, room)?;
        Ok(Listener(socket))
    }

    /// The next datagram, if there is one already or it comes within so long.
    pub fn next(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.0, buffer, RecvFlags::empty())?.0)
    }

    /// The longest that [`next`](Self::next) waits.
    pub fn wait_at_most(&self, time: std::time::Duration) -> io::Result<()> {
        Ok(sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(time))?)
    }
}
