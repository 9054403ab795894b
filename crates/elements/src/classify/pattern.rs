//! Classifier's patterns: clauses `offset/hexvalue[%mask]`, all of which must hold.

use super::expr::{Base, Expr};
use causeway_engine::Error;

/// Offsets from this on are not compiled.
const OFFSET_END: usize = 32_768;

/// Reads one pattern: `-`, or clauses separated by blanks, each with `!` in front for its negation. Without clauses it
/// matches everything.
pub(crate) fn parse(pattern: &str) -> Result<Expr, Error> {
    if pattern == "-" {
        return Ok(Expr::Const(true));
    }
    let spaced = pattern.replace('!', " ! ");
    let mut clauses = Vec::new();
    let mut negate = false;
    for word in spaced.split_whitespace() {
        if word == "!" {
            negate = !negate;
            continue;
        }
        let clause = clause(word)?;
        clauses.push(if std::mem::take(&mut negate) { clause.not() } else { clause });
    }
    if negate { Err(Error::new(NO_DIGIT)) } else { Ok(Expr::And(clauses)) }
}

const NO_DIGIT: &str = "expected a digit";

/// One clause; the errors' texts are Click's.
fn clause(word: &str) -> Result<Expr, Error> {
    let (offset, rest) = run(word, |c| c.is_ascii_digit());
    if offset.is_empty() {
        return Err(Error::new(NO_DIGIT));
    }
    let rest = rest.strip_prefix('/').ok_or("expected '/'")?;
    let digit = |c: char| c.is_ascii_hexdigit() || c == '?';
    let (value, rest) = run(rest, digit);
    let (mask, rest) = match rest.strip_prefix('%') {
        Some(rest) => (Some(run(rest, digit).0), run(rest, digit).1),
        None => (None, rest),
    };
    let of_value = match value.len() {
        0 | 1 => Some("value has less than 2 hex digits"),
        n if n % 2 == 1 => Some("value has odd number of hex digits"),
        _ => None,
    };
    let of_mask = mask.and_then(|mask| match mask.len() {
        n if n < value.len() => Some("mask has too few hex digits"),
        n if n > value.len() => Some("mask has too many hex digits"),
        _ => None,
    });
    let of_rest = (!rest.is_empty()).then_some(NO_DIGIT);
    let errors: Vec<_> = [of_value, of_mask, of_rest].into_iter().flatten().collect();
    // A value that is cut short is told of by itself.
    match (of_value, errors.as_slice()) {
        (_, []) => {}
        (Some(_), [_, _, ..]) if !rest.is_empty() => return Err(Error::new(NO_DIGIT)),
        _ => return Err(Error::several(errors)),
    }
    let offset = offset.parse::<usize>().ok().filter(|&offset| offset < OFFSET_END);
    let offset = offset.ok_or_else(|| Error::new(format!("offset must be below {OFFSET_END}")))? as u16;
    let (value, wild) = hex(value);
    let mask = mask.map_or_else(|| wild.clone(), |mask| hex(mask).0);
    let mask: Vec<u8> = mask.iter().zip(&wild).map(|(mask, wild)| mask & wild).collect();
    Ok(Expr::bytes(Base::Data, offset, &value, &mask))
}

/// As many characters at the beginning as are `wanted`, and what follows.
fn run(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// The bytes of hexadecimal `text`, and ones under all digits that are not `?`, which is 0.
fn hex(text: &str) -> (Vec<u8>, Vec<u8>) {
    let digit = |b: u8| (b as char).to_digit(16).map_or((0, 0), |d| (d as u8, 0xf));
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| {
        let [(high, high_mask), (low, low_mask)] = [digit(pair[0]), digit(pair[1])];
        (high << 4 | low, high_mask << 4 | low_mask)
    });
    pairs.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, data: &[u8]) -> bool {
        parse(pattern).unwrap().holds(&[Some(data), None, None, None])
    }

    #[test]
    fn clauses_compare_bytes() {
        let data = [0x45, 0x00, 0x08, 0x06, 0xab];
        for (pattern, expected) in [
            ("-", true),
            ("0/4f%4?", true),
            ("", true),
            ("0/45", true),
            ("0/4?", true),
            ("0/?6", false),
            ("2/0806ab", true),
            ("2/0806 0/46", false),
            ("2/0806 !0/46", true),
            ("! 2/0806", false),
            ("!!2/0806", true),
            ("0/bf%40", false),
            ("0/4f%40", true),
            ("3/?f?b%0f0f", false),
            ("3/?6?b%0f0f", true),
            ("4/abcd", false),
            ("4/ab??", true),
            ("!4/abcd", true),
            ("9/00", false),
        ] {
            assert_eq!(holds(pattern, &data), expected, "{pattern}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for pattern in [
            "!",
            "12",
            "x/00",
            "12/",
            "12/0",
            "12/0g",
            "12/00%",
            "12/00%ffff",
            "40000/00",
            "-1/00",
            "12/00 -",
            "!-",
            "12/000",
        ] {
            assert!(parse(pattern).is_err(), "{pattern}");
        }
    }
}
