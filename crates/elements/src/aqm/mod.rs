//! Active queue management: dropping early, so that queues stay short.

use causeway_engine::{Cx, Spec, Stored};

mod codel;
mod red;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&red::ADAPTIVE, &codel::SPEC, &red::SPEC];

/// The queues called `names`, or the nearest ones if there are no names.
fn queues(names: &[String], cx: &Cx<'_>) -> Result<Vec<Stored>, String> {
    let found = match names {
        [] => cx.nearest_stores(),
        _ => names.iter().map(|name| cx.store(name)).collect::<Result<_, _>>()?,
    };
    if found.is_empty() { Err("no nearby Queues".to_owned()) } else { Ok(found) }
}

/// The names of `queues`, a line each.
fn lines(queues: &[Stored]) -> String {
    queues.iter().map(|queue| format!("{}\n", queue.name)).collect()
}
