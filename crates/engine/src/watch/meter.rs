//! Bytes that pass the edges, while somebody wants to know: to ask each packet for its length costs more than to count it.

use super::Interest;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes that pass each of some edges until it is dropped.
pub(crate) struct Meter {
    bytes: Arc<[AtomicU64]>,
    _watcher: Arc<()>,
}

impl Meter {
    /// A meter of so many edges, and what its workers want to know of it.
    pub fn new(edges: usize) -> (Meter, Metered, Interest) {
        let bytes: Arc<[AtomicU64]> = (0..edges).map(|_| AtomicU64::new(0)).collect();
        let (watcher, interest) = Interest::new();
        (Meter { bytes: bytes.clone(), _watcher: watcher }, Metered { bytes, edge: 0 }, interest)
    }

    /// Bytes that have passed an edge.
    pub fn bytes(&self, edge: usize) -> u64 {
        self.bytes.get(edge).map_or(0, |bytes| bytes.load(Ordering::Relaxed))
    }
}

/// An edge of a meter.
#[derive(Clone)]
pub(crate) struct Metered {
    bytes: Arc<[AtomicU64]>,
    edge: usize,
}

impl Metered {
    /// For this edge.
    pub fn of(self, edge: usize) -> Metered {
        Metered { edge, ..self }
    }

    /// So many bytes have passed.
    pub fn add(&self, bytes: usize) {
        if let Some(all) = self.bytes.get(self.edge) {
            all.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}
