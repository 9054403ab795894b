//! AggregateIPFlows.

use super::fragments::{Fragments, Hosts, flow_header};
use super::listeners::Ended;
use super::trace_info::TraceInfo;
use crate::flow_table::{FlowTable, Id, ROOM};
use crate::nat::{get_u16, get_u32};
use crate::out_file::Losses;
use causeway_engine::Peer;
use causeway_engine::prelude::*;
use causeway_engine::value::{Filename, Nanoseconds};
use causeway_lang::args::split_args;
use causeway_packet::wire::protocol;
use causeway_packet::wire::tcp::flag;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateIPFlows",
    category: "analysis",
    summary: "numbers TCP and UDP flows in the aggregate annotation",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Packets of a flow, by protocol, addresses and ports, get its number, in both directions; numbers begin with 1. The paint annotation is 0 in the direction of \
          the flow's first packet, else 1. A flow that was silent for its timeout, by timestamps, has ended, and so has a closed TCP connection when a SYN comes; then there is a new number. \
          With ICMP, errors get the number of the flow that they are about, and the paint of the packet that they quote plus 2. Other packets go to output 1, or are dropped.\n\n\
          With FRAGMENTS packets between two addresses are held while it is not known to which flow a fragment among them belongs, so that their order stays: until its first fragment came, or for \
          FRAGMENT_TIMEOUT; then they are dropped. `clear` lets what is held out. At most 4096 packets are held. CAPACITY flows are known at a time; for another one the flow that would end next ends, which `evicted` counts. \
          With TRACEINFO the packets of each flow are counted from 0; Click goes on with the count of an earlier flow between the same ports.",
    args: &[
        keyword("TCP_TIMEOUT", "seconds", "silence after which a TCP flow has ended; default 24 h"),
        keyword("TCP_DONE_TIMEOUT", "seconds", "the same when it was closed; default 30 s"),
        keyword("UDP_TIMEOUT", "seconds", "silence after which a UDP flow has ended; default 1 min"),
        keyword("FRAGMENT_TIMEOUT", "seconds", "for which fragments are held; default 30 s"),
        keyword("REAP", "seconds", "between searches for flows that have ended; default 20 min"),
        keyword("ICMP", "boolean", "whether ICMP errors belong to flows; default false"),
        keyword("FRAGMENTS", "boolean", "whether fragments do; default true unless packets are pulled"),
        keyword("TRACEINFO", "file name", "where each flow is written down in XML; `-` is standard output"),
        keyword("SOURCE", "element", "whose handlers `filename` and `packet_filepos` are written there too"),
        keyword("CAPACITY", "flows", "most flows known at a time; default 1048576"),
    ],
    handlers: &[
        writes("clear", "forgets all flows, and lets packets out that are held"),
        reads("evicted", "flows that ended to make room").counts(Unit::None),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 7, 1.0.0.2, 53) -> MarkIPHeader -> AggregateIPFlows -> Discard;",
    see: &["AggregateIP", "AggregateIPAddrPair", "AggregateCounter", "AggregateFirst"],
    copies: Copies::One,
    lives_with: |config| {
        let args = split_args(config);
        args.iter().filter_map(|a| Some(a.strip_prefix("SOURCE ")?.trim().to_owned())).collect()
    },
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoFlow = "no-flow", "the packet belongs to no TCP or UDP flow, and output 1 is not connected";
        LostFragment = "lost-fragment", "nothing has told to which flow the fragment belongs";
        Full = "full", "there is no place to hold another packet";
    }
}

/// Queues of flows.
mod queue {
    pub const TCP: usize = 0;
    pub const TCP_DONE: usize = 1;
    pub const UDP: usize = 2;
}

/// Both directions of a connection are closed.
const OVER: u8 = 3;

/// A flow that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub aggregate: u32,
    /// Whether its first packet came from the higher address.
    pub reverse: bool,
    /// Directions that are closed: 1 and 2.
    over: u8,
    is_tcp: bool,
    pub first_ns: u64,
    pub last_ns: u64,
    pub packets: [u32; 2],
    pub filepos: u64,
}

#[derive(Clone, Copy, Debug)]
struct Timeouts {
    tcp_s: u64,
    tcp_done_s: u64,
    udp_s: u64,
    fragment_s: u64,
    reap_s: u64,
}

