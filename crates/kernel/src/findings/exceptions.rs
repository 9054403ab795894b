//! Route exceptions: what the kernel has learned of single destinations (RFC 1191 and RFC 8201: a path MTU; RFC 1122 §3.2.2.2
//! and RFC 4861 §8: a better way).
//!
//! The kernel obeys them for packets that it forwards, keeps them beside its routes, and sends no message when they come or go.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use super::Probe;
use crate::decode::exception;
use crate::socket::{Dump, Socket};
use crate::uapi::*;
use crate::wire::Request;

/// Asks for the exceptions of the network namespace of the thread that opened it.
pub(super) struct Exceptions {
    socket: Socket,
    /// Whether the kernel shows exceptions alone, once that was asked for.
    alone: Option<bool>,
    known: BTreeSet<IpAddr>,
}

impl Exceptions {
    pub fn open() -> io::Result<Self> {
        Ok(Exceptions { socket: Socket::open(None)?, alone: None, known: BTreeSet::new() })
    }

    /// The destinations that something was learned of. None in a kernel that would show all its routes with them (before
    /// Linux 5.3), of which there may be a million.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ask(&mut self, probe: &dyn Probe) -> io::Result<BTreeSet<IpAddr>> {
        let socket = &self.socket;
        let mut ask_alone = || probe.filter_dumps(socket.as_fd()).is_ok();
        if !*self.alone.get_or_insert_with(&mut ask_alone) {
            return Ok(BTreeSet::new());
        }
        let mut found = BTreeSet::new();
        for family in [AF_INET, AF_INET6] {
            let mut header = [0; 12];
            header[0] = family;
            header[8..].copy_from_slice(&RTM_F_CLONED.to_ne_bytes());
            let request = Request::new(RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, &header);
            match self.socket.dump(request, |frame| found.extend(exception(frame))) {
                Ok(Dump::Complete) => {}
                // Routes change all the time where there are many. What was not shown may be there still.
                Ok(Dump::Interrupted) => found.extend(&self.known),
                // Without IPv6.
                Err(error) if error.raw_os_error() == Some(EOPNOTSUPP) => {}
                Err(error) => return Err(error),
            }
        }
        self.known.clone_from(&found);
        Ok(found)
    }
}
