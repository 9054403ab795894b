//! What many elements have in common: calls of handlers, and the start of tasks.

use causeway_engine::value::Value;
use causeway_engine::{Cx, Error, Scope};

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

    /// The same with `value` where the call's own says `name`.
    pub(crate) fn with(&self, name: &str, value: &str) -> Call {
        Call { handler: self.handler.clone(), value: self.value.replace(name, value) }
    }

    /// An error if there is no such handler.
    pub(crate) fn check(&self, cx: &Cx<'_>) -> Result<(), Error> {
        cx.check_call(&self.handler)
    }

    /// The name of the handler, if it is one of the caller itself, and what is written to it.
    pub(crate) fn own(&self, cx: &Cx<'_>) -> Option<(&str, &str)> {
        cx.own_handler(&self.handler).map(|name| (name, self.value.as_str()))
    }

    /// Makes the call, once the packets under way are delivered.
    pub(crate) fn make(&self, cx: &mut Cx<'_>) {
        cx.call_later(&self.handler, &self.value);
    }
}

/// `HANDLER [VALUE]`, where HANDLER is `stop` or `element.handler`.
impl Value for Call {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        let (handler, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Ok(Call { handler: handler.to_owned(), value: value.trim().to_owned() })
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

/// What elements with a task have in common: its start.
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
}

#[cfg(test)]
mod tests {
    use causeway_engine::harness::Harness;

    #[test]
    fn who_is_to_be_called_must_be_there_at_the_start() {
        let library = crate::library();
        for (class, config, inputs) in [
            ("InfiniteSource", "END_CALL", 0),
            ("RatedSource", "END_CALL", 0),
            ("TimedSource", "END_CALL", 0),
            ("TimeFilter", "END_CALL", 1),
            ("Counter", "COUNT_CALL 5", 1),
            ("Counter", "BYTE_COUNT_CALL 5", 1),
            ("AggregateCounter", "COUNT_CALL 5", 1),
            ("AggregateCounter", "AGGREGATE_CALL 5", 1),
        ] {
            let spec = library.get(class).unwrap();
            let start = |call: &str| Harness::new(spec, &format!("{config} {call}"), inputs, 1).err();
            assert_eq!(start("x.y 1"), Some(vec!["no element named 'x'".to_owned()]), "{class} {config}");
            let missing = start("element.nonsense").unwrap_or_default();
            assert_eq!(missing, ["no 'element.nonsense' write handler"], "{class} {config}");
            assert_eq!(start("stop"), None, "{class} {config}");
        }
    }
}
