//! One copy of a step for each protocol that gets there.
//!
//! Rules of several protocols alternate, and where their ways meet the protocol is not known any more: it is asked
//! again for every rule. Copies of the steps between keep it known, so that a packet runs through the rules of its
//! own protocol alone. This makes programs longer and the ways through them shorter.

use super::expr::{Base, Test};
use super::known::Way;
use super::program::{Goal, Node};
use super::thread::tidy;
use std::collections::{BTreeMap, HashMap};

/// The steps of a program may become so many times more.
const GROWTH: usize = 4;

/// What is known of the protocol: the outcome of each question about it.
type Answers = Vec<Option<bool>>;

/// A copy of a step, or an answer of the program.
#[derive(Clone)]
enum Target {
    Copy(usize, Answers),
    Answer(Goal),
}

/// The same program with steps split, or as it is if that would make it too long.
pub(crate) fn split(nodes: &[Node], start: Goal) -> (Vec<Node>, Goal) {
    let unchanged = || (nodes.to_vec(), start);
    let mut questions: Vec<Test> = nodes.iter().map(|n| n.test).filter(is_of_protocol).collect();
    questions.sort_unstable();
    questions.dedup();
    // A single question is not asked twice anyway.
    if questions.len() < 2 {
        return unchanged();
    }
    let mut waiting: BTreeMap<(usize, Answers), Way> = BTreeMap::new();
    let mut number: HashMap<(usize, Answers), usize> = HashMap::new();
    let mut copies: Vec<(Test, [Target; 2])> = Vec::new();
    let first = arrive(nodes, &questions, start, Way::default(), &mut waiting);
    // Branches lead to later steps, so that the first in order has all its ways behind it.
    while let Some(((n, answers), way)) = waiting.pop_first() {
        if copies.len() > nodes.len() * GROWTH {
            return unchanged();
        }
        let Node { test, to } = nodes[n];
        let after = |holds| if is_of_protocol(&test) { way.after(&test, holds) } else { way.clone() };
        let branches = [false, true].map(|holds| (to[holds as usize], after(holds)));
        let targets = branches.map(|(goal, way)| arrive(nodes, &questions, goal, way, &mut waiting));
        number.insert((n, answers), copies.len());
        copies.push((test, targets));
    }
    let goal = |target: Target| match target {
        Target::Answer(goal) => goal,
        Target::Copy(n, answers) => number.get(&(n, answers)).map_or(Goal::Drop, |&i| Goal::Step(i)),
    };
    let first = goal(first);
    tidy(copies.into_iter().map(|(test, to)| Node { test, to: to.map(goal) }).collect(), first)
}

fn is_of_protocol(t: &Test) -> bool {
    t.base == Base::Network && t.offset == 8 && t.mask & !0x00ff_0000 == 0
}

/// Where `way` gets to from `goal`, past the questions that it answers.
fn arrive(
    nodes: &[Node],
    questions: &[Test],
    mut goal: Goal,
    way: Way,
    waiting: &mut BTreeMap<(usize, Answers), Way>,
) -> Target {
    while let Goal::Step(n) = goal
        && is_of_protocol(&nodes[n].test)
        && let Some(holds) = way.outcome(&nodes[n].test)
    {
        goal = nodes[n].to[holds as usize];
    }
    let Goal::Step(n) = goal else { return Target::Answer(goal) };
    let answers: Answers = questions.iter().map(|q| way.outcome(q)).collect();
    waiting.entry((n, answers.clone())).or_insert(way);
    Target::Copy(n, answers)
}
