//! What came out of a run.

use causeway_model::enhanced::{OVERHEAD_BYTES, Statistics};

use super::{Scenario, counted_losses};
use crate::host::HostCounters;
use crate::scoreboard::FlowKey;
use crate::testbed::{BusUse, Testbed};

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
    /// The same latencies over all flows of a class, the low one first.
    pub latency_by_class_ns: [[u32; 4]; 2],
    /// Of every card.
    pub counters: Vec<CardCounters>,
    /// Of the host.
    pub host: HostCounters,
    /// While measuring.
    pub bus: BusUse,
    /// Violations that the scoreboard found; empty unless something is wrong.
    pub errors: Vec<String>,
}

/// The smallest, the median, the 99th percentile and the largest.
fn quantiles(mut values: Vec<u32>) -> [u32; 4] {
    values.sort_unstable();
    let at = |part: f64| (part * (values.len().max(1) - 1) as f64) as usize;
    [0.0, 0.5, 0.99, 1.0].map(|part| values.get(at(part)).copied().unwrap_or(0))
}

impl Outcome {
    /// What a run has left in its testbed.
    pub(super) fn new(
        scenario: &Scenario,
        testbed: &Testbed,
        counters: Vec<CardCounters>,
        bus: BusUse,
    ) -> Self {
        let seconds = scenario.measure_ns as f64 / 1e9;
        let host = testbed.host().counters;
        let mut errors = testbed.scoreboard.errors.clone();
        errors.extend(testbed.line_errors.iter().map(|(port, e)| format!("port {port}: {e:?}")));
        let lost = testbed.scoreboard.lost();
        let counted = counted_losses(&counters, &host);
        if lost != counted {
            errors.push(format!("{lost} frames lost, but {counted} counted by the cards and {host:?}"));
        }
        let records = &testbed.scoreboard.flows;
        let flows = records.iter().map(|(&key, record)| FlowResult {
            key,
            offered_pps: record.sent_measured as f64 / seconds,
            delivered_pps: record.delivered_measured as f64 / seconds,
            lost: record.sent - record.delivered,
            latency_ns: quantiles(record.latency_ns.clone()),
        });
        let latency_by_class_ns = [false, true].map(|high| {
            let flows = records.iter().filter(|(key, _)| key.2 == high);
            quantiles(flows.flat_map(|(_, record)| &record.latency_ns).copied().collect())
        });
        let flows = flows.collect();
        Self { scenario: scenario.clone(), flows, latency_by_class_ns, counters, host, bus, errors }
    }

    /// Bits of a flow's frame on the line, preamble and gap counted.
    fn frame_bits(&self, key: FlowKey) -> f64 {
        let source = self.scenario.sources.iter().find(|source| source.port == key.0);
        source.map_or(0.0, |s| ((u64::from(s.frame_bytes) + OVERHEAD_BYTES) * 8) as f64)
    }

    /// Offered load of all flows, in bits per second at the line rate.
    pub fn offered_bps(&self) -> f64 {
        self.flows.iter().map(|flow| flow.offered_pps * self.frame_bits(flow.key)).sum()
    }

    /// Delivered load of all flows that `pick` chooses, in bits per second at the line rate.
    pub fn delivered_bps_of(&self, pick: impl Fn(FlowKey) -> bool) -> f64 {
        let flows = self.flows.iter().filter(|flow| pick(flow.key));
        flows.map(|flow| flow.delivered_pps * self.frame_bits(flow.key)).sum()
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
        self.delivered_bps_of(|_| true)
    }

    /// Frames lost in the whole run.
    pub fn lost(&self) -> u64 {
        self.lost_of(|_| true)
    }

    /// Frames that all flows that `pick` chooses lost in the whole run.
    pub fn lost_of(&self, pick: impl Fn(FlowKey) -> bool) -> u64 {
        self.flows.iter().filter(|flow| pick(flow.key)).map(|flow| flow.lost).sum()
    }

    /// The sum over all cards of the counters whose name begins with `prefix`.
    pub fn counted(&self, prefix: &str) -> u64 {
        self.counters.iter().flatten().filter(|(name, _)| name.starts_with(prefix)).map(|c| c.1).sum()
    }

    /// Share of bus cycles in which a sequence was under way or wanted.
    pub fn bus_busy(&self) -> f64 {
        self.bus.busy as f64 / self.bus.cycles as f64
    }

    /// Share of bus cycles in which data were carried.
    pub fn bus_data(&self) -> f64 {
        self.bus.data as f64 / self.bus.cycles as f64
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
            high_pps: self.delivered_pps(|key| key.2),
            bursts_pps: delivered_pps / self.packets_a_burst(),
            bus_busy: self.bus_busy(),
            bus_data: self.bus_data(),
        }
    }
}
