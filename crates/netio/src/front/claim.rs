//! A port's place behind the gate.

use super::port::PortRecord;
use super::{Front, Place, Reason};
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{Program, TcxLink, XdpLink, XdpMode};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// One port's place in a [`Front`], given back when dropped.
#[derive(Debug)]
pub struct Claim {
    front: Arc<Front>,
    ifindex: u32,
    place: Place,
}

impl Claim {
    /// The place of a port that the front has a record of. An earlier port may have had the same counters: they begin at nothing.
    pub(super) fn new(front: Arc<Front>, ifindex: u32, place: Place) -> Result<Claim> {
        let claim = Claim { front, ifindex, place };
        let first = claim.record().map_or(0, |r| r.first_counter);
        Reason::ALL.iter().try_for_each(|&r| claim.front.counters.clear_per_cpu(first + r as u32))?;
        Ok(claim)
    }

    /// Attaches the front's program to the interface, called `ifname` in errors: by the link that was laid by for it,
    /// whatever its mode is, or by a new one.
    ///
    /// # Errors
    /// As [`XdpLink::attach`].
    pub fn attach(&self, ifname: &str, mode: XdpMode) -> Result<Arc<XdpLink>> {
        self.front.links.attach(&self.front.at_xdp.gate.root, ifname, self.ifindex, mode)
    }

    /// Attaches the front's program at the ingress of the interface of a port at tcx.
    ///
    /// # Errors
    /// As [`TcxLink::attach_ingress`]; [`ErrorKind::Unsupported`] for a port at XDP.
    pub fn attach_at_tcx(&self, ifname: &str) -> Result<TcxLink> {
        match self.front.side(self.place).filter(|_| self.place == Place::Tcx) {
            Some(side) => TcxLink::attach_ingress(&side.gate.root, ifname, self.ifindex),
            None => Err(Error::new(ErrorKind::Unsupported, format!("{ifname} is no port at tcx"))),
        }
    }

    /// Where the program of the port is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Frames of queue `queue` that are taken go to `socket` from now on.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<()> {
        match self.record() {
            Some(r) if queue < r.queues => {
                self.front.sockets.insert_u32(r.first_socket + queue, socket.as_raw_fd() as u32)
            }
            _ => {
                Err(Error::new(ErrorKind::System, format!("interface {} has no queue {queue}", self.ifindex)))
            }
        }
    }

    /// Frames of queue `queue` are passed from now on, apart from those that the program is deciding on.
    pub fn clear_socket(&self, queue: u32) {
        if let Some(record) = self.record().filter(|r| queue < r.queues) {
            // The slot may be empty already: the map forgets sockets that are closed.
            let _ = self.front.sockets.remove(&(record.first_socket + queue).to_ne_bytes());
        }
    }

    /// Frames counted for `reason`, all queues.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn count(&self, reason: Reason) -> Result<u64> {
        let first = self.record().map_or(0, |r| r.first_counter);
        self.front.counters.per_cpu_sum(first + reason as u32)
    }

    /// The program behind the gate, for test runs.
    pub fn program(&self) -> &Program {
        // There is a claim only where there are programs.
        &self.front.side(self.place).unwrap_or(&self.front.at_xdp).program
    }

    fn record(&self) -> Option<PortRecord> {
        self.front.claims().get(&self.ifindex).copied()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let queues = self.record().map_or(0, |r| r.queues);
        (0..queues).for_each(|queue| self.clear_socket(queue));
        // Who changes the record holds the claims, and must not bring it back.
        let mut claims = self.front.claims();
        self.front.ports.remove(self.ifindex);
        let graphs = self.front.side(self.place).and_then(|side| side.graphs.as_ref());
        if let (Some(record), Some(graphs)) = (claims.remove(&self.ifindex), graphs) {
            graphs.end(record.graph);
        }
    }
}
