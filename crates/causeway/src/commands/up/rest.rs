//! Ports most of whose packets are the kernel's anyway.
//!
//! A packet that the graph takes and gives back costs more than one that never left the kernel. Where that is most of
//! what comes in by a port (its routes lead to a tunnel, say), the router would be worse than none. Such a port is left
//! to the kernel for a while, longer each time that it is found so again.

use super::driver::Forwarded;
use super::policy::Policies;
use causeway_elements::kernel::{Forwarding, Tally};
use std::sync::Arc;

/// How often the ports are looked at, nanoseconds.
const PERIOD_NS: u64 = 1_000_000_000;
/// Packets given back in a period below which nothing is done: they cost little.
const FEW: u64 = 20_000;
/// How long a port rests the first time, and at most.
const FIRST_NS: u64 = 10_000_000_000;
const LONGEST_NS: u64 = 320_000_000_000;

/// Who lets ports rest.
pub struct Rest {
    forwarding: Arc<Forwarding>,
    policies: Arc<Policies>,
    /// What never comes to the graph, if anything is forwarded in the driver.
    forwarded: Option<Forwarded>,
    looked_ns: u64,
    ports: Vec<Port>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    tally: Tally,
    /// Until when it rests.
    until_ns: Option<u64>,
    /// How long it rests the next time.
    next_ns: u64,
}

impl Rest {
    /// For the ports of `forwarding`.
    pub fn new(forwarding: Arc<Forwarding>, policies: Arc<Policies>, forwarded: Option<Forwarded>) -> Rest {
        let ports = vec![Port::default(); forwarding.ports().len()];
        Rest { forwarding, policies, forwarded, looked_ns: 0, ports }
    }

    /// What became of the packets of a port by now, wherever that was decided.
    pub fn tally(&self, number: usize) -> Tally {
        let Tally { taken, punted } = self.forwarding.tally(number);
        let in_driver = self.forwarded.as_ref().map_or(0, |forwarded| forwarded.packets_from(number));
        Tally { taken: taken + in_driver, punted }
    }

    /// Looks at the ports, if it is time.
    pub fn look(&mut self, now_ns: u64) {
        if now_ns < self.looked_ns + PERIOD_NS {
            return;
        }
        self.looked_ns = now_ns;
        for number in 0..self.ports.len() {
            let tally = self.tally(number);
            let name = &self.forwarding.ports()[number];
            let Some(resting) = self.ports[number].look(tally, now_ns) else { continue };
            self.policies.rest(number, resting.is_some());
            match resting {
                Some(for_ns) => log::warn!(
                    code = "port-resting";
                    "{name}: most of its packets are the kernel's: all are left to it for {} s", for_ns / 1_000_000_000
                ),
                None => log::info!(code = "port-resting"; "{name}: taken again"),
            }
        }
    }
}

impl Port {
    /// Whether the port is to rest from now on, and how long, in nanoseconds; the outer none: as before.
    fn look(&mut self, now: Tally, now_ns: u64) -> Option<Option<u64>> {
        let before = std::mem::replace(&mut self.tally, now);
        let taken = now.taken.saturating_sub(before.taken);
        let punted = now.punted.saturating_sub(before.punted);
        match self.until_ns {
            Some(until_ns) if now_ns >= until_ns => {
                self.until_ns = None;
                Some(None)
            }
            Some(_) => None,
            None if punted >= FEW && punted * 2 > taken => {
                let for_ns = self.next_ns.clamp(FIRST_NS, LONGEST_NS);
                (self.until_ns, self.next_ns) = (Some(now_ns + for_ns), for_ns * 2);
                Some(Some(for_ns))
            }
            None => {
                if taken >= FEW {
                    self.next_ns = FIRST_NS;
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_rests_while_most_of_its_packets_are_the_kernels_and_longer_each_time() {
        let (mut port, mut tally, mut now_ns) = (Port::default(), Tally::default(), 0);
        let mut second = |taken, punted| {
            now_ns += PERIOD_NS;
            tally = Tally { taken: tally.taken + taken, punted: tally.punted + punted };
            port.look(tally, now_ns)
        };
        assert_eq!(second(FEW, FEW - 1), None, "few cost little");
        assert_eq!(second(4 * FEW, 2 * FEW), None, "half is not most");
        assert_eq!(second(4 * FEW, 2 * FEW + 1), Some(Some(FIRST_NS)));
        for _ in 0..9 {
            assert_eq!(second(0, 0), None);
        }
        assert_eq!(second(0, 0), Some(None), "taken again");
        assert_eq!(second(2 * FEW, 2 * FEW), Some(Some(2 * FIRST_NS)));
        for _ in 0..19 {
            second(0, 0);
        }
        assert_eq!(second(0, 0), Some(None));
        assert_eq!(second(2 * FEW, 0), None, "all is well again");
        assert_eq!(second(2 * FEW, 2 * FEW), Some(Some(FIRST_NS)));
    }
}
