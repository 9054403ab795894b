//! How long trials take: as the standards have it, or shorter, which the results say.

use crate::search::mlr::Goal;
use causeway_results::traffic::Sizes;
use std::time::Duration;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Frame lengths of Ethernet in bytes (RFC 2544 §9).
const STANDARD_LENGTHS: [u32; 7] = [64, 128, 256, 512, 1_024, 1_280, 1_518];
/// Those of a run that need not be conformant.
const LENGTHS: [u32; 3] = [64, 512, 1_518];

/// Durations of trials and what is searched.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name for people.
    pub name: &'static str,
    /// Trials of a search and of a curve, in nanoseconds.
    pub trial_ns: u64,
    /// Trials that measure delay, in nanoseconds.
    pub delay_ns: u64,
    /// How often delay is measured at a load, in all repetitions together.
    pub delays: usize,
    /// Whether bursts, recovery, what happens to a device and all but the highest load of a curve are measured in the first
    /// repetition alone.
    pub once: bool,
    /// Longest burst, in nanoseconds.
    pub burst_ns: u64,
    /// How often the longest burst is searched.
    pub bursts: usize,
    /// How near the longest burst is found, as a part of it.
    pub burst_width: f64,
    /// Overload before recovery, and time after it, in nanoseconds.
    pub overload_ns: u64,
    /// Trials in which the device is reset or changed, in nanoseconds.
    pub event_ns: u64,
    /// After the last frame of a trial.
    pub settle: Duration,
    /// After that.
    pub pause: Duration,
    /// Trials that judge a load.
    trials: u64,
    width: f64,
}

impl Preset {
    /// So short that kernel, driver path, graph path and Click are compared in a few minutes.
    pub fn quick() -> Preset {
        Preset {
            name: "quick",
            trial_ns: 100 * MS,
            delay_ns: 300 * MS,
            delays: 1,
            once: true,
            burst_ns: 50 * MS,
            bursts: 1,
            burst_width: 0.03,
            overload_ns: 300 * MS,
            event_ns: S,
            settle: Duration::from_millis(80),
            pause: Duration::ZERO,
            trials: 3,
            width: 0.03,
        }
    }

    /// As long as a run of the papers (OSR section 4), five of them where RFC 2544 has more.
    pub fn paper() -> Preset {
        Preset {
            name: "paper",
            trial_ns: 30 * S,
            delay_ns: 30 * S,
            delays: 1,
            once: false,
            burst_ns: 2 * S,
            bursts: 5,
            burst_width: 0.0,
            overload_ns: 30 * S,
            event_ns: 30 * S,
            settle: Duration::from_secs(2),
            pause: Duration::ZERO,
            trials: 5,
            width: 0.01,
        }
    }

    /// As RFC 2544 and CSIT have it.
    pub fn conformant() -> Preset {
        Preset {
            name: "conformant",
            trial_ns: S,
            delay_ns: 120 * S,
            delays: 20,
            once: false,
            burst_ns: 2 * S,
            bursts: 50,
            burst_width: 0.0,
            overload_ns: 60 * S,
            event_ns: 60 * S,
            settle: Duration::from_secs(2),
            pause: Duration::from_secs(5),
            trials: 21,
            width: 0.005,
        }
    }

    /// The goals of a search, which share their trials: what RFC 2544 calls throughput, NDR and PDR. For the first one trial
    /// judges a load, so it leads the others to where they have to look.
    pub fn goals(&self) -> Vec<Goal> {
        let short = |goal: Goal| Goal {
            final_duration_ns: self.trial_ns,
            duration_sum_ns: self.trials * self.trial_ns,
            initial_duration_ns: self.trial_ns,
            width: self.width,
            ..goal
        };
        let throughput = match self.is_conformant() {
            true => Goal::rfc2544(),
            false => Goal { width: self.width, ..Goal::rfc2544().shortened(self.trial_ns) },
        };
        vec![throughput, short(Goal::ndr()), short(Goal::pdr())]
    }

    /// Frame lengths in bytes where none are asked for.
    pub fn lengths(&self) -> Vec<String> {
        let all = if self.is_conformant() { &STANDARD_LENGTHS[..] } else { &LENGTHS };
        all.iter().map(u32::to_string).collect()
    }

    fn is_conformant(&self) -> bool {
        self.name == Preset::conformant().name
    }

    /// Whether a repetition, counted from 0, has everything.
    pub fn is_whole(&self, repetition: usize) -> bool {
        !self.once || repetition == 0
    }

    /// How often delay is measured at a load in each of so many repetitions.
    pub fn delays_of(&self, repetitions: usize) -> usize {
        self.delays.div_ceil(repetitions.max(1))
    }

