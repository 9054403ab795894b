//! The choice between the alternatives of a compound class.

use crate::args;
use crate::ast::Formal;
use crate::diag::{Diagnostic, Diagnostics};
use crate::elaborate::{ClassDef, ClassId, CompoundDef};
use crate::source::Span;
use std::collections::HashMap;

/// The first alternative whose inputs, outputs and arguments all match, and the values of its parameters. If a
/// class has only one and its arguments match, it is taken even if its ports do not: messages about single ports
/// say more. `None` after an error.
pub(crate) fn resolve(
    defs: &[ClassDef],
    class: ClassId,
    first: &CompoundDef,
    arguments: &[String],
    (inputs, outputs): (usize, usize),
    span: Span,
    diags: &mut Diagnostics,
) -> Option<(ClassId, Vec<String>)> {
    let mut candidates: Vec<&CompoundDef> = vec![];
    let mut closest = None;
    let mut next = Some(class);
    while let Some(id) = next {
        let ClassDef::Compound(candidate) = &defs[id] else { return Some((id, vec![])) };
        let values = assign(&candidate.formals, arguments);
        let ports_match = (candidate.inputs, candidate.outputs) == (inputs, outputs);
        match values {
            Some(values) if ports_match => return Some((id, values)),
            Some(values) => closest = Some((id, values)),
            None => {}
        }
        candidates.push(candidate);
        next = candidate.next;
    }
    if candidates.len() == 1 && closest.is_some() {
        return closest;
    }
    let wanted = signature(&first.name, None, arguments.len(), inputs, outputs);
    let mut error = Diagnostic::error(span, format!("no match for '{wanted}'")).note(None, "candidates are:");
    for c in candidates {
        let text = signature(&c.name, Some(&c.formals), 0, c.inputs, c.outputs);
        error = error.note(Some(c.span), format!("  {text}"));
    }
    diags.push(error);
    None
}

/// The values of the parameters, in their order; `None` if an argument is missing or left over.
fn assign(formals: &[Formal], arguments: &[String]) -> Option<Vec<String>> {
    let mut used = vec![false; arguments.len()];
    let mut first_unused = 0;
    let mut by_keyword: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        if let Some((word, value)) = args::keyword(argument) {
            by_keyword.entry(word).or_default().push((at, value));
        }
    }
    let mut values = vec![];
    for formal in formals {
        let value = match formal.keyword.as_deref() {
            None => {
                while *used.get(first_unused)? {
                    first_unused += 1;
                }
                used[first_unused] = true;
                arguments[first_unused].clone()
            }
            Some("__REST__") => {
                let rest: Vec<&String> =
                    arguments.iter().zip(&used).filter(|(_, used)| !**used).map(|(a, _)| a).collect();
                let rest = args::join_args(&rest);
                used.fill(true);
                rest
            }
            Some(word) => {
                // The last argument with this keyword counts; the others of the same keyword are used up too.
                let mut candidates = by_keyword.remove(word)?;
                candidates.retain(|&(at, _)| !std::mem::replace(&mut used[at], true));
                candidates.last()?.1.to_string()
            }
        };
        values.push(value);
    }
    used.iter().all(|&u| u).then_some(values)
}

/// `Name(<arg>, KEY)[1 input, 2 outputs]` for a class, `Name[2 arguments, 1 input, 0 outputs]` for a use.
fn signature(
    name: &str,
    formals: Option<&[Formal]>,
    arguments: usize,
    inputs: usize,
    outputs: usize,
) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = if name.is_empty() { "<anonymous>".to_string() } else { name.to_string() };
    if let Some(formals) = formals.filter(|f| !f.is_empty()) {
        let words: Vec<&str> = formals
            .iter()
            .map(|f| match f.keyword.as_deref() {
                None => "<arg>",
                Some("__REST__") => "...",
                Some(word) => word,
            })
            .collect();
        text.push_str(&format!("({})", words.join(", ")));
    }
    let mut parts = vec![count(inputs, "input"), count(outputs, "output")];
    if formals.is_none() && arguments > 0 {
        parts.insert(0, count(arguments, "argument"));
    }
    text.push_str(&format!("[{}]", parts.join(", ")));
    text
}
