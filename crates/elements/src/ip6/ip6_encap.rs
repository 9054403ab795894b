//! IP6Encap.

use super::written::Written;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::addresses;
use causeway_packet::wire::Ipv6Header;
use causeway_packet::wire::ipv6::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "IP6Encap",
    category: "ip6",
    summary: "puts an IPv6 header in front of packets",
    doc: "Prepends an IPv6 header with next header PROTO from SRC to DST: with `ipv6` or `ipip` for PROTO a tunnel \
          (RFC 2473). Marks the header and sets the IPv6 destination annotation to DST. With `DST_ANNO` for DST the \
          annotation says where the packet goes.",
    args: IP6Encap::ARGS,
    handlers: handlers!(IP6Encap::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> IP6Encap(ipip, 2001:db8::1, 2001:db8::2, HLIM 20) -> CheckIP6Header -> Discard;",
    see: &["UDPIP6Encap", "IPEncap"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the header";
        TooLong = "too-long", "the packet is longer than 65535 bytes";
    }
}

settings! {
    struct IP6Encap {
        protocol: Protocol = required("PROTO", "IP protocol", "what the packets are, by name or number");
        src: Written = required("SRC", "IPv6 address", "the source"), live("src", "the source address");
        dst: Destination6 = required("DST", "IPv6 address or DST_ANNO", "the destination"),
            live("dst", "the destination address, or DST_ANNO");
        hop_limit: u8 = keyword("HLIM", "byte", "hop limit; default 250"), or(250);
        class: u8 = keyword("CLASS", "byte", "traffic class; default 0"), or(0);
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let encap = IP6Encap::configure(conf);
    if encap.protocol.0.is_none() {
        conf.error("bad IP protocol");
    }
    conf.finish()?;
    Ok(Box::new(encap))
}

/// A protocol, by name or number; `None` for a number that none has.
struct Protocol(Option<u8>);

impl Value for Protocol {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        match addresses::protocol(text) {
            Err(_) if text.is_empty() || i64::parse(text, scope).is_ok() => Ok(Protocol(None)),
            known => known.map(|number| Protocol(Some(number))).map_err(Error::caused_by),
        }
    }

    fn placeholder() -> Self {
        Protocol(Some(0))
    }
}

/// The destination, or `None` for that of the annotation.
#[derive(Clone, Copy)]
pub(crate) struct Destination6(pub Option<Ipv6Addr>);

impl Value for Destination6 {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if text == "DST_ANNO" {
            return Ok(Destination6(None));
        }
        Ipv6Addr::parse(text, scope).map(|a| Destination6(Some(a)))
    }

    fn placeholder() -> Self {
        Destination6(None)
    }
}

impl std::fmt::Display for Destination6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => Written(address).fmt(f),
            None => f.write_str("DST_ANNO"),
        }
    }
}

impl IP6Encap {
    #[inline]
    fn encapsulate(&self, packet: &mut Packet) -> Result<(), Reason> {
        let dst = self.dst.0.unwrap_or_else(|| packet.dst_ip6().into());
        let payload_len = u16::try_from(packet.len()).map_err(|_| Reason::TooLong)?;
        let data = packet.push(HEADER_LEN).map_err(|_| Reason::NoHeadroom)?;
        let to = data.first_chunk_mut::<HEADER_LEN>().ok_or(Reason::NoHeadroom)?;
        Ipv6Header {
            traffic_class: self.class,
            flow_label: 0,
            payload_len,
            next_header: self.protocol.0.unwrap_or(0),
            hop_limit: self.hop_limit,
            src: self.src.0,
            dst,
        }
        .emit(to);
        packet.set_dst_ip6(dst.octets());
        packet.set_network_headers(0, HEADER_LEN);
        Ok(())
    }
}

impl Element for IP6Encap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encapsulate(packet).into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::Ipv6;

    fn out(h: &mut Harness, anno: [u8; 16]) -> Packet {
        let mut p = packet(b"abc");
        p.set_dst_ip6(anno);
        h.push(0, p);
        h.take(0).pop().unwrap()
    }

    #[test]
    fn the_header_is_whole() {
        let mut h = Harness::new(&SPEC, "17, 2001:db8::1, 2001:db8::2, HLIM 20, CLASS 0xb8", 1, 1).unwrap();
        let p = out(&mut h, [9; 16]);
        let ip = Ipv6::new_checked(p.data()).unwrap();
        assert_eq!(
            (ip.src().to_string(), ip.dst().to_string()),
            ("2001:db8::1".into(), "2001:db8::2".into())
        );
        assert_eq!((ip.next_header(), ip.hop_limit(), ip.traffic_class()), (17, 20, 0xb8));
        assert_eq!((ip.payload(), p.dst_ip6()), (&b"abc"[..], ip.dst().octets()));
        assert_eq!((p.network_offset(), p.transport_offset()), (Some(0), Some(40)));
        h.write("src", "2001:db8::3").unwrap();
        h.write("dst", "DST_ANNO").unwrap();
        let p = out(&mut h, [9; 16]);
        assert_eq!((p.data()[23], &p.data()[24..40]), (3, &[9; 16][..]));
        assert_eq!(
            (h.read("src").unwrap(), h.read("dst").unwrap()),
            ("2001:db8::3".into(), "DST_ANNO".into())
        );
    }

    #[test]
    fn arguments_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("17, ::1"), ["DST: required argument missing"]);
        assert_eq!(errors("17, ::1, ::2, HLIM 300"), ["HLIM: out of range, bound 255"]);
    }
}
