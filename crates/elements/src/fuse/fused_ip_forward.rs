//! FusedIPForward.

use super::parts::{self, HeaderPart, LookupPart};
use crate::ip::{dec_ip_ttl, header};
use causeway_engine::spec::{keyword, phase, reads, rest};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Spec};
use causeway_packet::{Anno, BATCH, Batch, Packet, PacketType};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) static SPEC: Spec = Spec {
    name: "FusedIPForward",
    category: "fuse",
    summary: "does in one pass what a standard router's chain does to an ordinary IPv4 packet",
    ports: "1/-",
    processing: "h/h",
    // After the elements that it takes parts from.
    phase: phase::SINK_DEVICE + 10,
    doc: "The optimiser puts this element in front of chains that it recognises; configurations do not name it. An \
          ordinary packet is an IPv4 frame without options, to a host, whose header is good, that has a route, lives \
          long enough, fits the output's MTU and does not leave where it came in. It is painted, stripped, checked, \
          looked up and decremented here and leaves by output k + 1 for output k of the routing table. All others \
          leave by output 0 untouched, to the chain itself.",
    args: &[
        keyword("TABLE", "element", "the routing table"),
        keyword("CHECK", "element", "the CheckIPHeader"),
        keyword("PAINT", "byte", "the paint that packets get"),
        keyword(
            "MEMBERS",
            "elements",
            "the chain: when a handler changes how one of them works, all packets go there",
        ),
        rest(
            "TEE TTL MTU",
            "rule",
            "for each output of the table: paint that is left to the chain or -, whether the \
              time to live is decremented, MTU or -",
        ),
    ],
    handlers: &[
        reads("count", "packets that took the short way"),
        reads("active", "whether any packet may take it"),
    ],
    example: "// The optimiser writes it: causeway check --explain FILE says where.\n// FusedIPForward(...)\nIdle -> Discard;",
    see: &["Classifier", "CheckIPHeader", "StaticIPLookup", "DecIPTTL"],
    build,
    ..Spec::DEFAULT
};

/// Bytes of the Ethernet header that the chain strips.
const STRIPPED: usize = 14;

/// What is done to the packets of one output of the table.
#[derive(Clone, Copy)]
struct Rule {
    tee: Option<u8>,
    ttl: bool,
    mtu: u16,
}

struct FusedIpForward {
    header: HeaderPart,
    table: LookupPart,
    paint: Option<u8>,
    rules: Vec<Rule>,
    members: Vec<String>,
    /// A handler has changed the chain.
    changed: Arc<AtomicBool>,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let table: String = conf.keyword_required("TABLE");
    let check: String = conf.keyword_required("CHECK");
    let paint = conf.keyword_given("PAINT");
    let members = conf.keyword("MEMBERS", Vec::new());
    let rules: Vec<Rule> = conf.rest().iter().filter_map(|text| rule(conf, text)).collect();
    conf.finish()?;
    let parts = (parts::of(conf, &check), parts::of(conf, &table));
    let (Some(header), Some(table)) = parts else {
        conf.error("the elements of the chain are not on the same worker");
        return Err(Invalid);
    };
    let count = conf.counter("count");
    Ok(Box::new(FusedIpForward { header, table, paint, rules, members, changed: Arc::default(), count }))
}

fn rule(conf: &mut Conf<'_>, text: &str) -> Option<Rule> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [tee, ttl, mtu] = words.as_slice() else {
        conf.error(format!("bad rule '{text}': should be 'TEE TTL MTU'"));
        return None;
    };
    let tee = if *tee == "-" { None } else { Some(conf.parse("TEE", tee)?) };
    let mtu = if *mtu == "-" { u32::from(u16::MAX) } else { conf.parse("MTU", mtu)? };
    Some(Rule { tee, ttl: conf.parse("TTL", ttl)?, mtu: mtu.min(u16::MAX.into()) as u16 })
}

impl FusedIpForward {
    /// The destination of a packet that may be ordinary, as far as can be told before the lookup; else `None`.
    #[inline(always)]
    fn ordinary(&self, packet: &Packet) -> Option<u32> {
        let (link, data) = packet.data().split_first_chunk::<STRIPPED>()?;
        let ethernet = link[12] == 8 && link[13] == 0;
        // Without options, so that the length of what is summed is known when this is compiled.
        let plain = data.first() == Some(&0x45);
        let to_host = !matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast);
        if !(ethernet && plain && to_host) || packet.anno_u8(Anno::FIX_IP_SRC.offset) != 0 {
            return None;
        }
        let h = header::check(data, self.header.checksum).ok()?;
        if self.header.sources.is_bad(h.source, h.destination) {
            return None;
        }
        Some(u32::from_be_bytes(h.destination))
    }

    /// Does the chain's work on a packet whose hop is known; gives it back if it is not ordinary after all.
    #[inline(always)]
    fn forward(&self, packet: &mut Packet, rule: Rule) -> bool {
        let painted = self.paint.unwrap_or_else(|| packet.paint());
        let Some(h) = packet.data_mut().get_mut(STRIPPED..).and_then(|d| d.first_chunk_mut::<20>()) else {
            return false;
        };
        let total_len = u16::from_be_bytes([h[2], h[3]]);
        if rule.tee == Some(painted) || total_len > rule.mtu {
            return false;
        }
        if rule.ttl && !dec_ip_ttl::decrement(h) {
            return false;
        }
        // The header was found behind these bytes.
        let _ = packet.pull(STRIPPED);
        packet.truncate(total_len as usize);
        packet.set_network_header(0);
        packet.set_transport_header(20);
        if let Some(paint) = self.paint {
            packet.set_paint(paint);
        }
        true
    }
}

impl Element for FusedIpForward {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        cx.watch(&self.members, &self.changed);
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.changed.load(Ordering::Relaxed) {
            return;
        }
        let n = batch.len();
        // An address of 0 has no route, or one that the chain may follow.
        let mut addresses = [0u32; BATCH];
        let mut found = [0u32; BATCH];
        batch.iter().take(8).for_each(|p| p.prefetch_data());
        for i in 0..n {
            batch.prefetch_data(i + 8);
            addresses[i] = self.ordinary(&batch[i]).unwrap_or(0);
        }
        self.table.reader.lookup_batch(&addresses[..n], &mut found[..n]);
        self.table.hops.current();
        let mut taken = 0;
        let mut i = 0;
        let this = &*self;
        let hops = this.table.hops.seen();
        batch.filter_map(|mut packet| {
            let at = i;
            i += 1;
            let hop = match addresses[at] {
                0 => None,
                _ => hops.get((found[at] as usize).wrapping_sub(1)),
            };
            let Some((hop, rule)) = hop.and_then(|h| Some((h, *this.rules.get(h.port as usize)?))) else {
                return Some(packet);
            };
            if !this.forward(&mut packet, rule) {
                return Some(packet);
            }
            let next = if hop.gateway != 0 { hop.gateway } else { addresses[at] };
            packet.set_dst_ip(next.to_be_bytes());
            taken += 1;
            cx.emit(hop.port as usize + 1, packet);
            None
        });
        self.header.good.add(taken);
        self.count.add(taken);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.count.get().to_string(),
            _ => (!self.changed.load(Ordering::Relaxed)).to_string(),
        })
    }
}
