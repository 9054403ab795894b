//! What the mechanisms know of one port.

use super::Mechanism;

/// What happened on one port (LUT §3.4 counts the same).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Interrupts taken.
    pub interrupts: u64,
    /// Times the ring was looked at for packets.
    pub polls: u64,
    /// Of those, times it was empty.
    pub empty_polls: u64,
    /// Packets received.
    pub packets: u64,
    /// Polls that used up the quota.
    pub quota_hits: u64,
    /// Packets dropped because the backlog was full.
    pub backlog_drops: u64,
    /// Times interrupts were unmasked again.
    pub rearms: u64,
}

/// What is known of one port.
#[derive(Clone, Debug)]
pub struct State {
    pub mechanism: Mechanism,
    /// An interrupt came and was not served yet.
    pub raised: bool,
    /// Interrupts are unmasked.
    pub armed: bool,
    /// On the polling list.
    pub listed: bool,
    /// When the first packet of a moderated interrupt came.
    pub since_ns: Option<u64>,
    /// Its turn, if a run stopped in the middle of it.
    pub turn: Option<Turn>,
    /// Packets that Disable–Enable has taken since it was this port's turn, in runs before this one.
    pub taken_in_go: usize,
    /// Found empty since [`Reception::look_anew`](super::Reception::look_anew).
    pub emptied: bool,
    pub counters: PortCounters,
}

/// A port's turn: so many packets it may still take, and so many it has taken.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub left: usize,
    pub taken: usize,
}

impl State {
    /// A port that nothing has happened on, with its interrupts masked.
    pub fn new(mechanism: Mechanism) -> State {
        State {
            mechanism,
            raised: false,
            armed: false,
            listed: false,
            since_ns: None,
            turn: None,
            taken_in_go: 0,
            emptied: false,
            counters: PortCounters::default(),
        }
    }

    /// Whether a raised interrupt is to be served now rather than moderated further.
    pub fn due(&self, now_ns: u64) -> bool {
        match self.mechanism {
            Mechanism::Moderated { time_ns, .. } => {
                self.since_ns.is_some_and(|since| now_ns >= since.saturating_add(time_ns))
            }
            _ => true,
        }
    }
}
