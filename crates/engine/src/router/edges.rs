//! The edges of the running graph: how many packets passed each, and watching those.

use super::Router;
use super::ask::Limit;
use crate::error::NoAnswer;
use crate::plan::End;
use crate::watch::capture::Capture;
use crate::watch::meter::Meter;
use crate::watch::trace::{Filter, Trace};
use crate::watch::{Look, Tap};
use crate::worker::Worker;
use std::collections::HashMap;
use std::fmt;

/// Packets that one trace follows at most.
pub const MOST_TRACED: u16 = 1_000;

/// The last number that a trace gives before it begins with 1 again. The workers count on a little.
const LAST_NUMBER: u16 = 60_000;

/// An edge of the running graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Element and output.
    pub from: (String, usize),
    /// Element and input.
    pub to: (String, usize),
    /// Whether packets are pulled along it, rather than pushed.
    pub pulled: bool,
    /// Packets that passed it, over all workers.
    pub packets: u64,
    /// Bytes that passed it since [`Router::meter`] was switched on, if it is.
    pub bytes: Option<u64>,
}

impl fmt::Display for Edge {
    /// As in a configuration, with all ports: `a [0] -> [0] b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] -> [{}] {}", self.from.0, self.from.1, self.to.1, self.to.0)
    }
}

impl Edge {
    /// Whether `text` names this edge: `a [1] -> [0] b`, `a -> b` for port 0 of both, `a [1]`, `[0] b`, or `a` for all
    /// edges out of `a`.
    pub fn is_named(&self, text: &str) -> bool {
        let from = |text: &str, port: Option<usize>| {
            let (name, given) = behind(text);
            name == self.from.0 && given.or(port).is_none_or(|p| p == self.from.1)
        };
        let to = |text: &str, port: Option<usize>| {
            let (name, given) = before(text);
            name == self.to.0 && given.or(port).is_none_or(|p| p == self.to.1)
        };
        match text.split_once("->") {
            Some((a, b)) => from(a.trim(), Some(0)) && to(b.trim(), Some(0)),
            None if text.trim_start().starts_with('[') => to(text.trim(), None),
            None => from(text.trim(), None),
        }
    }
}

/// The parts of `name [port]`.
fn behind(text: &str) -> (&str, Option<usize>) {
    let parts = text.strip_suffix(']').and_then(|t| t.rsplit_once('['));
    parts
        .and_then(|(name, port)| Some((name.trim(), Some(port.trim().parse().ok()?))))
        .unwrap_or((text, None))
}

/// The parts of `[port] name`.
fn before(text: &str) -> (&str, Option<usize>) {
    let parts = text.strip_prefix('[').and_then(|t| t.split_once(']'));
    parts
        .and_then(|(port, name)| Some((name.trim(), Some(port.trim().parse().ok()?))))
        .unwrap_or((text, None))
}

/// Packets that went past other elements, and by which outputs of those they would have left.
struct Shortcut {
    past: Vec<(String, usize)>,
    packets: u64,
}

