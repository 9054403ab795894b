//! DropBroadcasts.

use causeway_engine::ir::{Field, Test};
use causeway_engine::prelude::*;
use causeway_packet::PacketType;

pub(crate) static SPEC: Spec = Spec {
    name: "DropBroadcasts",
    category: "ethernet",
    summary: "drops packets that came as link-level broadcasts or multicasts",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "A router must not forward what came as a link-level broadcast (RFC 1812 §5.3.4). Packets whose type \
          annotation, set by the receiving device, is broadcast or multicast go to output 1 if that is connected, \
          and are dropped otherwise.",
    handlers: DropBroadcasts::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> DropBroadcasts -> Discard;",
    see: &["ICMPError", "PaintTee"],
    build: configured::<DropBroadcasts>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Broadcast = "broadcast", "the packet came as a link-level broadcast or multicast";
    }
}

settings! {
    struct DropBroadcasts {}
    counts {
        broadcasts: u64 = reads("drops", "packets that came as broadcasts, whether they were dropped or diverted")
            .counts(Unit::Packets);
    }
}

/// Whether a packet of this type came to more than one host.
#[inline]
pub(crate) fn to_many(packet_type: PacketType) -> bool {
    matches!(packet_type, PacketType::Broadcast | PacketType::Multicast)
}

impl Element for DropBroadcasts {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let broadcast = to_many(packet.packet_type());
        self.broadcasts += u64::from(broadcast);
        (!broadcast).or_divert(1, Reason::Broadcast)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let came = b.get(Field::PacketType);
        for many in [PacketType::Broadcast, PacketType::Multicast] {
            b.forbid(Test::Equal(came.into(), (many as u64).into()));
        }
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
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn broadcasts_and_multicasts_do_not_pass() {
        use PacketType::{Broadcast, Host, Multicast, OtherHost};
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "", 1, outputs).unwrap();
            for (n, packet_type) in [Host, Broadcast, OtherHost, Multicast].into_iter().enumerate() {
                let mut p = packet(&[n as u8]);
                p.set_packet_type(packet_type);
                h.push(0, p);
            }
            assert_eq!(h.take(0).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [0, 2]);
            assert_eq!((h.take(1).len(), h.drops().len()), (2 * (outputs - 1), 2 - outputs));
            assert_eq!(h.read("drops").unwrap(), "2");
        }
    }
}
