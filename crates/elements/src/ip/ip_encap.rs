//! IPEncap.

use super::template::Template;
use crate::anew::{Anew, CONFIG};
use crate::sieve::pass_or_drop;
use crate::udp::udp_ip_encap::Destination;
use causeway_engine::spec::{drops, keyword, reads_writes, required};
use causeway_engine::value::{Raw, Value};
use causeway_engine::{Conf, Cx, Element, Invalid, Names, Spec};
use causeway_packet::wire::Ipv4Header;
use causeway_packet::wire::ipv4::{DONT_FRAGMENT, HEADER_LEN};
use causeway_packet::{Batch, Packet};
use std::net::Ipv4Addr;

pub(crate) static SPEC: Spec = Spec {
    name: "IPEncap",
    category: "ip",
    summary: "puts an IPv4 header in front of packets",
    doc: "Prepends an IPv4 header with protocol PROTO from SRC to DST, and a new identification for each packet; with \
          `ipip` for PROTO this is IP-in-IP encapsulation (RFC 2003). Marks the header and sets the destination \
          annotation to DST. With `DST_ANNO` for DST the annotation says where the packet goes.",
    args: &[
        required("PROTO", "IP protocol", "what the packets are, by name or number"),
        required("SRC", "IP address", "the source"),
        required("DST", "IP address or DST_ANNO", "the destination"),
        keyword("TTL", "byte", "time to live; default 250"),
        keyword("DSCP", "0 to 63", "differentiated services code point; default 0"),
        keyword(
            "ECT",
            "boolean or 2",
            "whether to set ECN to \"capable\", ECT(1), or with 2 ECT(0); default false",
        ),
        keyword("CE", "boolean", "whether to set ECN to \"congestion experienced\"; default false"),
        keyword("TOS", "byte", "DSCP and ECN together, in place of DSCP, ECT and CE; default 0"),
        keyword("DF", "boolean", "whether to set \"don't fragment\"; default false"),
    ],
    handlers: &[
        reads_writes("src", "the source address"),
        reads_writes("dst", "the destination address, or DST_ANNO"),
        CONFIG,
    ],
    drops: &[
        drops("no-headroom", "the packet's frame had no room for the header"),
        drops("too-long", "the packet would be longer than 65535 bytes"),
    ],
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> IPEncap(ipip, 2.0.0.1, 2.0.0.2) \
              -> CheckIPHeader -> Discard;",
    see: &["UDPIPEncap", "CheckIPHeader"],
    build,
    ..Spec::DEFAULT
};

const NO_HEADROOM: usize = 0;
const TOO_LONG: usize = 1;
const TTL: u8 = 250;

struct IPEncap {
    /// What the template was made of.
    header: Ipv4Header,
    template: Template,
    dst: Destination,
    id: u16,
    anew: Anew,
    names: Names,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let protocol_text: Raw = conf.required("PROTO");
    let (src, dst) = (conf.required("SRC"), conf.required("DST"));
    let protocol = match causeway_lang::addresses::protocol(&protocol_text.0) {
        Ok(protocol) => protocol,
        // That it is missing was said already.
        Err(_) if protocol_text.0.is_empty() => 0,
        Err(why) => {
            conf.error(format!("PROTO: {why}"));
            0
        }
    };
    let ttl = conf.keyword("TTL", TTL);
    let tos = read_tos(conf);
    let flags_fragment = if conf.keyword("DF", false) { DONT_FRAGMENT } else { 0 };
    conf.finish()?;
    let placeholder = Ipv4Addr::UNSPECIFIED;
    let header = Ipv4Header {
        tos,
        total_len: 0,
        identification: 0,
        flags_fragment,
        ttl,
        protocol,
        src,
        dst: placeholder,
    };
    Ok(Box::new(IPEncap {
        header,
        template: Template::new(header),
        dst,
        id: 0,
        anew: Anew::new(conf),
        names: conf.env.names.clone(),
    }))
}

/// The TOS byte, given as a whole or in parts.
fn read_tos(conf: &mut Conf<'_>) -> u8 {
    let (whole, dscp) = (conf.keyword_given::<u8>("TOS"), conf.keyword_given::<u8>("DSCP"));
    let ect = match conf.keyword_given::<Raw>("ECT") {
        Some(Raw(text)) if text == "2" => Some(2),
        Some(Raw(text)) => conf.parse::<bool>("ECT", &text).map(u8::from),
        None => None,
    };
    let ce = conf.keyword_given::<bool>("CE");
    if dscp.is_some_and(|d| d > 63) {
        conf.error("DSCP: out of range, bound 63");
    }
    if whole.is_some() && (dscp.is_some() || ect.is_some() || ce.is_some()) {
        conf.error("TOS: cannot be given together with DSCP, ECT or CE");
    }
    let ecn = if ce == Some(true) { 3 } else { ect.unwrap_or(0) };
    whole.unwrap_or(dscp.unwrap_or(0).min(63) << 2 | ecn)
}

impl IPEncap {
    #[inline]
    fn encapsulate(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let dst = self.dst.0.unwrap_or_else(|| packet.dst_ip().into());
        let data = packet.push(HEADER_LEN).map_err(|_| NO_HEADROOM)?;
        let total_len = u16::try_from(data.len()).map_err(|_| TOO_LONG)?;
        let to = data.first_chunk_mut::<HEADER_LEN>().ok_or(NO_HEADROOM)?;
        self.template.write(to, total_len, self.id, dst);
        self.id = self.id.wrapping_add(1);
        packet.set_dst_ip(dst.octets());
        packet.set_network_header(0);
        packet.set_transport_header(HEADER_LEN);
        Ok(())
    }
}

impl Element for IPEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        pass_or_drop(batch, cx, |packet| self.encapsulate(packet));
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "config" => cx.config().to_owned(),
            "src" => self.header.src.to_string(),
            _ => self.dst.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        if handler == "config" {
            *self = IPEncap { id: self.id, ..*self.anew.element(value, cx)? };
            cx.set_config(value.to_owned());
            return Ok(());
        }
        let (value, scope) = (value.trim(), self.names.scope(cx.name()));
        let done = match handler {
            "src" => Ipv4Addr::parse(value, &scope).map(|src| self.header.src = src),
            _ => Destination::parse(value, &scope).map(|dst| self.dst = dst),
        };
        done.map_err(|why| format!("{handler}: {why}"))?;
        self.template = Template::new(self.header);
        Ok(())
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
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, DSCP 64"), ["DSCP: out of range, bound 63"]);
        let both = "TOS: cannot be given together with DSCP, ECT or CE";
        assert_eq!(errors("4, 1.0.0.1, 1.0.0.2, TOS 1, CE false"), [both]);
        assert_eq!(errors("nothing, 1.0.0.1, 1.0.0.2").len(), 1);
    }
}
