//! The tables that follow the kernel's, as workers see them.

use causeway_engine::{Conf, Invalid};
use causeway_fib::{Adjacencies, AdjacencyReader, Fib4, Fib4Reader, Fib6, Fib6Reader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Key of the [`Forwarding`] among the values that outlive a hot swap.
pub const FORWARDING: &str = "forwarding";

/// In place of a port's number: leave the packet to the kernel.
pub const KERNEL: u16 = u16::MAX;

/// Where packets of a route leave, and what their frames need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neighbor {
    /// Number of the port among [`Forwarding::ports`], or [`KERNEL`].
    pub port: u16,
    /// The largest IP packet, octets.
    pub mtu_bytes: u32,
    /// Destination and source address of the Ethernet header.
    pub addresses: [u8; 12],
    /// Tells entries apart that are otherwise equal, so that each can change alone.
    pub serial: u32,
}

/// Handles of the tables that elements clone theirs from.
#[derive(Clone)]
pub(crate) struct Readers {
    pub v4: Fib4Reader,
    pub v6: Fib6Reader,
    pub neighbors: AdjacencyReader<Neighbor>,
}

/// What the elements of a router read that forwards by the kernel's routes.
///
/// The tables lead from a prefix to an index of the adjacencies, and from there to a [`Neighbor`]. Their owner
/// changes them while workers look up.
pub struct Forwarding {
    ports: Vec<String>,
    readers: Mutex<Readers>,
    trusted: AtomicBool,
}

impl Forwarding {
    /// For the tables given and these ports, in the order that numbers them. All packets are left to the kernel
    /// until [`Forwarding::trust`].
    pub fn new(ports: Vec<String>, v4: &Fib4, v6: &Fib6, neighbors: &Adjacencies<Neighbor>) -> Forwarding {
        let readers = Readers { v4: v4.reader(), v6: v6.reader(), neighbors: neighbors.reader() };
        Forwarding { ports, readers: Mutex::new(readers), trusted: AtomicBool::new(false) }
    }

    /// Names of the ports.
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Says whether the tables are what the kernel has. While they are not, all packets are left to the kernel.
    pub fn trust(&self, trusted: bool) {
        // Release: a worker that sees the tables trusted sees what was put into them before.
        self.trusted.store(trusted, Ordering::Release);
    }

    /// Whether packets are forwarded by the tables.
    #[inline]
    pub fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Acquire)
    }

    pub(crate) fn readers(&self) -> Readers {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that the router was started with. Without one the tables are empty, and all packets the kernel's.
    pub(crate) fn find(conf: &mut Conf<'_>) -> Result<Arc<Forwarding>, Invalid> {
        let empty = || Forwarding::new(Vec::new(), &Fib4::new(), &Fib6::new(), &Adjacencies::new());
        let found = conf.env.persistent(FORWARDING, empty).ok_or(Invalid)?;
        if found.ports.is_empty() {
            conf.warn(
                "no tables follow the kernel's, so all packets are left to it; `causeway up` keeps them",
            );
        }
        Ok(found)
    }

    /// The number of the port called `name`; an error if there are ports, but none of that name.
    pub(crate) fn number(&self, conf: &mut Conf<'_>, name: &str) -> Option<u16> {
        let number = self.ports.iter().position(|p| p == name);
        if number.is_none() && !self.ports.is_empty() {
            conf.error(format!(
                "the kernel's routes are followed for {}, not for '{name}'",
                self.ports.join(", ")
            ));
        }
        number.map(|n| n as u16)
    }
}
