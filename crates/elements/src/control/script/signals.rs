//! Signals: those that run scripts, and those that scripts send.

use super::functions::without_number;
use super::text::words;
use causeway_engine::prelude::*;
use causeway_lang::values::integer;
use std::sync::{Arc, PoisonError};

/// Key of a [`WatchSignals`] among the values that outlive a hot swap: an `Arc<dyn WatchSignals>` in an `Arc`.
pub const SIGNALS: &str = "signals";
/// Signals have numbers below.
const MOST_SIGNALS: i128 = 32;

/// Who learns of signals that come to the process: the program that owns the router.
pub trait WatchSignals: Send + Sync {
    /// From now on writes the handler `run` of the element called `name` when this signal comes, which then does nothing
    /// else.
    ///
    /// # Errors
    /// What keeps it from that.
    fn watch(&self, signal: i32, name: &str) -> Result<(), Error>;
}

/// Who watches here, if somebody does.
#[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
pub(super) fn watcher(conf: &Conf<'_>) -> Option<Arc<Arc<dyn WatchSignals>>> {
    let values = conf.env.persistent.lock().unwrap_or_else(PoisonError::into_inner);
    values.get(SIGNALS).and_then(|value| value.clone().downcast().ok())
}

/// The number of a signal (signal(7)).
pub(super) fn signal_number(word: &str) -> Option<i32> {
    const NAMES: &[(&str, i32)] = &[
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("USR1", 10),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("TSTP", 20),
        ("IO", 29),
    ];
    let named = NAMES.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    named.or_else(|| integer(word, 0, MOST_SIGNALS - 1).ok().and_then(|number| number.try_into().ok()))
}

/// Sends a signal to processes.
pub(super) fn kill(text: &str) -> Result<String, Error> {
    let words = words(text);
    let number = words.first().and_then(|word| signal_number(word)).ok_or("bad SIGNO")?;
    let signal = rustix::process::Signal::from_named_raw(number);
    if number != 0 && signal.is_none() {
        return Err(Error::new("bad SIGNO"));
    }
    for word in &words[1..] {
        let process =
            integer(word, 1, i32::MAX.into()).ok().and_then(|n| rustix::process::Pid::from_raw(n as i32));
        let process = process.ok_or("bad PID")?;
        let done = match signal {
            Some(signal) => rustix::process::kill_process(process, signal),
            // Asks only whether it is there.
            None => rustix::process::test_kill_process(process),
        };
        done.map_err(|e| format!("kill({word}, {number}): {}", without_number(&e.into())))?;
    }
    Ok(String::new())
}
