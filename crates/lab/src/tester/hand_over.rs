//! How frames are handed over to the kernel: how many go together, and what that takes.
//!
//! Frames that became due while the tester's processor did something else go together, so a device sees bursts where the
//! timetable has none, and few that go together take another way through the kernel than many. A model of the bed needs both.

use causeway_results::stats::median;

/// So many are remembered, the first of a trial.
const MOST: usize = 1 << 17;
/// From so many on with the same number of frames there is a time.
const ENOUGH: usize = 8;

/// Frames, and nanoseconds, of the hand-overs of a trial.
#[derive(Clone, Debug, Default)]
pub struct HandOvers(Vec<(u16, u32)>);

impl HandOvers {
    /// With room for all of them.
    pub fn with_room() -> HandOvers {
        HandOvers(Vec::with_capacity(MOST))
    }

    /// So many frames were handed over at a time.
    #[inline]
    pub fn note(&mut self, frames: usize, took_ns: u64) {
        if frames > 0 && self.0.len() < MOST {
            self.0.push((frames as u16, u32::try_from(took_ns).unwrap_or(u32::MAX)));
        }
    }

    /// Those of another port too.
    pub fn add(&mut self, other: HandOvers) {
        self.0.extend(other.0);
    }

    /// Nanoseconds that it mostly takes to write so many frames and to hand them over; `None` if that did not happen often enough.
    pub fn takes_ns(&self, frames: u16) -> Option<f64> {
        let times: Vec<f64> =
            self.0.iter().filter(|one| one.0 == frames).map(|one| f64::from(one.1)).collect();
        (times.len() >= ENOUGH).then(|| median(&times)).flatten()
    }

    /// Half of all frames went together with so many at least.
    pub fn together(&self) -> Option<f64> {
        let mut sizes: Vec<u16> = self.0.iter().map(|one| one.0).collect();
        sizes.sort_unstable();
        let all: u64 = sizes.iter().map(|&frames| u64::from(frames)).sum();
        let mut before = 0;
        let half = sizes.into_iter().find(|&frames| {
            before += u64::from(frames);
            2 * before >= all
        });
        half.map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_that_hand_overs_mostly_take() {
        let mut all = HandOvers::with_room();
        for n in 0..20 {
            all.note(8, if n < 8 { 9_000 } else { 60_000 });
        }
        (0..7).for_each(|_| all.note(16, 30_000));
        assert_eq!(all.takes_ns(8), Some(60_000.0));
        assert_eq!(all.takes_ns(16), None, "too few");
        all.note(0, 1);
        all.note(16, 30_000);
        assert_eq!(all.takes_ns(16), Some(30_000.0));
    }

    #[test]
    fn what_goes_together_is_told_by_frames_and_not_by_hand_overs() {
        let mut all = HandOvers::default();
        assert_eq!(all.together(), None);
        (0..10).for_each(|_| all.note(1, 1_000));
        assert_eq!(all.together(), Some(1.0));
        let mut other = HandOvers::default();
        other.note(20, 30_000);
        all.add(other);
        assert_eq!(all.together(), Some(20.0), "of 30 frames 20 went at once");
    }
}
