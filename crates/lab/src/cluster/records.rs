//! What came of trials: a line for people each, and series of the document.

use super::paths::Moved;
use super::trial::Observed;
use causeway_results::{Axis, Document, Measurement, Series, Source};

/// What the rate of a flood is: nodes, front and tester share the processors.
const LIMITED: &str = "limited by the tester, which has the same processors as all nodes";

/// What came of a trial in which something happened to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How the front chooses nodes, and the timers.
    pub group: String,
    /// What happened.
    pub event: &'static str,
    /// To which node, from 1.
    pub node: usize,
    /// Frames sent.
    pub sent: u64,
    /// Frames lost of the node's flows, and of all others.
    pub lost: [u64; 2],
    /// Frames that others of their flow overtook.
    pub reordered: u64,
    /// Frames that came twice, were broken, or came from none of the nodes.
    pub strange: u64,
    /// Flows that went another way after it.
    pub moved: Moved,
    /// From the event to the sending of the last frame that was lost, in milliseconds, if any was.
    pub recovery_ms: Option<f64>,
    /// From the event until the front used the nodes that it should, in milliseconds, if the front is to know of it.
    pub known_ms: Option<f64>,
    /// Flows of each node before and after.
    pub shares: [Vec<usize>; 2],
}

impl Record {
    /// Of what was seen of an event at a time, of which the front knew at another.
    pub fn new(
        group: &str,
        event: &'static str,
        node: usize,
        (at_ns, known_ns): (u64, Option<u64>),
        seen: &Observed,
    ) -> Record {
        let (analysis, paths) = (&seen.outcome.analysis, &seen.paths);
        let total = analysis.total();
        Record {
            group: group.to_owned(),
            event,
            node,
            sent: total.sent,
            lost: seen.lost(node - 1, at_ns),
            reordered: total.reordered,
            strange: total.duplicated + analysis.corrupt + paths.strangers(),
            moved: paths.moved(Some(node - 1), at_ns, Observed::END_NS),
            recovery_ms: seen.last_lost_after_ns(at_ns).map(|ns| ns as f64 / 1e6),
            known_ms: known_ns.map(|ns| ns.saturating_sub(at_ns) as f64 / 1e6),
            shares: [paths.shares(at_ns), paths.shares(Observed::END_NS)],
        }
    }

    /// Column heads of [`Record::line`].
    pub fn head() -> String {
        format!(
            "{:<16} {:>4} {:>6} | lost: {:>6} {:>9} {:>10} | moved: {:>4} {:>9} | {:>10}",
            "what happens", "node", "sent", "its", "of others", "until", "its", "of others", "in front"
        )
    }

    /// For people.
    pub fn line(&self) -> String {
        let ms = |time: Option<f64>| time.map_or(String::new(), |ms| format!("{ms:.0} ms"));
        let (until, known) = (ms(self.recovery_ms), ms(self.known_ms));
        let ([own, others], Moved { of_node, of_others, .. }) = (self.lost, self.moved);
        format!(
            "{:<16} {:>4} {:>6} | {own:>12} {others:>9} {until:>10} | {of_node:>11} {of_others:>9} | {known:>10}{}",
            self.event,
            self.node,
            self.sent,
            self.remark()
        )
    }

    /// What is out of the ordinary.
    fn remark(&self) -> String {
        let mut remark = String::new();
        if self.reordered > 0 {
            remark += &format!("; {} overtaken", self.reordered);
        }
        if self.strange > 0 {
            remark += &format!("; {} doubled, broken or of nobody", self.strange);
        }
        remark
    }

    /// Puts it into the document; what happens again is another repetition.
    pub fn put(&self, document: &mut Document) {
        let numbers = [
            ("frames lost of the node's flows", "frames", Some(self.lost[0] as f64)),
            ("frames lost of other flows", "frames", Some(self.lost[1] as f64)),
            ("frames reordered", "frames", Some(self.reordered as f64)),
            ("flows moved that were the node's", "flows", Some(self.moved.of_node as f64)),
            ("flows moved of other nodes", "flows", Some(self.moved.of_others as f64)),
            ("time until nothing is lost", "ms", self.recovery_ms),
            ("time until the front knows", "ms", self.known_ms),
        ];
        for (quantity, unit, value) in numbers {
            if let Some(value) = value {
                let name = format!("{}/{}: {quantity}", self.group, self.event);
                add(
                    document,
                    &name,
                    (quantity, unit),
                    None,
                    value,
                    &format!("of {} flows", self.moved.flows),
                );
            }
        }
    }
}

/// What came of so many nodes when nothing happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// How the front chooses nodes, and the timers.
    pub group: String,
    /// Flows of each node.
    pub shares: Vec<usize>,
    /// Frames sent, and lost, at the usual rate.
    pub sent: u64,
    /// Frames lost at the usual rate.
    pub lost: u64,
    /// Frames a second that were forwarded of the most that was offered.
    pub flood_fps: f64,
    /// Packets of all that went through the routers themselves so far, and not through the kernels beside them.
    pub forwarded: u64,
}

impl Steady {
    /// For people.
    pub fn line(&self) -> String {
        let shares: Vec<String> = self.shares.iter().map(usize::to_string).collect();
        format!(
            "{} running: flows {}; {} of {} frames lost; flood {:.0} frames/s; {} frames so far went through the routers",
            self.shares.len(),
            shares.join(" + "),
            self.lost,
            self.sent,
            self.flood_fps,
            self.forwarded
        )
    }

    /// The busiest and the least busy node, times an even share.
    pub fn spread(&self) -> [f64; 2] {
        let even = self.shares.iter().sum::<usize>() as f64 / (self.shares.len() as f64).max(1.0);
        let part = |share: Option<&usize>| share.map_or(0.0, |share| *share as f64 / even.max(1.0));
        [part(self.shares.iter().max()), part(self.shares.iter().min())]
    }

    /// Puts it into the document.
    pub fn put(&self, document: &mut Document) {
        let [most, least] = self.spread();
        let (note, lost) = (self.line(), self.lost as f64);
        for (name, unit, value) in [
            ("flows of the busiest node", "even shares", most),
            ("flows of the least busy node", "even shares", least),
            ("frames lost", "frames", lost),
            ("forwarding rate of a flood", "frames/s", self.flood_fps),
        ] {
            let full = format!("{}/steady: {name}", self.group);
            let note = if unit == "frames/s" { LIMITED } else { &note };
            add(document, &full, (name, unit), Some(self.shares.len() as f64), value, note);
        }
    }
}

/// One more repetition of a point; `x` is a number of nodes.
fn add(
    document: &mut Document,
    name: &str,
    (quantity, unit): (&str, &str),
    x: Option<f64>,
    value: f64,
    note: &str,
) {
    let series = match document.series.iter().position(|series| series.name == name) {
        Some(at) => &mut document.series[at],
        None => {
            document.series.push(Series {
                name: name.to_owned(),
                quantity: quantity.to_owned(),
                unit: unit.to_owned(),
                x: x.map(|_| Axis { quantity: "nodes".to_owned(), unit: String::new() }),
                baseline: None,
                measurements: Vec::new(),
            });
            let last = document.series.len() - 1;
            &mut document.series[last]
        }
    };
    let known = series.measurements.iter_mut().find(|one| one.x == x);
    match known {
        Some(one) => one.repetitions.push(value),
        None => {
            let (source, note) = (Source::Measured, note.to_owned());
            series.measurements.push(Measurement { x, source, repetitions: vec![value], note });
        }
    }
}
