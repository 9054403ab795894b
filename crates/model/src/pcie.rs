//! PCI Express: a link of its own between a card and the host, packets both ways at the same time.
//!
//! A card writes to memory by posted packets, which nobody answers, and reads by a request and packets that bring the data
//! back. Each packet costs a frame and a header beside its data; data are cut into packets of the payload that both sides
//! agreed upon, reads into requests of their own limit. Two things hold a card back beside the rate: credits, of which the
//! host has so many for packets that it has not yet taken (PCI Express Base Specification 4.0, 2.6.1), and tags, of which
//! each read needs one until its data are there. A write may pass a read that waits, a read never a write (2.4.1).
//!
//! What a packet costs and how the link layer's own packets are counted is as in Neugebauer et al., *Understanding PCIe
//! performance for end host networking*, SIGCOMM 2018, section 3: as a part of the link's rate.
//!
//! Like the other parts this one knows no clock: whoever drives it asks when something ends, and tells it then.

use crate::event::{SECOND, Time};
use std::collections::VecDeque;

/// Bytes around each packet: start with sequence number, and checksum of the link (Base Specification 4.0, 3.6.2.1 and 4.2.2).
const FRAME: u32 = 8;
/// Bytes of a request's header with addresses of 64 bits (2.2.1).
const REQUEST: u32 = 16;
/// Bytes of a completion's header (2.2.9).
const COMPLETION: u32 = 12;
/// Bytes of a credit for data (2.6.1).
const CREDIT: u32 = 16;
/// Millions of transfers a second and lane, and of how many bits how many are data, by generation.
const GENERATIONS: [(u64, u64, u64); 5] =
    [(2_500, 8, 10), (5_000, 8, 10), (8_000, 128, 130), (16_000, 128, 130), (32_000, 128, 130)];
/// Generations that are known. From the sixth on packets are packed differently.
pub const GENERATION_MOST: usize = GENERATIONS.len();

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieParameters {
    /// 1 to [`GENERATION_MOST`].
    pub generation: usize,
    /// Lanes.
    pub lanes: u32,
    /// Bytes of data in a packet at most.
    pub payload_bytes: u32,
    /// Bytes that a read asks for at most.
    pub read_bytes: u32,
    /// Reads of the card under way at most.
    pub tags: u32,
    /// Packets of writes which the host has room for.
    pub posted_headers: u32,
    /// Data of them, in units of 16 bytes.
    pub posted_data: u32,
    /// Requests for reads which the host has room for.
    pub read_headers: u32,
    /// Thousandths of the link's rate that acknowledgements and credits take.
    pub link_layer: u32,
}

impl PcieParameters {
    /// Bits a second in each direction that packets have, with all that is around data.
    pub fn rate_bps(&self) -> u64 {
        let (transfers, data, bits) = GENERATIONS[(self.generation - 1).min(GENERATION_MOST - 1)];
        let raw = transfers * 1_000_000 * u64::from(self.lanes);
        raw * data / bits * u64::from(1_000 - self.link_layer.min(999)) / 1_000
    }

    /// Bytes on the link that move so many bytes of data, in packets with this much around them.
    fn wire_bytes(&self, bytes: u32, header: u32) -> u32 {
        bytes + bytes.div_ceil(self.payload_bytes).max(1) * (FRAME + header)
    }

    fn wire_ps(&self, bytes: u32) -> Time {
        (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(self.rate_bps().max(1))) as Time
    }

    /// Bytes of data a second at most in writes of so many bytes.
    pub fn write_bound(&self, bytes: u32) -> f64 {
        let wire = f64::from(self.wire_bytes(bytes, REQUEST));
        self.rate_bps() as f64 / 8.0 * f64::from(bytes) / wire
    }

    /// Bytes of data a second at most in reads of so many bytes, where the host takes so long for each: what completions
    /// leave of the link, and what tags and the host's room allow.
    pub fn read_bound(&self, bytes: u32, latency_ps: Time) -> f64 {
        let (whole, rest) = (bytes / self.read_bytes, bytes % self.read_bytes);
        let parts = || std::iter::repeat_n(self.read_bytes, whole as usize).chain((rest > 0).then_some(rest));
        let down: u32 = parts().map(|part| self.wire_bytes(part, COMPLETION)).sum();
        let by_link = self.rate_bps() as f64 / 8.0 * f64::from(bytes) / f64::from(down);
        let count = parts().count() as f64;
        let held = |completion: bool| -> f64 {
            let alone = |part| {
                latency_ps + if completion { self.wire_ps(self.wire_bytes(part, COMPLETION)) } else { 0 }
            };
            parts().map(alone).sum::<Time>() as f64 / count
        };
        let a_part = f64::from(bytes) / count * SECOND as f64;
        let by_tags = f64::from(self.tags) * a_part / held(true);
        let by_room = f64::from(self.read_headers) * a_part / held(false).max(1.0);
        by_link.min(by_tags).min(by_room)
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the card to the host.
    Up,
    /// From the host to the card.
    Down,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The card's data for memory.
    Write,
    /// The card asks for data.
    Read,
    /// They come.
    Completion,
    /// The processor writes a register of the card.
    Register,
}

/// A packet, or the packets of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is.
    pub kind: Kind,
    /// Whose: any number of who asked.
    pub number: u64,
    /// Bytes of data in it, or asked for.
    pub bytes: u32,
    /// Whether it is the last of what was asked for.
    pub last: bool,
}

