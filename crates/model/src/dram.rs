//! Memory of today: what DDR4 and DDR5 move, of what their channels could.
//!
//! A channel is 64 bits wide, in DDR5 as two halves (JESD79-4 and JESD79-5). Refreshes take the memory away for a while at
//! regular intervals; what changes of direction and of rows take beside them is a value of the machine's file.

use crate::event::{NANOSECOND, Time};
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Bytes that a channel moves at a time.
const CHANNEL: u64 = 8;

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standard {
    /// JESD79-4.
    Ddr4,
    /// JESD79-5.
    Ddr5,
}

impl Standard {
    /// Millions of transfers a second that there are.
    pub fn transfers(self) -> RangeInclusive<u64> {
        match self {
            Standard::Ddr4 => 1_600..=3_200,
            Standard::Ddr5 => 3_200..=8_800,
        }
    }

    /// How long a refresh takes, and from one to the next, at normal temperatures: chips of 8 Gbit (JESD79-4, tables of tRFC1
    /// and tREFI) and of 16 Gbit (JESD79-5, the same).
    fn refresh_ps(self) -> (Time, Time) {
        match self {
            Standard::Ddr4 => (350 * NANOSECOND, 7_800 * NANOSECOND),
            Standard::Ddr5 => (295 * NANOSECOND, 3_900 * NANOSECOND),
        }
    }

    /// Bytes a second of so many channels, of which `usable` thousandths are left by changes of direction and of rows.
    pub fn bytes_per_s(self, transfers: u64, channels: u64, usable: u64) -> u64 {
        let (refresh, interval) = self.refresh_ps();
        let raw = transfers * 1_000_000 * CHANNEL * channels;
        (u128::from(raw) * u128::from(interval - refresh) / u128::from(interval) * u128::from(usable) / 1_000)
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_channels_move_is_what_refreshes_leave() {
        // 25.6 GB/s a channel, of which 350 of 7 800 ns are refreshes.
        assert_eq!(Standard::Ddr4.bytes_per_s(3_200, 1, 1_000) / 1_000_000, 24_451);
        assert_eq!(Standard::Ddr4.bytes_per_s(3_200, 2, 500) / 1_000_000, 24_451);
        // 38.4 GB/s, of which 295 of 3 900 ns are.
        assert_eq!(Standard::Ddr5.bytes_per_s(4_800, 8, 1_000) / 1_000_000, 283_963);
        assert!(!Standard::Ddr4.transfers().contains(&4_800) && Standard::Ddr5.transfers().contains(&4_800));
    }
}
