//! What the halves of a packet socket count, and how the kernel's own counts are had.

use super::Shared;
use crate::interface::{get_option, plain};
use crate::statistics::{Statistic, Statistics, Tally};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// `struct tpacket_stats_v3`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Stats {
    packets: u32,
    drops: u32,
    freezes: u32,
}

plain!(Stats);

/// The numbers of a receiving half.
pub mod rx {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const POOL_EMPTY: usize = 2;
    pub const TOO_LONG: usize = 3;
    pub const UNFINISHED: usize = 4;
    pub const NAMES: [&str; 5] =
        ["rx_packets", "rx_bytes", "rx_drop_pool_empty", "rx_drop_too_long", "rx_checksum_unfinished"];
}

/// What the kernel lost before the ring. Asking resets its counters, so they are added up here.
#[derive(Debug, Default)]
pub struct Lost {
    drops: AtomicU64,
    freezes: AtomicU64,
}

/// All numbers of a receiving half, without keeping the socket open.
pub struct RxStatistics {
    pub counts: Arc<Tally<5>>,
    pub lost: Arc<Lost>,
    pub shared: Weak<Shared>,
}

impl Statistics for RxStatistics {
    fn list(&self) -> Vec<Statistic> {
        let mut list = self.counts.list();
        let shared = self.shared.upgrade();
        let asked = shared.as_ref().and_then(|s| {
            get_option(&s.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, Stats::default()).ok()
        });
        let Stats { drops, freezes, .. } = asked.unwrap_or_default();
        let total = |sum: &AtomicU64, new: u32| sum.fetch_add(new.into(), Ordering::Relaxed) + u64::from(new);
        list.push(("rx_drop_ring_full", total(&self.lost.drops, drops)));
        list.push(("rx_freezes", total(&self.lost.freezes, freezes)));
        list.extend(shared.iter().flat_map(|s| s.device.received()));
        list
    }
}

/// The numbers of a transmitting half.
pub mod tx {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const FULL: usize = 2;
    pub const ERRORS: usize = 3;
    pub const NAMES: [&str; 4] = ["tx_packets", "tx_bytes", "tx_ring_full", "tx_drop_error"];
}

/// All numbers of a transmitting half, without keeping the socket open.
pub struct TxStatistics {
    pub counts: Arc<Tally<4>>,
    pub shared: Weak<Shared>,
}

impl Statistics for TxStatistics {
    fn list(&self) -> Vec<Statistic> {
        let mut list = self.counts.list();
        list.extend(self.shared.upgrade().iter().flat_map(|s| s.device.transmitted()));
        list
    }
}
