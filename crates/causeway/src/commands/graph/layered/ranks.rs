//! Which edges lead upwards, and in which layer each node is.

use super::{Edge, Node, Rank};

/// The outcome.
pub struct Ranks {
    /// For each node its layer, from 0 at the top; none between them is empty.
    pub layers: Vec<usize>,
    /// For each edge whether it leads upwards, or back to its own node.
    pub reversed: Vec<bool>,
}

/// Finds both.
pub fn ranks(nodes: &[Node], edges: &[Edge]) -> Ranks {
    let sequence = sequence(nodes, edges);
    let mut position = vec![0; nodes.len()];
    sequence.iter().enumerate().for_each(|(i, &node)| position[node] = i);
    let reversed: Vec<bool> = edges.iter().map(|e| position[e.from.0] >= position[e.to.0]).collect();
    // The same edges, all downwards. Loops say nothing about layers.
    let downwards = edges.iter().filter(|e| e.from.0 != e.to.0).map(|e| {
        let (a, b) = (e.from.0, e.to.0);
        if position[a] < position[b] { (a, b) } else { (b, a) }
    });
    let mut above = vec![Vec::new(); nodes.len()];
    let mut below = vec![Vec::new(); nodes.len()];
    for (a, b) in downwards {
        below[a].push(b);
        above[b].push(a);
    }
    let has_first = nodes.iter().any(|n| n.rank == Rank::First);
    let mut layers = vec![0; nodes.len()];
    for &node in &sequence {
        let least = usize::from(has_first && nodes[node].rank != Rank::First);
        layers[node] = above[node].iter().map(|&n| layers[n] + 1).fold(least, usize::max);
    }
    let free = nodes.iter().zip(&layers).filter(|(n, _)| n.rank != Rank::Last);
    let last = free.map(|(_, &layer)| layer + 1).max().unwrap_or(0);
    nodes.iter().zip(&mut layers).filter(|(n, _)| n.rank == Rank::Last).for_each(|(_, layer)| *layer = last);
    // What has more below it than above is better near to that: its edges become shorter.
    for &node in sequence.iter().rev() {
        let lowest = below[node].iter().map(|&n| layers[n] - 1).min();
        if let Some(lowest) = lowest.filter(|_| below[node].len() > above[node].len())
            && nodes[node].rank == Rank::Free
        {
            layers[node] = lowest;
        }
    }
    close_up(&mut layers);
    Ranks { layers, reversed }
}

/// The nodes in a sequence against which few edges lead: sinks go to its end and sources to its beginning, and when there
/// are none the node that is most like a source.
fn sequence(nodes: &[Node], edges: &[Edge]) -> Vec<usize> {
    let (mut ins, mut outs) = (vec![0_i64; nodes.len()], vec![0_i64; nodes.len()]);
    // How many edges lead to a node from those that are at the beginning.
    let mut entered = vec![0_i64; nodes.len()];
    let mut neighbours = vec![Vec::new(); nodes.len()];
    for Edge { from: (from, _), to: (to, _) } in edges.iter().filter(|e| e.from.0 != e.to.0) {
        outs[*from] += 1;
        ins[*to] += 1;
        neighbours[*from].push((*to, true));
        neighbours[*to].push((*from, false));
    }
    let with = |rank: Rank| (0..nodes.len()).filter(move |&n| nodes[n].rank == rank);
    let mut rest: Vec<usize> = with(Rank::Free).collect();
    let (mut head, mut tail) = (with(Rank::First).collect::<Vec<_>>(), with(Rank::Last).collect::<Vec<_>>());
    let remove = |node: usize, ins: &mut [i64], outs: &mut [i64], entered: &mut [i64]| {
        for &(neighbour, follows) in &neighbours[node] {
            if follows {
                ins[neighbour] -= 1;
                entered[neighbour] += 1;
            } else {
                outs[neighbour] -= 1;
            }
        }
    };
    head.iter().chain(&tail).for_each(|&node| remove(node, &mut ins, &mut outs, &mut entered));
    while !rest.is_empty() {
        let sink = rest.iter().rposition(|&n| outs[n] == 0);
        let at = sink.or_else(|| rest.iter().position(|&n| ins[n] == 0));
        // Of those that are most like a source the one by which packets come into the cycle, else the first.
        let source = |&i: &usize| (outs[rest[i]] - ins[rest[i]], entered[rest[i]]);
        let at = at.or_else(|| (0..rest.len()).rev().max_by_key(source));
        let node = rest.remove(at.unwrap_or(0));
        remove(node, &mut ins, &mut outs, &mut entered);
        if sink.is_some() { tail.push(node) } else { head.push(node) }
    }
    // Those of the last layer were put there first, and stay last.
    head.extend(tail.into_iter().rev());
    head
}

/// Takes empty layers out.
fn close_up(layers: &mut [usize]) {
    let mut used: Vec<usize> = layers.to_vec();
    used.sort_unstable();
    used.dedup();
    layers.iter_mut().for_each(|layer| *layer = used.partition_point(|u| u < layer));
}
