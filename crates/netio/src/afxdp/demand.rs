//! How many frames a router needs, known before the pool is made: the pool cannot grow, since its memory is registered
//! as a whole.

use super::Options;
use super::rx::{FILL_CHUNK, most_frames};
use crate::features::{FeatureQuery, Features};
use crate::interface::Interface;
use causeway_packet::{BATCH, pool};
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames for what a graph holds back, in its queues above all, and for ports that a hot swap brings.
const RESERVE: u32 = 16_384;

/// Frames that the rings of one receive queue may have. Where the pool is small the first queues would otherwise leave
/// none for the last, and what is in a fill ring cannot be had back.
static SHARE: AtomicU32 = AtomicU32::new(u32::MAX);

/// What ports and workers need of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Receive queues of the ports.
    pub queues: u32,
    /// With fewer frames some queue may stay without.
    pub least: u32,
    /// Frames that rings, threads and a graph's queues can use.
    pub wanted: u32,
}

impl Demand {
    /// That of AF_XDP ports on `interfaces`, opened so, and of `threads` workers.
    pub fn new(interfaces: &[Interface], options: &Options, threads: u32) -> Demand {
        let query = FeatureQuery::new().ok();
        let rings = |interface: &Interface| {
            let features = query.as_ref().and_then(|q| q.get(interface.index).ok());
            let shares = !options.generic && features.is_none_or(Features::zero_copy);
            // Transmission has at most its ring of frames under way.
            interface.queues.saturating_mul(most_frames(options.ring * 2, shares) + options.ring)
        };
        let sum = |a: u32, b: u32| a.saturating_add(b);
        let queues = interfaces.iter().map(|i| i.queues).fold(0, sum);
        let threads = of_threads(threads);
        Demand {
            queues,
            least: queues.saturating_mul(2 * FILL_CHUNK).saturating_add(threads),
            wanted: interfaces.iter().map(rings).fold(threads.saturating_add(RESERVE), sum),
        }
    }

    /// Makes the pool with `config`, whose frames are at least the [`least`](Demand::least), and shares it out if it
    /// has fewer than are [wanted](Demand::wanted).
    ///
    /// # Errors
    /// As [`pool::init`].
    pub fn init_pool(&self, config: pool::Config) -> Result<(), pool::Error> {
        pool::init(config)?;
        if config.frames < self.wanted {
            let threads = self.least - self.queues.saturating_mul(2 * FILL_CHUNK);
            // The other half is for what the queues have received.
            let share = config.frames.saturating_sub(threads) / self.queues.max(1) / 2;
            SHARE.store(share.max(FILL_CHUNK), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// What workers and the thread that controls them may have in hand.
fn of_threads(threads: u32) -> u32 {
    threads.saturating_add(1).saturating_mul((pool::MAGAZINE + BATCH) as u32)
}

/// Frames that the rings of one receive queue may have.
pub fn share() -> u32 {
    SHARE.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(queues: u32) -> Interface {
        // No such interface: the driver is taken to share frames, which needs the most.
        let (name, none) = ("x".to_owned(), String::new());
        Interface {
            name,
            index: u32::MAX,
            mac: [0; 6],
            ethernet: true,
            mtu: 1_500,
            queues,
            up: true,
            driver: none.clone(),
            bus: none,
        }
    }

    #[test]
    fn every_queue_and_thread_counts() {
        let options = Options { generic: true, ..Options::default() };
        let none = Demand::new(&[], &options, 1);
        assert_eq!(none, Demand { queues: 0, least: 2 * 768, wanted: 2 * 768 + RESERVE });
        let copying = Demand::new(&[interface(8), interface(1)], &options, 8);
        assert_eq!(copying.least, 9 * 128 + 9 * 768);
        assert_eq!(copying.wanted, 9 * (4_096 + 256 + 2_048) + 9 * 768 + RESERVE);
        let sharing = Demand::new(&[interface(8)], &Options::default(), 1);
        assert_eq!(sharing.wanted, 8 * (4_096 + 2_048 + 2_048) + 2 * 768 + RESERVE);
    }

    #[test]
    fn absurd_numbers_do_not_wrap() {
        let demand = Demand::new(&[interface(u32::MAX), interface(7)], &Options::default(), u32::MAX);
        assert_eq!(demand, Demand { queues: u32::MAX, least: u32::MAX, wanted: u32::MAX });
    }
}
