//! FusedIPForward.

use super::pass::{Ask, Headers, Names, Pass, Rule};
use super::rules::{Halted, first_not_passed};
use crate::ethernet::drop_broadcasts::to_many;
use crate::ip::check_ip_header::bit;
use crate::ip::{dec_ip_ttl, header};
use crate::iproute::hops;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_fib::MISS;
use causeway_packet::BATCH;
use causeway_packet::wire::ethernet::{HEADER_LEN, ether_type, field};
use causeway_packet::wire::ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "FusedIPForward",
    category: "fuse",
    summary: "does in one pass what a standard router's chain does to an ordinary IPv4 packet",
    ports: "1/1-",
    processing: "h/h",
    phase: phase::DEFAULT,
    doc: "The optimiser puts this element in front of chains that it finds; configurations do not name it. An \
          ordinary packet is an IPv4 frame without options, to a host, whose header is good, that has a route, lives \
          long enough, fits the output's MTU and does not leave where it came in. It is painted, stripped, checked, \
          looked up, decremented and given an Ethernet header here, as far as the chain does so, and goes on behind \
          the last element whose work is done. Rules of IPFilter or IPClassifier in front of the table are asked here \
          too; what does not pass them goes on at their element. All others leave \
          by the last output untouched, to the chain itself; so do later packets of a batch to the same destination, \
          which keeps them in order.\n\n\
          The elements of the chain say what they do, and say it again when a handler has changed them. While that \
          is more than this element can do, all packets go to the chain.",
    args: &[
        keyword("START", "element", "the chain's first element, a classifier"),
        keyword("OUTPUT", "number", "its output that the chain starts at"),
        keyword("PATH", "elements", "what is between it and the table"),
        keyword("RULES", "elements", "those of PATH that are lists of rules"),
        keyword("TABLE", "element", "the routing table"),
        rest("BRANCH", "elements", "for each output of the table what is behind it, or -"),
    ],
    handlers: &[
        reads("count", "packets that took the short way").counts(Unit::Packets),
        reads("active", "whether any packet may take it"),
        reads("explanation", "what is fused, and what is not and why"),
    ],
    example: "// The optimiser writes it: causeway check --explain FILE says where.\n// FusedIPForward(...)\nIdle -> Discard;",
    see: &["Classifier", "CheckIPHeader", "StaticIPLookup", "DecIPTTL"],
    build,
    ..Spec::DEFAULT
};

struct FusedIpForward {
    own_name: String,
    names: Names,
    pass: Result<Pass, Error>,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let start = conf.keyword_required("START");
    let output = conf.keyword_required("OUTPUT");
    let path: Vec<String> = conf.keyword("PATH", Vec::new());
    let rules: Vec<String> = conf.keyword("RULES", Vec::new());
    let table = conf.keyword_required("TABLE");
    let branch = |text: &String| match text.as_str() {
        "-" => Vec::new(),
        names => names.split_ascii_whitespace().map(str::to_owned).collect(),
    };
    let branches = conf.rest().iter().map(branch).collect();
    conf.finish()?;
    let rules = path.iter().enumerate().filter(|(_, name)| rules.contains(name)).map(|(at, _)| at).collect();
    Ok(Box::new(FusedIpForward {
        own_name: conf.name().to_string(),
        names: Names { start, output, path, rules, table, branches },
        pass: Err(Error::new("nobody was asked yet")),
        count: conf.counter("count"),
    }))
}

/// Bytes of the two headers of an ordinary packet.
const HEADERS_LEN: usize = HEADER_LEN + ipv4::HEADER_LEN;

