//! Where and how a run was made: what numbers mean nothing without.

use causeway_results::{Machine, Run};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, the compilers and what they were told.
pub struct Environment {
    began: SystemTime,
    machine: Machine,
    settings: Vec<(&'static str, String)>,
    versions: Vec<(&'static str, String)>,
}

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

/// The command line, without the folders that program and files are in.
fn command() -> Vec<String> {
    let name = |word: String| word.rsplit_once('/').map_or(word.clone(), |(_, name)| name.to_owned());
    std::env::args().map(name).collect()
}

impl Environment {
    /// Of this process, with or without DPDK.
    pub fn here(dpdk: bool) -> Self {
        let flags = line("/proc/cpuinfo", "flags");
        let has = |feature: &&str| flags.split(' ').any(|flag| flag == *feature);
        let features: Vec<_> = FEATURES.into_iter().filter(has).collect();
        Environment {
            began: SystemTime::now(),
            machine: Machine::here(),
            settings: vec![
                ("instructions", features.join(" ")),
                (
                    "caches",
                    said("sh", &["-c", "lscpu | sed -n 's/^L\\(.*\\) cache: */L\\1 /p' | paste -sd, -"]),
                ),
                ("huge pages", line("/sys/kernel/mm/transparent_hugepage/enabled", "")),
            ],
            versions: vec![
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
            ],
        }
    }

    /// For the result file.
    pub fn run(&self) -> Run {
        let owned = |pairs: &[(&str, String)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        Run {
            command: command(),
            began_unix_s: self.began.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            machine: self.machine.clone(),
            versions: owned(&self.versions),
            settings: owned(&self.settings),
        }
    }

    /// For the page.
    pub fn markdown(&self) -> String {
        let Machine { processor, processors, kernel, load_average } = &self.machine;
        let machine = [
            ("processor", format!("{processor}, {processors} of them")),
            ("kernel", kernel.clone()),
            ("load before", load_average.clone()),
        ];
        let arguments = ("arguments", command()[1..].join(" "));
        let all = machine.iter().chain(&self.settings).chain(&self.versions).chain([&arguments]);
        let row = |(name, value): &(&str, String)| format!("| {name} | {value} |\n");
        format!("| | |\n| --- | --- |\n{}", all.map(row).collect::<String>())
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
