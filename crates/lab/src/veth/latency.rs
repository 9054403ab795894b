//! Latency: echo requests through the router, idle and at half load, against the kernel.

use super::super::report::{Report, Row};
use super::echo::round_trips_us;
use super::packets::To;
use super::testbed::{Hosts, Testbed, Version};
use super::traffic::{Load, Sink, Stream, keep_off};
use super::way::{Forwarder, Way};
use super::{WARM_UP, all, measure, possible};
use crate::Settings;
use anyhow::{Result, anyhow, bail};
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Echo requests of a round, and the pause between two.
const PINGS: usize = 500;
const PAUSE: Duration = Duration::from_millis(2);
/// What is compared, the kernel first.
const WAYS: [Way; 4] = [Way::Kernel, Way::Causeway, Way::Spinning, Way::Driver];

/// Round trips of one round, in microseconds, rising.
struct RoundTrips(Vec<f64>);

impl RoundTrips {
    /// The round trip that `share` of all are not above.
    fn percentile(&self, share: f64) -> f64 {
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

/// Latency at idle and at half load.
pub fn latency(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Latency: echo requests over veth, there and back through the router");
    if !possible("ip") {
        return Ok(());
    }
    let bed = Testbed::new(Hosts::Plain)?;
    let sink = Arc::new(Sink::new(&bed)?);
    let mut most_mpps = f64::INFINITY;
    for way in [Way::Kernel, Way::Causeway] {
        let forwarder = Forwarder::start(&bed, way, settings.processor)?;
        most_mpps = most_mpps.min(
            measure(
                &bed,
                &sink,
                &forwarder,
                all(settings, Version::V4.frame_lens()[0], To::Sink(Version::V4)),
                settings,
            )?
            .mpps,
        );
    }
    // The same load for both: half of what the slower forwards.
    let half = Stream {
        rate_pps: Some(most_mpps / 2.0 * 1e6),
        ..all(settings, Version::V4.frame_lens()[0], To::Sink(Version::V4))
    };
    let loads = [("idle".to_owned(), None), (format!("{:.2} Mpps", most_mpps / 2.0), Some(half))];
    // By load, then by way: medians and 99th percentiles of the rounds.
    let mut results = vec![vec![(Vec::new(), Vec::new()); WAYS.len()]; loads.len()];
    for _ in 0..settings.rounds {
        for (w, way) in WAYS.into_iter().enumerate() {
            let forwarder = Forwarder::start(&bed, way, settings.processor)?;
            for (l, (_, stream)) in loads.iter().enumerate() {
                let load = stream.map(|stream| Load::start(&bed, &sink, stream)).transpose()?;
                std::thread::sleep(WARM_UP);
                let trips = ping(&bed, settings.processor)?;
                load.map_or(Ok(()), Load::finish)?;
                bed.check()?;
                let (medians, tails) = &mut results[l][w];
                medians.push(trips.percentile(0.5));
                tails.push(trips.percentile(0.99));
            }
            drop(forwarder);
        }
    }
    for ((load, _), ways) in loads.iter().zip(&results) {
        compare(report, load, "median", ways.iter().map(|(medians, _)| medians));
        compare(report, load, "99 %", ways.iter().map(|(_, tails)| tails));
    }
    let wake_ups =
        (0..settings.rounds).map(|_| wake_up_us(settings.processor)).collect::<Result<Vec<_>>>()?;
    Row::of("latency/wake-up", "median", "us", &wake_ups).into_iter().for_each(|row| report.add(row));
    Ok(())
}

/// What it takes to wake a thread that sleeps on `processor`, the median in microseconds, by one that runs elsewhere if
/// there is more than one processor. A worker that sleeps pays it once in a round trip, which is over before it sleeps again;
/// where the kernel forwards all is done within the call that sends. After a pause as long as that between
/// pings: how deep a processor sleeps depends on how long it had nothing to do.
pub fn wake_up_us(processor: usize) -> Result<f64> {
    Ok(wake_ups_us(processor)?[0])
}

/// As [`wake_up_us`], and what the call takes who wakes: an interrupt of another processor is no small thing on a virtual machine.
pub fn wake_ups_us(processor: usize) -> Result<[f64; 2]> {
    let elsewhere = sched_getaffinity(None)?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let (awake, woken) = channel();
    std::thread::scope(|scope| {
        let bell = &bell;
        let sleeper = scope.spawn(move || -> Result<()> {
            let mut set = CpuSet::new();
            set.set(processor);
            sched_setaffinity(None, &set)?;
            for _ in 0..PINGS {
                rustix::io::read(bell, &mut [0; 8])?;
                awake.send(Instant::now())?;
            }
            Ok(())
        });
        let ringer = scope.spawn(move || -> Result<[Vec<f64>; 2]> {
            let mut set = elsewhere;
            set.unset(processor);
            if set.count() > 0 {
                sched_setaffinity(None, &set)?;
            }
            let mut took = [Vec::new(), Vec::new()];
            for _ in 0..PINGS {
                std::thread::sleep(PAUSE);
                let rung = Instant::now();
                rustix::io::write(bell, &1u64.to_ne_bytes())?;
                let call = rung.elapsed();
                for (took, time) in took.iter_mut().zip([woken.recv()? - rung, call]) {
                    took.push(time.as_secs_f64() * 1e6);
                }
            }
            Ok(took)
        });
        sleeper.join().map_err(|_| anyhow!("a thread failed"))??;
        let took = ringer.join().map_err(|_| anyhow!("a thread failed"))??;
        Ok(took.map(|mut took| {
            took.sort_by(f64::total_cmp);
            RoundTrips(took).percentile(0.5)
        }))
    })
}

/// Asks the sink from the generator's host, on another processor than the router's if there is one.
fn ping(bed: &Testbed, avoid: usize) -> Result<RoundTrips> {
    let mut trips = bed.generator.run(|| {
        keep_off(avoid);
        round_trips_us(Ipv4Addr::from(Version::SINK.0), PINGS, PAUSE)
    })?;
    // What is lost has no round trip: the percentiles would be those of the lucky.
    if trips.len() < PINGS * 9 / 10 {
        bail!("{} of {PINGS} echo requests were answered", trips.len());
    }
    trips.sort_by(f64::total_cmp);
    Ok(RoundTrips(trips))
}

/// Reports one value of all ways, against the kernel's.
fn compare<'a>(report: &mut Report, load: &str, what: &str, ways: impl Iterator<Item = &'a Vec<f64>>) {
    let mut kernel: Option<Row> = None;
    for (way, rounds) in WAYS.into_iter().zip(ways) {
        let name = format!("latency/{load}/{}/{what}", way.name());
        let Some(row) = Row::of(name, &format!("round trip, {what}"), "us", rounds) else { continue };
        match &kernel {
            Some(kernel) => report.add(row.against(kernel)),
            None => report.add(kernel.insert(row).clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_round_trips() {
        let trips = RoundTrips((1..=100).map(f64::from).collect());
        assert_eq!((trips.percentile(0.5), trips.percentile(0.99)), (51.0, 100.0));
        assert!(RoundTrips(Vec::new()).percentile(0.5).is_nan());
    }
}
