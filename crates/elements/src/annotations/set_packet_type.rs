//! SetPacketType.

use causeway_engine::prelude::*;
use causeway_packet::PacketType;

pub(crate) static SPEC: Spec = Spec {
    name: "SetPacketType",
    category: "annotations",
    summary: "sets packets' type annotation",
    doc: "Sets how packets are said to have been addressed at the link layer: what devices set, and DropBroadcasts and \
          HostEtherFilter go by.",
    args: &[required("TYPE", "HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING or LOOPBACK", "the type")],
    example: "InfiniteSource(LIMIT 5) -> SetPacketType(BROADCAST) -> DropBroadcasts -> Discard;",
    see: &["DropBroadcasts", "HostEtherFilter"],
    build,
    ..Spec::DEFAULT
};

struct SetPacketType(PacketType);

fn by_name(name: &str) -> Option<PacketType> {
    Some(match name.to_ascii_uppercase().as_str() {
        "HOST" => PacketType::Host,
        "BROADCAST" => PacketType::Broadcast,
        "MULTICAST" => PacketType::Multicast,
        "OTHERHOST" => PacketType::OtherHost,
        "OUTGOING" => PacketType::Outgoing,
        "LOOPBACK" => PacketType::Loopback,
        _ => return None,
    })
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("TYPE");
    let packet_type = by_name(&name);
    if packet_type.is_none() && conf.errors().is_empty() {
        conf.error(format!("unrecognized packet type '{name}'"));
    }
    conf.finish()?;
    Ok(Box::new(SetPacketType(packet_type.unwrap_or_default())))
}

impl Element for SetPacketType {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_packet_type(self.0);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn types_have_names() {
        for (name, packet_type) in [
            ("HOST", PacketType::Host),
            ("broadcast", PacketType::Broadcast),
            ("MULTICAST", PacketType::Multicast),
            ("OTHERHOST", PacketType::OtherHost),
            ("OUTGOING", PacketType::Outgoing),
            ("LOOPBACK", PacketType::Loopback),
        ] {
            assert_eq!(verdict(&SPEC, name, packet(b"x")).unwrap().packet_type(), packet_type);
        }
        assert_eq!(Harness::new(&SPEC, "ANY", 1, 1).err().unwrap(), ["unrecognized packet type 'ANY'"]);
    }
}
