//! Steps in an order in which they have the most in common, and two steps about one word made one.

use super::expr::{Base, Test};
use super::program::{Goal, Node};
use std::cmp::Ordering;

/// Puts steps in a row, all of which a packet must pass (or fail) to get on, in the order of their words. Protocols
/// come before the other words of the network header, since most rules ask for them. The first step stays where it
/// is.
pub(crate) fn sort(nodes: &mut [Node]) {
    let mut entries: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (n, node) in nodes.iter().enumerate() {
        for goal in node.to {
            if let Goal::Step(next) = goal {
                entries[next].push(n);
            }
        }
    }
    let mut n = 1;
    while n < nodes.len() {
        n = match (0..2).any(|branch| swap(nodes, &entries, n, branch)) {
            // The one that came forward may belong before its new predecessor.
            true => *entries[n].first().filter(|&&before| before > 0).unwrap_or(&(n + 1)),
            false => n + 1,
        };
    }
}

/// Swaps the tests of step `n` and the one that `branch` leads to, if they are a row and the wrong way round.
fn swap(nodes: &mut [Node], entries: &[Vec<usize>], n: usize, branch: usize) -> bool {
    let first = nodes[n];
    let Goal::Step(next) = first.to[branch] else { return false };
    let second = nodes[next];
    let row = entries[next].len() == 1 && first.to[1 - branch] == second.to[1 - branch];
    if !row || key(&first.test) <= key(&second.test) {
        return false;
    }
    (nodes[n].test, nodes[next].test) = (second.test, first.test);
    true
}

fn key(t: &Test) -> (u32, u32, u32) {
    let place = match (t.base, t.offset) {
        (Base::Network, 8) => 256 + 3,
        (Base::Data | Base::Link, offset) => offset as u32,
        (Base::Network, offset) => 256 + offset as u32,
        (Base::Transport, offset) => 512 + offset as u32,
    };
    (place, t.mask, t.value)
}

/// Makes one step of two, last ones first, where a packet must pass both or may pass either.
pub(crate) fn combine(nodes: &mut [Node]) {
    for n in (0..nodes.len()).rev() {
        while either(nodes, n) || both(nodes, n) {}
    }
}

/// Two values that differ in one bit are one value without that bit.
fn either(nodes: &mut [Node], n: usize) -> bool {
    let first = nodes[n];
    let Goal::Step(no) = first.to[0] else { return false };
    let second = nodes[no];
    let (a, b) = (first.test, second.test);
    let differs = a.value ^ b.value;
    let mask = a.mask & !differs;
    let one = Test { mask, value: a.value & mask, short: a.short || b.short, ..a };
    let same = a.same_word(&b) && a.mask == b.mask && first.to[1] == second.to[1];
    let good = same && differs.is_power_of_two() && one.needed() == a.needed();
    if good {
        nodes[n] = Node { test: one, to: [second.to[0], first.to[1]] };
    }
    good
}

/// Two tests of one word that must hold are one test of more bits. A test of a single bit can ask for either value.
fn both(nodes: &mut [Node], n: usize) -> bool {
    let forms = |node: Node| [Some(node), flipped(node)].into_iter().flatten();
    let joined = forms(nodes[n]).find_map(|first| {
        let Goal::Step(yes) = first.to[1] else { return None };
        forms(nodes[yes]).find_map(|second| join(first, second))
    });
    joined.inspect(|&node| nodes[n] = node).is_some()
}

fn join(first: Node, second: Node) -> Option<Node> {
    let (a, b) = (first.test, second.test);
    // A packet that is long enough for one of them only must not get on by the other.
    let lengths = match a.needed().cmp(&b.needed()) {
        Ordering::Less => !b.short,
        Ordering::Equal => true,
        Ordering::Greater => !a.short,
    };
    let good = a.same_word(&b) && !a.excludes(&b) && first.to[0] == second.to[0] && lengths;
    good.then(|| {
        let test = Test { mask: a.mask | b.mask, value: a.value | b.value, short: a.short && b.short, ..a };
        Node { test, to: [first.to[0], second.to[1]] }
    })
}

/// Lets tests of a single bit ask for the value that short packets do not pass for.
pub(crate) fn turn(nodes: &mut [Node]) {
    for node in nodes.iter_mut().filter(|n| n.test.short) {
        *node = flipped(*node).unwrap_or(*node);
    }
}

/// The same step, asking for the other value of its single bit.
fn flipped(node: Node) -> Option<Node> {
    let Node { test: t, to: [no, yes] } = node;
    let test = Test { value: t.value ^ t.mask, short: !t.short, ..t };
    t.mask.is_power_of_two().then_some(Node { test, to: [yes, no] })
}
