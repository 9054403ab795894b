//! Numbers as scripts read and print them.

use causeway_lang::values;

/// An integer of 64 bits, in any of the language's notations.
pub(super) fn integer(text: &str) -> Option<i64> {
    values::integer(text, i64::MIN.into(), i64::MAX.into()).ok().and_then(|v| v.try_into().ok())
}

/// A floating-point number, as strtod(3) reads them, but for hexadecimal fractions.
pub(in crate::control) fn real(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['+', '-']);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = u128::from_str_radix(hex, 16).ok()? as f64;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    // A number that is too large or too small is none.
    text.parse().ok().filter(|value: &f64| value.is_finite() || digits.starts_with(['i', 'I', 'n', 'N']))
}

/// The number with at most twelve digits, as printf(3) has it for `%.12g`.
pub(in crate::control) fn general(value: f64) -> String {
    const DIGITS: i32 = 12;
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    trimmed(&format!("{value:.*}", (DIGITS - 1 - exponent).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_with_twelve_digits() {
        for (value, text) in [
            (0.0, "0"),
            (3.5, "3.5"),
            (1.0 / 3.0, "0.333333333333"),
            (1e15, "1e+15"),
            (123_456_789_012.0, "123456789012"),
            (1_234_567_890_123.0, "1.23456789012e+12"),
            (-0.00001, "-1e-05"),
            (0.0001, "0.0001"),
            (999_999_999_999.9, "1e+12"),
            (f64::INFINITY, "inf"),
            (-f64::INFINITY, "-inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn numbers_are_read() {
        assert_eq!(
            ["010", "0x10", "-5", "1_000", "5x", ""].map(integer),
            [Some(8), Some(16), Some(-5), Some(1_000), None, None]
        );
        assert_eq!(
            ["1.5", "-1e3", ".5", "0x10", "1e999", "1_0", "x"].map(real),
            [Some(1.5), Some(-1000.0), Some(0.5), Some(16.0), None, None, None]
        );
    }
}
