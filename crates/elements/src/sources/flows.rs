//! Frames of many flows, whose ports are chosen at random.

use super::generator::check_length;
use crate::token_bucket::TokenBucket;
use causeway_engine::{Cx, Error};
use causeway_packet::checksum::{Sum, pseudo_header_v4};
use causeway_packet::wire::{Ipv4Header, ethernet, ipv4, protocol};
use causeway_packet::{Batch, Packet};
use std::net::Ipv4Addr;

/// Where the transport header begins.
const TRANSPORT: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;
/// Shortest Ethernet frame, without its checksum.
const MIN_LENGTH: usize = 60;
/// Flows of a source at most.
const MOST: u32 = 1 << 20;
const TTL: u8 = 250;

/// The protocol of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp { checksum: bool },
}

/// What a source is told.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Packets a second; 0 = as many as are pulled.
    pub rate_pps: u32,
    /// Packets; negative: no limit.
    pub limit: i64,
    pub active: bool,
    /// Bytes of a frame, without its checksum.
    pub length: u32,
    /// Source and destination.
    pub ether: [[u8; 6]; 2],
    pub ip: [Ipv4Addr; 2],
    pub flows: u32,
    /// Packets of a flow before it gets other ports.
    pub flow_len: u32,
    pub transport: Transport,
}

impl Plan {
    /// Why it cannot be done, and what is done otherwise than it says.
    pub fn check(&mut self, warn: &mut dyn FnMut(&str)) -> Result<(), Error> {
        check_length(self.length as usize, Packet::HEADROOM)?;
        if self.flows > MOST {
            return Err(Error::new(format!("FLOWS: out of range, bound {MOST}")));
        }
        if self.transport == Transport::Tcp && self.flow_len < 3 {
            warn("flow size < 3, defaulting to 3");
            self.flow_len = 3;
        }
        if (self.length as usize) < MIN_LENGTH {
            warn("packet length < 60, defaulting to 60");
            self.length = MIN_LENGTH as u32;
        }
        Ok(())
    }

    fn bucket(&self) -> Option<TokenBucket> {
        let rate_pps = u64::from(self.rate_pps);
        (rate_pps > 0).then(|| TokenBucket::new(rate_pps, (rate_pps / 100).max(2), 1))
    }

    /// The frame of all flows: ports, numbers and checksum of the transport header are zero.
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0; self.length as usize];
        let ip_len = (frame.len() - ethernet::HEADER_LEN) as u16;
        let [src, dst] = self.ip;
        let header = Ipv4Header {
            tos: 0,
            total_len: ip_len,
            identification: 0,
            flags_fragment: 0,
            ttl: TTL,
            protocol: self.transport.number(),
            src,
            dst,
        };
        let [from, to] = self.ether;
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&from);
        frame[12..14].copy_from_slice(&ethernet::ether_type::IPV4.to_be_bytes());
        if let Some(ip) = frame[ethernet::HEADER_LEN..].first_chunk_mut() {
            header.emit(ip);
        }
        let transport = &mut frame[TRANSPORT..];
        match self.transport {
            Transport::Tcp => {
                transport[12] = 0x50;
                transport[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
            }
            Transport::Udp { .. } => {
                let len = ip_len - ipv4::HEADER_LEN as u16;
                transport[4..6].copy_from_slice(&len.to_be_bytes());
            }
        }
        frame
    }
}

impl Transport {
    fn number(self) -> u8 {
        if self == Transport::Tcp { protocol::TCP } else { protocol::UDP }
    }
}

mod flag {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const PSH_ACK: u8 = 0x18;
}

#[derive(Clone, Copy)]
struct Flow {
    /// Packets of it so far.
    sent: u32,
    ports: [u16; 2],
    /// Sequence and acknowledgement number, which stay.
    numbers: [u32; 2],
}

impl Flow {
    fn new(cx: &mut Cx<'_>) -> Flow {
        Flow { sent: 0, ports: ports(cx), numbers: [(); 2].map(|()| cx.rng().u32(..)) }
    }
}

fn ports(cx: &mut Cx<'_>) -> [u16; 2] {
    [(); 2].map(|()| cx.rng().u16(..u16::MAX))
}

/// The flows of a source, and what holds its packets up.
pub(super) struct Flows {
    pub plan: Plan,
    frame: Vec<u8>,
    /// Of the transport header and what is behind it, but for ports, numbers and flags.
    sum: Sum,
    flows: Vec<Flow>,
    bucket: Option<TokenBucket>,
    /// All flows before this one have ended, once no new packets are made.
    ended: usize,
}

impl Flows {
    /// None yet; they begin with [`Flows::begin`].
    pub fn new(plan: Plan) -> Flows {
        let frame = plan.frame();
        let [src, dst] = plan.ip;
        let len = (frame.len() - TRANSPORT) as u16;
        let sum = pseudo_header_v4(src, dst, plan.transport.number(), len).bytes(&frame[TRANSPORT..]);
        Flows { plan, frame, sum, flows: Vec::new(), bucket: plan.bucket(), ended: 0 }
    }

