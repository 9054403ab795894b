//! Waiting until workers have seen what is in their rings.

use causeway_engine::Pulse;
use causeway_netio::front::monotonic_ns;
use std::time::{Duration, Instant};

/// How long workers have to see what is in their rings, when no more comes.
const LAST_ROUNDS: Duration = Duration::from_millis(50);
/// How long those are waited for that have not had a turn.
const MOST_PATIENCE: Duration = Duration::from_millis(200);

/// Lets the workers of these pulses see what is in their rings, when no more comes.
pub fn drain(pulses: &[Pulse]) {
    std::thread::sleep(LAST_ROUNDS);
    let patience = Instant::now();
    // On a busy machine a worker may have had no turn meanwhile, or not since it has looked into its rings: the second round
    // begins behind the first.
    for _ in 0..2 {
        let seen_ns = monotonic_ns();
        while pulses.iter().any(|pulse| pulse.latest_ns() < seen_ns) && patience.elapsed() < MOST_PATIENCE {
            std::thread::sleep(LAST_ROUNDS / 10);
        }
    }
}
