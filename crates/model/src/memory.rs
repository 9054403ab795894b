//! Memory: what a processor waits for a line, and what cards and processor take from each other.

use crate::event::{SECOND, Time};

/// Memory that processor and cards share.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes_per_s: u64,
    latency_ps: Time,
    free_ps: Time,
    /// Picoseconds for which it moved data.
    pub busy_ps: Time,
}

impl Memory {
    /// Memory that moves so many bytes a second, the first of them after `latency_ps`.
    pub fn new(bytes_per_s: u64, latency_ps: Time) -> Memory {
        Memory { bytes_per_s: bytes_per_s.max(1), latency_ps, free_ps: 0, busy_ps: 0 }
    }

    /// Bytes are read or written; says how long whoever waits for them waits.
    pub fn access(&mut self, now_ps: Time, bytes: u32) -> Time {
        let move_ps = (u128::from(bytes) * u128::from(SECOND) / u128::from(self.bytes_per_s)) as Time;
        let begins_ps = self.free_ps.max(now_ps);
        self.free_ps = begins_ps + move_ps;
        self.busy_ps += move_ps;
        begins_ps - now_ps + self.latency_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_while_data_move_waits_for_them() {
        // 64 bytes take 20 ns.
        let mut memory = Memory::new(3_200_000_000, 100_000);
        assert_eq!(memory.access(0, 64), 100_000);
        assert_eq!(memory.access(5_000, 64), 15_000 + 100_000);
        assert_eq!(memory.access(50_000, 64), 100_000, "it is free again");
        assert_eq!(memory.busy_ps, 60_000);
    }
}
