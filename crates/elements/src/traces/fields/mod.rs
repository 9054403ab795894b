//! The fields of packets by name: one table of what each is, how wide it is in binary, and in which order fields are
//! written.
//!
//! [`view`] takes values out of packets, [`text`] prints and reads them, and [`make`] builds packets of them. Values of
//! options are in [`ip_options`] and [`tcp_options`].

mod finish;
mod ip_options;
pub(crate) mod make;
mod md5;
pub(crate) mod tcp_options;
pub(crate) mod text;
pub(crate) mod view;

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    None,
    Timestamp,
    TimestampSec,
    TimestampUsec,
    TimestampUsec1,
    FirstTimestamp,
    Count,
    Link,
    Direction,
    Aggregate,
    WireLen,
    EthSrc,
    EthDst,
    EthType,
    IpSrc,
    IpDst,
    IpTos,
    IpDscp,
    IpEcn,
    IpTtl,
    IpFrag,
    IpFragoff,
    IpId,
    IpSum,
    IpProto,
    IpHl,
    IpLen,
    IpCaptureLen,
    IpOpt,
    Sport,
    Dport,
    TcpSeq,
    TcpAck,
    TcpOff,
    TcpFlags,
    TcpWindow,
    TcpUrp,
    TcpOpt,
    TcpNtopt,
    TcpSack,
    UdpLen,
    IcmpType,
    IcmpCode,
    IcmpTypeName,
    IcmpCodeName,
    IcmpFlowid,
    IcmpSeq,
    IcmpNextmtu,
    PayloadLen,
    Payload,
    PayloadMd5,
    PayloadMd5Hex,
}

/// How a field's value lies in a binary record, most significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// That many bytes of a number, or of bytes as they are.
    Bytes(usize),
    /// Seconds and microseconds, four bytes each.
    Microseconds,
    /// Seconds and nanoseconds, four bytes each.
    Nanoseconds,
    /// A length of one byte, and so many bytes.
    Counted,
    /// It cannot be written in binary.
    TextOnly,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Field {
    /// As dumps write it.
    pub name: &'static str,
    pub what: What,
    pub width: Width,
    /// Place among the fields of a packet that is made: lower first. `None` = it cannot be made.
    pub order: Option<u16>,
}

const fn field(name: &'static str, what: What, width: Width, order: u16) -> Field {
    Field { name, what, width, order: Some(order) }
}

const fn shown(name: &'static str, what: What, width: Width) -> Field {
    Field { name, what, width, order: None }
}

// Annotations come first, then what headers are there, then what is in them, then what follows.
const ANNO: u16 = 100;
const LINK: u16 = 200;
const NET: u16 = 300;
const TRANSPORT: u16 = 400;
const PAYLOAD: u16 = 500;

const ONE: Width = Width::Bytes(1);
const TWO: Width = Width::Bytes(2);
const FOUR: Width = Width::Bytes(4);

