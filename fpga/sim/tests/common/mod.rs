//! A router of three cards under traffic to which things are done.

use causeway_nic_driver::Target;
use causeway_nic_driver::corpus::Random;
use causeway_nic_driver::registers as reg;
use causeway_nic_sim::card::Edges;
use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::scenario::{CardCounters, counted_losses, read_counters, source, table};
use causeway_nic_sim::slot::ClockSkew;
use causeway_nic_sim::testbed::{Setup, Testbed};
use causeway_nic_sim::traffic::{Source, Spacing};

/// Idle bus cycles of a tick: short, so that what waits for ticks does not take long to simulate.
const PATIENCE: u64 = 128;
/// In which a router is whole again when all that was wrong has ended: 64 ticks of a bus that is idle a quarter of the
/// time.
pub const RECOVERY_NS: u64 = 500_000;
pub const CARDS: u8 = 3;

pub const CORE: Edges = Edges { core: true, rx: false, tx: false };

/// A setup with the clocks of every card in a phase and at a speed of its own.
pub fn setup(seed: u64) -> Setup {
    let mut random = Random::new(seed);
    let mut skew = || ClockSkew { slow_ppm: random.below(201) as i32 - 100, phase_ps: random.below(8_000) };
    let cards = table(CARDS.into(), true, true).unwrap();
    // Another next hop, so that a frame tells which path it took.
    let mut host_table = cards.clone();
    for route in &mut host_table.routes {
        if let Target::Nic { next_hop, .. } = &mut route.to {
            next_hop.0[4] = 3;
        }
    }
    let clocks = (0..CARDS).map(|_| [skew(), skew()]).collect();
    Setup {
        registers: vec![(reg::PATIENCE, PATIENCE), (reg::IRQ_ENABLE, reg::IRQ_RX)],
        clocks,
        seed,
        host_table,
        ..Setup::new(&cards)
    }
}

/// Every port sends to all others, both classes.
pub fn mesh(load: f64) -> Vec<Source> {
    let ports = 0..CARDS;
    let others = |port| (1..CARDS).map(|k| (port + k) % CARDS).collect::<Vec<u8>>();
    ports
        .map(|port| Source {
            load,
            frame_bytes: 64 + 37 * u16::from(port),
            high_share: 0.3,
            spacing: Spacing::Poisson,
            ..source(port, &others(port))
        })
        .collect()
}

/// A router under traffic.
pub struct Router {
    pub testbed: Testbed,
}

impl Router {
    pub fn new(setup: &Setup, sources: &[Source]) -> Self {
        let mut testbed = Testbed::new(setup);
        testbed.scoreboard.either_path = true;
        let end_ns = testbed.now_ns() + 1_000_000_000;
        testbed.scoreboard.measure(0..end_ns);
        for source in sources {
            testbed.add_source(source.clone(), setup.seed);
        }
        Self { testbed }
    }

    /// Faults at times from now, in nanoseconds.
    pub fn schedule(&mut self, faults: &[(u64, Fault)]) {
        let now_ps = self.testbed.now_ps();
        let later =
            |(at_ns, fault): &(u64, Fault)| Scheduled { at_ps: now_ps + at_ns * 1_000, fault: fault.clone() };
        self.testbed.schedule(faults.iter().map(later).collect::<Vec<_>>());
    }

    pub fn run(&mut self, ns: u64) {
        let end_ns = self.testbed.now_ns() + ns;
        self.testbed.run_until(end_ns);
    }

    pub fn counters(&mut self) -> Vec<CardCounters> {
        (0..CARDS).map(|nic| read_counters(&mut self.testbed, nic)).collect()
    }

    /// The sum of a counter over all cards.
    pub fn counted(&mut self, name: &str) -> u64 {
        self.counters().iter().flatten().filter(|c| c.0 == name).map(|c| c.1).sum()
    }

    /// Whether every card reaches every other.
    pub fn is_whole(&mut self) -> bool {
        (0..CARDS).all(|nic| self.testbed.is_linked(nic))
    }

    /// Lets things heal; then everything takes the fast path again.
    pub fn heal(&mut self) {
        self.run(RECOVERY_NS);
        let states: Vec<u64> =
            (0..CARDS).map(|nic| self.testbed.read_register(nic, reg::PEER_STATE)).collect();
        assert!(self.is_whole(), "{states:x?}");
        let before = self.counted("slow_no_port");
        self.run(100_000);
        assert_eq!(self.counted("slow_no_port"), before, "frames still take the slow path");
    }

    /// Ends the traffic; what the scoreboard says, and losses that nobody counted.
    ///
    /// A card that vanishes in the very cycle in which it has taken a packet's last word cannot say so: the packet is
    /// counted as lost by its sender. `vanished` is how often that may have been.
    pub fn finish_after(mut self, vanished: u64) -> Finished {
        self.testbed.stop_sources();
        self.testbed.drain(50_000_000);
        let counters = self.counters();
        let host = self.testbed.host().counters;
        let lost = self.testbed.scoreboard.lost();
        let counted = counted_losses(&counters, &host);
        assert!(self.testbed.scoreboard.errors.is_empty(), "{:?}", self.testbed.scoreboard.errors);
        assert!(counted <= lost + vanished, "{counted} counted of {lost}: {counters:?} {host:?}");
        Finished { testbed: self.testbed, counters, uncounted: lost.saturating_sub(counted) }
    }

    /// The same when no card vanished.
    pub fn finish(self) -> Finished {
        self.finish_after(0)
    }
}

pub struct Finished {
    pub testbed: Testbed,
    pub counters: Vec<CardCounters>,
    pub uncounted: u64,
}

impl Finished {
    pub fn counted(&self, nic: u8, name: &str) -> u64 {
        self.counters[usize::from(nic)].iter().filter(|c| c.0 == name).map(|c| c.1).sum()
    }

    /// Losses of the flows between two ports, in both directions and classes.
    pub fn lost_between(&self, a: u8, b: u8) -> u64 {
        let flows = self.testbed.scoreboard.flows.iter();
        let between = flows.filter(|(key, _)| (key.0, key.1) == (a, b) || (key.0, key.1) == (b, a));
        between.map(|(_, flow)| flow.sent - flow.delivered).sum()
    }

    /// Frames of these that took the slow path.
    pub fn slow_between(&self, a: u8, b: u8) -> u64 {
        let flows = self.testbed.scoreboard.flows.iter();
        let between = flows.filter(|(key, _)| (key.0, key.1) == (a, b) || (key.0, key.1) == (b, a));
        between.map(|(_, flow)| flow.slow).sum()
    }

    pub fn assert_all_counted(&self) {
        assert_eq!(self.uncounted, 0, "{:?} {:?}", self.counters, self.testbed.host().counters);
        assert!(self.testbed.line_errors.is_empty(), "{:?}", self.testbed.line_errors);
    }
}
