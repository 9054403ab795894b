//! What all elements count and measure, at one time.

use crate::handler::{self, COMMON};
use crate::measure::Kind;
use crate::spec::HandlerDoc;
use crate::worker::Worker;
use std::collections::HashMap;
use std::sync::Arc;

/// What an element counts or measures under one name.
#[derive(Clone)]
pub struct Measure {
    /// The element's name.
    pub element: Arc<str>,
    /// Its class.
    pub class: &'static str,
    /// The handler's name.
    pub name: String,
    /// The handler's declaration: what the value is.
    pub handler: &'static HandlerDoc,
    /// A number, or a list of numbers with their names ([`crate::measure::numbers`]).
    pub value: String,
}

/// The measures of one worker's elements.
pub(super) fn of_worker(worker: &mut Worker) -> Vec<Measure> {
    let core = &mut worker.core;
    let mut measures = Vec::new();
    for node in 0..core.nodes.len() {
        let (element, spec, numbered) =
            (core.nodes[node].name.clone(), core.nodes[node].spec, core.nodes[node].numbered());
        // What all elements hold is told as one number of the router.
        let common = COMMON.iter().filter(|h| h.name != "held");
        for handler in spec.handlers.iter().chain(common) {
            if !matches!(handler.kind, Kind::Counter | Kind::Gauge) {
                continue;
            }
            for name in handler.names(numbered) {
                if let Ok(value) = handler::read(core, node, &name, "") {
                    measures.push(Measure {
                        element: element.clone(),
                        class: spec.name,
                        name,
                        handler,
                        value,
                    });
                }
            }
        }
    }
    measures
}

/// The measures of all workers, those of the replicas of an element made one.
pub(super) fn combine(workers: Vec<Vec<Measure>>) -> Vec<Measure> {
    let mut all: Vec<(Measure, Vec<String>)> = Vec::new();
    let mut known: HashMap<(Arc<str>, &'static str, String), usize> = HashMap::new();
    for measure in workers.into_iter().flatten() {
        let key = (measure.element.clone(), measure.class, measure.name.clone());
        let at = *known.entry(key).or_insert(all.len());
        match all.get_mut(at) {
            Some((_, values)) => values.push(measure.value),
            None => {
                let value = measure.value.clone();
                all.push((measure, vec![value]));
            }
        }
    }
    all.into_iter()
        .map(|(measure, values)| Measure { value: measure.handler.across.combine(values), ..measure })
        .collect()
}
