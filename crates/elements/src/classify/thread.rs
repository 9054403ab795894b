//! Branches past tests that are decided already.

use super::combine;
use super::known::{Way, reduced};
use super::program::{Goal, Node};
use std::collections::HashMap;

/// Makes the steps fewer and the ways through them shorter, until nothing changes. Every branch leads to a later
/// step, before and after. Says what all packets meet first.
pub(crate) fn optimise(nodes: Vec<Node>, start: Goal) -> (Vec<Node>, Goal) {
    let (mut nodes, mut start) = tidy(nodes, start);
    loop {
        let before = nodes.clone();
        combine::sort(&mut nodes);
        pass(&mut nodes);
        combine::combine(&mut nodes);
        (nodes, start) = tidy(nodes, start);
        if nodes == before {
            combine::turn(&mut nodes);
            return (nodes, start);
        }
    }
}

/// One pass over all steps: each branch leads past the steps whose outcome is known on all ways to it.
fn pass(nodes: &mut [Node]) {
    let mut ways: Vec<Vec<Way>> = vec![Vec::new(); nodes.len()];
    if let Some(first) = ways.first_mut() {
        first.push(Way::default());
    }
    for n in 0..nodes.len() {
        let here = reduced(std::mem::take(&mut ways[n]));
        let test = nodes[n].test;
        let after = [false, true].map(|holds| -> Vec<Way> {
            let possible = here.iter().filter(|w| w.outcome(&test) != Some(!holds));
            possible.map(|w| w.after(&test, holds)).collect()
        });
        // Of a branch that is never taken nothing shall be left.
        match (after[0].is_empty(), after[1].is_empty()) {
            (true, true) => continue,
            (true, false) => nodes[n].to[0] = nodes[n].to[1],
            (false, true) => nodes[n].to[1] = nodes[n].to[0],
            (false, false) => {}
        }
        for (branch, after) in after.into_iter().enumerate().filter(|(_, after)| !after.is_empty()) {
            let goal = follow(nodes, nodes[n].to[branch], &after);
            nodes[n].to[branch] = goal;
            if let Goal::Step(next) = goal {
                ways[next].extend(after);
            }
        }
    }
}

/// The farthest place from `goal` on that all `ways` get to, as far as they are decided.
fn follow(nodes: &[Node], goal: Goal, ways: &[Way]) -> Goal {
    let paths: Vec<Vec<Goal>> = ways.iter().map(|way| path(nodes, goal, way)).collect();
    let Some((first, others)) = paths.split_first() else { return goal };
    // Steps come in order and answers after them, so that a path is sorted.
    let on_all = |goal: &&Goal| others.iter().all(|path| path.binary_search(goal).is_ok());
    first.iter().rev().find(on_all).copied().unwrap_or(goal)
}

fn path(nodes: &[Node], mut goal: Goal, way: &Way) -> Vec<Goal> {
    let mut path = vec![goal];
    while let Goal::Step(n) = goal
        && let Some(holds) = way.outcome(&nodes[n].test)
    {
        goal = nodes[n].to[holds as usize];
        path.push(goal);
    }
    path
}

/// Leaves out steps that decide nothing, that others are the same as, or that nothing leads to.
pub(crate) fn tidy(mut nodes: Vec<Node>, start: Goal) -> (Vec<Node>, Goal) {
    let mut stands_for: Vec<Goal> = (0..nodes.len()).map(Goal::Step).collect();
    let mut made = HashMap::new();
    let lead = |goal: Goal, stands_for: &[Goal]| match goal {
        Goal::Step(n) => stands_for[n],
        answer => answer,
    };
    for n in (0..nodes.len()).rev() {
        let node = &mut nodes[n];
        node.to = node.to.map(|goal| lead(goal, &stands_for));
        stands_for[n] = match node.to {
            [no, yes] if no == yes => yes,
            _ => *made.entry(*node).or_insert(Goal::Step(n)),
        };
    }
    let start = lead(start, &stands_for);
    let mut number: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut used = vec![false; nodes.len()];
    let mut out = Vec::new();
    if let Goal::Step(n) = start {
        used[n] = true;
    }
    for (n, node) in nodes.iter().enumerate() {
        if used[n] {
            number[n] = Some(out.len());
            out.push(*node);
            for goal in node.to {
                if let Goal::Step(next) = goal {
                    used[next] = true;
                }
            }
        }
    }
    let renumber = |goal| match goal {
        Goal::Step(n) => Goal::Step(number[n].unwrap_or(0)),
        answer => answer,
    };
    out.iter_mut().for_each(|node| node.to = node.to.map(renumber));
    (out, renumber(start))
}
