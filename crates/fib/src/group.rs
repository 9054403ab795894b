//! How a group's buckets are dealt to its members.

use crate::table::{AdjacencyIndex, MISS};

/// Buckets of a group: the granularity of weights (1/256) and of what moves when members change.
pub(crate) const BUCKETS: usize = 256;

/// The member of each bucket.
pub(crate) type Buckets = [AdjacencyIndex; BUCKETS];

/// Deals buckets in proportion to the weights, leaving every bucket with the member it has unless that member is
/// gone or has more than its share. `None` if no member has a weight.
pub(crate) fn distribute(
    before: Option<&Buckets>,
    members: &[(AdjacencyIndex, u32)],
) -> Option<Box<Buckets>> {
    let mut shares = shares(members)?;
    let mut buckets = Box::new(before.copied().unwrap_or([MISS; BUCKETS]));
    for bucket in buckets.iter_mut() {
        match shares.iter_mut().find(|(member, left)| *member == *bucket && *left > 0) {
            Some((_, left)) => *left -= 1,
            None => *bucket = MISS,
        }
    }
    // What is left over goes round, so that a member's new buckets are spread over the lost ones.
    let mut turn = 0;
    for bucket in buckets.iter_mut().filter(|bucket| **bucket == MISS) {
        while shares[turn % shares.len()].1 == 0 {
            turn += 1;
        }
        let place = turn % shares.len();
        shares[place].1 -= 1;
        *bucket = shares[place].0;
        turn += 1;
    }
    Some(buckets)
}

/// How many buckets each member gets: the whole parts, then one more each to the largest remainders.
fn shares(members: &[(AdjacencyIndex, u32)]) -> Option<Vec<(AdjacencyIndex, usize)>> {
    let total: u64 = members.iter().map(|member| u64::from(member.1)).sum();
    if total == 0 {
        return None;
    }
    let exact = |weight: u32| u64::from(weight) * BUCKETS as u64;
    let mut shares: Vec<_> =
        members.iter().map(|&(member, weight)| (member, (exact(weight) / total) as usize)).collect();
    let mut left = BUCKETS - shares.iter().map(|share| share.1).sum::<usize>();
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(exact(members[place].1) % total));
    for place in order {
        if left > 0 {
            shares[place].1 += 1;
            left -= 1;
        }
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(buckets: &Buckets, members: &[(u32, u32)]) -> Vec<usize> {
        members.iter().map(|m| buckets.iter().filter(|&&bucket| bucket == m.0).count()).collect()
    }

    proptest! {
        #[test]
        fn shares_follow_weights(weights in prop::collection::vec(0_u32..1000, 1..20)) {
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let members: Vec<_> = (1..).zip(weights).collect();
            let total: u32 = members.iter().map(|member| member.1).sum();
            let buckets = distribute(None, &members).unwrap();
            for (count, &(_, weight)) in counts(&buckets, &members).into_iter().zip(&members) {
                let exact = f64::from(weight) * BUCKETS as f64 / f64::from(total);
                prop_assert!((count as f64 - exact).abs() < 1.0);
            }
        }

        #[test]
        fn a_lost_member_moves_its_own_flows_only(count in 2_u32..20, lost in 0_usize..20) {
            let members: Vec<_> = (1..=count).map(|member| (member, 1)).collect();
            let before = distribute(None, &members).unwrap();
            let mut rest = members.clone();
            let (gone, _) = rest.remove(lost % members.len());
            let after = distribute(Some(&before), &rest).unwrap();
            let even = BUCKETS.div_ceil(rest.len());
            for (old, new) in before.iter().zip(after.iter()) {
                prop_assert!(old == new || *old == gone);
            }
            prop_assert!(counts(&after, &rest).into_iter().all(|count| count <= even));
        }
    }
}
