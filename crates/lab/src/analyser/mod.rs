//! The receiving side: which frames came, in which order, and how late.
//!
//! It is given frames and times and has no clock of its own. Terms are those of RFC 4737 (reordering), RFC 5560 (duplication)
//! and RFC 8219 (delay and its variation):
//!
//! * a frame is **in order** if its number is above those of all frames of its flow that came before, **reordered** if
//!   one of a higher number came before it, **duplicated** if it came before itself; each is counted apart;
//! * a frame that comes [`WINDOW`] numbers or more behind its flow's highest is **too late**: it is not remembered
//!   whether it has been there, so it is counted apart, and as lost;
//! * **lost** are those sent that came neither in order nor reordered;
//! * **delay** is of frames that come the first time; its **variation** is, as RFC 8219 §7.3 has it, the 99.9th percentile above the
//!   minimum (PDV), or the difference of two frames that were sent one after the other (IPDV).

mod latency;
#[cfg(test)]
mod tests;

pub use causeway_elements::sequence::{Arrival, Counts, Sequence, WINDOW};
pub use latency::{Distribution, Latency};

use crate::frame::{Seen, wrap_ns};

/// A step of a timeline in nanoseconds.
pub const STEP_NS: u64 = 10_000_000;
/// Steps of a timeline at most: frames that come later are not in it.
const STEPS: usize = 6_000;

/// What was sent of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// When the last one was, in nanoseconds from the start of the trial.
    pub last_ns: u64,
}

/// What came in a trial, as far as it has come.
#[derive(Debug)]
pub struct Analyser {
    trial: u16,
    flows: Vec<Flow>,
    latency: Latency,
    corrupt: u64,
    foreign: u64,
    earlier: u64,
    last_gap_ns: Option<u64>,
    last_arrival_ns: Option<u64>,
    longest_silence_ns: u64,
    timeline: Vec<u64>,
}

#[derive(Debug, Default)]
struct Flow {
    sequence: Sequence,
    /// Number and delay of the last frame that came in order.
    previous: Option<(u32, u64)>,
}

/// What came of what was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Of each flow.
    pub flows: Vec<Counts>,
    /// The tester's frames that were broken on their way.
    pub corrupt: u64,
    /// Frames of others.
    pub foreign: u64,
    /// Frames of an earlier trial, or of a flow that does not exist.
    pub earlier: u64,
    /// Delay of all frames.
    pub latency: Distribution,
    /// Difference of delay between frames that were sent one after the other (RFC 8219 §7.3.2), without sign.
    pub ipdv: Distribution,
    /// Frames that came before they were sent: the clocks do not agree.
    pub before_sent: u64,
    /// When the frame after the last loss was sent, in nanoseconds from the start of the trial; that of the last frame if that was lost. Reordering
    /// counts as loss here.
    pub last_loss_ns: Option<u64>,
    /// The longest time between two arrivals of any flow, in nanoseconds.
    pub longest_silence_ns: u64,
    /// Frames that came the first time in each [step](STEP_NS) from the start of the trial, up to the last in which one
    /// came.
    pub timeline: Vec<u64>,
}

impl Analysis {
    /// All flows together.
    pub fn total(&self) -> Counts {
        self.flows.iter().fold(Counts::default(), |sum, flow| sum.plus(flow))
    }

    /// Packet delay variation: the 99.9th percentile of the delay less its minimum (RFC 8219 §7.3.1), in nanoseconds.
    pub fn pdv_ns(&self) -> Option<u64> {
        Some(self.latency.percentile_ns(0.999)? - self.latency.min_ns()?)
    }
}

impl Analyser {
    /// For trial number `trial` of so many flows. What it needs is allocated here.
    pub fn new(trial: u16, flows: usize) -> Analyser {
        Analyser {
            trial,
            flows: std::iter::repeat_with(Flow::default).take(flows).collect(),
            latency: Latency::new(),
            corrupt: 0,
            foreign: 0,
            earlier: 0,
            last_gap_ns: None,
            last_arrival_ns: None,
            longest_silence_ns: 0,
            timeline: Vec::with_capacity(STEPS),
        }
    }

    /// A frame came at `at_ns` from the start of the trial. Times do not fall.
    #[inline]
    pub fn record(&mut self, seen: Seen, at_ns: u64) {
        let tag = match seen {
            Seen::Test(tag) => tag,
            Seen::Corrupt => {
                self.corrupt += 1;
                return;
            }
            Seen::Foreign => {
                self.foreign += 1;
                return;
            }
        };
        let Some(flow) = self.flows.get_mut(usize::from(tag.flow)).filter(|_| tag.trial == self.trial) else {
            self.earlier += 1;
            return;
        };
        let silence = at_ns.saturating_sub(self.last_arrival_ns.unwrap_or(at_ns));
        self.longest_silence_ns = self.longest_silence_ns.max(silence);
        self.last_arrival_ns = Some(at_ns);
        let arrival = flow.sequence.arrived(tag.sequence);
        let delay = match arrival {
            Arrival::InOrder { .. } | Arrival::Reordered => self.latency.delay(tag.sent_ns, wrap_ns(at_ns)),
            Arrival::Duplicate | Arrival::TooLate => return,
        };
        note(&mut self.timeline, at_ns);
        let Arrival::InOrder { missing } = arrival else { return };
        if missing > 0 {
            self.last_gap_ns = self.last_gap_ns.max(Some(tag.sent_ns));
        }
        if let (Some(delay), Some((number, before))) = (delay, flow.previous)
            && number + 1 == tag.sequence
        {
            self.latency.difference(delay.abs_diff(before));
        }
        flow.previous = delay.map(|delay| (tag.sequence, delay));
    }

    /// What must have been sent of each flow by what has come: up to the highest number.
    pub fn at_least_sent(&self) -> Vec<Sent> {
        self.flows.iter().map(|flow| Sent { frames: flow.sequence.next(), last_ns: 0 }).collect()
    }

    /// Ends the trial: nothing comes any more of what was `sent`, flow by flow.
    pub fn finish(self, sent: &[Sent]) -> Analysis {
        let mut last_loss_ns = self.last_gap_ns;
        let flows = self.flows.iter().enumerate().map(|(i, flow)| {
            let sent = sent.get(i).copied().unwrap_or_default();
            if flow.sequence.next() < sent.frames {
                last_loss_ns = last_loss_ns.max(Some(sent.last_ns));
            }
            flow.sequence.counts(sent.frames)
        });
        let flows = flows.collect();
        let (latency, ipdv, before_sent) = self.latency.finish();
        Analysis {
            flows,
            corrupt: self.corrupt,
            foreign: self.foreign,
            earlier: self.earlier,
            latency,
            ipdv,
            before_sent,
            last_loss_ns,
            longest_silence_ns: self.longest_silence_ns,
            timeline: self.timeline,
        }
    }
}

/// Counts a frame of this time.
#[inline]
fn note(timeline: &mut Vec<u64>, at_ns: u64) {
    let step = usize::try_from(at_ns / STEP_NS).unwrap_or(STEPS);
    if step < STEPS {
        if step >= timeline.len() {
            // There is room for it.
            timeline.resize(step + 1, 0);
        }
        timeline[step] += 1;
    }
}
