//! Rules between the header check and the table: who does not pass them goes on at their element, as it is there.

use super::chain::LONGEST;
use super::ordinary;
use super::pass::paint;
use crate::classify::Sieve;
use crate::ip::check_ip_header::{Checker, bit};
use causeway_engine::ir::Program;
use causeway_engine::ir::walk::Walk;
use causeway_packet::Packet;
use causeway_packet::wire::ethernet::HEADER_LEN;
use causeway_packet::wire::ipv4;

/// Rules, and how packets are in front of them.
pub(super) struct Rules {
    sieve: Sieve,
    /// Whether they have lost their Ethernet header.
    stripped: bool,
    /// Paint that they have got.
    paint: Option<u8>,
    /// So many of the pass's counters have counted them.
    pub counted: usize,
    /// The output by which they go to the rules' element.
    pub output: usize,
}

/// Bytes that an ordinary packet has up to its transport header.
const HEADERS_LEN: usize = HEADER_LEN + ipv4::HEADER_LEN;

/// Where the IPv4 packet in an ordinary frame ends.
fn end(packet: &Packet) -> Option<usize> {
    let bytes = packet.data().get(HEADER_LEN + ipv4::field::TOTAL_LEN.start..)?.first_chunk()?;
    Some(HEADER_LEN + usize::from(u16::from_be_bytes(*bytes)))
}

impl Rules {
    /// The rules of `program`, which packets come to by this walk; `None` if it is none behind the check.
    pub fn of(program: Program, walk: &Walk, check: &Checker, output: usize) -> Option<Rules> {
        let usual = [ordinary::checked(check)?, ordinary::checked_and_stripped(check)?];
        let found = usual.iter().position(|usual| usual.same_but_annotations(walk))?;
        let paint = paint(walk, &usual[found])?;
        let sieve = Sieve::of(program)?;
        Some(Rules { sieve, stripped: found == 1, paint, counted: walk.counts.len(), output })
    }

    /// Makes a packet that may be ordinary what it is in front of the rules.
    pub fn halt(&self, packet: &mut Packet, destination: u32) {
        let Some(end) = end(packet) else { return };
        packet.truncate(end);
        if self.stripped {
            // The header was found behind these bytes.
            let _ = packet.pull(HEADER_LEN);
        }
        packet.set_network_headers(if self.stripped { 0 } else { HEADER_LEN }, ipv4::HEADER_LEN);
        if let Some(paint) = self.paint {
            packet.set_paint(paint);
        }
        packet.set_dst_ip(destination.to_be_bytes());
    }
}

/// The number of the first rules that a packet does not pass which may be ordinary, counted from 1, or 0; `None` if it is too
/// short to tell.
pub(super) fn first_not_passed(rules: &[Rules], packet: &Packet) -> Option<u8> {
    let bytes = packet.data().get(..end(packet)?)?;
    for (number, rules) in (1..).zip(rules) {
        if !rules.sieve.passes(bytes, HEADER_LEN, HEADERS_LEN)? {
            return Some(number);
        }
    }
    Some(0)
}

/// Packets of a batch that went to rules. Later ones to the same destination go there too, so that they stay in order.
#[derive(Default)]
pub(super) struct Halted {
    /// Destinations, a bit for several.
    destinations: [u64; LONGEST],
    packets: [u64; LONGEST],
}

impl Halted {
    /// Where a packet halts that does not pass the rules with this number, counted from 1: there, or in front of earlier ones. 0
    /// passes all.
    #[inline]
    pub fn place(&mut self, not_passed: u8, destination: u32) -> Option<usize> {
        let own = usize::from(not_passed).checked_sub(1);
        let bit = bit(destination);
        let others = self.destinations.iter().position(|bits| bits & bit != 0);
        let place = own.into_iter().chain(others).min()?;
        *self.destinations.get_mut(place)? |= bit;
        *self.packets.get_mut(place)? += 1;
        Some(place)
    }

    /// How many that had been counted by so many counters already.
    pub fn counted(&self, rules: &[Rules], counters: usize) -> u64 {
        let counted = rules.iter().zip(&self.packets).filter(|(rules, _)| rules.counted >= counters);
        counted.map(|(_, packets)| packets).sum()
    }
}
