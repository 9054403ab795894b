//! RED and AdaptiveRED.

use super::{lines, queues};
use crate::fixed::Probability;
use crate::rate::decimal;
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;
use causeway_engine::value::List;
use causeway_engine::{Defaults, Stored};
use causeway_packet::BATCH;

pub(crate) static SPEC: Spec = Spec {
    name: "RED",
    category: "aqm",
    summary: "drops packets early, as queues grow",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Random Early Detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993). Keeps an average of \
          the length of the nearest queues, downstream or, where it is pulled, upstream, or of those in QUEUES. A packet \
          that finds the average above MIN_THRESH is dropped with a probability that grows to MAX_P at MAX_THRESH, and with \
          GENTLE on to 1 at twice that; above, all are. What would be dropped goes to output 1 if that is connected. The \
          queues must be on the same worker. A hot swap keeps the average.",
    args: Own::ARGS,
    handlers: handlers!(THRESHOLDS, Own::HANDLERS, STATE),
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> RED(5, 50, 0.02) -> Queue(200) -> RatedUnqueue(50) -> Discard;",
    see: &["CoDel", "Queue", "FrontDropQueue"],
    build,
    ..Spec::DEFAULT
};

pub(crate) static ADAPTIVE: Spec = Spec {
    name: "AdaptiveRED",
    category: "aqm",
    summary: "drops packets early, so often that queues keep their length",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "As RED with thresholds of TARGET / 2 and 3 TARGET / 2, and with GENTLE. Twice a second MAX_P becomes a tenth smaller if the average is \
          below TARGET, down to 0.01, and up to 0.01 greater if it is above, up to 0.5 (Floyd, Gummadi and Shenker, Adaptive RED, 2001).",
    args: Target::ARGS,
    handlers: handlers!(ADAPTED, Own::HANDLERS, STATE),
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> AdaptiveRED(20, 0.02) -> Queue(200) -> RatedUnqueue(50) -> Discard;",
    see: &["RED", "CoDel"],
    build: build_adaptive,
    ..Spec::DEFAULT
};

const ADAPTED: &[HandlerDoc] = &[
    reads("min_thresh", "average length up to which nothing is dropped"),
    reads("max_thresh", "average length at which MAX_P is dropped"),
    reads("max_p", "probability of dropping at MAX_THRESH; of several workers' the greatest")
        .measures(Unit::None)
        .across(Across::Max),
];

const THRESHOLDS: &[HandlerDoc] = &[
    reads_writes("min_thresh", "average length up to which nothing is dropped"),
    reads_writes("max_thresh", "average length at which MAX_P is dropped"),
    reads_writes("max_p", "probability of dropping at MAX_THRESH"),
];

const STATE: &[HandlerDoc] = &[
    reads("avg_queue_size", "average length of the queues").measures(Unit::Packets),
    reads("queues", "the queues, a line each"),
    reads("stats", "present and average length of the queues, and packets dropped, in words"),
    CONFIG,
];

settings! {
    struct Own {
        min: u32 = required("MIN_THRESH", "packets", "average length up to which nothing is dropped");
        max: u32 = required("MAX_THRESH", "packets", "average length at which MAX_P is dropped, up to 65535");
        p: Probability<16> = required("MAX_P", "number from 0 to 1", "probability of dropping at MAX_THRESH");
        queues: List<String> = keyword("QUEUES", "element names", "the queues; default the nearest ones"), or(List::default());
        stability: u32 = keyword("STABILITY", "number up to 16", "a new length has a weight of 2^-STABILITY in the average; 0 means no average; default 4"), or(4);
        gentle: bool = keyword("GENTLE", "boolean", "whether the probability grows on from MAX_THRESH; default true"), or(true);
    }
    counts {
        drops: u64 = reads("drops", "packets dropped or sent to output 1").counts(Unit::Packets);
    }
}

settings! {
    struct Target {
        target: u32 = required("TARGET", "packets", "average length that is kept; at least 10");
        p: Probability<16> = required("MAX_P", "number from 0 to 1", "probability of dropping at 3 TARGET / 2, to begin with");
        queues: List<String> = keyword("QUEUES", "element names", "the queues; default the nearest ones"), or(List::default());
        stability: u32 = keyword("STABILITY", "number up to 16", "a new length has a weight of 2^-STABILITY in the average; 0 means no average; default 4"), or(4);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Early = "early", "RED chose it, and output 1 is not connected";
    }
}

