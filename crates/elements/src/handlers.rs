//! What the handlers of many elements have in common: values read from text, and the handlers of tasks.

use causeway_engine::spec::{HandlerDoc, reads, reads_writes};
use causeway_engine::value::Value;
use causeway_engine::{Cx, MAX_TICKETS, Names};

/// The value written to `handler`, in the form that arguments of its type have.
pub(crate) fn value<T: Value>(handler: &str, text: &str) -> Result<T, String> {
    let names = Names::default();
    T::parse(text.trim(), &names.scope("")).map_err(|why| format!("{handler}: {why}"))
}

/// The handlers of an element with a task, besides its own ones.
pub(crate) mod task {
    use super::*;

    /// Scheduling weight.
    pub(crate) const TICKETS: HandlerDoc =
        reads_writes("tickets", "scheduling weight of the task, 1 to 32768; 1024 is the usual one");
    /// Whether the task wants to run.
    pub(crate) const SCHEDULED: HandlerDoc = reads("scheduled", "whether the task is scheduled");
    /// The task's worker.
    pub(crate) const HOME_THREAD: HandlerDoc =
        reads("home_thread", "number of the worker that runs the task");

    /// Answers a read handler of the task, if `handler` is one.
    pub(crate) fn read(handler: &str, cx: &Cx<'_>) -> Option<String> {
        match handler {
            "tickets" => Some(cx.tickets().to_string()),
            "scheduled" => Some(cx.is_scheduled().to_string()),
            "home_thread" => Some(cx.worker().to_string()),
            _ => None,
        }
    }

    /// Sets the tickets, which are all that can be written of a task.
    pub(crate) fn write_tickets(text: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        let tickets: u32 = value("tickets", text)?;
        if !(1..=MAX_TICKETS).contains(&tickets) {
            return Err(format!("tickets: out of range, 1 to {MAX_TICKETS}"));
        }
        cx.set_tickets(tickets);
        Ok(())
    }
}