pub(super) struct AggregateIPFlows {
    timeouts: Timeouts,
    icmp: bool,
    fragments: Option<bool>,
    flows: FlowTable<Flow, 1>,
    evicted: u64,
    next: u32,
    now_s: u64,
    reap_at_s: u64,
    held: Fragments,
    trace: Option<TraceInfo>,
    trace_name: String,
    losses: Arc<Losses>,
    source_name: String,
    source: Option<Peer>,
    pub ended: Ended,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut seconds =
        |name: &str, default: u64| conf.keyword(name, Nanoseconds(default * 1_000_000_000)).0 / 1_000_000_000;
    let timeouts = Timeouts {
        tcp_s: seconds("TCP_TIMEOUT", 86_400),
        tcp_done_s: seconds("TCP_DONE_TIMEOUT", 30),
        udp_s: seconds("UDP_TIMEOUT", 60),
        fragment_s: seconds("FRAGMENT_TIMEOUT", 30),
        reap_s: seconds("REAP", 1_200),
    };
    let icmp = conf.keyword("ICMP", false);
    let fragments = conf.keyword_given("FRAGMENTS");
    let trace_name = conf.keyword("TRACEINFO", Filename::default()).0;
    let source_name = conf.keyword("SOURCE", String::new());
    let capacity = conf.keyword("CAPACITY", ROOM as u32);
    conf.finish()?;
    Ok(Box::new(AggregateIPFlows {
        timeouts,
        icmp,
        fragments,
        flows: FlowTable::new(capacity as usize, 3),
        evicted: 0,
        next: 1,
        now_s: 0,
        reap_at_s: 0,
        held: Fragments::new(),
        trace: None,
        trace_name,
        losses: Losses::of(conf)?,
        source_name,
        source: None,
        ended: Ended::default(),
    }))
}

/// What becomes of a packet.
enum Fate {
    Emit,
    Refuse,
    /// With the key of its flow, if that is known.
    Hold(Hosts, Option<u128>),
}

impl AggregateIPFlows {
    fn timeout_s(&self, flow: &Flow) -> (usize, u64) {
        match (flow.is_tcp, flow.over) {
            (true, OVER) => (queue::TCP_DONE, self.timeouts.tcp_done_s),
            (true, _) => (queue::TCP, self.timeouts.tcp_s),
            (false, _) => (queue::UDP, self.timeouts.udp_s),
        }
    }

    /// A flow has ended.
    fn tell_end(&mut self, key: u128, flow: &Flow) {
        self.ended.add(flow.aggregate);
        if let Some(trace) = &mut self.trace {
            trace.flow(key, flow);
        }
    }

    fn forget(&mut self, id: Id) {
        let key = self.flows.keys(id)[0];
        if let Some(flow) = self.flows.remove(id) {
            self.tell_end(key, &flow);
        }
    }

    /// The flow with this key, a new one if it has ended or there is none.
    fn find(
        &mut self,
        key: u128,
        flipped: bool,
        is_tcp: bool,
        packet: &Packet,
        cx: &mut Cx<'_>,
    ) -> Option<Id> {
        let now_ns = packet.timestamp_ns();
        if let Some((id, _)) = self.flows.find(key) {
            let flow = self.flows.get(id)?;
            let age_s = (now_ns / 1_000_000_000).saturating_sub(flow.last_ns / 1_000_000_000);
            let is_syn = || {
                let is_tcp = packet.network_header().is_some_and(|ip| ip.get(9) == Some(&protocol::TCP));
                let flags = packet.transport_header().and_then(|t| t.get(13)).copied();
                is_tcp && flags.is_some_and(|f| f & flag::SYN != 0)
            };
            if age_s <= self.timeout_s(flow).1 && !(flow.over == OVER && is_syn()) {
                return Some(id);
            }
            self.forget(id);
        }
        if self.flows.len() >= self.flows.limit() {
            let all = [queue::TCP_DONE, queue::UDP, queue::TCP];
            let earliest = all.into_iter().filter_map(|q| self.flows.next(q)).min_by_key(|(s, _)| *s)?;
            self.forget(earliest.1);
            self.evicted += 1;
        }
        let filepos = match self.source.filter(|_| self.trace.is_some()) {
            Some(source) => cx.read_peer(source, "packet_filepos").and_then(|t| t.trim().parse().ok()),
            None => None,
        };
        let flow = Flow {
            aggregate: self.next,
            reverse: flipped,
            is_tcp,
            first_ns: now_ns,
            last_ns: now_ns,
            filepos: filepos.unwrap_or(0),
            ..Flow::default()
        };
        self.next = self.next.checked_add(1).unwrap_or(1);
        let (queue, timeout_s) = self.timeout_s(&flow);
        self.flows.insert([key], flow, queue, now_ns / 1_000_000_000 + timeout_s).ok()
    }

