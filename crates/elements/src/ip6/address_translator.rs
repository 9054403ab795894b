//! AddressTranslator.

mod mappings;

use causeway_engine::prelude::*;
use causeway_packet::checksum::{Sum, update_u16};
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::{Ipv6, protocol};
use mappings::{End, Mappings, Way};

pub(crate) static SPEC: Spec = Spec {
    name: "AddressTranslator",
    category: "ip6",
    summary: "translates IPv6 addresses and ports",
    ports: "2/2",
    processing: "h/h",
    flow: "#/#",
    doc: "Writes another source into the IPv6 packets that come on input 0, outward, and lets them out by output 0; writes \
          the inner host's destination into those of input 1, inward, and lets them out by output 1. Checksums of TCP, UDP \
          and ICMPv6 are adjusted. The IPv6 header must be marked or begin where the packet does.\n\n\
          The arguments, in Click's order: STATIC, the number of static mappings; if it is not 0, PORTS, whether they \
          have ports, and that many of `INNER OUTER` or `INNER PORT OUTER PORT`; then DYNAMIC, whether there are others; \
          and if there are, PORTS, whether these are of ports; DIRECTION, in which they are made, 0 for outward, 1 for \
          inward; and the addresses that are given away to one host each, or `ADDRESS LOW HIGH`, the ports of one address \
          that are given to a flow each.\n\n\
          A mapping that was made stays. Packets for which there is none, and of which there can be none, are dropped. The \
          identifier of an ICMPv6 echo counts as its port; fragments behind the first have none.",
    args: &[rest("ARGUMENT", "numbers, booleans and mappings", "the mappings, as said above")],
    handlers: &[reads("mappings", "mappings made from packets").measures(Unit::Entries)],
    drops: Reason::DOCS,
    example: "at :: AddressTranslator(1, 0, 2001:db8::2 2001:db8:9::2, 0); InfiniteSource(LIMIT 5) \
              -> UDPIP6Encap(2001:db8::2, 53, 2001:db8:1::1, 53) -> at -> Discard; Idle -> [1] at [1] -> Discard;",
    see: &["ProtocolTranslator64", "IPRewriter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoMapping = "no-mapping", "there is no mapping for it, and it may not make one";
        Full = "full", "all addresses or ports are given away";
        NoPacket = "no-packet", "not a whole IPv6 packet of TCP, UDP or ICMPv6";
    }
}

struct AddressTranslator(Mappings);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let texts = conf.rest();
    let mappings = mappings::configure(&texts, &conf.scope());
    let mappings = mappings.map_err(|why| {
        conf.error(why);
        Invalid
    });
    conf.finish()?;
    Ok(Box::new(AddressTranslator(mappings?)))
}

/// What a packet is translated by.
struct Subject {
    protocol: u8,
    /// Source and destination.
    ends: [End; 2],
    /// Where the ports and the checksum are, from the IPv6 header on.
    ports: Option<[usize; 2]>,
    checksum: Option<usize>,
}

fn subject(bytes: &[u8]) -> Option<Subject> {
    let ip = Ipv6::new_checked(bytes).ok()?;
    let (protocol, at) = match ip.upper_layer().ok()? {
        UpperLayer::At { protocol, offset, .. } => (protocol, Some(offset)),
        UpperLayer::LaterFragment { next_header } => (next_header, None),
        UpperLayer::Unsure { .. } => return None,
    };
    let (ports, checksum) = match (protocol, at) {
        (protocol::TCP, Some(at)) => (Some([at, at + 2]), Some(at + 16)),
        (protocol::UDP, Some(at)) => (Some([at, at + 2]), Some(at + 6)),
        (protocol::ICMPV6, Some(at)) => {
            let is_echo = matches!(bytes.get(at), Some(128 | 129));
            (is_echo.then_some([at + 4, at + 4]), Some(at + 2))
        }
        (protocol::TCP | protocol::UDP | protocol::ICMPV6, None) => (None, None),
        _ => return None,
    };
    let whole =
        |at: usize| bytes.get(at..at + 2).and_then(|b| b.first_chunk()).map(|&b| u16::from_be_bytes(b));
    if checksum.is_some_and(|at| whole(at).is_none()) {
        return None;
    }
    let port = |i: usize| ports.map_or(Some(0), |ports| whole(ports[i]));
    let ends = [(ip.src(), port(0)?), (ip.dst(), port(1)?)];
    Some(Subject { protocol, ends, ports, checksum })
}

impl AddressTranslator {
    fn translate(&mut self, packet: &mut Packet, way: Way) -> Result<(), Reason> {
        let start = packet.network_offset().unwrap_or(0);
        let bytes = packet.data_mut().get_mut(start..).ok_or(Reason::NoPacket)?;
        let subject = subject(bytes).ok_or(Reason::NoPacket)?;
        let (own, remote) = match way {
            Way::Outward => (0, 1),
            Way::Inward => (1, 0),
        };
        let (old, mut remote) = (subject.ends[own], subject.ends[remote]);
        // The identifier of an echo is that of its sender.
        remote.1 = if subject.protocol == protocol::ICMPV6 { 0 } else { remote.1 };
        let has_port = subject.ports.is_some();
        let new = self.0.find(way, old, remote, (subject.protocol, has_port))?;
        let sum =
            |(address, port): End| Sum::new().array(&address.octets()).word(if has_port { port } else { 0 });
        let field = 8 + 16 * own;
        bytes[field..field + 16].copy_from_slice(&new.0.octets());
        if let Some(ports) = subject.ports {
            bytes[ports[own]..ports[own] + 2].copy_from_slice(&new.1.to_be_bytes());
        }
        if let Some(at) = subject.checksum {
            let old_sum = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let new_sum = update_u16(old_sum, sum(old).fold(), sum(new).fold());
            let new_sum = if new_sum == 0 && subject.protocol == protocol::UDP { 0xffff } else { new_sum };
            bytes[at..at + 2].copy_from_slice(&new_sum.to_be_bytes());
        }
        let destination = bytes[24..].first_chunk::<16>().copied().unwrap_or_default();
        packet.set_dst_ip6(destination);
        Ok(())
    }
}

impl Element for AddressTranslator {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let way = if port == 0 { Way::Outward } else { Way::Inward };
        for mut packet in batch.drain() {
            match self.translate(&mut packet, way) {
                Ok(()) => cx.emit(port, packet),
                Err(reason) => cx.drop(reason, packet),
            }
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.0.made().to_string())
    }
}

#[cfg(test)]
mod tests;
