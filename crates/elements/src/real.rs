//! Real numbers as handlers show them.

/// Significant digits.
const DIGITS: usize = 12;

/// The number with at most twelve significant digits, with an exponent if it has more before the point or four zeros behind
/// it: C's `%.12g`.
pub(crate) fn shown(number: f64) -> String {
    if !number.is_finite() {
        return number.to_string().to_lowercase();
    }
    let scientific = format!("{number:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..DIGITS as i32).contains(&exponent) {
        return trimmed(&format!("{number:.*}", (DIGITS as i32 - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn twelve_digits_are_shown() {
        for (number, text) in [
            (0.0, "0"),
            (-0.5, "-0.5"),
            (10.710460549803642, "10.7104605498"),
            (14_999_798_861.925, "14999798861.9"),
            (4.0 / 7.0, "0.571428571429"),
            (0.0001, "0.0001"),
            (0.000012345, "1.2345e-05"),
            (999_999_999_999.9, "1e+12"),
            (123_456_789_012_345.0, "1.23456789012e+14"),
            (100.0, "100"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(shown(number), text);
        }
    }
}
