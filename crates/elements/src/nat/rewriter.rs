//! The rewriters: one element, which its class tells what a flow is and how long it lasts.

use super::apply::Headers;
use super::flow_id::FlowId;
use super::flows::{Flow, Flows, Member, Tally, Timeouts, space};
use super::input::{Action, Registry};
use super::kind::Kind;
use super::shown::Listing;
use crate::flow_table::Id;
use causeway_engine::prelude::*;
use causeway_engine::{Peer, each};
use causeway_packet::BATCH;
use causeway_packet::wire::icmpv4::kind as icmp;
use causeway_packet::wire::protocol;
use std::sync::Arc;

drop_reasons! {
    /// Why a rewriter drops a packet.
    pub(super) enum Reason {
        NoHeader = "no-header", "its IP and transport headers are not marked";
        OtherProtocol = "other-protocol", "it is of a protocol that the rewriter does not know, and its input does not pass it";
        Fragment = "fragment", "it is a fragment without ports, and its input does not pass it";
        Short = "short", "its transport header is cut short, and its input does not pass it";
        Unexpected = "unexpected", "it answers nothing, and its input does not pass it";
        Unwanted = "unwanted", "its flow is unknown, and its input drops those";
        NoneFree = "none-free", "its flow is unknown, and no address or port of the pattern is free";
        Full = "full", "its flow is unknown, and there is no place for another one";
    }
}

/// Timers: expired flows go; their places are freed.
const REAP: u32 = 0;
const SWEEP: u32 = 1;
/// Places freed at a time, and milliseconds to the next.
const SWEPT: usize = 256;
const SWEEP_INTERVAL_NS: u64 = 1_000_000;

/// A rewriter of any class.
pub(crate) struct Rewriter {
    pub(super) kind: Kind,
    pub(super) inputs: Vec<Action>,
    pub(super) registry: Arc<Registry>,
    pub(super) dst_anno: bool,
    /// The annotation byte that replies get from the packet that began their flow.
    pub(super) reply_anno: Option<u8>,
    pub(super) reap_interval_s: u64,
    pub(super) timeouts: Timeouts,
    /// Its flows, unless another rewriter has them.
    pub(super) flows: Option<Box<Flows>>,
    /// The rewriter whose capacity it shares, and so its table.
    pub(super) shares: Option<String>,
    pub(super) home: Option<Peer>,
    pub(super) member: u32,
}

/// Milliseconds, as flows count them.
pub(super) fn now_ms(cx: &mut Cx<'_>) -> u64 {
    cx.now_ns() / 1_000_000
}

/// Works on the flows of `rewriter`, wherever they are. `None` while those are in use.
pub(super) fn borrow(rewriter: &mut Rewriter, cx: &mut Cx<'_>) -> Option<Box<Flows>> {
    match rewriter.home {
        None => rewriter.flows.take(),
        Some(home) => cx.peer::<Rewriter>(home)?.flows.take(),
    }
}

pub(super) fn give_back(rewriter: &mut Rewriter, flows: Box<Flows>, cx: &mut Cx<'_>) {
    match rewriter.home {
        None => rewriter.flows = Some(flows),
        Some(home) => {
            if let Some(home) = cx.peer::<Rewriter>(home) {
                home.flows = Some(flows);
            }
        }
    }
}

/// Works on the rewriter at `peer` and on its flows.
pub(super) fn with_peer<R>(
    cx: &mut Cx<'_>,
    peer: Peer,
    work: impl FnOnce(&Rewriter, &mut Flows) -> R,
) -> Option<R> {
    let home = cx.peer::<Rewriter>(peer)?.home.unwrap_or(peer);
    let mut flows = cx.peer::<Rewriter>(home)?.flows.take()?;
    let done = cx.peer::<Rewriter>(peer).map(|rewriter| work(rewriter, &mut flows));
    if let Some(home) = cx.peer::<Rewriter>(home) {
        home.flows = Some(flows);
    }
    done
}

