//! What the reception mechanisms of a device count, if it is this program: interrupts that were taken, polls, and packets
//! that these brought (*performance counters* of LUT §III.D).

use anyhow::{Context, Result};
use causeway_engine::read_line;
use std::collections::BTreeMap;

/// What an element has counted that receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Interrupts that were taken.
    pub interrupts: u64,
    /// Times that the port was asked for packets.
    pub polls: u64,
    /// Packets that it had.
    pub packets: u64,
}

/// By the element's name.
pub type Receptions = BTreeMap<String, Reception>;

/// Reads them out of a router's `counters` handler: worker, element, name and value a line.
///
/// # Errors
/// If it is of another version.
pub fn parse(text: &str) -> Result<Receptions> {
    let mut found = Receptions::new();
    for line in text.lines() {
        let read = read_line(line).context("the router's counters are of another version")?;
        let (element, name, value) = read;
        let Some(what) = name.strip_prefix("rx.") else { continue };
        let of = found.entry(element.to_owned()).or_default();
        // Workers count apart.
        match what {
            "interrupts" => of.interrupts += value,
            "polls" => of.polls += value,
            "packets" => of.packets += value,
            _ => {}
        }
    }
    Ok(found)
}

impl Reception {
    /// What was counted since `before`; of a device that was started again, what it has counted.
    #[must_use]
    pub fn since(&self, before: &Reception) -> Reception {
        if before.polls > self.polls {
            return *self;
        }
        Reception {
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            polls: self.polls - before.polls,
            packets: self.packets.saturating_sub(before.packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receptions_are_the_sums_of_the_workers() {
        let text = "0\tin0\trx.interrupts\t3\n0\tin0\trx.polls\t10\n0\tin0\trx.packets\t40\n0\tin0\tcount\t9\n\
                    1\tin0\trx.polls\t2\n0\tin1\trx.polls\t1\n";
        let found = parse(text).expect("counters");
        assert_eq!(found["in0"], Reception { interrupts: 3, polls: 12, packets: 40 });
        assert_eq!((found.len(), found["in1"].polls), (2, 1));
        assert!(parse("0\tin0\trx.polls\tmany").is_err() && parse("in0").is_err());
    }

    #[test]
    fn a_device_that_was_started_again_counts_from_zero() {
        let [before, after] = [(3, 12, 40), (5, 30, 90)].map(|(interrupts, polls, packets)| Reception {
            interrupts,
            polls,
            packets,
        });
        assert_eq!(after.since(&before), Reception { interrupts: 2, polls: 18, packets: 50 });
        assert_eq!(before.since(&after), before);
    }
}