    /// Numbers the packet; says what becomes of it.
    fn look(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> Fate {
        if packet.timestamp_ns() == 0 {
            packet.set_timestamp_ns(cx.now_ns());
        }
        let Some((ip, is_quoted)) = flow_header(packet, self.icmp) else { return Fate::Refuse };
        let (number, word) = (ip[9], get_u16(ip, 6));
        let (source, destination) = (get_u32(ip, 12), get_u32(ip, 16));
        if !matches!(number, protocol::TCP | protocol::UDP) || (source, destination) == (0, 0) {
            return Fate::Refuse;
        }
        let is_tcp = number == protocol::TCP;
        let mut flipped = source > destination;
        let hosts = Hosts { is_tcp, low: source.min(destination), high: source.max(destination) };
        let base_paint = if is_quoted { 2 } else { 0 };
        let (is_first, is_fragment) = (word & 0x1fff == 0, word & 0x3fff != 0);
        let (mut id, mut known) = (None, None);
        if is_first {
            let header_len = usize::from(ip[0] & 15) * 4;
            let Some(ports) = ip.get(header_len..header_len + 4) else { return Fate::Refuse };
            let (from, to) = (get_u16(ports, 0), get_u16(ports, 2));
            if source == destination {
                flipped = from > to;
            }
            let (low_port, high_port) = if flipped { (to, from) } else { (from, to) };
            let key = hosts.key(low_port, high_port);
            (id, known) = (self.find(key, flipped, is_tcp, packet, cx), Some(key));
            let Some(flow) = id.and_then(|id| self.flows.get(id)) else { return Fate::Refuse };
            packet.set_anno_u32(Anno::AGGREGATE.offset, flow.aggregate);
            packet.set_paint(base_paint | u8::from(flipped != flow.reverse));
        } else {
            packet.set_anno_u32(Anno::AGGREGATE.offset, 0);
            packet.set_paint(base_paint | u8::from(flipped));
        }
        if self.fragments == Some(true) && is_fragment || self.held.has(hosts) {
            return Fate::Hold(hosts, known);
        }
        let Some(id) = id else { return Fate::Refuse };
        self.now_s = packet.timestamp_ns() / 1_000_000_000;
        self.note(id, packet);
        Fate::Emit
    }

    /// Takes note of a packet of the flow that goes on.
    fn note(&mut self, id: Id, packet: &Packet) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        flow.last_ns = packet.timestamp_ns();
        let paint = packet.paint();
        let ip = packet.network_header().unwrap_or_default();
        let is_first_tcp = ip.get(9) == Some(&protocol::TCP) && get_u16(ip, 6) & 0x1fff == 0;
        if paint < 2 {
            flow.packets[usize::from(paint & 1)] += 1;
            let flags = packet.transport_header().and_then(|t| t.get(13)).filter(|_| is_first_tcp);
            match flags.copied() {
                Some(flags) if flags & flag::RST != 0 => flow.over = OVER,
                Some(flags) if flags & flag::FIN != 0 => flow.over |= 1 << paint,
                Some(flags) if flags & flag::SYN != 0 => flow.over = 0,
                _ => {}
            }
        }
        let (last_s, flow) = (flow.last_ns / 1_000_000_000, flow.clone());
        let (queue, timeout_s) = self.timeout_s(&flow);
        self.flows.touch(id, queue, last_s + timeout_s);
    }

