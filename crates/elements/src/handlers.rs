//! What the handlers of many elements have in common: values read from text, and the handlers of tasks.

use causeway_engine::spec::{HandlerDoc, reads, reads_writes};
use causeway_engine::value::Value;
use causeway_engine::{Cx, MAX_TICKETS, Names, Scope};

/// The value written to `handler`, in the form that arguments of its type have.
pub(crate) fn value<T: Value>(handler: &str, text: &str) -> Result<T, String> {
    let names = Names::default();
    T::parse(text.trim(), &names.scope("")).map_err(|why| format!("{handler}: {why}"))
}

/// A handler that an element calls when something has happened, such as END_CALL's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    handler: String,
    value: String,
}

impl Call {
    /// A call that stops the router.
    pub(crate) fn stop() -> Call {
        Call { handler: "stop".to_owned(), value: String::new() }
    }

    /// An error if there is no such handler.
    pub(crate) fn check(&self, cx: &Cx<'_>) -> Result<(), String> {
        cx.check_call(&self.handler)
    }

    /// Makes the call, once the packets under way are delivered.
    pub(crate) fn make(&self, cx: &mut Cx<'_>) {
        cx.call_later(&self.handler, &self.value);
    }
}

/// `HANDLER [VALUE]`, where HANDLER is `stop` or `element.handler`.
impl Value for Call {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, String> {
        let (handler, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match handler == "stop" || handler.contains('.') {
            true => Ok(Call { handler: handler.to_owned(), value: value.trim().to_owned() }),
            false => Err("bad handler name".to_owned()),
        }
    }

    fn placeholder() -> Self {
        Call::default()
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.handler)?;
        if self.value.is_empty() { Ok(()) } else { write!(f, " {}", self.value) }
    }
}

/// What elements with a task have in common: its handlers, besides their own ones, and its start.
pub(crate) mod task {
    use super::*;

    /// Sets the task of a source or its notifier going, whichever output 0 needs.
    pub(crate) fn start(active: bool, cx: &mut Cx<'_>) {
        if cx.connected(0) {
            cx.wake();
        } else {
            cx.notify_packets(active);
        }
    }

    /// Scheduling weight.
    pub(crate) const TICKETS: HandlerDoc =
        reads_writes("tickets", "scheduling weight of the task, 1 to 32768; 1024 is the usual one");
    /// Whether the task wants to run.
    pub(crate) const SCHEDULED: HandlerDoc = reads("scheduled", "whether the task is scheduled");
    /// The task's worker.
    pub(crate) const HOME_THREAD: HandlerDoc = reads_writes(
        "home_thread",
        "number of the worker that runs the task; an element stays on its worker, so no other can be written",
    );

    /// Answers a read handler of the task, if `handler` is one.
    pub(crate) fn read(handler: &str, cx: &Cx<'_>) -> Option<String> {
        match handler {
            "tickets" => Some(cx.tickets().to_string()),
            "scheduled" => Some(cx.is_scheduled().to_string()),
            "home_thread" => Some(cx.worker().to_string()),
            _ => None,
        }
    }

    /// Carries out a write handler of the task.
    pub(crate) fn write(handler: &str, text: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        if handler == "home_thread" {
            return match value::<i32>(handler, text)? == cx.worker() as i32 {
                true => Ok(()),
                false => {
                    Err(format!("home_thread: an element stays on its worker, which is {}", cx.worker()))
                }
            };
        }
        let tickets: u32 = value("tickets", text)?;
        if !(1..=MAX_TICKETS).contains(&tickets) {
            return Err(format!("tickets: out of range, 1 to {MAX_TICKETS}"));
        }
        cx.set_tickets(tickets);
        Ok(())
    }
}
