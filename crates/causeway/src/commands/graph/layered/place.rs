//! The places of the items, and the paths of the edges.

use super::chains::{Chains, Hook, Item};
use super::order::rounds;
use super::{Path, Point};

/// Between two boxes of a layer.
const GAP: f64 = 22.0;
/// Between an edge that passes and what is beside it.
const GAP_VIRTUAL: f64 = 9.0;
/// Least height between two layers.
const LEAST_HEIGHT: f64 = 34.0;
/// Most height between two layers.
const MOST_HEIGHT: f64 = 110.0;
/// Height for each unit that an edge between the layers goes sideways: flat curves are hard to follow.
const SLOPE: f64 = 0.14;
/// Rounds over all layers, down and up.
const ROUNDS: usize = 12;

/// The left side of each item: each layer in its order, edges as straight as can be. Deviations count by their amount, not
/// its square, so that one long edge that cannot be straight bends none of the others.
pub fn lefts(chains: &Chains) -> Vec<f64> {
    let mut lefts = vec![0.0; chains.items.len()];
    for layer in &chains.layers {
        let mut left = 0.0;
        for pair in layer.windows(2) {
            left += distance(&chains.items[pair[0]], &chains.items[pair[1]]);
            lefts[pair[1]] = left;
        }
    }
    let count = chains.layers.len();
    let rounds = rounds(chains, ROUNDS);
    for round in 0..rounds {
        // At first only one side pulls, so that what is far off comes nearer; then both.
        let both = round >= rounds / 2;
        (0..count).for_each(|layer| settle(chains, &mut lefts, layer, true, both));
        (0..count).rev().for_each(|layer| settle(chains, &mut lefts, layer, both, true));
        chains.ways.iter().for_each(|way| slide(chains, &mut lefts, way));
    }
    let least = lefts.iter().copied().fold(f64::INFINITY, f64::min);
    lefts.iter_mut().for_each(|left| *left -= least);
    lefts
}

fn distance(a: &Item, b: &Item) -> f64 {
    a.width + if a.is_virtual || b.is_virtual { GAP_VIRTUAL } else { GAP }
}

/// Moves the virtual items of an edge together, to between its ends. One by one they would hold each other where they are.
fn slide(chains: &Chains, lefts: &mut [f64], way: &[Hook]) {
    let [from, middle @ .., to] = way else { return };
    let (Some(first), Some(last)) = (middle.first(), middle.last()) else { return };
    let across = |hook: &Hook| lefts[hook.0] + hook.1;
    let (a, b) = (across(from) - across(first), across(to) - across(last));
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for &(item, _) in middle {
        let layer = &chains.layers[chains.items[item].layer];
        let at = chains.items[item].number;
        let room = |a: usize, b: usize| lefts[b] - lefts[a] - distance(&chains.items[a], &chains.items[b]);
        if let Some(&left) = at.checked_sub(1).and_then(|at| layer.get(at)) {
            least = least.max(-room(left, item));
        }
        if let Some(&right) = layer.get(at + 1) {
            most = most.min(room(item, right));
        }
    }
    // The nearest place between the ends, as far as there is room.
    let shift = 0.0_f64.max(a.min(b)).min(a.max(b)).max(least.min(0.0)).min(most.max(0.0));
    middle.iter().for_each(|&(item, _)| lefts[item] += shift);
}

/// A place that an item would like, and how much.
type Wish = (f64, f64);

/// Moves the items of a layer to where they like it best, given those above or below.
fn settle(chains: &Chains, lefts: &mut [f64], layer: usize, above: bool, below: bool) {
    let mut wishes: Vec<Vec<Wish>> = vec![Vec::new(); chains.layers[layer].len()];
    let mut wish = |own: Hook, far: Hook, weight: f64| {
        wishes[chains.items[own.0].number].push((lefts[far.0] + far.1 - own.1, weight));
    };
    if let Some(upper) = layer.checked_sub(1).filter(|_| above) {
        chains.segments[upper].iter().for_each(|s| wish(s.lower, s.upper, chains.weight(s)));
    }
    if below {
        chains.segments[layer].iter().for_each(|s| wish(s.upper, s.lower, chains.weight(s)));
    }
    for turn in &chains.turns[layer] {
        wish(turn.beside, turn.node, 1.0);
    }
    // Without a wish of its own an item stays as it is, as far as the others let it.
    for (wishes, &item) in wishes.iter_mut().zip(&chains.layers[layer]) {
        wishes.push((lefts[item], 0.01));
    }
    let items = &chains.layers[layer];
    let mut start = 0.0;
    let starts: Vec<f64> = (0..items.len())
        .map(|i| {
            start += i
                .checked_sub(1)
                .map_or(0.0, |i| distance(&chains.items[items[i]], &chains.items[items[i + 1]]));
            start
        })
        .collect();
    // Between two neighbours on one side is the middle; between one above and one below a straight line to either is better.
    let middle = above != below;
    for (i, at) in isotonic(wishes, &starts, middle).into_iter().enumerate() {
        lefts[items[i]] = at + starts[i];
    }
}

