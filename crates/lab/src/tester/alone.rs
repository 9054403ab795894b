//! One side of the tester by itself: transmit only (as packetgen, udpgen and rude do), receive only (as udpcount does).

use super::generator::Generator;
use super::receiving::{Coming, Sink, receive};
use super::sending::{Sending, Source, send};
use super::{Attached, Since, pin};
use crate::analyser::{Analyser, Analysis};
use crate::frame::{Ends, Tag, Template};
use crate::network::Network;
use crate::search::Request;
use anyhow::{Context, Result};
use causeway_packet::{Batch, Packet};
use causeway_results::traffic::{Family, Matrix, Plan, Traffic};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The trial that a transmitter by itself is of, and a receiver by itself counts.
const TRIAL: u16 = 1;
/// Flows that a receiver by itself tells apart.
const FLOWS: usize = 256;

/// What a transmitter sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmitted {
    /// Frames that were to be sent.
    pub intended: u64,
    /// Frames that were.
    pub frames: u64,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
}

/// What a receiver saw.
#[derive(Clone, Debug)]
pub struct Received {
    /// Counts; as sent counts what has a number up to the highest that came.
    pub analysis: Analysis,
    /// From the start to the end, in nanoseconds.
    pub took_ns: u64,
}

/// Sends what `request` asks for by `port` to hosts of `destinations`.
///
/// # Errors
/// If the traffic is not possible there.
pub fn transmit_only(
    port: &mut Attached,
    traffic: &Traffic,
    destinations: [Option<Network>; 2],
    request: &Request,
    processors: &[usize],
    interrupted: &AtomicBool,
) -> Result<Transmitted> {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..traffic.clone() };
    let plan = Plan::new(&traffic, 2)?;
    let templates = templates(port, &traffic, &plan, destinations)?;
    pin(processors);
    let since = Since::now();
    let generator = Generator::new(&traffic, &plan, request, &templates, 0, TRIAL).of_epoch(since.start_ns);
    let sending = Sending::new(&mut *port.tx, generator, Some(request.duration_ns()));
    let report = send(sending, since, interrupted);
    let frames = report.sent.iter().map(|sent| sent.frames).sum();
    Ok(Transmitted { intended: report.intended, frames, took_ns: report.last_ns })
}

/// Sends one frame of the traffic again and again, as it is, as fast as `port` takes it: the same way of sending with nothing
/// to be done for a frame but to copy it, to hold a generator to.
///
/// # Errors
/// As [`transmit_only`].
pub fn transmit_bare(
    port: &mut Attached,
    traffic: &Traffic,
    destinations: [Option<Network>; 2],
    (most_frames, duration): (u64, Duration),
    interrupted: &AtomicBool,
) -> Result<Transmitted> {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..traffic.clone() };
    let plan = Plan::new(&traffic, 2)?;
    let templates = templates(port, &traffic, &plan, destinations)?;
    let template = templates.first().context("the traffic has no flow")?;
    let tag = Tag { trial: TRIAL, flow: 0, sequence: 0, sent_ns: 0 };
    let mut frame = vec![0; template.length(tag.sequence)];
    template.write(tag, &mut frame);
    let until_ns = duration.as_nanos() as u64;
    let source = Same { frame, frames: 0, most: most_frames, until_ns };
    let sending = Sending::new(&mut *port.tx, source, Some(until_ns));
    let (frames, took_ns) = send(sending, Since::now(), interrupted);
    Ok(Transmitted { intended: frames, frames, took_ns })
}

/// The same frame, as often as there is room for it.
struct Same {
    frame: Vec<u8>,
    frames: u64,
    most: u64,
    until_ns: u64,
}

impl Source for Same {
    /// Frames, and nanoseconds.
    type Report = (u64, u64);

