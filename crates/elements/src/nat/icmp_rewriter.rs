//! ICMPRewriter.

use super::apply::{Headers, get_u16, get_u32, put_u16, set_identifier};
use super::flow_id::FlowId;
use super::kind::Kind;
use super::options::{DST_ANNO, REPLY_ANNO};
use super::rewriter::{Rewriter, with_peer};
use causeway_engine::Peer;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::args::{split_args, split_words};
use causeway_packet::checksum::{update_u16, update_u32};
use causeway_packet::wire::icmpv4::kind as icmp;
use causeway_packet::wire::protocol;

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPRewriter",
    category: "nat",
    summary: "rewrites ICMP errors about rewritten packets",
    ports: "1/1-",
    processing: "h/h",
    doc: "An ICMP error tells of a packet that went out, which it quotes as it was after rewriting. This finds the flow of that packet \
          in the tables of the rewriters that MAPS names, in their order, and makes the error one about the packet as it was before: \
          the quoted addresses, ports and identifier, all checksums, and the destination of the error itself. Knows destination \
          unreachable, source quench, redirect, time exceeded and parameter problem; what it does not know, or no rewriter knows the \
          flow of, is dropped. What is rewritten leaves by output 0, or, where a rewriter's name in MAPS has `:OFFSET` behind it, by the \
          output for packets of that direction of the flow, plus OFFSET.",
    args: &[required("MAPS", "elements", "rewriters, each with `:OFFSET` or without"), DST_ANNO, REPLY_ANNO],
    drops: Reason::DOCS,
    example: "rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, drop); Idle -> rw; Idle -> [1]rw; rw[0] -> Discard; \
              rw[1] -> Discard; Idle -> ICMPRewriter(rw) -> Discard;",
    see: &["IPRewriter", "ICMPPingRewriter"],
    copies: Copies::One,
    lives_with: companions,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotIcmp = "not-icmp", "it is no ICMP message with marked headers";
        NotAnError = "not-an-error", "it is no ICMP error, or one that quotes no IPv4 header";
        NoMapping = "no-mapping", "no rewriter knows the flow of the quoted packet";
    }
}

struct Map {
    name: String,
    /// What is added to the number of the output; `None` = all leave by output 0.
    offset: Option<usize>,
    rewriter: Option<Peer>,
}

struct ICMPRewriter {
    maps: Vec<Map>,
    dst_anno: bool,
    reply_anno: Option<u8>,
}

fn companions(config: &str) -> Vec<String> {
    let args = split_args(config);
    let words = args.first().map(|maps| split_words(maps)).unwrap_or_default();
    words.iter().map(|w| w.split(':').next().unwrap_or_default().to_owned()).collect()
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let words = conf.required::<Vec<String>>("MAPS");
    let dst_anno = conf.keyword("DST_ANNO", true);
    let reply_anno = conf.keyword_given::<Anno>("REPLY_ANNO").map(|a| a.offset);
    let mut maps = Vec::new();
    for word in &words {
        let (name, offset) = match word.split_once(':') {
            None => (word.as_str(), Ok(None)),
            Some((name, offset)) => (name, u32::parse(offset, &conf.scope()).map(|n| Some(n as usize))),
        };
        let is_rewriter = conf.element(name).is_some_and(|(_, class)| Kind::of_class(class).is_some());
        match offset {
            Ok(offset) if is_rewriter => maps.push(Map { name: name.to_owned(), offset, rewriter: None }),
            _ => conf.error(format!("{word} not an IP rewriter")),
        }
    }
    if maps.is_empty() {
        conf.error("no IP rewriters supplied");
    }
    conf.finish()?;
    Ok(Box::new(ICMPRewriter { maps, dst_anno, reply_anno }))
}

/// The quoted packet, in an ICMP message.
struct Quoted {
    /// Where its transport header is.
    transport: usize,
    protocol: u8,
    /// The flow of a packet that would answer it.
    answer: FlowId,
    /// Whether ports or an identifier are there.
    has_transport: bool,
}

