//! Connections: one that was made, or one after the other that are accepted.

use super::descriptors::Descriptors;
use super::outlet::Peer;
use super::{inlet, text};
use crate::printing::to_stderr;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, SocketFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What there was to read.
pub(super) enum Accepted {
    /// So many bytes.
    Bytes(usize),
    /// A connection, of which somebody must say whether it may be.
    Question,
    Nothing,
}

/// What is at the other end.
enum State {
    /// Nobody.
    Closed,
    /// Whoever has connected asks to be let in.
    Asking(OwnedFd, SocketAddrAny),
    /// The connection that was accepted.
    Accepted(Arc<OwnedFd>),
    /// The socket itself is the connection.
    Connected,
}

/// The connection of a stream socket.
pub(super) struct Stream {
    state: State,
    server: bool,
    /// Whether somebody is asked before a connection is accepted.
    guarded: bool,
    /// What messages begin with, if there are to be any.
    verbose: Option<String>,
}

impl Stream {
    pub fn new(server: bool, guarded: bool) -> Stream {
        Stream {
            state: if server { State::Closed } else { State::Connected },
            server,
            guarded,
            verbose: None,
        }
    }

    /// Lets messages go to standard error, with `declaration` in front.
    pub fn set_verbose(&mut self, declaration: String) {
        self.verbose = Some(declaration);
    }

    /// Says something, if anybody wants to know.
    pub fn say(&self, what: &str) {
        if let Some(declaration) = &self.verbose {
            to_stderr(&format!("{declaration}: {what}\n"));
        }
    }

    /// Whether a connection waits to be let in.
    pub fn asks(&self) -> bool {
        matches!(self.state, State::Asking(..))
    }

    /// Whether there is anybody at the other end.
    pub fn peer(&self) -> Peer {
        match &self.state {
            State::Accepted(_) | State::Connected => Peer::There,
            _ if self.server => Peer::Awaited,
            _ => Peer::Never,
        }
    }

    /// The IPv4 address of who asks to be let in.
    pub fn asker(&self) -> Option<u32> {
        match &self.state {
            State::Asking(_, from) => Some(inlet::ipv4(from)),
            _ => None,
        }
    }

    /// Lets who asks in, or not.
    pub fn answer(&mut self, descriptors: &Descriptors, allowed: bool) {
        let State::Asking(fd, from) = std::mem::replace(&mut self.state, State::Closed) else { return };
        let what = if allowed { "opened" } else { "denied" };
        let from = match std::net::SocketAddrV4::try_from(from) {
            Ok(address) => format!("{}:{}", address.ip(), address.port()),
            Err(_) => String::new(),
        };
        self.say(&format!("{what} connection {} from {from}", fd.as_raw_fd()));
        if allowed && descriptors.wait_for(fd.as_fd()).is_ok() {
            self.state = State::Accepted(Arc::new(fd));
        }
    }

    fn close(&mut self) {
        if let State::Accepted(fd) = &self.state {
            self.say(&format!("closed connection {}", fd.as_raw_fd()));
        }
        self.state = State::Closed;
    }

    /// Reads what has come, or accepts who has connected.
    pub fn read(&mut self, descriptors: &Descriptors, buffer: &mut [u8]) -> Accepted {
        loop {
            let read = match &self.state {
                State::Asking(..) => return Accepted::Nothing,
                State::Closed if !self.server => return Accepted::Nothing,
                State::Closed => {
                    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                    match rustix::net::acceptfrom_with(&descriptors.socket, flags) {
                        Ok((fd, Some(from))) => {
                            self.state = State::Asking(fd, from);
                            if self.guarded {
                                return Accepted::Question;
                            }
                            self.answer(descriptors, true);
                            continue;
                        }
                        Err(Errno::INTR) | Ok((_, None)) => continue,
                        Err(e) => {
                            if e != Errno::AGAIN {
                                self.say(&format!("accept: {}", text(e)));
                            }
                            return Accepted::Nothing;
                        }
                    }
                }
                State::Accepted(fd) => rustix::net::recv(fd.as_fd(), &mut *buffer, RecvFlags::DONTWAIT),
                State::Connected => rustix::net::recv(&descriptors.socket, &mut *buffer, RecvFlags::DONTWAIT),
            };
            match read {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Accepted::Nothing,
                Ok((0, _)) => self.close(),
                Ok((n, _)) => return Accepted::Bytes(n),
                Err(e) => {
                    self.say(&text(e));
                    self.close();
                }
            }
        }
    }

    /// Sends as much of `bytes` as there is room for. `None` = nobody is there.
    pub fn write(&mut self, descriptors: &Descriptors, bytes: &[u8]) -> Option<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            let fd: BorrowedFd<'_> = match &self.state {
                State::Accepted(fd) => fd.as_fd(),
                State::Connected => descriptors.socket.as_fd(),
                State::Closed | State::Asking(..) => return None,
            };
            match rustix::net::send(fd, &bytes[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                Err(e) => {
                    self.say(&text(e));
                    self.close();
                    return None;
                }
            }
        }
        Some(sent)
    }
}