    /// Lets packets between two hosts out that need not be held any more: those before `old_s`, and whole ones.
    fn release(&mut self, hosts: Hosts, old_s: u64, cx: &mut Cx<'_>) {
        while let Some((packet, key)) = self.held.take_if(hosts, old_s, self.icmp) {
            let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
            if aggregate == 0 {
                cx.drop(Reason::LostFragment, packet);
                continue;
            }
            let found = key.and_then(|key| self.flows.find(key)).map(|(id, _)| id);
            if let Some(id) = found.filter(|id| self.flows.get(*id).is_some_and(|f| f.aggregate == aggregate))
            {
                self.note(id, &packet);
            }
            cx.emit(0, packet);
        }
    }

    fn reap(&mut self, cx: &mut Cx<'_>) {
        if self.reap_at_s > 0 {
            self.sweep(self.now_s, cx);
        }
        self.reap_at_s = self.now_s + self.timeouts.reap_s;
    }

    /// Ends what has been silent at `now_s`.
    fn sweep(&mut self, now_s: u64, cx: &mut Cx<'_>) {
        let old_s = now_s.saturating_sub(self.timeouts.fragment_s);
        for hosts in self.held.all() {
            self.release(hosts, old_s, cx);
        }
        for queue in [queue::TCP, queue::TCP_DONE, queue::UDP] {
            while let Some((expires_s, id)) = self.flows.next(queue)
                && expires_s < now_s
            {
                self.forget(id);
            }
        }
        self.ended.wake(cx);
    }

    /// Handles one packet; answers it if it goes on by output 0.
    fn handle(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        let fate = self.look(&mut packet, cx);
        let mut passes = None;
        match fate {
            Fate::Emit => passes = Some(packet),
            Fate::Refuse => cx.divert(1, Reason::NoFlow, packet),
            Fate::Hold(hosts, key) => {
                self.now_s = packet.timestamp_ns() / 1_000_000_000;
                match self.held.add(hosts, packet, key) {
                    Ok(()) => {
                        let old_s = self.now_s.saturating_sub(self.timeouts.fragment_s);
                        self.release(hosts, old_s, cx);
                    }
                    Err(packet) => cx.drop(Reason::Full, packet),
                }
            }
        }
        if self.now_s >= self.reap_at_s {
            self.reap(cx);
        }
        passes
    }
}

impl Element for AggregateIPFlows {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let pulls = cx.pulls_from(0);
        if self.fragments == Some(true) && pulls {
            let what = "'FRAGMENTS true' is incompatible with pull; run this element in a push context";
            return Err(Error::new(what));
        }
        self.fragments.get_or_insert(!pulls);
        if !self.source_name.is_empty() {
            self.source = Some(cx.find_peer(&self.source_name)?);
        }
        if !self.trace_name.is_empty() {
            let source = self.source.and_then(|source| cx.read_peer(source, "filename"));
            self.trace = Some(TraceInfo::open(&self.trace_name, source, self.losses.clone())?);
        }
        Ok(())
    }

    fn commit(&mut self, _cx: &mut Cx<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.begin();
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for packet in batch.drain() {
            if let Some(packet) = self.handle(packet, cx) {
                cx.emit(0, packet);
            }
        }
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(0, max, batch);
        batch.filter_map(|packet| self.handle(packet, cx));
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.evicted.to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.sweep(u64::MAX, cx);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) =
            old.downcast_mut::<AggregateIPFlows>().filter(|o| o.flows.limit() == self.flows.limit())
        {
            std::mem::swap(&mut self.flows, &mut old.flows);
            std::mem::swap(&mut self.held, &mut old.held);
            (self.next, self.now_s, self.reap_at_s) = (old.next, old.now_s, old.reap_at_s);
            self.evicted = old.evicted;
            if self.trace_name == old.trace_name {
                std::mem::swap(&mut self.trace, &mut old.trace);
            }
        }
    }

    fn held(&self) -> usize {
        self.held.len()
    }
}

impl Drop for AggregateIPFlows {
    fn drop(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        let mut flows: Vec<_> = self.flows.iter().map(|(id, flow)| (self.flows.keys(id)[0], flow)).collect();
        // Click has those of TCP in a table of their own, which ends first.
        flows.sort_by_key(|(key, flow)| (key >> 96 == 0, flow.aggregate));
        flows.into_iter().for_each(|(key, flow)| trace.flow(key, flow));
        trace.end();
    }
}
