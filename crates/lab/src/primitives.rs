//! What this machine takes for single things that a router does: a system call, a copy, the wake-up of a thread.

use crate::veth::wake_up_us;
use anyhow::Result;
use std::hint::black_box;
use std::time::Instant;

/// Repetitions, of which the median counts, and how often each does its thing.
const ROUNDS: usize = 11;
const TIMES: u32 = 20_000;
/// Bytes of a copy: the longest frame, without its checksum.
const COPY: usize = 1_514;

/// Things and picoseconds, medians. The thread that is woken is on `processor`.
///
/// # Errors
/// If a thread cannot be put on its processor.
pub fn primitives(processor: usize) -> Result<Vec<(&'static str, f64)>> {
    let (from, mut to) = (vec![1u8; COPY], vec![0u8; COPY]);
    let call = median_ps(|| {
        black_box(rustix::process::getppid());
    });
    let copy = median_ps(|| black_box(&mut to).copy_from_slice(black_box(&from)));
    Ok(vec![("system call", call), ("copy of 1514 bytes", copy), ("wake-up", wake_up_us(processor)? * 1e6)])
}

fn median_ps(mut thing: impl FnMut()) -> f64 {
    let round = |_| {
        let began = Instant::now();
        (0..TIMES).for_each(|_| thing());
        began.elapsed().as_secs_f64() * 1e12 / f64::from(TIMES)
    };
    let rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    causeway_results::stats::median(&rounds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_takes_some_time() {
        let all = primitives(0).expect("possible");
        assert_eq!(
            all.iter().map(|one| one.0).collect::<Vec<_>>(),
            ["system call", "copy of 1514 bytes", "wake-up"]
        );
        assert!(all.iter().all(|(_, ps)| ps.is_finite() && *ps > 0.0), "{all:?}");
    }
}
