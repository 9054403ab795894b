//! ICMP6Error.

use crate::ethernet::drop_broadcasts::to_many;
use crate::token_bucket::TokenBucket;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_packet::wire::icmp_error::MAX_V6_LEN;
use causeway_packet::wire::icmpv6::{self, kind};
use causeway_packet::wire::{Icmpv6, Icmpv6Error, Ipv6, Ipv6Header, ipv6, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "ICMP6Error",
    category: "ip6",
    summary: "makes ICMPv6 error packets",
    doc: "Replaces each IPv6 packet, whose header must be marked, by an ICMPv6 error or redirect of TYPE and CODE that \
          quotes it and goes from SRC to its source. Types are 1 (unreachable), 2 (packet too big, which says MTU), 3 \
          (time exceeded), 4 (parameter problem, at the packet's ICMP_PARAMPROB annotation) and 137 (redirect to the \
          packet's IPv6 destination annotation, RFC 4861 §4.5). The error's IPv6 destination annotation is set, and its \
          fix-source annotation.\n\n\
          No error is made (RFC 4443 §2.4 (e)) about ICMPv6 errors and redirects, packets that came as link-level \
          broadcasts or multicasts, packets to groups (but by types 2, and 4 with code 2) or from addresses that are not \
          one node's, and packets whose headers cannot be understood (but by type 4). An error quotes as much of the \
          packet as keeps it within 1280 bytes (§2.4 (c)). No more than RATE errors are made a second (§2.4 (f)). \
          Packets without an error are dropped.",
    args: Settings6::ARGS,
    handlers: handlers!(Settings6::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 53) \
              -> ICMP6Error(2001:db8::3, 3, 0) -> Discard;",
    see: &["DecIP6HLIM", "IP6Fragmenter", "ICMPError"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Suppressed = "suppressed", "RFC 4443 forbids an error about the packet";
        NoHeader = "no-header", "no whole IPv6 header is marked";
        NoBuffer = "no-buffer", "there was no frame for the error";
        RateLimited = "rate-limited", "there were more errors than RATE allows";
    }
}

/// Errors a second, where Click's defaults do not hold.
const RATE: u32 = 1_000;
/// Hop limit: nothing that came over a router is believed to be a redirect.
const HOP_LIMIT: u8 = 255;
/// What a redirect says behind the ICMPv6 header: target and destination.
const REDIRECT_LEN: usize = 32;

settings! {
    struct Settings6 {
        src: Ipv6Addr = required("SRC", "IPv6 address", "source of the errors"), live("src", "source of the errors");
        message_type: u8 = required("TYPE", "ICMPv6 type", "1, 2, 3, 4 or 137");
        code: u8 = required("CODE", "ICMPv6 code", "the code");
        mtu: u32 = keyword("MTU", "bytes", "what the next hop takes, which type 2 says; default 1500"), or(1500),
            live("mtu", "what the next hop takes, in bytes");
        rate: Option<u32> = keyword(
            "RATE",
            "errors a second",
            "most errors made, a twentieth of it at once; 0 = no limit; default 1000, and 0 under the name click",
        ), or(None);
    }
}

struct Icmp6Error {
    settings: Settings6,
    limit: Option<TokenBucket>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let settings = Settings6::configure(conf);
    let is_error = (kind::UNREACHABLE..=kind::PARAMETER_PROBLEM).contains(&settings.message_type);
    if conf.errors().is_empty() && !is_error && settings.message_type != kind::REDIRECT {
        conf.error(format!("ICMP6 type {} is not an error or redirect type", settings.message_type));
    }
    let default = if conf.env.defaults == Defaults::Click { 0 } else { RATE };
    conf.finish()?;
    let limit = TokenBucket::of_errors(settings.rate.unwrap_or(default), conf);
    Ok(Box::new(Icmp6Error { settings, limit }))
}

