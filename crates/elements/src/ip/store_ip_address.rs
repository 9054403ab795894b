//! StoreIPAddress.

use crate::nat::Headers;
use crate::nat::flow_id::FlowId;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "StoreIPAddress",
    category: "ip",
    summary: "writes an IP address into packets",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Writes ADDR, or the destination annotation if only OFFSET is given, into packets at OFFSET. With `src` or `dst` for \
          OFFSET the address goes to that field of the marked IPv4 header, and the checksums of the IP header and of TCP \
          and UDP behind it follow (RFC 1624); else no checksum is touched. At a number for OFFSET an annotation of 0.0.0.0 \
          changes nothing. Packets that end before, or that have no IP header where one is needed, go to output 1 if it is \
          connected, and are dropped otherwise.",
    args: StoreIPAddress::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> StoreIPAddress(1.0.0.9, src) -> Discard;",
    see: &[
        "SetIPAddress",
        "GetIPAddress",
        "SetIPChecksum",
        "SetTCPChecksum",
        "SetUDPChecksum",
        "IPAddrRewriter",
    ],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct StoreIPAddress {
        address: Option<Ipv4Addr> = optional("ADDR", "IP address", "the address; default the destination annotation"), or(None);
        offset: Place = required("OFFSET", "bytes, `src` or `dst`", "where it is written");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it ends before, or has no IP header, and output 1 is not connected";
    }
}

/// Where in the packet.
#[derive(Clone, Copy)]
enum Place {
    At(u32),
    Source,
    Destination,
}

impl Value for Place {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "src" => Ok(Place::Source),
            "dst" => Ok(Place::Destination),
            _ => u32::parse(text, scope)
                .ok()
                .filter(|&n| i32::try_from(n).is_ok())
                .map(Place::At)
                .ok_or_else(|| Error::new("type mismatch: OFFSET requires integer")),
        }
    }

    fn placeholder() -> Self {
        Place::At(0)
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    // The first of one argument is the offset.
    let address = (conf.unread() > 1).then(|| conf.required("ADDR"));
    let text: Option<String> = Some(conf.required::<String>("OFFSET")).filter(|_| conf.errors().is_empty());
    let offset = text.and_then(|text| conf.parse("", &text)).unwrap_or_else(Place::placeholder);
    conf.finish()?;
    Ok(Box::new(StoreIPAddress { address, offset }))
}

impl StoreIPAddress {
    fn store(&self, packet: &mut Packet) -> Option<()> {
        let address = self.address.unwrap_or_else(|| packet.dst_ip().into());
        let (source, destination) = match self.offset {
            Place::At(_) if self.address.is_none() && address.is_unspecified() => return Some(()),
            Place::At(at) => {
                *packet.data_mut().get_mut(at as usize..)?.first_chunk_mut()? = address.octets();
                return Some(());
            }
            Place::Source => (Some(address.to_bits()), None),
            Place::Destination => (None, Some(address.to_bits())),
        };
        let headers = Headers::of(packet)?;
        let old = FlowId::new(headers.source, 0, headers.destination, 0);
        let new = FlowId::new(source.unwrap_or(old.source), 0, destination.unwrap_or(old.destination), 0);
        headers.set_addresses(packet, new.source, new.destination);
        if headers.is_first {
            headers.follow(packet, old, new);
        }
        Some(())
    }
}

impl Element for StoreIPAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.store(packet).or_divert(1, Reason::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::{Harness, packet, verdict};
    use causeway_packet::wire::{Ipv4, Udp, protocol};

    #[test]
    fn the_address_is_written_where_there_is_room() {
        for (config, anno, bytes) in [
            ("1.2.3.4, 1", [9; 4], &b"a\x01\x02\x03\x04f"[..]),
            ("0.0.0.0, 2", [9; 4], b"ab\0\0\0\0"),
            ("2", [7; 4], b"ab\x07\x07\x07\x07"),
            ("2", [0; 4], b"abcdef"),
        ] {
            let mut p = packet(b"abcdef");
            p.set_dst_ip(anno);
            assert_eq!(verdict(&SPEC, config, p).unwrap().data(), bytes, "{config}");
        }
        let mut h = Harness::new(&SPEC, "1.2.3.4, 3", 1, 2).unwrap();
        h.push(0, packet(b"abcdef"));
        assert_eq!(h.take(1).len(), 1);
        assert_eq!(verdict(&SPEC, "1.2.3.4, src", packet(&[0x45; 20])).err(), Some("short"), "unmarked");
    }

    #[test]
    fn fields_of_the_header_are_written_with_their_checksums() {
        for (config, src, dst) in [
            ("1.2.3.4, src", [1, 2, 3, 4], [10, 0, 0, 2]),
            ("ADDR 1.2.3.4, OFFSET DST", [10, 0, 0, 1], [1, 2, 3, 4]),
            ("dst", [10, 0, 0, 1], [8, 8, 8, 8]),
        ] {
            for fragment in [0, 3] {
                let mut bytes = corpus::datagram(&[], &[0, 7, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4], 9, fragment);
                bytes[9] = protocol::UDP;
                bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
                let mut ip = Ipv4::new_checked(&mut bytes[..]).unwrap();
                ip.fill_checksum();
                let pseudo_header = ip.pseudo_header(12);
                Udp::new_checked(ip.payload_mut()).unwrap().fill_checksum(pseudo_header);
                let before = bytes[26..28].to_vec();
                let mut p = corpus::marked(&bytes, 0);
                p.set_dst_ip([8; 4]);
                let out = verdict(&SPEC, config, p).unwrap();
                let ip = Ipv4::new_checked(out.data()).unwrap();
                assert_eq!(
                    (ip.src(), ip.dst(), ip.checksum_ok()),
                    (src.into(), dst.into(), true),
                    "{config}"
                );
                let udp = Udp::new_checked(ip.payload()).unwrap();
                match fragment {
                    0 => assert!(udp.checksum_ok(ip.pseudo_header(12)), "{config}"),
                    _ => assert_eq!(out.data()[26..28], before, "it is no UDP header"),
                }
            }
        }
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().join("|");
        assert_eq!(error(""), "OFFSET: required argument missing");
        assert_eq!(error("up"), "type mismatch: OFFSET requires integer");
        assert_eq!(error("1.2.3.4, -1"), "type mismatch: OFFSET requires integer");
        assert_eq!(error("1.2.3, 4"), "ADDR: parse error");
    }
}
