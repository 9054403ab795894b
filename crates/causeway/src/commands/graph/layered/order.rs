//! The order of the items in each layer.

use super::chains::{Chains, Hook};

/// Sweeps over all layers, down and up in turn.
const SWEEPS: usize = 32;

/// Orders the items, and keeps the order in which the fewest edges cross.
pub fn order(chains: &mut Chains) {
    (0..chains.layers.len()).for_each(|layer| number(chains, layer));
    let mut best = (crossings(chains), chains.layers.clone());
    for sweep in 0..rounds(chains, SWEEPS) {
        if best.0 == 0 {
            break;
        }
        let count = chains.layers.len();
        if sweep % 2 == 0 {
            (0..count).for_each(|layer| sort(chains, layer, layer.checked_sub(1)));
        } else {
            (0..count).rev().for_each(|layer| sort(chains, layer, Some(layer + 1).filter(|&l| l < count)));
        }
        let now = crossings(chains);
        if now < best.0 {
            best = (now, chains.layers.clone());
        }
    }
    chains.layers = best.1;
    (0..chains.layers.len()).for_each(|layer| number(chains, layer));
}

/// So many rounds, and fewer of what is too large for anybody to look at.
pub fn rounds(chains: &Chains, most: usize) -> usize {
    const ITEMS: usize = 1_000_000;
    (ITEMS / chains.items.len().max(1)).clamp(2, most)
}

/// Numbers the items of a layer.
fn number(chains: &mut Chains, layer: usize) {
    for (i, &item) in chains.layers[layer].iter().enumerate() {
        chains.items[item].number = i;
    }
}

/// Where a hook is in its layer, in items.
fn position(chains: &Chains, (item, offset): Hook) -> f64 {
    chains.items[item].number as f64 + offset / chains.items[item].width.max(1.0)
}

/// Sorts a layer by where its items' neighbours in another one are. What has none there goes with what it turns to, or
/// stays.
fn sort(chains: &mut Chains, layer: usize, other: Option<usize>) {
    let mut sums = vec![(0.0, 0.0); chains.layers[layer].len()];
    let mut add = |item: usize, hook: Hook, of: usize| {
        let share = position(chains, hook) / chains.layers[of].len() as f64;
        let sum = &mut sums[chains.items[item].number];
        *sum = (sum.0 + share, sum.1 + 1.0);
    };
    if let Some(other) = other {
        for segment in &chains.segments[layer.min(other)] {
            let (own, far) =
                if other < layer { (segment.lower, segment.upper) } else { (segment.upper, segment.lower) };
            add(own.0, far, other);
        }
    }
    for turn in &chains.turns[layer] {
        // The virtual node's other end is in the other layer, if the turn is on the far side of this one.
        if other.is_none_or(|other| turn.is_below == (other > layer)) {
            add(turn.beside.0, turn.node, layer);
        }
    }
    let length = chains.layers[layer].len() as f64;
    let key = |item: usize| match (chains.items[item].number, sums[chains.items[item].number]) {
        (number, (_, 0.0)) => (number as f64 + 0.5) / length,
        (_, (sum, count)) => sum / count,
    };
    let mut items = chains.layers[layer].clone();
    items.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    chains.layers[layer] = items;
    number(chains, layer);
}

/// How often edges cross.
pub fn crossings(chains: &Chains) -> usize {
    let at = |hook: Hook| position(chains, hook);
    let mut count = 0;
    for (layer, segments) in chains.segments.iter().enumerate() {
        let ends: Vec<(f64, f64)> = segments.iter().map(|s| (at(s.upper), at(s.lower))).collect();
        count += inversions(&ends);
        for turn in &chains.turns[layer] {
            let (a, b) = (at(turn.node), at(turn.beside));
            let between = |x: f64| x > a.min(b) && x < a.max(b);
            let above = layer.checked_sub(1).map_or(&[][..], |l| &chains.segments[l]);
            count += match turn.is_below {
                true => ends.iter().filter(|(upper, _)| between(*upper)).count(),
                false => above.iter().filter(|s| between(at(s.lower))).count(),
            };
            // One of two turns that cross has an end within the other, and an end without.
            let others = chains.turns[layer].iter().filter(|t| t.is_below == turn.is_below);
            count += others.filter(|t| between(at(t.node)) && !between(at(t.beside))).count();
        }
    }
    count
}

/// How many pairs of lines between two rows cross: inversions, counted in a Fenwick tree.
fn inversions(ends: &[(f64, f64)]) -> usize {
    let mut ends = ends.to_vec();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut lower: Vec<f64> = ends.iter().map(|e| e.1).collect();
    lower.sort_by(f64::total_cmp);
    lower.dedup();
    let mut tree = vec![0_usize; lower.len() + 1];
    let mut count = 0;
    for (before, (_, end)) in ends.iter().enumerate() {
        let rank = lower.partition_point(|l| l < end) + 1;
        let mut not_right = 0;
        let mut at = rank;
        while at > 0 {
            not_right += tree[at];
            at &= at - 1;
        }
        count += before - not_right;
        at = rank;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::inversions;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn inversions_are_what_comparing_all_pairs_finds(ends in prop::collection::vec((0_u8..20, 0_u8..20), 0..40)) {
            let ends: Vec<(f64, f64)> = ends.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).collect();
            let crosses = |a: &(f64, f64), b: &(f64, f64)| a.0 < b.0 && a.1 > b.1;
            let naive = ends.iter().map(|a| ends.iter().filter(|b| crosses(a, b)).count()).sum::<usize>();
            prop_assert_eq!(inversions(&ends), naive);
        }
    }
}
