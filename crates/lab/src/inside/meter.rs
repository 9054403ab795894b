//! Processor time that a device takes.

use anyhow::{Context, Result};
use std::fmt;

/// Nanoseconds of a tick of /proc/stat: user space sees a hundred of them a second, whatever the kernel's own clock.
const TICK_NS: u64 = 10_000_000;

/// Whose time counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// That of processes.
    Processes(Vec<u32>),
    /// All that these processors were not idle, where they have nothing else to do.
    Processors(Vec<usize>),
}

impl Meter {
    /// How much it has been so far, in nanoseconds.
    ///
    /// # Errors
    /// If a process has ended, or the kernel does not say.
    pub fn read_ns(&self) -> Result<u64> {
        match self {
            Meter::Processes(all) => all.iter().map(|&process| process_ns(process)).sum(),
            Meter::Processors(all) => {
                let path = "/proc/stat";
                Ok(busy_ns(&std::fs::read_to_string(path).context(path)?, all))
            }
        }
    }
}

impl fmt::Display for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meter::Processes(_) => f.write_str(
                "that of its processes; what the kernel or an XDP program does outside of them is not in it",
            ),
            Meter::Processors(all) => write!(f, "all that the processors {all:?} were not idle"),
        }
    }
}

/// Processor time of the threads that a process has, in nanoseconds.
///
/// # Errors
/// If there is no such process.
pub fn process_ns(process: u32) -> Result<u64> {
    let folder = format!("/proc/{process}/task");
    let mut sum = 0;
    for thread in std::fs::read_dir(&folder).context(folder)? {
        // A thread that ended meanwhile counts no more.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// Of /proc/stat, the time in which these processors did something: users' (also nice ones), the kernel's, interrupts', soft
/// ones'. What the machine below took is not theirs.
fn busy_ns(stat: &str, processors: &[usize]) -> u64 {
    const BUSY: [usize; 5] = [0, 1, 2, 5, 6];
    let ticks = stat.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let number: usize = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let busy = BUSY.iter().filter_map(|&at| numbers.get(at)).sum::<u64>();
        processors.contains(&number).then_some(busy)
    });
    ticks.sum::<u64>() * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_when_they_are_neither_idle_nor_taken() {
        let stat =
            "cpu  9 9 9 9\ncpu0 1 2 4 1000 1000 8 16 1000 5 5\ncpu1 100 0 0 7\ncpu10 50 0 0 0\nintr 3\n";
        assert_eq!(busy_ns(stat, &[0]), 31 * TICK_NS);
        assert_eq!(busy_ns(stat, &[1, 10]), 150 * TICK_NS);
        assert_eq!(busy_ns(stat, &[2]), 0);
    }

    #[test]
    fn a_process_has_the_time_of_its_threads() {
        let meter = Meter::Processes(vec![std::process::id()]);
        let before = meter.read_ns().expect("this process");
        let work = || (0..10_000_000_u64).fold(0, |sum: u64, n| std::hint::black_box(sum.wrapping_add(n)));
        std::hint::black_box(work());
        assert!(meter.read_ns().expect("this process") > before);
        assert!(Meter::Processes(vec![u32::MAX]).read_ns().is_err());
    }
}
