//! IPEncap.

use super::template::Template;
use crate::udp::udp_ip_encap::Destination;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::addresses;
use causeway_packet::wire::Ipv4Header;
use causeway_packet::wire::ipv4::{DONT_FRAGMENT, HEADER_LEN};

pub(crate) static SPEC: Spec = Spec {
    name: "IPEncap",
    category: "ip",
    summary: "puts an IPv4 header in front of packets",
    doc: "Prepends an IPv4 header with protocol PROTO from SRC to DST, and a new identification for each packet; with \
          `ipip` for PROTO this is IP-in-IP encapsulation (RFC 2003). Marks the header and sets the destination \
          annotation to DST. With `DST_ANNO` for DST the annotation says where the packet goes.",
    args: Header::ARGS,
    handlers: handlers!(Header::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> IPEncap(ipip, 2.0.0.1, 2.0.0.2) \
              -> CheckIPHeader -> Discard;",
    see: &["UDPIPEncap", "CheckIPHeader"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the header";
        TooLong = "too-long", "the packet would be longer than 65535 bytes";
    }
}

settings! {
    struct Header {
        protocol: Protocol = required("PROTO", "IP protocol", "what the packets are, by name or number");
        src: Ipv4Addr = required("SRC", "IP address", "the source"), live("src", "the source address");
        dst: Destination = required("DST", "IP address or DST_ANNO", "the destination"),
            live("dst", "the destination address, or DST_ANNO");
        ttl: u8 = keyword("TTL", "byte", "time to live; default 250"), or(250);
        dscp: Option<i32> = keyword("DSCP", "0 to 63", "differentiated services code point; default 0"), or(None);
        ect: Option<Ect> = keyword(
            "ECT",
            "boolean or 2",
            "whether to set ECN to \"capable\", ECT(1), or with 2 ECT(0); default false",
        ), or(None);
        ce: Option<bool> = keyword("CE", "boolean", "whether to set ECN to \"congestion experienced\"; default false"),
            or(None);
        tos: Option<i32> = keyword("TOS", "byte", "DSCP and ECN together, in place of DSCP, ECT and CE; default 0"),
            or(None);
        dont_fragment: bool = keyword("DF", "boolean", "whether to set \"don't fragment\"; default false"), or(false);
    }
}

/// A protocol, by name or number; above 255 it is none.
struct Protocol(u32);

/// The bits of ECN that say that both ends know it.
struct Ect(u8);

impl Value for Protocol {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let named = addresses::protocol(text).map(u32::from).map_err(Error::caused_by);
        named.or_else(|why| u32::parse(text, scope).map_err(|_| why)).map(Protocol)
    }

    fn placeholder() -> Self {
        Protocol(0)
    }
}

impl Value for Ect {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if text == "2" { Ok(Ect(2)) } else { bool::parse(text, scope).map(|set| Ect(set.into())) }
    }

    fn placeholder() -> Self {
        Ect(0)
    }
}

struct IPEncap {
    header: Header,
    template: Template,
    /// Identification of the next packet.
    id: u16,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let header = Header::configure(conf);
    if let Err(why) = header.check() {
        conf.error(why);
    }
    conf.finish()?;
    Ok(Box::new(IPEncap { template: header.template(), header, id: 0 }))
}

impl Header {
    /// The TOS byte, given as a whole or in parts.
    fn tos(&self) -> u8 {
        let ecn = if self.ce == Some(true) { 3 } else { self.ect.as_ref().map_or(0, |e| e.0) };
        let given = |value: Option<i32>| value.and_then(|n| u8::try_from(n).ok());
        given(self.tos).unwrap_or(given(self.dscp).unwrap_or(0) << 2 | ecn)
    }

    /// What is wrong with the arguments together, in Click's words and its order; -1 stands for what is not given.
    fn check(&self) -> Result<(), &'static str> {
        let (tos, dscp) = (self.tos.unwrap_or(-1), self.dscp.unwrap_or(-1));
        let (ect, ce) = (self.ect.as_ref().is_some_and(|e| e.0 != 0), self.ce == Some(true));
        Err(match self {
            _ if self.protocol.0 > 255 => "bad IP protocol",
            _ if tos >= 0 && dscp >= 0 => "cannot set both TOS and DSCP",
            _ if tos >= 0 && (ect || ce) => "cannot set both TOS and ECN bits",
            _ if !(-1..=255).contains(&tos) => "TOS too large; max 255",
            _ if !(-1..=63).contains(&dscp) => "DSCP too large; max 63",
            _ if ect && ce => "can set at most one ECN option",
            _ => return Ok(()),
        })
    }

    fn template(&self) -> Template {
        Template::new(Ipv4Header {
            tos: self.tos(),
            total_len: 0,
            identification: 0,
            flags_fragment: if self.dont_fragment { DONT_FRAGMENT } else { 0 },
            ttl: self.ttl,
            protocol: self.protocol.0 as u8,
            src: self.src,
            dst: Ipv4Addr::UNSPECIFIED,
        })
    }
}

