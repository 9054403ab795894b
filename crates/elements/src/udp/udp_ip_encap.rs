//! UDPIPEncap.

use crate::ip::template::Template;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::addresses::{self, Transport};
use causeway_packet::wire::{Ipv4Header, Udp, UdpHeader, ipv4, protocol, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "UDPIPEncap",
    category: "udp",
    summary: "puts UDP and IP headers in front of packets",
    doc: "Prepends a UDP header from SPORT to DPORT and an IPv4 header from SRC to DST, with TTL 250 and a new \
          identification for each packet. Marks both headers and sets the destination annotation to DST. With \
          `DST_ANNO` for DST the annotation says where the packet goes. Ports may be given by service name.",
    args: Headers::ARGS,
    handlers: handlers!(Headers::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 1234, 1.0.0.2, domain) -> Discard;",
    see: &["EtherEncap", "SetUDPChecksum"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    pub(super) enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the headers";
        TooLong = "too-long", "the packet would be longer than 65535 bytes";
    }
}

const TTL: u8 = 250;
const HEADERS_LEN: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;

/// The destination, or `None` for that of the annotation.
#[derive(Clone, Copy)]
pub(crate) struct Destination(pub Option<Ipv4Addr>);

impl Value for Destination {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if text == "DST_ANNO" {
            return Ok(Destination(None));
        }
        Ipv4Addr::parse(text, scope).map(|a| Destination(Some(a)))
    }

    fn placeholder() -> Self {
        Destination(None)
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("DST_ANNO"),
        }
    }
}

/// A UDP port, by number or by service.
#[derive(Clone, Copy)]
pub(super) struct Port(pub(super) u16);

/// A port of a transport protocol, by number, by service, or by a name of the configuration.
pub(crate) fn port(text: &str, scope: &Scope<'_>, transport: Transport) -> Result<u16, Error> {
    let defined = scope.port(text, transport).ok_or(());
    defined.or_else(|()| addresses::port(text, transport)).map_err(|error| {
        let is_number = u32::parse(text, scope).is_ok();
        if is_number { Error::new("overflow, range 0-65535") } else { error.into() }
    })
}

impl Value for Port {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        port(text, scope, Transport::Udp).map(Port)
    }

    fn placeholder() -> Self {
        Port(0)
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

settings! {
    struct Headers {
        src: Ipv4Addr = required("SRC", "IP address", "the source"), live("src", "the source address");
        sport: Port = required("SPORT", "UDP port", "the source port"), live("sport", "the source port");
        dst: Destination = required("DST", "IP address or DST_ANNO", "the destination"),
            live("dst", "the destination address, or DST_ANNO");
        dport: Port = required("DPORT", "UDP port", "the destination port"), live("dport", "the destination port");
        checksum: bool = optional("CHECKSUM", "boolean", "whether to compute the UDP checksum; default true"), or(true);
    }
}

/// Between whom a packet goes.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub src: Ipv4Addr,
    pub sport: u16,
    /// `None` = where the destination annotation says.
    pub dst: Option<Ipv4Addr>,
    pub dport: u16,
    /// Whether there is a UDP checksum.
    pub checksum: bool,
}

/// Puts headers in front of packets of one source.
pub(super) struct Encapsulation {
    template: Template,
    /// Identification of the next packet.
    id: u16,
}

impl Encapsulation {
    /// For packets from `src`.
    pub fn new(src: Ipv4Addr) -> Encapsulation {
        Encapsulation { template: template(src), id: 0 }
    }

    /// Puts headers in front of `packet`, whose source is the template's.
    pub fn apply(&mut self, packet: &mut Packet, ends: Ends) -> Result<(), Reason> {
        let dst = ends.dst.unwrap_or_else(|| packet.dst_ip().into());
        let data = packet.push(HEADERS_LEN).map_err(|_| Reason::NoHeadroom)?;
        let total_len = u16::try_from(data.len()).map_err(|_| Reason::TooLong)?;
        let (ip, rest) = data.split_first_chunk_mut().ok_or(Reason::NoHeadroom)?;
        let udp = rest.first_chunk_mut().ok_or(Reason::NoHeadroom)?;
        self.template.write(ip, total_len, self.id, dst);
        self.id = self.id.wrapping_add(1);
        let udp_len = total_len - ipv4::HEADER_LEN as u16;
        UdpHeader { src_port: ends.sport, dst_port: ends.dport, length: udp_len }.emit(udp);
        if ends.checksum {
            let pseudo_header =
                causeway_packet::checksum::pseudo_header_v4(ends.src, dst, protocol::UDP, udp_len);
            if let Ok(mut udp) = Udp::new_checked(&mut data[ipv4::HEADER_LEN..]) {
                udp.fill_checksum(pseudo_header);
            }
        }
        packet.set_dst_ip(dst.octets());
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        Ok(())
    }
}

