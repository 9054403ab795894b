//! Values of fields as text: how dumps print them, and how they are read back.

use super::view::{Value, View};
use super::{What, ip_options, md5, tcp_options};
use crate::icmp::names;
use causeway_engine::Scope;
use causeway_engine::value::{Ether, Value as _};
use causeway_lang::{args, values};
use causeway_packet::Packet;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Letters of the TCP flags, the lowest first; some have two.
const FLAGS: &str = "FSRPAUECN";

/// The number that bytes are, the most significant first.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Appends a time: whole microseconds with six digits, others with nine.
pub(crate) fn print_time(ns: u64, text: &mut String) {
    let (sec, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = match ns.is_multiple_of(1_000) {
        true => write!(text, "{sec}.{:06}", ns / 1_000),
        false => write!(text, "{sec}.{ns:09}"),
    };
}

/// Appends the letters of TCP flags; `.` if there are none.
pub(crate) fn print_flags(flags: u64, text: &mut String) {
    if flags == 0 {
        text.push('.');
    }
    text.extend(FLAGS.chars().enumerate().filter(|(i, _)| flags >> i & 1 == 1).map(|(_, c)| c));
}

/// Appends the value of a field of `packet`, which `view` has looked at.
pub(crate) fn print(what: What, value: &Value<'_>, view: &View, packet: &Packet, text: &mut String) {
    match value {
        Value::Number(n) => print_number(what, *n, view, packet, text),
        Value::Bytes(bytes) => print_bytes(what, bytes, text),
    }
}

fn print_number(what: What, n: u64, view: &View, packet: &Packet, text: &mut String) {
    let _ = match what {
        What::Timestamp | What::FirstTimestamp => {
            print_time(n, text);
            Ok(())
        }
        What::Direction if n < 2 => {
            text.push(if n == 0 { '>' } else { '<' });
            Ok(())
        }
        What::EthType => write!(text, "{n:04X}"),
        What::IpSrc | What::IpDst => write!(text, "{}", Ipv4Addr::from(n as u32)),
        What::IpFrag => write!(text, "{}", char::from(n as u8)),
        What::IpFragoff => {
            let more = if n & 0x2000 != 0 { "+" } else { "" };
            let whole = if n & 0x4000 != 0 { "!" } else { "" };
            write!(text, "{}{more}{whole}", (n & 0x1fff) << 3)
        }
        What::IpProto => match n {
            6 => write!(text, "T"),
            17 => write!(text, "U"),
            1 => write!(text, "I"),
            n => write!(text, "{n}"),
        },
        What::IpEcn => write!(text, "{}", ["no", "ect1", "ect2", "ce"][n as usize & 3]),
        What::TcpFlags => {
            print_flags(n, text);
            Ok(())
        }
        What::IcmpTypeName => match names::type_name(n as u8) {
            Some(name) => write!(text, "{name}"),
            None => write!(text, "{n}"),
        },
        What::IcmpCodeName => match names::code_name(view.icmp_type(packet), n as u8) {
            Some(name) => write!(text, "{name}"),
            None => write!(text, "{n}"),
        },
        _ => write!(text, "{n}"),
    };
}

fn print_bytes(what: What, bytes: &[u8], text: &mut String) {
    use tcp_options::Choice;
    match what {
        What::IpOpt => ip_options::print(bytes, text),
        What::TcpOpt => tcp_options::print(bytes, Choice::All, text),
        What::TcpNtopt => tcp_options::print(bytes, Choice::NoTimestamp, text),
        What::TcpSack => tcp_options::print(bytes, Choice::Sack, text),
        What::Payload => quote(bytes, text),
        What::PayloadMd5 => text.push_str(&md5::letters(&md5::digest(bytes))),
        What::PayloadMd5Hex => text.extend(md5::digest(bytes).iter().map(|b| format!("{b:02x}"))),
        _ => {
            if let Some(address) = bytes.first_chunk::<6>() {
                let address = address.map(|b| format!("{b:02X}"));
                text.push_str(&address.join("-"));
            }
        }
    }
}

/// What a binary record has of a value: of options the chosen ones, of payloads the digest.
pub(crate) fn binary<'v>(what: What, value: Value<'v>, scratch: &'v mut Vec<u8>) -> Value<'v> {
    use tcp_options::Choice;
    let Value::Bytes(bytes) = value else { return value };
    scratch.clear();
    match what {
        What::TcpOpt => tcp_options::copy(bytes, Choice::All, scratch),
        What::TcpNtopt => tcp_options::copy(bytes, Choice::NoTimestamp, scratch),
        What::TcpSack => tcp_options::copy(bytes, Choice::Sack, scratch),
        What::PayloadMd5 | What::PayloadMd5Hex => scratch.extend(md5::digest(bytes)),
        _ => return value,
    }
    Value::Bytes(scratch)
}

/// Appends bytes between quotes; what is no plain letter as `\` and a letter or three octal digits.
fn quote(bytes: &[u8], text: &mut String) {
    text.push('"');
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\\' | b'$' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            32..=126 => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
        at += 1;
    }
    text.push('"');
}

