//! Ways out that a graph and a program in the driver share: what the graph sends by each, and what waits to be sent.

use causeway_engine::{Conf, Cx, Stored};
use causeway_packet::Batch;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Key of the [`Egresses`] among the values that outlive a hot swap.
pub const EGRESSES: &str = "egresses";

/// Octets that a frame takes on an Ethernet besides its own: preamble, checksum and gap (IEEE 802.3, 3.1.1 and 4.4.2).
pub const OVERHEAD: u64 = 24;

/// The ways out, by interface. Whoever runs the program makes them; ToDevice tells of them.
#[derive(Debug)]
pub struct Egresses {
    ports: Vec<String>,
    of: Box<[Egress]>,
}

/// What is known of one.
#[derive(Debug, Default)]
struct Egress {
    octets: AtomicU64,
    waiting: AtomicI64,
}

impl Egresses {
    /// For these interfaces, in the order that numbers them.
    #[must_use]
    pub fn new(ports: Vec<String>) -> Egresses {
        Egresses { of: ports.iter().map(|_| Egress::default()).collect(), ports }
    }

    /// Octets of link time that the graph has used since the start: those of frames, and [`OVERHEAD`].
    #[must_use]
    pub fn octets(&self, port: usize) -> u64 {
        self.of.get(port).map_or(0, |egress| egress.octets.load(Ordering::Relaxed))
    }

    /// Whether packets were waiting when the graph sent last.
    #[must_use]
    pub fn is_waited_for(&self, port: usize) -> bool {
        self.of.get(port).is_some_and(|egress| egress.waiting.load(Ordering::Relaxed) > 0)
    }
}

/// One element's part in one.
pub(crate) struct WayOut {
    egresses: Arc<Egresses>,
    port: usize,
    /// Where packets wait before the element pulls them.
    stores: Vec<Stored>,
    /// Packets that wait, as it was told last.
    told: i64,
}

impl WayOut {
    /// None if nobody wants to know.
    pub fn find(conf: &mut Conf<'_>, interface: &str) -> Option<WayOut> {
        let egresses = conf.env.persistent(EGRESSES, || Egresses::new(Vec::new()))?;
        let port = egresses.ports.iter().position(|port| port == interface)?;
        Some(WayOut { egresses, port, stores: Vec::new(), told: 0 })
    }

    /// Looks where packets wait.
    pub fn initialize(&mut self, cx: &Cx<'_>) {
        self.stores = cx.nearest_stores();
    }

    fn egress(&self) -> &Egress {
        &self.egresses.of[self.port]
    }

    /// Runs `send`, and tells of what it takes from the batch.
    pub fn sending<R>(&self, batch: &mut Batch, send: impl FnOnce(&mut Batch) -> R) -> R {
        let octets =
            |batch: &Batch| -> u64 { batch.iter().map(|packet| packet.len() as u64 + OVERHEAD).sum() };
        let before = octets(batch);
        let done = send(batch);
        self.egress().octets.fetch_add(before - octets(batch), Ordering::Relaxed);
        done
    }

    /// Tells that so many packets wait in the element, besides those in front of it.
    pub fn tell(&mut self, own: usize, cx: &Cx<'_>) {
        let waiting = (own + self.stores.iter().map(|store| cx.stored(store)).sum::<usize>()) as i64;
        if waiting != self.told {
            self.egress().waiting.fetch_add(waiting - self.told, Ordering::Relaxed);
            self.told = waiting;
        }
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        self.egress().waiting.fetch_sub(self.told, Ordering::Relaxed);
    }
}