impl Icmp6Error {
    /// The error about `packet`, or why there is none.
    fn report(&mut self, packet: &Packet, now_ns: u64) -> Result<Packet, Reason> {
        let Settings6 { src, message_type, code, mtu, .. } = self.settings;
        let bytes = packet.network_header().ok_or(Reason::NoHeader)?;
        let ip = Ipv6::new_quoted(bytes).map_err(|_| Reason::NoHeader)?;
        let rest = match message_type {
            kind::PACKET_TOO_BIG => mtu,
            kind::PARAMETER_PROBLEM => packet.anno_u8(Anno::ICMP_PARAMPROB.offset).into(),
            _ => 0,
        };
        let error = Icmpv6Error { message_type, code, rest };
        if to_many(packet.packet_type()) || !error.may_answer(&ip) {
            return Err(Reason::Suppressed);
        }
        if let Some(limit) = &mut self.limit {
            if limit.tokens(now_ns) == 0 {
                return Err(Reason::RateLimited);
            }
            limit.take(1);
        }
        // What lies behind the IPv6 packet is padding.
        let len = ipv6::HEADER_LEN + usize::from(ip.payload_len());
        let quoted = &bytes[..len.min(bytes.len())];
        let mut out = Packet::new().ok_or(Reason::NoBuffer)?;
        let written = match message_type {
            kind::REDIRECT => self.redirect(packet, &ip, quoted, &mut out),
            _ => {
                let to = out.put(Icmpv6Error::packet_len(quoted)).map_err(|_| Reason::NoBuffer)?;
                error.emit(src, quoted, to).ok().inspect(|_| {
                    if let Ok(mut ip) = Ipv6::new_quoted(out.data_mut()) {
                        ip.set_traffic_class(0);
                        ip.set_hop_limit(HOP_LIMIT);
                    }
                })
            }
        };
        written.ok_or(Reason::NoHeader)?;
        out.set_network_headers(0, ipv6::HEADER_LEN);
        out.set_dst_ip6(ip.src().octets());
        out.set_anno_u8(Anno::FIX_IP_SRC.offset, 1);
        out.set_timestamp_ns(now_ns);
        Ok(out)
    }

    /// Writes a redirect: the better first hop, the destination that it is for, and the packet as an option, which is a
    /// multiple of eight bytes long (RFC 4861 §4.6.3).
    fn redirect(&self, packet: &Packet, ip: &Ipv6<&[u8]>, quoted: &[u8], out: &mut Packet) -> Option<usize> {
        /// Kind, length in eight bytes, and what is reserved.
        const OPTION_LEN: usize = 8;
        let front = ipv6::HEADER_LEN + icmpv6::HEADER_LEN + REDIRECT_LEN + OPTION_LEN;
        let quoted = &quoted[..quoted.len().min(MAX_V6_LEN - front) / 8 * 8];
        let to = out.put(front + quoted.len()).ok()?;
        let (header, message) = to.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>()?;
        let (src, dst) = (self.settings.src, ip.src());
        let payload_len = message.len() as u16;
        let next_header = protocol::ICMPV6;
        let (traffic_class, flow_label, hop_limit) = (0, 0, HOP_LIMIT);
        Ipv6Header { traffic_class, flow_label, payload_len, next_header, hop_limit, src, dst }.emit(header);
        let sum = causeway_packet::checksum::pseudo_header_v6(src, dst, next_header, payload_len.into());
        let mut icmp = Icmpv6::new_checked(message).ok()?;
        icmp.set_message_type(kind::REDIRECT);
        icmp.set_code(self.settings.code);
        icmp.set_rest(0);
        let body = icmp.payload_mut();
        body.get_mut(..16)?.copy_from_slice(&packet.dst_ip6());
        body.get_mut(16..32)?.copy_from_slice(&ip.dst().octets());
        body.get_mut(32..40)?.copy_from_slice(&[4, (1 + quoted.len() / 8) as u8, 0, 0, 0, 0, 0, 0]);
        body.get_mut(40..)?.copy_from_slice(quoted);
        icmp.fill_checksum(sum);
        Some(front + quoted.len())
    }
}

impl Element for Icmp6Error {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.report(packet, cx.now_ns()).map(|error| *packet = error).into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_ip6_header::tests::packet as bytes;
    use super::*;
    use crate::ip::corpus::marked;
    use causeway_engine::harness::{Harness, verdict};
    use causeway_packet::meta::PacketType;

    const SRC: &str = "2001:db8::9";

