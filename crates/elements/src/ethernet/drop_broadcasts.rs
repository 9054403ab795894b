//! DropBroadcasts.

use causeway_engine::ir::{Builder, Field, Program, Test};
use causeway_engine::measure::Unit;
use causeway_engine::spec::{Lowers, drops, reads};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::{Batch, PacketType};

pub(crate) static SPEC: Spec = Spec {
    name: "DropBroadcasts",
    category: "ethernet",
    summary: "drops packets that came as link-level broadcasts or multicasts",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "A router must not forward what came as a link-level broadcast (RFC 1812 §5.3.4). Packets whose type \
          annotation, set by the receiving device, is broadcast or multicast go to output 1 if that is connected, \
          and are dropped otherwise.",
    handlers: &[reads("drops", "packets that came as broadcasts, whether they were dropped or diverted")
        .counts(Unit::Packets)],
    drops: &[drops("broadcast", "the packet came as a link-level broadcast or multicast")],
    example: "InfiniteSource(LIMIT 5) -> DropBroadcasts -> Discard;",
    see: &["ICMPError", "PaintTee"],
    lowers: Lowers::Straight,
    build,
    ..Spec::DEFAULT
};

const BROADCAST: usize = 0;

struct DropBroadcasts {
    broadcasts: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(DropBroadcasts { broadcasts: 0 }))
}

/// Whether a packet of this type came to more than one host.
#[inline]
pub(crate) fn to_many(packet_type: PacketType) -> bool {
    matches!(packet_type, PacketType::Broadcast | PacketType::Multicast)
}

impl Element for DropBroadcasts {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !batch.iter().any(|p| to_many(p.packet_type())) {
            return;
        }
        batch.filter_map(|packet| {
            if to_many(packet.packet_type()) {
                self.broadcasts += 1;
                cx.divert(1, BROADCAST, packet);
                return None;
            }
            Some(packet)
        });
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

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.broadcasts.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn broadcasts_and_multicasts_do_not_pass() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "", 1, outputs).unwrap();
            let types =
                [PacketType::Host, PacketType::Broadcast, PacketType::OtherHost, PacketType::Multicast];
            h.push_all(
                0,
                types.map(|t| {
                    let mut p = Packet::from_bytes(&[t as u8]).unwrap();
                    p.set_packet_type(t);
                    p
                }),
            );
            let passed: Vec<u8> = h.take(0).iter().map(|p| p.data()[0]).collect();
            assert_eq!(passed, [PacketType::Host as u8, PacketType::OtherHost as u8]);
            assert_eq!(h.take(1).len(), if outputs == 2 { 2 } else { 0 });
            assert_eq!((h.read("drops").unwrap(), h.drops().len()), ("2".to_owned(), 2 - outputs));
            h.assert_balanced();
        }
    }
}
