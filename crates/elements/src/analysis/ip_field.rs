//! Fields of IP packets by name or place, as `tcp flags`, `ip src/8` or `ip[8:2] & 0x3f0` name them.

use crate::nat::{get_u16, get_u32};
use causeway_engine::Error;
use causeway_lang::values;
use causeway_packet::Packet;
use causeway_packet::wire::protocol;
use std::fmt;

/// Where a field's place is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Ip,
    /// The transport header, of this protocol.
    Protocol(u8),
    /// The transport header, of TCP or UDP.
    Ports,
    /// The transport header, of any protocol.
    Transport,
    /// What follows the header of TCP or UDP.
    Data,
}

/// Bits of a packet, all in one word of 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpField {
    pub base: Base,
    pub offset: u32,
    pub length: u32,
}

const SYNTAX: &str = "expected 'HEADER [NAME] [{OFFSET:LENGTH}] [/PREFIX] [& MASK]'";
const BAD_MASK: &str = "bad prefix or mask in TCP/IP field";

type Named = (&'static str, u32, u32);

const IP: &[Named] = &[
    ("vers", 0, 4),
    ("hl", 4, 4),
    ("tos", 8, 8),
    ("dscp", 8, 6),
    ("ecn", 14, 2),
    ("len", 16, 16),
    ("id", 32, 16),
    ("off", 48, 16),
    ("rf", 48, 1),
    ("df", 49, 1),
    ("mf", 50, 1),
    ("fragoff", 51, 13),
    ("ttl", 64, 8),
    ("proto", 72, 8),
    ("sum", 80, 16),
    ("src", 96, 32),
    ("dst", 128, 32),
];
const PORTS: &[Named] = &[("sport", 0, 16), ("dport", 16, 16)];
const UDP: &[Named] = &[("sport", 0, 16), ("dport", 16, 16), ("len", 32, 16), ("sum", 48, 16)];
const TCP: &[Named] = &[
    ("sport", 0, 16),
    ("dport", 16, 16),
    ("seq", 32, 32),
    ("seqno", 32, 32),
    ("ackno", 64, 32),
    ("hl", 96, 4),
    ("flags", 104, 8),
    ("urg", 106, 1),
    ("ack", 107, 1),
    ("psh", 108, 1),
    ("push", 108, 1),
    ("rst", 109, 1),
    ("syn", 110, 1),
    ("fin", 111, 1),
    ("win", 112, 16),
    ("sum", 128, 16),
    ("urp", 144, 16),
];
const ICMP: &[Named] = &[("type", 0, 8), ("code", 8, 8), ("sum", 16, 16)];

impl Base {
    fn named(self) -> &'static [Named] {
        match self {
            Base::Ip => IP,
            Base::Ports => PORTS,
            Base::Protocol(protocol::TCP) => TCP,
            Base::Protocol(protocol::UDP) => UDP,
            Base::Protocol(protocol::ICMP) => ICMP,
            _ => &[],
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Base::Ip => "ip".to_owned(),
            Base::Ports => "tcpudp".to_owned(),
            Base::Transport => "transp".to_owned(),
            Base::Data => "data".to_owned(),
            Base::Protocol(protocol::TCP) => "tcp".to_owned(),
            Base::Protocol(protocol::UDP) => "udp".to_owned(),
            Base::Protocol(protocol::ICMP) => "icmp".to_owned(),
            Base::Protocol(number) => format!("ip proto {number}"),
        }
    }
}

/// The words and signs of a specification.
fn tokens(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => {
                match all.last_mut().filter(|_| in_word) {
                    Some(word) => word.push(c),
                    None => all.push(c.to_string()),
                }
                in_word = true;
            }
            c => {
                in_word = false;
                if !c.is_whitespace() {
                    all.push(c.to_string());
                }
            }
        }
    }
    all
}