/// A direction.
#[derive(Clone, Debug, Default)]
struct Way {
    current: Option<Packet>,
    busy_ps: Time,
}

/// A link.
#[derive(Clone, Debug)]
pub struct Pcie {
    parameters: PcieParameters,
    ways: [Way; 2],
    /// Writes and requests on the card, each with its place in the order of all.
    writes: VecDeque<(u64, Packet)>,
    reads: VecDeque<(u64, Packet)>,
    asked: u64,
    /// What the host sends.
    host: VecDeque<Packet>,
    /// What is in use: headers and data of writes, headers of reads, tags.
    posted_headers: u32,
    posted_data: u32,
    read_headers: u32,
    tags: u32,
}

impl Pcie {
    /// An idle link.
    pub fn new(parameters: PcieParameters) -> Pcie {
        Pcie {
            parameters,
            ways: Default::default(),
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            asked: 0,
            host: VecDeque::new(),
            posted_headers: 0,
            posted_data: 0,
            read_headers: 0,
            tags: 0,
        }
    }

    /// What it is.
    pub fn parameters(&self) -> &PcieParameters {
        &self.parameters
    }

    /// Picoseconds for which a direction was used.
    pub fn busy_ps(&self, direction: Direction) -> Time {
        self.ways[direction as usize].busy_ps
    }

    /// The card writes, or asks for data.
    pub fn ask(&mut self, kind: Kind, number: u64, bytes: u32) {
        let (most, queue) = match kind {
            Kind::Write => (self.parameters.payload_bytes, &mut self.writes),
            _ => (self.parameters.read_bytes, &mut self.reads),
        };
        let mut left = bytes.max(1);
        while left > 0 {
            let part = left.min(most);
            left -= part;
            queue.push_back((self.asked, Packet { kind, number, bytes: part, last: left == 0 }));
            self.asked += 1;
        }
    }

    /// The host sends: the answer to a request, or a register's new value.
    pub fn send(&mut self, packet: Packet) {
        if packet.kind == Kind::Completion {
            self.read_headers -= 1;
        }
        self.host.push_back(packet);
    }

    /// The host has taken a write of so many bytes, and has room again.
    pub fn taken(&mut self, bytes: u32) {
        self.posted_headers -= 1;
        self.posted_data -= bytes.div_ceil(CREDIT);
    }

    /// Begins what may go this way, if nothing does. Says how long it takes.
    pub fn begin(&mut self, direction: Direction) -> Option<Time> {
        if self.ways[direction as usize].current.is_some() {
            return None;
        }
        let packet = match direction {
            Direction::Up => self.next_up()?,
            Direction::Down => self.host.pop_front()?,
        };
        let p = &self.parameters;
        let wire = match packet.kind {
            Kind::Write | Kind::Register => p.wire_bytes(packet.bytes, REQUEST),
            Kind::Read => FRAME + REQUEST,
            Kind::Completion => p.wire_bytes(packet.bytes, COMPLETION),
        };
        let took_ps = p.wire_ps(wire);
        let way = &mut self.ways[direction as usize];
        (way.current, way.busy_ps) = (Some(packet), way.busy_ps + took_ps);
        Some(took_ps)
    }

    /// The card's next packet, with what it needs.
    fn next_up(&mut self) -> Option<Packet> {
        let p = &self.parameters;
        let (write, read) = (self.writes.front().copied(), self.reads.front().copied());
        let data = |packet: Packet| packet.bytes.div_ceil(CREDIT);
        let write_fits = write.is_some_and(|(_, packet)| {
            self.posted_headers < p.posted_headers && self.posted_data + data(packet) <= p.posted_data
        });
        let read_fits = read.is_some() && self.tags < p.tags && self.read_headers < p.read_headers;
        let read_is_first = match (write, read) {
            (Some((write, _)), Some((read, _))) => read < write,
            (write, _) => write.is_none(),
        };
        if read_fits && read_is_first {
            self.tags += 1;
            self.read_headers += 1;
            return Some(self.reads.pop_front()?.1);
        }
        if !write_fits {
            return None;
        }
        let (_, packet) = self.writes.pop_front()?;
        self.posted_headers += 1;
        self.posted_data += data(packet);
        Some(packet)
    }

    /// What went this way is there. A write's room is free when the host [took](Pcie::taken) it; a request is to be answered.
    pub fn end(&mut self, direction: Direction) -> Option<Packet> {
        let packet = self.ways[direction as usize].current.take()?;
        if packet.kind == Kind::Completion {
            self.tags -= 1;
        }
        Some(packet)
    }

    /// Reads of the card under way.
    pub fn tags_used(&self) -> u32 {
        self.tags
    }

    /// Packets of the card that have not gone: of writes, and requests.
    pub fn waiting(&self) -> [usize; 2] {
        [self.writes.len(), self.reads.len()]
    }
}

#[cfg(test)]
mod tests;