    /// What is less than a standard has it: what, and how.
    pub fn deviations(&self, sizes: &[(&str, Option<&Sizes>)]) -> Vec<(&'static str, String)> {
        let mut all = if self.is_conformant() { Vec::new() } else { self.shortenings() };
        if self.once {
            all.push((
                "repetitions",
                "bursts, recovery, what happens to a device, and all but the highest load of a curve are measured in the \
                 first repetition alone"
                    .to_owned(),
            ));
        }
        all.push((
            "loads of delay",
            "10, 50 and 90 % of the PDR (CSIT), not the throughput (RFC 2544 §26.2)".to_owned(),
        ));
        let has = |length: u32| sizes.iter().any(|(_, sizes)| *sizes == Some(&Sizes::Fixed(length)));
        if !STANDARD_LENGTHS.into_iter().all(has) {
            let own: Vec<&str> = sizes.iter().map(|(name, _)| *name).collect();
            let standard = STANDARD_LENGTHS.map(|length| length.to_string()).join(", ");
            all.push(("lengths of frames", format!("{}, not {standard} (RFC 2544 §9)", own.join(", "))));
        }
        if sizes.len() > 1 {
            let what = "the first alone, not each (RFC 2544 §26.4, §26.5)";
            all.push(("lengths of frames in bursts and recovery", what.to_owned()));
        }
        all
    }

    /// How trials are shorter or fewer.
    fn shortenings(&self) -> Vec<(&'static str, String)> {
        let standard = Preset::conformant();
        let ms = |ns: u64| ns / MS;
        let trials = match self.trial_ns < standard.trial_ns {
            true => "1 s (CSIT) or 60 s (RFC 2544 §24)",
            false => "60 s (RFC 2544 §24)",
        };
        vec![
            ("trials of a search", format!("{} ms, not {trials}", ms(self.trial_ns))),
            ("trials that judge a load", format!("{}, not 21 (CSIT)", self.trials)),
            ("width of a search", format!("{} %, not 0.5 % (CSIT)", self.width * 100.0)),
            (
                "trials of delay",
                format!(
                    "{} ms and {} in a repetition, not 120 s and 20 (RFC 2544 §26.2)",
                    ms(self.delay_ns),
                    self.delays
                ),
            ),
            (
                "bursts",
                format!(
                    "{} ms and {} times, not 2 s and 50 (RFC 2544 §26.4), found to {} %",
                    ms(self.burst_ns),
                    self.bursts,
                    self.burst_width * 100.0
                ),
            ),
            ("overload", format!("{} ms, not 60 s (RFC 2544 §26.5)", ms(self.overload_ns))),
            (
                "wait after a trial",
                format!(
                    "at most {} ms and {} s, not 2 s and 5 s (RFC 2544 §23)",
                    self.settle.as_millis(),
                    self.pause.as_secs()
                ),
            ),
            (
                "throughput of RFC 2544",
                format!(
                    "one trial of {} ms judges a load, not one of 60 s (RFC 2544 §24), found to {} %",
                    ms(self.trial_ns),
                    self.width * 100.0
                ),
            ),
        ]
    }

    /// About how long the tests of bursts, recovery and so many events of a device take.
    pub fn estimate_disturbed(&self, events: usize) -> Duration {
        let trials =
            self.bursts as u64 * 4 * self.burst_ns + 2 * self.overload_ns + events as u64 * self.event_ns;
        Duration::from_nanos(trials) + (self.settle + self.pause) * (20 * self.bursts + events) as u32
    }

    /// About how long the measurement of a device at a frame length takes, with so many loads of a curve and so many
    /// measurements of delay at each load.
    pub fn estimate(&self, loads: usize, delays: usize) -> Duration {
        // Half of the trials lose something, and wait as long as they may.
        let trial = Duration::from_nanos(self.trial_ns) + self.settle / 2 + self.pause;
        let delay = Duration::from_nanos(self.delay_ns) + self.settle + self.pause;
        // About ten loads are searched, and one trial says what each is to the throughput; the bounds of the other goals are
        // two or three of these loads, each judged by two thirds of the trials. Of long trials there are two, which confirm
        // what shorter ones say.
        let judged = 2 * self.trials as u32;
        let throughput = match self.is_conformant() {
            true => Duration::from_nanos(2 * 60 * S + 10 * 60 * S / 8) + (self.settle / 2 + self.pause) * 12,
            false => trial * 10,
        };
        throughput + trial * (judged + loads as u32) + delay * (3 * delays) as u32
    }
}
