//! Ports whose frames have no room for luggage.

use super::port::PortRecord;
use super::{Front, Place, Reason, Take};
use crate::Result;

impl Front {
    /// Whether a port at XDP that takes everything has left frames to the kernel because they have no room for luggage: its driver
    /// makes none, and a graph that owns the interface misses them all.
    pub fn lacks_room(&self, ifindex: u32) -> bool {
        let claims = self.claims();
        let Some(port) = claims.get(&ifindex) else { return false };
        // What cannot be read is looked at again.
        let left = self.counters.per_cpu_sum(port.first_counter + Reason::NoRoom as u32).unwrap_or(0);
        misses_frames(port, left)
    }

    /// From now on frames of an interface are taken without luggage, now and whenever it is a port at XDP that takes everything. Who
    /// receives them must look for none, and there must be no program of a graph ([`Front::set_graph`]).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if there is no room for graphs; else what bpf(2) says.
    pub fn set_bare(&self, ifindex: u32) -> Result<()> {
        let graphs = self.graphs(Place::Xdp)?;
        let mut claims = self.claims();
        graphs.known().bare.insert(ifindex);
        if let Some(record) = claims.get_mut(&ifindex).filter(|record| record.place == Place::Xdp) {
            let changed = PortRecord { bare: true, ..*record };
            self.ports.insert(ifindex, &changed)?;
            *record = changed;
        }
        Ok(())
    }

    /// Whether frames of an interface are taken without luggage ([`Front::set_bare`]).
    pub fn is_bare(&self, ifindex: u32) -> bool {
        self.at_xdp.graphs.as_ref().is_some_and(|graphs| graphs.known().bare.contains(&ifindex))
    }
}

/// Whether a port that has left so many frames to the kernel for want of room is to take them without luggage.
fn misses_frames(port: &PortRecord, left: u64) -> bool {
    // What is not taken in transit the kernel forwards.
    port.place == Place::Xdp && port.rules.take == Take::All && !port.bare && left > 0
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;

    #[test]
    fn graphs_that_own_their_interface_miss_what_the_kernel_has_for_want_of_room() {
        let port = |take, bare| PortRecord {
            first_socket: 0,
            queues: 1,
            first_counter: 0,
            longest: 1_500,
            rules: Rules { mac: Some([2; 6]), take, partial_checksums: false },
            graph: 0,
            place: Place::Xdp,
            bare,
            above: 0,
        };
        let all = port(Take::All, false);
        assert!(misses_frames(&all, 1));
        assert!(!misses_frames(&all, 0), "there is room, as far as anybody knows");
        assert!(!misses_frames(&port(Take::TRANSIT, false), 1), "the kernel forwards them");
        assert!(!misses_frames(&port(Take::All, true), 1), "it takes them by now");
        assert!(!misses_frames(&PortRecord { place: Place::Tcx, ..all }, 1));
    }
}