impl Router {
    /// All edges of the graph that are the configuration's, in its order. Packets that an element took past others, whose work it
    /// did, count at the edges that they would have taken.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn edges(&self) -> Result<Vec<Edge>, NoAnswer> {
        let mut counted: HashMap<(&str, &str), u64> = HashMap::new();
        for (line, n) in self.counters() {
            *counted.entry((&line.element, &line.name)).or_default() += n;
        }
        let name = |(element, port): End| (self.plan.elements[element].name.clone(), port);
        let edge = |&(from, to): &(End, End)| {
            let pulled = self.pulled(to);
            let (from, to) = (name(from), name(to));
            let (element, counter) =
                if pulled { (&to.0, format!("in.{}", to.1)) } else { (&from.0, format!("out.{}", from.1)) };
            let packets = counted.get(&(element.as_str(), counter.as_str())).copied().unwrap_or(0);
            Edge { from, to, pulled, packets, bytes: None }
        };
        let shown = self.plan.edges.len().saturating_sub(self.plan.entries);
        let mut edges: Vec<Edge> = self.plan.edges[..shown].iter().map(edge).collect();
        if let Some(meter) = &self.meter {
            edges.iter_mut().enumerate().for_each(|(e, edge)| edge.bytes = Some(meter.bytes(e)));
        }
        self.call_all(shortcuts)?.iter().flatten().for_each(|shortcut| add(&mut edges, shortcut));
        Ok(edges)
    }

    /// Copies the packets that pass these of the [`Router::edges`], `most_bytes` of each.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn capture(&self, edges: &[usize], most_bytes: usize) -> Result<Capture, NoAnswer> {
        let (capture, copier, interest) = Capture::new(most_bytes);
        let tap = |(number, &edge): (usize, &usize)| {
            let look = Look::Copy(copier.clone().of(number));
            (edge, Tap { interest: interest.clone(), look })
        };
        self.tap(edges.iter().enumerate().map(tap))?;
        Ok(capture)
    }

    /// Counts the bytes that pass each edge from now on, or no more; a hot swap ends it. Meanwhile no element does the work
    /// of others.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn meter(&mut self, on: bool) -> Result<(), NoAnswer> {
        self.meter = None;
        if on {
            let (meter, metered, interest) = Meter::new(self.plan.edges.len());
            let tap = |edge| {
                let look = Look::Measure(metered.clone().of(edge));
                (edge, Tap { interest: interest.clone(), look })
            };
            self.tap((0..self.plan.edges.len()).map(tap))?;
            self.meter = Some(meter);
        }
        Ok(())
    }

    /// Puts taps on edges, on every worker that has them.
    fn tap(&self, taps: impl Iterator<Item = (usize, Tap)>) -> Result<(), NoAnswer> {
        let mut calls = Vec::new();
        for (edge, tap) in taps {
            let Some(&(from, to)) = self.plan.edges.get(edge) else { continue };
            let pulled = self.pulled(to);
            let (element, port) = if pulled { to } else { from };
            for &place in self.index.get(self.plan.elements[element].name.as_str()).into_iter().flatten() {
                let tap = tap.clone();
                let put = move |w: &mut Worker| w.core.tap(place.node, port, pulled, tap);
                calls.push((place.worker, put));
            }
        }
        self.call_each(Limit::new(), calls.into_iter())?;
        Ok(())
    }

    /// Follows the next `packets` packets that `filter` likes, at most [`MOST_TRACED`], from where they enter the graph or
    /// from one of the [`Router::edges`] on.
    ///
    /// # Errors
    /// A worker does not answer.
    pub fn trace(&mut self, start: Option<usize>, filter: Filter, packets: u16) -> Result<Trace, NoAnswer> {
        let packets = packets.clamp(1, MOST_TRACED);
        // Packets of an earlier trace may still be about, with its numbers.
        let first = if self.traced > LAST_NUMBER - packets { 1 } else { self.traced + 1 };
        self.traced = first + packets - 1;
        let (trace, tracer) = Trace::new(filter, first..=self.traced);
        let start = start.and_then(|e| self.plan.edges.get(e)).map(|&(from, _)| from);
        let follow = |worker| {
            let mut tracer = tracer.clone();
            if let Some((element, port)) = start {
                let places = self.index.get(self.plan.elements[element].name.as_str());
                let place = places.and_then(|places| places.iter().find(|p| p.worker == worker));
                // Elsewhere only those are followed that come from there.
                tracer.start = Some((place.map_or(usize::MAX, |p| p.node), port));
            }
            (worker, move |w: &mut Worker| w.core.follow(tracer))
        };
        self.call_each(Limit::new(), (0..self.handles.len()).map(follow))?;
        Ok(trace)
    }

    fn pulled(&self, (element, port): End) -> bool {
        self.plan.elements[element].pulled_inputs.get(port) == Some(&true)
    }
}

fn shortcuts(worker: &mut Worker) -> Vec<Shortcut> {
    let mut all = Vec::new();
    for n in &worker.core.nodes {
        let past = n.element.as_ref().map_or(Vec::new(), |e| e.goes_past());
        for (output, past) in past.into_iter().enumerate() {
            let packets = n.outs.get(output).and_then(|o| o.packets.as_ref()).map_or(0, |c| c.get());
            all.push(Shortcut { past, packets });
        }
    }
    all
}

/// Counts the packets of a shortcut at the edges that they went past.
fn add(edges: &mut [Edge], shortcut: &Shortcut) {
    for left in &shortcut.past {
        if let Some(edge) = edges.iter_mut().find(|e| e.from == *left) {
            edge.packets += shortcut.packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: (&str, usize), to: (&str, usize)) -> Edge {
        Edge {
            from: (from.0.to_owned(), from.1),
            to: (to.0.to_owned(), to.1),
            pulled: false,
            packets: 0,
            bytes: None,
        }
    }

    #[test]
    fn edges_are_named_as_in_a_configuration() {
        let e = edge(("a/b", 1), ("c@2", 0));
        assert_eq!(e.to_string(), "a/b [1] -> [0] c@2");
        for text in ["a/b [1] -> [0] c@2", "a/b[1]->c@2", "a/b[1]", "a/b [1]", "a/b", "[0]c@2", " [0] c@2 "] {
            assert!(e.is_named(text), "{text}");
        }
        for text in ["a/b -> c@2", "a/b[0]", "c@2", "[1]c@2", "a", "", "[", "a/b[1] -> [1]c@2", "a/b[x]"] {
            assert!(!e.is_named(text), "{text}");
        }
    }

    #[test]
    fn packets_on_a_shortcut_count_where_they_would_have_gone() {
        let mut edges = [
            edge(("classifier", 2), ("strip", 0)),
            edge(("strip", 0), ("table", 0)),
            edge(("table", 0), ("out", 0)),
            edge(("table", 1), ("out", 0)),
            edge(("fused", 1), ("out", 0)),
        ];
        let past =
            [("classifier", 2), ("strip", 0), ("table", 1)].map(|(name, output)| (name.to_owned(), output));
        add(&mut edges, &Shortcut { past: past.to_vec(), packets: 7 });
        assert_eq!(edges.map(|e| e.packets), [7, 7, 0, 7, 0]);
    }
}
