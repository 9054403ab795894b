//! A trial from one port to another, of which each frame that comes is shown to who asks, and in which things happen.

use super::exchange::exchanged;
use super::generator::Generator;
use super::in_turns::Until;
use super::receiving::{Coming, Sink};
use super::sending::Sending;
use super::{Attached, Manner, SLACK, Since};
use crate::analyser::Analyser;
use crate::frame::{Ends, Seen, Tag, Template};
use crate::search::{Outcome, Request};
use anyhow::{Context, Result};
use causeway_results::traffic::{Family, Matrix, Plan, Traffic};
use std::sync::atomic::{AtomicBool, Ordering};

/// The time of a trial that runs.
#[derive(Clone, Copy, Debug)]
pub struct TrialClock(Since);

impl TrialClock {
    /// Nanoseconds from its start.
    pub fn ns(self) -> u64 {
        self.0.ns()
    }
}

/// Offers `traffic` from `source` to the hosts behind `sink`, while `meanwhile` runs and no longer than `request` has it.
/// Shows `show` each frame of the tester that comes to the sink. The streams of the definition are the flows.
///
/// # Errors
/// If the traffic is not possible, or those of `meanwhile`.
pub fn one_way<T>(
    [source, sink]: [&mut Attached; 2],
    traffic: &Traffic,
    request: &Request,
    manner: &Manner,
    trial: u16,
    mut show: impl FnMut(Tag, &[u8]) + Send,
    meanwhile: impl FnOnce(TrialClock) -> Result<T>,
) -> Result<(Outcome, T)> {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..traffic.clone() };
    let plan = Plan::new(&traffic, 2)?;
    let templates = plan.flows().iter().map(|flow| {
        let stream = &traffic.streams[flow.stream];
        let hosts = |port: &Attached| match stream.family {
            Family::Ipv4 => port.hosts4,
            Family::Ipv6 => port.hosts6,
        };
        let missing =
            |port: &Attached| format!("nobody of the family of '{}' is behind {}", stream.name, port.name);
        let ends = Ends {
            source_mac: source.mac,
            gateway_mac: source.gateway,
            source: hosts(source).with_context(|| missing(source))?,
            destination: hosts(sink).with_context(|| missing(sink))?,
        };
        let template = Template::new(stream, flow, &ends)?;
        source.carries(&template, stream)?;
        sink.carries(&template, stream)?;
        Ok(template)
    });
    let templates = templates.collect::<Result<Vec<_>>>()?;
    let mut analyser = Analyser::new(trial, plan.flows().len());
    let (over, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = Until { since: Since::now(), over: &over, interrupted: &never };
    let generator = Generator::new(&traffic, &plan, request, &templates, 0, trial);
    let sending = Sending::new(&mut *source.tx, generator, Some(request.duration_ns()));
    let shown = |seen, frame: &[u8]| {
        if let Seen::Test(tag) = seen
            && tag.trial == trial
        {
            show(tag, frame);
        }
        seen
    };
    let coming = Coming { stamped: sink.stamped, expected: true };
    let sinks = vec![Sink::new(&mut *sink.rx, coming, shown, &mut analyser)];
    let home = &source.home;
    let (done, told) = std::thread::scope(|scope| {
        let exchange = scope.spawn(|| exchanged(vec![(home, sending)], sinks, manner, &until));
        let told = meanwhile(TrialClock(until.since));
        over.store(true, Ordering::Relaxed);
        (exchange.join().ok().flatten(), told)
    });
    let (done, told) = (done.context("a thread of the tester failed")?, told?);
    let report = done.reports.into_iter().next().context("a thread of the tester failed")?;
    let effective_ns = report.last_ns;
    let frames: u64 = report.sent.iter().map(|sent| sent.frames).sum();
    // What would have been sent later is not missing.
    let intended = (request.load_fps() * effective_ns as f64 / 1e9) as u64;
    let limited = (frames as f64) < intended as f64 * (1.0 - SLACK);
    Ok((Outcome { intended, effective_ns, limited, analysis: analyser.finish(&report.sent) }, told))
}
