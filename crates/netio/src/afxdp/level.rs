//! How many frames a receive queue keeps in its rings: few, as long as it is looked at often enough.
//!
//! The kernel takes frames from the fill ring in order, so all of them go through the processor's cache in turn, however
//! few packets wait. More frames than fit there cost every packet some 10 % (512 bytes, 2 MiB of cache); fewer than
//! packets come between two looks lose some. So a queue begins with few, gets more when its backlog shows that it was
//! looked at late, and gives them up when that has not happened for long.

/// Looks in a row that found a few packets, after which frames are given up.
const CALM_LOOKS: u32 = 4_096;

/// The number of frames, between a low and a high one.
#[derive(Debug)]
pub struct Level {
    low: u32,
    high: u32,
    now: u32,
    calm: u32,
}

impl Level {
    /// Between `low`, at the start, and `high`, which counts if it is lower.
    pub fn new(low: u32, high: u32) -> Level {
        let low = low.min(high);
        Level { low, high, now: low, calm: 0 }
    }

    /// Frames that the rings may have now.
    pub fn frames(&self) -> u32 {
        self.now
    }

    /// The queue was looked at and found `backlog` packets.
    pub fn look(&mut self, backlog: u32) {
        if backlog == 0 {
            return;
        }
        if backlog >= self.now / 8 {
            self.calm = 0;
            if backlog >= self.now / 2 {
                self.now = self.now.saturating_mul(2).min(self.high);
            }
            return;
        }
        self.calm += 1;
        if self.calm == CALM_LOOKS {
            self.calm = 0;
            self.now = (self.now / 2).max(self.low);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_look_brings_more_and_a_long_calm_fewer() {
        let mut level = Level::new(100, 350);
        level.look(49);
        assert_eq!(level.frames(), 100);
        level.look(50);
        assert_eq!(level.frames(), 200);
        (0..3).for_each(|_| level.look(200));
        assert_eq!(level.frames(), 350);
        for _ in 0..CALM_LOOKS - 1 {
            level.look(43);
        }
        level.look(44);
        (0..CALM_LOOKS - 1).for_each(|_| level.look(1));
        (0..CALM_LOOKS).for_each(|_| level.look(0));
        assert_eq!(level.frames(), 350, "one look was not calm, and nothing is no sign");
        level.look(1);
        assert_eq!(level.frames(), 175);
        (0..4 * CALM_LOOKS).for_each(|_| level.look(1));
        assert_eq!(level.frames(), 100);
    }

    #[test]
    fn the_high_number_counts() {
        let mut level = Level::new(100, 60);
        assert_eq!(level.frames(), 60);
        level.look(60);
        assert_eq!(level.frames(), 60);
        let mut none = Level::new(0, 0);
        none.look(0);
        assert_eq!(none.frames(), 0);
    }
}
