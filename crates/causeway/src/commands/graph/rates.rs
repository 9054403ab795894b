//! What passes the edges of a running router: their counts, read twice.

use super::picture::Line;
use crate::control::Client;
use anyhow::{Context, Result};
use causeway_engine::{End, Plan};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Packets a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// For each edge of the plan.
    edges: Vec<f64>,
}

impl Rates {
    /// Measures for so long.
    pub fn measure(client: &mut Client, plan: &Plan, time: Duration) -> Result<Rates> {
        let (before, start) = (client.read("edges", "")?, Instant::now());
        std::thread::sleep(time);
        let (after, seconds) = (client.read("edges", "")?, start.elapsed().as_secs_f64());
        Rates::between(plan, &before, &after, seconds)
    }

    /// From two answers of the handler `edges`. An edge that is new or began anew counts from 0.
    fn between(plan: &Plan, before: &str, after: &str, seconds: f64) -> Result<Rates> {
        let (before, after) = (counts(before)?, counts(after)?);
        let packets = |&(from, to): &(End, End)| {
            let pulled = super::is_pulled(plan, to);
            let (element, port) = if pulled { to } else { from };
            let end = (plan.elements[element].name.as_str(), port, pulled);
            let of = |counts: &HashMap<Counted, u64>| counts.get(&end).copied().unwrap_or(0);
            of(&after).checked_sub(of(&before)).unwrap_or(of(&after)) as f64
        };
        Ok(Rates { edges: plan.edges.iter().map(|edge| packets(edge) / seconds).collect() })
    }

    /// What passes an edge.
    pub fn of_edge(&self, edge: usize) -> f64 {
        self.edges.get(edge).copied().unwrap_or(0.0)
    }

    fn of(&self, line: &Line) -> f64 {
        line.edges.iter().map(|&edge| self.of_edge(edge)).sum()
    }

    /// How much that is beside the edge that most pass, from 0 for none to 4.
    pub fn grade(&self, line: &Line) -> usize {
        let (rate, most) = (self.of(line), self.edges.iter().copied().fold(0.0, f64::max));
        let bounds = [0.0, most / 100.0, most / 10.0, most / 2.0];
        bounds.iter().filter(|&&bound| rate > bound).count()
    }

    /// It as a text, if anything passes.
    pub fn label(&self, line: &Line) -> Option<String> {
        Some(self.of(line)).filter(|&rate| rate > 0.0).map(text)
    }
}

/// The end of an edge that has no other: the output of one that is pushed along, the input of one that is pulled along.
/// Its other end may be different in the graph that runs, where one element does the work of several.
type Counted<'a> = (&'a str, usize, bool);

/// The counts of the edges.
fn counts(answer: &str) -> Result<HashMap<Counted<'_>, u64>> {
    let line = |line| {
        let mut words = str::split(line, '\t');
        let (edge, pulled, count) = (words.next()?, words.next()? == "pull", words.next()?);
        let (from, to) = edge.split_once(" -> ")?;
        let (name, port) = match pulled {
            false => from.strip_suffix(']')?.rsplit_once(" [")?,
            true => to.strip_prefix('[')?.split_once("] ").map(|(port, name)| (name, port))?,
        };
        Some(((name, port.parse().ok()?, pulled), count.parse().ok()?))
    };
    let all = answer.lines().map(|l| line(l).context("the router's edges are of another version"));
    all.collect()
}

/// Packets a second with three digits: `12`, `1.23k/s`.
pub fn text(rate: f64) -> String {
    let (value, unit) = match rate {
        r if r >= 999.5e3 => (r / 1e6, "M"),
        r if r >= 999.5 => (r / 1e3, "k"),
        r => (r, ""),
    };
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::PlanElement;

    fn plan() -> Plan {
        let element = |name: &str| PlanElement {
            name: name.to_owned(),
            class: "C".to_owned(),
            config: String::new(),
            landmark: String::new(),
            span: None,
            pulled_inputs: vec![false],
            pulled_outputs: vec![false],
        };
        Plan {
            elements: ["a", "b"].map(element).to_vec(),
            edges: vec![((0, 0), (1, 0)), ((1, 0), (0, 0))],
            entries: 0,
        }
    }

    fn line(edges: &[usize]) -> Line {
        Line { path: Vec::new(), pulled: false, ends: true, edges: edges.to_vec() }
    }

    #[test]
    fn rates_are_differences_by_time_and_lines_add_up_their_edges() {
        let before = "a [0] -> [0] b\tpush\t100\nb [0] -> [0] a\tpush\t50\n";
        let after = "b [0] -> [0] a\tpush\t60\na [0] -> [0] fused\tpush\t2100\nfused [0] -> [0] b\tpush\t9\n";
        let rates = Rates::between(&plan(), before, after, 2.0).unwrap();
        assert_eq!(rates.edges, [1000.0, 5.0]);
        assert_eq!(rates.label(&line(&[0, 1])).as_deref(), Some("1.00k/s"));
        assert_eq!([rates.grade(&line(&[0])), rates.grade(&line(&[1])), rates.grade(&line(&[]))], [4, 1, 0]);
        assert_eq!(rates.label(&line(&[])), None);
    }

    #[test]
    fn what_is_pulled_counts_where_it_arrives() {
        let mut plan = plan();
        plan.elements[1].pulled_inputs = vec![true];
        let after = "a [0] -> [0] b\tpull\t7\na [0] -> [0] c\tpull\t9\nb [0] -> [0] a\tpush\t2\n";
        assert_eq!(Rates::between(&plan, "", after, 1.0).unwrap().edges, [7.0, 2.0]);
    }

    #[test]
    fn a_graph_that_began_anew_counts_from_nothing() {
        let before = "a [0] -> [0] b\tpush\t100\n";
        let rates = Rates::between(&plan(), before, "a [0] -> [0] b\tpush\t4\n", 1.0).unwrap();
        assert_eq!(rates.edges, [4.0, 0.0]);
        assert!(Rates::between(&plan(), "a", before, 1.0).is_err());
    }

    #[test]
    fn texts_have_three_digits() {
        let texts = [0.5, 12.34, 999.4, 999.6, 12_345.0, 123_456.0, 999_600.0, 14.88e6].map(text);
        assert_eq!(
            texts,
            ["0.50/s", "12.3/s", "999/s", "1.00k/s", "12.3k/s", "123k/s", "1.00M/s", "14.9M/s"]
        );
    }
}
