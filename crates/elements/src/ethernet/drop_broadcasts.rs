//! DropBroadcasts.

use crate::printing::contents::to_stderr;
use causeway_engine::Defaults;
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
          and are dropped otherwise; where it is run as Click, standard error is told of the first.",
    handlers: DropBroadcasts::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> DropBroadcasts -> Discard;",
    see: &["ICMPError", "PaintTee"],
    build,
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

struct Dropper {
    own: DropBroadcasts,
    /// Whether standard error is to be told of the first.
    tells: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = DropBroadcasts::configure(conf);
    conf.finish()?;
    let tells = conf.env.defaults == Defaults::Click;
    Ok(Box::new(Dropper { own, tells }))
}

/// Whether a packet of this type came to more than one host.
#[inline]
pub(crate) fn to_many(packet_type: PacketType) -> bool {
    matches!(packet_type, PacketType::Broadcast | PacketType::Multicast)
}

impl Element for Dropper {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let broadcast = to_many(packet.packet_type());
        self.own.broadcasts += u64::from(broadcast);
        if broadcast && std::mem::take(&mut self.tells) {
            to_stderr("DropBroadcasts: dropped a packet\n");
        }
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
        Some(&mut self.own)
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
