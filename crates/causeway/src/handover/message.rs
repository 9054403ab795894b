//! Lines of JSON with descriptors, over a UNIX socket.

use causeway_elements::kernel::PORTS_MAX;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde_json::Value;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Descriptors of one message: those of all ports, and of a few sockets. The kernel takes 253 (`SCM_MAX_FD`).
const DESCRIPTORS: usize = 128;
/// Control socket, socket for upgrades, standard error, metrics.
const SOCKETS: usize = 4;
const _: () = assert!(PORTS_MAX + SOCKETS <= DESCRIPTORS, "a router with all its ports can be handed over");
/// Octets of a message.
const LONGEST: usize = 1 << 16;
/// How long the other end may take to make room for a message.
const SENDING: Duration = Duration::from_secs(5);

/// A connection of which each end sends lines.
pub struct Line {
    socket: UnixStream,
    /// What was received behind the last line.
    rest: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// Why no message came.
#[derive(Debug)]
pub enum Missing {
    /// The other end is closed.
    Closed,
    /// Nothing came for so long.
    Silent(Duration),
    /// Something else than a message came.
    Strange,
    Failed(io::Error),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Closed => f.write_str("it has ended"),
            Missing::Silent(time) => write!(f, "it has said nothing for {} s", time.as_secs()),
            Missing::Strange => f.write_str("it says what cannot be understood"),
            Missing::Failed(error) => error.fmt(f),
        }
    }
}

impl Line {
    /// Over a connected socket.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(socket: UnixStream) -> io::Result<Line> {
        socket.set_write_timeout(Some(SENDING))?;
        Ok(Line { socket, rest: Vec::new(), descriptors: Vec::new() })
    }

    /// The same connection, for another thread to send by.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn other(&self) -> io::Result<Line> {
        Line::new(self.socket.try_clone()?)
    }

    /// Sends a message and descriptors.
    ///
    /// # Errors
    /// The kernel's: the other end is closed, or does not read.
    pub fn send(&self, message: &Value, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = format!("{message}\n");
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "too many descriptors"));
        }
        let mut sent =
            sendmsg(&self.socket, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        while sent < text.len() {
            let rest = IoSlice::new(&text.as_bytes()[sent..]);
            sent += sendmsg(&self.socket, &[rest], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// The next message with its descriptors, which is waited for as long as `patience`. What has come by then counts, also if
    /// this process could not look for longer than that.
    pub fn receive(&mut self, patience: Duration) -> Result<(Value, Vec<OwnedFd>), Missing> {
        let end = Instant::now() + patience;
        loop {
            if let Some(length) = self.rest.iter().position(|&b| b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=length).collect();
                let value = serde_json::from_slice(&line).map_err(|_| Missing::Strange)?;
                return Ok((value, std::mem::take(&mut self.descriptors)));
            }
            if self.rest.len() > LONGEST {
                return Err(Missing::Strange);
            }
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left)).map_err(Missing::Failed)?;
            match self.read() {
                Ok(0) => return Err(Missing::Closed),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(Missing::Silent(patience)),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Err(Missing::Closed),
                Err(e) => return Err(Missing::Failed(e)),
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4_096];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let n = recvmsg(&self.socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.rest.extend(&bytes[..n]);
        Ok(n)
    }
}
