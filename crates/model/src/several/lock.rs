//! A spinlock: who comes while it is held waits, and its line goes to whoever takes it.

use crate::event::Time;

/// A spinlock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spinlock {
    free_ps: Time,
    /// Picoseconds that its takers waited.
    pub waited_ps: Time,
    /// Times that it was taken.
    pub taken: u64,
}

impl Spinlock {
    /// Takes it at a time that no other taker's is after; says how long one waits for it.
    pub fn take(&mut self, now_ps: Time) -> Time {
        let wait_ps = self.free_ps.saturating_sub(now_ps);
        self.waited_ps += wait_ps;
        self.taken += 1;
        wait_ps
    }

    /// It will be given back then.
    pub fn held_until(&mut self, free_ps: Time) {
        self.free_ps = free_ps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_wait_for_each_other_in_the_order_in_which_they_come() {
        let mut lock = Spinlock::default();
        let waits = [(0, 100), (40, 100), (50, 10), (500, 10)].map(|(now, holds)| {
            let wait = lock.take(now);
            lock.held_until(now + wait + holds);
            wait
        });
        assert_eq!(waits, [0, 60, 150, 0]);
        assert_eq!((lock.waited_ps, lock.taken), (210, 4));
    }
}
