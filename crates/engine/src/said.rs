//! What is said of elements while they are put together, and how it is told.

use crate::plan::Plan;
use causeway_lang::{Diagnostic, Of, Severity, undefined};
use std::fmt;
use std::sync::Arc;

/// What is wrong with the configuration of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementError {
    /// Where the element was declared.
    pub landmark: String,
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Whether it was being configured; else it was being initialised.
    pub configuring: bool,
    /// What of it, if not the whole.
    pub of: Option<Box<Of>>,
    /// One line an error.
    pub messages: Vec<String>,
    /// How bad it is: together with errors stands what else was said of the configuration.
    pub severity: Severity,
}

impl ElementError {
    /// The error as diagnostics of the configuration `plan` came from, one a message.
    pub fn diagnostics(&self, plan: &Plan) -> Vec<Diagnostic> {
        let context = format!("While {} '{} :: {}':", doing(self.configuring), self.name, self.class);
        let element = plan.find(&self.name).map(|i| &plan.elements[i]);
        // It may be what is wrong, and the message does not show it.
        let variable =
            element.filter(|_| self.severity == Severity::Error).and_then(|e| undefined(&e.config));
        let hint = variable.map(|x| {
            format!("nothing defines `${x}`: `-D {x}=VALUE`, or `define(${x} VALUE)` in the configuration")
        });
        let one = |message: &String| Diagnostic {
            span: element.and_then(|e| e.span),
            severity: self.severity,
            of: self.of.as_deref().cloned(),
            ..Diagnostic::general(message).context(&context).hint_opt(hint.clone())
        };
        self.messages.iter().map(one).collect()
    }
}

/// What is odd about the configuration of one element, or what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementWarning {
    /// Its name.
    pub name: Arc<str>,
    /// Its class.
    pub class: &'static str,
    /// What of it.
    pub of: Option<Of>,
    /// The text.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it was being configured; else it was being initialised.
    pub configuring: bool,
}

fn doing(configuring: bool) -> &'static str {
    if configuring { "configuring" } else { "initializing" }
}

impl ElementWarning {
    /// The warning as a diagnostic of the configuration `plan` came from.
    pub fn diagnostic(&self, plan: &Plan) -> Diagnostic {
        let context = format!("While {} '{} :: {}':", doing(self.configuring), self.name, self.class);
        let span = plan.find(&self.name).and_then(|i| plan.elements[i].span);
        let error = Diagnostic::general(&self.message).context(context);
        Diagnostic { span, severity: self.severity, of: self.of.clone(), ..error }
    }
}

impl fmt::Display for ElementWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = if self.severity == Severity::Warning { "warning: " } else { "" };
        let of = match &self.of {
            Some(Of::Argument(text) | Of::File(text)) => format!("{text}: "),
            None => String::new(),
        };
        write!(f, "{warning}{} :: {}: {of}{}", self.name, self.class, self.message)
    }
}

impl fmt::Display for ElementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = doing(self.configuring);
        write!(f, "{}: While {doing} '{} :: {}':", self.landmark, self.name, self.class)?;
        self.messages.iter().try_for_each(|m| write!(f, "\n  {m}"))
    }
}
