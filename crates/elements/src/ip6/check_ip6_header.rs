//! CheckIP6Header.

use crate::ip::tally::{self, Tally};
use crate::printing::contents::to_stderr;
use causeway_engine::ir::{Alu, At, Field, Test};
use causeway_engine::prelude::*;
use causeway_engine::value::List;
use causeway_packet::meta::Anno;
use causeway_packet::wire::ipv6::{HEADER_LEN, field};
use std::ops::Range;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckIP6Header",
    category: "ip6",
    summary: "checks IPv6 headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects an IPv6 header OFFSET bytes into each packet. A good packet is cut to the length its header gives, \
          its network header and the end of its fixed header are marked, and its IPv6 destination annotation becomes \
          the header's destination. A bad one goes to output 1 if that is connected and is dropped otherwise. A \
          source must not be a multicast address (RFC 4291 §2.7) or one of BADADDRS; a router, but not a host, has \
          the unspecified address `::` among these (§2.5.2).",
    args: Checker::ARGS,
    handlers: tally::HANDLERS,
    drops: Reason::DOCS,
    example: r"InfiniteSource(DATA \<60000000 0000 3b 40 20010db8000000000000000000000001
              20010db8000000000000000000000002>, LIMIT 5) -> CheckIP6Header(::) -> Discard;",
    see: &["CheckIPHeader", "GetIP6Address", "DecIP6HLIM", "LookupIP6Route"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "fewer bytes than a header";
        BadVersion = "bad-version", "the version is not 6";
        BadLength = "bad-length", "the payload reaches beyond the packet";
        BadSource = "bad-source", "the source is an address that no packet may come from";
    }
}

settings! {
    struct Checker {
        bad_sources: List<Ipv6Addr> = optional("BADADDRS", "IPv6 addresses", "bad sources"), or(List::default());
        offset: u32 = optional("OFFSET", "bytes", "where the header begins; default 0"), or(0);
    }
}

struct CheckIP6Header {
    checker: Checker,
    /// Whether a bad packet was told of.
    said: bool,
    tally: Tally<Reason>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let checker = Checker::configure(conf);
    conf.finish()?;
    Ok(Box::new(CheckIP6Header { checker, said: false, tally: Tally::new(conf) }))
}

/// The address in `range` of the header.
#[inline]
fn address(header: &[u8; HEADER_LEN], range: Range<usize>) -> [u8; 16] {
    header[range].first_chunk().copied().unwrap_or_default()
}

impl Checker {
    /// Checks one packet and marks it; the error is the reason.
    #[inline]
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        let offset = self.offset as usize;
        let data = packet.data().get(offset..).ok_or(Reason::Short)?;
        let h = data.first_chunk::<HEADER_LEN>().ok_or(Reason::Short)?;
        if h[0] >> 4 != 6 {
            return Err(Reason::BadVersion);
        }
        // The payload of a jumbogram has length 0 here, and is cut: it is longer than any frame (RFC 2675).
        let total_len = HEADER_LEN + u16::from_be_bytes([h[4], h[5]]) as usize;
        if total_len > data.len() {
            return Err(Reason::BadLength);
        }
        let (source, destination) = (address(h, field::SRC), address(h, field::DST));
        if source[0] == 0xff || self.bad_sources.0.contains(&source.into()) {
            return Err(Reason::BadSource);
        }
        packet.truncate(offset + total_len);
        packet.set_network_headers(offset, HEADER_LEN);
        packet.set_dst_ip6(destination);
        Ok(())
    }
}

impl Checker {
    /// [`Checker::check`] as a program, which goes on with good packets; bad ones are given up.
    fn lower(&self, b: &mut Builder) -> Option<()> {
        let start = self.offset;
        start.checked_add(HEADER_LEN as u32)?;
        let at = |offset: usize| At::data(start + offset as u32);
        b.require(Test::Has(at(0), HEADER_LEN as u32));
        let first = b.load(at(0), 1);
        let version = b.compute(Alu::Shr, first, 4);
        b.require(Test::Equal(version.into(), 6.into()));
        let (payload, len) = (b.load(at(4), 2), b.get(Field::Length));
        let end = b.compute(Alu::Add, payload, u64::from(start) + HEADER_LEN as u64);
        b.forbid(Test::Above(end.into(), len.into()));
        let source = [0, 8].map(|half| b.load(at(field::SRC.start + half), 8));
        let class = b.compute(Alu::Shr, source[0], 56);
        b.forbid(Test::Equal(class.into(), 0xff.into()));
        for bad in &self.bad_sources.0 {
            let bad = u128::from(*bad);
            let high = b.compute(Alu::Xor, source[0], (bad >> 64) as u64);
            let low = b.compute(Alu::Xor, source[1], bad as u64);
            let differs = b.compute(Alu::Or, high, low);
            b.forbid(Test::Equal(differs.into(), 0.into()));
        }
        let destination = [0, 8].map(|half| b.load(at(field::DST.start + half), 8));
        b.put(Field::Length, end);
        b.put(Field::Network, u64::from(start));
        b.put(Field::Transport, u64::from(start) + HEADER_LEN as u64);
        for (half, word) in [0, 8].into_iter().zip(destination) {
            b.put(Field::Anno(Anno::DST_IP6.offset + half, 8), word);
        }
        Some(())
    }
}

