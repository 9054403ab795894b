//! The interfaces that programs may redirect packets to, by their places in a map.

use causeway_bpf::{Map, MapKind, Result};
use causeway_fastpath::Outlet;
use causeway_netio::front;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Interfaces that programs send by.
const DEVICES: u32 = 256;

/// Places for interfaces, each of one name, by which one may follow the other. A packet for a place that is empty goes up.
pub struct Slots {
    map: Map,
    /// Where the programs are.
    of: front::Place,
    slots: Mutex<Vec<Slot>>,
}

struct Slot {
    name: String,
    /// Index of the interface that is there; 0 if none is.
    ifindex: u32,
}

impl Slots {
    /// Without interfaces.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new(of: front::Place) -> Result<Slots> {
        let map = match of {
            front::Place::Xdp => Map::new(MapKind::DevMap, "ports", 4, 4, DEVICES)?,
            front::Place::Tcx => Map::new(MapKind::Array, "ports", 4, Outlet::LEN, DEVICES)?,
        };
        Ok(Slots { map, of, slots: Mutex::default() })
    }

    /// The map, for programs.
    pub fn map(&self) -> &Map {
        &self.map
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets may be redirected to the interface of this name. Its place; none if there is no room.
    fn open(&self, name: &str, to: Outlet) -> Option<u32> {
        let mut slots = self.lock();
        let known = slots.iter().position(|slot| slot.name == name);
        let place = known.unwrap_or_else(|| {
            slots.push(Slot { name: name.to_owned(), ifindex: 0 });
            slots.len() - 1
        });
        // Also if it is there: the kernel removes an interface that goes, which may have come back by the same index.
        let opened = match self.of {
            front::Place::Xdp => self.map.insert_u32(place as u32, to.ifindex),
            front::Place::Tcx => self.map.insert(&(place as u32).to_ne_bytes(), &to.to_bytes()),
        };
        let opened = opened.is_ok();
        slots[place].ifindex = if opened { to.ifindex } else { 0 };
        opened.then_some(place as u32)
    }

    /// The same, unless it `is_up` no more when its place is open: then that is closed again.
    pub fn open_while(&self, name: &str, to: Outlet, is_up: impl FnOnce() -> bool) -> Option<u32> {
        let place = self.open(name, to)?;
        if !is_up() {
            self.close(name);
            return None;
        }
        Some(place)
    }

    /// Packets may be redirected no more to these interfaces.
    fn close_those(&self, is_one: impl Fn(&Slot) -> bool) {
        for (place, slot) in self.lock().iter_mut().enumerate().filter(|(_, slot)| slot.ifindex != 0) {
            if is_one(slot) {
                let key = (place as u32).to_ne_bytes();
                // At XDP the kernel may have removed it.
                let _ = match self.of {
                    front::Place::Xdp => self.map.remove(&key).map(drop),
                    front::Place::Tcx => self.map.insert(&key, &Outlet::default().to_bytes()),
                };
                slot.ifindex = 0;
            }
        }
    }

    /// The same of the one with this name.
    pub fn close(&self, name: &str) {
        self.close_those(|slot| slot.name == name);
    }

    /// The same of the one with this index, whatever it is called.
    pub fn close_interface(&self, ifindex: u32) {
        self.close_those(|slot| slot.ifindex == ifindex);
    }

    /// No program sends by any: all places are free.
    pub fn clear(&self) {
        self.close_those(|_| true);
        self.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::ErrorKind;

    /// The loopback device.
    const LOOPBACK: u32 = 1;

    #[test]
    fn places_are_open_while_their_interfaces_are() {
        for of in [front::Place::Xdp, front::Place::Tcx] {
            match Slots::new(of) {
                Ok(slots) => are_open_while_their_interfaces_are(&slots, of),
                Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn are_open_while_their_interfaces_are(slots: &Slots, of: front::Place) {
        let to = Outlet { ifindex: LOOPBACK, longest: 1_514 };
        let is_open = |n: u32| {
            let found = slots.map().get(&n.to_ne_bytes()).expect("a map");
            found.is_some_and(|found| found.iter().any(|&byte| byte != 0))
        };
        let open = || [0, 1].map(is_open);
        // An interface that is made anew has the place of the one before.
        for _ in 0..2 * DEVICES {
            assert_eq!(["a", "b", "a"].map(|name| slots.open(name, to)), [Some(0), Some(1), Some(0)]);
        }
        assert_eq!(open(), [true; 2]);
        slots.close("a");
        assert_eq!(open(), [false, true]);
        slots.close_interface(LOOPBACK);
        assert_eq!(open(), [false; 2]);
        assert_eq!((slots.open("b", to), open()), (Some(1), [false, true]), "it is back");
        // Whoever closes the place comes before it is open, and not again.
        let goes_down = || {
            assert_eq!(open(), [true; 2]);
            false
        };
        assert_eq!((slots.open_while("a", to, goes_down), open()), (None, [false, true]));
        assert_eq!((slots.open_while("a", to, || true), open()), (Some(0), [true; 2]));
        slots.close("a");
        if of == front::Place::Xdp {
            let none = Outlet { ifindex: u32::MAX, ..to };
            assert_eq!(slots.open("a", none), None, "there is no such interface");
        }
        slots.clear();
        assert_eq!((open(), slots.open("c", to)), ([false; 2], Some(0)));
    }
}
