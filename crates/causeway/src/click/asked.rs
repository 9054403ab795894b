//! The handlers that -h and -x ask for, when the run is over.

use super::options::Invocation;
use crate::control::Question;
use crate::explained::Explained;
use crate::logger::answer;
use crate::output;
use crate::session::Session;
use causeway_engine::handler::{HandlerError, is_raw_in_click};
use std::process::ExitCode;

/// Prints the handlers asked for and finds the exit status.
pub(super) fn finish(i: &Invocation, session: &mut Session, code: ExitCode) -> ExitCode {
    // A pattern may stand for many, and so may several options: then each value has its name above it.
    let headers = i.handlers.len() > 1 || i.handlers.iter().any(|h| !is_exact(session, h));
    let (mut values, mut code) = (Vec::new(), code);
    for handler in &i.handlers {
        let Some(names) = expand(session, handler) else {
            let (element, _) = handler.split_once('.').unwrap_or((handler, ""));
            let what = if element.contains(GLOB) { "no element matching" } else { "no element" };
            answer(&format!("{what} '{element}'\n"));
            code = ExitCode::FAILURE;
            continue;
        };
        for handler in names {
            match value(session, &handler) {
                Ok(value) => values.push((handler, value)),
                Err(why) => {
                    answer(&why.to_string());
                    code = ExitCode::FAILURE;
                }
            }
        }
    }
    for (handler, value) in values {
        let whole = value.is_empty() || value.ends_with('\n') || is_raw(session, &handler);
        let newline = if whole { "" } else { "\n" };
        let printed = match headers {
            true => output::print(format_args!("{handler}:\n{value}{newline}\n")),
            false => output::print(format_args!("{value}{newline}")),
        };
        if printed.is_err() {
            break;
        }
    }
    match &i.exit_handler {
        Some(handler) => exit_status(session, handler),
        None => code,
    }
}

/// The value of `handler`, or why there is none.
fn value(session: &mut Session, handler: &str) -> Result<String, Explained> {
    match session.answer(Question::Read(handler.to_owned(), String::new())) {
        Ok(value) => Ok(value),
        // What Click's handlers say of their errors nobody hears there.
        Err(HandlerError::Failed(_)) => Ok(String::new()),
        Err(HandlerError::NoHandler(_)) => Err(Explained::from(format!("no '{handler}' handler\n"))),
        Err(HandlerError::WriteOnly(_)) => Err(Explained::from(format!("'{handler}' is a write handler\n"))),
        Err(other) => Err(Explained::from(why_not(handler, &other))),
    }
}

/// Whether the value of `handler` is shown byte by byte.
fn is_raw(session: &Session, handler: &str) -> bool {
    let plan = session.router().plan();
    handler.rsplit_once('.').is_some_and(|(element, handler)| {
        plan.find(element).is_some_and(|i| is_raw_in_click(&plan.elements[i].class, handler))
    })
}

/// What makes a name a pattern.
const GLOB: [char; 3] = ['*', '?', '['];

/// Whether `handler` names one by itself, not by a pattern or a class.
fn is_exact(session: &Session, handler: &str) -> bool {
    handler
        .split_once('.')
        .is_none_or(|(pattern, _)| pattern.is_empty() || session.router().plan().find(pattern).is_some())
}

/// Whether `pattern` may stand for several elements.
fn is_glob(pattern: &str) -> bool {
    pattern.contains(GLOB)
}

/// Why `handler` cannot be read, in Click's words.
fn why_not(handler: &str, error: &HandlerError) -> String {
    match error {
        HandlerError::NoElement(pattern) if is_glob(pattern) => format!("no element matching '{pattern}'\n"),
        HandlerError::NoElement(element) => format!("no element '{element}'\n"),
        HandlerError::NoHandler(_) | HandlerError::WriteOnly(_) => format!("no '{handler}' read handler\n"),
        other => format!("{other}\n"),
    }
}

/// The handlers that `handler` names: itself, or those of every element that a glob or a class name stands for.
fn expand(session: &Session, handler: &str) -> Option<Vec<String>> {
    let Some((pattern, name)) = handler.split_once('.') else { return Some(vec![handler.to_owned()]) };
    let plan = session.router().plan();
    if is_exact(session, handler) {
        return Some(vec![handler.to_owned()]);
    }
    let hit = |e: &&causeway_engine::PlanElement| match is_glob(pattern) {
        true => glob(pattern, &e.name),
        false => e.class == pattern,
    };
    let names: Vec<String> = plan.elements.iter().filter(hit).map(|e| format!("{}.{name}", e.name)).collect();
    (!names.is_empty()).then_some(names)
}

/// A part of a pattern.
enum Part {
    /// `*`
    Any,
    /// `?`, `[ab]`, `[!a-z]` or a character by itself: one of these ranges, or none of them.
    One(Vec<(char, char)>, bool),
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' => Part::Any,
            '?' => Part::One(Vec::new(), false),
            '[' => {
                let negated = rest.next_if(|&c| c == '!' || c == '^').is_some();
                let mut ranges = Vec::new();
                while let Some(first) = rest.next().filter(|&c| c != ']') {
                    let last = rest.next_if_eq(&'-').and_then(|_| rest.next_if(|&c| c != ']'));
                    ranges.push((first, last.unwrap_or(first)));
                }
                Part::One(ranges, !negated)
            }
            c => Part::One(vec![(c, c)], true),
        });
    }
    parts
}

/// Whether `text` matches a pattern of `*`, `?` and `[…]`.
fn glob(pattern: &str, text: &str) -> bool {
    let p = parts(pattern);
    // Reachable positions in the pattern, text character by text character.
    let close = |mut set: Vec<bool>| {
        for i in 0..p.len() {
            if set[i] && matches!(p[i], Part::Any) {
                set[i + 1] = true;
            }
        }
        set
    };
    let mut set = vec![false; p.len() + 1];
    set[0] = true;
    set = close(set);
    for c in text.chars() {
        let mut next = vec![false; p.len() + 1];
        for i in (0..p.len()).filter(|&i| set[i]) {
            match &p[i] {
                Part::Any => next[i] = true,
                Part::One(ranges, among) => {
                    next[i + 1] |= ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) == *among;
                }
            }
        }
        set = close(next);
    }
    set[p.len()]
}

/// The exit status when the handler that is to give it does not.
const NO_STATUS: u8 = 255;

fn exit_status(session: &mut Session, handler: &str) -> ExitCode {
    let failed = |text: &str| {
        answer(text);
        ExitCode::from(NO_STATUS)
    };
    match session.answer(Question::Read(handler.to_owned(), String::new())) {
        Ok(value) => match (value.trim(), value.trim().parse::<i64>()) {
            ("true", _) => ExitCode::SUCCESS,
            ("false", _) => ExitCode::FAILURE,
            (_, Ok(n)) => ExitCode::from(n as u8),
            _ => failed("exit handler value should be integer\n"),
        },
        Err(HandlerError::NoHandler(_) | HandlerError::WriteOnly(_)) => {
            failed(&format!("no '{handler}' read handler\n"))
        }
        Err(e) => failed(&why_not(handler, &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, yes) in [
            ("q*", "q1", true),
            ("*", "", true),
            ("q?", "q12", false),
            ("a*b*c", "axxbyc", true),
            ("*x", "xy", false),
            ("q[ab]", "qa", true),
            ("q[ab]", "qc", false),
            ("q[!a-c]*", "qd1", true),
            ("q[^a-c]*", "qb1", false),
            ("q[", "q", false),
        ] {
            assert_eq!(glob(pattern, text), yes, "{pattern} {text}");
        }
    }
}
