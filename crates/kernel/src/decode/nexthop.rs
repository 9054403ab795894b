//! Next hop objects.

use super::word;
use crate::model::{NextHop, NextHopKind, Path, ReversePath};
use crate::reason::PuntReason;
use crate::uapi::*;
use crate::wire::{self, Attributes, Malformed, u16_at, u32_at};

/// Octets of `struct nhmsg`.
const HEADER_LEN: usize = 8;
/// Octets of `struct nexthop_grp`: id, weight, high octet of the weight, two reserved.
const GROUP_ENTRY_LEN: usize = 8;

pub(super) fn next_hop(payload: &[u8]) -> Result<Option<NextHop>, Malformed> {
    const WHAT: &str = "next hop";
    if payload.len() < HEADER_LEN {
        return Err(Malformed(WHAT));
    }
    let (mut id, mut ifindex, mut gateway, mut group, mut punt) = (None, None, None, None, None);
    let (mut wide_weights, mut resilient) = (false, false);
    for attribute in Attributes::after(payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            NHA_ID => id = Some(word(value, 0, WHAT)?),
            NHA_OIF => ifindex = Some(word(value, 0, WHAT)?),
            NHA_GATEWAY => gateway = Some(wire::address(value).ok_or(Malformed(WHAT))?),
            NHA_GROUP => group = Some(value),
            NHA_GROUP_TYPE if u16_at(value, 0) == Some(0) => {}
            NHA_GROUP_TYPE | NHA_RES_GROUP => resilient = true,
            NHA_BLACKHOLE => punt = Some(PuntReason::Blackhole),
            NHA_ENCAP_TYPE | NHA_ENCAP => punt = Some(PuntReason::Encapsulation),
            NHA_FDB => punt = Some(PuntReason::UnknownType),
            NHA_OP_FLAGS => wide_weights = word(value, 0, WHAT)? & NHA_OP_FLAG_RESP_GRP_RESVD_0 != 0,
            NHA_HW_STATS_ENABLE => {}
            _ => punt = Some(PuntReason::UnknownAttribute),
        }
    }
    let id = id.ok_or(Malformed(WHAT))?;
    let kind = match (punt, group, ifindex) {
        (Some(PuntReason::Blackhole), _, _) => {
            NextHopKind::Punt { reason: PuntReason::Blackhole, reverse_path: ReversePath::NotUnicast }
        }
        (Some(reason), _, _) => NextHopKind::Punt { reason, reverse_path: ReversePath::of(ifindex) },
        (None, Some(value), _) => NextHopKind::Group { members: members(value, wide_weights)?, resilient },
        (None, None, Some(ifindex)) => NextHopKind::Path(Path { ifindex, gateway, weight: 1 }),
        (None, None, None) => {
            NextHopKind::Punt { reason: PuntReason::UnknownType, reverse_path: ReversePath::Unknown }
        }
    };
    Ok(Some(NextHop { id, kind }))
}

/// The members of a group. Before Linux 6.12, which says so by a flag, the high octet of the weight is not to be relied on.
fn members(value: &[u8], wide_weights: bool) -> Result<Vec<(u32, u16)>, Malformed> {
    let mut members = Vec::with_capacity(value.len() / GROUP_ENTRY_LEN);
    for entry in value.chunks(GROUP_ENTRY_LEN) {
        let (Some(id), Some(&low), Some(&high)) = (u32_at(entry, 0), entry.get(4), entry.get(5)) else {
            return Err(Malformed("next hop group"));
        };
        // The kernel stores weights less one.
        let weight = u16::from_le_bytes([low, if wide_weights { high } else { 0 }]);
        members.push((id, weight.saturating_add(1)));
    }
    Ok(members)
}
