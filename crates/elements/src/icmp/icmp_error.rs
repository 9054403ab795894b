//! ICMPError.

use super::names;
use causeway_engine::spec::{drops, keyword, optional, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::wire::icmp_error::MAX_V4_LEN;
use causeway_packet::wire::icmpv4::{kind, unreachable};
use causeway_packet::wire::{Icmpv4Error, Ipv4, ipv4};
use causeway_packet::{Anno, Batch, Packet, PacketType};
use std::net::Ipv4Addr;

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPError",
    category: "icmp",
    summary: "makes ICMP error packets",
    doc: "Replaces each IP packet, whose header must be marked, by an ICMP error of TYPE and CODE that quotes it and \
          goes from SRC to its source. The error's destination annotation is set, and its fix-source annotation \
          as well, so that FixIPSrc can put in the address of the interface it leaves by. The gateway of a \
          redirect is the packet's destination annotation; the pointer of a parameter problem is its \
          ICMP_PARAMPROB annotation.\n\n\
          No error is made (RFC 1812 §4.3.2.7) about ICMP errors, fragments other than the first, packets that \
          came as link-level broadcasts or multicasts, packets to IP broadcast or multicast addresses or from \
          addresses that are not one host's, or from or to BADADDRS. No redirect is sent for source-routed packets \
          (§5.2.7.2). Such packets are dropped.",
    args: &[
        required("SRC", "IP address", "source of the errors"),
        required("TYPE", "ICMP error type", "by name or number: unreachable, redirect, timeexceeded …"),
        optional("CODE", "ICMP code", "by name or number: host, needfrag, transit …; default 0"),
        optional(
            "BADADDRS",
            "IP addresses",
            "addresses not to answer or report about, such as broadcast addresses",
        ),
        keyword("MTU", "bytes", "longest error made, 96 to 576; default 576 (§4.3.2.3)"),
        keyword("PMTU", "bytes", "next-hop MTU reported by `unreachable, needfrag`; default 0, unknown"),
        keyword("USE_FIX_ANNO", "boolean", "whether to set the fix-source annotation; default true"),
    ],
    drops: &[
        drops("suppressed", "RFC 1812 forbids an error about the packet"),
        drops("no-header", "the packet has no IP header"),
        drops("no-buffer", "there was no frame for the error"),
    ],
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> ICMPError(2.0.0.1, unreachable, host) -> Discard;",
    see: &["FixIPSrc", "DecIPTTL", "ICMPPingResponder"],
    build,
    ..Spec::DEFAULT
};

const SUPPRESSED: usize = 0;
const NO_HEADER: usize = 1;
const NO_BUFFER: usize = 2;

/// Headers of the error, a full header of the packet and eight bytes of what it carries.
const LEAST_MTU: usize = 96;
/// Bytes in front of the quotation.
const HEADERS_LEN: usize = 28;

struct IcmpError {
    src: Ipv4Addr,
    error: Icmpv4Error,
    bad: Vec<Ipv4Addr>,
    mtu: usize,
    fix_anno: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let src = conf.required("SRC");
    let (kind_text, code_text): (String, String) =
        (conf.required("TYPE"), conf.optional("CODE", String::new()));
    let bad_text: Vec<String> = conf.optional("BADADDRS", Vec::new());
    let mtu = conf.keyword("MTU", MAX_V4_LEN as u16) as usize;
    let pmtu = conf.keyword("PMTU", 0u16);
    let fix_anno = conf.keyword("USE_FIX_ANNO", true);
    let message_type = match names::icmp_type(&kind_text) {
        Some(t) if is_error(t) => t,
        None if kind_text.is_empty() => 0,
        _ => {
            conf.error(format!("TYPE: '{kind_text}' is not an ICMP error type"));
            0
        }
    };
    let code = if code_text.is_empty() { Some(0) } else { names::icmp_code(message_type, &code_text) };
    if code.is_none() {
        conf.error(format!("CODE: '{code_text}' is not a code of this ICMP type"));
    }
    let bad = bad_text.iter().filter_map(|a| conf.parse::<Ipv4Addr>("BADADDRS", a)).collect();
    if !(LEAST_MTU..=MAX_V4_LEN).contains(&mtu) {
        conf.error(format!("MTU: out of range, {LEAST_MTU} to {MAX_V4_LEN}"));
    }
    conf.finish()?;
    let code = code.unwrap_or(0);
    let needs_mtu = (message_type, code) == (kind::UNREACHABLE, unreachable::FRAGMENTATION_NEEDED);
    let error = Icmpv4Error { message_type, code, rest: if needs_mtu { pmtu as u32 } else { 0 } };
    Ok(Box::new(IcmpError { src, error, bad, mtu, fix_anno }))
}