/// Values that never fall and are as near to the wishes, less the starts, as such values can be: neighbours that would fall
/// are joined into a block, which gets the median of all its wishes (pool adjacent violators).
fn isotonic(wishes: Vec<Vec<Wish>>, starts: &[f64], middle: bool) -> Vec<f64> {
    struct Block {
        wishes: Vec<Wish>,
        items: usize,
        value: f64,
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (wishes, start) in wishes.into_iter().zip(starts) {
        let wishes: Vec<Wish> = wishes.into_iter().map(|(at, weight)| (at - start, weight)).collect();
        let mut block = Block { value: median(&wishes, middle), wishes, items: 1 };
        while let Some(mut last) = blocks.pop_if(|last| last.value > block.value) {
            last.wishes.append(&mut block.wishes);
            block = Block {
                value: median(&last.wishes, middle),
                wishes: last.wishes,
                items: last.items + block.items,
            };
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|b| std::iter::repeat_n(b.value, b.items)).collect()
}

/// What halves the weights: of several such values the least, or their middle.
fn median(wishes: &[Wish], middle: bool) -> f64 {
    let mut sorted = wishes.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sorted.iter().map(|w| w.1).sum::<f64>() / 2.0;
    // The little weights of places where items are anyhow do not tip the balance.
    let reaches = |least: f64| {
        let mut sum = 0.0;
        sorted.iter().position(|w| {
            sum += w.1;
            sum >= least
        })
    };
    let (low, high) = (reaches(half - 0.1), reaches(half + 0.1).filter(|_| middle));
    low.map_or(0.0, |low| (sorted[low].0 + sorted[high.unwrap_or(low)].0) / 2.0)
}

/// Where the layers are.
pub struct Levels {
    /// Top and bottom of each.
    rows: Vec<(f64, f64)>,
}

impl Levels {
    /// As high as their boxes, and as far from each other as the edges between them want.
    pub fn new(chains: &Chains, lefts: &[f64]) -> Levels {
        let sideways = |a: Hook, b: Hook| (lefts[a.0] + a.1 - lefts[b.0] - b.1).abs();
        let turn = |layer: usize, is_below: bool| {
            let turns = chains.turns[layer].iter().filter(move |t| t.is_below == is_below);
            turns.map(|t| sideways(t.node, t.beside)).reduce(f64::max)
        };
        let height = |widest: f64| (LEAST_HEIGHT + widest * SLOPE).min(MOST_HEIGHT);
        let mut rows: Vec<(f64, f64)> = Vec::new();
        for (layer, items) in chains.layers.iter().enumerate() {
            let top = match (layer.checked_sub(1), turn(layer, false)) {
                (None, turn) => turn.map_or(0.0, height),
                (Some(upper), turned) => {
                    let segments = chains.segments[upper].iter().map(|s| sideways(s.upper, s.lower));
                    let all = segments.chain(turned).chain(turn(upper, true));
                    rows[upper].1 + height(all.fold(0.0, f64::max))
                }
            };
            let tallest = items.iter().map(|&i| chains.items[i].height).fold(0.0, f64::max);
            rows.push((top, top + tallest));
        }
        if let Some((last, row)) = chains.layers.len().checked_sub(1).zip(rows.last().copied()) {
            // Room for what turns round below all.
            if let Some(turn) = turn(last, true) {
                rows.push((row.1 + height(turn), row.1 + height(turn)));
            }
        }
        Levels { rows }
    }

    /// Height of all.
    pub fn height(&self) -> f64 {
        self.rows.last().map_or(0.0, |row| row.1)
    }

    /// The top of a box: that of its layer.
    pub fn top_of(&self, chains: &Chains, item: usize) -> f64 {
        self.rows[chains.items[item].layer].0
    }

    /// The path of an edge. It is straight beside the boxes of a layer and bends between layers.
    pub fn path(&self, chains: &Chains, lefts: &[f64], edge: usize) -> Path {
        let way = &chains.ways[edge];
        let across = |hook: Hook| lefts[hook.0] + hook.1;
        let row = |hook: Hook| self.rows[chains.items[hook.0].layer];
        let first = way[0];
        let start = self.top_of(chains, first.0) + chains.items[first.0].height;
        let mut path = vec![(across(first), start)];
        for pair in way.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let (from, to) = (chains.items[a.0].layer, chains.items[b.0].layer);
            // A turn is in the layer of both, at the node's side of it: below if the node is the source.
            let is_below = a.0 == first.0 && a == first;
            let (leave, enter) = match from.cmp(&to) {
                std::cmp::Ordering::Less => (row(a).1, row(b).0),
                std::cmp::Ordering::Greater => (row(a).0, row(b).1),
                std::cmp::Ordering::Equal if is_below => (row(a).1, row(a).1),
                std::cmp::Ordering::Equal => (row(a).0, row(a).0),
            };
            line(&mut path, (across(a), leave));
            let (x1, x2) = (across(a), across(b));
            let bend = match from == to {
                false => (enter - leave) / 2.0,
                true => {
                    let depth = self.free_beside(from, is_below).min(18.0 + (x2 - x1).abs() * 0.1);
                    if is_below { depth } else { -depth }
                }
            };
            // Down to the same height again after a turn, hence the other sign there.
            let back = if from == to { bend } else { -bend };
            path.extend([(x1, leave + bend), (x2, enter + back), (x2, enter)]);
        }
        path
    }

    /// The height below or above a layer that a turn may have.
    fn free_beside(&self, layer: usize, is_below: bool) -> f64 {
        let end = |row: Option<&(f64, f64)>, end: f64| row.map_or(end, |r| if is_below { r.0 } else { r.1 });
        match is_below {
            true => end(self.rows.get(layer + 1), self.rows[layer].1) - self.rows[layer].1,
            false => self.rows[layer].0 - end(layer.checked_sub(1).map(|l| &self.rows[l]), 0.0),
        }
    }
}

/// A straight line, as a curve; none to where the path is.
fn line(path: &mut Path, to: Point) {
    let Some(&from) = path.last().filter(|&&from| from != to) else { return };
    let between = |part: f64| (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
    path.extend([between(1.0 / 3.0), between(2.0 / 3.0), to]);
}
