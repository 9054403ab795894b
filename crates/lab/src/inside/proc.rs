//! Processors as /proc has them: how long they were idle, and what interrupted them.

use anyhow::{Context, Result};

/// Counts since the machine started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proc {
    /// Of each processor: ticks in all, and idle ones among them.
    processors: Vec<(u64, u64)>,
    interrupts: u64,
    switches: u64,
    /// Runs of the network's soft interrupts.
    receptions: u64,
    transmissions: u64,
}

/// What happened between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The part of the time that each processor was idle, 0 to 1 (AFF calls it availability).
    pub availability: Vec<f64>,
    /// Interrupts of devices and timers.
    pub interrupts: u64,
    /// Changes of thread.
    pub switches: u64,
    /// Soft interrupts for reception.
    pub receptions: u64,
    /// Soft interrupts for transmission.
    pub transmissions: u64,
}

impl Load {
    /// The part of the time of all processors that they were idle, 0 to 1.
    pub fn idle(&self) -> f64 {
        self.availability.iter().sum::<f64>() / self.availability.len().max(1) as f64
    }
}

impl Proc {
    /// Now.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn read() -> Result<Proc> {
        let text = |path: &'static str| std::fs::read_to_string(path).context(path);
        Ok(Proc::parse(&text("/proc/stat")?, &text("/proc/softirqs")?))
    }

    fn parse(stat: &str, softirqs: &str) -> Proc {
        let mut found = Proc::default();
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let first = numbers.first().copied().unwrap_or(0);
            match name {
                "intr" => found.interrupts = first,
                "ctxt" => found.switches = first,
                // user, nice, system, idle, waiting for disks, interrupts, soft ones, stolen; guests are in the first two.
                _ if name.len() > 3 && name.starts_with("cpu") => {
                    let idle = numbers.iter().skip(3).take(2).sum();
                    found.processors.push((numbers.iter().take(8).sum(), idle));
                }
                _ => {}
            }
        }
        let of = |what: &str| {
            let line = softirqs.lines().find_map(|line| line.trim().strip_prefix(what));
            let numbers = line.unwrap_or_default().split_whitespace();
            numbers.filter_map(|word| word.parse::<u64>().ok()).sum()
        };
        (found.receptions, found.transmissions) = (of("NET_RX:"), of("NET_TX:"));
        found
    }

    /// From `before` to here.
    pub fn since(&self, before: &Proc) -> Load {
        let part = |(now, then): (&(u64, u64), &(u64, u64))| {
            let (all, idle) = (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
            if all == 0 { 1.0 } else { idle as f64 / all as f64 }
        };
        Load {
            availability: self.processors.iter().zip(&before.processors).map(part).collect(),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            switches: self.switches.saturating_sub(before.switches),
            receptions: self.receptions.saturating_sub(before.receptions),
            transmissions: self.transmissions.saturating_sub(before.transmissions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_interrupts_are_what_was_between_two_looks() {
        let stat = |idle: u64, busy: u64| {
            format!(
                "cpu  0 0 0 0\ncpu0 {busy} 0 10 {idle} 5 0 1 0 7 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr {} 4 5\nctxt 9\n",
                busy * 2
            )
        };
        let soft = |n: u64| format!("      CPU0 CPU1\n TIMER: 1 1\n NET_TX: {n} 0\n NET_RX: {n} {n}\n");
        let before = Proc::parse(&stat(100, 50), &soft(3));
        let load = Proc::parse(&stat(130, 120), &soft(10)).since(&before);
        // 30 of 100 ticks; those of guests are counted once. The other processor had none.
        assert_eq!(load.availability, [0.3, 1.0]);
        assert_eq!((load.interrupts, load.receptions, load.transmissions, load.switches), (140, 14, 7, 0));
        assert_eq!(Proc::parse("nonsense\ncpu\n\n", "").since(&before), Load::default());
    }
}
