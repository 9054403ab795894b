//! Which node each flow goes through, and when it moves to another.
//!
//! A node is told by the Ethernet address that its frames come from. Frames that others of their flow have overtaken say
//! nothing: they are of a path that the flow has left.

use crate::frame::Tag;
use causeway_packet::wire::MacAddr;

/// The ways of all flows of a trial.
#[derive(Clone, Debug)]
pub struct Paths {
    nodes: Vec<MacAddr>,
    flows: Vec<Flow>,
    strangers: u64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    /// One above the highest number that came.
    next: u32,
    /// From when on, by the times at which frames were sent, it went through which node.
    ways: Vec<(u64, usize)>,
}

/// How flows went on from one time to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Flows that were seen at both times.
    pub flows: usize,
    /// Of those, that went through the node in question at first, and then through another.
    pub of_node: usize,
    /// Of those, that went through another node at first, and then through yet another: without need.
    pub of_others: usize,
}

impl Paths {
    /// Of so many flows, through nodes with these addresses.
    pub fn new(nodes: Vec<MacAddr>, flows: usize) -> Paths {
        Paths { nodes, flows: vec![Flow::default(); flows], strangers: 0 }
    }

    /// A frame came from a node.
    pub fn saw(&mut self, tag: Tag, frame: &[u8]) {
        let source = frame.get(6..12).and_then(|mac| mac.try_into().ok()).map(MacAddr);
        let Some(node) = self.nodes.iter().position(|mac| Some(*mac) == source) else {
            self.strangers += 1;
            return;
        };
        let Some(flow) = self.flows.get_mut(usize::from(tag.flow)) else { return };
        if tag.sequence < flow.next {
            return;
        }
        flow.next = tag.sequence.saturating_add(1);
        if flow.ways.last().is_none_or(|(_, last)| *last != node) {
            flow.ways.push((tag.sent_ns, node));
        }
    }

    /// The node that a flow went through at a time of the trial, as far as it is known.
    pub fn node(&self, flow: usize, at_ns: u64) -> Option<usize> {
        let ways = &self.flows.get(flow)?.ways;
        ways.iter().rev().find(|(from_ns, _)| *from_ns <= at_ns).map(|(_, node)| *node)
    }

    /// Flows through each node at a time.
    pub fn shares(&self, at_ns: u64) -> Vec<usize> {
        let mut shares = vec![0; self.nodes.len()];
        (0..self.flows.len()).filter_map(|flow| self.node(flow, at_ns)).for_each(|node| shares[node] += 1);
        shares
    }

    /// The flows that moved between two times, apart by whether they were those of `node`.
    pub fn moved(&self, node: Option<usize>, from_ns: u64, to_ns: u64) -> Moved {
        let mut moved = Moved::default();
        for flow in 0..self.flows.len() {
            let (Some(before), Some(after)) = (self.node(flow, from_ns), self.node(flow, to_ns)) else {
                continue;
            };
            moved.flows += 1;
            match before == after {
                true => {}
                false if Some(before) == node => moved.of_node += 1,
                false => moved.of_others += 1,
            }
        }
        moved
    }

    /// Frames that came from none of the nodes.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [MacAddr; 3] =
        [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 3])];

    fn saw(paths: &mut Paths, flow: u16, sequence: u32, sent_ns: u64, node: usize) {
        let mut frame = [0; 60];
        frame[6..12].copy_from_slice(&NODES[node].0);
        paths.saw(Tag { trial: 1, flow, sequence, sent_ns }, &frame);
    }

    #[test]
    fn flows_that_move_are_counted_apart_by_the_node_that_they_left() {
        let mut paths = Paths::new(NODES.to_vec(), 4);
        for (flow, node) in [(0, 0), (1, 1), (2, 2)] {
            saw(&mut paths, flow, 0, 10, node);
        }
        saw(&mut paths, 0, 1, 20, 2);
        saw(&mut paths, 1, 1, 20, 2);
        saw(&mut paths, 2, 1, 20, 2);
        // Flow 3 is new: it moved from nowhere.
        saw(&mut paths, 3, 0, 20, 1);
        assert_eq!(paths.shares(15), [1, 1, 1]);
        assert_eq!(paths.shares(20), [0, 1, 3]);
        assert_eq!(paths.moved(Some(0), 15, 25), Moved { flows: 3, of_node: 1, of_others: 1 });
        assert_eq!(paths.moved(None, 15, 25), Moved { flows: 3, of_node: 0, of_others: 2 });
        assert_eq!(paths.moved(Some(0), 5, 25), Moved::default(), "nothing was seen before");
    }

    #[test]
    fn what_was_overtaken_does_not_move_a_flow_back() {
        let mut paths = Paths::new(NODES.to_vec(), 1);
        for (sequence, sent_ns, node) in [(0, 10, 0), (2, 30, 1), (1, 20, 0), (3, 40, 1)] {
            saw(&mut paths, 0, sequence, sent_ns, node);
        }
        assert_eq!((paths.node(0, 9), paths.node(0, 29), paths.node(0, 30)), (None, Some(0), Some(1)));
        assert_eq!(paths.node(0, u64::MAX), Some(1));
    }

    #[test]
    fn frames_from_elsewhere_are_counted_and_move_nothing() {
        let mut paths = Paths::new(NODES[..2].to_vec(), 1);
        saw(&mut paths, 0, 0, 1, 2);
        saw(&mut paths, 7, 0, 1, 0);
        paths.saw(Tag { trial: 1, flow: 0, sequence: 0, sent_ns: 1 }, &[0; 3]);
        assert_eq!((paths.strangers(), paths.node(0, 5), paths.node(7, 5)), (2, None, None));
    }
}