impl IPEncap {
    #[inline]
    fn encapsulate(&mut self, packet: &mut Packet) -> Result<(), Reason> {
        let dst = self.header.dst.0.unwrap_or_else(|| packet.dst_ip().into());
        let data = packet.push(HEADER_LEN).map_err(|_| Reason::NoHeadroom)?;
        let total_len = u16::try_from(data.len()).map_err(|_| Reason::TooLong)?;
        let to = data.first_chunk_mut::<HEADER_LEN>().ok_or(Reason::NoHeadroom)?;
        self.template.write(to, total_len, self.id, dst);
        self.id = self.id.wrapping_add(1);
        packet.set_dst_ip(dst.octets());
        packet.set_network_headers(0, HEADER_LEN);
        Ok(())
    }
}

impl Element for IPEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encapsulate(packet).into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.header)
    }

    fn settings_changed(&mut self, _cx: &mut Cx<'_>) {
        self.template = self.header.template();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Ipv4;

    fn fields(config: &str) -> (u8, u8, u8, u16) {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"payload").unwrap());
        let out = h.take(0);
        let ip = Ipv4::new_checked(out[0].data()).unwrap();
        assert!(ip.checksum_ok() && ip.payload() == b"payload");
        (ip.protocol(), ip.ttl(), ip.tos(), ip.flags_fragment())
    }

    #[test]
    fn fields_are_as_given() {
        assert_eq!(fields("ipip, 1.0.0.1, 1.0.0.2"), (4, 250, 0, 0));
        assert_eq!(fields("99, 1.0.0.1, 1.0.0.2, TTL 3, DSCP 46, DF true"), (99, 3, 46 << 2, DONT_FRAGMENT));
        let tos = |text: &str| fields(&format!("4, 1.0.0.1, 1.0.0.2, {text}")).2;
        assert_eq!([tos("ECT true"), tos("ECT 2"), tos("CE true"), tos("TOS 255")], [1, 2, 3, 255]);
    }

    #[test]
    fn addresses_come_from_arguments_handlers_or_the_annotation() {
        let mut h = Harness::new(&SPEC, "4, 1.0.0.1, 1.0.0.2", 1, 1).unwrap();
        let mut expect = |src: [u8; 4], dst: [u8; 4], id: u16, handlers: &[(&str, &str)]| {
            handlers.iter().for_each(|(name, value)| h.write(name, value).unwrap());
            let mut p = Packet::from_bytes(b"x").unwrap();
            p.set_dst_ip([9; 4]);
            h.push(0, p);
            let out = h.take(0);
            let ip = Ipv4::new_checked(out[0].data()).unwrap();
            assert_eq!((ip.src(), ip.dst(), ip.identification()), (src.into(), dst.into(), id));
            assert_eq!((out[0].dst_ip(), out[0].network_offset()), (dst, Some(0)));
        };
        expect([1, 0, 0, 1], [1, 0, 0, 2], 0, &[]);
        expect([1, 0, 0, 3], [9; 4], 1, &[("src", "1.0.0.3"), ("dst", "DST_ANNO")]);
        assert_eq!((h.read("src").unwrap(), h.read("dst").unwrap()), ("1.0.0.3".into(), "DST_ANNO".into()));
        assert!(h.write("dst", "nowhere").is_err());
    }

    #[test]
    fn full_frames_and_bad_arguments() {
        let mut full = Packet::with_headroom(0).unwrap();
        full.put(full.tailroom()).unwrap();
        let mut h = Harness::new(&SPEC, "4, 1.0.0.1, 1.0.0.2", 1, 1).unwrap();
        h.push(0, full);
        assert_eq!(h.drops(), [("no-headroom", 1)]);
        h.assert_balanced();
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("4, 1.0.0.1"), ["DST: required argument missing"]);
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, DSCP 64"), ["DSCP too large; max 63"]);
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, TOS 1, CE true"), ["cannot set both TOS and ECN bits"]);
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, TOS 1, DSCP 1"), ["cannot set both TOS and DSCP"]);
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, ECT 2, CE true"), ["can set at most one ECN option"]);
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, TOS 256"), ["TOS too large; max 255"]);
        assert_eq!(errors("256, 1.0.0.1, 1.0.0.2"), ["bad IP protocol"]);
        assert_eq!(errors("nothing, 1.0.0.1, 1.0.0.2").len(), 1);
    }
}
