//! Values in configuration strings that can be read without knowing the configuration around them.
//!
//! Every function takes one argument's text and must consume all of it. The errors' texts are Click's.

use std::fmt;

/// Why a text is not a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It does not have the form.
    Parse,
    /// It is not a number.
    InvalidNumber,
    /// It is a number, but beyond this bound.
    OutOfRange(String),
    /// It is a number with a unit or a fraction, but too large.
    TooLarge,
    /// It is not an address of this kind, such as `IP address`.
    InvalidAddress(&'static str),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse => write!(f, "parse error"),
            Self::InvalidNumber => write!(f, "invalid number"),
            Self::TooLarge => write!(f, "out of range"),
            Self::OutOfRange(bound) => write!(f, "out of range, bound {bound}"),
            Self::InvalidAddress(kind) => write!(f, "invalid {kind}"),
        }
    }
}

impl std::error::Error for ValueError {}

/// A boolean: `0 1 true false t f yes no y n`, in lower case.
///
/// # Errors
/// [`ValueError::Parse`]: `text` is none of these.
pub fn boolean(text: &str) -> Result<bool, ValueError> {
    match text {
        "1" | "true" | "t" | "yes" | "y" => Ok(true),
        "0" | "false" | "f" | "no" | "n" => Ok(false),
        _ => Err(ValueError::Parse),
    }
}

/// An integer from `low` to `high`: optional sign, then decimal, `0x` hexadecimal, `0b` binary or leading-zero
/// octal digits, with single underscores allowed between digits.
///
/// # Errors
/// [`ValueError::InvalidNumber`] or [`ValueError::OutOfRange`].
pub fn integer(text: &str, low: i128, high: i128) -> Result<i128, ValueError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, digits),
        _ => (10, digits),
    };
    let digits = without_underscores(digits, radix).ok_or(ValueError::InvalidNumber)?;
    // What takes no sign takes none at all.
    if negative && low == 0 {
        return Err(ValueError::InvalidNumber);
    }
    // More digits than an i128 holds are out of every range asked for.
    let magnitude = i128::from_str_radix(&digits, radix).unwrap_or(i128::MAX);
    let value = if negative { -magnitude } else { magnitude };
    match value {
        v if v < low => Err(ValueError::OutOfRange(low.to_string())),
        v if v > high => Err(ValueError::OutOfRange(high.to_string())),
        v => Ok(v),
    }
}

/// The digits alone; `None` if there are none, or others, or underscores elsewhere than between two digits.
fn without_underscores(text: &str, radix: u32) -> Option<String> {
    let legal = text.split('_').all(|part| !part.is_empty() && part.chars().all(|c| c.is_digit(radix)));
    legal.then(|| text.replace('_', ""))
}

/// An unsigned 32-bit integer.
///
/// # Errors
/// As of [`integer`].
pub fn unsigned_32(text: &str) -> Result<u32, ValueError> {
    integer(text, 0, u32::MAX.into()).map(|v| v as u32)
}

/// A signed 32-bit integer.
///
/// # Errors
/// As of [`integer`].
pub fn signed_32(text: &str) -> Result<i32, ValueError> {
    integer(text, i32::MIN.into(), i32::MAX.into()).map(|v| v as i32)
}

/// An unsigned 64-bit integer.
///
/// # Errors
/// As of [`integer`].
pub fn unsigned_64(text: &str) -> Result<u64, ValueError> {
    integer(text, 0, u64::MAX.into()).map(|v| v as u64)
}

/// A decimal number with optional fraction and exponent, times `scale`, rounded to the nearest integer (halves
/// away from zero). Exact: no binary fraction is involved.
///
/// # Errors
/// [`ValueError::InvalidNumber`] or [`ValueError::TooLarge`].
pub fn scaled(text: &str, scale: u64) -> Result<i128, ValueError> {
    let (mantissa, exponent) = decimal(text)?;
    let product = mantissa.checked_mul(i128::from(scale)).ok_or(ValueError::TooLarge)?;
    if product == 0 {
        return Ok(0);
    }
    let power = u32::try_from(exponent.unsigned_abs()).ok().and_then(|e| 10i128.checked_pow(e));
    match (exponent >= 0, power) {
        (true, Some(power)) => product.checked_mul(power).ok_or(ValueError::TooLarge),
        (true, None) => Err(ValueError::TooLarge),
        (false, Some(power)) => {
            let half = power / 2 * product.signum();
            Ok(product.checked_add(half).ok_or(ValueError::TooLarge)? / power)
        }
        (false, None) => Ok(0),
    }
}

