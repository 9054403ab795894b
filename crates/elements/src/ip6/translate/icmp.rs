//! ICMP messages (RFC 7915 §4.2, §4.3, §5.2 and §5.3).

use super::{GROWTH, Icmp, Mapping, NoRoom, Untranslatable, Whole};
use causeway_packet::checksum::{checksum, pseudo_header_v6};
use causeway_packet::wire::icmpv6::kind as six;
use causeway_packet::wire::{Icmpv4, Icmpv6, icmpv4::kind as four, protocol};
use std::net::Ipv6Addr;

const HEADER_LEN: usize = 8;
/// Difference of the fixed headers.
const DIFFERENCE: u32 = 20;
/// Where a field of an IPv4 header is in an IPv6 header, by the bytes that an ICMP pointer may point at.
const POINTERS: [(std::ops::RangeInclusive<u8>, u8); 7] =
    [(0..=0, 0), (1..=1, 1), (2..=3, 4), (8..=8, 7), (9..=9, 6), (12..=15, 8), (16..=19, 24)];
/// The same the other way round.
const POINTERS_BACK: [(std::ops::RangeInclusive<u32>, u8); 7] =
    [(0..=0, 0), (1..=1, 1), (4..=5, 2), (6..=6, 9), (7..=7, 8), (8..=23, 12), (24..=39, 16)];
/// Type and code of what has no better word.
const UNREACHABLE_PROTOCOL: (u8, u8) = (3, 2);

/// Writes the ICMPv6 message for an ICMP message, with the checksum between these addresses.
pub(super) fn to_v6(
    message: &[u8],
    map: Mapping,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    out: &mut [u8],
) -> Result<usize, Untranslatable> {
    let icmp = Icmpv4::new_checked(message).map_err(|_| Icmp)?;
    let (kind, code, rest) = header_to_v6(icmp.message_type(), icmp.code(), icmp.rest()).ok_or(Icmp)?;
    let room = out.get_mut(HEADER_LEN..).ok_or(NoRoom)?;
    let body = &message[HEADER_LEN..];
    let len = HEADER_LEN
        + if kind < 128 { super::to_v6(body, map, room, Whole::Quoted)? } else { super::copy(body, room)? };
    let out = &mut out[..len];
    write_header(out, kind, code, rest);
    let sum = pseudo_header_v6(src, dst, protocol::ICMPV6, len as u32);
    Icmpv6::new_checked(out).map_err(|_| Icmp)?.fill_checksum(sum);
    Ok(len)
}

/// Writes the ICMP message for an ICMPv6 message.
pub(super) fn to_v4(message: &[u8], map: Mapping, out: &mut [u8]) -> Result<usize, Untranslatable> {
    let icmp = Icmpv6::new_checked(message).map_err(|_| Icmp)?;
    let (kind, code, rest) = header_to_v4(icmp.message_type(), icmp.code(), icmp.rest()).ok_or(Icmp)?;
    let room = out.get_mut(HEADER_LEN..).ok_or(NoRoom)?;
    let body = &message[HEADER_LEN..];
    let quotes = icmp.is_error();
    let len = HEADER_LEN
        + if quotes { super::to_v4(body, map, 0, room, Whole::Quoted)? } else { super::copy(body, room)? };
    let out = &mut out[..len];
    write_header(out, kind, code, rest);
    let sum = checksum(out);
    out[2..4].copy_from_slice(&sum.to_be_bytes());
    Ok(len)
}

/// Type, code, no checksum, and the four bytes behind it.
fn write_header(out: &mut [u8], kind: u8, code: u8, rest: u32) {
    if let Some(header) = out.first_chunk_mut::<HEADER_LEN>() {
        let [a, b, c, d] = rest.to_be_bytes();
        *header = [kind, code, 0, 0, a, b, c, d];
    }
}

fn header_to_v6(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
    let unreachable = |code| Some((six::UNREACHABLE, code, 0));
    match (kind, code) {
        (four::ECHO_REQUEST, _) => Some((six::ECHO_REQUEST, 0, rest)),
        (four::ECHO_REPLY, _) => Some((six::ECHO_REPLY, 0, rest)),
        (four::UNREACHABLE, 0 | 1 | 5..=8 | 11 | 12) => unreachable(0),
        (four::UNREACHABLE, 2) => Some((six::PARAMETER_PROBLEM, 1, 6)),
        (four::UNREACHABLE, 3) => unreachable(4),
        (four::UNREACHABLE, 4) => {
            // A router that says nothing of its link is taken for one of the least (§4.2).
            let mtu = (rest & 0xffff) + DIFFERENCE;
            Some((six::PACKET_TOO_BIG, 0, mtu.max(1280)))
        }
        (four::UNREACHABLE, 9 | 10 | 13 | 15) => unreachable(1),
        (four::TIME_EXCEEDED, code) => Some((six::TIME_EXCEEDED, code, 0)),
        (four::PARAMETER_PROBLEM, 0 | 2) => {
            let pointer = (rest >> 24) as u8;
            let (_, to) = POINTERS.iter().find(|(from, _)| from.contains(&pointer))?;
            Some((six::PARAMETER_PROBLEM, 0, (*to).into()))
        }
        _ => None,
    }
}

fn header_to_v4(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
    let unreachable = |code| Some((four::UNREACHABLE, code, 0));
    match (kind, code) {
        (six::ECHO_REQUEST, _) => Some((four::ECHO_REQUEST, 0, rest)),
        (six::ECHO_REPLY, _) => Some((four::ECHO_REPLY, 0, rest)),
        (six::UNREACHABLE, 0 | 2 | 3) => unreachable(1),
        (six::UNREACHABLE, 1) => unreachable(10),
        (six::UNREACHABLE, 4) => unreachable(3),
        (six::PACKET_TOO_BIG, _) => {
            let mtu = rest.min(0xffff).saturating_sub(DIFFERENCE);
            Some((four::UNREACHABLE, 4, mtu))
        }
        (six::TIME_EXCEEDED, code) => Some((four::TIME_EXCEEDED, code, 0)),
        (six::PARAMETER_PROBLEM, 0) => {
            let (_, to) = POINTERS_BACK.iter().find(|(from, _)| from.contains(&rest))?;
            Some((four::PARAMETER_PROBLEM, 0, u32::from(*to) << 24))
        }
        (six::PARAMETER_PROBLEM, 1) => {
            let (kind, code) = UNREACHABLE_PROTOCOL;
            Some((kind, code, 0))
        }
        _ => None,
    }
}

/// The type of a quoted echo; its checksum was over what was quoted in part only, and stays.
pub(super) fn kind_to_v6(message: &mut [u8]) {
    change_kind(message, &[(four::ECHO_REQUEST, six::ECHO_REQUEST), (four::ECHO_REPLY, six::ECHO_REPLY)]);
}

/// The same the other way round.
pub(super) fn kind_to_v4(message: &mut [u8]) {
    change_kind(message, &[(six::ECHO_REQUEST, four::ECHO_REQUEST), (six::ECHO_REPLY, four::ECHO_REPLY)]);
}

fn change_kind(message: &mut [u8], kinds: &[(u8, u8)]) {
    if let Some(kind) = message.first_mut()
        && let Some((_, to)) = kinds.iter().find(|(from, _)| from == kind)
    {
        *kind = *to;
    }
}

// An error quotes one packet, which quotes none.
const _: () = assert!(GROWTH >= 2 * DIFFERENCE as usize);
