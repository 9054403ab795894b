//! Packets that something else handles in the place of elements, such as a program in the driver: what the elements would
//! do, and counting it as theirs.

use super::Router;
use super::ask::Limit;
use crate::counters::Counter;
use crate::driver::{Command, Driver};
use crate::error::NoAnswer;
use crate::ir::{Entry, Program};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What could not be added to counters.
#[derive(Debug)]
pub struct NotAdded {
    /// The worker that does not answer.
    pub why: NoAnswer,
    /// Its counters, and what was to be added to each.
    pub sums: Vec<(Counter, u64)>,
}

impl Router {
    /// What an element lowers to now, as it is configured; of several copies the first. Its counters are those of the
    /// running element.
    ///
    /// # Errors
    /// If its worker does not answer.
    pub fn lower(&self, element: &str) -> Result<Option<Program>, NoAnswer> {
        let Some(&place) = self.index.get(element).and_then(|places| places.first()) else { return Ok(None) };
        self.call(place.worker, Limit::new(), move |w| {
            w.core.nodes.get(place.node)?.element.as_ref()?.lower()
        })
    }

    /// All that the tables of an element have now, by number; `None` for one that cannot be copied.
    ///
    /// # Errors
    /// If its worker does not answer.
    pub fn tables(&self, element: &str) -> Result<Vec<Option<Vec<Entry>>>, NoAnswer> {
        let Some(&place) = self.index.get(element).and_then(|places| places.first()) else {
            return Ok(Vec::new());
        };
        self.call(place.worker, Limit::new(), move |w| {
            w.core.clock.touch();
            let now_ns = w.core.clock.now_ns();
            let program = w.core.nodes.get(place.node).and_then(|node| node.element.as_ref()?.lower());
            let tables = program.map(Program::into_tables).unwrap_or_default();
            tables.iter().map(|table| table.entries(now_ns)).collect()
        })
    }

    /// The counter of an element called `name`, as the handler `counters` has it; of several copies that of the first.
    pub fn counter(&self, element: &str, name: &str) -> Option<Counter> {
        self.env.counters.find(element, name).map(|(_, counter)| counter)
    }

    /// Adds to counters of the running graph, each on the worker that writes it, and tells its element
    /// ([`crate::Element::counted`]). Those of an earlier graph are left.
    ///
    /// # Errors
    /// A worker that does not answer, with what it was to add and never will; the others have added theirs.
    pub fn add(&self, sums: Vec<(Counter, u64)>) -> Result<(), NotAdded> {
        let mut by_worker: BTreeMap<usize, Vec<(Option<usize>, Counter, u64)>> = BTreeMap::new();
        for (counter, n) in sums.into_iter().filter(|&(_, n)| n > 0) {
            if let Some(line) = self.env.counters.line_of(&counter) {
                let places = self.index.get(line.element.as_str());
                let place = places.and_then(|places| places.iter().find(|at| at.worker == line.worker));
                let sum = (place.map(|place| place.node), counter, n);
                by_worker.entry(line.worker).or_default().push(sum);
            }
        }
        let limit = Limit::new();
        let ask = |(worker, sums): (usize, Vec<(Option<usize>, Counter, u64)>)| {
            // A worker that was stuck may find later what it was asked for: then it is too late.
            let is_done = Arc::new(AtomicBool::new(false));
            let (done, to_add) = (is_done.clone(), sums.clone());
            let add = move |Driver { worker, .. }: &mut Driver| {
                if !done.swap(true, Ordering::AcqRel) {
                    worker.core.clock.touch();
                    to_add.iter().for_each(|(node, to, n)| worker.core.add(*node, to, *n));
                }
            };
            (self.ask(Command::Call, worker, add), is_done, sums)
        };
        let asked: Vec<_> = by_worker.into_iter().map(ask).collect();
        let (mut left, mut missing) = (Vec::new(), None);
        for (asked, is_done, sums) in asked {
            if let Err(error) = asked.and_then(|asked| asked.wait(limit))
                && !is_done.swap(true, Ordering::AcqRel)
            {
                left.extend(sums.into_iter().map(|(_, counter, n)| (counter, n)));
                missing = Some(error);
            }
        }
        missing.map_or(Ok(()), |why| Err(NotAdded { why, sums: left }))
    }

    /// How many handlers of elements were written on the workers, by whoever it was: a number that is another when some
    /// element may do something else than before.
    ///
    /// # Errors
    /// If a worker does not answer.
    pub fn written(&self) -> Result<u64, NoAnswer> {
        Ok(self.call_all(|w| w.core.written)?.into_iter().sum())
    }

    /// Whether somebody captures, traces or measures packets: they see only those that come by the graph.
    ///
    /// # Errors
    /// If a worker does not answer.
    pub fn is_watched(&self) -> Result<bool, NoAnswer> {
        Ok(self.call_all(|w| w.core.watched)?.contains(&true))
    }
}