/// A number, or bytes that `scratch` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Number(u64),
    Scratch,
}

/// What reading a field depends on.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub scope: &'a Scope<'a>,
    /// Minor version of the dump's format.
    pub version: u32,
    /// Type of the ICMP message, if it is known.
    pub icmp_type: Option<u8>,
}

/// Reads the value of a field. `None` if it is not one.
pub(crate) fn parse(
    what: What,
    text: &str,
    width: usize,
    context: Context<'_>,
    scratch: &mut Vec<u8>,
) -> Option<Parsed> {
    use tcp_options::Choice;
    let most = u64::MAX.checked_shr(64 - 8 * width.clamp(1, 8) as u32).unwrap_or(u64::MAX);
    let plain = || values::integer(text, 0, most.into()).ok().map(|n| n as u64);
    let number = match what {
        What::Timestamp | What::FirstTimestamp => values::time_ns(text, values::SECOND_NS).ok()?,
        What::Link | What::Direction if text == ">" => 0,
        What::Link | What::Direction if text == "<" => 1,
        What::Link | What::Direction => values::unsigned_32(text).ok()? as u8 as u64,
        What::EthSrc | What::EthDst => {
            scratch.clear();
            scratch.extend(Ether::parse(text, context.scope).ok()?.0);
            return Some(Parsed::Scratch);
        }
        What::EthType => u64::from(u16::from_str_radix(text, 16).ok()?),
        What::IpSrc | What::IpDst => u32::from(Ipv4Addr::parse(text, context.scope).ok()?).into(),
        What::IpFrag | What::IpFragoff => parse_fragment(text, context.version)?,
        What::IpProto => match text {
            "T" => 6,
            "U" => 17,
            "I" => 1,
            _ => plain()?,
        },
        What::IpEcn => match text {
            "0" | "no" => 0,
            "1" | "ect1" | "ECT(1)" => 1,
            "2" | "ect2" | "ECT(0)" => 2,
            "3" | "ce" | "CE" => 3,
            _ => return None,
        },
        What::TcpFlags => parse_flags(text)?,
        What::IcmpType | What::IcmpTypeName => names::icmp_type(text)?.into(),
        What::IcmpCode | What::IcmpCodeName => match context.icmp_type {
            Some(kind) => names::icmp_code(kind, text)?.into(),
            None => plain()?,
        },
        What::IpOpt => return ip_options::parse(text, scratch).map(|()| Parsed::Scratch),
        What::TcpOpt => return tcp_options::parse(text, Choice::All, scratch).map(|()| Parsed::Scratch),
        What::TcpNtopt => {
            return tcp_options::parse(text, Choice::NoTimestamp, scratch).map(|()| Parsed::Scratch);
        }
        What::TcpSack => return tcp_options::parse(text, Choice::Sack, scratch).map(|()| Parsed::Scratch),
        What::Payload => {
            *scratch = args::unquote_bytes(text);
            return Some(Parsed::Scratch);
        }
        _ => plain()?,
    };
    Some(Parsed::Number(number))
}

