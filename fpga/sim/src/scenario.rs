//! One run: a router of some cards, what its ports are offered, and what came out.

use causeway_nic_driver::registers as reg;
use causeway_nic_driver::rules::MAX_NICS;
use causeway_nic_driver::{RuleError, RuleTable};

use crate::gmii::OVERHEAD_BYTES;
use crate::host::{HostCounters, HostParameters};
use crate::json::Json;
use crate::protocol_model::Statistics;
use crate::scoreboard::FlowKey;
use crate::testbed::{BusUse, PCI_66_PS, Setup, Testbed};
use crate::traffic::{Source, Spacing};

/// Which pending request the response scheduler answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsePolicy {
    /// The paper's.
    RoundRobin,
    /// Round robin among those with high-class bytes, if there are any.
    HighFirst,
    /// The one with the most high-class bytes; room for the low class only as far as no other's high class asks for it.
    LongestHigh,
    /// Turns of so many words.
    Surplus {
        /// Words of a turn.
        quantum_words: u16,
    },
}

impl ResponsePolicy {
    /// The rules with their usual parameters.
    pub const ALL: [Self; 4] =
        [Self::RoundRobin, Self::HighFirst, Self::LongestHigh, Self::Surplus { quantum_words: 256 }];

    /// Its name in results and scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::HighFirst => "high-first",
            Self::LongestHigh => "longest-high",
            Self::Surplus { .. } => "surplus",
        }
    }

    /// What [`reg::SCHEDULER`] is written.
    pub fn to_register(self) -> u64 {
        match self {
            Self::RoundRobin => 0,
            Self::HighFirst => 1,
            Self::LongestHigh => 2,
            Self::Surplus { quantum_words } => 3 | u64::from(quantum_words) << 16,
        }
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
            bus_period_ps: PCI_66_PS,
            warm_up_ns: 1_000_000,
            measure_ns: 10_000_000,
            seed: 1,
        }
    }

    /// The same with other times, in microseconds.
    pub fn lasting(mut self, warm_up_us: u64, measure_us: u64) -> Self {
        self.warm_up_ns = warm_up_us * 1_000;
        self.measure_ns = measure_us * 1_000;
        self
    }

    fn parameters(&self) -> Json {
        let sources = self.sources.iter().map(|s| {
            Json::object([
                ("port", s.port.into()),
                ("load", s.load.into()),
                ("frame_bytes", s.frame_bytes.into()),
                ("dests", s.dests.clone().into()),
                ("high_share", s.high_share.into()),
                ("spacing", if s.spacing == Spacing::Exact { "exact" } else { "poisson" }.into()),
                ("start_ns", s.start_ns.into()),
            ])
        });
        Json::object([
            ("cards", self.cards.into()),
            ("fast_path", self.fast_path.into()),
            ("classify", self.classify.into()),
            ("bus_overhead_cycles", self.bus_overhead_cycles.into()),
            ("grant_min_words", self.grant_min_words.into()),
            ("response_policy", self.policy.name().into()),
            ("bus_period_ps", self.bus_period_ps.into()),
            ("host_packet_cost_ns", self.host.packet_cost_ns.into()),
            ("host_memory_latency_ns", self.host.memory_latency_ns.into()),
            ("warm_up_ns", self.warm_up_ns.into()),
            ("measure_ns", self.measure_ns.into()),
            ("seed", self.seed.into()),
            ("sources", Json::List(sources.collect())),
        ])
    }
}

/// At load 1 and at exact distances: one source of 64-byte frames.
pub fn source(port: u8, dests: &[u8]) -> Source {
    Source {
        port,
        load: 1.0,
        frame_bytes: 64,
        dests: dests.to_vec(),
        high_share: 0.0,
        spacing: Spacing::Exact,
        // Not all ports at once: equal phases would favour nobody, but would be the one case in millions.
        start_ns: u64::from(port) * 136,
    }
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

/// A flow's rates.
#[derive(Clone, Copy, Debug)]
pub struct FlowResult {
    /// Source port, destination network, class.
    pub key: FlowKey,
    /// Offered while measuring, in packets per second.
    pub offered_pps: f64,
    /// Delivered while measuring, in packets per second.
    pub delivered_pps: f64,
    /// Frames sent and not delivered, over the whole run with draining.
    pub lost: u64,
    /// Smallest, median, 99th percentile and largest latency.
    pub latency_ns: [u32; 4],
}

/// A card's counters by name.
pub type CardCounters = Vec<(String, u64)>;

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run.
    pub scenario: Scenario,
    /// By flow.
    pub flows: Vec<FlowResult>,
    /// Of every card.
    pub counters: Vec<CardCounters>,
    /// Of the host.
    pub host: HostCounters,
    /// While measuring.
    pub bus: BusUse,
    /// Violations that the scoreboard found; empty unless something is wrong.
    pub errors: Vec<String>,
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
            (reg::SCHEDULER, scenario.policy.to_register()),
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
    Ok(conclude(scenario, testbed, counters, bus))
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
    let by_cards: u64 = counters.iter().flatten().filter(|(name, _)| lost(name)).map(|c| c.1).sum();
    by_cards + host.tx_full + host.not_routed
}

