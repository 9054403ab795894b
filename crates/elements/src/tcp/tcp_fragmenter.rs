//! TCPFragmenter.

use crate::ip::ip_fragmenter::derived;
use causeway_engine::prelude::*;
use causeway_packet::wire::tcp::Tcp;
use causeway_packet::wire::{Ipv4, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "TCPFragmenter",
    category: "tcp",
    summary: "cuts TCP packets that are too long into shorter ones",
    processing: "h/h",
    doc: "Cuts TCP packets whose IP packet is longer than MTU into packets of at most MTU bytes, as the sender could have: each has all \
          headers, link header included, a sequence number of its own and right checksums; FIN stays in the last alone. What is \
          not a whole TCP packet with a marked IPv4 header passes, and so does what has headers as long as MTU.",
    args: TCPFragmenter::ARGS,
    handlers: handlers!(TCPFragmenter::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> IPEncap(tcp, 1.0.0.1, 1.0.0.2) -> TCPFragmenter(MTU 576) -> Discard;",
    see: &["IPFragmenter"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoBuffer = "no-buffer", "there was no frame for a part; what is left of the packet goes";
    }
}

const FIN: u8 = 1;

settings! {
    struct TCPFragmenter {
        mtu: u16 = keyword("MTU", "bytes", "longest IP packet; default 0, no limit"), or(0);
        mtu_anno: Option<Anno> = keyword("MTU_ANNO", "annotation", "two bytes that say the longest IP packet where they are not zero and less than MTU"), or(None);
    }
    counts {
        fragments: u64 = reads("fragments", "packets that were made of longer ones").counts(Unit::Packets);
        fragmented_count: u64 = reads("fragmented_count", "packets that were cut").counts(Unit::Packets);
        count: u64 = reads("count", "packets that came").counts(Unit::Packets);
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let fragmenter = TCPFragmenter::configure(conf);
    if fragmenter.mtu == 0 && fragmenter.mtu_anno.is_none() && conf.errors().is_empty() {
        conf.error("At least one of MTU and MTU_ANNO must be set");
    }
    conf.finish()?;
    Ok(Box::new(fragmenter))
}

/// Where a packet is cut; lengths and places in bytes.
struct Cut {
    /// Where IP header, TCP header and payload begin.
    network: usize,
    transport: usize,
    payload: usize,
    /// Where the payload ends.
    end: usize,
    /// Payload of a part.
    part_len: usize,
    sequence: u32,
}

impl TCPFragmenter {
    fn mtu(&self, packet: &Packet) -> usize {
        let told = self.mtu_anno.map_or(0, |anno| u16::from_ne_bytes(packet.anno_bytes(anno.offset)));
        usize::from(match (self.mtu, told) {
            (mtu, 0) | (0, mtu) => mtu,
            (mtu, told) => mtu.min(told),
        })
    }

    /// How to cut `packet`; `None` if it passes.
    fn plan(&self, packet: &Packet) -> Option<Cut> {
        let network = packet.network_offset()?;
        let ip = Ipv4::new_checked(packet.network_header()?).ok()?;
        if ip.protocol() != protocol::TCP || ip.is_fragment() {
            return None;
        }
        let tcp = Tcp::new_checked(ip.payload()).ok()?;
        let headers_len = ip.header_len() + tcp.header_len();
        let part_len = self.mtu(packet).checked_sub(headers_len).filter(|len| *len > 0)?;
        let payload_len = tcp.payload().len();
        (payload_len >= part_len).then(|| Cut {
            network,
            transport: network + ip.header_len(),
            payload: network + headers_len,
            end: network + headers_len + payload_len,
            part_len,
            sequence: tcp.sequence(),
        })
    }

    /// Emits the parts of a packet. Its frame becomes that of the last.
    fn split(&mut self, mut packet: Packet, cut: &Cut, cx: &mut Cx<'_>) {
        let mut at = cut.payload;
        while at + cut.part_len < cut.end {
            let data = packet.data();
            let Some(mut part) = derived(&packet, &data[..cut.payload], &data[at..at + cut.part_len]) else {
                return cx.drop(Reason::NoBuffer, packet);
            };
            if packet.mac_header().is_some() {
                part.set_mac_header(0);
            }
            part.set_network_headers(cut.network, cut.transport - cut.network);
            seal(&mut part, cut, at, false);
            self.fragments += 1;
            cx.emit(0, part);
            at += cut.part_len;
        }
        packet.data_mut().copy_within(at..cut.end, cut.payload);
        packet.truncate(cut.payload + cut.end - at);
        packet.set_wire_len(0);
        seal(&mut packet, cut, at, true);
        self.fragments += 1;
        cx.emit(0, packet);
    }
}

/// Makes `part` that whose payload was at `at` in the packet.
fn seal(part: &mut Packet, cut: &Cut, at: usize, is_last: bool) {
    let total_len = (part.len() - cut.network) as u16;
    let Some(Ok(mut ip)) = part.data_mut().get_mut(cut.network..).map(Ipv4::new_quoted) else { return };
    ip.set_total_len(total_len);
    ip.fill_checksum();
    let pseudo_header = ip.pseudo_header(total_len - (cut.transport - cut.network) as u16);
    let Ok(mut tcp) = Tcp::new_checked(ip.payload_mut()) else { return };
    tcp.set_sequence(cut.sequence.wrapping_add((at - cut.payload) as u32));
    if !is_last {
        let flags = tcp.flags() & !FIN;
        tcp.set_flags(flags);
    }
    tcp.fill_checksum(pseudo_header);
}

impl Element for TCPFragmenter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count += batch.len() as u64;
        if batch.iter().all(|packet| self.plan(packet).is_none()) {
            return;
        }
        // All are emitted, so that parts stay between the packets that they came between.
        batch.filter_map(|packet| {
            match self.plan(&packet) {
                None => cx.emit(0, packet),
                Some(cut) => {
                    self.fragmented_count += 1;
                    self.split(packet, &cut, cx);
                }
            }
            None
        });
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::Harness;
    use proptest::prelude::*;

    /// A TCP packet behind `link` bytes, with options of `4 * words` bytes.
    fn segment(link: usize, words: usize, payload_len: usize, flags: u8) -> Packet {
        let mut tcp = vec![0; 20 + 4 * words];
        tcp[..8].copy_from_slice(&[0, 7, 0, 80, 0xff, 0xff, 0xff, 0xf0]);
        (tcp[12], tcp[13]) = (((5 + words) << 4) as u8, flags);
        tcp[20..].fill(1);
        tcp.extend((0..payload_len).map(|i| i as u8));
        let mut ip = corpus::datagram(&[], &tcp, 64, 0);
        ip[9] = protocol::TCP;
        let bytes = [&vec![0xee; link][..], &ip, &[0xaa; 3]].concat();
        corpus::marked(&bytes, link)
    }

    /// Sequence number, flags and payload of a part, which must be right in itself.
    fn part(packet: &Packet, mtu: usize) -> (u32, u8, Vec<u8>) {
        let ip = Ipv4::new_checked(packet.network_header().unwrap()).unwrap();
        let len = ip.total_len();
        assert!(ip.checksum_ok() && len as usize <= mtu);
        assert_eq!(packet.len(), packet.network_offset().unwrap() + len as usize);
        let tcp = Tcp::new_checked(ip.payload()).unwrap();
        assert!(tcp.checksum_ok(ip.pseudo_header(len - 20)));
        (tcp.sequence(), tcp.flags(), tcp.payload().to_vec())
    }

    #[test]
    fn parts_have_their_numbers_and_the_last_has_the_end() {
        let mut h = Harness::new(&SPEC, "MTU 100", 1, 1).unwrap();
        h.push(0, segment(14, 0, 130, 0x19));
        let out = h.take(0);
        let parts: Vec<_> = out.iter().map(|p| part(p, 100)).map(|(s, f, p)| (s, f, p.len(), p[0])).collect();
        assert_eq!(parts, [(0xffff_fff0, 0x18, 60, 0), (0x2c, 0x18, 60, 60), (0x68, 0x19, 10, 120)]);
        assert!(out.iter().all(|p| p.data()[..14] == [0xee; 14]));
        let counts = ["count", "fragmented_count", "fragments"].map(|name| h.read(name).unwrap());
        assert_eq!(counts, ["1", "1", "3"]);
    }

    #[test]
    fn what_is_short_or_no_segment_passes() {
        let mut h = Harness::new(&SPEC, "MTU 100", 1, 1).unwrap();
        let udp = corpus::marked(&corpus::datagram(&[], &[0; 200], 64, 0), 0);
        h.push_all(0, [segment(0, 0, 59, 1), udp, corpus::marked(&[], 0)]);
        assert_eq!(h.take(0).len(), 3);
        assert_eq!((h.read("count").unwrap(), h.read("fragmented_count").unwrap()), ("3".into(), "0".into()));
    }

    #[test]
    fn an_annotation_may_say_less() {
        for (config, told, parts) in [
            ("MTU 100, MTU_ANNO 4", 70, 4),
            ("MTU_ANNO 4", 70u16, 4),
            ("MTU_ANNO 4", 0, 1),
            ("MTU 100, MTU_ANNO 4", 200, 2),
        ] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            let mut packet = segment(0, 0, 120, 0);
            packet.set_anno_bytes(4, told.to_ne_bytes());
            h.push(0, packet);
            assert_eq!(h.take(0).len(), parts, "{config} {told}");
        }
        let error = Harness::new(&SPEC, "", 1, 1).err().unwrap();
        assert_eq!(error, ["At least one of MTU and MTU_ANNO must be set"]);
    }

    proptest! {
        #[test]
        fn parts_make_the_payload_again(link in 0usize..20, words in 0usize..10, len in 0usize..1_200, mtu in 90u16..700) {
            let mut h = Harness::new(&SPEC, &format!("MTU {mtu}"), 1, 1).unwrap();
            h.push(0, segment(link, words, len, 0x11));
            let out = h.take(0);
            if out.len() > 1 {
                let parts: Vec<_> = out.iter().map(|p| part(p, mtu.into())).collect();
                let ends = parts.iter().filter(|p| p.1 & FIN != 0).count();
                let whole: Vec<u8> = parts.into_iter().flat_map(|p| p.2).collect();
                prop_assert_eq!((ends, whole), (1, (0..len).map(|i| i as u8).collect()));
            } else {
                prop_assert!(len + 40 + 4 * words <= mtu.into());
            }
        }
    }
}
