//! Diagnostics: what is wrong, where, what would help; collected, never printed.
//!
//! Messages use ASCII quotes around names. [`crate::render`] turns them into text.

use crate::source::Span;

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be run.
    Error,
    /// The configuration runs, but probably not as meant.
    Warning,
    /// What the configuration says of itself.
    Note,
}

/// A further line of a diagnostic, possibly about another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place; `None` for the diagnostic's own.
    pub span: Option<Span>,
    /// The text.
    pub message: String,
    /// Click prints no such line, so its plain rendering must not either.
    pub human_only: bool,
}

/// What of an element a message concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// The argument of that name.
    Argument(String),
    /// The file that it reads, at this place.
    File(String),
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Where; `None` if it concerns no place in the text.
    pub span: Option<Span>,
    /// A line that introduces this and neighbouring messages, such as `While configuring 'q :: Queue':`.
    pub context: Option<String>,
    /// What of the element it concerns.
    pub of: Option<Of>,
    /// The message, without landmark and full stop.
    pub message: String,
    /// What to do about it. Shown only by the human rendering.
    pub hint: Option<String>,
    /// Further lines.
    pub notes: Vec<Note>,
    /// Click reports push/pull conflicts without a landmark; its plain rendering must do the same.
    pub plain_landmark: bool,
    /// Click says it, but it is no news after what was said before it: the human rendering leaves it out.
    pub plain_only: bool,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, Some(span), message.into())
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, Some(span), message.into())
    }

    /// An error that concerns no place in the text.
    pub fn general(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, None, message.into())
    }

    fn new(severity: Severity, span: Option<Span>, message: String) -> Self {
        Self {
            severity,
            span,
            context: None,
            of: None,
            message,
            hint: None,
            notes: vec![],
            plain_landmark: true,
            plain_only: false,
        }
    }

    /// Sets the context line, which ends in a colon by convention.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets a hint if there is one to give.
    #[must_use]
    pub fn hint_opt(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    /// Adds a line that both renderings show.
    #[must_use]
    pub fn note(mut self, span: Option<Span>, message: impl Into<String>) -> Self {
        self.notes.push(Note { span, message: message.into(), human_only: false });
        self
    }

    /// Adds a pointer to another place, for people only.
    #[must_use]
    pub fn see(mut self, span: Span, message: impl Into<String>) -> Self {
        self.notes.push(Note { span: Some(span), message: message.into(), human_only: true });
        self
    }

    /// Leaves the landmark out of the plain rendering.
    #[must_use]
    pub fn without_plain_landmark(mut self) -> Self {
        self.plain_landmark = false;
        self
    }
}

/// Errors kept; a text that is wrong everywhere says nothing more after this many.
const MAX_KEPT: usize = 1000;

/// An ordered collection of diagnostics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. After the first thousand, errors are counted but not kept.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.list.len() < MAX_KEPT {
            self.list.push(diagnostic);
        }
    }

    /// Adds an error at a place.
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::error(span, message));
    }

    /// Appends all of `other`.
    pub fn append(&mut self, other: Diagnostics) {
        let unkept = other.errors - other.iter().filter(|d| d.severity == Severity::Error).count();
        other.list.into_iter().for_each(|d| self.push(d));
        self.errors += unkept;
    }

    /// Whether there is any error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there are, including those that were not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether further diagnostics are no longer kept; then hints for them need not be searched.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT
    }

    /// Whether there is nothing at all, not even a warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The diagnostics in order of discovery.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// The bare messages in order; what tests compare.
    pub fn messages(&self) -> Vec<&str> {
        self.list.iter().map(|d| d.message.as_str()).collect()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
