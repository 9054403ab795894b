//! Configuration strings as elements see them: split into arguments, split into words, unquoted.
//!
//! Quoting: nothing is special within `'…'`; within `"…"` a backslash escapes; `\<48 69>` is data by hexadecimal
//! digits, within double quotes and outside of quotes. Comments outside of quotes count as blanks. Quotes that are
//! never closed run to the end of the text.

/// Where a scan over configuration text stands, and the length of the next unit.
enum Unit {
    /// A `'…'`, `"…"` or `\<…>`, of so many bytes.
    Opaque(usize),
    /// A comment, of so many bytes.
    Comment(usize),
    /// One character, of so many bytes.
    Plain(char),
}

/// The unit at the start of `text`, which must not be empty.
fn unit(text: &str) -> Unit {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.get(1)) {
        (Some(b'\''), _) => Unit::Opaque(text[1..].find('\'').map_or(text.len(), |at| at + 2)),
        (Some(b'"'), _) => Unit::Opaque(double_quoted(bytes)),
        (Some(b'\\'), Some(b'<')) => Unit::Opaque(angle(bytes)),
        (Some(b'/'), Some(b'/' | b'*')) => Unit::Comment(comment(bytes)),
        _ => Unit::Plain(text.chars().next().unwrap_or(' ')),
    }
}

fn double_quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' if bytes.get(at + 1) == Some(&b'<') => at += angle(&bytes[at..]),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn angle(bytes: &[u8]) -> usize {
    let mut at = 2;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'>', _) => return at + 1,
            (b'/', Some(b'/' | b'*')) => at += comment(&bytes[at..]),
            _ => at += 1,
        }
    }
    bytes.len()
}

fn comment(bytes: &[u8]) -> usize {
    let end = match bytes[1] {
        b'/' => bytes.iter().position(|b| matches!(b, b'\n' | b'\r')),
        _ => bytes[2..].windows(2).position(|w| w == b"*/").map(|at| at + 4),
    };
    end.unwrap_or(bytes.len())
}

/// Walks over `text` unit by unit.
fn units(text: &str) -> impl Iterator<Item = (Unit, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let unit = unit(rest);
        let length = match &unit {
            Unit::Opaque(n) | Unit::Comment(n) => *n,
            Unit::Plain(c) => c.len_utf8(),
        };
        let (this, after) = rest.split_at(length);
        rest = after;
        Some((unit, this))
    })
}

/// The arguments of a configuration string: its pieces between commas, with comments turned into a blank and
/// outer blanks removed. An empty last argument is dropped, so `1,` has one argument; an empty one elsewhere is
/// kept. Commas in quotes and in `\<…>` do not separate.
pub fn split_args(config: &str) -> Vec<String> {
    let mut args = vec![];
    let mut current = String::new();
    for (unit, text) in units(config) {
        match unit {
            Unit::Plain(',') => args.push(std::mem::take(&mut current).trim().to_string()),
            Unit::Comment(_) => current.push(' '),
            _ => current.push_str(text),
        }
    }
    let last = current.trim();
    if !last.is_empty() {
        args.push(last.to_string());
    }
    args
}

/// Arguments joined back into a configuration string.
pub fn join_args<S: AsRef<str>>(args: &[S]) -> String {
    args.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

/// The words of an argument: its pieces between blanks, quotes kept.
pub fn split_words(argument: &str) -> Vec<String> {
    let mut words = vec![];
    let mut current = String::new();
    for (unit, text) in units(argument) {
        let blank = match unit {
            Unit::Comment(_) => true,
            Unit::Plain(c) => c.is_whitespace(),
            Unit::Opaque(_) => false,
        };
        if !blank {
            current.push_str(text);
        } else if !current.is_empty() {
            words.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        words.push(current);
    }
    words
}

/// The first word of an argument and the rest, both without outer blanks.
pub fn first_word(argument: &str) -> (&str, &str) {
    let argument = argument.trim();
    let mut length = 0;
    for (unit, text) in units(argument) {
        if matches!(unit, Unit::Comment(_)) || matches!(unit, Unit::Plain(c) if c.is_whitespace()) {
            break;
        }
        length += text.len();
    }
    (&argument[..length], argument[length..].trim())
}

/// The keyword and the value of an argument that has the shape of a keyword argument: a letter or underscore,
/// then letters, digits and `_ . : ? !`, then a blank and something more. Whether it *is* one depends on the
/// keywords its element declares.
pub fn keyword(argument: &str) -> Option<(&str, &str)> {
    let first = argument.bytes().next()?;
    if !(first.is_ascii_alphabetic() || first == b'_') {
        return None;
    }
    let in_keyword = |b: &u8| b.is_ascii_alphanumeric() || b"_.:?!".contains(b);
    let length = argument.bytes().take_while(|b| in_keyword(b)).count();
    let (word, rest) = argument.split_at(length);
    let value = rest.trim_start();
    (rest.len() != value.len() && !value.is_empty()).then_some((word, value))
}

/// Whether `text` is one word: not empty, without blanks and quotes.
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "\"'\\,".contains(c))
}

/// The text with quotes removed and escapes replaced. Juxtaposed pieces are concatenated: `a"b"c` is `abc`.
/// Data that is not UTF-8 is replaced; use [`unquote_bytes`] where it matters.
pub fn unquote(text: &str) -> String {
    String::from_utf8(unquote_bytes(text))
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// As [`unquote`], to bytes.
pub fn unquote_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (unit, piece) in units(text) {
        let bytes = piece.as_bytes();
        match unit {
            Unit::Opaque(_) if bytes[0] == b'\'' => {
                out.extend_from_slice(piece[1..].strip_suffix('\'').unwrap_or(&piece[1..]).as_bytes());
            }
            Unit::Opaque(_) if bytes[0] == b'"' => unescape(bytes, &mut out),
            Unit::Opaque(_) => hex_data(bytes, &mut out),
            Unit::Comment(_) | Unit::Plain(_) => out.extend_from_slice(bytes),
        }
    }
    out
}