/// The IP header of packets from `src`.
fn template(src: Ipv4Addr) -> Template {
    Template::new(Ipv4Header {
        tos: 0,
        total_len: 0,
        identification: 0,
        flags_fragment: 0,
        ttl: TTL,
        protocol: protocol::UDP,
        src,
        dst: Ipv4Addr::UNSPECIFIED,
    })
}

struct UDPIPEncap {
    headers: Headers,
    encapsulation: Encapsulation,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let headers = Headers::configure(conf);
    conf.finish()?;
    Ok(Box::new(UDPIPEncap { encapsulation: Encapsulation::new(headers.src), headers }))
}

impl Headers {
    fn ends(&self) -> Ends {
        let (sport, dport) = (self.sport.0, self.dport.0);
        Ends { src: self.src, sport, dst: self.dst.0, dport, checksum: self.checksum }
    }
}

impl Element for UDPIPEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encapsulation.apply(packet, self.headers.ends()).into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.headers)
    }

    fn settings_changed(&mut self, _cx: &mut Cx<'_>) {
        self.encapsulation.template = template(self.headers.src);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Ipv4;

    fn check(p: &Packet, dst: [u8; 4], id: u16, with_checksum: bool) {
        let ip = Ipv4::new_checked(p.data()).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!((ip.src(), ip.dst()), ([1, 0, 0, 1].into(), dst.into()));
        assert_eq!((ip.identification(), ip.ttl(), ip.total_len()), (id, 250, 31));
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert_eq!((udp.src_port(), udp.dst_port(), udp.payload()), (7, 53, &b"abc"[..]));
        assert_eq!(udp.checksum() != 0, with_checksum);
        assert!(udp.checksum_ok(ip.pseudo_header(udp.length())));
        assert_eq!((p.dst_ip(), p.network_offset(), p.transport_offset()), (dst, Some(0), Some(20)));
    }

    #[test]
    fn headers_are_whole() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 7, 1.0.0.2, domain", 1, 1).unwrap();
        h.push_all(0, (0..2).map(|_| Packet::from_bytes(b"abc").unwrap()));
        let out = h.take(0);
        check(&out[0], [1, 0, 0, 2], 0, true);
        check(&out[1], [1, 0, 0, 2], 1, true);
        h.write("dst", "9.9.9.9").unwrap();
        h.push(0, Packet::from_bytes(b"abc").unwrap());
        check(&h.take(0)[0], [9, 9, 9, 9], 2, true);
        assert_eq!(h.read("config").unwrap(), "1.0.0.1, 7, 9.9.9.9, domain");
        h.assert_balanced();
    }

    #[test]
    fn the_annotation_may_say_where_to() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 7, DST_ANNO, 53, CHECKSUM false", 1, 1).unwrap();
        let mut p = Packet::from_bytes(b"abc").unwrap();
        p.set_dst_ip([200, 201, 202, 203]);
        h.push(0, p);
        check(&h.take(0)[0], [200, 201, 202, 203], 0, false);
    }

    #[test]
    fn arguments_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("1.0.0.1, 7, 1.0.0.2"), ["DPORT: required argument missing"]);
        assert_eq!(
            errors("1.0.0.1, x, 1.0.0, 70000"),
            ["SPORT: parse error", "DST: parse error", "DPORT: overflow, range 0-65535"]
        );
        let mut h = Harness::new(&SPEC, "1.0.0.1, 7, 1.0.0.2, 53", 1, 1).unwrap();
        assert_eq!(h.write("sport", "x").unwrap_err(), "sport: parse error");
    }
}