/// Binary digits behind the point of the average.
const BITS: u32 = 10;
/// One as a probability.
const ONE: i64 = Probability::<16>::ONE.0 as i64;
/// While the queues are empty, the average falls once in this time.
const EMPTY_NS: u64 = 20_000_000;
/// The only timer, of AdaptiveRED: MAX_P is looked at, every so often.
const ADAPT: u32 = 0;
const ADAPT_NS: u64 = 500_000_000;
/// So many times at once, and it is zero.
const FORGOTTEN: u64 = 100;

struct Red {
    own: Own,
    /// Whether `config` shows what Click's does.
    as_click: bool,
    queues: Vec<Stored>,
    /// Average length, times 2^BITS.
    average: i64,
    /// Packets since the last that was dropped; -1 = none may be.
    count: i64,
    random: i64,
    /// When the queues were last found empty, if they have been since; in steps of [`EMPTY_NS`].
    empty_at: Option<u64>,
    /// When MAX_P is looked at again, if it is.
    adapt_ns: Option<u64>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    super::check(&own.queues.0, conf);
    if let Err(why) = own.check() {
        conf.error(why);
    }
    conf.finish()?;
    Ok(Box::new(Red::new(own, conf.env.defaults)))
}

fn build_adaptive(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Target { target, p, queues, stability } = Target::configure(conf);
    let target = target.max(10);
    let (min, max) = (target / 2, target.saturating_add(target / 2));
    let own = Own { min, max, p, queues, stability, gentle: true, drops: 0 };
    super::check(&own.queues.0, conf);
    if let Err(why) = own.check() {
        conf.error(why);
    }
    conf.finish()?;
    Ok(Box::new(Red { adapt_ns: Some(0), ..Red::new(own, conf.env.defaults) }))
}

impl Own {
    fn check(&self) -> Result<(), Error> {
        self.p.check("MAX_P")?;
        Err(Error::new(match self {
            _ if self.max > 0xffff => "MAX_THRESH must be <= 65535",
            _ if self.min > self.max => "MIN_THRESH must be <= MAX_THRESH",
            _ if self.stability > 16 => "STABILITY must be between 0 and 16",
            _ => return Ok(()),
        }))
    }

    /// The probability of dropping at an average of `scaled` / 2^BITS, in whole parts as Click has it.
    fn probability(&self, scaled: i64, length: i64) -> i64 {
        let (min, max, p) = (i64::from(self.min), i64::from(self.max), i64::from(self.p.0));
        let (slope, offset) = match length <= max {
            true if min >= max => (0, 1),
            true => (p / (max - min), p * min / (max - min)),
            false => ((ONE - p) / max.max(1), ONE - 2 * p),
        };
        ((slope * scaled) >> BITS) - offset
    }

    /// Moves MAX_P by a tenth down, or by a hundredth of one up, as the average demands.
    fn adapt(&mut self, average: i64) {
        const HUNDREDTH: u32 = Probability::<16>::ONE.0 / 100;
        let part = (self.max - self.min) / 2;
        let p = &mut self.p.0;
        if average < (self.min + part).into() && *p > HUNDREDTH {
            *p -= p.div_ceil(10);
        } else if average > (self.max - part).into() && *p < Probability::<16>::ONE.0 / 2 {
            *p += HUNDREDTH.min(*p / 4);
        }
    }

    /// The average length above which all is dropped.
    fn most(&self) -> i64 {
        let max = i64::from(self.max);
        if self.gentle && self.p != Probability::ONE { 2 * max } else { max }
    }
}

impl Red {
    fn new(own: Own, defaults: Defaults) -> Red {
        Red {
            own,
            as_click: defaults == Defaults::Click,
            queues: Vec::new(),
            average: 0,
            count: -1,
            random: 0,
            empty_at: None,
            adapt_ns: None,
        }
    }

    /// Lets `config` show the thresholds of now and the queues that were found, if Click's would.
    fn show(&self, cx: &mut Cx<'_>) {
        if !self.as_click {
            return;
        }
        let Own { min, max, p, stability, gentle, .. } = &self.own;
        let queues: String = self.queues.iter().map(|queue| format!(" {}", queue.name)).collect();
        let gentle = if *gentle { "" } else { ", GENTLE false" };
        cx.set_config(format!("{min}, {max}, {p}, QUEUES{queues}, STABILITY {stability}{gentle}"));
    }

