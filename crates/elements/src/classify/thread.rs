//! Branches past tests that are decided already.

use super::expr::{Base, Test};
use super::program::{Goal, Node};

/// Failed tests that are remembered at one step; what is forgotten is tested again, no more.
const FAILED: usize = 48;

/// What is known on the way to a step.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Tests that held, one a word.
    held: Vec<Test>,
    /// Tests that failed.
    failed: Vec<Test>,
}

fn place(t: &Test) -> (Base, u16) {
    (t.base, t.offset)
}

/// Whether `a` held means that `b` holds.
fn implies(a: &Test, b: &Test) -> bool {
    place(a) == place(b) && a.mask & b.mask == b.mask && a.value & b.mask == b.value
}

impl Known {
    /// The outcome of `test`, if it is decided.
    fn outcome(&self, test: &Test) -> Option<bool> {
        let word = self.held.iter().find(|t| place(t) == place(test));
        if let Some(word) = word {
            if implies(word, test) {
                return Some(true);
            }
            if (word.value ^ test.value) & word.mask & test.mask != 0 {
                return Some(false);
            }
        }
        // Together with what held, the test would make one hold that failed.
        let both =
            word.map_or(*test, |w| Test { mask: w.mask | test.mask, value: w.value | test.value, ..*w });
        self.failed.iter().any(|failed| implies(&both, failed)).then_some(false)
    }

    /// What is known after `test` came out as `holds`.
    fn after(&self, test: &Test, holds: bool) -> Known {
        let mut known = self.clone();
        if holds {
            match known.held.iter_mut().find(|t| place(t) == place(test)) {
                Some(t) => *t = Test { mask: t.mask | test.mask, value: t.value | test.value, ..*t },
                None => known.held.push(*test),
            }
        } else if known.failed.len() < FAILED {
            known.failed.push(*test);
        }
        known
    }

    /// Forgets what is not known in `other` too.
    fn intersect(&mut self, other: &Known) {
        self.held.retain_mut(|t| {
            let Some(o) = other.held.iter().find(|o| place(o) == place(t)) else { return false };
            t.mask &= o.mask & !(t.value ^ o.value);
            t.value &= t.mask;
            t.mask != 0
        });
        self.failed.retain(|t| other.outcome(t) == Some(false));
    }
}

/// Redirects branches until none can be, then leaves out steps that nothing leads to and numbers the others in the
/// order in which they are run. `nodes` has every step before those that lead to it; the result after them.
pub(crate) fn optimise(mut nodes: Vec<Node>, mut start: Goal) -> (Vec<Node>, Goal) {
    loop {
        let (before, first) = (nodes.clone(), start);
        pass(&mut nodes, start);
        start = collapse(&mut nodes, start);
        if (before, first) == (nodes.clone(), start) {
            return renumber(&nodes, start);
        }
    }
}

/// One pass over all steps, first to last: what is known at a step is what all branches into it agree on.
fn pass(nodes: &mut [Node], start: Goal) {
    let mut known: Vec<Option<Known>> = vec![None; nodes.len()];
    if let Goal::Step(first) = start {
        known[first] = Some(Known::default());
    }
    for n in (0..nodes.len()).rev() {
        let Some(here) = known[n].take() else { continue };
        for holds in [false, true] {
            let after = here.after(&nodes[n].test, holds);
            let goal = follow(nodes, nodes[n].to[holds as usize], &after);
            nodes[n].to[holds as usize] = goal;
            if let Goal::Step(next) = goal {
                match &mut known[next] {
                    Some(k) => k.intersect(&after),
                    none => *none = Some(after),
                }
            }
        }
    }
}

/// The first step from `goal` on that is not decided by `test` having held.
pub(crate) fn follow_from(nodes: &[Node], goal: Goal, test: &Test) -> Goal {
    follow(nodes, goal, &Known::default().after(test, true))
}

/// The first step from `goal` on that is not decided by what is known.
fn follow(nodes: &[Node], mut goal: Goal, known: &Known) -> Goal {
    while let Goal::Step(n) = goal {
        match known.outcome(&nodes[n].test) {
            Some(holds) => goal = nodes[n].to[holds as usize],
            None => break,
        }
    }
    goal
}

/// Goes round steps both of whose branches lead to the same place.
fn collapse(nodes: &mut [Node], start: Goal) -> Goal {
    let skip = |nodes: &[Node], mut goal: Goal| {
        while let Goal::Step(n) = goal {
            let [no, yes] = nodes[n].to;
            if no != yes {
                break;
            }
            goal = no;
        }
        goal
    };
    for n in 0..nodes.len() {
        nodes[n].to = nodes[n].to.map(|goal| skip(nodes, goal));
    }
    skip(nodes, start)
}

fn renumber(nodes: &[Node], start: Goal) -> (Vec<Node>, Goal) {
    let mut used = vec![false; nodes.len()];
    let mut todo = vec![start];
    while let Some(goal) = todo.pop() {
        if let Goal::Step(n) = goal
            && !std::mem::replace(&mut used[n], true)
        {
            todo.extend(nodes[n].to);
        }
    }
    let order: Vec<usize> = (0..nodes.len()).rev().filter(|&n| used[n]).collect();
    let mut number = vec![0; nodes.len()];
    order.iter().enumerate().for_each(|(new, &old)| number[old] = new);
    let new = |goal| match goal {
        Goal::Step(n) => Goal::Step(number[n]),
        answer => answer,
    };
    let nodes = order.iter().map(|&n| Node { test: nodes[n].test, to: nodes[n].to.map(new) });
    (nodes.collect(), new(start))
}