impl Rewriter {
    /// Whether it is a TCPRewriter, or an IPRewriter, which is one too.
    pub(super) fn follows_tcp(&self) -> bool {
        matches!(self.kind, Kind::Ip | Kind::Tcp)
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The known flow of a packet of `protocol` with these addresses and ports, and its direction. `is_reply` says that an
    /// ICMP echo is answered.
    pub(super) fn entry(
        &self,
        flows: &mut Flows,
        protocol: u8,
        flow: FlowId,
        is_reply: bool,
    ) -> Option<(Id, usize)> {
        let candidates = self.kind.candidates(protocol, flow, is_reply)?;
        let space = self.space(protocol);
        let found = candidates.into_iter().flatten().find_map(|flow| flows.find(space, flow))?;
        let known = flows.get(found.0)?.protocol;
        (protocol == 0 || known == 0 || known == protocol).then_some(found)
    }

    /// As [`Rewriter::entry`]; an unknown flow is added as if its first packet had come to `input`.
    pub(super) fn entry_or_new(
        &self,
        flows: &mut Flows,
        (protocol, flow): (u8, FlowId),
        input: usize,
        (now_ms, random): (u64, u32),
    ) -> Option<(Id, usize)> {
        self.entry(flows, protocol, flow, false).or_else(|| {
            let [first, _] = self.kind.candidates(protocol, flow, false)?;
            let added = self.add(flows, (protocol, first?), input, now_ms, || random);
            added.ok().map(|id| (id, 0))
        })
    }

    /// What a packet that comes as `answer` leaves as, when its flow says `new`: who knows addresses alone leaves the rest.
    pub(super) fn answer(&self, new: FlowId, direction: usize, answer: FlowId) -> FlowId {
        match (self.kind, direction) {
            (Kind::Addr, 0) => FlowId { source: new.source, ..answer },
            (Kind::Addr, _) => FlowId { destination: new.destination, ..answer },
            (Kind::AddrPair, _) => FlowId { source: new.source, destination: new.destination, ..answer },
            _ => new,
        }
    }

    fn space(&self, protocol: u8) -> u32 {
        space(self.member, self.kind == Kind::Ip && protocol != protocol::TCP)
    }

    /// Adds the flow of a packet that came to `input`, if that says so.
    fn add(
        &self,
        flows: &mut Flows,
        (protocol, from): (u8, FlowId),
        input: usize,
        now_ms: u64,
        random: impl Fn() -> u32,
    ) -> Result<Id, Verdict> {
        let space = self.space(protocol);
        let try_one = |flows: &Flows, rewrite: &super::input::Rewrite| {
            let is_free = |to: FlowId| flows.is_free(space, self.kind.completed(to));
            let to = rewrite.pattern.rewrite(from, random(), is_free)?;
            Some((self.kind.completed(to), rewrite.outputs))
        };
        let chosen = match self.inputs.get(input) {
            None | Some(Action::Drop) => return Err(Verdict::drop(Reason::Unwanted)),
            Some(Action::Pass(output)) => return Err(Verdict::Out(usize::from(*output))),
            Some(Action::Keep(outputs)) => Some((from, *outputs)),
            Some(Action::Pattern(rewrite)) => try_one(flows, rewrite),
            Some(Action::Mapper(mapper)) => {
                (0..mapper.tries()).find_map(|_| try_one(flows, mapper.rewrites().get(mapper.choose(from))?))
            }
        };
        let Some((to, outputs)) = chosen else {
            flows.failed(self.member, input);
            return Err(Verdict::drop(Reason::NoneFree));
        };
        if !self.kind.allows(from, to) {
            return Err(Verdict::drop(Reason::NoneFree));
        }
        let is_tcp = self.follows_tcp() && protocol == protocol::TCP;
        let flow = Flow::new(from, to, self.kind.stored(protocol), is_tcp, outputs);
        flows.insert(flow, self.member, input, space, now_ms).ok_or_else(|| {
            flows.failed(self.member, input);
            Verdict::drop(Reason::Full)
        })
    }

    /// What becomes of a packet whose flow cannot be told.
    fn pass_or_drop(&self, input: usize, reason: Reason) -> Verdict {
        match self.inputs.get(input) {
            Some(Action::Pass(output)) => Verdict::Out(usize::from(*output)),
            _ => Verdict::drop(reason),
        }
    }

    /// The packet's protocol and flow, as this class tells flows apart.
    #[inline(always)]
    fn flow_of(&self, headers: &Headers, packet: &Packet) -> Result<(FlowId, bool), Reason> {
        let addresses = FlowId::new(headers.source, 0, headers.destination, 0);
        if matches!(self.kind, Kind::Addr | Kind::AddrPair) {
            return Ok((addresses, false));
        }
        if !self.kind.knows(headers.protocol) {
            return Err(Reason::OtherProtocol);
        }
        if !headers.is_first {
            return Err(Reason::Fragment);
        }
        if self.kind != Kind::Ping {
            return if headers.transport_len < 8 {
                Err(Reason::Short)
            } else {
                Ok((headers.flow(packet), false))
            };
        }
        let transport = headers.transport(packet);
        if headers.transport_len < 6 {
            return Err(Reason::Short);
        }
        match transport[0] {
            icmp::ECHO_REQUEST | icmp::ECHO_REPLY => {
                let identifier = super::apply::get_u16(transport, 4);
                Ok((FlowId { source_port: identifier, ..addresses }, transport[0] == icmp::ECHO_REPLY))
            }
            _ => Err(Reason::OtherProtocol),
        }
    }

    fn rewrite(&self, flows: &mut Flows, input: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(headers) = Headers::of(packet) else { return Verdict::drop(Reason::NoHeader) };
        let (flow, is_reply) = match self.flow_of(&headers, packet) {
            Ok(flow) => flow,
            Err(reason) => return self.pass_or_drop(input, reason),
        };
        let now_ms = now_ms(cx);
        let Some(candidates) = self.kind.candidates(headers.protocol, flow, is_reply) else {
            return self.pass_or_drop(input, Reason::OtherProtocol);
        };
        let space = self.space(headers.protocol);
        let found = candidates.into_iter().flatten().find_map(|flow| flows.find(space, flow));
        let (id, direction) = match found {
            Some(found) => found,
            None if is_reply => return self.pass_or_drop(input, Reason::Unexpected),
            None => {
                let random = cx.rng().u32(..);
                let from = candidates[0].unwrap_or(flow);
                match self.add(flows, (headers.protocol, from), input, now_ms, || random) {
                    Ok(id) => {
                        if let (Some(at), Some(flow)) = (self.reply_anno, flows.get_mut(id)) {
                            flow.reply_anno = packet.anno_u8(at);
                        }
                        (id, 0)
                    }
                    Err(verdict) => return verdict,
                }
            }
        };
        self.apply(flows, (id, direction), &headers, packet);
        flows.touch(id, now_ms);
        let output = flows.get(id).map_or(0, |f| f.outputs[direction]);
        Verdict::Out(usize::from(output))
    }

    fn apply(&self, flows: &mut Flows, (id, direction): (Id, usize), headers: &Headers, packet: &mut Packet) {
        let Some(flow) = flows.get_mut(id) else { return };
        let (new, reply_anno) = (flow.leaves(direction), flow.reply_anno);
        let (source, destination) = match (self.kind, direction) {
            (Kind::Addr, 0) => (new.source, headers.destination),
            (Kind::Addr, _) => (headers.source, new.destination),
            _ => (new.source, new.destination),
        };
        if self.dst_anno && (self.kind != Kind::Addr || direction == 1) {
            packet.set_dst_ip(destination.to_be_bytes());
        }
        if let Some(at) = self.reply_anno.filter(|_| direction == 1) {
            packet.set_anno_u8(at, reply_anno);
        }
        headers.set_addresses(packet, source, destination);
        if !headers.is_first {
            return;
        }
        match self.kind {
            Kind::Addr | Kind::AddrPair => {
                let old = FlowId::new(headers.source, 0, headers.destination, 0);
                headers.follow(packet, old, FlowId::new(source, 0, destination, 0));
            }
            Kind::Ping => {
                let identifier = if direction == 0 { new.source_port } else { new.destination_port };
                headers.set_identifier(packet, identifier);
            }
            Kind::Udp => {
                flow.seen(direction);
                headers.follow(packet, headers.flow(packet), new);
                headers.set_ports(packet, new);
            }
            Kind::Ip | Kind::Tcp if flow.is_tcp => {
                if headers.transport_len >= 18 {
                    headers.follow(packet, headers.flow(packet), new);
                    headers.set_ports(packet, new);
                    headers.track_tcp(packet, flows, id, direction);
                }
            }
            Kind::Ip | Kind::Tcp => {
                flow.seen(direction);
                headers.follow(packet, headers.flow(packet), new);
                headers.set_ports(packet, new);
            }
        }
    }

    /// Asks for the flows of a batch's packets if they are likely to be far away: for the index first, so that it is there when
    /// it is asked for the flows.
    #[inline(never)]
    fn look_ahead(&self, batch: &Batch) {
        let Some(flows) = self.flows.as_ref().filter(|flows| batch.len() > 1 && flows.is_long()) else {
            return;
        };
        let mut words = [0; BATCH];
        for (packet, word) in batch.iter().zip(&mut words) {
            *word = self.key_of(packet).map_or(0, |(space, from)| flows.prefetch_word(space, from));
        }
        words.iter().take(batch.len()).for_each(|&word| flows.prefetch_flow(word));
    }

    /// Under what the flow of a packet is most likely known.
    fn key_of(&self, packet: &Packet) -> Option<(u32, FlowId)> {
        let headers = Headers::of(packet)?;
        let (flow, is_reply) = self.flow_of(&headers, packet).ok()?;
        let [first, _] = self.kind.candidates(headers.protocol, flow, is_reply)?;
        Some((self.space(headers.protocol), first?))
    }

    fn sweep(&mut self, cx: &mut Cx<'_>, now_ms: Option<u64>) {
        let Some(mut flows) = borrow(self, cx) else { return };
        if let Some(now_ms) = now_ms {
            flows.reap(now_ms);
        }
        let more = flows.sweep(SWEPT);
        give_back(self, flows, cx);
        if more {
            let next = cx.now_ns() + SWEEP_INTERVAL_NS;
            cx.set_timer(SWEEP, next);
        }
    }
}

impl Element for Rewriter {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let mut errors = Vec::new();
        for (i, action) in self.inputs.iter().enumerate() {
            let Action::Mapper(mapper) = action else { continue };
            for (n, rewrite) in mapper.rewrites().iter().enumerate() {
                if rewrite.outputs.iter().any(|&o| usize::from(o) >= cx.n_outputs()) {
                    let mapper = mapper.declaration();
                    errors.push(format!("input spec {i}: output port out of range in {mapper} pattern {n}"));
                }
            }
        }
        if !errors.is_empty() {
            return Err(Error::several(errors));
        }
        if let Some(name) = &self.shares {
            // The one that it shares with may share another's.
            let mut home = cx.find_peer(name)?;
            let mut steps = 0;
            while let Some(next) = cx.peer::<Rewriter>(home).and_then(|r| r.shares.clone()) {
                home = cx.find_peer(&next)?;
                steps += 1;
                if steps > 64 {
                    return Err(Error::new("bad MAPPING_CAPACITY"));
                }
            }
            self.home = Some(home);
        }
        let inputs = vec![Tally::default(); self.inputs.len()];
        let member = Member {
            name: cx.name().to_owned(),
            timeouts: self.timeouts,
            inputs,
            specs: self.inputs.iter().map(Action::to_string).collect(),
            outputs: cx.n_outputs(),
        };
        let mut flows = borrow(self, cx).ok_or("bad MAPPING_CAPACITY")?;
        self.member = flows.join(member);
        give_back(self, flows, cx);
        if self.reap_interval_s > 0 {
            let next = cx.now_ns() + self.reap_interval_s * 1_000_000_000;
            cx.set_timer(REAP, next);
        }
        Ok(())
    }

