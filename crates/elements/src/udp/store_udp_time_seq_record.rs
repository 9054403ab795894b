//! StoreUDPTimeSeqRecord.

use causeway_engine::prelude::*;
use causeway_engine::settings::Fresh;
use causeway_packet::checksum::update_u32;
use causeway_packet::wire::{ipv6, protocol, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "StoreUDPTimeSeqRecord",
    category: "udp",
    summary: "writes number and time into UDP packets, or how long ago that was",
    doc: "Writes five words of four bytes, in network byte order, to the begin of the payload of UDP packets whose IPv4 or IPv6 header begins at \
          OFFSET: the packet's number, from 1 on; seconds and nanoseconds of the time; and two zeros. With DELTA it \
          leaves the first three and writes seconds and nanoseconds since then in the place of the zeros: behind a \
          network, say, whose delay is to be known. The UDP checksum follows, if there is one. What is no UDP packet, a \
          fragment but the first, and what is too short for the words is dropped.",
    args: Record::ARGS,
    handlers: Record::HANDLERS,
    drops: Reason::DOCS,
    example: "RatedSource(LENGTH 22, LIMIT 9, STOP true) -> UDPIPEncap(10.0.1.1, 6667, 20.0.0.2, 6667) \
              -> StoreUDPTimeSeqRecord(0) -> DelayShaper(100ms) -> Unqueue -> StoreUDPTimeSeqRecord(0, DELTA true) -> Discard;",
    see: &["StoreTimestamp", "SetTimestamp"],
    copies: Copies::One,
    build: configured::<Record>,
    stamps: true,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotUdp = "not-udp", "no UDP over IPv4 or IPv6, or a fragment but the first";
        Short = "short", "it ends before the words do";
    }
}

settings! {
    struct Record {
        offset: u32 = required("OFFSET", "bytes", "where the IP header begins");
        delta: bool = keyword("DELTA", "boolean", "whether to write how long ago the time in the packet was; default false"), or(false);
    }
    counts {
        count: Fresh = reads("count", "packets written to since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset", "sets the count to zero, from which packets are numbered";
    }
}

/// Words of a record, and bytes.
const WORDS: usize = 5;
const LEN: usize = 4 * WORDS;
const SECOND_NS: i128 = 1_000_000_000;

/// Where the UDP header is in what begins with an IP header.
fn udp_at(bytes: &[u8]) -> Result<usize, Reason> {
    let word =
        |at: usize| bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]])).ok_or(Reason::Short);
    let byte = |at: usize| bytes.get(at).copied().ok_or(Reason::Short);
    let (next, header_len) = match byte(0)? >> 4 {
        4 if word(6)? & 0x1fff == 0 => (byte(9)?, usize::from(byte(0)? & 15) * 4),
        6 => (byte(6)?, ipv6::HEADER_LEN),
        _ => return Err(Reason::NotUdp),
    };
    if next == protocol::UDP { Ok(header_len) } else { Err(Reason::NotUdp) }
}

/// Seconds, which may be negative, and nanoseconds.
fn parts(ns: i128) -> [u32; 2] {
    [ns.div_euclid(SECOND_NS) as u32, ns.rem_euclid(SECOND_NS) as u32]
}

impl Record {
    fn write(&self, packet: &mut Packet, now_ns: i128) -> Result<(), Reason> {
        let ip = packet.data_mut().get_mut(self.offset as usize..).ok_or(Reason::Short)?;
        let at = udp_at(ip)?;
        let (udp, record) = ip
            .get_mut(at..)
            .ok_or(Reason::Short)?
            .split_at_mut_checked(udp::HEADER_LEN)
            .ok_or(Reason::Short)?;
        let record = record.first_chunk_mut::<LEN>().ok_or(Reason::Short)?;
        let mut words = [0u32; WORDS];
        for (word, bytes) in words.iter_mut().zip(record.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
        }
        let old = words;
        if self.delta {
            let then_ns = i128::from(words[1]) * SECOND_NS + i128::from(words[2]);
            [words[3], words[4]] = parts(now_ns - then_ns);
        } else {
            let [seconds, nanoseconds] = parts(now_ns);
            words = [self.count.get() as u32, seconds, nanoseconds, 0, 0];
        }
        let none = udp[6..8] == [0, 0];
        let sum = u16::from_be_bytes([udp[6], udp[7]]);
        let sum = old.iter().zip(words).fold(sum, |sum, (&old, new)| update_u32(sum, old, new));
        if !none {
            udp[6..8].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
        }
        record.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_be_bytes()));
        Ok(())
    }
}

