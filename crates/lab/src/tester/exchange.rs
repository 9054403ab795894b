//! A trial: what is sent, and what of it comes back.

use super::generator::{Generator, Report};
use super::in_turns::{Until, in_turns};
use super::receiving::{Coming, Sink, at_home, receive};
use super::sending::{Sending, send};
use super::waiting::{LOOK, wait_until};
use super::{HandOvers, Manner, Ports, SLACK, Since, go_home, pin};
use crate::analyser::{Analyser, Analysis, Distribution, Sent};
use crate::frame::Seen;
use crate::namespace::Home;
use crate::search::{Outcome, Request};
use anyhow::{Context, Result, ensure};
use causeway_results::traffic::Plan;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A port that sends, and the namespace that it does so from.
pub type Source<'a> = (&'a Home, Sending<'a, Generator<'a>>);

/// What threads did in a trial.
#[derive(Default)]
pub struct Done {
    /// Of each port that sends.
    pub reports: Vec<Report>,
    /// What it took to take frames out and to look at them, nanoseconds.
    pub receiving_ns: u64,
}

/// Sends and receives, by a thread for each port and direction, or by one for all if these are more than the processors. `None` if
/// a thread failed.
pub fn exchanged<F: FnMut(Seen, &[u8]) -> Seen + Send>(
    sources: Vec<Source<'_>>,
    sinks: Vec<Sink<'_, F>>,
    manner: &Manner,
    until: &Until<'_>,
) -> Option<Done> {
    let busy = sinks.iter().filter(|sink| sink.coming.expected).count();
    match manner.is_crowded(sources.len() + busy) {
        true => by_one(sources, sinks, manner, until),
        false => by_many(sources, sinks, manner, until),
    }
}

fn by_one<F: FnMut(Seen, &[u8]) -> Seen + Send>(
    sources: Vec<Source<'_>>,
    mut sinks: Vec<Sink<'_, F>>,
    manner: &Manner,
    until: &Until<'_>,
) -> Option<Done> {
    let work = move || {
        // Ports of a tester are in one namespace.
        if let Some((home, _)) = sources.first() {
            go_home(home);
        }
        pin(&manner.processors);
        let sendings = sources.into_iter().map(|(_, sending)| sending).collect();
        let reports = in_turns(sendings, &mut sinks, manner, until);
        Done { reports, receiving_ns: sinks.iter().map(|sink| sink.took_ns).sum() }
    };
    std::thread::scope(|scope| scope.spawn(work).join().ok())
}

fn by_many<F: FnMut(Seen, &[u8]) -> Seen + Send>(
    sources: Vec<Source<'_>>,
    sinks: Vec<Sink<'_, F>>,
    manner: &Manner,
    until: &Until<'_>,
) -> Option<Done> {
    let (ended, came, since) = (AtomicBool::new(false), AtomicU64::new(0), until.since);
    let (ended, came) = (&ended, &came);
    std::thread::scope(|scope| {
        let sender = |(home, sending)| {
            scope.spawn(move || {
                go_home(home);
                pin(&manner.processors);
                send(sending, since, until.over)
            })
        };
        let senders: Vec<_> = sources.into_iter().map(sender).collect();
        let receiver = |sink| {
            scope.spawn(move || {
                pin(&manner.processors);
                receive(sink, since, ended, came)
            })
        };
        let receivers: Vec<_> = sinks.into_iter().map(receiver).collect();
        let reports: Vec<Option<Report>> = senders.into_iter().map(|thread| thread.join().ok()).collect();
        let sent = reports.iter().flatten().flat_map(|of| &of.sent).map(|sent| sent.frames).sum();
        manner.settle(sent, came, until.interrupted);
        ended.store(true, Ordering::Relaxed);
        let took: Vec<Option<u64>> = receivers.into_iter().map(|thread| thread.join().ok()).collect();
        let receiving_ns = took.into_iter().sum::<Option<u64>>()?;
        Some(Done { reports: reports.into_iter().collect::<Option<_>>()?, receiving_ns })
    })
}

