//! Flows that are ended before their time, by a handler or a hot swap.
//!
//! They may be a million, so that they are gone at once but keep their places for a while: a walk over all places, a few
//! at a time, frees those. What comes meanwhile has a higher number. Where more are ended the walk goes on from where it is,
//! once around the places that there are then: it comes to all places however often that happens, and whatever is added.

use super::flows::Flow;

/// Flows to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those of an input of a rewriter.
    Input(u32, usize),
    /// Those of a rewriter but for the inputs that are `kept`, and of these the ones with another output than the first `outputs`.
    But {
        member: u32,
        kept: Vec<bool>,
        outputs: usize,
    },
}

impl Which {
    fn has(&self, flow: &Flow) -> bool {
        let input = usize::from(flow.input);
        match self {
            Which::All => true,
            Which::Input(member, of) => flow.member == *member && input == *of,
            Which::But { member, kept, outputs } => {
                let is_kept = kept.get(input).is_some_and(|kept| *kept);
                let has_outputs = flow.outputs.iter().all(|&output| usize::from(output) < *outputs);
                flow.member == *member && !(is_kept && has_outputs)
            }
        }
    }
}

/// Those that were, as long as some may have places.
#[derive(Default)]
pub(super) struct Ended {
    /// With the number of the first flow that came later.
    which: Vec<(u64, Which)>,
    /// The place that the walk comes to next.
    place: usize,
    /// Places that there were when the walk began or began anew: those that were added have no flow that is ended.
    spread: usize,
    /// Places that it has still to come to; none if there is no walk.
    left: usize,
}

impl Ended {
    /// Flows before this number are ended, in a table of so many places.
    pub fn add(&mut self, number: u64, which: Which, places: usize) {
        // What is ended a second time was the first time as well.
        self.which.retain(|(_, earlier)| which != Which::All && *earlier != which);
        self.which.push((number, which));
        (self.left, self.spread) = (places, places);
        self.walked(0, self.place);
    }

    /// Where the walk goes on, while there is one.
    pub fn next(&self) -> Option<usize> {
        (self.left > 0).then_some(self.place)
    }

    /// Places to the end of the walk, or to where it goes on at the first.
    pub fn left(&self) -> usize {
        self.left.min(self.spread - self.place)
    }

    /// The walk has come past so many places, and goes on at `next`.
    pub fn walked(&mut self, places: usize, next: usize) {
        self.left = self.left.saturating_sub(places);
        self.place = if next < self.spread { next } else { 0 };
        if self.left == 0 {
            *self = Ended::default();
        }
    }

    /// Whether there may be some.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether the flow is one of them.
    pub fn has(&self, flow: &Flow) -> bool {
        self.which.iter().any(|(before, which)| flow.number < *before && which.has(flow))
    }
}
