//! Finds for each puller the notifiers of packets upstream, and for each pusher those of room downstream.
//!
//! The search goes through elements as their flow codes say, and ends at elements that notify. Where it ends at
//! one that does not, the answer is unknown and nobody is held back.

use crate::core::Core;
use crate::cx::Cx;
use crate::node::OutPort;
use crate::signal::SignalId;
use causeway_lang::flow::FlowCode;
use std::collections::HashSet;

/// Wires the notifiers of one worker.
pub(crate) fn wire(core: &mut Core) {
    for node in 0..core.nodes.len() {
        for port in 0..core.nodes[node].ins.len() {
            if core.nodes[node].ins[port].from.is_none() {
                continue;
            }
            let found = packets_above(core, node, port);
            let is_puller =
                core.nodes[node].outs.iter().all(|o| o.to.is_some()) || core.nodes[node].outs.is_empty();
            if let Some(ids) = found.as_ref().filter(|_| is_puller) {
                for &id in ids {
                    core.signals.listen(id, node);
                }
            }
            if let Some(own) = core.nodes[node].packets_signal {
                // Until it has pulled it cannot know that there is nothing.
                core.signals.set(own, true);
                found.iter().flatten().for_each(|&id| core.signals.relay(id, own));
            }
            core.nodes[node].ins[port].signals = found;
        }
        for port in 0..core.nodes[node].outs.len() {
            let found = room_below(core, node, port);
            if core.nodes[node].ins.iter().all(|i| i.from.is_some()) {
                for &id in &found {
                    core.signals.listen(id, node);
                }
            }
            core.nodes[node].outs[port].room = found;
        }
    }
}

impl Cx<'_> {
    /// The notifiers that the element finds next to it, as Click writes them: of room below it if it is pushed to, else of
    /// packets above it.
    pub fn notifiers(&self) -> String {
        let node = &self.core.nodes[self.node];
        let pulls = node.ins.first().is_some_and(|input| input.from.is_some());
        let found = match pulls {
            true => node.ins[0].signals.as_deref(),
            // The outputs of the element that runs are with it.
            false => self.outs.first().map(|out| &out.room[..]).filter(|room| !room.is_empty()),
        };
        let Some(found) = found else { return "busy*".to_owned() };
        if found.is_empty() {
            return "idle".to_owned();
        }
        let bits = numbered(self.core, self.node, &self.outs);
        let sum = |on: bool| {
            let those = found.iter().filter(|id| !on || self.core.signals.is_active(**id));
            those
                .filter_map(|id| bits.iter().position(|bit| bit == id))
                .fold(0u64, |sum, bit| sum | 1 << bit.min(63))
        };
        let (all, on) = (sum(false), sum(true));
        let (name, star) = (if pulls { "empty" } else { "full" }, if on != 0 { "*" } else { "" });
        format!("{name}.0/{all}:{on}{star}")
    }
}

/// All notifiers in the order in which elements ask for them. `outs` are the outputs of `running`.
fn numbered(core: &Core, running: usize, outs: &[OutPort]) -> Vec<SignalId> {
    let mut order: Vec<SignalId> = Vec::new();
    for (i, node) in core.nodes.iter().enumerate() {
        let outs = if i == running { outs } else { &node.outs };
        let begins = node.ins.iter().all(|input| input.from.is_some()) || node.spec.name == "NotifierDebug";
        let room = outs.iter().filter(|_| begins).flat_map(|out| &out.room);
        let ends = outs.iter().all(|out| out.to.is_some()) || node.packets_signal.is_some();
        let asks = ends || node.spec.name == "NotifierDebug";
        let packets = node.ins.iter().filter(|_| asks).flat_map(|input| input.signals.iter().flatten());
        for id in room.chain(packets).chain(&node.packets_signal.filter(|_| !node.ins.is_empty() && asks)) {
            if !order.contains(id) {
                order.push(*id);
            }
        }
    }
    order
}

/// Notifiers of packets above a pull input; `None` = some path has none.
fn packets_above(core: &Core, node: usize, port: usize) -> Option<Vec<SignalId>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut todo = vec![(node, port)];
    while let Some((node, port)) = todo.pop() {
        let (up, out) = core.nodes[node].ins[port].from?;
        if !seen.insert((up, out)) {
            continue;
        }
        let n = &core.nodes[up];
        if let Some(id) = n.packets_signal {
            found.push(id);
            continue;
        }
        let before = todo.len();
        let flow = FlowCode::parse(n.spec.flow)?;
        todo.extend(flow.inputs_to(out, n.ins.len()).filter(|&i| n.ins[i].from.is_some()).map(|i| (up, i)));
        // An element that never gives anything has no inputs in use and says so by its name.
        if todo.len() == before && n.spec.name != "Idle" {
            return None;
        }
    }
    Some(found)
}

/// Notifiers of room below a push output; none = never held back.
fn room_below(core: &Core, node: usize, port: usize) -> Vec<SignalId> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut todo = vec![(node, port)];
    while let Some((node, port)) = todo.pop() {
        let Some((down, input)) = core.nodes[node].outs[port].to else { continue };
        if !seen.insert((down, input)) {
            continue;
        }
        let n = &core.nodes[down];
        if let Some(id) = n.room_signal {
            found.push(id);
            continue;
        }
        if let Some(flow) = FlowCode::parse(n.spec.flow) {
            todo.extend(flow.outputs_from(input, n.outs.len()).map(|o| (down, o)));
        }
    }
    found
}
