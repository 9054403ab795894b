//! Which member of a group a flow takes: hash-threshold (RFC 2992).
//!
//! The space of hashes is cut into one region for each member, in the members' order and as large as their weights
//! are; a flow takes the member in whose region its hash falls. So a flow's member follows from its hash and the
//! members there are now, never from those there were: a member that comes back gets its flows back. Bounds are
//! rounded as Linux rounds them (31 bits of the hash, halves up), so that with equal hashes the members are equal, too.

use crate::lookup::AdjacencyIndex;

/// Up to this many members, comparing with all bounds costs less than searching among them.
const LINEAR_MAX: usize = 8;

#[derive(Debug)]
struct Member {
    /// The last hash of the member's region; below that of the first hash, which is 0, if there is no region.
    bound: i32,
    index: AdjacencyIndex,
}

/// Members in order, with ascending bounds of which the last is the last hash there is.
#[derive(Debug)]
pub(crate) struct Group(Box<[Member]>);

impl Group {
    /// A group of members with weights. `None` if no member has a weight.
    pub(crate) fn new(members: &[(AdjacencyIndex, u32)]) -> Option<Self> {
        // Wide enough for any number of members of any weights.
        let total: u128 = members.iter().map(|member| u128::from(member.1)).sum();
        if total == 0 {
            return None;
        }
        let mut sum = 0;
        let member = |&(index, weight): &(AdjacencyIndex, u32)| {
            sum += u128::from(weight);
            // From 0 to 2^31.
            let end = ((sum << 31) + total / 2) / total;
            Member { bound: (end as i64 - 1) as i32, index }
        };
        Some(Group(members.iter().map(member).collect()))
    }

    /// The member for a flow.
    #[inline]
    pub(crate) fn choose(&self, flow_hash: u32) -> Option<AdjacencyIndex> {
        let hash = (flow_hash >> 1) as i32;
        let is_before = |member: &Member| member.bound < hash;
        let place = match self.0.len() {
            // No branch depends on the hash, which nothing could predict.
            ..=LINEAR_MAX => self.0.iter().map(|member| usize::from(is_before(member))).sum(),
            _ => self.0.partition_point(is_before),
        };
        self.0.get(place).map(|member| member.index)
    }

    /// The members in order, each with the first hash, of 31 bits, behind its region.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (u32, AdjacencyIndex)> {
        // From 0 to 2^31.
        self.0.iter().map(|member| (member.bound.wrapping_add(1) as u32, member.index))
    }

    /// The members' indices.
    pub(crate) fn members(&self) -> impl Iterator<Item = AdjacencyIndex> {
        self.0.iter().map(|member| member.index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as it is written down, in 64 bits and from end to end.
    fn naive(members: &[(u32, u32)], flow_hash: u32) -> Option<u32> {
        let total: u64 = members.iter().map(|member| u64::from(member.1)).sum();
        let mut sum = 0;
        members.iter().find_map(|&(index, weight)| {
            sum += u64::from(weight);
            let rounded = (sum * (1 << 31) + total / 2) / total;
            let bound = rounded as i64 - 1;
            (i64::from(flow_hash >> 1) <= bound).then_some(index)
        })
    }

    /// Members by number and weight: few or many, of small or large weights, some of them none.
    fn members() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let weight = prop_oneof![Just(0_u32), Just(1), 1..=256_u32, 1..=65_536_u32, Just(1 << 24)];
        let weights = |count| prop::collection::vec(weight.clone(), count);
        prop_oneof![weights(1..=3_usize), weights(4..=10), weights(250..=256)]
            .prop_filter("a weight", |weights| weights.iter().any(|&weight| weight > 0))
            .prop_map(|weights| (1..).zip(weights).collect())
    }

    /// Hashes from anywhere, and those around the bounds of a group.
    fn hashes(members: &[(u32, u32)]) -> impl Iterator<Item = u32> {
        let group = Group::new(members).unwrap();
        let around = |member: &Member| [-1, 0, 1, 2].map(|by| (member.bound.wrapping_add(by) as u32) << 1);
        let bounds: Vec<u32> = group.0.iter().flat_map(around).collect();
        let spread = (0..1000_u32).map(|n| n.wrapping_mul(0x9e37_79b9));
        bounds.into_iter().flat_map(|hash| [hash, hash | 1]).chain(spread).chain([0, u32::MAX])
    }

    proptest! {
        #[test]
        fn flows_take_the_member_that_the_rule_says(members in members(), any in any::<u32>()) {
            let group = Group::new(&members).unwrap();
            for hash in hashes(&members).chain([any]) {
                prop_assert_eq!(group.choose(hash), naive(&members, hash), "hash {:#x}", hash);
            }
        }
    }

    #[test]
    fn bounds_are_rounded_to_the_nearest() {
        let bounds = |weights: &[u32]| -> Vec<i32> {
            let members: Vec<_> = (1..).zip(weights.iter().copied()).collect();
            Group::new(&members).unwrap().0.iter().map(|member| member.bound).collect()
        };
        const LAST: i32 = i32::MAX;
        assert_eq!(bounds(&[1]), [LAST]);
        assert_eq!(bounds(&[1, 1]), [0x3fff_ffff, LAST]);
        // 2^31 / 3 is 715 827 882.67, twice that 1 431 655 765.33.
        assert_eq!(bounds(&[1, 1, 1]), [715_827_882, 1_431_655_764, LAST]);
        // Without a weight there is no region.
        assert_eq!(bounds(&[0, 3, 0, 1, 0]), [-1, 0x5fff_ffff, 0x5fff_ffff, LAST, LAST]);
        // Half a hash is rounded to one, less to none.
        assert_eq!(bounds(&[1, u32::MAX]), [0, LAST]);
        assert_eq!(bounds(&[1, u32::MAX, 1]), [-1, LAST, LAST]);
    }

    #[test]
    fn the_member_is_the_first_whose_region_ends_behind_the_hash() {
        let group = Group::new(&[(1, 1), (2, 0), (3, 5), (4, 1)]).unwrap();
        for hash in hashes(&[(1, 1), (2, 0), (3, 5), (4, 1)]) {
            let first = group.regions().find(|&(end, _)| hash >> 1 < end).map(|(_, index)| index);
            assert_eq!(first, group.choose(hash), "hash {hash:#x}");
        }
    }

    #[test]
    fn a_group_needs_a_weight() {
        assert!(Group::new(&[]).is_none());
        assert!(Group::new(&[(1, 0), (2, 0)]).is_none());
    }
}
