//! Where a script's errors go, and below which lines.

use crate::printing::to_stderr;

/// Takes errors, and says in which context they came about.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Lines that introduce errors; whether each was said.
    contexts: Vec<(String, bool)>,
    /// Errors so far.
    errors: usize,
    /// The lines, if somebody else says them.
    kept: Option<String>,
}

impl Report {
    /// One that says errors on standard error, below `context`.
    pub fn below(context: String) -> Report {
        Report { contexts: vec![(context, false)], ..Report::default() }
    }

    /// One that says errors on standard error.
    pub fn plain() -> Report {
        Report::default()
    }

    /// One that keeps errors for whoever called.
    pub fn kept() -> Report {
        Report { kept: Some(String::new()), ..Report::default() }
    }

    /// The errors that were kept, a line each.
    pub fn into_kept(self) -> String {
        self.kept.unwrap_or_default()
    }

    /// How many errors there were.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Takes an error, which may have several lines.
    pub fn error(&mut self, message: &str) {
        self.errors += 1;
        let mut text = String::new();
        for (depth, (context, said)) in self.contexts.iter_mut().enumerate() {
            if !std::mem::replace(said, true) {
                text += &format!("{}{context}\n", "  ".repeat(depth));
            }
        }
        let indent = "  ".repeat(self.contexts.len());
        message.lines().for_each(|line| text += &format!("{indent}{line}\n"));
        match &mut self.kept {
            Some(kept) => *kept += &text,
            None => to_stderr(&text),
        }
    }

    /// Takes the errors of a call, a line each, below `context`.
    pub fn errors_of_call(&mut self, context: impl FnOnce() -> String, errors: &str) {
        if !errors.is_empty() {
            self.contexts.push((context(), false));
            self.error(errors);
            self.contexts.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_said_once_and_indent() {
        let mut report = Report { contexts: vec![("outer:".to_owned(), false)], ..Report::kept() };
        report.error("one");
        report.errors_of_call(|| "inner:".to_owned(), "two\n  three\n");
        report.errors_of_call(|| "never".to_owned(), "");
        report.error("four");
        assert_eq!(report.errors(), 3);
        assert_eq!(report.into_kept(), "outer:\n  one\n  inner:\n    two\n      three\n  four\n");
    }
}
