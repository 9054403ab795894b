//! Edges: a place to another one's input, or to a ring where the other lives on another worker.

use super::Builder;
use crate::crossing::{self, FanOut, FromWorker, PullToWorker, ToWorker, ToWorkers};
use crate::element::Element;
use crate::measure::Unit;
use crate::node::{Node, Place};
use crate::notify;
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn connect(&mut self) {
        for &((from, out), (to, input)) in &self.plan.edges {
            let pulled = self.plan.elements[to].pulled_inputs.get(input) == Some(&true);
            let (senders, receivers) = (self.places[from].clone(), self.places[to].clone());
            let to_all = receivers.len() > 1 && self.specs[to].heard_by_all.contains(&input);
            for (copy, &a) in senders.iter().enumerate() {
                match receivers.as_slice() {
                    _ if to_all => self.fan_out((a, out), &receivers, input, FanOut::Copy),
                    [] => {}
                    [b] => self.connect_places((a, out), (*b, input), pulled),
                    all if senders.len() == all.len() => {
                        self.connect_places((a, out), (all[copy], input), pulled)
                    }
                    all => self.fan_out((a, out), all, input, FanOut::Spread),
                }
            }
        }
        for core in &mut self.cores {
            notify::wire(core);
            crate::single::mark(core);
        }
    }

    fn connect_places(&mut self, (a, out): (Place, usize), (b, input): (Place, usize), pulled: bool) {
        if a.worker == b.worker {
            let nodes = &mut self.cores[a.worker].nodes;
            let counters = &mut self.env.counters;
            let mut count = |node: &Node, end: &str, port: usize| {
                Some(counters.add(a.worker, &node.name, &format!("{end}.{port}"), Unit::Packets))
            };
            if pulled {
                nodes[b.node].ins[input].packets = count(&nodes[b.node], "in", input);
                nodes[b.node].ins[input].from = Some((a.node, out));
            } else {
                // Who gave a packet up that enters here has counted it on its way.
                let is_entry = out + nodes[a.node].entries >= nodes[a.node].outs.len();
                nodes[a.node].outs[out].packets =
                    if is_entry { None } else { count(&nodes[a.node], "out", out) };
                nodes[a.node].outs[out].to = Some((b.node, input));
            }
            return;
        }
        // What one worker pushes to an input goes by one ring, from whichever elements: so it stays in order.
        let key = (a.worker, b, input);
        if let Some(&s) = self.senders.get(&key).filter(|_| !pulled) {
            let s = Place { worker: a.worker, node: s };
            return self.connect_places((a, out), (s, 0), pulled);
        }
        let doorbell = |worker: usize| self.layout.doorbells[worker].clone();
        let (sender, receiver) = crossing::ring(doorbell(a.worker), doorbell(b.worker));
        let name: Arc<str> = format!("{}[{out}]", self.cores[a.worker].nodes[a.node].name).into();
        let (spec, sender): (_, Box<dyn Element>) = match pulled {
            true => (&crossing::PULL_TO_WORKER, Box::new(PullToWorker(sender))),
            false => (&crossing::TO_WORKER, Box::new(ToWorker(sender))),
        };
        let edge = self.edge_key(&name, a);
        let receiver = Box::new(FromWorker { ring: receiver, pulled, key: edge });
        let s = self.add(a.worker, name.clone(), spec, String::new(), sender, (1, 0));
        let r = self.add(b.worker, name, &crossing::FROM_WORKER, String::new(), receiver, (0, 1));
        if !pulled {
            self.senders.insert(key, s.node);
        }
        self.connect_places((a, out), (s, 0), pulled);
        self.connect_places((r, 0), (b, input), pulled);
    }

    /// What a hot swap knows an edge by that crosses workers: edges of copies have one name.
    fn edge_key(&self, name: &str, sender: Place) -> String {
        let copies = self.index.get(&self.cores[sender.worker].nodes[sender.node].name);
        let copy = copies.and_then(|places| places.iter().position(|place| *place == sender));
        format!("{name} of copy {}", copy.unwrap_or(0))
    }

    /// Connects an output with an input of several copies, each on its worker.
    fn fan_out(&mut self, (a, out): (Place, usize), receivers: &[Place], input: usize, how: FanOut) {
        let name: Arc<str> = format!("{}[{out}]", self.cores[a.worker].nodes[a.node].name).into();
        let doorbell = |worker: usize| self.layout.doorbells[worker].clone();
        let mut ways = Vec::new();
        let mut ends = Vec::new();
        for &b in receivers {
            if b.worker == a.worker {
                ways.push(None);
                ends.push((b, None));
            } else {
                let (sender, receiver) = crossing::ring(doorbell(a.worker), doorbell(b.worker));
                ways.push(Some(sender));
                ends.push((b, Some(receiver)));
            }
        }
        let sender = Box::new(ToWorkers::new(ways, how));
        let s = self.add(a.worker, name.clone(), &crossing::TO_WORKERS, String::new(), sender, (1, 1));
        self.connect_places((a, out), (s, 0), false);
        for (b, receiver) in ends {
            let Some(ring) = receiver else {
                self.connect_places((s, 0), (b, input), false);
                continue;
            };
            let key = self.edge_key(&name, a);
            let receiver = Box::new(FromWorker { ring, pulled: false, key });
            let r = self.add(b.worker, name.clone(), &crossing::FROM_WORKER, String::new(), receiver, (0, 1));
            self.connect_places((r, 0), (b, input), false);
        }
    }
}
