//! The paper's enhanced cards (FPGA, section III): cards that find routes themselves, and hand packets to each other over the
//! shared bus by a protocol of requests, grants and bursts, without the processor.
//!
//! What their fast path should do, without the Verilog: the schedulers' rules, a bus on which a sequence costs its overhead
//! and a cycle a word, and the blocks' latencies as numbers. It steps through bus clock cycles, knows packets but no
//! bytes, and is some hundred times faster than the simulation of the Verilog in `fpga/sim`, whose statistics a test there
//! holds against it within 5 %. Where the two differ, a rule or a latency is not what it was thought to be.
//!
//! Left out: the slow path, which is that of commercial cards, disconnects, failures, and the smallest grant.

mod cards;
mod report;
mod source;
#[cfg(test)]
mod tests;

pub use cards::{Statistics, predict};
pub use report::{Answer, Case, ask, document, keep, lines};
pub use source::{Due, Generator, OVERHEAD_BYTES, Source, Spacing, mesh};

/// What is asked of them.
pub const ABOUT: &str =
    "FPGA's own cards, which route by themselves: scenarios A to F, and 2 to 8 of them, on both buses";
/// A bus clock's period at 66 MHz, as the cards were built.
pub const PCI_66_PS: u64 = 15_000;
/// At 133 MHz, the 8 Gbit/s of the paper's bus.
pub const PCI_133_PS: u64 = 7_500;

/// Which pending request the response scheduler answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The paper's.
    RoundRobin,
    /// Round robin among those with high-class bytes, if there are any.
    HighFirst,
    /// The one with the most high-class bytes; room for the low class only as far as no other's high class asks for it.
    LongestHigh,
    /// Turns of so many words.
    Surplus {
        /// Words of a turn.
        quantum_words: u16,
    },
}

impl Policy {
    /// The rules with their usual parameters.
    pub const ALL: [Self; 4] =
        [Self::RoundRobin, Self::HighFirst, Self::LongestHigh, Self::Surplus { quantum_words: 256 }];

    /// Its name in results and scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::HighFirst => "high-first",
            Self::LongestHigh => "longest-high",
            Self::Surplus { .. } => "surplus",
        }
    }
}

/// What the cards are, and what they are offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The number of cards, 2 to 8.
    pub cards: usize,
    /// Whether the cards classify.
    pub classify: bool,
    /// What the ports are offered.
    pub sources: Vec<Source>,
    /// Bus cycles of overhead a sequence; at least the protocol's own five.
    pub bus_overhead_cycles: u64,
    /// The response scheduler's rule.
    pub policy: Policy,
    /// The clock of bus and packet logic.
    pub bus_period_ps: u64,
    /// Time before measuring; queues fill meanwhile.
    pub warm_up_ns: u64,
    /// Time measured.
    pub measure_ns: u64,
    /// Seed of random spacing.
    pub seed: u64,
}

impl Scenario {
    /// A scenario with the defaults: no classes, ten cycles of bus overhead, 66 MHz, 1 ms and 10 ms.
    pub fn new(cards: usize, sources: Vec<Source>) -> Scenario {
        Scenario {
            cards,
            classify: false,
            sources,
            bus_overhead_cycles: 10,
            policy: Policy::RoundRobin,
            bus_period_ps: PCI_66_PS,
            warm_up_ns: 1_000_000,
            measure_ns: 10_000_000,
            seed: 1,
        }
    }
}
