//! DecIPTTL.

use causeway_engine::ir::{Alu, At, Test};
use causeway_engine::prelude::*;
use causeway_packet::checksum;
use causeway_packet::wire::ipv4::{HEADER_LEN, field};

pub(crate) static SPEC: Spec = Spec {
    name: "DecIPTTL",
    category: "ip",
    summary: "decrements the IPv4 time to live and drops packets that have lived too long",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Decrements the time to live of each packet and updates the checksum by RFC 1624. A packet whose time to \
          live is 1 or 0 goes to output 1 unchanged, where an ICMPError may answer it, or is dropped if that is not \
          connected. The network header must be marked.",
    args: DecIPTTL::ARGS,
    handlers: DecIPTTL::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> CheckIPHeader -> DecIPTTL -> Discard;",
    see: &["DecIP6HLIM", "ICMPError"],
    build: configured::<DecIPTTL>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Expired = "expired", "the time to live was 1 or 0 (RFC 1812 §5.3.1)";
        NoHeader = "no-header", "no IPv4 header is marked";
    }
}

settings! {
    struct DecIPTTL {
        active: bool = keyword("ACTIVE", "boolean", "whether anything is done; default true"), or(true),
            live("active", "whether anything is done");
        multicast: bool = keyword("MULTICAST", "boolean", "whether packets to multicast addresses count too; default true"),
            or(true);
    }
    counts {
        expired: u64 = reads("drops", "packets whose time to live was over").counts(Unit::Packets);
    }
}

/// Decrements the time to live in a header if it is above 1; says whether it was.
#[inline]
pub(crate) fn decrement(header: &mut [u8; 20]) -> bool {
    if header[8] <= 1 {
        return false;
    }
    header[8] -= 1;
    let old = u16::from_be_bytes([header[10], header[11]]);
    [header[10], header[11]] = checksum::decrement_ttl(old).to_be_bytes();
    true
}

/// [`decrement`] as a program, for packets that have a header; those that have lived too long are given up.
pub(crate) fn lower_decrement(b: &mut Builder) {
    let (ttl_at, sum_at) = (At::network(8), At::network(10));
    let ttl = b.load(ttl_at, 1);
    b.require(Test::Above(ttl.into(), 1.into()));
    let sum = b.load(sum_at, 2);
    let less = b.compute(Alu::Sub, ttl, 1);
    b.store(ttl_at, 1, less);
    // ~m + m' is 0xfeff whatever the word was (RFC 1624).
    let summed = b.compute(Alu::Xor, sum, 0xffff);
    let changed = b.compute(Alu::OnesAdd, summed, 0xfeff);
    let sum = b.compute(Alu::Xor, changed, 0xffff);
    b.store(sum_at, 2, sum);
}

impl Element for DecIPTTL {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if !self.active {
            return Verdict::Pass;
        }
        let Some(header) = packet.network_header_mut().and_then(|h| h.first_chunk_mut::<20>()) else {
            return Verdict::drop(Reason::NoHeader);
        };
        let is_multicast = header[16] >> 4 == 0xe;
        if (is_multicast && !self.multicast) || decrement(header) {
            return Verdict::Pass;
        }
        self.expired += 1;
        Verdict::divert(1, Reason::Expired)
    }

    fn lower(&self) -> Option<Program> {
        if !self.active {
            return Builder::pass();
        }
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        if !self.multicast {
            let first = b.load(At::network(field::DST.start as u32), 1);
            let class = b.compute(Alu::Shr, first, 4);
            let (multicast, unicast) = (b.block(), b.block());
            b.branch(Test::Equal(class.into(), 0xe.into()), multicast, unicast);
            b.at(multicast);
            b.leave(0);
            b.at(unicast);
        }
        lower_decrement(&mut b);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::ipv4::Ipv4;
    use proptest::prelude::*;

    fn packet(ttl: u8, destination: u8) -> Packet {
        let mut bytes = [0x45, 0, 0, 20, 7, 7, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, destination, 0, 0, 2];
        Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        let mut p = Packet::from_bytes(&bytes).unwrap();
        p.set_network_header(0);
        p
    }

    #[test]
    fn expired_packets_are_diverted_unchanged_or_dropped() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.push_all(0, [packet(1, 10), packet(2, 10), packet(0, 10)]);
        assert_eq!(h.take(0).iter().map(|p| p.data()[8]).collect::<Vec<_>>(), [1]);
        assert_eq!(h.take(1).iter().map(|p| p.data()[8]).collect::<Vec<_>>(), [1, 0]);
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push_all(0, [packet(1, 10), Packet::from_bytes(b"no header").unwrap()]);
        assert_eq!(
            (h.drops(), h.read("drops").unwrap()),
            (vec![("expired", 1), ("no-header", 1)], "1".into())
        );
        h.assert_balanced();
    }

    #[test]
    fn multicast_and_inactivity() {
        let mut h = Harness::new(&SPEC, "MULTICAST false", 1, 1).unwrap();
        h.push_all(0, [packet(1, 224), packet(9, 10)]);
        assert_eq!(h.take(0).iter().map(|p| p.data()[8]).collect::<Vec<_>>(), [1, 8]);
        h.write("active", "false").unwrap();
        h.push(0, packet(1, 10));
        assert_eq!(h.take(0).len(), 1);
    }

    proptest! {
        #[test]
        fn the_checksum_stays_right(ttl in 2u8.., id in any::<u16>()) {
            let mut p = packet(ttl, 10);
            p.data_mut()[4..6].copy_from_slice(&id.to_be_bytes());
            Ipv4::new_checked(p.data_mut()).unwrap().fill_checksum();
            let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
            h.push(0, p);
            prop_assert!(Ipv4::new_checked(h.take(0)[0].data()).unwrap().checksum_ok());
        }
    }
}