    fn packet(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(mut flows) = borrow(self, cx) else { return Verdict::drop(Reason::Full) };
        let verdict = self.rewrite(&mut flows, port, packet, cx);
        give_back(self, flows, cx);
        verdict
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.look_ahead(batch);
        each(self, port, batch, cx);
    }

    fn lookahead(&self) -> usize {
        4
    }

    fn timer(&mut self, key: u32, cx: &mut Cx<'_>) {
        if key == SWEEP {
            return self.sweep(cx, None);
        }
        let now_ms = now_ms(cx);
        self.sweep(cx, Some(now_ms));
        let next = cx.now_ns() + self.reap_interval_s * 1_000_000_000;
        cx.set_timer(REAP, next);
    }

    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let mut flows = borrow(self, cx).ok_or("its table is in use")?;
        let answer = self.read_from(&mut flows, handler, arg, cx);
        give_back(self, flows, cx);
        answer
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        Some(Box::new(Listing::of(self, handler)?))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let mut flows = borrow(self, cx).ok_or("its table is in use")?;
        let done = self.write_to(&mut flows, handler, value, cx);
        give_back(self, flows, cx);
        // Many flows may be gone.
        self.sweep(cx, None);
        done
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(old) = old.downcast_mut::<Rewriter>().filter(|old| old.kind == self.kind) else { return };
        // The table goes with the rewriter that has it.
        let (Some(flows), Some(old_flows)) = (self.flows.as_mut(), old.flows.as_mut()) else { return };
        flows.take(old_flows, now_ms(cx));
        self.sweep(cx, None);
    }
}