impl Quoted {
    fn of(message: &[u8]) -> Option<Quoted> {
        const ERRORS: [u8; 5] = [
            icmp::UNREACHABLE,
            4, // source quench
            icmp::REDIRECT,
            icmp::TIME_EXCEEDED,
            icmp::PARAMETER_PROBLEM,
        ];
        let ip = message.get(8..28).filter(|_| ERRORS.contains(&message[0]))?;
        let transport = 8 + usize::from(ip[0] & 15) * 4;
        if ip[0] >> 4 != 4 || transport < 28 {
            return None;
        }
        let is_first = get_u16(ip, 6) & 0x1fff == 0;
        let mut quoted = Quoted {
            transport,
            protocol: ip[9],
            answer: FlowId::new(get_u32(ip, 16), 0, get_u32(ip, 12), 0),
            has_transport: false,
        };
        match ip[9] {
            protocol::TCP | protocol::UDP | 33 if is_first && message.len() >= transport + 8 => {
                quoted.answer.source_port = get_u16(message, transport + 2);
                quoted.answer.destination_port = get_u16(message, transport);
                quoted.has_transport = true;
            }
            protocol::ICMP
                if is_first && message.len() >= transport + 6 && message[transport] == icmp::ECHO_REQUEST =>
            {
                quoted.answer.source_port = get_u16(message, transport + 4);
                quoted.has_transport = true;
            }
            _ => {}
        }
        Some(quoted)
    }
}

/// Changes a word of an ICMP message, and its checksum with it.
fn patch(message: &mut [u8], at: usize, new: u16) {
    let old = get_u16(message, at);
    put_u16(message, at, new);
    let sum = update_u16(get_u16(message, 2), old, new);
    put_u16(message, 2, sum);
}

fn patch_u32(message: &mut [u8], at: usize, new: u32) {
    patch(message, at, (new >> 16) as u16);
    patch(message, at + 2, new as u16);
}

/// Makes the quoted packet the one that `new` answers.
fn unrewrite(message: &mut [u8], quoted: &Quoted, new: FlowId) {
    let (old, new) = (quoted.answer.reverse(), new.reverse());
    let sum = update_u32(get_u16(message, 18), old.source, new.source);
    patch(message, 18, update_u32(sum, old.destination, new.destination));
    patch_u32(message, 20, new.source);
    patch_u32(message, 24, new.destination);
    if !quoted.has_transport {
        return;
    }
    let at = quoted.transport;
    if quoted.protocol == protocol::ICMP {
        // The identifier is where a port would be; its own checksum covers it.
        let mut head = [0; 8];
        let len = message.len().min(at + 8) - at;
        head[..len].copy_from_slice(&message[at..at + len]);
        set_identifier(&mut head, new.source_port);
        patch(message, at + 4, get_u16(&head, 4));
        patch(message, at + 2, get_u16(&head, 2));
        return;
    }
    patch(message, at, new.source_port);
    patch(message, at + 2, new.destination_port);
    let sum_at = match quoted.protocol {
        protocol::TCP if message.len() >= at + 18 => at + 16,
        protocol::UDP if get_u16(message, at + 6) != 0 => at + 6,
        _ => return,
    };
    let sum = update_u32(get_u16(message, sum_at), old.source, new.source);
    let sum = update_u32(sum, old.destination, new.destination);
    let sum = update_u16(sum, old.source_port, new.source_port);
    patch(message, sum_at, update_u16(sum, old.destination_port, new.destination_port));
}

