//! Active queue management: dropping early, so that queues stay short.

use causeway_engine::{Conf, Cx, Error, Spec, Stored};

mod codel;
mod red;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&red::ADAPTIVE, &codel::SPEC, &red::SPEC];

/// The queues called `names`, or the nearest ones if there are no names.
fn queues(names: &[String], cx: &Cx<'_>) -> Result<Vec<Stored>, Error> {
    let found = match names {
        [] => cx.nearest_stores(),
        _ => names.iter().map(|name| cx.store(name)).collect::<Result<_, _>>()?,
    };
    if found.is_empty() { Err(Error::new("no nearby Queues")) } else { Ok(found) }
}

/// Complains of those of `names` that no element has. What the `config` handler writes is read where the elements are not
/// known; then they are looked up when they are needed.
fn check(names: &[String], conf: &mut Conf<'_>) {
    if conf.env.elements.is_empty() {
        return;
    }
    let missing: Vec<_> = names.iter().filter(|name| conf.element(name).is_none()).collect();
    missing.into_iter().for_each(|name| conf.error(format!("no element named '{name}'")));
}

/// The names of `queues`, a line each.
fn lines(queues: &[Stored]) -> String {
    queues.iter().map(|queue| format!("{}\n", queue.name)).collect()
}
