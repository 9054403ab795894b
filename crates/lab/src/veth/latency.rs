//! Latency: ping through the router, idle and at half load, against the kernel.

use super::super::report::{Report, Row};
use super::testbed::{SINK, Testbed};
use super::traffic::{Load, Sink, Stream};
use super::{FRAME_LENS, Forwarder, WARM_UP, Way, measure, possible};
use crate::Settings;
use anyhow::{Context, Result, bail};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Echo requests of a round, one every 2 ms.
const PINGS: usize = 500;
/// Seconds after which a round is over in any case.
const DEADLINE: &str = "10";
/// What is compared, the kernel first.
const WAYS: [Way; 2] = [Way::Kernel, Way::Causeway];

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
    report.heading("Latency: ping over veth, there and back through the router");
    if !possible("ip") || !possible("ping") {
        return Ok(());
    }
    let bed = Testbed::new()?;
    let sink = Arc::new(Sink::new(&bed)?);
    let mut most_mpps = f64::INFINITY;
    for way in WAYS {
        let forwarder = Forwarder::start(&bed, way, settings.processor)?;
        most_mpps = most_mpps.min(measure(&bed, &sink, &forwarder, FRAME_LENS[0], settings)?.mpps);
    }
    // The same load for both: half of what the slower forwards.
    let half =
        Stream { frame_len: FRAME_LENS[0], rate_pps: Some(most_mpps / 2.0 * 1e6), avoid: settings.processor };
    let loads = [("idle".to_owned(), None), (format!("{:.2} Mpps", most_mpps / 2.0), Some(half))];
    // By load, then by way: medians and 99th percentiles of the rounds.
    let mut results = vec![vec![(Vec::new(), Vec::new()); WAYS.len()]; loads.len()];
    for _ in 0..settings.rounds {
        for (w, way) in WAYS.into_iter().enumerate() {
            let forwarder = Forwarder::start(&bed, way, settings.processor)?;
            for (l, (_, stream)) in loads.iter().enumerate() {
                let load = stream.map(|stream| Load::start(&bed, &sink, stream)).transpose()?;
                std::thread::sleep(WARM_UP);
                let trips = ping(&bed)?;
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
    Ok(())
}

/// Pings the sink from the generator's host.
fn ping(bed: &Testbed) -> Result<RoundTrips> {
    let (to, count) = (Ipv4Addr::from(SINK).to_string(), PINGS.to_string());
    let mut command = bed.generator.command("ping");
    command.args(["-n", "-i", "0.002", "-c", &count, "-w", DEADLINE, &to]);
    let out = command.output().context("cannot run ping")?;
    let mut trips = round_trips_us(&String::from_utf8_lossy(&out.stdout));
    // What is lost has no round trip: the percentiles would be those of the lucky.
    if trips.len() < PINGS * 9 / 10 {
        bail!(
            "{} of {PINGS} pings were answered {}",
            trips.len(),
            String::from_utf8_lossy(&out.stderr).trim()
        );
    }
    trips.sort_by(f64::total_cmp);
    Ok(RoundTrips(trips))
}

/// The round trips that ping printed, in microseconds.
fn round_trips_us(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|l| l.split_once(" time=")?.1.strip_suffix(" ms"));
    times.filter_map(|ms| ms.parse::<f64>().ok()).map(|ms| ms * 1e3).collect()
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
    fn reads_what_ping_prints() {
        let text = "PING 198.18.2.1 (198.18.2.1) 56(84) bytes of data.\n\
                    64 bytes from 198.18.2.1: icmp_seq=1 ttl=63 time=0.052 ms\n\
                    64 bytes from 198.18.2.1: icmp_seq=2 ttl=63 time=1.20 ms\n\n\
                    --- 198.18.2.1 ping statistics ---\n\
                    2 packets transmitted, 2 received, 0% packet loss, time 2ms\n";
        assert_eq!(round_trips_us(text), [52.0, 1200.0]);
    }

    #[test]
    fn percentiles_are_of_the_sorted_round_trips() {
        let trips = RoundTrips((1..=100).map(f64::from).collect());
        assert_eq!((trips.percentile(0.5), trips.percentile(0.99)), (51.0, 100.0));
        assert!(RoundTrips(Vec::new()).percentile(0.5).is_nan());
    }
}
