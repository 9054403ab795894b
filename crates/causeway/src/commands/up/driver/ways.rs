//! The interfaces that the programs may redirect packets to.

use causeway_bpf::{Map, MapKind, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Interfaces by number of the port. A packet whose next hop is behind a port that is not there goes up, or at tcx to the
/// kernel.
pub struct Ways {
    /// For frames.
    frames: Map,
    /// For packets of the stack; 0 where there is none.
    packets: Map,
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
    /// Whether frames may leave by it: it is in the map.
    open: bool,
}

impl Ways {
    /// For so many ports, without interfaces.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new(ports: usize) -> Result<Ways> {
        let interfaces = |kind| Map::new(kind, "ports", 4, 4, ports.max(1) as u32);
        let (frames, packets) = (interfaces(MapKind::DevMap)?, interfaces(MapKind::Array)?);
        Ok(Ways { frames, packets, ways: Mutex::new(vec![Way::default(); ports]) })
    }

    /// Where frames may be redirected to, for the programs at XDP: interfaces that take them.
    pub fn frames(&self) -> &Map {
        &self.frames
    }

    /// Where packets may be, for those at tcx: any interface takes them.
    pub fn packets(&self) -> &Map {
        &self.packets
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
        // It is said a hundred times a second.
        if self.lock().get(number).is_some_and(|way| way.held != held) {
            self.change(number, |way| way.held = held);
        }
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut Way)) {
        let mut ways = self.lock();
        let Some(way) = ways.get_mut(number) else { return };
        change(way);
        let packets = if way.held { 0 } else { way.ifindex };
        if let Err(error) = self.packets.insert_u32(number as u32, packets) {
            log::warn!(
                "interface {}: whether packets at tcx may leave by it is as before: {error}",
                way.ifindex
            );
        }
        match way.takes && !way.held {
            // Also if it is there: the kernel removes an interface that goes, which may have come back by the same index. If it
            // fails it is tried again by the next change; the graph forwards meanwhile.
            true => way.open = self.frames.insert_u32(number as u32, way.ifindex).is_ok(),
            false if way.open => {
                let _ = self.frames.remove(&(number as u32).to_ne_bytes());
                way.open = false;
            }
            false => {}
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
        let open =
            || [0u32, 1].map(|n| ways.frames().get(&n.to_ne_bytes()).is_ok_and(|found| found.is_some()));
        let packets = || ways.packets().get(&1u32.to_ne_bytes()).expect("an array").expect("an entry");
        ways.set_interface(1, LOOPBACK);
        assert_eq!((open(), ways.interfaces()), ([false; 2], vec![0, LOOPBACK]));
        assert_eq!(packets(), LOOPBACK.to_ne_bytes(), "packets of the stack it takes");
        ways.set_takes(1, true);
        assert_eq!(open(), [false, true]);
        ways.hold(1, true);
        ways.set_takes(1, true);
        assert_eq!(open(), [false; 2], "held");
        assert_eq!(packets(), [0; 4], "held");
        ways.hold(1, false);
        assert_eq!(open(), [false, true]);
        ways.set_takes(1, false);
        ways.hold(1, false);
        assert_eq!(open(), [false; 2], "it takes none");
        ways.set_takes(1, true);
        // As the kernel does with an interface that goes.
        ways.frames().remove(&1u32.to_ne_bytes()).expect("there");
        assert_eq!(open(), [false; 2]);
        ways.set_takes(1, true);
        assert_eq!(open(), [false, true], "it has come back");
        ways.set_interface(1, 0);
        assert_eq!(open(), [false; 2], "it is gone");
        assert_eq!(packets(), [0; 4], "it is gone");
    }
}
