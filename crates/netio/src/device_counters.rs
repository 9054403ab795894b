//! Errors and drops that a network device counts itself.

use crate::interface::{Interface, name_by_index};
use crate::statistics::Statistic;

/// Columns of `/proc/net/dev`, by their place after the name.
const RECEIVED: [(usize, &str); 3] =
    [(2, "device_rx_error"), (3, "device_rx_dropped"), (4, "device_rx_fifo")];
const TRANSMITTED: [(usize, &str); 3] =
    [(10, "device_tx_error"), (11, "device_tx_dropped"), (12, "device_tx_fifo")];

/// The counters of one device, from zero when the value was made, whatever it is called.
#[derive(Debug)]
pub struct DeviceCounters {
    ifindex: u32,
    before: Vec<u64>,
}

impl DeviceCounters {
    /// Those of an interface of the calling thread's network namespace; there are none while it is not there.
    pub fn new(interface: &Interface) -> DeviceCounters {
        DeviceCounters { ifindex: interface.index, before: now(interface.index) }
    }

    /// Errors and drops in reception.
    pub fn received(&self) -> Vec<Statistic> {
        self.since(&RECEIVED)
    }

    /// Errors and drops in transmission.
    pub fn transmitted(&self) -> Vec<Statistic> {
        self.since(&TRANSMITTED)
    }

    fn since(&self, wanted: &[(usize, &'static str)]) -> Vec<Statistic> {
        let now = now(self.ifindex);
        let value = |at: usize| Some(now.get(at)?.saturating_sub(*self.before.get(at)?));
        wanted.iter().filter_map(|&(at, name)| Some((name, value(at)?))).collect()
    }
}

/// The numbers of the device with that index. The table has names, which change.
fn now(ifindex: u32) -> Vec<u64> {
    let Some(name) = name_by_index(ifindex) else { return Vec::new() };
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    columns(&table, &name)
}

/// The numbers of the line of `name`.
fn columns(table: &str, name: &str) -> Vec<u64> {
    let line = table.lines().find_map(|l| l.trim_start().strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("").split_whitespace().map_while(|v| v.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet;

    #[test]
    fn columns_of_the_right_device() {
        let text = "Inter-| Receive\n face |bytes\n  eth01: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n   eth0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n";
        assert_eq!(columns(text, "eth0"), (0..16).collect::<Vec<u64>>());
        assert!(columns("", "eth0").is_empty());
        assert_eq!(columns("eth0: 1 2 3 x", "eth0"), [1, 2, 3]);
    }

    #[test]
    fn a_device_that_is_not_there_has_no_counters() {
        let none = DeviceCounters { ifindex: u32::MAX >> 1, before: vec![0; 16] };
        assert!(none.received().is_empty() && none.transmitted().is_empty());
    }

    #[test]
    fn a_device_that_is_called_otherwise_has_its_counters() {
        testnet::run(&[("g0", "r0")], || {
            let counters = DeviceCounters::new(&Interface::open("r0").expect("r0"));
            testnet::ip("ip link set dev r0 down");
            testnet::ip("ip link set dev r0 name other");
            assert!(!counters.transmitted().is_empty());
            // Another one of the old name is nothing to them.
            testnet::ip("ip link add r0 type veth peer name g1");
            testnet::ip("ip link del dev other");
            assert!(counters.transmitted().is_empty());
        });
    }
}
