//! The machine that numbers come from.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// Processor, kernel and how busy they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Number of processors.
    pub processors: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Load averages over 1, 5 and 15 minutes before the run.
    pub load_average: String,
}

impl Machine {
    /// This machine, now. What it does not tell stays empty.
    pub fn here() -> Machine {
        let text = |path| read_to_string(path).unwrap_or_default();
        let processors = text("/proc/cpuinfo");
        let name = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let load = text("/proc/loadavg");
        Machine {
            processor: name.unwrap_or_default().trim_start_matches([':', ' ', '\t']).to_owned(),
            processors: processors.lines().filter(|line| line.starts_with("processor")).count(),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_average: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}
