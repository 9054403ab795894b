//! HostEtherFilter.

use causeway_engine::prelude::*;
use causeway_engine::value::Ether;
use causeway_packet::PacketType;

pub(crate) static SPEC: Spec = Spec {
    name: "HostEtherFilter",
    category: "ethernet",
    summary: "drops Ethernet packets to other hosts",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Acts as the Ethernet card with address ETHER would: notes whether packets are for this host, for all, for a group \
          or for another host, and lets those for other hosts not pass, nor, with DROP_OWN, those from its own address. \
          These go to output 1 if it is connected, and are dropped otherwise, as are packets without a whole header.",
    args: HostEtherFilter::ARGS,
    handlers: handlers!(HostEtherFilter::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> HostEtherFilter(2:0:0:0:0:1) -> Discard;",
    see: &["DropBroadcasts", "EtherMirror"],
    build: configured::<HostEtherFilter>,
    ..Spec::DEFAULT
};

settings! {
    struct HostEtherFilter {
        ether: Ether = required("ETHER", "Ethernet address", "of this host"), live("ether", "address of this host");
        drop_own: bool = optional("DROP_OWN", "boolean", "whether packets from ETHER do not pass; default false"), or(false);
        drop_other: bool = optional("DROP_OTHER", "boolean", "whether packets for other hosts do not pass; default true"), or(true);
        offset: u32 = keyword("OFFSET", "bytes", "where the Ethernet header begins; default 0"), or(0);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it has no whole Ethernet header, and output 1 is not connected";
        Own = "own", "it was sent by this host, and output 1 is not connected";
        Other = "other", "it was for another host, and output 1 is not connected";
    }
}

impl Element for HostEtherFilter {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let addresses = packet.data().get(self.offset as usize..).and_then(|data| data.first_chunk::<12>());
        let Some(addresses) = addresses.copied() else { return Verdict::divert(1, Reason::Short) };
        let (dst, src) = addresses.split_at(6);
        if self.drop_own && src == self.ether.0 {
            return Verdict::divert(1, Reason::Own);
        }
        let kind = match dst {
            _ if dst == self.ether.0 => PacketType::Host,
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => PacketType::Broadcast,
            _ if dst[0] & 1 != 0 => PacketType::Multicast,
            _ => PacketType::OtherHost,
        };
        packet.set_packet_type(kind);
        (kind != PacketType::OtherHost || !self.drop_other).or_divert(1, Reason::Other)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    fn frame(dst: [u8; 6], src: [u8; 6]) -> Packet {
        packet(&[&[9][..], &dst, &src, &[8, 0]].concat())
    }

    #[test]
    fn packets_are_for_this_host_or_not() {
        const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
        const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
        for (more, dst, src, expected) in [
            ("", OWN, PEER, Ok(PacketType::Host)),
            ("", [255; 6], PEER, Ok(PacketType::Broadcast)),
            ("", [1, 0, 0, 0, 0, 0], PEER, Ok(PacketType::Multicast)),
            ("", PEER, OWN, Err("other")),
            (", false, false", PEER, OWN, Ok(PacketType::OtherHost)),
            (", true", OWN, OWN, Err("own")),
            (", OFFSET 2", OWN, PEER, Ok(PacketType::Host)),
        ] {
            let offset = if more.contains("OFFSET") { "" } else { ", OFFSET 1" };
            let config = format!("2:0:0:0:0:1{more}{offset}");
            let mut p = frame(dst, src);
            if offset.is_empty() {
                p.push(1).unwrap();
            }
            assert_eq!(verdict(&SPEC, &config, p).map(|p| p.packet_type()), expected, "{config}");
        }
        assert_eq!(verdict(&SPEC, "2:0:0:0:0:1", packet(&[0; 11])).err(), Some("short"));
        let mut h = Harness::new(&SPEC, "2:0:0:0:0:1, OFFSET 1", 1, 2).unwrap();
        h.push(0, frame(PEER, OWN));
        h.write("ether", "2:0:0:0:0:2").unwrap();
        h.push(0, frame(PEER, OWN));
        assert_eq!(
            (h.take(0).len(), h.take(1).len(), h.read("ether").unwrap()),
            (1, 1, "02-00-00-00-00-02".into())
        );
    }
}