impl Element for Record {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.count.add(1);
        let written = Record::write(self, packet, cx.now_ns().into());
        if written.is_err() {
            self.count.set(self.count.get() - 1);
        }
        written.into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus::datagram;
    use causeway_engine::harness::{Harness, packet, verdict};
    use causeway_packet::checksum::pseudo_header_v4;
    use causeway_packet::wire::{Ipv4, Udp};

    /// A UDP packet behind two bytes, with `options` in its IPv4 header.
    fn bytes(options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut udp = [&[0, 7, 0, 80, 0, 8 + payload.len() as u8, 0, 0][..], payload].concat();
        let pseudo = pseudo_header_v4([10, 0, 0, 1].into(), [10, 9, 0, 2].into(), 17, udp.len() as u16);
        Udp::new_checked(&mut udp[..]).unwrap().fill_checksum(pseudo);
        [&[9, 9][..], &datagram(options, &udp, 64, 0)].concat()
    }

    /// The words in a packet, whose checksum must be right.
    fn words(p: &Packet) -> Vec<u32> {
        let ip = Ipv4::new_checked(&p.data()[2..]).unwrap();
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert!(udp.checksum_ok(ip.pseudo_header(udp.length())));
        udp.payload()[..LEN].chunks(4).map(|b| u32::from_be_bytes(b.try_into().unwrap())).collect()
    }

    #[test]
    fn numbers_and_times_are_written_and_then_how_long_ago_that_was() {
        let mut h = Harness::new(&SPEC, "2", 1, 1).unwrap();
        let before = |h: &mut Harness, payload: &[u8], options: &[u8]| {
            h.push(0, packet(&bytes(options, payload)));
            h.take(0).pop().unwrap()
        };
        let first = before(&mut h, &[0; 22], &[]);
        h.advance(1_500_000_000);
        let second = before(&mut h, &[0xab; 40], &[1; 8]);
        let (a, b) = (words(&first), words(&second));
        assert_eq!(([a[0], b[0]], [&a[3..], &b[3..]]), ([1, 2], [&[0, 0][..]; 2]));
        let ns = |w: &[u32]| u64::from(w[0]) * 1_000_000_000 + u64::from(w[1]);
        assert_eq!((ns(&b[1..]) - ns(&a[1..])) / 1_000_000, 1_500);
        let mut h = Harness::new(&SPEC, "2, DELTA true", 1, 1).unwrap();
        h.advance(2_250_000_000);
        h.push(0, second);
        let c = words(&h.take(0)[0]);
        assert_eq!((&c[..3], h.read("count").unwrap()), (&b[..3], "1".into()));
        // Both began with the same time.
        assert!((749_000_000..751_000_000).contains(&ns(&c[3..])), "{c:?}");
        // One from the future.
        h.push(0, packet(&bytes(&[], &[0x7f; 20])));
        assert!(words(&h.take(0)[0])[3] as i32 <= -1);
    }

    #[test]
    fn what_has_no_room_or_is_something_else_is_dropped() {
        let good = bytes(&[], &[0; 20]);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            verdict(&SPEC, "2", packet(&bytes)).err()
        };
        assert_eq!(
            [with(2, 0x45), with(11, 6), with(9, 1), with(2, 0x55)],
            [None, Some("not-udp"), Some("not-udp"), Some("not-udp")]
        );
        let short = |len: usize| verdict(&SPEC, "2", packet(&good[..len])).err();
        assert_eq!([49, 29, 8, 3, 1].map(short), [Some("short"); 5]);
        // Without checksum it stays without.
        let mut none = good.clone();
        none[28..30].fill(0);
        assert_eq!(verdict(&SPEC, "2", packet(&none)).unwrap().data()[28..30], [0, 0]);
        let six = [&[0x60, 0, 0, 0, 0, 28, 17, 9][..], &[7; 32], &good[22..]].concat();
        assert_eq!(verdict(&SPEC, "0", packet(&six)).unwrap().data()[48..52], [0, 0, 0, 1]);
    }
}