/// The bytes where an IPv4 frame has its destination.
#[inline(always)]
fn destination(packet: &Packet) -> Option<u32> {
    let bytes = packet.data().get(HEADER_LEN + ipv4::field::DST.start..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

impl Pass {
    /// The destination of a packet that may be ordinary, as far as can be told before the lookup; else `None`.
    #[inline(always)]
    fn ordinary(&self, packet: &Packet) -> Option<u32> {
        // One look at the length for both headers.
        packet.data().first_chunk::<HEADERS_LEN>()?;
        let (link, data) = packet.data().split_first_chunk::<HEADER_LEN>()?;
        let ethernet = link[field::ETHER_TYPE] == ether_type::IPV4.to_be_bytes();
        // Without options, so that the length of what is summed is known when this is compiled.
        let plain = data.first() == Some(&0x45);
        let asks = packet.anno_u8(Anno::FIX_IP_SRC.offset) != 0;
        if !(ethernet && plain) || to_many(packet.packet_type()) || asks {
            return None;
        }
        let h = header::check(data, self.check.checksum).ok()?;
        if self.check.sources.is_bad(h.source, h.destination) {
            return None;
        }
        Some(h.destination)
    }

    /// Does the chain's work on a packet whose hop is known and that goes to `next`; changes nothing if it is not ordinary
    /// after all.
    #[inline(always)]
    fn forward(&self, packet: &mut Packet, rule: &Rule, next: u32, now_ns: u64) -> bool {
        let effect = &rule.effect;
        let painted = self.paint.unwrap_or_else(|| packet.paint());
        let Some(headers) = packet.data_mut().first_chunk_mut::<HEADERS_LEN>() else { return false };
        let Some((link, h)) = headers.split_first_chunk_mut::<HEADER_LEN>() else { return false };
        let Some(h) = h.first_chunk_mut::<{ ipv4::HEADER_LEN }>() else { return false };
        let total_len = u16::from_be_bytes([h[2], h[3]]);
        if effect.copied_paint == Some(painted) || total_len > effect.mtu {
            return false;
        }
        let header = match &rule.headers {
            None => None,
            Some(Headers::Fixed(header)) => Some(*header),
            Some(Headers::Found(cache)) => match cache.find(next, now_ns) {
                Some(header) => Some(header),
                None => return false,
            },
        };
        if effect.ttl && !dec_ip_ttl::decrement(h) {
            return false;
        }
        match header {
            Some(header) => {
                *link = header;
                packet.frame_as(HEADER_LEN, ipv4::HEADER_LEN, total_len.into());
            }
            None => {
                // The header was found behind these bytes.
                let _ = packet.pull(HEADER_LEN);
                packet.truncate(total_len.into());
                packet.set_network_headers(0, ipv4::HEADER_LEN);
            }
        }
        if let Some(paint) = self.paint {
            packet.set_paint(paint);
        }
        packet.set_dst_ip(next.to_be_bytes());
        true
    }

    /// For each packet that may be ordinary the number of the first rules that it does not pass, counted from 1; one that is too
    /// short to tell is none.
    #[inline]
    fn sift(&self, batch: &Batch, addresses: &mut [u32; BATCH]) -> [u8; BATCH] {
        let mut not_passed = [0; BATCH];
        if self.sieves.is_empty() {
            return not_passed;
        }
        let packets = batch.iter().zip(addresses).zip(&mut not_passed);
        for ((packet, address), not_passed) in packets.filter(|((_, address), _)| **address != 0) {
            match first_not_passed(&self.sieves, packet) {
                Some(number) => *not_passed = number,
                None => *address = 0,
            }
        }
        not_passed
    }

    /// Forwards the ordinary packets of `batch` by the outputs of the table, and the others by output `detour`.
    /// Returns how many were ordinary.
    fn run(&mut self, batch: &mut Batch, detour: usize, cx: &mut Cx<'_>) -> u64 {
        let n = batch.len();
        let now_ns = if self.asks_time() { cx.now_ns() } else { 0 };
        // An address of 0 has no route, or one that the chain may follow.
        let mut addresses = [0u32; BATCH];
        let mut found = [MISS; BATCH];
        batch.iter().take(8).for_each(|p| p.prefetch_data());
        for (i, (packet, address)) in batch.iter().zip(&mut addresses).enumerate() {
            batch.prefetch_data(i + 8);
            *address = self.ordinary(packet).unwrap_or(0);
        }
        let this = &*self;
        let not_passed = this.sift(batch, &mut addresses);
        let round = this.table.participant.pin();
        this.table.reader.look_up(&round, &addresses[..n], &mut found[..n]);
        let hops = this.table.hops.under(&round);
        // The last output is delivered last: what takes the detour comes behind what was before it.
        let mut outputs = [detour as u32; BATCH];
        let (mut taken, mut detours, mut halted) = (0, 0u64, Halted::default());
        let looked_up = addresses.iter().zip(&found).zip(&not_passed).zip(&mut outputs);
        for (packet, (((&address, &found), &not_passed), output)) in batch.iter_mut().zip(looked_up) {
            let goes = address != 0 && (detours == 0 || detours & bit(address) == 0);
            if goes
                && !this.sieves.is_empty()
                && let Some(place) = halted.place(not_passed, address)
                && let Some(rules) = this.sieves.get(place)
            {
                rules.halt(packet, address);
                *output = rules.output as u32;
                continue;
            }
            let hop = if goes { hops::hop(&hops, found) } else { None };
            let rule = hop.and_then(|h| this.rules.get(h.port as usize));
            if let (Some(hop), Some(rule)) = (hop, rule)
                && this.forward(packet, rule, hop.next(address), now_ns)
            {
                taken += 1;
                *output = rule.output as u32;
            } else {
                detours |= destination(packet).map_or(0, bit);
            }
        }
        cx.emit_each(batch, &outputs[..n]);
        for (before, counter) in self.good.iter().enumerate() {
            counter.add(taken + halted.counted(&self.sieves, before + 1));
        }
        taken + halted.counted(&self.sieves, 0)
    }
}

impl FusedIpForward {
    fn explanation(&self) -> String {
        let name = &self.own_name;
        let pass = match &self.pass {
            Ok(pass) => pass,
            Err(why) => return format!("{name}: fuses nothing: {why}"),
        };
        let left = pass.left.iter().map(|left| format!("\n{name}: leaves {left}"));
        format!("{name}: ordinary packets go past {}", self.names.start) + &left.collect::<String>()
    }
}

impl Element for FusedIpForward {
    fn fuse(&mut self, ask: Ask<'_>) -> Option<String> {
        self.pass = Pass::of(&self.names, ask);
        Some(self.explanation())
    }

    fn goes_past(&self) -> Vec<Vec<(String, usize)>> {
        let Names { start, output, path, rules, table, branches } = &self.names;
        let straight = |names: &[String]| names.iter().map(|name| (name.clone(), 0)).collect::<Vec<_>>();
        let before = |past: &[String]| [vec![(start.clone(), usize::from(*output))], straight(past)].concat();
        let common = before(path);
        let stop = |port: usize, past: &[String]| {
            [common.clone(), vec![(table.clone(), port)], straight(past)].concat()
        };
        let branches = branches.iter().enumerate();
        branches
            .flat_map(|(port, b)| (0..=b.len()).map(move |past| (port, &b[..past])))
            .map(|(port, past)| stop(port, past))
            .chain(rules.iter().rev().map(|&place| before(&path[..place])))
            .collect()
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let detour = self.names.detour();
        match &mut self.pass {
            Ok(pass) => self.count.add(pass.run(batch, detour, cx)),
            Err(_) => {
                let mut all = cx.lend_batch();
                all.append(batch);
                cx.emit_batch(detour, all);
            }
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "count" => self.count.get().to_string(),
            "active" => self.pass.is_ok().to_string(),
            _ => self.explanation() + "\n",
        })
    }
}
