//! ProtocolTranslator46 and ProtocolTranslator64.

use super::translate::{GROWTH, Mapping, Untranslatable, v4_to_v6, v6_to_v4};
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::{Prefix6, Value};
use causeway_packet::wire::ipv4;
use causeway_packet::wire::ipv6;

pub(crate) static SPEC_46: Spec = Spec {
    name: "ProtocolTranslator46",
    category: "ip6",
    summary: "translates IPv4 packets to IPv6",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Makes an IPv6 packet of each IPv4 packet (RFC 7915 §4), whose header must begin where the packet does. Addresses \
          become those of PREFIX with the IPv4 address behind it; TTL and TOS stay. TCP and UDP checksums are adjusted, a \
          UDP packet without one gets one, and ICMP becomes ICMPv6, the packets that errors quote as well. A fragment gets \
          a fragment header. Options are left out. What has no translation goes to output 1 if that is connected, and is \
          dropped otherwise. Packets are not cut: let an IP6Fragmenter follow. Network header and IPv6 destination \
          annotation are set.",
    args: Translator::ARGS,
    drops: Reason46::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> ProtocolTranslator46(PREFIX 64:ff9b::/96) -> IP6Print -> Discard;",
    see: &["ProtocolTranslator64", "IP6Encap"],
    build: build_46,
    ..Spec::DEFAULT
};

pub(crate) static SPEC_64: Spec = Spec {
    name: "ProtocolTranslator64",
    category: "ip6",
    summary: "translates IPv6 packets to IPv4",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Makes an IPv4 packet of each IPv6 packet (RFC 7915 §5), whose header must begin where the packet does, and whose \
          addresses must be of PREFIX, with the IPv4 address behind it. Hop limit and traffic class stay. TCP and UDP \
          checksums are adjusted, and ICMPv6 becomes ICMP, the packets that errors quote as well. A packet of at most 1260 \
          bytes may be fragmented on its way, a longer one says \"don't fragment\". Hop-by-hop and destination options are \
          left out; a fragment header becomes the fields of IPv4. What has no translation goes to output 1 if that is \
          connected, and is dropped otherwise. Network header and destination annotation are set.",
    args: Translator::ARGS,
    drops: Reason64::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(64:ff9b::1.0.0.1, 53, 64:ff9b::1.0.0.2, 53) \
              -> ProtocolTranslator64(PREFIX 64:ff9b::/96) -> CheckIPHeader -> Discard;",
    see: &["ProtocolTranslator46", "CheckIP6Header"],
    build: build_64,
    ..Spec::DEFAULT
};

macro_rules! reasons {
    ($($name:ident for $spec:ident;)*) => {$(
        drop_reasons! {
            enum $name for $spec {
                NoPacket = "no-packet", "not a whole packet of the version that is translated";
                Address = "address", "an address outside of PREFIX";
                Header = "header", "a source route, an authentication header, or one of a kind that has no counterpart";
                Icmp = "icmp", "an ICMP message that has no counterpart";
                Fragment = "fragment", "a fragment of ICMP, or of UDP without checksum";
                NoRoom = "no-room", "there was no frame, or not enough room in it";
            }
        }

        impl From<Untranslatable> for $name {
            fn from(why: Untranslatable) -> Self {
                match why {
                    Untranslatable::NoPacket => $name::NoPacket,
                    Untranslatable::Address => $name::Address,
                    Untranslatable::Header => $name::Header,
                    Untranslatable::Icmp => $name::Icmp,
                    Untranslatable::Fragment => $name::Fragment,
                    Untranslatable::NoRoom => $name::NoRoom,
                }
            }
        }
    )*};
}

reasons! {
    Reason46 for SPEC_46;
    Reason64 for SPEC_64;
}

settings! {
    struct Translator {
        prefix: Prefix96 = keyword(
            "PREFIX",
            "IPv6 prefix of 96 bits",
            "what stands in front of IPv4 addresses, such as 64:ff9b::/96 (RFC 6052 §2.1); default ::ffff:0:0/96",
        ), or(Prefix96::MAPPED);
    }
}

/// A prefix with an IPv4 address behind it.
struct Prefix96(Mapping);

impl Prefix96 {
    const MAPPED: Prefix96 = Prefix96(Mapping([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]));
}

impl Value for Prefix96 {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let prefix = Prefix6::parse(text, scope)?;
        let front = prefix.address.octets().first_chunk().copied();
        match front.filter(|_| prefix.len == 96) {
            Some(front) => Ok(Prefix96(Mapping(front))),
            None => Err(Error::new("must be of 96 bits")),
        }
    }

    fn placeholder() -> Self {
        Prefix96::MAPPED
    }
}

struct Translator46(Translator);

struct Translator64 {
    translator: Translator,
    /// Identification of the next packet.
    id: u16,
}

fn build_46(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let translator = Translator::configure(conf);
    conf.finish()?;
    Ok(Box::new(Translator46(translator)))
}

fn build_64(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let translator = Translator::configure(conf);
    conf.finish()?;
    Ok(Box::new(Translator64 { translator, id: 0 }))
}

/// A packet with what `write` makes of the bytes of another, and its annotations.
fn translated(
    packet: &Packet,
    write: impl FnOnce(&[u8], &mut [u8]) -> Result<usize, Untranslatable>,
) -> Result<Packet, Untranslatable> {
    let mut out = Packet::new().ok_or(Untranslatable::NoRoom)?;
    let room = (packet.len() + GROWTH).min(out.tailroom());
    let len = write(packet.data(), out.put(room).map_err(|_| Untranslatable::NoRoom)?)?;
    out.truncate(len);
    out.copy_annos(packet);
    Ok(out)
}

impl Element for Translator46 {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let map = self.0.prefix.0;
        match translated(packet, |from, to| v4_to_v6(from, map, to)) {
            Ok(out) => *packet = out,
            Err(why) => return Verdict::divert(1, Reason46::from(why)),
        }
        packet.set_network_headers(0, ipv6::HEADER_LEN);
        if let Some(&dst) = packet.data().get(24..).and_then(|d| d.first_chunk::<16>()) {
            packet.set_dst_ip6(dst);
        }
        Verdict::Pass
    }
}

impl Element for Translator64 {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let (map, id) = (self.translator.prefix.0, self.id);
        match translated(packet, |from, to| v6_to_v4(from, map, id, to)) {
            Ok(out) => *packet = out,
            Err(why) => return Verdict::divert(1, Reason64::from(why)),
        }
        self.id = id.wrapping_add(1);
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        if let Some(&dst) = packet.data().get(16..).and_then(|d| d.first_chunk::<4>()) {
            packet.set_dst_ip(dst);
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests;
