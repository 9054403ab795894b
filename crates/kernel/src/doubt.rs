//! Whether what the watcher told can be relied on, said at once by whoever comes to know.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change in whether what the watcher told can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// From now on it cannot, for this reason; it may be raised for several.
    Raised(Cause),
    /// All that was in doubt is known again, and has been handed out.
    Cleared,
}

/// Why something is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// Messages of the kernel were lost: its buffer or ours was full, or they came too long.
    MessagesLost,
    /// A message could not be parsed.
    MessageMalformed,
    /// The kernel's tables changed under every try to dump them.
    DumpInterrupted,
    /// The kernel could not be asked, or its answer not be parsed.
    DumpFailed,
}

impl Cause {
    /// A name that does not change.
    pub fn name(self) -> &'static str {
        match self {
            Cause::MessagesLost => "messages-lost",
            Cause::MessageMalformed => "message-malformed",
            Cause::DumpInterrupted => "dump-interrupted",
            Cause::DumpFailed => "dump-failed",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who is told of doubt.
pub type OnDoubt = Arc<dyn Fn(Doubt) + Send + Sync>;

/// Keeps the words of two threads in order: no loss is followed by a word that clears what came before it.
pub(crate) struct Herald {
    told: Mutex<Told>,
    on_doubt: OnDoubt,
}

#[derive(Default)]
struct Told {
    /// Losses so far.
    losses: u64,
    /// What was raised and not cleared since.
    raised: Vec<Cause>,
}

impl Herald {
    pub fn new(on_doubt: OnDoubt) -> Self {
        Herald { told: Mutex::default(), on_doubt }
    }

    /// Messages were lost. Returns how often that was so.
    pub fn lost(&self) -> u64 {
        let mut told = self.lock();
        told.losses += 1;
        self.say(&mut told, Cause::MessagesLost);
        told.losses
    }

    /// Something else is in doubt.
    pub fn raise(&self, cause: Cause) {
        self.say(&mut self.lock(), cause);
    }

    /// All is known again, if there were no more than `losses`. Returns whether that is so.
    pub fn clear(&self, losses: u64) -> bool {
        let mut told = self.lock();
        if told.losses != losses {
            return false;
        }
        told.raised.clear();
        (self.on_doubt)(Doubt::Cleared);
        true
    }

    /// Each cause is said once.
    fn say(&self, told: &mut Told, cause: Cause) {
        if !told.raised.contains(&cause) {
            told.raised.push(cause);
            (self.on_doubt)(Doubt::Raised(cause));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // What a callback that panicked leaves behind is whole.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_not_cleared_by_a_dump_from_before_it() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let ear = said.clone();
        let herald = Herald::new(Arc::new(move |doubt| ear.lock().unwrap().push(doubt)));
        let first = herald.lost();
        let second = herald.lost();
        herald.raise(Cause::DumpFailed);
        assert!(!herald.clear(first));
        assert!(herald.clear(second));
        herald.lost();
        let lost = Doubt::Raised(Cause::MessagesLost);
        assert_eq!(
            *said.lock().unwrap(),
            [lost, Doubt::Raised(Cause::DumpFailed), Doubt::Cleared, lost],
            "each cause is said once until it is cleared"
        );
    }
}