impl Element for ICMPRewriter {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        for map in &mut self.maps {
            let peer = cx.find_peer(&map.name)?;
            map.rewriter = Some(peer);
            let outputs = cx.n_outputs();
            if map.offset.is_some_and(|offset| offset + cx.peer_outputs(peer) > outputs) {
                let (name, offset) = (&map.name, map.offset.unwrap_or_default());
                let plural = if outputs == 1 { "output" } else { "outputs" };
                return Err(Error::new(format!(
                    "{name}:{offset} port offset requires more than {outputs} {plural}"
                )));
            }
        }
        Ok(())
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let headers = Headers::of(packet).filter(|h| h.protocol == protocol::ICMP);
        let Some(headers) = headers else { return Verdict::drop(Reason::NotIcmp) };
        let Some(quoted) = Quoted::of(headers.transport(packet)) else {
            return Verdict::drop(Reason::NotAnError);
        };
        let look_up = |rewriter: &Rewriter, flows: &mut super::flows::Flows| {
            let (id, direction) = rewriter.entry(flows, quoted.protocol, quoted.answer, true)?;
            let flow = flows.get(id)?;
            let new = rewriter.answer(flow.leaves(direction), direction, quoted.answer);
            Some((new, direction, flow.outputs, flow.reply_anno))
        };
        let found = self.maps.iter().find_map(|map| {
            let found = with_peer(cx, map.rewriter?, look_up).flatten()?;
            Some((found, map.offset))
        });
        let Some(((new, direction, outputs, reply_anno), offset)) = found else {
            return Verdict::drop(Reason::NoMapping);
        };
        if headers.destination == quoted.answer.destination {
            headers.set_addresses(packet, headers.source, new.destination);
            if self.dst_anno {
                packet.set_dst_ip(new.destination.to_be_bytes());
            }
        }
        if let Some(at) = self.reply_anno.filter(|_| direction == 1) {
            packet.set_anno_u8(at, reply_anno);
        }
        if let Some(message) = packet.transport_header_mut() {
            unrewrite(message, &quoted, new);
        }
        Verdict::Out(offset.map_or(0, |offset| offset + usize::from(outputs[direction])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_packet::checksum::{Sum, checksum, pseudo_header_v4};
    use proptest::prelude::*;

    /// An error that quotes the first bytes of a UDP datagram, all checksums right.
    fn error(len: usize, source: u32, port: u16, with_sum: bool) -> Vec<u8> {
        let mut quoted = vec![0x45, 0, 0, 36, 0, 7, 0, 0, 60, 17, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6];
        quoted[12..16].copy_from_slice(&source.to_be_bytes());
        let sum = checksum(&quoted);
        put_u16(&mut quoted, 10, sum);
        let mut udp = vec![0, 0, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        put_u16(&mut udp, 0, port);
        if with_sum {
            let sum = pseudo_header_v4(source.into(), [9, 8, 7, 6].into(), 17, 16).bytes(&udp).finish();
            put_u16(&mut udp, 6, sum);
        }
        let mut message = [vec![3, 3, 0, 0, 0, 0, 0, 0], quoted, udp].concat();
        message.truncate(len);
        let sum = Sum::new().bytes(&message).finish();
        put_u16(&mut message, 2, sum);
        message
    }

    proptest! {
        #[test]
        fn what_is_quoted_becomes_what_it_was(
            a in any::<u32>(), b in any::<u32>(), p in 1u16.., q in 1u16.., len in 36usize..53, with_sum in any::<bool>()
        ) {
            let mut message = error(len, a, p, with_sum);
            let quoted = Quoted::of(&message).unwrap();
            let new = FlowId::new(0x0908_0706, 53, b, q);
            unrewrite(&mut message, &quoted, new);
            prop_assert_eq!(message, error(len, b, q, with_sum));
        }

        #[test]
        fn any_message_is_read_without_a_panic(mut message in prop::collection::vec(any::<u8>(), 0..80), kind in 0usize..8) {
            if let (Some(first), Some(kind)) = (message.first_mut(), [3u8, 4, 5, 11, 12].get(kind)) {
                *first = *kind;
            }
            if let Some(quoted) = Quoted::of(&message) {
                unrewrite(&mut message, &quoted, FlowId::default());
            }
        }
    }
}