fn is_error(message_type: u8) -> bool {
    use kind::{PARAMETER_PROBLEM, REDIRECT, SOURCE_QUENCH, TIME_EXCEEDED, UNREACHABLE};
    matches!(message_type, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Whether there is a loose or strict source route among the options (RFC 791 §3.1).
fn source_routed(mut options: &[u8]) -> bool {
    loop {
        match options {
            [131 | 137, ..] => return true,
            [] | [0, ..] => return false,
            [1, rest @ ..] => options = rest,
            [_, len, ..] => options = options.get((*len as usize).max(2)..).unwrap_or_default(),
            [_] => return false,
        }
    }
}

impl IcmpError {
    /// The error about `packet`, or why there is none.
    fn report(&self, packet: &Packet) -> Result<Packet, usize> {
        let bytes = packet.network_header().ok_or(NO_HEADER)?;
        let ip = Ipv4::new_quoted(bytes).map_err(|_| NO_HEADER)?;
        let to_many = matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast);
        let is_bad = |address| self.bad.contains(&address);
        let redirect = self.error.message_type == kind::REDIRECT;
        if to_many
            || !Icmpv4Error::may_answer(&ip)
            || is_bad(ip.src())
            || is_bad(ip.dst())
            || (redirect && source_routed(ip.options_bytes()))
        {
            return Err(SUPPRESSED);
        }
        let rest = match self.error.message_type {
            kind::REDIRECT => u32::from_be_bytes(packet.dst_ip()),
            kind::PARAMETER_PROBLEM => (packet.anno_u8(Anno::ICMP_PARAMPROB.offset) as u32) << 24,
            _ => self.error.rest,
        };
        // What lies behind the IP packet is padding.
        let len = (ip.total_len() as usize).max(ip.header_len()).min(bytes.len());
        let quoted = &bytes[..len.min(self.mtu - HEADERS_LEN)];
        let mut out = Packet::new().ok_or(NO_BUFFER)?;
        let room = out.put(Icmpv4Error::packet_len(quoted)).map_err(|_| NO_BUFFER)?;
        Icmpv4Error { rest, ..self.error }.emit(self.src, quoted, room).map_err(|_| NO_HEADER)?;
        out.set_network_header(0);
        out.set_transport_header(ipv4::HEADER_LEN);
        out.set_dst_ip(ip.src().octets());
        out.set_anno_u8(Anno::FIX_IP_SRC.offset, self.fix_anno as u8);
        out.set_timestamp_ns(packet.timestamp_ns());
        Ok(out)
    }
}

impl Element for IcmpError {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|packet| match self.report(&packet) {
            Ok(error) => Some(error),
            Err(reason) => {
                cx.drop(reason, packet);
                None
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::{Icmpv4, Ipv4Header, protocol};
    use proptest::prelude::*;

    fn ip_packet(edit: impl FnOnce(&mut Ipv4Header), payload: &[u8]) -> Packet {
        let mut header = Ipv4Header {
            tos: 0,
            total_len: 20 + payload.len() as u16,
            identification: 1,
            flags_fragment: 0,
            ttl: 1,
            protocol: protocol::UDP,
            src: [10, 0, 0, 1].into(),
            dst: [10, 9, 0, 1].into(),
        };
        edit(&mut header);
        let mut bytes = [0; 20];
        header.emit(&mut bytes);
        let mut p = Packet::from_bytes(&[&bytes[..], payload].concat()).unwrap();
        p.set_network_header(0);
        p.set_dst_ip([10, 9, 9, 9]);
        p
    }

    fn harness(config: &str) -> Harness {
        Harness::new(&SPEC, config, 1, 1).unwrap()
    }

    #[test]
    fn an_error_quotes_the_packet() {
        let mut h = harness("10.0.0.9, unreachable, needfrag, PMTU 1400");
        let p = ip_packet(|_| (), &[7; 1_000]);
        let original = p.data().to_vec();
        h.push(0, p);
        let out = h.take(0);
        let ip = Ipv4::new_checked(out[0].data()).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!((ip.src(), ip.dst(), ip.total_len()), ([10, 0, 0, 9].into(), [10, 0, 0, 1].into(), 576));
        let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
        assert!(icmp.checksum_ok());
        assert_eq!((icmp.message_type(), icmp.code(), icmp.mtu()), (3, 4, 1400));
        assert_eq!(icmp.payload(), &original[..548]);
        assert_eq!((out[0].dst_ip(), out[0].anno_u8(Anno::FIX_IP_SRC.offset)), ([10, 0, 0, 1], 1));
        h.assert_balanced();
    }

    fn rest_of(config: &str, edit: impl FnOnce(&mut Packet)) -> u32 {
        let mut h = harness(config);
        let mut p = ip_packet(|_| (), b"12345678");
        edit(&mut p);
        h.push(0, p);
        let out = h.take(0);
        Icmpv4::new_checked(Ipv4::new_checked(out[0].data()).unwrap().payload()).unwrap().rest()
    }

    #[test]
    fn annotations_fill_the_error() {
        assert_eq!(rest_of("10.0.0.9, redirect, host", |_| ()), 0x0a09_0909);
        let parameter = rest_of("10.0.0.9, 12", |p| p.set_anno_u8(Anno::ICMP_PARAMPROB.offset, 22));
        assert_eq!(parameter, 22 << 24);
        assert_eq!(rest_of("10.0.0.9, timeexceeded, transit, PMTU 5", |_| ()), 0);
    }

    #[test]
    fn some_packets_are_not_reported() {
        let mut h = harness("10.0.0.9, timeexceeded, 0, 10.0.0.255 10.0.1.255");
        let hit = |h: &mut Harness, p: Packet| {
            h.push(0, p);
            h.take(0).len()
        };
        assert_eq!(hit(&mut h, ip_packet(|_| (), b"")), 1);
        assert_eq!(hit(&mut h, ip_packet(|i| i.flags_fragment = 0x2000, b"")), 1);
        assert_eq!(hit(&mut h, ip_packet(|i| i.protocol = 1, &[8, 0, 0, 0, 0, 0, 0, 0])), 1);
        let not: [fn(&mut Ipv4Header); 8] = [
            |i| i.flags_fragment = 1,
            |i| i.dst = [224, 0, 0, 5].into(),
            |i| i.dst = [255; 4].into(),
            |i| i.dst = [10, 0, 1, 255].into(),
            |i| i.src = [10, 0, 0, 255].into(),
            |i| i.src = [0; 4].into(),
            |i| i.src = [127, 0, 0, 1].into(),
            |i| i.protocol = 1,
        ];
        for (i, edit) in not.into_iter().enumerate() {
            assert_eq!(hit(&mut h, ip_packet(edit, &[3, 1, 0, 0, 0, 0, 0, 0])), 0, "{i}");
        }
        for packet_type in [PacketType::Broadcast, PacketType::Multicast] {
            let mut p = ip_packet(|_| (), b"");
            p.set_packet_type(packet_type);
            assert_eq!(hit(&mut h, p), 0);
        }
        assert_eq!(hit(&mut h, Packet::from_bytes(&[0x45; 40]).unwrap()), 0);
        assert_eq!(h.drops(), [("suppressed", 10), ("no-header", 1)]);
        h.assert_balanced();
    }

    #[test]
    fn redirects_do_not_follow_source_routes() {
        assert!(source_routed(&[1, 7, 3, 4, 131, 3, 4, 0]));
        assert!(!source_routed(&[7, 0, 7, 3, 131]));
        assert!(!source_routed(&[0, 131]));
    }

    #[test]
    fn arguments_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("1.0.0.1"), ["TYPE: required argument missing"]);
        assert_eq!(errors("1.0.0.1, echo"), ["TYPE: 'echo' is not an ICMP error type"]);
        assert_eq!(errors("1.0.0.1, redirect, port"), ["CODE: 'port' is not a code of this ICMP type"]);
        assert_eq!(errors("1.0.0.1, 3, 1, 1.2.3"), ["BADADDRS: invalid IP address"]);
        assert_eq!(errors("1.0.0.1, 3, MTU 40"), ["MTU: out of range, 96 to 576"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_reported_or_dropped(
            mut bytes in prop::collection::vec(any::<u8>(), 0..90), first in 0x44u8..0x51, at in 0usize..8,
        ) {
            if let Some(b) = bytes.get_mut(at) {
                *b = first;
            }
            for config in ["10.0.0.9, redirect, host", "1.0.0.1, 3, MTU 96"] {
                let mut h = harness(config);
                let mut p = Packet::from_bytes(&bytes).unwrap();
                p.set_network_header(at);
                h.push(0, p);
                for out in h.take(0) {
                    prop_assert!(Ipv4::new_checked(out.data()).unwrap().checksum_ok());
                }
            }
        }
    }
}