/// A real number.
///
/// # Errors
/// [`ValueError::InvalidNumber`].
pub fn real(text: &str) -> Result<f64, ValueError> {
    decimal(text).or_else(|e| if e == ValueError::TooLarge { Ok((0, 0)) } else { Err(e) })?;
    text.replace('_', "").parse().map_err(|_| ValueError::InvalidNumber)
}

/// Mantissa and decimal exponent of a decimal number.
fn decimal(text: &str) -> Result<(i128, i64), ValueError> {
    let invalid = ValueError::InvalidNumber;
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let digits = without_underscores(digits, 10).ok_or(invalid.clone())?;
            // An exponent of ten digits means zero or infinity anyway.
            let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(10_000_000_000);
            (number, if exponent.starts_with('-') { -size } else { size })
        }
        None => (rest, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let part = |text: &str| match text {
        "" => Some(String::new()),
        _ => without_underscores(text, 10),
    };
    let (Some(whole), Some(fraction)) = (part(whole), part(fraction)) else { return Err(invalid) };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid);
    }
    // Thirty digits are far below what any unit resolves.
    let fraction = &fraction[..fraction.len().min(30)];
    let mantissa: i128 = format!("{whole}{fraction}").parse().map_err(|_| ValueError::TooLarge)?;
    let signed = if negative { -mantissa } else { mantissa };
    Ok((signed, exponent - fraction.len() as i64))
}

/// Number and unit of a text such as `1.5 ms`: the unit begins at the last character that a number cannot hold.
fn split_unit(text: &str) -> (&str, &str) {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == '/';
    let unit_length = text.chars().rev().take_while(|&c| is_unit(c)).count();
    let (number, unit) = text.split_at(text.len() - unit_length);
    (number.trim_end(), unit)
}

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// A non-negative time in nanoseconds: a number and optionally `s sec`, with prefix `m u n`, or `m min h hr d day`.
/// Without a unit the number counts units of `default_unit_ns`.
///
/// # Errors
/// [`ValueError::Parse`]: no number, a negative one or no unit; [`ValueError::TooLarge`].
pub fn time_ns(text: &str, default_unit_ns: u64) -> Result<u64, ValueError> {
    let (number, unit) = split_unit(text);
    let unit_ns = match unit {
        "" => default_unit_ns,
        "s" | "sec" => SECOND_NS,
        "ms" | "msec" => MILLISECOND_NS,
        "us" | "usec" => 1_000,
        "ns" | "nsec" => 1,
        "m" | "min" => 60 * SECOND_NS,
        "h" | "hr" => 3_600 * SECOND_NS,
        "d" | "day" => 86_400 * SECOND_NS,
        _ => return Err(ValueError::Parse),
    };
    unsigned_scaled(number, unit_ns)
}

/// As [`scaled`], of what is never negative and has a unit.
fn unsigned_scaled(number: &str, scale: u64) -> Result<u64, ValueError> {
    match scaled(number, scale) {
        Ok(value) if value < 0 => Err(ValueError::Parse),
        Ok(value) => u64::try_from(value).map_err(|_| ValueError::TooLarge),
        Err(ValueError::InvalidNumber) => Err(ValueError::Parse),
        Err(other) => Err(other),
    }
}

/// A bandwidth in bytes a second: a number and optionally a unit, `bps b/s baud` for bits or `Bps B/s` for bytes,
/// with prefix `k K M G` for powers of a thousand. Without a unit the number counts bytes a second.
///
/// # Errors
/// [`ValueError::Parse`]: no number, a negative one or no unit; [`ValueError::TooLarge`].
pub fn bandwidth_bytes_per_s(text: &str) -> Result<u64, ValueError> {
    let (number, unit) = split_unit(text);
    let (factor, base) = match unit.as_bytes().first() {
        Some(b'k' | b'K') => (1_000, &unit[1..]),
        Some(b'M') => (1_000_000, &unit[1..]),
        Some(b'G') => (1_000_000_000, &unit[1..]),
        _ => (1, unit),
    };
    let bits = match base {
        "" if factor == 1 => false,
        "bps" | "b/s" | "baud" => true,
        "Bps" | "B/s" => false,
        _ => return Err(ValueError::Parse),
    };
    let value = unsigned_scaled(number, factor)?;
    Ok(if bits { value / 8 } else { value })
}

/// A string: one word, quotes removed; blanks and commas must be quoted.
///
/// # Errors
/// [`ValueError::Parse`]: several words.
pub fn string(text: &str) -> Result<String, ValueError> {
    string_bytes(text).map(|b| String::from_utf8_lossy(&b).into_owned())
}

/// As [`string`], to bytes, which `\<…>` may set to anything.
///
/// # Errors
/// [`ValueError::Parse`]: several words.
pub fn string_bytes(text: &str) -> Result<Vec<u8>, ValueError> {
    match crate::args::split_words(text).as_slice() {
        [] => Ok(vec![]),
        [word] => Ok(crate::args::unquote_bytes(word)),
        _ => Err(ValueError::Parse),
    }
}

