//! Classifier's patterns: clauses `offset/hexvalue[%mask]`, all of which must hold.

use super::expr::{Base, Expr};

/// Reads one pattern: `-`, or clauses separated by blanks, each with `!` in front for its negation. Without clauses it
/// matches everything.
pub(crate) fn parse(pattern: &str) -> Result<Expr, String> {
    let spaced = pattern.replace('!', " ! ");
    let mut clauses = Vec::new();
    let mut negate = false;
    for word in spaced.split_whitespace() {
        if word == "!" {
            negate = !negate;
            continue;
        }
        let clause = if word == "-" { Expr::Const(true) } else { self::clause(word)? };
        clauses.push(if std::mem::take(&mut negate) { clause.not() } else { clause });
    }
    if negate { Err("'!' must be followed by a clause".to_owned()) } else { Ok(Expr::And(clauses)) }
}

fn clause(word: &str) -> Result<Expr, String> {
    let bad = |what: &str| format!("'{word}': {what}");
    let (offset, bytes) = word.split_once('/').ok_or_else(|| bad("expected 'offset/hexvalue[%mask]'"))?;
    let offset = match offset.parse::<u16>() {
        Ok(offset) if offset < 32_768 => offset,
        _ => return Err(bad("offset must be a number from 0 to 32767")),
    };
    let (value, mask) = bytes.split_once('%').map_or((bytes, None), |(v, m)| (v, Some(m)));
    let (value, wild) = hex(value).ok_or_else(|| bad("value must be hexadecimal digits, two a byte"))?;
    let Some(mask) = mask else { return Ok(Expr::bytes(Base::Data, offset, &value, &wild)) };
    let (mut mask, digits) = hex(mask).ok_or_else(|| bad("mask must be hexadecimal digits, two a byte"))?;
    if digits.iter().any(|&d| d != 0xff) {
        return Err(bad("mask must be hexadecimal digits, two a byte"));
    }
    if mask.len() != value.len() {
        return Err(bad("mask must be as long as the value"));
    }
    mask.iter_mut().zip(&wild).for_each(|(m, w)| *m &= w);
    Ok(Expr::bytes(Base::Data, offset, &value, &mask))
}

/// The bytes of hexadecimal `text`, and ones under all digits that are not `?`.
fn hex(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |b: u8| match b {
        b'?' => Some((0, 0)),
        _ => (b as char).to_digit(16).map(|d| (d as u8, 0xf)),
    };
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| {
        let [(high, high_mask), (low, low_mask)] = [digit(pair[0])?, digit(pair[1])?];
        Some((high << 4 | low, high_mask << 4 | low_mask))
    });
    pairs.collect::<Option<Vec<_>>>().map(|pairs| pairs.into_iter().unzip())
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
        for pattern in
            ["!", "12", "x/00", "12/", "12/0", "12/0g", "12/00%", "12/00%0?", "12/00%ffff", "40000/00"]
        {
            assert!(parse(pattern).is_err(), "{pattern}");
        }
    }
}
