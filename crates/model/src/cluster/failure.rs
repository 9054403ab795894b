//! A node fails under traffic: what is lost, which flows move, how long it takes.

use super::hashing::{Group, Hashing, moved, shares};
use super::timers::{CHANGE_MS, Notice};
use fastrand::Rng;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Nodes that there are.
    pub nodes: usize,
    /// Which fails, from 0.
    pub node: usize,
    /// How the front chooses a node.
    pub hashing: Hashing,
    /// Who notices.
    pub notice: Notice,
}

/// What is offered: flows in turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Flows.
    pub flows: u32,
    /// Frames a second of all of them.
    pub rate_fps: f64,
}

impl Offered {
    /// That of `causeway lab cluster`.
    pub const LABORATORY: Offered = Offered { flows: 512, rate_fps: 8_192.0 };
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Flows of each node before.
    pub before: Vec<usize>,
    /// Frames that were lost, in each of the trials.
    pub lost: Vec<f64>,
    /// Milliseconds from the failure until the front forwards another way, in each of the trials.
    pub known_ms: Vec<f64>,
    /// Flows that moved: of the node, and others.
    pub moved: [usize; 2],
    /// Flows that move when it comes back under traffic.
    pub moved_back: [usize; 2],
}

impl Failure {
    /// Tries it, each time with the failure at another moment. Same seed, same numbers.
    pub fn run(&self, offered: Offered, trials: usize, seed: u64) -> Report {
        let mut rng = Rng::with_seed(seed);
        let group = Group::new(self.hashing, self.nodes);
        let before = group.ways(offered.flows);
        let mut without = group.clone();
        without.goes(self.node);
        let after = without.ways(offered.flows);
        let mut again = without.clone();
        again.comes(self.node, false);
        let back = again.ways(offered.flows);
        let (mut lost, mut known_ms) = (Vec::new(), Vec::new());
        for _ in 0..trials {
            let known = self.notice.after_ms(&mut rng) + CHANGE_MS;
            known_ms.push(known);
            lost.push(if self.notice == Notice::Drained {
                0.0
            } else {
                self.lost(&before, offered, known, rng.f64()) as f64
            });
        }
        Report {
            before: shares(&before, self.nodes),
            lost,
            known_ms,
            moved: moved(&before, &after, self.node),
            moved_back: moved(&after, &back, self.node),
        }
    }

    /// Frames to the node from the failure until the front knows; `phase` is where in the flows' turn it comes.
    fn lost(&self, ways: &[Option<usize>], offered: Offered, known_ms: f64, phase: f64) -> u64 {
        let flows = ways.len().max(1);
        let frames = (known_ms / 1e3 * offered.rate_fps) as usize;
        let of_node = |ways: &[Option<usize>]| ways.iter().filter(|way| **way == Some(self.node)).count();
        let first = (phase * flows as f64) as usize;
        let rest = (0..frames % flows).filter(|n| ways[(first + n) % flows] == Some(self.node)).count();
        (frames / flows * of_node(ways) + rest) as u64
    }
}
