//! The values of IP expressions: addresses, ports, protocols, types, flags, numbers.

use super::ip_test::{Kind, Proto};
use crate::icmp::names;
use causeway_engine::Scope;
use causeway_engine::value::{Prefix4, Value};
use causeway_lang::addresses::{self, Transport};
use causeway_lang::values;
use std::net::Ipv4Addr;

/// Flags of TCP, by the names that `tcp opt` knows.
const TCP_FLAGS: &[(&str, u32)] = &[("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32)];

pub(crate) fn tcp_flag(word: &str) -> Option<u32> {
    TCP_FLAGS.iter().find(|(name, _)| *name == word).map(|&(_, flag)| flag)
}

/// A number of at most 32 bits.
pub(crate) fn number(word: &str) -> Result<u32, String> {
    values::unsigned_32(word).map_err(|e| format!("'{word}': {e}"))
}

/// An IPv4 address or a name of one.
pub(crate) fn host(word: &str, scope: &Scope<'_>) -> Result<u32, String> {
    Ipv4Addr::parse(word, scope).map(u32::from).map_err(|_| format!("'{word}' is not an IP address"))
}

/// Address and mask of a network.
pub(crate) fn net(word: &str, scope: &Scope<'_>) -> Result<(u32, u32), String> {
    if let Ok(prefix) = addresses::ip_prefix(word, true) {
        return Ok((prefix.address.into(), prefix.mask.into()));
    }
    let prefix = Prefix4::parse(word, scope).map_err(|_| format!("'{word}' is not an IP network"))?;
    Ok((prefix.address.into(), prefix.mask()))
}

/// An address whose last bytes may be missing.
pub(crate) fn partial(word: &str) -> Option<u32> {
    addresses::ip_prefix(&format!("{word}/0"), false).ok().map(|p| p.address.into())
}

fn port(word: &str, proto: Option<Proto>) -> Option<u16> {
    let tcp = || addresses::port(word, Transport::Tcp).ok();
    let udp = || addresses::port(word, Transport::Udp).ok();
    match proto {
        Some(Proto::Tcp) => tcp(),
        Some(Proto::Udp) => udp(),
        _ => tcp().or_else(udp),
    }
}

/// What a value that stands alone is about, if that can be told from its look.
pub(crate) fn kind_of(word: &str, proto: Option<Proto>, scope: &Scope<'_>) -> Option<Kind> {
    if host(word, scope).is_ok() {
        return Some(Kind::Host);
    }
    if net(word, scope).is_ok() {
        return Some(Kind::Net);
    }
    match proto {
        Some(Proto::Tcp | Proto::Udp) => port(word, proto).map(|_| Kind::Port),
        Some(Proto::Icmp) => names::icmp_type(word).map(|_| Kind::IcmpType),
        _ => None,
    }
}

/// The number that `word` is as a value of `kind`.
pub(crate) fn of_kind(kind: Kind, proto: Option<Proto>, word: &str) -> Result<u32, String> {
    let named = match kind {
        Kind::Port => {
            return port(word, proto).map(u32::from).ok_or_else(|| format!("'{word}' is not a port"));
        }
        Kind::Protocol => {
            return addresses::protocol(word)
                .map(u32::from)
                .map_err(|_| format!("'{word}' is not an IP protocol"));
        }
        Kind::IcmpType => names::icmp_type(word).map(u32::from),
        _ => None,
    };
    named.map_or_else(|| number(word), Ok)
}
