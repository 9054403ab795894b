//! Copies the networks of a tree, some at a time.

use super::counter::SCALE;
use super::{EPOCHS_PER_S, NIL, RateTree};
use crate::rate::decimal;

/// Places of levels that a part of a walk looks at.
pub(super) const PLACES: usize = 4_096;

impl RateTree {
    /// Copies networks with a rate, of the next places of a walk over all; says whether there are more.
    pub fn copy(&mut self, walk: &mut Walk, now: u32, to: &mut Vec<Network>) -> bool {
        for _ in 0..PLACES {
            let Walk { bytes, depth } = *walk;
            let Some(level) = self.level_of(&bytes[..depth]) else {
                // It has been closed.
                walk.depth = depth - 1;
                if !walk.on() {
                    return false;
                }
                continue;
            };
            let counter = self.levels.at(level).counters[usize::from(bytes[depth])];
            let below = self.show(counter, now).map(|(rates, below)| {
                to.push(Network { bytes, depth, rates });
                below
            });
            let goes_on = if below.is_some_and(|below| below != NIL) { walk.down() } else { walk.on() };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// The averages of a counter if it has a rate, and the level below it.
    fn show(&mut self, counter: u32, now: u32) -> Option<([i32; 2], u32)> {
        let counter = if counter == NIL { return None } else { self.counters.at(counter) };
        if counter.average.iter().all(|&average| average <= 0) {
            return None;
        }
        counter.pass(now);
        Some((counter.average, counter.next_level))
    }
}

/// How far a walk over all networks is: the one that comes next.
#[derive(Clone, Copy, Default)]
pub(in crate::ip) struct Walk {
    pub(super) bytes: [u8; 4],
    /// Which byte is the last.
    pub(super) depth: usize,
}

impl Walk {
    /// To the first network of this one; false if there can be none.
    fn down(&mut self) -> bool {
        if self.depth == 3 {
            return self.on();
        }
        self.depth += 1;
        self.bytes[self.depth] = 0;
        true
    }

    /// To the next network that is not of this one; false if this was the last.
    fn on(&mut self) -> bool {
        while self.bytes[self.depth] == u8::MAX {
            if self.depth == 0 {
                return false;
            }
            self.depth -= 1;
        }
        self.bytes[self.depth] += 1;
        true
    }
}

/// A network as it is shown.
pub(in crate::ip) struct Network {
    pub(super) bytes: [u8; 4],
    pub(super) depth: usize,
    /// Averages.
    rates: [i32; 2],
}

impl Network {
    /// Appends its line: its bytes, and the rates a second from it and to it.
    pub fn show(&self, text: &mut String) {
        let tabs = "\t".repeat(self.depth);
        let name: Vec<String> = self.bytes[..=self.depth].iter().map(u8::to_string).collect();
        let [from, to] = self.rates.map(|a| decimal(a.max(0) as u64 * EPOCHS_PER_S, SCALE));
        *text += &format!("{tabs}{}\t{from}\t{to}\n", name.join("."));
    }
}
