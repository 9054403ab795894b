//! When to publish and when to dump again. No clock of its own: `now` is handed in.

use std::time::{Duration, Instant};

use crate::mirror::Scope;

/// Changes wait for more until nothing has come for this long …
const QUIET: Duration = Duration::from_millis(50);
/// … but no longer than this.
const LONGEST: Duration = Duration::from_secs(1);
/// The kernel is given this long to finish what it is about before its tables are dumped again.
const SETTLE: Duration = Duration::from_millis(50);
/// Between two dumps there is at least this long, and four times what the last one took.
const SPACING: Duration = Duration::from_secs(1);

/// Decides when changes are handed to users.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    /// When the first change that waits came, and the last.
    waiting: Option<(Instant, Instant)>,
    urgent: bool,
}

impl Coalescer {
    /// Something came.
    pub fn note(&mut self, now: Instant) {
        let first = self.waiting.map_or(now, |(first, _)| first);
        self.waiting = Some((first, now));
    }

    /// What waits should not wait any longer.
    pub fn hurry(&mut self) {
        self.urgent = true;
    }

    /// When to publish; none if nothing waits.
    pub fn due_at(&self) -> Option<Instant> {
        let (first, last) = self.waiting?;
        Some(if self.urgent { first } else { (last + QUIET).min(first + LONGEST) })
    }

    /// All that waited was published.
    pub fn clear(&mut self) {
        *self = Coalescer::default();
    }
}

/// Decides when the kernel's tables are dumped again.
#[derive(Debug, Default)]
pub(crate) struct Resync {
    wanted: Scope,
    since: Option<Instant>,
    not_before: Option<Instant>,
}

impl Resync {
    /// These tables cannot be relied on.
    pub fn want(&mut self, scope: Scope, now: Instant) {
        if !scope.is_empty() {
            self.wanted |= scope;
            self.since.get_or_insert(now);
        }
    }

    /// When to dump; none if there is no need to.
    pub fn due_at(&self) -> Option<Instant> {
        let settled = self.since? + SETTLE;
        Some(self.not_before.map_or(settled, |earliest| settled.max(earliest)))
    }

    /// Takes what is to be dumped.
    pub fn take(&mut self) -> Scope {
        self.since = None;
        std::mem::take(&mut self.wanted)
    }

    /// A dump ran from `begin` to `end`.
    pub fn done(&mut self, begin: Instant, end: Instant) {
        self.not_before = Some(end + SPACING.max((end - begin) * 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_single_change_waits_for_quiet_and_a_storm_for_a_second() {
        let start = Instant::now();
        let mut coalescer = Coalescer::default();
        assert_eq!(coalescer.due_at(), None);
        coalescer.note(start);
        assert_eq!(coalescer.due_at(), Some(start + ms(50)));
        for step in 1..100 {
            coalescer.note(start + ms(step * 20));
        }
        assert_eq!(coalescer.due_at(), Some(start + ms(1000)));
        coalescer.hurry();
        assert_eq!(coalescer.due_at(), Some(start));
        coalescer.clear();
        assert_eq!(coalescer.due_at(), None);
    }

    #[test]
    fn dumps_are_spaced_by_what_they_cost() {
        let start = Instant::now();
        let mut resync = Resync::default();
        resync.want(Scope::default(), start);
        assert_eq!(resync.due_at(), None);
        resync.want(Scope::ROUTES4, start);
        resync.want(Scope::RULES, start + ms(10));
        assert_eq!(resync.due_at(), Some(start + ms(50)));
        assert_eq!(resync.take(), Scope::ROUTES4 | Scope::RULES);
        resync.done(start, start + ms(500));
        resync.want(Scope::LINKS, start + ms(600));
        assert_eq!(resync.due_at(), Some(start + ms(2500)));
    }
}