/// Appends the content of `"…"`.
fn unescape(quoted: &[u8], out: &mut Vec<u8>) {
    let mut at = 1;
    while at < quoted.len() {
        match (quoted[at], quoted.get(at + 1).copied()) {
            (b'"', _) => return,
            (b'\\', Some(b'<')) => {
                let length = angle(&quoted[at..]);
                hex_data(&quoted[at..at + length], out);
                at += length;
            }
            (b'\\', Some(next)) => at += escape(&quoted[at..], next, out),
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// Appends what the escape sequence at the start of `text` stands for; returns its length.
fn escape(text: &[u8], kind: u8, out: &mut Vec<u8>) -> usize {
    let simple = match kind {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\n' => return 2,
        b'\r' => return if text.get(2) == Some(&b'\n') { 3 } else { 2 },
        b'0'..=b'7' => {
            let digits = text[1..].iter().take(3).take_while(|b| (b'0'..=b'7').contains(*b)).count();
            let value = text[1..=digits].iter().fold(0u32, |v, b| v * 8 + u32::from(b - b'0'));
            out.push(value as u8);
            return 1 + digits;
        }
        b'x' => {
            let digits = text[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            if digits > 0 {
                let last = &text[(2 + digits).saturating_sub(2).max(2)..2 + digits];
                out.push(last.iter().fold(0, |v, &b| v << 4 | hex_digit(b)));
                return 2 + digits;
            }
            b'x'
        }
        other => other,
    };
    out.push(simple);
    2
}

fn hex_digit(byte: u8) -> u8 {
    (byte as char).to_digit(16).unwrap_or(0) as u8
}

/// Appends the bytes of a `\<…>`: two digits a byte, blanks and comments between digits ignored; a last odd
/// digit is the high half of its byte.
fn hex_data(text: &[u8], out: &mut Vec<u8>) {
    let mut half: Option<u8> = None;
    let mut at = 2;
    while at < text.len() && text[at] != b'>' {
        if text[at] == b'/' && matches!(text.get(at + 1), Some(b'/' | b'*')) {
            at += comment(&text[at..]);
            continue;
        }
        if text[at].is_ascii_hexdigit() {
            let digit = hex_digit(text[at]);
            half = match half {
                None => Some(digit),
                Some(high) => {
                    out.push(high << 4 | digit);
                    None
                }
            };
        }
        at += 1;
    }
    out.extend(half.map(|high| high << 4));
}

/// The text in double quotes, if it needs them to survive as one word.
pub fn quote(text: &str) -> String {
    if is_word(text) && !text.contains(['$', '(', ')', '#']) && !text.contains("//") && !text.contains("/*") {
        return text.to_string();
    }
    format!("\"{}\"", escape_for_quotes(text))
}

/// The text as it must stand within double quotes to be read back unchanged.
pub fn escape_for_quotes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' | '$' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        assert_eq!(split_args(""), Vec::<String>::new());
        assert_eq!(split_args("  /* x */ "), Vec::<String>::new());
        assert_eq!(split_args("1,"), ["1"]);
        assert_eq!(split_args(","), [""]);
        assert_eq!(split_args("1,,2 , "), ["1", "", "2"]);
        assert_eq!(
            split_args("a/*,*/b, 'c,d' \"e,\\\",f\" \\<0a // ,>\n 0b>,g // x, y\n h"),
            ["a b", "'c,d' \"e,\\\",f\" \\<0a // ,>\n 0b>", "g  \n h"]
        );
        assert_eq!(split_args("'open, end"), ["'open, end"]);
        assert_eq!(split_args("\"\\<22 /* \" */ 22>\", b"), ["\"\\<22 /* \" */ 22>\"", "b"]);
    }

    #[test]
    fn words_and_keywords() {
        assert_eq!(split_words(" a 'b c'd  \"e f\" "), ["a", "'b c'd", "\"e f\""]);
        assert_eq!(first_word("$x  a b"), ("$x", "a b"));
        assert_eq!(keyword("LIMIT 5"), Some(("LIMIT", "5")));
        assert_eq!(keyword("a.b:c?! \t x y"), Some(("a.b:c?!", "x y")));
        assert_eq!(keyword("LIMIT"), None);
        assert_eq!(keyword("1.0.0.1 eth0"), None);
        assert_eq!(keyword("a-b c"), None);
    }

    #[test]
    fn unquoting() {
        assert_eq!(unquote("a\"b\\tc\"'d\\te'"), "ab\tcd\\te");
        assert_eq!(unquote("\"\\101\\x4142\\q\\\nz\""), "ABqz");
        assert_eq!(unquote_bytes("\\<48 6 9 /*00*/ f>"), [0x48, 0x69, 0xf0]);
        assert_eq!(unquote_bytes("\"\\<ff>\""), [0xff]);
        assert_eq!(unquote("\"open"), "open");
        assert_eq!(unquote("'"), "");
        assert_eq!(unquote("\"\\"), "\\");
    }

    #[test]
    fn quoting_is_undone_by_unquoting() {
        for text in ["plain", "", "two words", "a\"b\\c$d", "tab\tnl\n", "#1", "a//b"] {
            assert_eq!(unquote(&quote(text)), text);
        }
    }
}
