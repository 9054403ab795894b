//! How many packets other elements store: queues, for those that decide by their lengths.

use crate::core::Core;
use crate::cx::Cx;
use crate::error::Error;
use causeway_lang::flow::FlowCode;
use std::collections::HashSet;
use std::sync::Arc;

/// An element that stores packets ([`crate::Spec::stores`]), on the worker of the one that asks.
#[derive(Clone, Debug)]
pub struct Stored {
    node: usize,
    /// The element's name.
    pub name: Arc<str>,
}

impl Cx<'_> {
    /// The nearest elements that store packets: those that packets from output 0 reach, or, of an element that is pulled,
    /// those that its packets come from. To be asked for once, in [`crate::Element::initialize`].
    pub fn nearest_stores(&self) -> Vec<Stored> {
        let core = &*self.core;
        let mut found = match self.outs.first().and_then(|out| out.to) {
            Some(to) => below(core, to),
            None => above(core, self.node),
        };
        found.sort_unstable();
        found.into_iter().map(|node| Stored { node, name: core.nodes[node].name.clone() }).collect()
    }

    /// The element called `name` where this one stands, which stores packets.
    ///
    /// # Errors
    /// There is none on this worker, or it stores none.
    pub fn store(&self, name: &str) -> Result<Stored, Error> {
        let (node, _) = self.core.find_from(self.name(), &format!("{name}."))?;
        let found = &self.core.nodes[node];
        match found.spec.stores {
            true => Ok(Stored { node, name: found.name.clone() }),
            false => Err(Error::new(format!("'{name}' is not a Storage element"))),
        }
    }

    /// Packets that `store` holds now.
    #[inline]
    pub fn stored(&self, store: &Stored) -> usize {
        self.core.nodes.get(store.node).and_then(|n| n.element.as_ref()).map_or(0, |e| e.held())
    }
}

/// The first elements that store packets on each way from an input.
fn below(core: &Core, start: (usize, usize)) -> Vec<usize> {
    let (mut found, mut seen, mut todo) = (Vec::new(), HashSet::new(), vec![start]);
    while let Some((node, input)) = todo.pop() {
        if !seen.insert((node, input)) {
            continue;
        }
        let n = &core.nodes[node];
        if n.spec.stores {
            found.push(node);
        } else if let Some(flow) = FlowCode::parse(n.spec.flow) {
            todo.extend(flow.outputs_from(input, n.outs.len()).filter_map(|o| n.outs[o].to));
        }
    }
    found
}

/// The first elements that store packets on each way to a node that pulls.
fn above(core: &Core, node: usize) -> Vec<usize> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut todo: Vec<_> = core.nodes[node].ins.iter().filter_map(|i| i.from).collect();
    while let Some((node, output)) = todo.pop() {
        if !seen.insert((node, output)) {
            continue;
        }
        let n = &core.nodes[node];
        if n.spec.stores {
            found.push(node);
        } else if let Some(flow) = FlowCode::parse(n.spec.flow) {
            todo.extend(flow.inputs_to(output, n.ins.len()).filter_map(|i| n.ins[i].from));
        }
    }
    found
}
