//! Which ways out the driver may use where there are two classes: those where no queue builds.
//!
//! A queue of the graph can serve one class before the other; the ring of a device, which is what a program in the driver
//! has, cannot. So what leaves by an interface goes through the graph, all of it, unless little does.

use super::Classes;
use super::speeds::Speeds;
use crate::commands::up::driver::{Forwarded, Ways};
use crate::lease::{Lease, Voucher};
use anyhow::{Context, Result};
use causeway_elements::devices::Egresses;
use causeway_netio::front::{Front, Reason, monotonic_ns};
use causeway_netio::interface;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(10);
/// For how many times little must leave until the driver may send: then what was in the graph's rings has left.
const QUIET: u32 = 10;

/// Looks until it is dropped.
pub struct Meter {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What it looks at.
pub struct Sources {
    /// Names of the ports, by number.
    pub names: Vec<String>,
    pub front: Arc<Front>,
    pub ways: Arc<Ways>,
    /// What leaves by the driver.
    pub forwarded: Forwarded,
    /// What leaves by the graph.
    pub egresses: Arc<Egresses>,
    /// Speeds that were given.
    pub classes: Classes,
    /// Of how much of a link's speed the driver may make use, percent.
    pub share: u8,
}

impl Meter {
    /// Starts the thread. All ways go through the graph until it has seen that little leaves by them, and nothing is
    /// forwarded while it hangs.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(sources: Sources, lease: &Lease) -> Result<Meter> {
        (0..sources.names.len()).for_each(|port| sources.ways.hold(port, true));
        let stop = Arc::new(AtomicBool::new(false));
        let word = Arc::new(AtomicU64::new(monotonic_ns()));
        let said = word.clone();
        lease.require(Voucher {
            name: "the meter of the service classes".to_owned(),
            word_ns: Arc::new(move || said.load(Ordering::Relaxed)),
            term: Voucher::ALIVE,
        });
        let (stopped, what) = (stop.clone(), "cannot start a thread");
        let (names, classes) = (sources.names.clone(), sources.classes.clone());
        let ask = move |port: usize| speed_bytes_per_s(&classes, names.get(port)?);
        let speeds = Speeds::watch(sources.names.len(), ask).context(what)?;
        let thread = std::thread::Builder::new().name("meter".to_owned());
        let thread = thread.spawn(move || run(&sources, &speeds, &word, &stopped)).context(what)?;
        Ok(Meter { stop, thread: Some(thread) })
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged by itself.
            let _ = thread.join();
        }
    }
}

fn run(sources: &Sources, speeds: &Speeds, word: &AtomicU64, stop: &AtomicBool) {
    let mut ways = vec![Way::default(); sources.names.len()];
    let mut lost = 0;
    while !stop.load(Ordering::Relaxed) {
        for (port, speed) in speeds.news() {
            if let (Some(way), Some(name)) = (ways.get_mut(port), sources.names.get(port)) {
                way.set_speed(name, speed);
            }
        }
        // A ring that was full is a queue; which one, the kernel does not say.
        let lost_now = sources.front.count_all(Reason::Transmit);
        let full = lost_now > std::mem::replace(&mut lost, lost_now);
        let now_ns = monotonic_ns();
        for (port, way) in ways.iter_mut().enumerate() {
            let octets = sources.forwarded.octets(port) + sources.egresses.octets(port);
            let waits = full || sources.egresses.is_waited_for(port);
            sources.ways.hold(port, way.is_busy(octets, waits, sources.share, now_ns));
        }
        word.store(now_ns, Ordering::Relaxed);
        std::thread::sleep(PERIOD);
    }
}

/// The speed that was given, or that the driver says.
fn speed_bytes_per_s(classes: &Classes, name: &str) -> Option<u64> {
    let given = classes.speed(name).map(|speed| speed.0);
    given.or_else(|| Some(u64::from(interface::speed_mbit_per_s(name).ok()??) * 125_000))
}

/// A way out.
#[derive(Clone, Debug, Default)]
struct Way {
    speed_bytes_per_s: Option<u64>,
    /// What had left by it, and when.
    before: Option<(u64, u64)>,
    /// How many times in a row little left by it.
    quiet: u32,
    /// Whether it was said that its speed is not known.
    said: bool,
}

impl Way {
    fn set_speed(&mut self, name: &str, speed: Option<u64>) {
        self.speed_bytes_per_s = speed;
        if speed.is_none() && !std::mem::replace(&mut self.said, true) {
            log::info!(
                code = "driver";
                "{name}: its speed is not known (--link-speed says it), so that all that leaves by it goes through the graph"
            );
        }
    }

    /// Whether more leaves by it than `share` percent of its speed, or did so lately, or packets wait.
    fn is_busy(&mut self, octets: u64, waits: bool, share: u8, now_ns: u64) -> bool {
        let Some((before, then_ns)) = self.before.replace((octets, now_ns)) else { return true };
        let limit = self.speed_bytes_per_s.map_or(0, |speed| u128::from(speed) * u128::from(share) / 100);
        // Octets in nanoseconds.
        let rate = u128::from(octets.saturating_sub(before)) * 1_000_000_000;
        let little = rate < limit * u128::from(now_ns.saturating_sub(then_ns));
        self.quiet = if little && !waits { self.quiet.saturating_add(1) } else { 0 };
        self.quiet < QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A way of 1 000 000 octets a second; whether it is busy after each round of 10 ms in which so many octets left, and
    /// packets waited.
    fn busy(rounds: &[(u64, bool)]) -> Vec<bool> {
        let mut way = Way { speed_bytes_per_s: Some(1_000_000), ..Way::default() };
        let (mut octets, mut now_ns) = (500, 7);
        assert!(way.is_busy(octets, false, 80, now_ns), "nothing is known");
        let look = |&(more, waits): &(u64, bool)| {
            (octets, now_ns) = (octets + more, now_ns + 10 * MS);
            way.is_busy(octets, waits, 80, now_ns)
        };
        rounds.iter().map(look).collect()
    }

    #[test]
    fn a_way_is_busy_until_little_has_left_by_it_for_a_while() {
        let little = [(7_999, false); 10];
        assert_eq!(busy(&little), [[true; 9].to_vec(), vec![false]].concat());
        for much in [(8_000, false), (0, true)] {
            let rounds = [&little[..], &[much], &little].concat();
            let expected = [&[true; 9][..], &[false, true], &[true; 9], &[false]].concat();
            assert_eq!(busy(&rounds), expected, "{much:?}");
        }
    }

    #[test]
    fn a_way_of_unknown_speed_is_always_busy() {
        let mut way = Way { said: true, ..Way::default() };
        way.set_speed("eth0", None);
        assert!((0..100).all(|round| way.is_busy(0, false, 80, round * 10 * MS)));
        way.set_speed("eth0", Some(1_000));
        assert!((100..111).map(|round| way.is_busy(0, false, 80, round * 10 * MS)).any(|busy| !busy));
    }
}
