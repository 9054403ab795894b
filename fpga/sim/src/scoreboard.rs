//! Checks every frame that leaves the router, and keeps the statistics.
//!
//! A delivered frame must be, byte for byte, what its stamp and the golden model say; frames of one flow and class
//! must come in order. What does not arrive must be counted as dropped somewhere: [`Scoreboard::lost`] is compared
//! with the cards' counters.

use std::collections::BTreeMap;

use causeway_nic_driver::golden::process;
use causeway_nic_driver::{Mac, RuleTable, Verdict};

use crate::host::forward_rewrite;
use crate::traffic::Stamp;

/// A flow: source port, destination network, class.
pub type FlowKey = (u8, u8, bool);

/// What happened to a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowRecord {
    /// Frames sent in the whole run.
    pub sent: u64,
    /// Frames delivered in the whole run.
    pub delivered: u64,
    /// Frames sent while measuring.
    pub sent_measured: u64,
    /// Frames delivered while measuring.
    pub delivered_measured: u64,
    /// Latencies of the latter, first bit in to last bit out.
    pub latency_ns: Vec<u32>,
    next_sequence: u32,
}

/// The scoreboard.
pub struct Scoreboard {
    table: RuleTable,
    host_table: RuleTable,
    window_ns: std::ops::Range<u64>,
    /// All flows.
    pub flows: BTreeMap<FlowKey, FlowRecord>,
    /// What was wrong; the first few findings.
    pub errors: Vec<String>,
}

impl Scoreboard {
    /// `table` is what the cards forward by, `host_table` what the host does.
    pub fn new(table: RuleTable, host_table: RuleTable) -> Self {
        Self { table, host_table, window_ns: 0..0, flows: BTreeMap::new(), errors: Vec::new() }
    }

    /// Rates and latencies are taken from now on within `window_ns`.
    pub fn measure(&mut self, window_ns: std::ops::Range<u64>) {
        self.window_ns = window_ns;
    }

    /// The address of a card.
    pub fn router_mac(&self, port: u8) -> Mac {
        self.table.nics.get(usize::from(port)).copied().unwrap_or_default()
    }

    /// Notes a frame that is being sent.
    pub fn sent(&mut self, stamp: &Stamp) {
        let flow = self.flows.entry((stamp.port, stamp.dest, stamp.high)).or_default();
        flow.sent += 1;
        flow.sent_measured += u64::from(self.window_ns.contains(&stamp.sent_ns));
    }

    /// Checks a frame that left port `port`.
    pub fn delivered(&mut self, port: u8, frame: &[u8], now_ns: u64) {
        let Some(stamp) = Stamp::read(frame) else {
            return self.error(format!("port {port}: a frame without stamp"));
        };
        let Some((out, expected)) = self.expected(&stamp) else {
            return self.error(format!("port {port}: {stamp:?} should not have been forwarded"));
        };
        if out != port || expected != frame {
            return self.error(format!("port {port}: {stamp:?} came wrong"));
        }
        let measured = self.window_ns.contains(&now_ns);
        let flow = self.flows.entry((stamp.port, stamp.dest, stamp.high)).or_default();
        flow.delivered += 1;
        if measured {
            flow.delivered_measured += 1;
            flow.latency_ns.push((now_ns - stamp.sent_ns) as u32);
        }
        let late = stamp.sequence < flow.next_sequence;
        flow.next_sequence = stamp.sequence + 1;
        if late {
            self.error(format!("port {port}: {stamp:?} came out of order"));
        }
    }

    fn expected(&self, stamp: &Stamp) -> Option<(u8, Vec<u8>)> {
        let router_mac = *self.table.nics.get(usize::from(stamp.port))?;
        let mut frame = stamp.frame(router_mac);
        match process(&self.table, stamp.port, &mut frame) {
            Verdict::Fast { nic, .. } => Some((nic, frame)),
            Verdict::Slow { .. } => {
                let dst = u32::from_be_bytes([10, 0, stamp.dest, 2]);
                let route = self.host_table.lookup(dst)?;
                forward_rewrite(&mut frame, self.host_table.nics[usize::from(route.nic)], route.next_hop);
                Some((route.nic, frame))
            }
            Verdict::Drop(_) => None,
        }
    }

    /// Notes that something was wrong.
    pub fn error(&mut self, what: String) {
        if self.errors.len() < 20 {
            self.errors.push(what);
        }
    }

    /// Frames sent and not delivered, over the whole run.
    pub fn lost(&self) -> u64 {
        self.flows.values().map(|flow| flow.sent - flow.delivered.min(flow.sent)).sum()
    }
}
