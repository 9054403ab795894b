//! Diagnostics as text: for people, with the source line; and as Click prints them, for scripts that compare.

use crate::diag::{Diagnostic, Diagnostics, Of, Severity};
use crate::source::{Sources, Span};
use std::fmt::Write;

/// Which quotation marks messages get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// `'…'`
    Ascii,
    /// `‘…’`, which Click uses if the environment's `LANG` names UTF-8.
    Utf8,
}

impl Quotes {
    /// The choice for a value of the environment variable `LANG`.
    pub fn for_lang(lang: Option<&str>) -> Self {
        let utf8 = lang.is_some_and(|l| l.contains("UTF-8") || l.contains("utf8") || l.contains("UTF8"));
        if utf8 { Self::Utf8 } else { Self::Ascii }
    }

    /// The text with its pairs of ASCII quotes replaced if asked for. A quote opens after a blank, a bracket or
    /// nothing; apostrophes within words stay.
    pub fn apply(self, text: &str) -> String {
        if self == Self::Ascii {
            return text.to_string();
        }
        let mut out = String::with_capacity(text.len());
        let mut open = false;
        let mut previous = ' ';
        for c in text.chars() {
            let opens = c == '\'' && !open && (previous.is_whitespace() || "([{=".contains(previous));
            match c {
                '\'' if opens => out.push('‘'),
                '\'' if open => out.push('’'),
                _ => out.push(c),
            }
            open = if c == '\'' { opens } else { open };
            previous = c;
        }
        out
    }
}

/// The diagnostics one a line, as Click prints them: `file:line: message`; under a context line, details are
/// indented by two blanks and have no landmark of their own. Hints are left out.
pub fn plain(diagnostics: &Diagnostics, sources: &Sources, quotes: Quotes) -> String {
    let mut out = String::new();
    let mut open_context: Option<(&str, String)> = None;
    for d in diagnostics {
        let landmark = plain_landmark(d.span.filter(|_| d.plain_landmark), sources);
        let context = d.context.as_deref().map(|c| (c, landmark.clone()));
        if let Some((text, landmark)) = context.as_ref().filter(|_| context != open_context) {
            line(&mut out, landmark, "", text, quotes);
        }
        let (indent, landmark) = if context.is_some() { ("  ", String::new()) } else { ("", landmark) };
        open_context = context;
        let kind = if d.severity == Severity::Warning { "warning: " } else { "" };
        let (landmark, kind) = match &d.of {
            Some(Of::Argument(name)) => (landmark, format!("{name}: {kind}")),
            Some(Of::File(place)) => (format!("{place}: "), kind.to_owned()),
            None => (landmark, kind.to_owned()),
        };
        for text in d.message.lines() {
            line(&mut out, &landmark, indent, &format!("{kind}{text}"), quotes);
        }
        for note in d.notes.iter().filter(|n| !n.human_only) {
            let place = note.span.map_or_else(|| landmark.clone(), |s| plain_landmark(Some(s), sources));
            line(&mut out, &place, indent, &note.message, quotes);
        }
    }
    out
}

fn plain_landmark(span: Option<Span>, sources: &Sources) -> String {
    span.map_or(String::new(), |s| format!("{}: ", sources.landmark(s).short()))
}

fn line(out: &mut String, landmark: &str, indent: &str, text: &str, quotes: Quotes) {
    out.push_str(landmark);
    out.push_str(indent);
    out.push_str(&quotes.apply(text));
    out.push('\n');
}

/// Errors that people are shown; the first say what is wrong, and a text that is no configuration has thousands.
const MOST_SHOWN: usize = 20;

/// The diagnostics for people: `file:line:column`, the source line with the place underlined, notes and hints.
pub fn human(diagnostics: &Diagnostics, sources: &Sources, quotes: Quotes) -> String {
    let mut out = String::new();
    let (mut shown, mut no_news) = (0, 0);
    for d in diagnostics {
        let is_error = d.severity == Severity::Error;
        if d.plain_only {
            no_news += usize::from(is_error);
        } else if !is_error || shown < MOST_SHOWN {
            one(&mut out, d, sources, quotes);
            shown += usize::from(is_error);
        }
    }
    let hidden = diagnostics.error_count() - shown - no_news;
    if hidden > 0 {
        let _ = writeln!(out, "{hidden} further errors are not shown");
    }
    out
}

fn one(out: &mut String, d: &Diagnostic, sources: &Sources, quotes: Quotes) {
    let kind = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let place = d.span.map_or(String::new(), |s| format!("{}: ", place(s, sources)));
    let of = match &d.of {
        Some(Of::Argument(text) | Of::File(text)) => format!("{text}: "),
        None => String::new(),
    };
    let message = of + &quotes.apply(&d.message);
    match &d.context {
        Some(context) => {
            let _ = writeln!(out, "{place}{kind}: {}\n  {message}", quotes.apply(context));
        }
        None => {
            let _ = writeln!(out, "{place}{kind}: {message}");
        }
    }
    if let Some(span) = d.span {
        snippet(out, span, sources);
    }
    for note in &d.notes {
        let message = quotes.apply(&note.message);
        match note.span {
            Some(span) => {
                let _ = writeln!(out, "{}: note: {message}", self::place(span, sources));
                snippet(out, span, sources);
            }
            None => {
                let _ = writeln!(out, "  note: {message}");
            }
        }
    }
    if let Some(hint) = &d.hint {
        let _ = writeln!(out, "  hint: {}", quotes.apply(hint));
    }
}

fn place(span: Span, sources: &Sources) -> String {
    let landmark = sources.landmark(span);
    format!("{}:{}", landmark.short(), landmark.column)
}

/// Characters of a source line that are shown at most.
const MAX_SHOWN: usize = 160;

/// The line where the span begins, and carets under the part of the span that is on it.
fn snippet(out: &mut String, span: Span, sources: &Sources) {
    let Some(file) = sources.get(span.file) else { return };
    let (text, start) = file.line_at(span.start);
    let first = ((span.start - start) as usize).min(text.len());
    let last = ((span.end.max(span.start) - start) as usize).min(text.len());
    let caret = text.get(..first).unwrap_or("").chars().count();
    // A long line is shown from a little before the place.
    let skip = if caret > MAX_SHOWN / 2 { caret - MAX_SHOWN / 4 } else { 0 };
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().skip(skip).take(MAX_SHOWN).map(printable).collect();
    if shown.trim().is_empty() {
        return;
    }
    let room = MAX_SHOWN.saturating_sub(caret - skip).max(1);
    let width = text.get(first..last).unwrap_or("").chars().take(room).count().max(1);
    let _ = writeln!(out, "  | {shown}\n  | {}{}", " ".repeat(caret - skip), "^".repeat(width));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_follow_lang() {
        let message = "'a' isn't connected to ('b c')";
        assert_eq!(Quotes::for_lang(Some("C")).apply(message), message);
        assert_eq!(Quotes::for_lang(Some("en_US.UTF-8")).apply(message), "‘a’ isn't connected to (‘b c’)");
    }
}
