//! A netlink socket: requests, dumps and subscriptions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::uapi::*;
use crate::wire::{Frame, Frames, Request, u32_at};

/// The kernel makes dump datagrams of up to 32 KiB; an event can be larger when a device has many virtual functions.
pub(crate) const DATAGRAM_LEN: usize = 128 * 1024;

/// A netlink socket.
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
    /// The kernel's table changed under the dump that runs.
    interrupted: bool,
}

/// How a dump ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dump {
    Complete,
    /// The kernel's table changed meanwhile (`NLM_F_DUMP_INTR`): some of it may be missing.
    Interrupted,
}

impl Socket {
    /// A socket for requests and dumps; no protocol is the routing protocol, number 0.
    pub fn open(protocol: Option<net::Protocol>) -> io::Result<Self> {
        Self::subscribe(protocol, &[], 0)
    }

    /// A socket that also gets the messages of some multicast groups, with a receive buffer of that many octets (or as many
    /// as the process may have).
    pub fn subscribe(
        protocol: Option<net::Protocol>,
        groups: &[u32],
        receive_buffer_bytes: usize,
    ) -> io::Result<Self> {
        let fd = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        if receive_buffer_bytes > 0
            && sockopt::set_socket_recv_buffer_size_force(&fd, receive_buffer_bytes).is_err()
        {
            // Without CAP_NET_ADMIN over the machine the kernel caps it at net.core.rmem_max.
            sockopt::set_socket_recv_buffer_size(&fd, receive_buffer_bytes)?;
        }
        let mask = groups.iter().fold(0, |mask, group| mask | 1u32 << (group - 1));
        net::bind(&fd, &net::netlink::SocketAddrNetlink::new(0, mask))?;
        Ok(Socket { fd, sequence: 0, buffer: vec![0; DATAGRAM_LEN], interrupted: false })
    }

    /// Sends a request and waits for the kernel's word that it was done.
    ///
    /// # Errors
    /// The kernel's refusal, as an OS error.
    pub fn request(&mut self, request: Request) -> io::Result<()> {
        self.ask(request, |_| None).map(|_: Option<()>| ())
    }

    /// Sends a request for one thing and hands over the answer; `parse` says which message that is.
    ///
    /// # Errors
    /// The kernel's refusal, as an OS error.
    pub fn ask<T>(
        &mut self,
        request: Request,
        parse: impl Fn(&Frame<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let sequence = self.send(request)?;
        loop {
            let len = self.receive()?;
            for frame in Frames(&self.buffer[..len]) {
                let frame = frame.map_err(io::Error::other)?;
                if frame.sequence != sequence {
                    continue;
                }
                if frame.kind == NLMSG_ERROR {
                    return verdict(&frame).map(|()| None);
                }
                if let Some(answer) = parse(&frame) {
                    return Ok(Some(answer));
                }
            }
        }
    }

    /// Sends a dump request and hands over each message of the answer.
    pub fn dump(&mut self, request: Request, mut each: impl FnMut(&Frame<'_>)) -> io::Result<Dump> {
        self.begin_dump(request)?;
        loop {
            if let Some(end) = self.go_on(&mut each)? {
                return Ok(end);
            }
        }
    }

    /// Sends a dump request. No other request is to be sent before [`Socket::go_on`] has told the end.
    pub fn begin_dump(&mut self, request: Request) -> io::Result<()> {
        self.interrupted = false;
        self.send(request).map(drop)
    }

    /// Hands over the next messages of the dump that was begun, and says how it ended if that is all.
    pub fn go_on(&mut self, mut each: impl FnMut(&Frame<'_>)) -> io::Result<Option<Dump>> {
        let len = self.receive()?;
        for frame in Frames(&self.buffer[..len]) {
            let frame = frame.map_err(io::Error::other)?;
            if frame.sequence != self.sequence {
                continue;
            }
            self.interrupted |= frame.flags & NLM_F_DUMP_INTR != 0;
            match frame.kind {
                NLMSG_ERROR => verdict(&frame)?,
                NLMSG_DONE => {
                    let end = if self.interrupted { Dump::Interrupted } else { Dump::Complete };
                    return verdict(&frame).map(|()| Some(end));
                }
                _ => each(&frame),
            }
        }
        Ok(None)
    }

    fn send(&mut self, request: Request) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        net::send(&self.fd, &request.finish(self.sequence), SendFlags::empty())?;
        Ok(self.sequence)
    }

    fn receive(&mut self) -> io::Result<usize> {
        loop {
            match net::recv(&self.fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, len)) if len > self.buffer.len() => {
                    return Err(io::Error::other("netlink message too long"));
                }
                Ok((_, len)) => return Ok(len),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The error number that `NLMSG_ERROR` and `NLMSG_DONE` begin with: 0, or negative.
fn verdict(frame: &Frame<'_>) -> io::Result<()> {
    match u32_at(frame.payload, 0).map_or(0, |code| code as i32) {
        0 => Ok(()),
        code if code < 0 => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Ok(()),
    }
}