impl Element for CheckIP6Header {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let (checker, said) = (&self.checker, &mut self.said);
        self.tally.sift(batch, cx, |packet| {
            checker.check(packet).inspect_err(|_| {
                if !std::mem::replace(said, true) {
                    to_stderr("IP6 header check failed\n");
                }
            })
        });
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        self.checker.lower(&mut b)?;
        b.count(&self.tally.good, 1);
        b.leave(0);
        b.finish()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.tally.read(handler))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use causeway_engine::harness::{self, Harness};
    use causeway_engine::ir::Outcome;
    use proptest::prelude::*;

    /// A good packet from 2001:db8::1 to 2001:db8::2 with hop limit `hops` and `payload`.
    pub fn packet(hops: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, 59, hops];
        for last in 1..=2 {
            bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        bytes.extend(payload);
        bytes
    }

    fn verdict(config: &str, bytes: &[u8]) -> Result<Packet, &'static str> {
        harness::verdict(&SPEC, config, harness::packet(bytes))
    }

    #[test]
    fn a_good_packet_is_cut_and_marked() {
        let bytes = [&[0xee; 14][..], &packet(64, b"payload"), &[0; 9]].concat();
        let p = verdict("OFFSET 14", &bytes).unwrap();
        assert_eq!((p.len(), p.network_offset(), p.transport_offset()), (61, Some(14), Some(54)));
        assert_eq!(Ipv6Addr::from(p.dst_ip6()), "2001:db8::2".parse::<Ipv6Addr>().unwrap());
        assert!(verdict(":: ::1, 14", &bytes).is_ok());
    }

    #[test]
    fn each_fault_has_its_reason() {
        let good = packet(64, b"payload");
        let broken = |at: usize, value: u8| {
            let mut b = good.clone();
            b[at] = value;
            verdict("", &b).err()
        };
        assert_eq!(verdict("", &good[..39]).err(), Some("short"));
        assert_eq!(broken(0, 0x45), Some("bad-version"));
        assert_eq!(broken(5, 8), Some("bad-length"));
        assert_eq!(broken(8, 0xff), Some("bad-source"));
        assert_eq!(verdict(":: 2001:db8::1", &good).err(), Some("bad-source"));
        assert_eq!(verdict("2001:db8::2", &good).err(), None);
    }

    #[test]
    fn bad_packets_go_to_output_1_if_there_is_one() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.push_all(0, [Packet::from_bytes(b"no").unwrap(), Packet::from_bytes(&packet(1, b"")).unwrap()]);
        assert_eq!((h.take(0).len(), h.take(1).len(), h.drops()), (1, 1, vec![]));
        assert_eq!(h.read("drop_details").unwrap().lines().next(), Some("1\tshort"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(
            mut bytes in prop::collection::vec(any::<u8>(), 0..90), offset in 0usize..50, six in any::<bool>(),
        ) {
            if let Some(first) = bytes.get_mut(offset).filter(|_| six) {
                *first = 0x60;
            }
            if let Some(length) = bytes.get_mut(offset + 4).filter(|_| six) {
                *length = 0;
            }
            let mut lowered = harness::packet(&bytes);
            let mut program =
                Harness::new(&SPEC, &format!("OFFSET {offset}"), 1, 1).unwrap().lower().expect("a program");
            let outcome = program.run(&mut lowered, 0);
            let view = bytes.get(offset..).and_then(|b| causeway_packet::wire::Ipv6::new_checked(b).ok());
            let good = view.filter(|ip| !ip.src().is_multicast());
            let out = verdict(&format!("OFFSET {offset}"), &bytes);
            let left = if out.is_ok() { Outcome::Leave(0) } else { Outcome::GiveUp };
            prop_assert_eq!(outcome, left);
            if let Ok(packet) = &out {
                let look = |p: &Packet| (p.len(), p.network_offset(), p.transport_offset(), p.dst_ip6());
                prop_assert_eq!(look(&lowered), look(packet));
            }
            prop_assert_eq!(out.ok().map(|p| p.len()), good.map(|ip| offset + 40 + ip.payload().len()));
        }
    }
}
