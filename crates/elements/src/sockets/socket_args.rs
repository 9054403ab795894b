//! What the classes of sockets have in common: arguments, and how sockets are opened.

use super::descriptors::Descriptors;
use super::failed;
use crate::udp::udp_ip_encap::port;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::addresses::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, sockopt};
use std::os::fd::{AsFd, OwnedFd};

/// How long a connection may take to be made.
const CONNECT_S: i64 = 10;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 2;

settings! {
    /// Keywords of all sockets.
    pub(super) struct Common {
        snaplen: u32 = keyword("SNAPLEN", "bytes", "longest packet received, at most a frame; default 2048"), or(2_048);
        headroom: u32 = keyword("HEADROOM", "bytes", "room in front of packets, as far as there is; default 128"), or(Packet::HEADROOM as u32);
        timestamp: bool = keyword("TIMESTAMP", "boolean", "whether packets get the time of their reception; default true"), or(true);
        rcvbuf: Option<u32> = keyword("RCVBUF", "bytes", "of the kernel's receive buffer; default the kernel's"), or(None);
        sndbuf: Option<u32> = keyword("SNDBUF", "bytes", "of the kernel's send buffer; default the kernel's"), or(None);
    }
}

/// A port of UDP, by number or name.
pub(super) struct UdpPort(pub u16);
/// A port of TCP, by number or name.
pub(super) struct TcpPort(pub u16);

impl Value for UdpPort {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        port(text, scope, Transport::Udp).map(UdpPort)
    }

    fn placeholder() -> Self {
        UdpPort(0)
    }
}

impl Value for TcpPort {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        port(text, scope, Transport::Tcp).map(TcpPort)
    }

    fn placeholder() -> Self {
        TcpPort(0)
    }
}

/// A new socket, which never waits.
pub(super) fn open(
    family: AddressFamily,
    kind: SocketType,
    protocol: Option<Protocol>,
) -> Result<OwnedFd, Error> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, kind, flags, protocol).map_err(failed("socket"))
}

impl Common {
    /// Sets the sizes of the kernel's buffers.
    pub fn set_buffers(&self, receives: &OwnedFd, sends: &OwnedFd) -> Result<(), Error> {
        if let Some(bytes) = self.sndbuf {
            sockopt::set_socket_send_buffer_size(sends, bytes as usize)
                .map_err(failed("setsockopt(SO_SNDBUF)"))?;
        }
        if let Some(bytes) = self.rcvbuf {
            sockopt::set_socket_recv_buffer_size(receives, bytes as usize)
                .map_err(failed("setsockopt(SO_RCVBUF)"))?;
        }
        Ok(())
    }
}

/// Connects, and waits no longer than is fair to whoever starts the router.
pub(super) fn connect(socket: &OwnedFd, to: &SocketAddrAny) -> Result<(), Error> {
    match rustix::net::connect(socket, to) {
        Ok(()) => return Ok(()),
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(e) => return Err(failed("connect")(e)),
    }
    let mut wait = [PollFd::new(socket, PollFlags::OUT)];
    let limit = Timespec { tv_sec: CONNECT_S, tv_nsec: 0 };
    match poll(&mut wait, Some(&limit)) {
        Ok(0) => Err(failed("connect")(Errno::TIMEDOUT)),
        Ok(_) => match sockopt::socket_error(socket) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) | Err(e) => Err(failed("connect")(e)),
        },
        Err(e) => Err(failed("connect")(e)),
    }
}

/// Lets others connect.
pub(super) fn listen(socket: &OwnedFd) -> Result<(), Error> {
    rustix::net::listen(socket.as_fd(), BACKLOG).map_err(failed("listen"))
}

/// The sockets with what waits for them.
pub(super) fn descriptors(socket: OwnedFd) -> Result<Descriptors, Error> {
    Descriptors::new(socket).map_err(failed("epoll"))
}

/// Clears what an inlet noted in received packets, and stamps them.
pub(super) fn received(packet: &mut Packet, timestamp: bool, now_ns: u64) {
    packet.set_flow_hash(0);
    if timestamp {
        packet.set_timestamp_ns(now_ns);
    }
}
