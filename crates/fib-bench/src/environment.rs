//! Where and how a run was made: what numbers mean nothing without.

use serde_json::{Value, json};

/// The machine, the compilers and what they were told.
pub struct Environment(Vec<(&'static str, String)>);

/// Instructions that lookups can use.
const FEATURES: [&str; 7] = ["popcnt", "bmi1", "bmi2", "avx2", "avx512f", "avx512bw", "avx512vl"];

fn line(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    found.trim_start_matches([' ', '\t', ':']).trim_end().to_owned()
}

fn said(command: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(command).args(arguments).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Those of the command line, without the folders that files are in.
fn arguments() -> String {
    let name = |word: String| word.rsplit_once('/').map_or(word.clone(), |(_, name)| name.to_owned());
    std::env::args().skip(1).map(name).collect::<Vec<_>>().join(" ")
}

impl Environment {
    /// Of this process, with or without DPDK.
    pub fn here(dpdk: bool) -> Self {
        let flags = line("/proc/cpuinfo", "flags");
        let has = |feature: &&str| flags.split(' ').any(|flag| flag == *feature);
        let features: Vec<_> = FEATURES.into_iter().filter(has).collect();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        Environment(vec![
            ("processor", format!("{}, {processors} of them", line("/proc/cpuinfo", "model name"))),
            ("instructions", features.join(" ")),
            ("caches", said("sh", &["-c", "lscpu | sed -n 's/^L\\(.*\\) cache: */L\\1 /p' | paste -sd, -"])),
            ("kernel", line("/proc/sys/kernel/osrelease", "")),
            ("huge pages", line("/sys/kernel/mm/transparent_hugepage/enabled", "")),
            ("load before", line("/proc/loadavg", "")),
            ("commit", said("git", &["describe", "--always", "--dirty"])),
            (
                "ours",
                format!(
                    "{}, {}; AVX2 and BMI2 where the processor has them, found at run time",
                    env!("RUSTC_VERSION"),
                    env!("BUILD_FLAGS")
                ),
            ),
            ("DPDK", dpdk_version(dpdk)),
            ("arguments", arguments()),
        ])
    }

    /// For the result file.
    pub fn json(&self) -> Value {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }

    /// For the page.
    pub fn markdown(&self) -> String {
        let row = |(name, value): &(&str, String)| format!("| {name} | {value} |\n");
        format!("| | |\n| --- | --- |\n{}", self.0.iter().map(row).collect::<String>())
    }
}

#[cfg(dpdk)]
fn dpdk_version(takes_part: bool) -> String {
    match takes_part {
        true => format!(
            "{}, the distribution's libraries, built for any x86-64 processor, with the 512-bit lookups of rte_fib where the processor has them; our shim around them with -O3 -march=native",
            crate::dpdk::version()
        ),
        false => "left out".to_owned(),
    }
}

#[cfg(not(dpdk))]
fn dpdk_version(_: bool) -> String {
    "not installed where this was built".to_owned()
}
