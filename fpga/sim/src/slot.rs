//! A card in its slot with the clocks of its MAC, and the tester's port at it.

use crate::card::{BusWires, Card, Edges};
use crate::gmii::{BYTE_PS, Receiver, Transmitter};

/// How a clock of a card's MAC differs from the nominal one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSkew {
    /// Parts in a million that it is too slow; negative: too fast.
    pub slow_ppm: i32,
    /// When its first edge comes, after the others'.
    pub phase_ps: u64,
}

/// A clock, by its next rising edge.
pub(crate) struct Clock {
    period_ps: u64,
    next_ps: u64,
}

impl Clock {
    fn new(skew: ClockSkew) -> Self {
        let period_ps = BYTE_PS as i64 + BYTE_PS as i64 * i64::from(skew.slow_ppm) / 1_000_000;
        Self { period_ps: period_ps as u64, next_ps: BYTE_PS + skew.phase_ps }
    }

    /// Whether an edge comes now; it is taken.
    fn rises(&mut self, now_ps: u64) -> bool {
        let rises = self.next_ps == now_ps;
        self.next_ps += if rises { self.period_ps } else { 0 };
        rises
    }

    /// It stands.
    pub(crate) fn stop(&mut self) {
        self.next_ps = u64::MAX;
    }

    /// It runs again, in a phase of its own.
    pub(crate) fn start(&mut self, now_ps: u64) {
        self.next_ps = now_ps + 3_210;
    }
}

/// A card in its slot.
pub(crate) struct Slot {
    pub(crate) card: Box<dyn Card>,
    pub(crate) rx: Clock,
    tx: Clock,
    /// Clocks that are high.
    high: Edges,
    /// It has the bus.
    pub(crate) plugged: bool,
    /// It gets no grants.
    pub(crate) starved: bool,
    /// There is no card.
    pub(crate) absent: bool,
    pub(crate) transmitter: Transmitter,
    pub(crate) receiver: Receiver,
}

impl Slot {
    /// A card in reset, with its BAR set; receive and transmit clock.
    pub(crate) fn new(mut card: Box<dyn Card>, bar: u32, [rx, tx]: [ClockSkew; 2], absent: bool) -> Self {
        card.set_bar(bar);
        // Once without the reset, so that it has an edge.
        card.set_clocks(Edges::default());
        card.set_resets(Edges::default());
        card.eval();
        let mut slot = Self {
            card,
            rx: Clock::new(rx),
            tx: Clock::new(tx),
            high: Edges::default(),
            plugged: !absent,
            starved: false,
            absent,
            transmitter: Transmitter::default(),
            receiver: Receiver::default(),
        };
        slot.hold(Edges { core: true, rx: true, tx: true });
        slot
    }

    /// Asserts these resets and no others.
    pub(crate) fn hold(&mut self, resets: Edges) {
        self.card.set_resets(resets);
        self.card.eval();
    }

    /// The next edge of the MAC's clocks.
    pub(crate) fn next_edge_ps(&self) -> u64 {
        self.rx.next_ps.min(self.tx.next_ps)
    }

    /// One instant of the card, with an edge of the bus clock or not; whether a byte time of transmission has passed.
    pub(crate) fn step(
        &mut self,
        now_ps: u64,
        core: bool,
        wires: &BusWires,
        granted: bool,
        waves: bool,
    ) -> bool {
        let edges = Edges { core, rx: self.rx.rises(now_ps), tx: self.tx.rises(now_ps) };
        if self.absent || edges.none() {
            return false;
        }
        if edges.rx {
            let (data, valid, error) = self.transmitter.tick();
            self.card.set_rx(data, valid, error);
        }
        if core {
            // Without the bus it sees an idle one.
            let idle = BusWires::default();
            self.card.set_bus(if self.plugged { wires } else { &idle }, self.plugged && granted);
        }
        // A falling edge is put where an evaluation is due anyway, unless the same clock rises next.
        if edges.meet(self.high) {
            self.card.set_clocks(Edges::default());
            self.card.eval();
            if waves {
                self.card.dump(now_ps - 500);
            }
        }
        self.high = edges;
        self.card.set_clocks(edges);
        self.card.eval();
        if waves {
            self.card.dump(now_ps);
        }
        edges.tx
    }

    /// Whether the card is on the bus and wants it.
    pub(crate) fn requests(&self) -> bool {
        self.plugged && !self.starved && !self.absent && self.card.requests()
    }

    /// Whether its interrupt is seen.
    pub(crate) fn interrupts(&self) -> bool {
        self.plugged && !self.absent && self.card.irq()
    }
}
