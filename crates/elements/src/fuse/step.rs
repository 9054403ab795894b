//! What elements of a chain say that they do, when a fused element asks.

use crate::ip::check_ip_header::Sources;
use crate::iproute::hops::View;
use causeway_engine::{Counter, Lowered};
use causeway_fib::Lookup;

/// What an element does to ordinary packets, which [`super`] defines.
pub(crate) enum Step {
    /// Nothing.
    Pass,
    /// Sends packets to outputs by their content; to this one all IPv4 frames, if it is one for all.
    Classify { ipv4_output: Option<usize> },
    /// Sets the paint annotation.
    Paint(u8),
    /// Takes so many bytes off the front.
    Strip(usize),
    /// Checks and marks the header, and makes its destination the destination annotation.
    Check(HeaderCheck),
    /// Copies an address to the destination annotation.
    Address(AddressAt),
    /// Sends packets to outputs by a routing table.
    LookUp(RouteLookup),
    /// Sends a copy of packets of this paint elsewhere.
    Copy { paint: u8 },
    /// Decrements the time to live, and sends packets that have lived long enough elsewhere.
    DecrementTtl,
    /// Cuts packets that are longer than so many bytes from the network header on.
    Fragment { mtu: usize },
}

impl Step {
    /// The answer to who asks.
    pub fn lowered(self) -> Option<Lowered> {
        Some(Box::new(self))
    }
}

/// Where an address is copied from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressAt {
    /// So many bytes behind the start of the data.
    Data(usize),
    /// So many bytes behind the start of the network header.
    Header(usize),
}

/// A header check.
pub(crate) struct HeaderCheck {
    /// Bytes in front of the header.
    pub offset: usize,
    /// Whether the checksum is verified.
    pub checksum: bool,
    pub sources: Sources,
    /// The element's count of good packets.
    pub good: Counter,
}

/// A routing table.
pub(crate) struct RouteLookup {
    pub reader: Box<dyn BatchLookup>,
    pub hops: View<u32>,
}

/// Looks up batches; what is called once a batch may be called through a table of functions.
pub(crate) trait BatchLookup: Send {
    /// As [`Lookup::lookup_batch`].
    fn lookup_batch(&self, addresses: &[u32], results: &mut [u32]);
}

impl<R: Lookup<u32> + Send> BatchLookup for R {
    fn lookup_batch(&self, addresses: &[u32], results: &mut [u32]) {
        Lookup::lookup_batch(self, addresses, results);
    }
}
