//! What a device counts itself, if it is this program (*performance counters* of LUT §III.D and §3.4): interrupts that its
//! reception mechanisms took, polls, and packets that these brought; cleanings of the transmit rings; packets dropped, by reason.

use super::Runs;
use anyhow::{Context, Result};
use causeway_engine::read_line;
use causeway_netio::{RX_DROP, TX_DROP};
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

/// All of it since the device was started, by the element's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Of elements that receive.
    pub receptions: BTreeMap<String, Reception>,
    /// Of elements that transmit by AF_XDP: how often the completion ring was cleaned, and of how many frames.
    pub cleanings: BTreeMap<String, Runs>,
    /// Packets dropped, by element and reason.
    pub drops: BTreeMap<String, u64>,
}

/// Reads it out of a router's `counters` handler: worker, element, name and value a line.
///
/// # Errors
/// If it is of another version.
pub fn parse(text: &str) -> Result<Reported> {
    let mut found = Reported::default();
    for line in text.lines() {
        let read = read_line(line).context("the router's counters are of another version")?;
        // Workers count apart.
        found.add(read);
    }
    Ok(found)
}

impl Reported {
    fn add(&mut self, (element, name, value): (&str, &str, u64)) {
        if let Some(what) = name.strip_prefix("rx.") {
            let of = self.receptions.entry(element.to_owned()).or_default();
            match what {
                "interrupts" => of.interrupts += value,
                "polls" => of.polls += value,
                "packets" => of.packets += value,
                _ => {}
            }
        } else if let Some(reason) = reason(name) {
            *self.drops.entry(format!("{element}, {reason}")).or_default() += value;
        } else if let Some(what) = name.strip_prefix("port.tx_clean") {
            let of = self.cleanings.entry(element.to_owned()).or_default();
            match what {
                "ings" => of.runs += value,
                "ed_frames" => of.packets += value,
                _ => {}
            }
        }
    }
}

/// Why packets were dropped that are counted under this name, by an element or by its port; `None` if they were not.
fn reason(name: &str) -> Option<String> {
    let of_port = |name: &str| {
        let reason = name.strip_prefix(RX_DROP).or_else(|| name.strip_prefix(TX_DROP))?;
        Some(reason.replace('_', "-"))
    };
    let of_element = name.strip_prefix("drop.").map(str::to_owned);
    of_element.or_else(|| of_port(name.strip_prefix("port.")?))
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
    fn what_workers_counted_is_added_up() {
        let text = "0\tin0\trx.interrupts\t3\n0\tin0\trx.polls\t10\n0\tin0\trx.packets\t40\n0\tin0\tcount\t9\n\
                    1\tin0\trx.polls\t2\n0\tin1\trx.polls\t1\n0\tout0\tport.tx_cleanings\t4\n\
                    0\tout0\tport.tx_cleaned_frames\t31\n1\tout0\tport.tx_cleanings\t1\n\
                    0\tttl\tdrop.expired\t2\n1\tttl\tdrop.expired\t3\n0\tin0\tport.rx_drop_ring_full\t6\n\
                    0\tout0\tport.tx_drop_closed\t7\n0\tin0\tport.device_rx_dropped\t8\n";
        let found = parse(text).expect("counters");
        assert_eq!(found.receptions["in0"], Reception { interrupts: 3, polls: 12, packets: 40 });
        assert_eq!((found.receptions.len(), found.receptions["in1"].polls), (2, 1));
        assert_eq!(found.cleanings, BTreeMap::from([("out0".to_owned(), Runs { runs: 5, packets: 31 })]));
        let drops = [("in0, ring-full", 6), ("out0, closed", 7), ("ttl, expired", 5)];
        assert_eq!(found.drops, BTreeMap::from(drops.map(|(reason, count)| (reason.to_owned(), count))));
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
