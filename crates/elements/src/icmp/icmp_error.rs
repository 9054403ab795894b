//! ICMPError.

use super::names;
use super::report::{Report, Route, headers_len, source_route};
use crate::ethernet::drop_broadcasts::to_many;
use crate::token_bucket::TokenBucket;
use causeway_engine::prelude::*;
use causeway_engine::value::{Prefix4, Value};
use causeway_engine::{Defaults, Scope};
use causeway_packet::wire::icmp_error::MAX_V4_LEN;
use causeway_packet::wire::icmpv4::{kind, unreachable};
use causeway_packet::wire::{Icmpv4Error, Ipv4, icmpv4, ipv4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

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
          addresses that are not one host's, or from or to BADADDRS. No redirect is sent for source-routed packets, \
          nor, if SRC has a prefix length, to hosts or about gateways outside of that network (§5.2.7.2). No more \
          than RATE errors are made a second (§4.3.2.8). Packets without an error are dropped.\n\n\
          The error about a source-routed packet has the route that it came by, reversed, unless it is a parameter \
          problem of that route (§4.3.2.6).",
    args: &[
        required(
            "SRC",
            "IP address",
            "source of the errors; with a prefix length also the network that redirects are for",
        ),
        required("TYPE", "ICMP error type", "by name or number: unreachable, redirect, timeexceeded …"),
        optional("CODE", "ICMP code", "by name or number: host, needfrag, transit …; default 0"),
        optional(
            "BADADDRS",
            "IP addresses",
            "addresses not to answer or report about, such as broadcast addresses",
        ),
        keyword(
            "MTU",
            "bytes",
            "longest error made, from 96 as far as a frame reaches; default 576 (§4.3.2.3)",
        ),
        keyword("PMTU", "bytes", "next-hop MTU reported by `unreachable, needfrag`; default 0, unknown"),
        keyword(
            "RATE",
            "errors a second",
            "most errors made, a twentieth of it at once; 0 = no limit; default 1000, and 0 under the name click",
        ),
        keyword("USE_FIX_ANNO", "boolean", "whether to set the fix-source annotation; default true"),
        keyword("SET_FIX_ANNO", "boolean", "the same as USE_FIX_ANNO"),
    ],
    handlers: &[
        reads_writes("src", "source of the errors"),
        reads_writes("mtu", "longest error, in bytes"),
        reads_writes("pmtu", "what the next hop takes, in bytes"),
        CONFIG,
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> ICMPError(2.0.0.1, unreachable, host) -> Discard;",
    see: &["FixIPSrc", "DecIPTTL", "ICMPPingResponder"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Suppressed = "suppressed", "RFC 1812 forbids an error about the packet";
        NoHeader = "no-header", "the packet has no IP header";
        NoBuffer = "no-buffer", "there was no frame for the error";
        OffLink = "off-link", "a redirect to a host or about a gateway that is not in the network of SRC";
        RateLimited = "rate-limited", "there were more errors than RATE allows";
    }
}

/// Headers of the error, a full header of the packet and eight bytes of what it carries.
const LEAST_MTU: usize = 96;
/// Errors a second, where Click's defaults do not hold.
const RATE: u32 = 1_000;

struct IcmpError {
    src: Prefix4,
    message_type: u8,
    code: u8,
    /// What the next hop takes, for `unreachable, needfrag`.
    pmtu: u16,
    bad: Vec<Ipv4Addr>,
    mtu: usize,
    fix_anno: bool,
    limit: Option<TokenBucket>,
    /// Identification of the next error of the router.
    identification: Arc<AtomicU16>,
}

/// The source, and its network if there is a prefix length.
struct Source(Prefix4);

impl Value for Source {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        Prefix4::parse(text, scope).map(Source).map_err(|_| Error::new("parse error"))
    }

    fn placeholder() -> Self {
        Source(Prefix4::placeholder())
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Source(src) = conf.required("SRC");
    let (kind_text, code_text): (String, String) =
        (conf.required("TYPE"), conf.optional("CODE", String::new()));
    let bad_text: Vec<String> = conf.optional("BADADDRS", Vec::new());
    let mtu = conf.keyword("MTU", MAX_V4_LEN as u16) as usize;
    let pmtu = conf.keyword("PMTU", 0u16);
    let rate = conf.keyword("RATE", if conf.env.defaults == Defaults::Click { 0 } else { RATE });
    let fix_anno = conf.keyword("SET_FIX_ANNO", true);
    let fix_anno = conf.keyword("USE_FIX_ANNO", fix_anno);
    let message_type = match names::icmp_type(&kind_text) {
        Some(t) if is_error(t) => t,
        None if kind_text.is_empty() => 0,
        _ => {
            conf.bad_argument("TYPE", "invalid number");
            0
        }
    };
    let code = if code_text.is_empty() { Some(0) } else { names::icmp_code(message_type, &code_text) };
    if code.is_none() {
        conf.error("argument 2 takes ICMP code (integer between 0 and 255)");
    }
    let bad = bad_text.iter().filter_map(|a| conf.parse::<Ipv4Addr>("BADADDRS", a)).collect();
    if mtu < LEAST_MTU {
        conf.error(format!("MTU: must be at least {LEAST_MTU}"));
    }
    conf.finish()?;
    let code = code.unwrap_or(0);
    let limit = TokenBucket::of_errors(rate, conf);
    let first = || AtomicU16::new(1);
    let identification = conf.env.persistent("identification of ICMP errors", first).ok_or(Invalid)?;
    Ok(Box::new(IcmpError { src, message_type, code, pmtu, bad, mtu, fix_anno, limit, identification }))
}

fn is_error(message_type: u8) -> bool {
    use kind::{PARAMETER_PROBLEM, REDIRECT, SOURCE_QUENCH, TIME_EXCEEDED, UNREACHABLE};
    matches!(message_type, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

impl IcmpError {
    /// Whether RFC 1812 lets there be an error about a packet at all; else the reason why not.
    fn may_answer(&self, packet: &Packet, ip: &Ipv4<&[u8]>) -> Result<(), Reason> {
        let is_bad = |address| self.bad.contains(&address);
        if to_many(packet.packet_type())
            || !Icmpv4Error::may_answer(ip)
            || is_bad(ip.src())
            || is_bad(ip.dst())
        {
            return Err(Reason::Suppressed);
        }
        if self.message_type != kind::REDIRECT {
            return Ok(());
        }
        let on_link = |address| self.src.len == 32 || self.src.contains(address);
        match source_route(ip.options_bytes()) {
            Some(_) => Err(Reason::Suppressed),
            None if on_link(ip.src()) && on_link(packet.dst_ip().into()) => Ok(()),
            None => Err(Reason::OffLink),
        }
    }

    /// The way back of a source-routed packet, unless the error is about its route.
    fn route(&self, ip: &Ipv4<&[u8]>, pointer: u8) -> Option<Route> {
        let (at, option) = source_route(ip.options_bytes())?;
        let at = ipv4::HEADER_LEN + at;
        let is_about = (at..at + option.len()).contains(&(pointer as usize));
        let is_problem = (self.message_type, self.code) == (kind::PARAMETER_PROBLEM, 0);
        if is_problem && is_about { None } else { Route::reversed(option) }
    }

    /// The error about `packet`, or why there is none.
    fn report(&mut self, packet: &Packet, now_ns: u64) -> Result<Packet, Reason> {
        let bytes = packet.network_header().ok_or(Reason::NoHeader)?;
        let ip = Ipv4::new_quoted(bytes).map_err(|_| Reason::NoHeader)?;
        self.may_answer(packet, &ip)?;
        if let Some(limit) = &mut self.limit {
            if limit.tokens(now_ns) == 0 {
                return Err(Reason::RateLimited);
            }
            limit.take(1);
        }
        let mut out = Packet::new().ok_or(Reason::NoBuffer)?;
        let pointer = packet.anno_u8(Anno::ICMP_PARAMPROB.offset);
        let route = self.route(&ip, pointer);
        // What lies behind the IP packet is padding.
        let len = (ip.total_len() as usize).max(ip.header_len()).min(bytes.len());
        let room = self.mtu.min(out.tailroom()).saturating_sub(headers_len(route.as_ref()));
        let report = Report {
            src: self.src.address,
            dst: ip.src(),
            identification: self.identification.fetch_add(1, Ordering::Relaxed),
            message_type: self.message_type,
            code: self.code,
            rest: match (self.message_type, self.code) {
                (kind::REDIRECT, _) => u32::from_be_bytes(packet.dst_ip()),
                (kind::PARAMETER_PROBLEM, 0) => (pointer as u32) << 24,
                (kind::UNREACHABLE, unreachable::FRAGMENTATION_NEEDED) => self.pmtu.into(),
                _ => 0,
            },
            route,
            quoted: &bytes[..len.min(room)],
        };
        let to = out.put(report.len()).map_err(|_| Reason::NoBuffer)?;
        report.emit(to).map_err(|_| Reason::NoHeader)?;
        out.set_network_header(0);
        out.set_transport_header(headers_len(route.as_ref()) - icmpv4::HEADER_LEN);
        out.set_dst_ip(ip.src().octets());
        out.set_anno_u8(Anno::FIX_IP_SRC.offset, self.fix_anno as u8);
        out.set_timestamp_ns(now_ns);
        Ok(out)
    }
}

impl Element for IcmpError {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.report(packet, cx.now_ns()).map(|error| *packet = error).into()
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<IcmpError>() {
            std::mem::swap(self, new);
            // Which is one for all of the router.
            std::mem::swap(&mut self.identification, &mut new.identification);
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "src" => self.src.address.to_string(),
            "mtu" => self.mtu.to_string(),
            _ => self.pmtu.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "src" => self.src = cx.value::<Source>(handler, value)?.0,
            "mtu" => match cx.value::<u16>(handler, value)? as usize {
                mtu if mtu < LEAST_MTU => {
                    return Err(Error::new(format!("must be at least {LEAST_MTU}")).of("mtu"));
                }
                mtu => self.mtu = mtu,
            },
            _ => self.pmtu = cx.value(handler, value)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
