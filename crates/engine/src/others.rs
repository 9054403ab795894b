//! The other workers of a router, as one of them sees them: to call handlers of elements that live there.

use crate::core::Core;
use crate::error::NoAnswer;
use crate::node::{Index, Place};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a worker waits for another. Two that wait for each other give up after that; the control side is more patient.
const ANSWER: Duration = Duration::from_secs(1);

/// What a worker is to do between two of its steps.
pub(crate) type Errand = Box<dyn FnOnce(&mut Core) + Send>;

/// Gives a worker an errand and wakes it. Says whether there is such a worker still.
pub(crate) type Way = Box<dyn Fn(Errand) -> bool + Send + Sync>;

/// How all workers are reached, and what lives where.
pub(crate) struct Others {
    pub ways: Vec<Way>,
    pub index: Index,
}

impl Others {
    /// The full name and the places of the element that `caller` calls `name`, looked up from its compound outwards.
    pub fn find(&self, caller: &str, name: &str) -> Option<(Arc<str>, &[Place])> {
        let mut scope = caller;
        loop {
            scope = scope.rfind('/').map_or("", |i| &scope[..i]);
            let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
            if let Some((full, places)) = self.index.get_key_value(full.as_str()) {
                return Some((full.clone(), places));
            }
            if scope.is_empty() {
                return None;
            }
        }
    }
}

/// Runs `f` on `worker`, between two of its steps, and waits for the result.
#[expect(clippy::disallowed_methods, reason = "who calls a handler waits for its answer")]
pub(crate) fn call<R: Send + 'static>(
    others: &Others,
    worker: usize,
    f: impl FnOnce(&mut Core) -> R + Send + 'static,
) -> Result<R, NoAnswer> {
    let way = others.ways.get(worker).ok_or(NoAnswer(worker))?;
    let (sender, receiver) = channel();
    let errand = Box::new(move |core: &mut Core| {
        // Who asked may have given up.
        let _ = sender.send(f(core));
    });
    if !way(errand) {
        return Err(NoAnswer(worker));
    }
    receiver.recv_timeout(ANSWER).map_err(|_| NoAnswer(worker))
}
