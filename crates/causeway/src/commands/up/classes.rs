//! The two service classes: packets of the high one go before all others where an output is full.
//!
//! Each output of the graph has a queue for either, served in strict priority ([`Classes::output`]). The driver forwards only
//! where no queue builds ([`mod@meter`]).

mod meter;
mod speeds;

pub use meter::{Meter, Sources};

use super::graph::quote;
use crate::cli::RuntimeArgs;
use crate::commands::run;
use crate::mask::Mask;
use crate::ports::Port;
use anyhow::Result;
use causeway_engine::value::BytesPerSecond;
use std::fmt::Write;

/// Masks that there may be. The NIC of the paper has one for each way out.
pub const MOST: usize = 64;

/// Packets that a queue holds: as many as that of the router in OSR, section 3.2.
const CAPACITY: u32 = 1_000;

/// Which packets are of the high class, and how fast links are.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// A packet that matches one is of the high class, any other of the low one.
    pub high: Vec<Mask>,
    /// Speeds of links where they were given, by interface.
    pub speeds: Vec<(String, BytesPerSecond)>,
}

impl Classes {
    /// Whether there are two classes.
    pub fn are_two(&self) -> bool {
        !self.high.is_empty()
    }

    /// Has the pool hold frames for full queues of these ports as well, if nobody says how many frames there are.
    pub fn make_room(&self, runtime: &mut RuntimeArgs, ports: &[Port]) -> Result<()> {
        if self.are_two() && runtime.frames.is_none() {
            let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
            let queues = (2 * names.len()).saturating_mul(runtime.threads.into());
            let held = queues.saturating_mul(CAPACITY as usize).try_into().unwrap_or(u32::MAX);
            runtime.frames = Some(run::pool(runtime, &names)?.0.wanted.saturating_add(held));
        }
        Ok(())
    }

    /// The speed that was given for an interface.
    pub fn speed(&self, interface: &str) -> Option<BytesPerSecond> {
        self.speeds.iter().rev().find(|(name, _)| name == interface).map(|&(_, speed)| speed)
    }

    /// Writes how packets go from an output of `forward` to the element `out{i}`, which sends to an interface by a method.
    pub fn output(&self, text: &mut String, (output, i): (usize, usize), (interface, method): (&str, &str)) {
        let sends = format!("out{i} :: ToDevice({}, METHOD {method});", quote(interface));
        // Writing to a string cannot fail.
        if !self.are_two() {
            let _ = writeln!(text, "forward[{output}] -> {sends}");
            return;
        }
        let patterns: Vec<String> = self.high.iter().map(Mask::pattern).collect();
        let _ = writeln!(text, "forward[{output}] -> class{i} :: Classifier({}, -);", patterns.join(", "));
        for pattern in 0..=patterns.len() {
            let class = match pattern {
                0 => format!(
                    "high{i} :: Counter -> high_queue{i} :: Queue({CAPACITY}) -> [0]priority{i} :: PrioSched"
                ),
                n if n < patterns.len() => format!("high{i}"),
                _ => format!("low{i} :: Counter -> low_queue{i} :: Queue({CAPACITY}) -> [1]priority{i}"),
            };
            let _ = writeln!(text, "class{i}[{pattern}] -> {class};");
        }
        let shaper = self
            .speed(interface)
            .map_or_else(String::new, |speed| format!("speed{i} :: BandwidthShaper({speed}) -> "));
        let _ = writeln!(text, "priority{i} -> {shaper}{sends}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::link_speed;

    #[test]
    fn speeds_are_given_by_interface() {
        assert_eq!(link_speed("eth=1=80kbps"), Ok(("eth=1".to_owned(), BytesPerSecond(10_000))));
        for wrong in ["eth1", "=1Mbps", "eth1=", "eth1=fast", "eth1=0"] {
            assert!(link_speed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(link_speed("eth1=-5"), Err("'-5' is no bandwidth, such as 100Mbps or 2.5Gbps".to_owned()));
        let speeds = ["a=1Mbps", "b=2Mbps", "a=3Mbps"].map(|text| link_speed(text).unwrap()).to_vec();
        let classes = Classes { high: vec![], speeds };
        let of = |name| classes.speed(name).map(|speed| speed.0);
        assert_eq!([of("a"), of("b"), of("c")], [Some(375_000), Some(250_000), None]);
    }
}
