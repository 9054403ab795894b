//! When cards interrupt: they collect frames, and more of them while there are many (the driver's adaptive coalescing).

use super::RECEIVE;
use crate::event::{SECOND, Time};
use crate::machine::SeveralValues;
use crate::nic::Nic;

/// How much a card collects.
#[derive(Clone, Copy, Debug)]
struct Collects {
    frames: usize,
    time_ps: Time,
}

/// A card's interrupt.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    sends: bool,
    /// With few frames, and with many.
    collects: [Collects; 2],
    many_per_look: u64,
    many: bool,
    /// Frames that came or went since the last look.
    pub frames: u64,
    /// When there was something to say first.
    since_ps: Option<Time>,
    /// When it is looked at again.
    pub looked_at: Option<Time>,
}

impl Signal {
    /// That of a port's card.
    pub fn new(port: usize, several: &SeveralValues) -> Signal {
        let of = |frames: u64, time_ps: Time| Collects { frames: frames as usize, time_ps };
        let sent = of(several.sent_frames.value, several.sent_time.value);
        let few = of(several.few_frames.value, several.few_time.value);
        let many = of(several.many_frames.value, several.many_time.value);
        Signal {
            sends: port == RECEIVE,
            collects: if port == RECEIVE { [sent; 2] } else { [few, many] },
            many_per_look: several.many.value * several.look.value / SECOND,
            many: false,
            frames: 0,
            since_ps: None,
            looked_at: None,
        }
    }

    fn collects(&self) -> Collects {
        self.collects[usize::from(self.many)]
    }

    /// Whether its card interrupts now.
    pub fn is_due(&self, nic: &Nic, now_ps: Time) -> bool {
        let frames = if self.sends { nic.to_clean() } else { nic.waiting() };
        let waited = self.since_ps.is_some_and(|since| since + self.collects().time_ps <= now_ps);
        nic.interrupts_at().is_some() && (frames >= self.collects().frames || waited)
    }

    /// Its card has something to say: when it interrupts if nothing else comes.
    pub fn due_ps(&mut self, now_ps: Time) -> Time {
        *self.since_ps.get_or_insert(now_ps) + self.collects().time_ps
    }

    /// The interrupt is taken.
    pub fn take(&mut self) {
        self.since_ps = None;
    }

    /// Looks how many frames there were since the last look.
    pub fn look(&mut self) {
        self.many = std::mem::take(&mut self.frames) >= self.many_per_look;
    }
}