    fn error(config: &str, packet: Packet) -> Result<Packet, &'static str> {
        verdict(&SPEC, &format!("{SRC}, {config}"), packet)
    }

    #[test]
    fn errors_quote_the_packet() {
        let good = bytes(1, &[7; 100]);
        for (config, message_type, rest) in
            [("1, 3", 1, 0), ("2, 0, MTU 1400", 2, 1400), ("2, 0", 2, 1500), ("3, 0", 3, 0), ("4, 1", 4, 40)]
        {
            // The packet alone is quoted, not what it was padded with.
            let mut p = marked(&[&good[..], &[9; 6]].concat(), 0);
            p.set_anno_u8(Anno::ICMP_PARAMPROB.offset, 40);
            let out = error(config, p).unwrap();
            let ip = Ipv6::new_checked(out.data()).unwrap();
            assert_eq!((ip.src().to_string(), ip.dst().to_string()), (SRC.into(), "2001:db8::1".into()));
            let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
            assert_eq!((icmp.message_type(), icmp.rest(), icmp.payload()), (message_type, rest, &good[..]));
            assert!(icmp.checksum_ok(ip.pseudo_header(58, ip.payload().len() as u32)));
            assert_eq!((out.dst_ip6(), out.anno_u8(Anno::FIX_IP_SRC.offset)), (ip.dst().octets(), 1));
            assert_eq!((ip.hop_limit(), ip.traffic_class()), (HOP_LIMIT, 0));
        }
    }

    #[test]
    fn long_packets_are_quoted_up_to_1280_bytes() {
        let mut long = bytes(1, &[7; 0]);
        long.extend([7; 1400]);
        long[4..6].copy_from_slice(&1400u16.to_be_bytes());
        assert_eq!(error("3, 0", marked(&long, 0)).unwrap().len(), 1280);
        let redirect = error("137, 0", marked(&long, 0)).unwrap();
        assert_eq!((redirect.len(), redirect.len() % 8), (1280, 0));
    }

    #[test]
    fn redirects_name_the_better_hop() {
        let mut p = marked(&bytes(9, &[7; 13]), 0);
        p.set_dst_ip6([0xfe; 16]);
        let out = error("137, 0", p).unwrap();
        let ip = Ipv6::new_checked(out.data()).unwrap();
        let redirect = causeway_packet::wire::ndisc::Redirect::new_checked(ip.payload()).unwrap();
        assert_eq!(
            (redirect.target().octets(), redirect.destination().to_string()),
            ([0xfe; 16], "2001:db8::2".into())
        );
        assert_eq!((ip.hop_limit(), ip.payload().len()), (255, 8 + 32 + 8 + 48));
        let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(ip.pseudo_header(58, ip.payload().len() as u32)));
    }

    #[test]
    fn rfc_4443_forbids_some() {
        let about = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut b = bytes(9, &[3, 0, 0, 0, 0, 0, 0, 0]);
            change(&mut b);
            error("3, 0", marked(&b, 0)).err()
        };
        assert_eq!(about(&|_| {}), None);
        assert_eq!(about(&|b| b[6] = 58), Some("suppressed"), "about an error");
        assert_eq!(about(&|b| (b[6], b[40]) = (58, 128)), None, "about an echo request");
        assert_eq!(about(&|b| b[24] = 0xff), Some("suppressed"), "to a group");
        assert_eq!(about(&|b| b[8] = 0xff), Some("suppressed"), "from a group");
        assert_eq!(about(&|b| b[8..24].fill(0)), Some("suppressed"), "from nobody");
        assert_eq!(about(&|b| b.truncate(39)), Some("no-header"));
        let mut p = marked(&bytes(9, b""), 0);
        p.set_packet_type(PacketType::Broadcast);
        assert_eq!(error("3, 0", p).err(), Some("suppressed"));
        let mut group = bytes(9, b"");
        group[24] = 0xff;
        assert_eq!(error("2, 0", marked(&group, 0)).err(), None, "path MTU discovery of groups needs it");
    }

    #[test]
    fn rate_and_arguments_are_limited() {
        let mut h = Harness::new(&SPEC, &format!("{SRC}, 3, 0, RATE 40"), 1, 1).unwrap();
        h.push_all(0, (0..5).map(|_| marked(&bytes(1, b""), 0)));
        assert_eq!((h.take(0).len(), h.drops()), (2, vec![("rate-limited", 3)]));
        // There is one each 25 ms, and never more than a twentieth of RATE at once.
        let mut more = |ns: u64| {
            h.advance(ns);
            h.push_all(0, (0..5).map(|_| marked(&bytes(1, b""), 0)));
            h.take(0).len()
        };
        assert_eq!([more(24_000_000), more(1_000_000), more(60_000_000_000)], [0, 1, 2]);
        let mut odd = Harness::new(&SPEC, &format!("{SRC}, 3, 0, RATE 41"), 1, 1).unwrap();
        odd.push_all(0, (0..5).map(|_| marked(&bytes(1, b""), 0)));
        assert_eq!(odd.take(0).len(), 3);
        h.write("mtu", "1300").unwrap();
        assert_eq!((h.read("mtu").unwrap(), h.read("src").unwrap()), ("1300".into(), SRC.into()));
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("::1, 128, 0"), ["ICMP6 type 128 is not an error or redirect type"]);
        assert_eq!(errors("::1, 3"), ["CODE: required argument missing"]);
    }
}
