//! A shared I/O bus: conventional PCI and PCI-X, as transactions.
//!
//! One master at a time holds the bus; the arbiter asks them in turn. A transaction begins with its address, goes on with
//! data and ends with a turnaround, in which nobody drives the lines (OSR §2.3). Longer ones are cut into bursts, each
//! with an address of its own. What differs is what a read does: on PCI the bus waits for the first data, on PCI-X the
//! target answers later with a transaction of its own, and others use the bus meanwhile (PCI-X addendum, split
//! transactions).

use crate::event::{SECOND, Time};
use std::collections::VecDeque;

/// How a bus treats reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A read holds the bus until its data are there.
    Pci,
    /// A read is split: a request, and a completion when the data are there.
    PciX,
}

/// What a bus is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusParameters {
    /// How it treats reads.
    pub protocol: Protocol,
    /// Cycles a second.
    pub clock_hz: u64,
    /// Bytes in a cycle.
    pub width_bytes: u32,
    /// Cycles of a burst beside its data: address, attributes, answer, turnaround.
    pub overhead_cycles: u32,
    /// Bytes of a burst at most.
    pub burst_bytes: u32,
    /// From a read's address to its first data, picoseconds: bridges and memory.
    pub read_latency_ps: Time,
}

/// What a master asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Data from the master.
    Write,
    /// Data for the master.
    Read,
    /// Data for the master that it asked for before.
    Completion,
}

/// A transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub master: usize,
    /// For what.
    pub transfer: Transfer,
    /// Bytes of data.
    pub bytes: u32,
}

/// What the end of a transaction means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The data are where they were to go.
    Done(Request),
    /// A read was asked for; its data are there after the latency, and need the bus once more.
    Split(Request),
}

/// A bus and who waits for it.
#[derive(Clone, Debug)]
pub struct Bus {
    parameters: BusParameters,
    /// What each master waits for, in its order.
    waiting: Vec<VecDeque<Request>>,
    /// A bit for each master that waits.
    asking: u128,
    /// The master that is asked next.
    next: usize,
    current: Option<Request>,
    /// Picoseconds for which it was held.
    pub busy_ps: Time,
    /// Bytes of data that went over it.
    pub bytes: u64,
}

impl Bus {
    /// Masters that a bus has at most.
    pub const MASTERS: usize = 128;

    /// An idle bus of so many masters.
    ///
    /// # Panics
    ///
    /// If they are too many.
    pub fn new(parameters: BusParameters, masters: usize) -> Bus {
        assert!(masters <= Bus::MASTERS, "a bus has at most {} masters", Bus::MASTERS);
        let waiting = vec![VecDeque::new(); masters];
        Bus { parameters, waiting, asking: 0, next: 0, current: None, busy_ps: 0, bytes: 0 }
    }

    /// From a split read's request to its completion.
    pub fn read_latency_ps(&self) -> Time {
        self.parameters.read_latency_ps
    }

    /// For how long a transaction holds the bus.
    pub fn hold_ps(&self, request: &Request) -> Time {
        let p = &self.parameters;
        let cycle_ps =
            |cycles: u64| (u128::from(cycles) * u128::from(SECOND) / u128::from(p.clock_hz)) as Time;
        let bursts = u64::from(request.bytes.div_ceil(p.burst_bytes).max(1));
        let data = u64::from(request.bytes.div_ceil(p.width_bytes));
        let overhead = u64::from(p.overhead_cycles);
        match (p.protocol, request.transfer) {
            (Protocol::PciX, Transfer::Read) => cycle_ps(overhead),
            (Protocol::Pci, Transfer::Read) => {
                cycle_ps(data + bursts * overhead) + bursts * p.read_latency_ps
            }
            _ => cycle_ps(data + bursts * overhead),
        }
    }

    /// A master asks. `Some`: the bus was idle, and the transaction ends after so many picoseconds; else it waits.
    ///
    /// # Panics
    ///
    /// If there is no such master.
    pub fn ask(&mut self, request: Request) -> Option<Time> {
        self.waiting[request.master].push_back(request);
        self.asking |= 1 << request.master;
        if self.current.is_some() { None } else { self.grant() }
    }

    /// The transaction under way ended; says which, and when the next one will, if any waits.
    pub fn end(&mut self) -> Option<(Ended, Option<Time>)> {
        let request = self.current.take()?;
        let split = self.parameters.protocol == Protocol::PciX && request.transfer == Transfer::Read;
        let ended = if split {
            Ended::Split(Request { transfer: Transfer::Completion, ..request })
        } else {
            self.bytes += u64::from(request.bytes);
            Ended::Done(request)
        };
        Some((ended, self.grant()))
    }