impl Ports {
    /// Sends what is asked for, and counts what comes back, if anything does.
    pub(super) fn exchange(&mut self, request: &Request, comes_back: bool) -> Result<Outcome> {
        self.check()?;
        let frames = request.load_fps() * request.duration_ns() as f64 / 1e9;
        ensure!(
            frames < f64::from(u32::MAX),
            "a trial of {frames:.0} frames is too long: numbers have 32 bits"
        );
        self.trial = self.trial.wrapping_add(1);
        let (trial, flows) = (self.trial, self.plan.flows());
        let mut analysers: Vec<Analyser> =
            self.ports.iter().map(|_| Analyser::new(trial, flows.len())).collect();
        let (traffic, plan, templates) = (&self.traffic, &self.plan, &self.templates[..]);
        let (mut sources, mut sinks) = (Vec::new(), Vec::new());
        for (number, (port, analyser)) in self.ports.iter_mut().zip(&mut analysers).enumerate() {
            if !plan.order(number).is_empty() {
                let generator = Generator::new(traffic, plan, request, templates, number, trial);
                let sending = Sending::new(&mut *port.tx, generator, Some(request.duration_ns()));
                sources.push((&port.home, sending));
            }
            let expected = comes_back && flows.iter().any(|flow| flow.to == number);
            let coming = Coming { stamped: port.stamped, expected };
            let sort = move |seen, _: &[u8]| at_home(seen, plan, number);
            sinks.push(Sink::new(&mut *port.rx, coming, sort, analyser));
        }
        let (manner, interrupted) = (&self.manner, &*self.control.interrupted);
        let disturb = &mut self.control.disturb;
        let until = Until { since: Since::now(), over: interrupted, interrupted };
        let done = std::thread::scope(|scope| {
            let disturbed = request.event.map(|(event, at_ns)| {
                scope.spawn(move || {
                    wait_until(at_ns, until.since, interrupted);
                    disturb(event).with_context(|| format!("{} of the device", event.name()))
                })
            });
            let done = exchanged(sources, sinks, manner, &until);
            disturbed.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))?;
            done.context("a thread of the tester failed")
        })?;
        self.receiving_ns = done.receiving_ns;
        self.check()?;
        let outcome = self.outcome(request, done.reports, analysers);
        self.wait(self.manner.pause);
        Ok(outcome)
    }

    /// What came of what was sent.
    fn outcome(&mut self, request: &Request, reports: Vec<Report>, analysers: Vec<Analyser>) -> Outcome {
        self.hand_overs = HandOvers::default();
        let mut sent = vec![Sent::default(); self.plan.flows().len()];
        let (mut intended, mut last_ns) = (0, 0);
        for of in reports {
            self.hand_overs.add(of.hand_overs);
            of.sent.iter().zip(&mut sent).filter(|(of, _)| of.frames > 0).for_each(|(of, all)| *all = *of);
            intended += of.intended;
            last_ns = last_ns.max(of.last_ns);
        }
        let analysis = together(analysers, &self.plan, &sent);
        let duration_ns = request.duration_ns();
        let effective_ns = duration_ns.max(last_ns);
        let count: u64 = sent.iter().map(|sent| sent.frames).sum();
        let late = effective_ns as f64 > duration_ns as f64 * (1.0 + SLACK) + LOOK.as_nanos() as f64;
        let limited = late || (count as f64) < intended as f64 * (1.0 - SLACK);
        Outcome { intended, effective_ns, limited, analysis }
    }
}

fn add_timeline(all: &mut Vec<u64>, part: &[u64]) {
    all.resize(all.len().max(part.len()), 0);
    all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
}

/// What all ports received, as if it were one. Each flow is its port's alone.
fn together(analysers: Vec<Analyser>, plan: &Plan, sent: &[Sent]) -> Analysis {
    let mut whole = Analysis {
        flows: vec![Default::default(); sent.len()],
        corrupt: 0,
        foreign: 0,
        earlier: 0,
        latency: Distribution::empty(),
        ipdv: Distribution::empty(),
        before_sent: 0,
        last_loss_ns: None,
        longest_silence_ns: 0,
        timeline: Vec::new(),
    };
    for (port, analyser) in analysers.into_iter().enumerate() {
        let mine = plan.flows().iter().zip(sent);
        let mine: Vec<Sent> =
            mine.map(|(flow, sent)| if flow.to == port { *sent } else { Sent::default() }).collect();
        let part = analyser.finish(&mine);
        whole.flows.iter_mut().zip(&part.flows).for_each(|(all, flow)| *all = all.plus(flow));
        whole.corrupt += part.corrupt;
        whole.foreign += part.foreign;
        whole.earlier += part.earlier;
        whole.latency.add(&part.latency);
        whole.ipdv.add(&part.ipdv);
        whole.before_sent += part.before_sent;
        whole.last_loss_ns = whole.last_loss_ns.max(part.last_loss_ns);
        add_timeline(&mut whole.timeline, &part.timeline);
        whole.longest_silence_ns = whole.longest_silence_ns.max(part.longest_silence_ns);
    }
    whole
}
