//! Handlers that the run-time answers for the classes that list them: the live configuration, and those of tasks.

use crate::conf::{Conf, Env};
use crate::core::Core;
use crate::counters::Counters;
use crate::element::Element;
use crate::error::Error;
use crate::spec::{HandlerDoc, reads, reads_writes};
use crate::task::MAX_TICKETS;
use crate::value::written;

/// Of classes whose configuration may be written as a whole while packets flow: what is written is checked as at the
/// start, and then the element takes its settings from it ([`Element::take_settings`]).
pub const CONFIG: HandlerDoc = reads_writes(
    "config",
    "the configuration; what is written takes its place, while counts and packets stay",
)
.by_run_time();

/// Of classes whose elements have a task.
pub const TASK: &[HandlerDoc] = &[
    reads_writes("tickets", "scheduling weight of the task, 1 to 32768; 1024 is the usual one").by_run_time(),
    reads("scheduled", "whether the task is scheduled").by_run_time(),
    reads_writes(
        "home_thread",
        "number of the worker that runs the task; an element stays on its worker, so no other can be written",
    )
    .by_run_time(),
];

/// Reads one of these.
pub(super) fn read(core: &Core, node: usize, handler: &str) -> String {
    match handler {
        "tickets" => core.tasks.tickets(node).to_string(),
        "scheduled" => core.tasks.is_scheduled(node).to_string(),
        "home_thread" => core.worker.to_string(),
        _ => core.nodes[node].shown_config().to_owned(),
    }
}

/// Writes one of these. `None` if the element is running.
pub(super) fn write(core: &mut Core, node: usize, handler: &str, text: &str) -> Option<Result<(), Error>> {
    match handler {
        "tickets" => Some(set_tickets(core, node, text)),
        "home_thread" => {
            Some(written::<i32>(handler, text, &core.context.names.scope("")).and_then(|worker| {
                match usize::try_from(worker) == Ok(core.worker) {
                    true => Ok(()),
                    false => {
                        let what = format!("an element stays on its worker, which is {}", core.worker);
                        Err(Error::new(what).of(handler))
                    }
                }
            }))
        }
        _ => configure_anew(core, node, text),
    }
}

fn set_tickets(core: &mut Core, node: usize, text: &str) -> Result<(), Error> {
    let tickets: u32 = written("tickets", text, &core.context.names.scope(""))?;
    if !(1..=MAX_TICKETS).contains(&tickets) {
        return Err(Error::new(format!("out of range, 1 to {MAX_TICKETS}")).of("tickets"));
    }
    core.tasks.set_tickets(node, tickets);
    Ok(())
}

/// Lets the element at `node` take its settings from `text`. `None` if it is running.
fn configure_anew(core: &mut Core, node: usize, text: &str) -> Option<Result<(), Error>> {
    let mut new = match configured_as(core, node, text) {
        Ok(new) => new,
        Err(why) => return Some(Err(why)),
    };
    let before = std::mem::replace(&mut core.nodes[node].config, text.to_owned());
    if core.activate(node, |e, cx| e.take_settings(&mut *new, cx)).is_none() {
        core.nodes[node].config = before;
        return None;
    }
    core.nodes[node].shown = None;
    crate::single::mark(core);
    Some(Ok(()))
}

/// An element as the one at `node`, but configured with `text`. It has counters of its own, that nobody reads.
fn configured_as(core: &Core, node: usize, text: &str) -> Result<Box<dyn Element>, Error> {
    let n = &core.nodes[node];
    let mut env = Env::new(Counters::new(core.worker + 1, 64, None).map_err(Error::caused_by)?);
    (env.names, env.defaults) = (core.context.names.clone(), core.context.defaults);
    let mut conf =
        Conf::new(&mut env, n.name.clone(), n.spec, core.worker, (n.ins.len(), n.outs.len()), text);
    (n.spec.build)(&mut conf).map_err(|_| Error::several(conf.errors()))
}