    fn fill(&mut self, now_ns: u64, batch: &mut Batch) -> Option<u64> {
        while now_ns < self.until_ns && self.frames < self.most {
            if batch.is_full() {
                return Some(now_ns);
            }
            let Some(packet) = Packet::from_bytes(&self.frame) else { return Some(now_ns) };
            // There is room for it.
            let _ = batch.push(packet);
            self.frames += 1;
        }
        None
    }

    fn finish(self, left: &Batch, last_ns: u64) -> (u64, u64) {
        (self.frames - left.len() as u64, last_ns)
    }
}

/// What `port` sends to hosts of `destinations`.
fn templates(
    port: &Attached,
    traffic: &Traffic,
    plan: &Plan,
    destinations: [Option<Network>; 2],
) -> Result<Vec<Template>> {
    let templates = plan.flows().iter().map(|flow| {
        let stream = &traffic.streams[flow.stream];
        let at = usize::from(stream.family == Family::Ipv6);
        let missing = || format!("stream '{}' needs a network of its family on both sides", stream.name);
        let source = [port.hosts4, port.hosts6][at].with_context(missing)?;
        let destination = destinations[at].with_context(missing)?;
        let ends = Ends { source_mac: port.mac, gateway_mac: port.gateway, source, destination };
        let template = Template::new(stream, flow, &ends)?;
        port.carries(&template, stream)?;
        Ok(template)
    });
    templates.collect()
}

/// Counts what a transmitter by itself sends to `port`, for `time` or until `interrupted`.
pub fn receive_only(
    port: &mut Attached,
    time: Duration,
    processors: &[usize],
    interrupted: &AtomicBool,
) -> Received {
    let mut analyser = Analyser::new(TRIAL, FLOWS);
    let (ended, came, since) = (AtomicBool::new(false), AtomicU64::new(0), Since::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(processors);
            let coming = Coming { stamped: port.stamped, expected: true };
            // The times in frames are of the epoch: who sends has another start.
            let epoch = Since { start_ns: 0 };
            receive(Sink::new(&mut *port.rx, coming, |seen, _| seen, &mut analyser), epoch, &ended, &came);
        });
        while since.ns() < time.as_nanos() as u64 && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(super::waiting::LOOK.min(time));
        }
        ended.store(true, Ordering::Relaxed);
    });
    let (sent, took_ns) = (analyser.at_least_sent(), since.ns());
    Received { analysis: analyser.finish(&sent), took_ns }
}

/// RTF_REJECT of the kernel's `route.h`: the route sends packets nowhere.
const REFUSES: u32 = 0x200;

/// Whether the interface carries a default route of this network namespace: then it is likely to be the machine's way to
/// the world, and no place for test traffic.
pub fn carries_default_route(interface: &str) -> bool {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let four = text("/proc/thread-self/net/route");
    let six = text("/proc/thread-self/net/ipv6_route");
    default_routes4(&four).chain(default_routes6(&six)).any(|name| name == interface)
}

/// Interfaces of IPv4 default routes: destination and mask are zero.
fn default_routes4(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000")).then(|| fields[0])
    })
}

/// Interfaces of IPv6 default routes: the prefix has no bits. Where there is none the kernel lists one that refuses, on `lo`.
fn default_routes6(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let flags = fields.get(8).and_then(|flags| u32::from_str_radix(flags, 16).ok()).unwrap_or(0);
        let leads_out = fields.get(1) == Some(&"00") && flags & REFUSES == 0;
        leads_out.then(|| fields.last().copied()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_found() {
        let four = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(default_routes4(four).collect::<Vec<_>>(), ["eth0"]);
        let zeros = "0".repeat(32);
        let six = format!(
            "{zeros} 00 {zeros} 00 {zeros} 00000400 1 0 00000003 eth2\n\
             {zeros} 40 {zeros} 00 {zeros} 0 0 0 0 eth3\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 1 0 00200200 lo\n"
        );
        assert_eq!(default_routes6(&six).collect::<Vec<_>>(), ["eth2"]);
        assert!(!carries_default_route("no-such-interface"));
    }
}