    /// Lets MAX_P follow the average.
    fn adapt(&mut self, cx: &Cx<'_>) {
        let average = match self.own.stability {
            0 => self.length(cx) as i64,
            _ => (self.average + (1 << (BITS - 1))) >> BITS,
        };
        self.own.adapt(average);
    }

    /// Sets the timer, from when it was due so that lateness does not add up.
    fn adapt_later(&mut self, cx: &mut Cx<'_>) {
        let Some(due_ns) = self.adapt_ns else { return };
        let from_ns = if due_ns == 0 { cx.now_ns() } else { due_ns };
        self.adapt_ns = Some(from_ns + ADAPT_NS);
        cx.set_timer(ADAPT, from_ns + ADAPT_NS);
    }

    fn length(&self, cx: &Cx<'_>) -> usize {
        self.queues.iter().map(|queue| cx.stored(queue)).sum()
    }

    /// Moves the average towards `length`, at `now_ns`; returns it rounded.
    fn observe(&mut self, length: usize, now_ns: u64) -> i64 {
        let stability = self.own.stability;
        if stability == 0 {
            self.average = (length as i64) << BITS;
            return length as i64;
        }
        let times = match length {
            0 => {
                let now = now_ns / EMPTY_NS;
                self.empty_at.replace(now).map_or(1, |before| now.saturating_sub(before))
            }
            _ => {
                self.empty_at = None;
                1
            }
        };
        if length == 0 && times >= FORGOTTEN {
            self.average = 0;
        } else {
            let to = ((length as i64) << BITS) + (1 << (stability - 1));
            (0..times).for_each(|_| self.average += (to - self.average) >> stability);
        }
        (self.average + (1 << (BITS - 1))) >> BITS
    }

    /// Whether a packet is to be dropped that finds the queues so long at `now_ns`.
    fn drops(&mut self, length: usize, now_ns: u64, random: impl FnOnce() -> u16) -> bool {
        let average = self.observe(length, now_ns);
        if average <= self.own.min.into() || average > self.own.most() {
            self.count = -1;
            let drops = average > self.own.min.into();
            self.own.drops += u64::from(drops);
            return drops;
        }
        let p = self.own.probability(self.average, average);
        self.count += 1;
        let drops = self.count > 0 && p > 0 && self.count > self.random / p;
        if drops {
            self.count = 0;
            self.own.drops += 1;
        }
        if self.count == 0 {
            self.random = random().into();
        }
        drops
    }
}

impl Element for Red {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.queues = queues(&self.own.queues.0, cx)?;
        self.show(cx);
        self.adapt_later(cx);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.adapt(cx);
        self.adapt_later(cx);
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        // Those of the batch that have passed are not in the queue yet.
        let mut length = self.length(cx);
        batch.filter_map(|packet| {
            if self.drops(length, cx.now_ns(), || cx.rng().u16(..)) {
                cx.divert(1, Reason::Early, packet);
                return None;
            }
            length += 1;
            Some(packet)
        });
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let (mut one, mut dropped) = (cx.lend_batch(), 0);
        // A source that always has packets must not keep the worker here.
        while batch.len() < max && batch.room() > 0 && dropped < BATCH {
            cx.pull(0, 1, &mut one);
            let Some(packet) = one.pop() else { break };
            let length = self.length(cx);
            if self.drops(length, cx.now_ns(), || cx.rng().u16(..)) {
                cx.divert(1, Reason::Early, packet);
                dropped += 1;
            } else {
                // There is room.
                let _ = batch.push(packet);
            }
        }
        cx.return_batch(one);
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        self.show(cx);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let average = decimal(self.average.max(0) as u64, BITS);
        Ok(match handler {
            "min_thresh" => self.own.min.to_string(),
            "max_thresh" => self.own.max.to_string(),
            "max_p" => self.own.p.to_string(),
            "avg_queue_size" => average,
            "queues" => lines(&self.queues),
            _ => {
                format!("{} current queue\n{average} avg queue\n{} drops\n", self.length(cx), self.own.drops)
            }
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let before = (self.own.min, self.own.max, self.own.p);
        match handler {
            "min_thresh" => self.own.min = cx.value(handler, value)?,
            "max_thresh" => self.own.max = cx.value(handler, value)?,
            _ => self.own.p = cx.value(handler, value)?,
        }
        self.own.check().inspect_err(|_| (self.own.min, self.own.max, self.own.p) = before)?;
        self.show(cx);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Red>() {
            self.average = old.average;
        }
    }
}

#[cfg(test)]
mod tests;