/// A fragment offset with its flags, or one of the letters for fragments.
fn parse_fragment(text: &str, version: u32) -> Option<u64> {
    match text {
        "." => return Some(0),
        "!" => return Some(0x4000),
        "F" => return Some(0x2000),
        // Any offset but 0.
        "f" => return Some(100),
        "" => return None,
        _ => {}
    }
    let mut at = Cursor::new(text);
    let offset = at.number().unwrap_or(0);
    // The first dumps counted as the header does.
    let mut value = u64::from(if version > 0 { offset >> 3 } else { offset });
    while !at.is_empty() {
        if at.skip("!") {
            value |= 0x4000;
        } else if at.skip("+") {
            value |= 0x2000;
        } else {
            return None;
        }
    }
    Some(value)
}

/// Flags by their letters, old ones included, or as a number.
fn parse_flags(text: &str) -> Option<u64> {
    if text == "." {
        return Some(0);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return values::integer(text, 0, 0xfff).ok().map(|n| n as u64);
    }
    let bit = |c| match c {
        'X' => Some(6),
        'W' | 'Y' => Some(7),
        c => FLAGS.find(c),
    };
    text.chars().map(bit).try_fold(0, |flags, bit| Some(flags | 1 << bit?)).filter(|_| !text.is_empty())
}

/// A place in a text.
pub(super) struct Cursor<'t>(&'t str);

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor(text)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn starts_with(&self, word: &str) -> bool {
        self.0.starts_with(word)
    }

    /// Goes past `word`, if it is next.
    pub fn skip(&mut self, word: &str) -> bool {
        self.0.strip_prefix(word).inspect(|rest| self.0 = rest).is_some()
    }

    /// Whether `word` is next and a digit behind it.
    pub fn peek_digit_behind(&self, word: &str) -> bool {
        self.0.strip_prefix(word).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether what is next looks like an IP address.
    pub fn is_address(&self) -> bool {
        self.0.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.')
    }

    /// Goes past a decimal number.
    pub fn decimal(&mut self) -> Option<u32> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits.parse().ok()
    }

    /// Goes past a number, in base 8 or 16 if it says so.
    pub fn number(&mut self) -> Option<u32> {
        let hex = self.0.starts_with("0x") || self.0.starts_with("0X");
        let body = if hex { 2 } else { 0 };
        let is_digit = |c: char| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
        let end = self.0[body..].find(|c: char| !is_digit(c)).map_or(self.0.len(), |i| i + body);
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        values::unsigned_32(digits).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_and_flags_are_read_in_all_spellings() {
        let fragment = |text| parse_fragment(text, 3);
        assert_eq!(
            ["0", "0+", "0!", "8+!", "F", "f", ".", "!", "x", ""].map(fragment),
            [
                Some(0),
                Some(0x2000),
                Some(0x4000),
                Some(0x6001),
                Some(0x2000),
                Some(100),
                Some(0),
                Some(0x4000),
                None,
                None
            ]
        );
        assert_eq!(parse_fragment("8", 0), Some(8));
        assert_eq!(
            [".", "SA", "AS", "16", "0x12", "FSRPAUECN", "XY", "W", "Q", ""].map(parse_flags),
            [
                Some(0),
                Some(18),
                Some(18),
                Some(16),
                Some(18),
                Some(0x1ff),
                Some(0xc0),
                Some(0x80),
                None,
                None
            ]
        );
    }

    #[test]
    fn payloads_are_quoted_so_that_they_can_be_read() {
        for bytes in [&b"plain"[..], b"", b"a \"b\" \\ $c\n\t\r", &[0, 1, 255, b'x']] {
            let mut text = String::new();
            quote(bytes, &mut text);
            assert_eq!(args::unquote_bytes(&text), bytes, "{text}");
        }
    }
}