impl IpField {
    /// Reads a specification.
    pub fn parse(text: &str) -> Result<IpField, Error> {
        let all = tokens(text);
        let words: Vec<&str> = all.iter().map(String::as_str).collect();
        let number = |word: &str| values::unsigned_32(word).ok();
        let (base, rest) = match &words[..] {
            ["ip", "proto", n, rest @ ..] if number(n).is_some() => {
                let n = number(n).and_then(|n| u8::try_from(n).ok()).ok_or("bad IP protocol")?;
                (Base::Protocol(n), rest)
            }
            ["ip", rest @ ..] => (Base::Ip, rest),
            ["tcp", rest @ ..] => (Base::Protocol(protocol::TCP), rest),
            ["udp", rest @ ..] => (Base::Protocol(protocol::UDP), rest),
            ["icmp", rest @ ..] => (Base::Protocol(protocol::ICMP), rest),
            ["tcpudp", rest @ ..] => (Base::Ports, rest),
            ["transp", rest @ ..] => (Base::Transport, rest),
            ["data" | "payload", rest @ ..] => (Base::Data, rest),
            rest @ ["sport" | "dport", ..] => (Base::Ports, rest),
            _ => return Err(Error::new(SYNTAX)),
        };
        let named = |word: &&&str| base.named().iter().find(|(name, ..)| *name == **word);
        let (field, rest) = match rest.first().as_ref().and_then(named) {
            // In an IP header ports are those of what follows.
            Some(&(_, offset, length)) => (Some(IpField { base, offset, length }), &rest[1..]),
            None => match rest {
                [word @ ("sport" | "dport"), rest @ ..] if base == Base::Ip => {
                    let offset = if *word == "sport" { 0 } else { 16 };
                    (Some(IpField { base: Base::Ports, offset, length: 16 }), rest)
                }
                rest => (None, rest),
            },
        };
        let (place, rest) = place(rest, &number)?;
        let field = match (field, place) {
            (None, None) => return Err(Error::new(SYNTAX)),
            (None, Some((offset, length))) => IpField { base, offset, length },
            (Some(field), None) => field,
            (Some(field), Some((offset, length))) if offset + length <= field.length => {
                IpField { offset: field.offset + offset, length, ..field }
            }
            _ => return Err(Error::new(SYNTAX)),
        };
        field.masked(rest, &number)
    }

    /// The part of the field that `/ N` or `& MASK` leaves.
    fn masked(self, rest: &[&str], number: &dyn Fn(&str) -> Option<u32>) -> Result<IpField, Error> {
        let (field, rest) = match rest {
            ["/", n, rest @ ..] => {
                let length = number(n).filter(|n| (1..=self.length).contains(n)).ok_or(BAD_MASK)?;
                (IpField { length, ..self }, rest)
            }
            rest => (self, rest),
        };
        match rest {
            [] => Ok(field),
            ["&", mask] => {
                let mask = number(mask).filter(|m| *m != 0).ok_or(BAD_MASK)?;
                let (low, high) = (mask.trailing_zeros(), 32 - mask.leading_zeros());
                let is_one_piece = (mask >> low).checked_add(1).is_none_or(u32::is_power_of_two);
                match is_one_piece && high <= field.length {
                    true => Ok(IpField {
                        offset: field.offset + field.length - high,
                        length: high - low,
                        ..field
                    }),
                    false => Err(Error::new(BAD_MASK)),
                }
            }
            _ => Err(Error::new("garbage after field specification")),
        }
    }

    /// Whether it lies in one word of 32 bits.
    pub fn fits_a_word(self) -> bool {
        self.offset / 32 == (self.offset + self.length - 1) / 32
    }

    /// The word that the field is in, if the packet has the field.
    pub fn word(self, packet: &Packet) -> Option<u32> {
        let (network, data) = (packet.network_offset()?, packet.data());
        let ip = data.get(network..).filter(|ip| ip.len() >= 20)?;
        let (number, is_first) = (ip[9], get_u16(ip, 6) & 0x1fff == 0);
        let transport = || packet.transport_offset().filter(|_| is_first);
        let start = match self.base {
            Base::Ip => network,
            Base::Ports if matches!(number, protocol::TCP | protocol::UDP) => transport()?,
            Base::Protocol(own) if own == number => transport()?,
            Base::Transport => transport()?,
            Base::Data => {
                let at = transport()?;
                match number {
                    protocol::TCP if at + 20 <= data.len() => at + usize::from(data[at + 12] >> 4) * 4,
                    protocol::UDP => at + 8,
                    _ => return None,
                }
            }
            _ => return None,
        };
        let at = start + self.offset as usize / 32 * 4;
        (at + 4 <= data.len()).then(|| get_u32(data, at))
    }
}