/// All fields.
pub(crate) static FIELDS: &[Field] = &[
    shown("none", What::None, Width::Bytes(0)),
    field("timestamp", What::Timestamp, Width::Microseconds, ANNO),
    field("ntimestamp", What::Timestamp, Width::Nanoseconds, ANNO),
    field("ts_sec", What::TimestampSec, FOUR, ANNO),
    field("ts_usec", What::TimestampUsec, FOUR, ANNO),
    field("ts_usec1", What::TimestampUsec1, Width::Bytes(8), ANNO),
    field("first_timestamp", What::FirstTimestamp, Width::Microseconds, ANNO),
    field("first_ntimestamp", What::FirstTimestamp, Width::Nanoseconds, ANNO),
    field("count", What::Count, FOUR, ANNO),
    field("link", What::Link, ONE, ANNO),
    field("paint", What::Link, ONE, ANNO),
    field("direction", What::Direction, ONE, ANNO),
    field("aggregate", What::Aggregate, FOUR, ANNO),
    field("wire_len", What::WireLen, FOUR, ANNO),
    field("eth_src", What::EthSrc, Width::Bytes(6), LINK),
    field("eth_dst", What::EthDst, Width::Bytes(6), LINK),
    field("eth_type", What::EthType, TWO, LINK),
    field("ip_src", What::IpSrc, FOUR, NET),
    field("ip_dst", What::IpDst, FOUR, NET),
    field("ip_tos", What::IpTos, ONE, NET),
    field("ip_dscp", What::IpDscp, ONE, NET),
    field("ip_ecn", What::IpEcn, ONE, NET),
    field("ip_ttl", What::IpTtl, ONE, NET),
    field("ip_frag", What::IpFrag, ONE, NET - 2),
    field("ip_fragoff", What::IpFragoff, TWO, NET - 1),
    field("ip_id", What::IpId, TWO, NET),
    field("ip_sum", What::IpSum, TWO, NET + 2),
    field("ip_proto", What::IpProto, ONE, NET),
    field("ip_hl", What::IpHl, ONE, NET - 1),
    field("ip_len", What::IpLen, FOUR, NET + 1),
    field("ip_capture_len", What::IpCaptureLen, FOUR, PAYLOAD + 2),
    field("ip_opt", What::IpOpt, Width::Counted, NET),
    field("sport", What::Sport, TWO, TRANSPORT),
    field("dport", What::Dport, TWO, TRANSPORT),
    field("tcp_seq", What::TcpSeq, FOUR, TRANSPORT),
    field("tcp_ack", What::TcpAck, FOUR, TRANSPORT),
    field("tcp_off", What::TcpOff, ONE, TRANSPORT - 1),
    field("tcp_flags", What::TcpFlags, ONE, TRANSPORT),
    field("tcp_window", What::TcpWindow, TWO, TRANSPORT),
    field("tcp_urp", What::TcpUrp, TWO, TRANSPORT),
    field("tcp_opt", What::TcpOpt, Width::Counted, TRANSPORT + 3),
    field("tcp_ntopt", What::TcpNtopt, Width::Counted, TRANSPORT + 2),
    field("tcp_sack", What::TcpSack, Width::Counted, TRANSPORT + 1),
    field("udp_len", What::UdpLen, FOUR, TRANSPORT),
    field("icmp_type", What::IcmpType, ONE, TRANSPORT),
    field("icmp_code", What::IcmpCode, ONE, TRANSPORT + 1),
    field("icmp_type_name", What::IcmpTypeName, ONE, TRANSPORT),
    field("icmp_code_name", What::IcmpCodeName, ONE, TRANSPORT + 1),
    field("icmp_flowid", What::IcmpFlowid, TWO, TRANSPORT + 2),
    field("icmp_seq", What::IcmpSeq, TWO, TRANSPORT + 2),
    field("icmp_nextmtu", What::IcmpNextmtu, TWO, TRANSPORT + 2),
    field("payload_len", What::PayloadLen, FOUR, PAYLOAD + 1),
    field("payload", What::Payload, Width::TextOnly, PAYLOAD),
    shown("payload_md5", What::PayloadMd5, Width::Bytes(16)),
    shown("payload_md5_hex", What::PayloadMd5Hex, Width::Bytes(16)),
];

/// Other names of fields.
const SYNONYMS: &[(&str, &str)] = &[
    ("utimestamp", "timestamp"),
    ("ts", "timestamp"),
    ("sec", "ts_sec"),
    ("usec", "ts_usec"),
    ("usec1", "ts_usec1"),
    ("first_utimestamp", "first_timestamp"),
    ("first_ts", "first_timestamp"),
    ("pkt_count", "count"),
    ("packet_count", "count"),
    ("agg", "aggregate"),
    ("wire_length", "wire_len"),
    ("ether_src", "eth_src"),
    ("ether_dst", "eth_dst"),
    ("ether_type", "eth_type"),
    ("length", "ip_len"),
    ("ip_p", "ip_proto"),
    ("tcp_seqno", "tcp_seq"),
    ("tcp_ackno", "tcp_ack"),
    ("tcp_win", "tcp_window"),
    ("payload_length", "payload_len"),
];

/// The field called `name`, which may have a blank for the underscore, or lack `ip_`.
pub(crate) fn find(name: &str) -> Option<&'static Field> {
    let exactly = |name: &str| {
        let name = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, name)| name);
        FIELDS.iter().find(|f| f.name == name)
    };
    exactly(name).or_else(|| {
        if let Some((first, rest)) = name.split_once(' ') {
            return find(&format!("{first}_{rest}"));
        }
        if name.contains('_') { None } else { exactly(&format!("ip_{name}")) }
    })
}

