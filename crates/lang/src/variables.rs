//! Variables and their replacement in configuration strings.

use crate::args::escape_for_quotes;
use std::collections::HashMap;
use std::rc::Rc;

/// How deep definitions may refer to each other.
const MAX_DEPTH: usize = 10;

/// A variable's value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Text to insert as it is: an argument, replaced where it was written.
    Final(String),
    /// The right side of a `define`, which may refer to variables of its own scope.
    Open(String),
}

impl Value {
    /// Whether the definition says nothing, `define($x)`: a reference stays as it is then, and hides an outer variable.
    fn is_nothing(&self) -> bool {
        matches!(self, Value::Open(text) if text.is_empty())
    }
}

/// The variables of one scope, within those of the scopes around it.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Compounds around this scope.
    pub depth: usize,
    pub values: HashMap<String, Value>,
    pub parent: Option<Rc<Scope>>,
}

impl Scope {
    /// The innermost scope around or at `scope` with less than `depth` compounds around it.
    pub fn outside(scope: &Rc<Scope>, depth: usize) -> Option<Rc<Scope>> {
        let mut current = Some(scope.clone());
        while let Some(s) = current {
            if s.depth < depth {
                return Some(s);
            }
            current = s.parent.clone();
        }
        None
    }

    fn find(&self, name: &str) -> Option<(&Value, &Scope)> {
        let mut scope = self;
        loop {
            if let Some(value) = scope.values.get(name) {
                return Some((value, scope));
            }
            scope = scope.parent.as_deref()?;
        }
    }
}

/// The work that replacement may still do: a few lines of definitions can ask for an exponential amount.
#[derive(Debug)]
pub(crate) struct Fuel(pub usize);

impl Fuel {
    /// Uses some; `false` if there is not enough left.
    pub fn take(&mut self, amount: usize) -> bool {
        let enough = self.0 >= amount;
        self.0 = if enough { self.0 - amount } else { 0 };
        enough
    }
}

/// `text` with the variables of `scope` replaced. Unknown variables are left as they are. Once `fuel` is used up,
/// text comes back unchanged.
pub(crate) fn expand(text: &str, scope: &Scope, fuel: &mut Fuel) -> String {
    Expander { fuel }.text(text, scope, 0)
}

struct Expander<'a> {
    fuel: &'a mut Fuel,
}

impl Expander<'_> {
    fn text(&mut self, text: &str, scope: &Scope, depth: usize) -> String {
        if !self.fuel.take(text.len() + 1) || !text.contains('$') || depth > MAX_DEPTH {
            return text.to_string();
        }
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len() + 16);
        let mut quoted = false;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &text[at..];
            let length = match bytes[at] {
                b'"' => {
                    quoted = !quoted;
                    1
                }
                b'\\' if bytes.get(at + 1) == Some(&b'<') => rest.find('>').map_or(rest.len(), |n| n + 1),
                b'\\' if quoted => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                b'\'' if !quoted => rest[1..].find('\'').map_or(rest.len(), |n| n + 2),
                b'/' if !quoted && rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                b'/' if !quoted && rest.starts_with("/*") => {
                    rest[2..].find("*/").map_or(rest.len(), |n| n + 4)
                }
                b'$' => {
                    if let Some((length, value)) = self.variable(rest, scope, depth, quoted) {
                        if !self.fuel.take(value.len()) {
                            return text.to_string();
                        }
                        out.push_str(&value);
                        at += length;
                        continue;
                    }
                    1
                }
                _ => rest.chars().next().map_or(1, char::len_utf8),
            };
            out.push_str(&rest[..length]);
            at += length;
        }
        out
    }

    /// The length and the value of the reference at the start of `text`; `None` if there is none, or none that is
    /// defined.
    fn variable(&mut self, text: &str, scope: &Scope, depth: usize, quoted: bool) -> Option<(usize, String)> {
        let (length, value) = match text.as_bytes().get(1)? {
            b'{' => return self.braces(text, scope, depth, quoted),
            _ => {
                let name = name_at(&text[1..]);
                (1 + name.len(), self.value(name, scope, depth)?)
            }
        };
        Some((length, if quoted { escape_for_quotes(&value) } else { value }))
    }

    /// `${name}`, `${name-default}` and `${name[word]}`; variables between the braces are replaced first.
    fn braces(&mut self, text: &str, scope: &Scope, depth: usize, quoted: bool) -> Option<(usize, String)> {
        let end = closing_brace(text)?;
        let inner = self.text(&text[2..end], scope, depth + 1);
        let name = name_at(&inner);
        if scope.find(name).is_some_and(|(value, _)| value.is_nothing()) {
            return None;
        }
        let value = self.value(name, scope, depth);
        let modifier = &inner[name.len()..];
        let value = match (value, modifier.as_bytes().first()) {
            (Some(value), None | Some(b'-')) => value,
            (None, Some(b'-')) => return Some((end + 1, modifier[1..].to_string())),
            (Some(value), Some(b'[')) => {
                let index: usize = modifier[1..].strip_suffix(']')?.trim().parse().ok()?;
                crate::args::split_words(&value).get(index).cloned().unwrap_or_default()
            }
            _ => return None,
        };
        Some((end + 1, if quoted { escape_for_quotes(&value) } else { value }))
    }

    fn value(&mut self, name: &str, scope: &Scope, depth: usize) -> Option<String> {
        match scope.find(name)? {
            (value, _) if value.is_nothing() => None,
            (Value::Final(text), _) => Some(text.clone()),
            (Value::Open(text), home) => Some(self.text(text, home, depth + 1)),
        }
    }
}

