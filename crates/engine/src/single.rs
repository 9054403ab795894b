//! Where packets go one by one.
//!
//! An element that calls handlers when a packet passes has effects that others see. In Click each packet has gone all
//! its way when the next one comes; in a batch those behind the packet would be past the others already. So the
//! element gets its packets one by one, and so do the elements above it at which ways part: what happens on one way
//! happens before the next packet is on the other.
//!
//! Elements that write where others write too, such as to standard error, are seen to act if there are several of them.
//!
//! Where time is simulated all elements may get packets one by one, because each packet takes its time.

use crate::conf::has_keyword;
use crate::core::Core;

/// Marks the nodes of `core` that get packets one by one.
pub(crate) fn mark(core: &mut Core) {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); core.nodes.len()];
    for (i, node) in core.nodes.iter().enumerate() {
        for (to, _) in node.outs.iter().filter_map(|o| o.to) {
            above[to].push(i);
        }
    }
    let acts = |i: &usize| {
        let node = &core.nodes[*i];
        node.spec.acts || has_keyword(&node.config, node.spec.acts_with)
    };
    let mut acting: Vec<usize> = (0..core.nodes.len()).filter(acts).collect();
    let tells = |i: &usize| (core.nodes[*i].spec.tells)(&core.nodes[*i].config);
    let telling: Vec<usize> = (0..core.nodes.len()).filter(tells).collect();
    if telling.len() > 1 {
        acting.extend(telling);
    }
    let mut marked = vec![false; core.nodes.len()];
    let mut seen = marked.clone();
    let mut todo = acting.clone();
    while let Some(i) = todo.pop() {
        if !std::mem::replace(&mut seen[i], true) {
            marked[i] = core.nodes[i].outs.iter().filter(|o| o.to.is_some()).count() > 1;
            todo.extend(&above[i]);
        }
    }
    acting.into_iter().for_each(|i| marked[i] = true);
    for (node, marked) in core.nodes.iter_mut().zip(marked) {
        node.one_by_one = marked || core.apart;
    }
}
