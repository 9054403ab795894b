//! Checks every frame that leaves the router, and keeps the statistics.
//!
//! A delivered frame must be, byte for byte, what its stamp and the golden model say, and come once; frames of one flow
//! and class must come in order. What does not arrive must be counted as dropped somewhere: [`Scoreboard::lost`] is
//! compared with the cards' counters. While cards fail, a frame may also have taken the slow path; then each path keeps
//! its order.

use std::collections::BTreeMap;

use causeway_nic_driver::golden::process_reaching;
use causeway_nic_driver::{Mac, RuleTable, Target, Verdict};

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
    /// Of the frames delivered, those by the slow path.
    pub slow: u64,
    /// By path: fast, slow.
    next_sequence: [u32; 2],
    /// Sequence numbers delivered, a bit each.
    seen: Vec<u64>,
}

impl FlowRecord {
    /// Notes a sequence number; whether it is new.
    fn note(&mut self, sequence: u32) -> bool {
        let (word, bit) = (sequence as usize / 64, 1 << (sequence % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        new
    }

    /// Whether the frame of a sequence number was delivered.
    pub fn has(&self, sequence: u32) -> bool {
        self.seen.get(sequence as usize / 64).is_some_and(|word| word >> (sequence % 64) & 1 == 1)
    }
}

/// The scoreboard.
pub struct Scoreboard {
    table: RuleTable,
    host_table: RuleTable,
    window_ns: std::ops::Range<u64>,
    /// Whether what the cards know may have taken the slow path all the same.
    pub either_path: bool,
    /// All flows.
    pub flows: BTreeMap<FlowKey, FlowRecord>,
    /// What was wrong; the first few findings.
    pub errors: Vec<String>,
}

impl Scoreboard {
    /// `table` is what the cards forward by, `host_table` what the host does.
    pub fn new(table: RuleTable, host_table: RuleTable) -> Self {
        Self {
            table,
            host_table,
            window_ns: 0..0,
            either_path: false,
            flows: BTreeMap::new(),
            errors: Vec::new(),
        }
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
        let fast = self.expected(&stamp, u8::MAX);
        let slow = if self.either_path { self.expected(&stamp, 0) } else { None };
        if fast.is_none() {
            return self.error(format!("port {port}: {stamp:?} should not have been forwarded"));
        }
        let is = |expected: Option<(u8, Vec<u8>)>| expected.is_some_and(|(out, e)| out == port && e == frame);
        let path = usize::from(!is(fast));
        if path == 1 && !is(slow) {
            return self.error(format!("port {port}: {stamp:?} came wrong"));
        }
        let measured = self.window_ns.contains(&now_ns);
        let flow = self.flows.entry((stamp.port, stamp.dest, stamp.high)).or_default();
        flow.delivered += 1;
        if measured {
            flow.delivered_measured += 1;
            flow.latency_ns.push((now_ns - stamp.sent_ns) as u32);
        }
        flow.slow += path as u64;
        let late = stamp.sequence < flow.next_sequence[path];
        flow.next_sequence[path] = stamp.sequence + 1;
        if !flow.note(stamp.sequence) {
            self.error(format!("port {port}: {stamp:?} came twice"));
        } else if late {
            self.error(format!("port {port}: {stamp:?} came out of order"));
        }
    }

    /// The port that a frame should leave by, and what it should be then, if its card reaches these others.
    fn expected(&self, stamp: &Stamp, reachable: u8) -> Option<(u8, Vec<u8>)> {
        let router_mac = *self.table.nics.get(usize::from(stamp.port))?;
        let mut frame = stamp.frame(router_mac);
        match process_reaching(&self.table, stamp.port, reachable, &mut frame) {
            Verdict::Fast { nic, .. } => Some((nic, frame)),
            Verdict::Slow { .. } => {
                let dst = u32::from_be_bytes([10, 0, stamp.dest, 2]);
                let Target::Nic { nic, next_hop } = self.host_table.lookup(dst)?.to else { return None };
                forward_rewrite(&mut frame, self.host_table.nics[usize::from(nic)], next_hop);
                Some((nic, frame))
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