/// The variable name at the start of `text`, possibly empty.
fn name_at(text: &str) -> &str {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    &text[..length]
}

/// The name in the first reference to a variable, `$x`, that was left in an element's configuration string, since nothing defines
/// it. What stands in single quotes is none.
#[must_use]
pub fn undefined(config: &str) -> Option<&str> {
    let mut rest = config;
    loop {
        rest = &rest[rest.find(['$', '\''])?..];
        let after = &rest[1..];
        if rest.starts_with('\'') {
            rest = &after[after.find('\'')? + 1..];
            continue;
        }
        let name = name_at(after.strip_prefix('{').unwrap_or(after));
        if !name.is_empty() {
            return Some(name);
        }
        rest = after;
    }
}

/// Where the brace that opens at byte 1 is closed.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(pairs: &[(&str, &str)]) -> Scope {
        let values = pairs.iter().map(|(n, v)| (n.to_string(), Value::Open(v.to_string()))).collect();
        Scope { depth: 0, values, parent: None }
    }

    fn expanded(text: &str, pairs: &[(&str, &str)]) -> String {
        expand(text, &scope(pairs), &mut Fuel(1 << 20))
    }

    #[test]
    fn plain_and_braced() {
        let vars = [("a", "5"), ("n", "a"), ("list", "x 'y z' w")];
        assert_eq!(expanded("$a, ${a}b $ab", &vars), "5, 5b $ab");
        assert_eq!(expanded("${b-$a} ${a-9} ${b}", &vars), "5 5 ${b}");
        assert_eq!(expanded("${$n}", &vars), "5");
        assert_eq!(expanded("${list[1]}|${list[7]}", &vars), "'y z'|");
        assert_eq!(expanded("$(x $a) $", &vars), "$(x 5) $");
        assert_eq!(expanded("${a", &vars), "${a");
    }

    #[test]
    fn quotes() {
        let vars = [("a", "\"x y\"")];
        assert_eq!(expanded("$a", &vars), "\"x y\"");
        assert_eq!(expanded("\"$a\"", &vars), "\"\\\"x y\\\"\"");
        assert_eq!(
            expanded("'$a' /* $a */ \\<$a> \"\\$a\" // $a", &vars),
            "'$a' /* $a */ \\<$a> \"\\$a\" // $a"
        );
    }

    #[test]
    fn what_nothing_defines_is_told() {
        for (config, left) in [
            ("1, $x", Some("x")),
            ("${long_name-$y} $z", Some("long_name")),
            ("$ '$quoted' $(x $b)", Some("b")),
            ("'$a", None),
            ("no $, none", None),
            ("", None),
        ] {
            assert_eq!(undefined(config), left, "{config}");
        }
    }

    #[test]
    fn definitions_refer_to_each_other_but_not_forever() {
        assert_eq!(expanded("$a", &[("a", "$b-$b"), ("b", "1")]), "1-1");
        assert_eq!(expanded("$a", &[("a", "$a")]), "$a");
    }

    #[test]
    fn explosions_stop() {
        let pairs: Vec<(String, String)> =
            (0..9).map(|i| (format!("v{i}"), format!("$v{}", i + 1).repeat(40))).collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut fuel = Fuel(1 << 20);
        expand("$v0", &scope(&pairs), &mut fuel);
        assert_eq!(fuel.0, 0);
    }
}
