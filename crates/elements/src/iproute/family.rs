//! IPv4 and IPv6 behind one trait, so that the lookup element is written once.

use super::error::RouteError;
use crate::ip6::written::Written;
use causeway_engine::ir::{self, Builder, Field, Reg};
use causeway_engine::value::{self, Value};
use causeway_engine::{Conf, Error, Scope};
use causeway_fib::route_cache::Flow;
use causeway_fib::{Address, Prefix};
use causeway_packet::{Anno, Packet};
use std::net::Ipv4Addr;

/// An IP version, as routes and packets show it.
pub(crate) trait Family: Address {
    /// An address as it is written.
    type Ip: Value + std::fmt::Display + Copy;

    /// How a route is written, in the words of Click's error.
    const ROUTE_SYNTAX: &str;
    /// The first line of a table that is not empty.
    const TABLE_HEAD: &str;
    /// Whether of two routes of one prefix the last counts, and one that is not there may be removed, as in Click's table.
    const LAST_COUNTS: bool;

    /// Why a change is refused, in Click's words.
    fn refusal(error: RouteError) -> Error;
    /// What to say of the route that is argument `n`, whose output there is not.
    fn bad_output(n: usize, output: usize) -> String;
    /// The destination annotation.
    fn destination(packet: &Packet) -> Self;
    /// Source address and type of service of the packet's network header, zero without one, with the destination
    /// annotation.
    fn flow(packet: &Packet) -> Flow<Self>;
    /// Sets the destination annotation.
    fn set_destination(self, packet: &mut Packet);
    /// The address as it is written.
    fn to_text(self) -> Self::Ip;
    /// The address of a text's value.
    fn from_text(ip: Self::Ip) -> Self;
    /// A prefix as it is written; also whether bits beyond its length were set and are ignored.
    fn prefix(conf: &mut Conf<'_>, text: &str) -> Option<(Prefix<Self>, bool)>;
    /// As [`Family::prefix`], without a configuration around it.
    fn prefix_of(text: &str) -> Result<Prefix<Self>, RouteError>;
    /// As [`Family::prefix`], which says nothing of what is wrong.
    fn prefix_in(text: &str, scope: &Scope<'_>) -> Option<(Prefix<Self>, bool)>;
    /// The destination annotation in a program, as the two words of a key.
    fn lower_destination(b: &mut Builder) -> [ir::Value; 2];
    /// Sets the destination annotation in a program to the words of an address.
    fn lower_set_destination(b: &mut Builder, words: [Reg; 2]);
    /// The address as the words of a key.
    fn to_words(self) -> [u64; 2];
    /// The address of the words of a key.
    fn from_words(words: [u64; 2]) -> Self;
}

fn masked<A: Address>(address: A, len: u8) -> (Prefix<A>, bool) {
    (Prefix::truncated(address, len), address & !A::mask(len) != A::ZERO)
}

/// Reads a value without a configuration around it.
pub(crate) fn bare<T: Value>(text: &str) -> Result<T, RouteError> {
    T::parse(text, &causeway_engine::Names::default().scope("")).map_err(RouteError::Value)
}

impl Family for u32 {
    type Ip = Ipv4Addr;
    const ROUTE_SYNTAX: &str = "'ADDR/MASK [GATEWAY] OUTPUT'";
    const TABLE_HEAD: &str = "";
    const LAST_COUNTS: bool = false;

    fn refusal(error: RouteError) -> Error {
        Error::caused_by(error)
    }

    fn bad_output(n: usize, _output: usize) -> String {
        format!("argument {n} bad OUTPUT")
    }

    #[inline]
    fn destination(packet: &Packet) -> u32 {
        u32::from_be_bytes(packet.dst_ip())
    }

    #[inline]
    fn flow(packet: &Packet) -> Flow<u32> {
        let destination = Self::destination(packet);
        match packet.network_header().and_then(|header| header.first_chunk::<20>()) {
            Some(h) => {
                Flow { source: u32::from_be_bytes([h[12], h[13], h[14], h[15]]), destination, tos: h[1] }
            }
            None => Flow { destination, ..Flow::default() },
        }
    }

    #[inline]
    fn set_destination(self, packet: &mut Packet) {
        packet.set_dst_ip(self.to_be_bytes());
    }

    fn to_text(self) -> Ipv4Addr {
        self.into()
    }

    fn from_text(ip: Ipv4Addr) -> u32 {
        ip.into()
    }

    fn prefix(conf: &mut Conf<'_>, text: &str) -> Option<(Prefix<u32>, bool)> {
        let written: value::Prefix4 = conf.parse("", text)?;
        Some(masked(written.address.into(), written.len))
    }

    fn prefix_of(text: &str) -> Result<Prefix<u32>, RouteError> {
        bare::<value::Prefix4>(text).map(|p| masked(p.address.into(), p.len).0)
    }

    fn prefix_in(text: &str, scope: &Scope<'_>) -> Option<(Prefix<u32>, bool)> {
        value::Prefix4::parse(text, scope).ok().map(|p| masked(p.address.into(), p.len))
    }

    fn lower_destination(b: &mut Builder) -> [ir::Value; 2] {
        [b.get(Anno::DST_IP.into()).into(), 0.into()]
    }

    fn lower_set_destination(b: &mut Builder, [address, _]: [Reg; 2]) {
        b.put(Anno::DST_IP.into(), address);
    }

    fn to_words(self) -> [u64; 2] {
        [self.into(), 0]
    }

    fn from_words([address, _]: [u64; 2]) -> u32 {
        address as u32
    }
}

/// The two halves of the destination annotation of IPv6.
const HALVES: [Field; 2] = [Field::Anno(Anno::DST_IP6.offset, 8), Field::Anno(Anno::DST_IP6.offset + 8, 8)];

impl Family for u128 {
    type Ip = Written;
    const ROUTE_SYNTAX: &str = "DADDR/MASK [GW] OUTPUT";
    const TABLE_HEAD: &str = "# Active routes\n";
    const LAST_COUNTS: bool = true;

    fn refusal(error: RouteError) -> Error {
        match error {
            RouteError::Verb(_) => Error::new("bad command, should be `add' or `remove'"),
            RouteError::NotConnected { .. } => Error::new("output port out of range"),
            other => Error::caused_by(other),
        }
    }

    fn bad_output(_n: usize, output: usize) -> String {
        format!("need {} or more output ports", output + 1)
    }

    #[inline]
    fn destination(packet: &Packet) -> u128 {
        u128::from_be_bytes(packet.dst_ip6())
    }

    #[inline]
    fn flow(packet: &Packet) -> Flow<u128> {
        let destination = Self::destination(packet);
        let header = packet.network_header().and_then(|header| header.first_chunk::<40>());
        match header.and_then(|h| Some((h, h[8..].first_chunk::<16>()?))) {
            // The traffic class lies across the first two bytes (RFC 8200 §3).
            Some((h, &source)) => {
                Flow { source: u128::from_be_bytes(source), destination, tos: h[0] << 4 | h[1] >> 4 }
            }
            None => Flow { destination, ..Flow::default() },
        }
    }

    #[inline]
    fn set_destination(self, packet: &mut Packet) {
        packet.set_dst_ip6(self.to_be_bytes());
    }

    fn to_text(self) -> Written {
        Written(self.into())
    }

    fn from_text(ip: Written) -> u128 {
        ip.0.into()
    }

    fn prefix(conf: &mut Conf<'_>, text: &str) -> Option<(Prefix<u128>, bool)> {
        let written: value::Prefix6 = conf.parse("", text)?;
        Some(masked(written.address.into(), written.len))
    }

    fn prefix_of(text: &str) -> Result<Prefix<u128>, RouteError> {
        bare::<value::Prefix6>(text).map(|p| masked(p.address.into(), p.len).0)
    }

    fn prefix_in(text: &str, scope: &Scope<'_>) -> Option<(Prefix<u128>, bool)> {
        value::Prefix6::parse(text, scope).ok().map(|p| masked(p.address.into(), p.len))
    }

    fn lower_destination(b: &mut Builder) -> [ir::Value; 2] {
        HALVES.map(|half| b.get(half).into())
    }

    fn lower_set_destination(b: &mut Builder, words: [Reg; 2]) {
        HALVES.into_iter().zip(words).for_each(|(half, word)| b.put(half, word));
    }

    fn to_words(self) -> [u64; 2] {
        [(self >> 64) as u64, self as u64]
    }

    fn from_words([high, low]: [u64; 2]) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }
}
