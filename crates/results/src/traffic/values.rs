//! A field that varies from frame to frame.

use super::random;
use serde::{Deserialize, Serialize};

/// The values that a field takes, one a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Values {
    /// Always the same.
    Fixed(u32),
    /// One after the other, then from the first again.
    Counted {
        /// The first value.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// Pseudorandom, all alike (RFC 4814 §4).
    Random {
        /// The smallest value.
        first: u32,
        /// How many there are.
        count: u32,
    },
}

impl Values {
    /// The value of the `n`-th frame, in the series of random numbers `series`.
    #[inline]
    pub fn nth(self, series: u64, n: u64) -> u32 {
        match self {
            Values::Fixed(value) => value,
            Values::Counted { first, count } => first + (n % u64::from(count.max(1))) as u32,
            Values::Random { first, count } => {
                // The upper half of the product is below `count`, and all alike but for one part in 2^64 / count.
                first + ((u128::from(random::nth(series, n)) * u128::from(count)) >> 64) as u32
            }
        }
    }

    /// The smallest value and the largest.
    pub fn range(self) -> (u32, u32) {
        match self {
            Values::Fixed(value) => (value, value),
            Values::Counted { first, count } | Values::Random { first, count } => {
                (first, first.saturating_add(count.saturating_sub(1)))
            }
        }
    }

    pub(super) fn check(self, most: u32) -> Result<(), String> {
        let (first, count) = match self {
            Values::Fixed(value) => (value, 1),
            Values::Counted { first, count } | Values::Random { first, count } => (first, count),
        };
        match first.checked_add(count.saturating_sub(1)) {
            _ if count == 0 => Err("there are no values; count must be at least 1".to_owned()),
            Some(last) if last <= most => Ok(()),
            _ => Err(format!("{count} values from {first} on are more than there are up to {most}")),
        }
    }
}