impl Width {
    /// Appends the value of a field to a binary record; what is missing is zero.
    pub fn write(self, value: Option<&view::Value<'_>>, record: &mut Vec<u8>) {
        use view::Value;
        match (self, value) {
            (Width::Bytes(n), Some(Value::Number(number))) => {
                record.extend_from_slice(&number.to_be_bytes()[8 - n.min(8)..]);
            }
            (Width::Bytes(n), Some(Value::Bytes(bytes))) => {
                record.extend(bytes.iter().copied().chain(std::iter::repeat(0)).take(n));
            }
            (Width::Microseconds | Width::Nanoseconds, Some(Value::Number(ns))) => {
                let unit = if self == Width::Microseconds { 1_000 } else { 1 };
                record.extend_from_slice(&((ns / 1_000_000_000) as u32).to_be_bytes());
                record.extend_from_slice(&((ns % 1_000_000_000 / unit) as u32).to_be_bytes());
            }
            (Width::Counted, Some(Value::Bytes(bytes))) => {
                let len = bytes.len().min(255);
                record.push(len as u8);
                record.extend_from_slice(&bytes[..len]);
            }
            (Width::Counted, _) => record.push(0),
            (Width::Bytes(n), _) => record.resize(record.len() + n, 0),
            (Width::Microseconds | Width::Nanoseconds, _) => record.resize(record.len() + 8, 0),
            (Width::TextOnly, _) => {}
        }
    }

    /// Takes a value off the front of a binary record. `None` if the record is too short.
    pub fn read<'r>(self, record: &mut &'r [u8]) -> Option<view::Value<'r>> {
        use view::Value;
        let mut take = |n: usize| record.split_off(..n);
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        Some(match self {
            Width::Bytes(n) if n <= 4 || n == 8 => Value::Number(number(take(n)?)),
            Width::Bytes(n) => Value::Bytes(take(n)?),
            Width::Microseconds | Width::Nanoseconds => {
                let unit = if self == Width::Microseconds { 1_000 } else { 1 };
                let (sec, part) = (number(take(4)?), number(take(4)?));
                Value::Number(sec * 1_000_000_000 + part * unit)
            }
            Width::Counted => {
                let len = number(take(1)?) as usize;
                Value::Bytes(take(len)?)
            }
            Width::TextOnly => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::view::Value;
    use super::*;

    #[test]
    fn fields_are_found_by_all_their_names() {
        for (name, field) in [
            ("ip_src", "ip_src"),
            ("src", "ip_src"),
            ("ip src", "ip_src"),
            ("tcp seq", "tcp_seq"),
            ("ts", "timestamp"),
            ("len", "ip_len"),
            ("proto", "ip_proto"),
            ("p", "ip_proto"),
            ("sport", "sport"),
            ("payload len", "payload_len"),
            ("payload_length", "payload_len"),
        ] {
            assert_eq!(find(name).map(|f| f.name), Some(field), "{name}");
        }
        assert!(["", "x", "ip_x", "tcp_"].iter().all(|name| find(name).is_none()));
        assert!(SYNONYMS.iter().all(|(_, name)| FIELDS.iter().any(|f| f.name == *name)));
    }

    #[test]
    fn values_go_into_records_and_back() {
        for (width, value) in [
            (Width::Bytes(1), Value::Number(200)),
            (Width::Bytes(4), Value::Number(0x0102_0304)),
            (Width::Bytes(8), Value::Number(u64::MAX - 5)),
            (Width::Bytes(6), Value::Bytes(&[1, 2, 3, 4, 5, 6])),
            (Width::Microseconds, Value::Number(5_000_006_000)),
            (Width::Nanoseconds, Value::Number(5_000_006_007)),
            (Width::Counted, Value::Bytes(&[9, 9])),
            (Width::Counted, Value::Bytes(&[])),
        ] {
            let mut record = Vec::new();
            width.write(Some(&value), &mut record);
            let mut rest = &record[..];
            assert_eq!((width.read(&mut rest), rest.len()), (Some(value), 0));
            assert!(record.is_empty() || width.read(&mut &record[..record.len() - 1]).is_none());
        }
    }
}
