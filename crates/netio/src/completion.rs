//! Completions: which tagged packets have been sent, and when.

use causeway_packet::Packet;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// Completions that a half keeps for who does not ask for them; of more the oldest are forgotten.
const KEPT: usize = 4_096;

/// Which clock a time was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's `CLOCK_REALTIME`: nanoseconds since the epoch.
    Realtime,
    /// The kernel's `CLOCK_TAI`: as `Realtime`, without leap seconds.
    Tai,
    /// The device's own, which may be set to anything.
    Device,
}

impl Clock {
    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Realtime => "realtime",
            Clock::Tai => "tai",
            Clock::Device => "device",
        }
    }
}

/// A packet with a transmit tag has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The packet's tag.
    pub tag: u64,
    /// When it was sent, in nanoseconds, and by which clock; `None` where that is not known.
    pub sent: Option<(u64, Clock)>,
}

/// Completions that nobody has asked for yet.
#[derive(Debug, Default)]
pub struct Completions(VecDeque<Completion>);

impl Completions {
    /// Keeps one.
    pub fn add(&mut self, completion: Completion) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(completion);
    }

    /// These packets have just been handed to the kernel or to who receives them. The clock is read if one is tagged.
    pub fn sent<'a>(&mut self, packets: impl Iterator<Item = &'a Packet>) {
        let mut now = None;
        for tag in packets.filter_map(Packet::transmit_tag) {
            let ns = *now.get_or_insert_with(realtime_ns);
            self.add(Completion { tag, sent: Some((ns, Clock::Realtime)) });
        }
    }

    /// Gives all to `sink`, the oldest first.
    pub fn take(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.0.drain(..).for_each(sink);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "once a batch, and only where somebody asked when its packets are sent"
)]
fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64
}
