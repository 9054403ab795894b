//! One run: a router of some cards, what its ports are offered, and what came out.

use causeway_model::enhanced;
use causeway_nic_driver::corpus::Random;
use causeway_nic_driver::registers as reg;
use causeway_nic_driver::rules::MAX_NICS;
use causeway_nic_driver::{RuleError, RuleTable};

use crate::gmii::BYTE_PS;
use crate::host::{HostCounters, HostParameters};
use crate::testbed::{BusUse, Setup, Testbed};
use crate::traffic::Source;

pub use causeway_model::enhanced::Policy as ResponsePolicy;
pub use outcome::{CardCounters, FlowResult, Outcome};

pub mod file;
pub mod many;
mod outcome;

/// What [`reg::SCHEDULER`] is written for a rule.
pub fn scheduler_register(policy: ResponsePolicy) -> u64 {
    match policy {
        ResponsePolicy::RoundRobin => 0,
        ResponsePolicy::HighFirst => 1,
        ResponsePolicy::LongestHigh => 2,
        ResponsePolicy::Surplus { quantum_words } => 3 | u64::from(quantum_words) << 16,
    }
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name, unique among results.
    pub name: String,
    /// The number of cards.
    pub cards: usize,
    /// Whether the cards know the routes; otherwise everything takes the slow path.
    pub fast_path: bool,
    /// Whether the cards classify by ToS.
    pub classify: bool,
    /// What the ports are offered.
    pub sources: Vec<Source>,
    /// The host's speed.
    pub host: HostParameters,
    /// Bus cycles of overhead a sequence; at least the protocol's own five.
    pub bus_overhead_cycles: u64,
    /// [`reg::GRANT_MIN_WORDS`].
    pub grant_min_words: u64,
    /// The response scheduler's rule.
    pub policy: ResponsePolicy,
    /// The clock of bus and packet logic.
    pub bus_period_ps: u64,
    /// Time before measuring; queues fill meanwhile.
    pub warm_up_ns: u64,
    /// Time measured.
    pub measure_ns: u64,
    /// Seed of random spacing and of what uninitialised registers hold.
    pub seed: u64,
}

impl Scenario {
    /// A scenario with the defaults: fast path, no classes, ten cycles of bus overhead, 1 ms and 10 ms.
    pub fn new(name: &str, cards: usize, sources: Vec<Source>) -> Self {
        Self {
            name: name.into(),
            cards,
            fast_path: true,
            classify: false,
            sources,
            host: HostParameters::default(),
            bus_overhead_cycles: 10,
            grant_min_words: 0,
            policy: ResponsePolicy::RoundRobin,
            bus_period_ps: enhanced::PCI_66_PS,
            warm_up_ns: 1_000_000,
            measure_ns: 10_000_000,
            seed: 1,
        }
    }

    /// What the protocol model takes of it.
    pub fn protocol(&self) -> enhanced::Scenario {
        enhanced::Scenario {
            cards: self.cards,
            classify: self.classify,
            sources: self.sources.clone(),
            bus_overhead_cycles: self.bus_overhead_cycles,
            policy: self.policy,
            bus_period_ps: self.bus_period_ps,
            warm_up_ns: self.warm_up_ns,
            measure_ns: self.measure_ns,
            seed: self.seed,
        }
    }

    /// The same with other times, in microseconds.
    pub fn lasting(mut self, warm_up_us: u64, measure_us: u64) -> Self {
        self.warm_up_ns = warm_up_us * 1_000;
        self.measure_ns = measure_us * 1_000;
        self
    }

    /// The same with another seed: other random spacing, other values in uninitialised registers, and each source
    /// begins at another point of its first frame's time.
    pub fn with_seed(mut self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        for source in &mut self.sources {
            let frame_ns = (u64::from(source.frame_bytes) + enhanced::OVERHEAD_BYTES) * BYTE_PS / 1_000;
            source.start_ns = random.below(frame_ns);
        }
        self.seed = seed;
        self
    }
}

/// At load 1 and at exact distances: one source of 64-byte frames.
pub fn source(port: u8, dests: &[u8]) -> Source {
    Source::full(port, dests)
}

