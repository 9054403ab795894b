//! TruncateIPPayload.

use causeway_engine::prelude::*;
use causeway_packet::wire::{ipv4, protocol, tcp, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "TruncateIPPayload",
    category: "ip",
    summary: "shortens payloads of IP packets to a length",
    doc: "Cuts what IP packets have beyond LENGTH bytes of payload from their end, and adds it to the EXTRA_LENGTH annotation. The \
          payload is what is behind the TCP, UDP or ICMP header, or with TRANSPORT false behind the IP header. Packets without a marked network header \
          are cut to LENGTH bytes. Lengths and checksums in headers stay.",
    args: TruncateIPPayload::ARGS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> TruncateIPPayload(10) -> Discard;",
    see: &["Truncate", "EraseIPPayload"],
    build: configured::<TruncateIPPayload>,
    ..Spec::DEFAULT
};

settings! {
    struct TruncateIPPayload {
        length: u16 = optional("LENGTH", "bytes", "most bytes of payload; default 0"), or(0);
        transport: bool = optional("TRANSPORT", "boolean", "whether the transport header is no payload; default true"), or(true);
        extra: bool = keyword("EXTRA_LENGTH", "boolean", "whether what is cut is added to the annotation; default true"), or(true);
    }
}

/// Bytes of IP and transport header, as far as they can be told from `ip`.
fn headers_len(ip: &[u8], transport: bool) -> usize {
    let header_len = usize::from(ip.first().map_or(0, |first| first & 15)) * 4;
    if header_len < ipv4::HEADER_LEN {
        return ipv4::HEADER_LEN;
    }
    let behind = ip.get(header_len..).unwrap_or_default();
    let transport_len = match ip.get(9) {
        Some(&protocol::TCP) => match behind.get(12).map(|byte| usize::from(byte >> 4) * 4) {
            Some(len) if len >= tcp::HEADER_LEN => len,
            _ => tcp::HEADER_LEN,
        },
        Some(&protocol::UDP) => udp::HEADER_LEN,
        Some(&protocol::ICMP) if behind.len() >= 8 => {
            if matches!(behind[0], 13 | 14) {
                20
            } else {
                8
            }
        }
        _ => 0,
    };
    header_len + if transport { transport_len } else { 0 }
}

impl Element for TruncateIPPayload {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let (len, headers) = match packet.network_header() {
            Some(ip) => (ip.len(), headers_len(ip, self.transport)),
            None => (packet.len(), 0),
        };
        let beyond = len.saturating_sub(headers + usize::from(self.length));
        if packet.take(beyond).is_ok() && self.extra {
            let before = packet.anno_u32(Anno::EXTRA_LENGTH.offset);
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, before.saturating_add(beyond as u32));
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn payloads_are_cut() {
        let ip = |protocol: u8, byte12: u8| {
            let mut payload = vec![0; 60];
            payload[12] = byte12;
            let mut bytes = corpus::datagram(&[], &payload, 9, 0);
            bytes[9] = protocol;
            corpus::marked(&[&[0; 14][..], &bytes].concat(), 14)
        };
        for (config, p, len) in [
            ("3", ip(protocol::UDP, 0), 14 + 20 + 8 + 3),
            ("3", ip(protocol::TCP, 0x60), 14 + 20 + 24 + 3),
            ("", ip(protocol::TCP, 0x40), 14 + 20 + 20),
            ("3", ip(protocol::ICMP, 0), 14 + 20 + 8 + 3),
            ("3", ip(99, 0), 14 + 20 + 3),
            ("3, false", ip(protocol::UDP, 0), 14 + 20 + 3),
            ("100", ip(protocol::UDP, 0), 94),
            ("3", packet(b"unmarked"), 3),
        ] {
            let before = p.len();
            let out = verdict(&SPEC, config, p).unwrap();
            let extra = out.anno_u32(Anno::EXTRA_LENGTH.offset) as usize;
            assert_eq!((out.len(), extra), (len, before - len), "{config}");
        }
        let out = verdict(&SPEC, "3, EXTRA_LENGTH false", packet(b"unmarked")).unwrap();
        assert_eq!(out.anno_u32(Anno::EXTRA_LENGTH.offset), 0);
    }
}