    /// Chooses the ports of all flows.
    pub fn begin(&mut self, cx: &mut Cx<'_>) {
        self.flows = (0..self.plan.flows).map(|_| Flow::new(cx)).collect();
    }

    /// Does as `plan` says from now on. Flows go on, unless frames have another length.
    pub fn follow(&mut self, plan: Plan, cx: &mut Cx<'_>) {
        if plan.length != self.plan.length {
            *self = Flows::new(plan);
            self.begin(cx);
        } else if plan.rate_pps != self.plan.rate_pps {
            self.bucket = plan.bucket();
        }
        self.plan = plan;
    }

    /// Whether there is anything to give after `count` packets.
    pub fn is_over(&self, count: u64) -> bool {
        !self.plan.active || (self.left(count) == 0 && !self.is_open())
    }

    fn left(&self, count: u64) -> u64 {
        u64::try_from(self.plan.limit).map_or(u64::MAX, |limit| limit.saturating_sub(count))
    }

    /// Whether a flow of TCP waits for its end.
    fn is_open(&self) -> bool {
        self.plan.transport == Transport::Tcp
            && self.flows[self.ended..].iter().any(|flow| flow.sent != self.plan.flow_len)
    }

    /// Packets that may be given now, of `max`.
    pub fn allowed(&mut self, max: u64, cx: &mut Cx<'_>) -> u64 {
        self.bucket.as_mut().map_or(max, |bucket| max.min(bucket.tokens(cx.now_ns())))
    }

    /// When there may be one again.
    pub fn next_ns(&self) -> Option<u64> {
        self.bucket.as_ref().and_then(TokenBucket::next_ns)
    }

    /// Appends at most `max` packets to `batch`, after `count` others; returns how many.
    pub fn fill(&mut self, max: u64, count: u64, batch: &mut Batch, cx: &mut Cx<'_>) -> u64 {
        let mut made = 0;
        while made < max.min(batch.room() as u64 + made) {
            let Some(packet) = self.next(self.left(count + made) > 0, cx) else { break };
            // There is room.
            let _ = batch.push(packet);
            made += 1;
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.take(made);
        }
        made
    }

    /// A packet of any flow, or with `more` false the end of one that has not ended.
    fn next(&mut self, more: bool, cx: &mut Cx<'_>) -> Option<Packet> {
        let flow_len = self.plan.flow_len;
        let mut packet = Packet::new()?;
        let at = if more {
            self.ended = 0;
            cx.rng().usize(..self.flows.len())
        } else if self.is_open() {
            let open = self.flows[self.ended..].iter().position(|flow| flow.sent != flow_len)?;
            self.ended += open;
            self.flows[self.ended].sent = flow_len - 1;
            self.ended
        } else {
            return None;
        };
        let flow = &mut self.flows[at];
        if more && flow.sent == flow_len {
            (flow.ports, flow.sent) = (ports(cx), 0);
        }
        flow.sent = flow.sent.wrapping_add(1);
        let flow = *flow;
        let data = packet.put(self.frame.len()).ok()?;
        data.copy_from_slice(&self.frame);
        self.finish(&mut data[TRANSPORT..], flow);
        packet.set_mac_header(0);
        packet.set_network_headers(ethernet::HEADER_LEN, ipv4::HEADER_LEN);
        packet.set_dst_ip(self.plan.ip[1].octets());
        Some(packet)
    }

    /// Fills in what a packet of `flow` has for itself.
    fn finish(&self, transport: &mut [u8], flow: Flow) {
        let mut sum = self.sum;
        for (at, port) in [0, 2].into_iter().zip(flow.ports) {
            transport[at..at + 2].copy_from_slice(&port.to_be_bytes());
            sum = sum.word(port);
        }
        let to = match self.plan.transport {
            Transport::Udp { checksum: false } => return,
            Transport::Udp { checksum: true } => 6..8,
            Transport::Tcp => {
                for (at, number) in [4, 8].into_iter().zip(flow.numbers) {
                    transport[at..at + 4].copy_from_slice(&number.to_be_bytes());
                    sum = sum.array(&number.to_be_bytes());
                }
                transport[13] = match flow.sent {
                    1 => flag::SYN,
                    n if n == self.plan.flow_len => flag::FIN,
                    _ => flag::PSH_ACK,
                };
                sum = sum.word(transport[13].into());
                16..18
            }
        };
        // A sum of zero stands for none in UDP (RFC 768).
        let sum = match sum.finish() {
            0 if self.plan.transport != Transport::Tcp => u16::MAX,
            sum => sum,
        };
        transport[to].copy_from_slice(&sum.to_be_bytes());
    }
}