/// The table of a router whose port `n` leads to 10.0.n.0/24.
///
/// # Errors
/// More than eight cards, or none.
pub fn table(cards: usize, routes: bool, classify: bool) -> Result<RuleTable, RuleError> {
    let mut text = String::new();
    for n in 0..cards {
        text += &format!("nic {n} mac 02:00:00:00:00:0{n}\n");
        if routes {
            text += &format!("route 10.0.{n}.0/24 nic {n} mac 02:00:00:00:02:0{n}\n");
        }
        if classify {
            text += &format!("class nic {n} tos 0xb8/0xfc\n");
        }
    }
    if classify {
        text += "class host tos 0xb8/0xfc\n";
    }
    RuleTable::parse(&text)
}

/// Runs a scenario.
///
/// # Errors
/// A table that cannot be loaded.
pub fn run(scenario: &Scenario) -> Result<Outcome, RuleError> {
    run_with(scenario, |_| {})
}

/// Runs a scenario after `prepare` has had the testbed, for example to open waves.
///
/// # Errors
/// A table that cannot be loaded.
pub fn run_with(scenario: &Scenario, prepare: impl FnOnce(&mut Testbed)) -> Result<Outcome, RuleError> {
    let setup = Setup {
        host_table: table(scenario.cards, true, false)?,
        host: scenario.host,
        bus_period_ps: scenario.bus_period_ps,
        bus_extra_cycles: scenario.bus_overhead_cycles.saturating_sub(5),
        registers: vec![
            (reg::GRANT_MIN_WORDS, scenario.grant_min_words),
            (reg::SCHEDULER, scheduler_register(scenario.policy)),
        ],
        seed: scenario.seed,
        ..Setup::new(&table(scenario.cards, scenario.fast_path, scenario.classify)?)
    };
    let mut testbed = Testbed::new(&setup);
    prepare(&mut testbed);
    let begin_ns = testbed.now_ns() + scenario.warm_up_ns;
    let end_ns = begin_ns + scenario.measure_ns;
    testbed.scoreboard.measure(begin_ns..end_ns);
    for source in &scenario.sources {
        testbed.add_source(source.clone(), scenario.seed);
    }
    testbed.run_until(begin_ns);
    let bus_before = testbed.bus();
    testbed.run_until(end_ns);
    let bus_after = testbed.bus();
    testbed.stop_sources();
    testbed.drain(50_000_000);
    let bus = BusUse {
        cycles: bus_after.cycles - bus_before.cycles,
        busy: bus_after.busy - bus_before.busy,
        data: bus_after.data - bus_before.data,
    };
    let counters = (0..scenario.cards as u8).map(|nic| read_counters(&mut testbed, nic)).collect();
    Ok(Outcome::new(scenario, &testbed, counters, bus))
}

/// Reads all counters of a card over the bus.
pub fn read_counters(testbed: &mut Testbed, nic: u8) -> CardCounters {
    let mut counters = Vec::new();
    for (register, counter) in (reg::COUNTERS..).step_by(8).zip(reg::COUNTER_TABLE) {
        counters.push((counter.name.to_string(), testbed.read_register(nic, register)));
    }
    let destinations = if testbed.card_count() <= 4 { 4 } else { MAX_NICS as u8 };
    for destination in 0..destinations {
        for high in [false, true] {
            let count = testbed.read_register(nic, reg::drop_fifo_counter(destination, high));
            let to = if destination == nic { "host".into() } else { format!("nic{destination}") };
            let class = if high { "high" } else { "low" };
            counters.push((format!("drop_fifo_{to}_{class}"), count));
        }
    }
    counters
}

/// Frames that cards and host say they have lost.
pub fn counted_losses(counters: &[CardCounters], host: &HostCounters) -> u64 {
    let lost = |name: &str| {
        name.starts_with("drop_") || ["rx_cut", "rx_disabled", "tx_failed", "tx_refused"].contains(&name)
    };
    // What is read of a card that is not there is all ones.
    let counts = counters.iter().flatten().filter(|(name, count)| lost(name) && *count != u64::MAX);
    let by_cards: u64 = counts.map(|c| c.1).sum();
    by_cards + host.tx_full + host.not_routed
}