    fn grant(&mut self) -> Option<Time> {
        // The first who asks from the next one on, or else from the begin.
        let behind = self.asking >> self.next;
        let master = match (behind, self.asking) {
            (_, 0) => return None,
            (0, all) => all.trailing_zeros() as usize,
            (behind, _) => self.next + behind.trailing_zeros() as usize,
        };
        self.next = (master + 1) % self.waiting.len();
        let request = self.waiting[master].pop_front()?;
        if self.waiting[master].is_empty() {
            self.asking &= !(1 << master);
        }
        self.current = Some(request);
        let hold_ps = self.hold_ps(&request);
        self.busy_ps += hold_ps;
        Some(hold_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 bits at 100 MHz, so that a cycle is 10 ns.
    fn parameters(protocol: Protocol) -> BusParameters {
        BusParameters {
            protocol,
            clock_hz: 100_000_000,
            width_bytes: 8,
            overhead_cycles: 4,
            burst_bytes: 128,
            read_latency_ps: 500_000,
        }
    }

    fn request(master: usize, transfer: Transfer, bytes: u32) -> Request {
        Request { master, transfer, bytes }
    }

    #[test]
    fn transactions_take_what_they_take_by_hand() {
        use Transfer::{Completion, Read, Write};
        let (pci, pci_x) = (Bus::new(parameters(Protocol::Pci), 1), Bus::new(parameters(Protocol::PciX), 1));
        // 64 bytes: 4 + 8 cycles. 300 bytes: three bursts, 12 + 38 cycles.
        assert_eq!(pci_x.hold_ps(&request(0, Write, 64)), 120_000);
        assert_eq!(pci_x.hold_ps(&request(0, Completion, 300)), 500_000);
        assert_eq!(pci_x.hold_ps(&request(0, Read, 300)), 40_000, "the request alone");
        assert_eq!(pci.hold_ps(&request(0, Read, 300)), 500_000 + 3 * 500_000, "each burst waits");
        assert_eq!(pci.hold_ps(&request(0, Write, 1)), 50_000);
    }

    #[test]
    fn masters_are_asked_in_turn_and_a_split_read_lets_others_go_on() {
        let mut bus = Bus::new(parameters(Protocol::PciX), 3);
        let (a, b) = (request(0, Transfer::Read, 64), request(0, Transfer::Write, 8));
        let (c, d) = (request(2, Transfer::Write, 8), request(1, Transfer::Write, 16));
        assert_eq!(bus.ask(a), Some(40_000));
        assert_eq!([b, c, d].map(|one| bus.ask(one)), [None; 3]);
        let completion = Request { transfer: Transfer::Completion, ..a };
        assert_eq!(bus.end(), Some((Ended::Split(completion), Some(60_000))), "then master 1");
        assert_eq!(bus.ask(completion), None);
        assert_eq!(bus.end(), Some((Ended::Done(d), Some(50_000))), "then master 2");
        assert_eq!(bus.end(), Some((Ended::Done(c), Some(50_000))), "then master 0, in its order");
        assert_eq!(bus.end(), Some((Ended::Done(b), Some(120_000))));
        assert_eq!((bus.end(), bus.end()), (Some((Ended::Done(completion), None)), None));
        assert_eq!((bus.bytes, bus.busy_ps), (96, 320_000));
    }

    /// Bytes a second of four masters that never stop asking for this; each gets a fourth of the transactions.
    fn saturated(parameters: BusParameters, transfer: Transfer) -> f64 {
        let mut bus = Bus::new(parameters, 4);
        let mut done = [0u32; 4];
        let mut end_ps = (0..4).filter_map(|master| bus.ask(request(master, transfer, 512))).sum::<Time>();
        while let Some((Ended::Done(one), next)) = bus.end() {
            done[one.master] += 1;
            if done.iter().sum::<u32>() == 4_000 {
                break;
            }
            bus.ask(one);
            end_ps += next.expect("others wait");
        }
        assert_eq!((done, bus.bytes), ([1_000; 4], 4_000 * 512));
        f64::from(4_000 * 512) / (end_ps as f64 / SECOND as f64)
    }

    /// Masters that never stop writing share what the bus carries: bytes of a burst by the cycles of a burst.
    #[test]
    fn a_bus_alone_is_at_its_bound_and_fair() {
        let bound = 128.0 / ((16.0 + 4.0) * 10e-9);
        let found = saturated(parameters(Protocol::PciX), Transfer::Write);
        assert!((found / bound - 1.0).abs() < 1e-9, "{found} bytes a second, bound {bound}");
    }

    /// The bus of 32 bits by 33 MHz: 132 MB/s without overhead. Writes alone lose the cycles around each burst, reads alone
    /// also wait for the first data of each with nobody else on the bus.
    #[test]
    fn conventional_pci_is_at_its_bounds() {
        let slow = BusParameters { clock_hz: 33_000_000, width_bytes: 4, ..parameters(Protocol::Pci) };
        let burst_s = (128.0 / 4.0 + 4.0) / 33e6;
        // Times are whole picoseconds.
        let is =
            |found: f64, bound: f64| assert!((found / bound - 1.0).abs() < 1e-6, "{found}, bound {bound}");
        is(saturated(slow, Transfer::Write), 128.0 / burst_s);
        is(saturated(slow, Transfer::Read), 128.0 / (burst_s + 500e-9));
        let whole = BusParameters { overhead_cycles: 0, read_latency_ps: 0, ..slow };
        is(saturated(whole, Transfer::Write), 132e6);
        is(saturated(whole, Transfer::Read), 132e6);
    }
}
