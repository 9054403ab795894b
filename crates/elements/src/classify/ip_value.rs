//! The values of IP expressions: addresses, ports, protocols, types, flags, numbers.

use super::ip_subject::{Kind, Proto};
use crate::icmp::names;
use causeway_engine::value::{Ether, Prefix4, Value};
use causeway_engine::{Error, Scope};
use causeway_lang::addresses::{self, Transport};
use causeway_lang::values;
use std::net::Ipv4Addr;

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Number(u32),
    Host(u32),
    /// Address and mask.
    Net(u32, u32),
    Ether([u8; 6]),
    Protocol(Proto),
    Port(u32),
    TcpOption(u32),
    IcmpType(u32),
}

/// Flags of TCP, by the names that `tcp opt` knows.
const TCP_FLAGS: &[(&str, u32)] = &[("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32)];

/// A number of at most 32 bits.
pub(crate) fn number(word: &str) -> Result<u32, Error> {
    values::unsigned_32(word).map_err(|e| Error::caused_by(e).of(format_args!("'{word}'")))
}

/// An IPv4 address or a name of one.
pub(crate) fn host(word: &str, scope: &Scope<'_>) -> Option<u32> {
    Ipv4Addr::parse(word, scope).ok().map(u32::from)
}

/// Address and mask of a network.
pub(crate) fn net(word: &str, scope: &Scope<'_>) -> Option<(u32, u32)> {
    if let Ok(prefix) = addresses::ip_prefix(word, false) {
        return Some((prefix.address.into(), prefix.mask.into()));
    }
    Prefix4::parse_network(word, scope).ok().map(|p| (p.address.into(), p.mask()))
}

/// An address whose last bytes may be missing.
pub(crate) fn partial(word: &str) -> Option<u32> {
    addresses::ip_prefix(&format!("{word}/0"), false).ok().map(|p| p.address.into())
}

/// An Ethernet address or a name of one.
pub(crate) fn ether(word: &str, scope: &Scope<'_>) -> Option<[u8; 6]> {
    Ether::parse(word, scope).ok().map(|e| e.0)
}

/// The protocol of that name.
fn protocol(word: &str) -> Option<Proto> {
    match word {
        "tcpudp" => Some(Proto::TcpOrUdp),
        "transp" => Some(Proto::Any),
        _ => addresses::protocol(word).ok().map(Proto::Number),
    }
}

fn port(word: &str, scope: &Scope<'_>) -> Option<u32> {
    let of = |transport| scope.port(word, transport);
    of(Transport::Tcp).or_else(|| of(Transport::Udp)).map(u32::from)
}

fn tcp_flag(word: &str) -> Option<u32> {
    TCP_FLAGS.iter().find(|(name, _)| *name == word).map(|&(_, flag)| flag)
}

/// What `word` names, among the things that a test of `kind` and `proto` can be about. The error names the others.
pub(crate) fn named(
    word: &str,
    kind: Option<Kind>,
    proto: Option<Proto>,
    scope: &Scope<'_>,
) -> Result<Option<Data>, Error> {
    // Numbers are no names.
    if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(None);
    }
    let of = |own: Kind| kind.is_none_or(|kind| kind == own);
    let over = |number: u8| {
        proto.is_none_or(|p| p == Proto::Number(number) || (number != 1 && p == Proto::TcpOrUdp))
    };
    let meanings = [
        (protocol(word).map(Data::Protocol), of(Kind::Protocol), "ip proto"),
        (port(word, scope).map(Data::Port), of(Kind::Port) && (over(6) || over(17)), "port"),
        (tcp_flag(word).map(Data::TcpOption), of(Kind::TcpOption) && over(6), "tcp opt"),
        (
            names::icmp_type(word).map(|t| Data::IcmpType(t.into())),
            of(Kind::ICMP_TYPE) && over(1),
            "icmp type",
        ),
    ];
    let known: Vec<_> =
        meanings.iter().filter_map(|(data, fits, what)| Some((data.as_ref()?, fits, what))).collect();
    let mut fitting = known.iter().filter(|(_, fits, _)| **fits).map(|(data, ..)| **data);
    match (known.is_empty(), fitting.next(), fitting.next()) {
        (true, ..) => Ok(None),
        (_, Some(data), None) => Ok(Some(data)),
        (_, one, _) => {
            let what = if one.is_some() { "ambiguous" } else { "meaningless" };
            let others: Vec<String> = known.iter().map(|(_, _, what)| format!("'{what} {word}'")).collect();
            Err(Error::new(format!("'{word}' is {what}; try {}", others.join(", "))))
        }
    }
}