fn conclude(scenario: &Scenario, testbed: Testbed, counters: Vec<CardCounters>, bus: BusUse) -> Outcome {
    let seconds = scenario.measure_ns as f64 / 1e9;
    let host = testbed.host().counters;
    let mut errors = testbed.scoreboard.errors.clone();
    errors.extend(testbed.line_errors.iter().map(|(port, e)| format!("port {port}: {e:?}")));
    let lost = testbed.scoreboard.lost();
    let counted = counted_losses(&counters, &host);
    if lost != counted {
        errors.push(format!("{lost} frames lost, but {counted} counted by the cards and {host:?}"));
    }
    let flows = testbed.scoreboard.flows.iter().map(|(&key, record)| {
        let mut latency = record.latency_ns.clone();
        latency.sort_unstable();
        let at = |part: f64| {
            latency.get((part * (latency.len().max(1) - 1) as f64) as usize).copied().unwrap_or(0)
        };
        FlowResult {
            key,
            offered_pps: record.sent_measured as f64 / seconds,
            delivered_pps: record.delivered_measured as f64 / seconds,
            lost: record.sent - record.delivered,
            latency_ns: [at(0.0), at(0.5), at(0.99), at(1.0)],
        }
    });
    Outcome { scenario: scenario.clone(), flows: flows.collect(), counters, host, bus, errors }
}

impl Outcome {
    /// Bits per second at the line rate, preamble and gap counted, of packets per second.
    pub fn line_bps(&self, pps: f64) -> f64 {
        let frame_bytes = self.scenario.sources.first().map_or(64, |s| u64::from(s.frame_bytes));
        pps * ((frame_bytes + OVERHEAD_BYTES) * 8) as f64
    }

    /// Offered load of all flows that `pick` chooses, in packets per second.
    pub fn offered_pps(&self, pick: impl Fn(FlowKey) -> bool) -> f64 {
        self.flows.iter().filter(|flow| pick(flow.key)).map(|flow| flow.offered_pps).sum()
    }

    /// Delivered load of all flows that `pick` chooses, in packets per second.
    pub fn delivered_pps(&self, pick: impl Fn(FlowKey) -> bool) -> f64 {
        self.flows.iter().filter(|flow| pick(flow.key)).map(|flow| flow.delivered_pps).sum()
    }

    /// All delivered, in bits per second at the line rate.
    pub fn delivered_bps(&self) -> f64 {
        self.line_bps(self.delivered_pps(|_| true))
    }

    /// Frames lost in the whole run.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(|flow| flow.lost).sum()
    }

    /// The sum over all cards of the counters whose name begins with `prefix`.
    pub fn counted(&self, prefix: &str) -> u64 {
        self.counters.iter().flatten().filter(|(name, _)| name.starts_with(prefix)).map(|c| c.1).sum()
    }

    /// Share of bus cycles in which a sequence was under way or wanted.
    pub fn bus_busy(&self) -> f64 {
        self.bus.busy as f64 / self.bus.cycles as f64
    }

    /// Packets of the fast path by burst, over the whole run; 0 without bursts.
    pub fn packets_a_burst(&self) -> f64 {
        self.counted("tx_fast") as f64 / self.counted("bursts_sent").max(1) as f64
    }

    /// What the protocol model also gives.
    pub fn statistics(&self) -> Statistics {
        let delivered_pps = self.delivered_pps(|_| true);
        Statistics {
            delivered_pps,
            bursts_pps: delivered_pps / self.packets_a_burst(),
            bus_busy: self.bus_busy(),
            bus_data: self.bus.data as f64 / self.bus.cycles as f64,
        }
    }

    /// The result in the versioned form.
    pub fn to_json(&self) -> Json {
        let flows = self.flows.iter().map(|flow| {
            let [min, median, p99, max] = flow.latency_ns;
            Json::object([
                ("port", flow.key.0.into()),
                ("dest", flow.key.1.into()),
                ("class", if flow.key.2 { "high" } else { "low" }.into()),
                ("offered_pps", flow.offered_pps.into()),
                ("delivered_pps", flow.delivered_pps.into()),
                ("lost_frames", flow.lost.into()),
                (
                    "latency_ns",
                    Json::object([
                        ("min", min.into()),
                        ("median", median.into()),
                        ("p99", p99.into()),
                        ("max", max.into()),
                    ]),
                ),
            ])
        });
        let cards = self.counters.iter().map(|card| {
            Json::Object(
                card.iter().filter(|c| c.1 != 0).map(|(name, n)| (name.clone(), (*n).into())).collect(),
            )
        });
        Json::object([
            ("scenario", self.scenario.name.as_str().into()),
            ("tag", "modelled".into()),
            ("parameters", self.scenario.parameters()),
            ("delivered_bps", self.delivered_bps().into()),
            ("lost_frames", self.lost().into()),
            ("bus_busy", self.bus_busy().into()),
            ("bus_data", (self.bus.data as f64 / self.bus.cycles as f64).into()),
            ("flows", Json::List(flows.collect())),
            ("cards", Json::List(cards.collect())),
            (
                "host",
                Json::object([
                    ("received", self.host.received.into()),
                    ("forwarded", self.host.forwarded.into()),
                    ("not_routed", self.host.not_routed.into()),
                    ("tx_full", self.host.tx_full.into()),
                    ("interrupts", self.host.interrupts.into()),
                ]),
            ),
            ("violations", self.errors.iter().map(String::as_str).collect::<Vec<_>>().into()),
        ])
    }
}
