//! Variables and handlers in the texts of instructions: `$x`, `${x}`, `$(handler parameters)`.

use causeway_lang::args::escape_for_quotes;

/// How deep references may stand in each other.
const MAX_DEPTH: usize = 10;

/// How a reference is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `$x`, `${x}`
    Variable,
    /// `$(x)`
    Handler,
}

/// A reference and what it takes of the text.
struct Reference<'t> {
    form: Form,
    name: &'t str,
    length: usize,
    nested: bool,
}

/// `text` with what `value` knows in place of references. Others stay as they are. In double quotes a value is escaped;
/// outside of them it is put in quotes if `quote` says so, so that taking the quotes off gives it back.
pub(super) fn expand(text: &str, quote: bool, value: &mut dyn FnMut(&str, Form) -> Option<String>) -> String {
    at_depth(text, quote, 0, value)
}

fn at_depth(
    text: &str,
    quote: bool,
    depth: usize,
    value: &mut dyn FnMut(&str, Form) -> Option<String>,
) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut quotes) = (String::with_capacity(text.len()), 0, 0u8);
    let mut nothing = false;
    while at < bytes.len() {
        let rest = &text[at..];
        let mut length = rest.chars().next().map_or(1, char::len_utf8);
        match bytes[at] {
            b'\\' if quotes == b'"' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            mark @ (b'\'' | b'"') if quotes == 0 => quotes = mark,
            mark @ (b'\'' | b'"') if quotes == mark => quotes = 0,
            b'/' if quotes == 0 && rest.starts_with("//") => {
                length = rest.find(['\n', '\r']).unwrap_or(rest.len())
            }
            b'/' if quotes == 0 && rest.starts_with("/*") => {
                length = rest[2..].find("*/").map_or(rest.len(), |n| n + 4)
            }
            b'$' if quotes != b'\'' && depth <= MAX_DEPTH => match reference(rest) {
                Ok(Some(found)) => {
                    length = found.length;
                    out += &replaced(rest, &found, quotes, quote, depth, value);
                    nothing = out.is_empty();
                    at += length;
                    continue;
                }
                Ok(None) => {}
                // One that is not closed runs to the end.
                Err(Unclosed) => length = rest.len(),
            },
            _ => {}
        }
        out += &rest[..length];
        at += length;
    }
    // As in Click, a text of which nothing is left up to its last reference stays as it is.
    if nothing { text.to_owned() } else { out }
}

struct Unclosed;

/// The reference at the start of `text`, if there is one.
fn reference(text: &str) -> Result<Option<Reference<'_>>, Unclosed> {
    let bytes = text.as_bytes();
    let found = match bytes.get(1) {
        Some(b'{') => {
            let end = text.find('}').ok_or(Unclosed)?;
            let name = &text[2..end];
            Reference { form: Form::Variable, name, length: end + 1, nested: name.contains('$') }
        }
        Some(b'(') => {
            let (end, nested) = closing(bytes).ok_or(Unclosed)?;
            if end == 2 {
                return Err(Unclosed);
            }
            Reference { form: Form::Handler, name: &text[2..end], length: end + 1, nested }
        }
        Some(b) if b.is_ascii_alphanumeric() || *b == b'_' => {
            let word = bytes[1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
            Reference { form: Form::Variable, name: &text[1..=word], length: 1 + word, nested: false }
        }
        Some(b'?' | b'#' | b'$') => {
            Reference { form: Form::Variable, name: &text[1..2], length: 2, nested: false }
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

/// Where the parenthesis that opens at byte 1 is closed, and whether there are references in between.
fn closing(bytes: &[u8]) -> Option<(usize, bool)> {
    let (mut level, mut quotes, mut nested) = (0usize, 0u8, false);
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'(' if quotes == 0 => level += 1,
            b')' if quotes == 0 => {
                level -= 1;
                if level == 0 {
                    return Some((at, nested));
                }
            }
            mark @ (b'"' | b'\'') if quotes == 0 => quotes = mark,
            mark @ (b'"' | b'\'') if quotes == mark => quotes = 0,
            b'\\' if quotes != b'\'' => at += 1,
            b'$' if quotes != b'\'' => nested = true,
            _ => {}
        }
        at += 1;
    }
    None
}

/// What stands in place of a reference at the start of `text`.
fn replaced(
    text: &str,
    found: &Reference<'_>,
    quotes: u8,
    quote: bool,
    depth: usize,
    value: &mut dyn FnMut(&str, Form) -> Option<String>,
) -> String {
    let name = match found.nested {
        true => at_depth(found.name, false, depth + 1, value),
        false => found.name.to_owned(),
    };
    match value(&name, found.form) {
        Some(value) if quotes == b'"' => escape_for_quotes(&value),
        Some(value) if quote => format!("\"{}\"", escape_for_quotes(&value)),
        Some(value) => value,
        None if found.nested => format!("{}{name}{}", &text[..2], &text[found.length - 1..found.length]),
        None => text[..found.length].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str, quote: bool) -> String {
        expand(text, quote, &mut |name, form| match (name, form) {
            ("x", Form::Variable) => Some("1 \"2\"".to_owned()),
            ("n" | "?", Form::Variable) => Some("5".to_owned()),
            (call, Form::Handler) => call.strip_prefix("add ").map(|rest| format!("<{rest}>")),
            _ => None,
        })
    }

    #[test]
    fn references_are_replaced_but_not_in_single_quotes_and_comments() {
        for (text, plain, quoted) in [
            ("$x-$n$?", "1 \"2\"-55", "\"1 \\\"2\\\"\"-\"5\"\"5\""),
            ("\"$x\" '$x' /* $x */", "\"1 \\\"2\\\"\" '$x' /* $x */", "\"1 \\\"2\\\"\" '$x' /* $x */"),
            ("${n}0 $y ${y} $", "50 $y ${y} $", "\"5\"0 $y ${y} $"),
            ("$(add $n (1) ')')", "<5 (1) ')'>", "\"<5 (1) ')'>\""),
            ("$(sub $n) $(add $n", "$(sub 5) $(add $n", "$(sub 5) $(add $n"),
            ("\\$n \"\\$n\"", "\\5 \"\\$n\"", "\\\"5\" \"\\$n\""),
            ("$(add $(add $n))", "<<5>>", "\"<<5>>\""),
        ] {
            assert_eq!(
                (expanded(text, false), expanded(text, true)),
                (plain.into(), quoted.into()),
                "{text}"
            );
        }
    }
}