/// Offset and length in bits, if they are given, and the words behind.
type Placed<'w, 't> = (Option<(u32, u32)>, &'w [&'t str]);

/// `[OFFSET]`, `[OFFSET:LENGTH]`, `[FIRST-LAST]` in bytes, or between `{}` in bits: offset and length in bits.
fn place<'w, 't>(rest: &'w [&'t str], number: &dyn Fn(&str) -> Option<u32>) -> Result<Placed<'w, 't>, Error> {
    let (unit, close) = match rest.first() {
        Some(&"[") => (8, "]"),
        Some(&"{") => (1, "}"),
        _ => return Ok((None, rest)),
    };
    let bad = || Error::new(SYNTAX);
    let (first, length, rest) = match rest {
        [_, first, end, rest @ ..] if *end == close => (number(first), Some(1), rest),
        [_, first, ":" | ",", length, end, rest @ ..] if *end == close => {
            (number(first), number(length), rest)
        }
        [_, first, "-", last, end, rest @ ..] if *end == close => {
            let length = number(first).zip(number(last)).and_then(|(f, l)| l.checked_sub(f)?.checked_add(1));
            (number(first), length, rest)
        }
        _ => return Err(bad()),
    };
    let first = first.and_then(|n| n.checked_mul(unit)).filter(|n| *n < 1 << 19).ok_or_else(bad)?;
    let length =
        length.and_then(|n| n.checked_mul(unit)).filter(|n| (1..1 << 19).contains(n)).ok_or_else(bad)?;
    Ok((Some((first, length)), rest))
}

/// As it would be written.
impl fmt::Display for IpField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base.name())?;
        let IpField { mut offset, length, .. } = *self;
        let named = |o: u32, l: u32| self.base.named().iter().find(|n| (n.1, n.2) == (o, l)).map(|n| n.0);
        if let Some(name) = named(offset, length) {
            return write!(f, " {name}");
        }
        for container in [8, 16, 32] {
            let start = offset & !(container - 1);
            if offset / container == (offset + length - 1) / container
                && let Some(name) = named(start, container)
            {
                write!(f, " {name}")?;
                offset -= start;
                if offset == 0 {
                    return write!(f, "/{length}");
                }
                break;
            }
        }
        match (offset % 8, length % 8) {
            (0, _) if length == 8 => write!(f, "[{}]", offset / 8),
            (0, 0) => write!(f, "[{}:{}]", offset / 8, length / 8),
            _ if length == 1 => write!(f, "{{{offset}}}"),
            _ => write!(f, "{{{offset}:{length}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_has_many_names() {
        let top = IpField { base: Base::Ip, offset: 96, length: 8 };
        for text in
            ["ip src/8", "ip src & 0xFF000000", "ip[12]", "ip[12, 1]", "ip{96, 8}", "ip{96-103}", "ip src[0]"]
        {
            assert_eq!(IpField::parse(text), Ok(top), "{text}");
        }
        assert_eq!(top.to_string(), "ip src/8");
        for text in
            ["tcp flags", "ip dst", "udp len", "ip[8:2]", "ip{5}", "tcpudp sport", "data[0:4]", "icmp type"]
        {
            assert_eq!(IpField::parse(text).map(|f| f.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(IpField::parse("sport").map(|f| f.base), Ok(Base::Ports));
        for text in
            ["", "ip", "ip x", "ip src/33", "ip[8:2] & 5", "ip[2-1]", "ip src garbage", "tcp[", "ip src[3:2]"]
        {
            assert!(IpField::parse(text).is_err(), "{text}");
        }
    }
}
