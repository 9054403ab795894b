//! What a card counts: each frame once, by what became of it.

use causeway_bpf::{Map, MapKind};
use causeway_netio::Result;
use causeway_nic_driver::rules::MAX_NICS;

/// Index of the counter of packets whose TTL was used up.
pub const DROP_TTL: u32 = 0;
/// Index of the counter of wrong header checksums.
pub const DROP_CHECKSUM: u32 = 1;
/// Index of the counter of packets longer than their frame.
pub const DROP_TRUNCATED: u32 = 2;
/// Index of the counter of frames that took the slow path because the output interface was not in the device map;
/// they are counted there too.
pub const NO_PORT: u32 = 3;
/// Index of the first counter of forwarded frames: destination 0, low class.
const FORWARDED: u32 = 4;

/// Index of the counter of frames handed to `destination` (the own number: the slow path) in a class.
pub fn forwarded(destination: u8, high: bool) -> u32 {
    FORWARDED + 2 * u32::from(destination) + u32::from(high)
}

/// The counters of one card, a per-CPU array that its program adds to.
#[derive(Debug)]
pub struct Counters {
    map: Map,
    nic: u8,
    nics: u8,
}

impl Counters {
    /// Zeros for card `nic` of a router of `nics` cards.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new(nic: u8, nics: u8) -> Result<Self> {
        let entries = forwarded(MAX_NICS as u8, false);
        Ok(Self { map: Map::new(MapKind::PerCpuArray, "nic_counters", 4, 8, entries)?, nic, nics })
    }

    /// The map, for the program.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The counter at an index, over all CPUs.
    ///
    /// # Errors
    /// As [`Map::per_cpu_sum`].
    pub fn get(&self, index: u32) -> Result<u64> {
        self.map.per_cpu_sum(index)
    }

    /// All counters by name: first those that the NIC has too, by the names of its registers, then the slow path for
    /// want of a port, and what went to each destination by class.
    ///
    /// # Errors
    /// As [`Map::per_cpu_sum`].
    pub fn read(&self) -> Result<Vec<(String, u64)>> {
        let mut by_class = Vec::new();
        let (mut fast, mut slow) = (0, 0);
        for nic in 0..self.nics {
            let own = nic == self.nic;
            for (high, class) in [(false, "low"), (true, "high")] {
                let count = self.get(forwarded(nic, high))?;
                *(if own { &mut slow } else { &mut fast }) += count;
                let name = if own { format!("rx_host_{class}") } else { format!("rx_nic{nic}_{class}") };
                by_class.push((name, count));
            }
        }
        let [ttl, checksum, truncated] =
            [self.get(DROP_TTL)?, self.get(DROP_CHECKSUM)?, self.get(DROP_TRUNCATED)?];
        let named = [
            ("rx_frames", ttl + checksum + truncated + fast + slow),
            ("drop_ttl", ttl),
            ("drop_checksum", checksum),
            ("drop_truncated", truncated),
            ("rx_fast", fast),
            ("rx_slow", slow),
            ("slow_no_port", self.get(NO_PORT)?),
        ];
        Ok(named.into_iter().map(|(name, n)| (name.to_owned(), n)).chain(by_class).collect())
    }
}
