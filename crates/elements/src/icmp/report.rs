//! An ICMP error about an IPv4 packet, byte for byte.

use causeway_packet::wire::ipv4::{HEADER_LEN, MAX_HEADER_LEN};
use causeway_packet::wire::ipv4_options::kind;
use causeway_packet::wire::{Icmpv4, Ipv4, Ipv4Header, Malformed, icmpv4, protocol};
use std::net::Ipv4Addr;

/// Time to live of the errors, as Click's.
const TTL: u8 = 200;
/// Bytes of options that a header has room for.
const OPTIONS_LEN: usize = MAX_HEADER_LEN - HEADER_LEN;

/// What an error says.
pub(super) struct Report<'a> {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub identification: u16,
    pub message_type: u8,
    pub code: u8,
    /// The four bytes behind the checksum.
    pub rest: u32,
    /// The way that the error takes.
    pub route: Option<Route>,
    /// What is quoted of the packet.
    pub quoted: &'a [u8],
}

/// A source route, padded to whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    bytes: [u8; OPTIONS_LEN],
    len: usize,
}

/// Bytes in front of the quotation.
pub(super) fn headers_len(route: Option<&Route>) -> usize {
    HEADER_LEN + route.map_or(0, |r| r.len) + icmpv4::HEADER_LEN
}

/// The first source route among a header's options, loose or strict (RFC 791 §3.1), and how far into them it is. Its
/// length may be any.
pub(crate) fn source_route(options: &[u8]) -> Option<(usize, &[u8])> {
    let mut at = 0;
    loop {
        let rest = options.get(at..)?;
        let len = match rest {
            [] | [kind::END, ..] => return None,
            [kind::NOP, ..] => 1,
            [_, len, ..] => (*len as usize).max(2),
            [_] => 1,
        };
        if matches!(rest[0], kind::LOOSE_SOURCE_ROUTE | kind::STRICT_SOURCE_ROUTE) {
            return Some((at, rest.get(..len).unwrap_or(rest)));
        }
        at += len;
    }
}

impl Route {
    /// The way back along a source route: what its packet has passed, the last first (RFC 1812 §4.3.2.6). `None` if
    /// the option is malformed.
    pub fn reversed(option: &[u8]) -> Option<Route> {
        let &[kind, len, pointer, ..] = option else { return None };
        let passed = option.get(3..(pointer as usize).checked_sub(1)?)?;
        if len as usize != option.len() || !passed.len().is_multiple_of(4) {
            return None;
        }
        let mut route = Route { bytes: [0; OPTIONS_LEN], len: (3 + passed.len()).next_multiple_of(4) };
        // The pointer is at the first address. What it does not reach ends the list.
        route.bytes[..3].copy_from_slice(&[kind, 3 + passed.len() as u8, 4]);
        let slots = route.bytes[3..].chunks_exact_mut(4);
        slots.zip(passed.chunks_exact(4).rev()).for_each(|(to, from)| to.copy_from_slice(from));
        Some(route)
    }
}

impl Report<'_> {
    /// Bytes of the whole packet.
    pub fn len(&self) -> usize {
        headers_len(self.route.as_ref()) + self.quoted.len()
    }

    /// Writes the packet to `out`, which has its length.
    pub fn emit(&self, out: &mut [u8]) -> Result<(), Malformed> {
        let total_len = u16::try_from(out.len()).map_err(|_| Malformed::Length)?;
        let (header, message) = out
            .split_at_mut_checked(self.len() - icmpv4::HEADER_LEN - self.quoted.len())
            .ok_or(Malformed::Length)?;
        let mut icmp = Icmpv4::new_checked(message)?;
        icmp.set_message_type(self.message_type);
        icmp.set_code(self.code);
        icmp.set_rest(self.rest);
        icmp.payload_mut().copy_from_slice(self.quoted);
        icmp.fill_checksum();
        let (fixed, options) = header.split_first_chunk_mut().ok_or(Malformed::Length)?;
        Ipv4Header {
            tos: 0,
            total_len,
            identification: self.identification,
            flags_fragment: 0,
            ttl: TTL,
            protocol: protocol::ICMP,
            src: self.src,
            dst: self.dst,
        }
        .emit(fixed);
        if let Some(route) = &self.route {
            options.copy_from_slice(&route.bytes[..route.len]);
            fixed[0] = 0x40 | ((HEADER_LEN + route.len) / 4) as u8;
            Ipv4::new_checked(out)?.fill_checksum();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_routes_are_found_among_other_options() {
        assert_eq!(source_route(&[1, 7, 3, 4, 131, 3, 4, 0]), Some((4, &[131, 3, 4][..])));
        assert_eq!(source_route(&[7, 0, 7, 3, 131]), None, "an option of no length is one of two bytes");
        assert_eq!(source_route(&[137, 90, 4]), Some((0, &[137, 90, 4][..])));
        assert_eq!(source_route(&[0, 131]), None);
        assert_eq!(source_route(&[7]), None);
    }

    #[test]
    fn what_was_passed_is_gone_back() {
        let back = |option: &[u8]| Route::reversed(option).map(|r| r.bytes[..r.len].to_vec());
        let passed_two = [131, 15, 12, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3];
        assert_eq!(back(&passed_two), Some(vec![131, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0]));
        assert_eq!(back(&[137, 7, 8, 9, 9, 9, 9]), Some(vec![137, 7, 4, 9, 9, 9, 9, 0]), "all passed");
        assert_eq!(back(&[137, 7, 4, 9, 9, 9, 9]), Some(vec![137, 3, 4, 0]), "none passed");
        for bad in [
            &[131, 3][..],
            &[131, 3, 0],
            &[131, 7, 6, 9, 9, 9, 9],
            &[131, 7, 12, 9, 9, 9, 9],
            &[131, 8, 8, 9, 9, 9, 9],
        ] {
            assert_eq!(back(bad), None, "{bad:?}");
        }
    }
}
