//! What ports count: words that one thread writes and any may read, so that nobody is interrupted to be asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of a port: a name in `snake_case` and its value since the port was opened.
///
/// A packet that the port lost is in exactly one number whose name begins with [`RX_DROP`] or [`TX_DROP`]. Those that
/// begin with `device_` are the interface's own, whoever used it; a driver may count there again what a socket lost.
pub type Statistic = (&'static str, u64);

/// How the names begin of the numbers of received packets that did not reach the graph.
pub const RX_DROP: &str = "rx_drop_";
/// How the names begin of the numbers of packets that were taken for transmission and not sent.
pub const TX_DROP: &str = "tx_drop_";

/// The numbers of one half of a queue. They can be read on any thread, also when the half is gone.
pub trait Statistics: Send + Sync {
    /// All of them. May make system calls.
    fn list(&self) -> Vec<Statistic>;
}

/// Numbers with names, on a cache line of their own.
#[derive(Debug)]
#[repr(align(64))]
pub struct Tally<const N: usize> {
    names: [&'static str; N],
    values: [AtomicU64; N],
}

impl<const N: usize> Tally<N> {
    /// All of them zero.
    pub fn new(names: [&'static str; N]) -> Arc<Self> {
        Arc::new(Tally { names, values: [const { AtomicU64::new(0) }; N] })
    }

    /// Adds `n` to a number. Only one thread at a time may add, as only one has the half that counts.
    #[inline]
    pub fn add(&self, which: usize, n: u64) {
        if let Some(value) = self.values.get(which).filter(|_| n > 0) {
            // A plain addition, but one that another thread may watch.
            value.store(value.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
    }

    /// The value of a number.
    pub fn get(&self, which: usize) -> u64 {
        self.values.get(which).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

impl<const N: usize> Statistics for Tally<N> {
    fn list(&self) -> Vec<Statistic> {
        self.names.iter().enumerate().map(|(i, &name)| (name, self.get(i))).collect()
    }
}
