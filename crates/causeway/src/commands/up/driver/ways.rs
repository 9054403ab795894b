//! The interfaces that the programs may redirect packets to.

use causeway_bpf::{Map, MapKind, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A map of interfaces by number of the port. A packet whose next hop is behind a port that is not there goes up.
pub struct Ways {
    interfaces: Map,
    ways: Mutex<Vec<Way>>,
}

/// A way out.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Index of the interface; 0 where there is none.
    ifindex: u32,
    /// Whether it takes redirected packets.
    takes: bool,
    /// Whether all that leaves by it is to go through the graph.
    held: bool,
    /// Whether it is in the map.
    open: bool,
}

impl Ways {
    /// For so many ports, without interfaces.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new(ports: usize) -> Result<Ways> {
        let interfaces = Map::new(MapKind::DevMap, "ports", 4, 4, ports.max(1) as u32)?;
        Ok(Ways { interfaces, ways: Mutex::new(vec![Way::default(); ports]) })
    }

    /// The map, for the programs.
    pub fn map(&self) -> &Map {
        &self.interfaces
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Way>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ports' interfaces by number; 0 where there is none.
    pub fn interfaces(&self) -> Vec<u32> {
        self.lock().iter().map(|way| way.ifindex).collect()
    }

    /// A port has another interface, of which is not known yet what it takes; 0 for none.
    pub fn set_interface(&self, number: usize, ifindex: u32) {
        self.change(number, |way| way.takes = false);
        self.change(number, |way| way.ifindex = ifindex);
    }

    /// Whether a port's interface takes redirected packets.
    pub fn set_takes(&self, number: usize, takes: bool) {
        self.change(number, |way| way.takes = takes);
    }

    /// Whether all that leaves by a port is to go through the graph.
    pub fn hold(&self, number: usize, held: bool) {
        self.change(number, |way| way.held = held);
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut Way)) {
        let mut ways = self.lock();
        let Some(way) = ways.get_mut(number) else { return };
        change(way);
        let open = way.takes && !way.held;
        if open == way.open {
            return;
        }
        match open {
            // If it fails it is tried again by the next change; the graph forwards meanwhile.
            true => way.open = self.interfaces.insert_u32(number as u32, way.ifindex).is_ok(),
            false => {
                // The kernel removes those that are gone by itself.
                let _ = self.interfaces.remove(&(number as u32).to_ne_bytes());
                way.open = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::ErrorKind;

    /// The loopback device.
    const LOOPBACK: u32 = 1;

    #[test]
    fn a_way_is_open_while_its_interface_takes_packets_and_nobody_holds_it() {
        let ways = match Ways::new(2) {
            Ok(ways) => ways,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let open = || [0u32, 1].map(|n| ways.map().get(&n.to_ne_bytes()).is_ok_and(|found| found.is_some()));
        ways.set_interface(1, LOOPBACK);
        assert_eq!((open(), ways.interfaces()), ([false; 2], vec![0, LOOPBACK]));
        ways.set_takes(1, true);
        assert_eq!(open(), [false, true]);
        ways.hold(1, true);
        ways.set_takes(1, true);
        assert_eq!(open(), [false; 2], "held");
        ways.hold(1, false);
        assert_eq!(open(), [false, true]);
        ways.set_takes(1, false);
        ways.hold(1, false);
        assert_eq!(open(), [false; 2], "it takes none");
        ways.set_takes(1, true);
        ways.set_interface(1, 0);
        assert_eq!(open(), [false; 2], "it is gone");
    }
}
