//! One port of a tester and a tap: frames for two cards in turn, on a wire that both hear (AFF §3.1).

use super::RECEIVE;
use crate::event::Time;
use crate::link::Link;

/// Lengths of frames, so that seven are short, four of middle length and one is long.
const MIX: [u32; 12] = [64, 594, 64, 64, 594, 64, 1_518, 64, 594, 64, 594, 64];

/// The tester's port.
#[derive(Clone, Debug)]
pub(super) struct Tap {
    link: Link,
    /// The length of all frames; `None`: [`MIX`].
    bytes: Option<u32>,
    /// Mean time from frame to frame, when the next one is meant to begin, and when the wire is free.
    between_ps: f64,
    intended_ps: f64,
    wire_free_ps: Time,
    numbers: u64,
}

impl Tap {
    pub fn new(link: Link, bytes: Option<u32>, between_ps: f64) -> Tap {
        Tap { link, bytes, between_ps, intended_ps: between_ps / 2.0, wire_free_ps: 0, numbers: 0 }
    }

    fn bytes(&self) -> u32 {
        self.bytes.unwrap_or(MIX[self.numbers as usize % MIX.len()])
    }

    /// When the next frame has left the tester whole.
    pub fn next_ps(&mut self) -> Time {
        let begins_ps = self.wire_free_ps.max(self.intended_ps as Time);
        self.wire_free_ps = begins_ps + self.link.frame_ps(self.bytes());
        self.intended_ps += self.between_ps;
        self.wire_free_ps
    }

    /// The frame that has come: its number, the card that has its address, its length. Each card gets as many of each length.
    pub fn take(&mut self) -> (u64, usize, u32) {
        let (number, bytes) = (self.numbers, self.bytes());
        self.numbers += 1;
        let rounds = number as usize / MIX.len();
        (number, (number as usize + rounds) % RECEIVE, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_card_gets_as_many_of_each_length() {
        let mut tap = Tap::new(Link { rate_bps: 1_000_000_000 }, None, 1.0);
        let mut seen = [[0; RECEIVE]; 3];
        let mut last_ps = 0;
        for _ in 0..24 * 100 {
            last_ps = tap.next_ps();
            let (_, card, bytes) = tap.take();
            seen[[64, 594, 1_518].iter().position(|one| *one == bytes).expect("a length")][card] += 1;
        }
        assert_eq!(seen, [[700; 2], [400; 2], [100; 2]]);
        // As fast as the wire goes, which is 327 000 a second.
        assert_eq!((2_400.0 * 1e12 / last_ps as f64 / 1e3).round(), 327.0);
    }
}