/// A word: as a string, but not empty and without blanks even in quotes.
///
/// # Errors
/// [`ValueError::Parse`]: no word, or several.
pub fn word(text: &str) -> Result<String, ValueError> {
    let value = string(text)?;
    if value.is_empty() || value.contains(char::is_whitespace) { Err(ValueError::Parse) } else { Ok(value) }
}

/// A file name: a string in which a leading `~/` stands for `home` and `//` for `/`. `-` is left to the element.
///
/// # Errors
/// [`ValueError::Parse`]: no word, or several.
pub fn filename(text: &str, home: Option<&str>) -> Result<String, ValueError> {
    let mut name = string(text)?;
    if name.is_empty() {
        return Err(ValueError::Parse);
    }
    if let (Some(home), Some(rest)) = (home, name.strip_prefix('~'))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        name = format!("{home}{rest}");
    }
    let mut previous = ' ';
    name.retain(|c| {
        let repeated = c == '/' && previous == '/';
        previous = c;
        !repeated
    });
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: fmt::Debug>(result: Result<T, ValueError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn integers() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("+12", 12),
            ("010", 8),
            ("0x1F", 31),
            ("0b101", 5),
            ("1_000", 1000),
            ("-2147483648", i32::MIN),
        ] {
            assert_eq!(signed_32(text), Ok(value), "{text}");
        }
        for text in ["", "-", "08", "0x", "1__0", "_1", "1_", "1.0", "12a", " 1", "0b2"] {
            assert_eq!(message(signed_32(text)), "invalid number", "{text}");
        }
        assert_eq!(message(integer("256", 0, 255)), "out of range, bound 255");
        assert_eq!(message(integer("-1", 0, 255)), "invalid number");
        assert_eq!(message(unsigned_64(&"9".repeat(50))), "out of range, bound 18446744073709551615");
    }

    #[test]
    fn booleans_are_lower_case() {
        assert_eq!(boolean("yes"), Ok(true));
        assert_eq!(boolean("f"), Ok(false));
        assert_eq!(message(boolean("True")), "parse error");
    }

    #[test]
    fn times() {
        for (text, ns) in [
            ("1", SECOND_NS),
            ("1.5s", 1_500_000_000),
            ("20 ms", 20_000_000),
            ("3usec", 3_000),
            ("7ns", 7),
            ("2m", 120 * SECOND_NS),
            ("1 hr", 3_600 * SECOND_NS),
            ("1e-9", 1),
            ("0.4999999996", 500_000_000),
            (".5", 500_000_000),
            ("1_0s", 10 * SECOND_NS),
        ] {
            assert_eq!(time_ns(text, SECOND_NS), Ok(ns), "{text}");
        }
        assert_eq!(time_ns("5", MILLISECOND_NS), Ok(5_000_000));
        for text in ["", "s", "1 x", "1ss", "1e", ".", "--1"] {
            assert_eq!(message(time_ns(text, 1)), "parse error", "{text}");
        }
        assert_eq!(message(time_ns("1e30", SECOND_NS)), "out of range");
        assert_eq!(time_ns("-1", SECOND_NS), Err(ValueError::Parse));
        assert_eq!(time_ns("1e-400", SECOND_NS), Ok(0));
    }

    #[test]
    fn bandwidths() {
        for (text, rate) in [
            ("1000", 1000),
            ("8kbps", 1000),
            ("1 Mb/s", 125_000),
            ("100GB/s", 100_000_000_000),
            ("9600baud", 1200),
            ("2KBps", 2000),
        ] {
            assert_eq!(bandwidth_bytes_per_s(text), Ok(rate), "{text}");
        }
        assert_eq!(message(bandwidth_bytes_per_s("10M")), "parse error");
        assert_eq!(message(bandwidth_bytes_per_s("-1")), "parse error");
    }

    #[test]
    fn reals() {
        assert_eq!(real("-1_0.25e1"), Ok(-102.5));
        assert_eq!(message(real("inf")), "invalid number");
        assert_eq!(message(real("1.2.3")), "invalid number");
    }

    #[test]
    fn strings_and_file_names() {
        assert_eq!(string("a\"b c\"d").as_deref(), Ok("ab cd"));
        assert_eq!(message(string("a b")), "parse error");
        assert_eq!(message(word("'a b'")), "parse error");
        assert_eq!(filename("\"~/a//b\"", Some("/home/x")).as_deref(), Ok("/home/x/a/b"));
        assert_eq!(filename("-", None).as_deref(), Ok("-"));
        assert_eq!(filename("~user/x", Some("/h")).as_deref(), Ok("~user/x"));
    }
}
