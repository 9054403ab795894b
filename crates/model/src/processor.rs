//! A processor: work at three levels, of which the higher takes the processor from the lower.
//!
//! Work is cut into pieces with a duration. A piece that is preempted keeps what is left of it and goes on later; of each
//! level there is at most one.

use crate::event::Time;

/// At which level work is done. The later ones preempt the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Processes, and nothing at all.
    Thread,
    /// Deferred work of the kernel.
    SoftInterrupt,
    /// Handlers of cards' interrupts, which nothing preempts.
    HardInterrupt,
}

const LEVELS: usize = 3;

/// A processor's time.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// What is left of the piece of each level.
    left_ps: [Option<Time>; LEVELS],
    /// The level that runs, and when its piece began or went on.
    running: Option<(Level, Time)>,
    /// Numbers what runs, so that the end of a piece that was preempted is not mistaken for one.
    number: u64,
    /// Picoseconds at each level.
    pub busy_ps: [Time; LEVELS],
}

impl Processor {
    /// The level of the piece that runs.
    pub fn level(&self) -> Option<Level> {
        self.running.map(|(level, _)| level)
    }

    /// Whether there is a piece of this level, running or preempted.
    pub fn has(&self, level: Level) -> bool {
        self.left_ps[level as usize].is_some()
    }

    /// Begins a piece, above whatever runs. Says when it ends, and its number.
    ///
    /// # Panics
    ///
    /// If there is a piece of that level or of a higher one: who schedules asks before.
    pub fn begin(&mut self, now_ps: Time, level: Level, duration_ps: Time) -> (Time, u64) {
        assert!(self.left_ps[level as usize..].iter().all(Option::is_none), "{level:?} is busy");
        self.pause(now_ps);
        self.left_ps[level as usize] = Some(duration_ps);
        self.go(now_ps, level, duration_ps)
    }

    /// The piece that runs makes way.
    fn pause(&mut self, now_ps: Time) {
        if let Some((level, since_ps)) = self.running.take() {
            let ran_ps = now_ps - since_ps;
            self.busy_ps[level as usize] += ran_ps;
            if let Some(left_ps) = &mut self.left_ps[level as usize] {
                *left_ps -= ran_ps;
            }
        }
    }

    fn go(&mut self, now_ps: Time, level: Level, left_ps: Time) -> (Time, u64) {
        self.running = Some((level, now_ps));
        self.number += 1;
        (now_ps + left_ps, self.number)
    }

    /// The piece of this number is at its end; says of which level it was, or `None` if it was preempted since.
    pub fn end(&mut self, now_ps: Time, number: u64) -> Option<Level> {
        if number != self.number {
            return None;
        }
        let (level, _) = self.running?;
        self.pause(now_ps);
        self.left_ps[level as usize] = None;
        Some(level)
    }

    /// Lets the highest piece that was preempted go on. Says when it ends, and its number.
    pub fn resume(&mut self, now_ps: Time) -> Option<(Time, u64)> {
        let levels = [Level::HardInterrupt, Level::SoftInterrupt, Level::Thread];
        let (level, left_ps) = levels.into_iter().find_map(|l| Some((l, self.left_ps[l as usize]?)))?;
        Some(self.go(now_ps, level, left_ps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of 20, at 4 a soft interrupt of 10, at 6 a hard one of 3: they end at 9, 17 and 33.
    #[test]
    fn what_is_preempted_goes_on_where_it_was() {
        let mut processor = Processor::default();
        assert_eq!(processor.begin(0, Level::Thread, 20), (20, 1));
        assert_eq!(processor.begin(4, Level::SoftInterrupt, 10), (14, 2));
        assert_eq!(processor.begin(6, Level::HardInterrupt, 3), (9, 3));
        assert!(processor.has(Level::Thread) && processor.level() == Some(Level::HardInterrupt));
        assert_eq!(processor.end(9, 3), Some(Level::HardInterrupt));
        assert_eq!(processor.resume(9), Some((17, 4)));
        assert_eq!(processor.end(14, 2), None, "it was preempted");
        assert_eq!(processor.end(17, 4), Some(Level::SoftInterrupt));
        assert_eq!(processor.resume(17), Some((33, 5)));
        assert_eq!((processor.end(20, 1), processor.end(33, 5)), (None, Some(Level::Thread)));
        assert_eq!((processor.resume(33), processor.busy_ps), (None, [20, 10, 3]));
    }
}
