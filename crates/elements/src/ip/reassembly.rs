//! A packet that is put together of its fragments (RFC 791 §3.2).

use causeway_packet::wire::Ipv4;
use causeway_packet::wire::ipv4::{HEADER_LEN, MAX_HEADER_LEN, MORE_FRAGMENTS};
use causeway_packet::{Anno, Packet, pool};
use std::net::Ipv4Addr;

/// Bytes that count for a packet besides those behind its header, as Click counts them.
const OVERHEAD: usize = 40;
/// Bytes of a unit of offsets.
const BLOCK: usize = 8;
/// Words of marks: as many as the longest frame has blocks for, so that what has room there has marks.
const WORDS: usize = pool::MOST_FRAME as usize / BLOCK / 64;
/// Room for the headers in front of a packet whose first fragment has not come.
const FRONT: usize = Packet::HEADROOM + MAX_HEADER_LEN;

/// Bytes that a packet of `len` bytes behind its header counts for.
pub(super) fn overhead(len: usize) -> usize {
    OVERHEAD + len
}

/// A packet, as far as it is known.
pub(super) struct Reassembly {
    packet: Packet,
    /// Bytes in front of the payload.
    front: usize,
    /// A mark for each block that is there.
    marks: [u64; WORDS],
    /// Whether the last fragment has come.
    ends: bool,
    /// When its first fragment came: by its own time, and by the router's.
    begun_ns: (u64, u64),
}

/// What came of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Whole,
    Added,
    /// It lies behind the end of its packet.
    Beyond,
    /// It lies behind the end of the frame.
    NoRoom,
    /// There is no frame.
    NoFrame,
}

/// Where the payload of a fragment begins and ends in its packet, and whether more follow; `None` if no fragment is like
/// that.
pub(super) fn range(packet: &Packet) -> Option<((usize, usize), bool)> {
    let header = packet.network_header()?;
    let ip = Ipv4::new_quoted(header).ok()?;
    let from = ip.fragment_offset();
    let len = usize::from(ip.total_len()).checked_sub(ip.header_len()).filter(|&len| len > 0)?;
    let to = from + len;
    let there = header.len() >= ip.header_len() + len;
    let aligned = to.is_multiple_of(BLOCK) || !ip.more_fragments();
    (there && aligned && to <= 0xffff).then_some(((from, to), ip.more_fragments()))
}

/// Link-layer and IP header of a fragment, and the payload of so many bytes behind them.
fn parts(packet: &Packet, len: usize) -> Option<(&[u8], &[u8])> {
    let at = packet.network_offset()?;
    let front = at + Ipv4::new_quoted(packet.network_header()?).ok()?.header_len();
    Some((packet.data().get(..front)?, packet.data().get(front..front + len)?))
}

/// Bytes of IP header and payload of a fragment with so many of the latter.
fn network_len(fragment: &Packet, len: usize) -> usize {
    let ip = fragment.network_header().and_then(|header| Ipv4::new_quoted(header).ok());
    ip.map_or(0, |ip| ip.header_len()) + len
}

impl Reassembly {
    /// Begins a packet with a fragment; gives it back if it is not kept.
    pub fn begin(
        fragment: Packet,
        ((from, to), more): ((usize, usize), bool),
        begun_ns: (u64, u64),
        mtu_anno: Option<Anno>,
    ) -> Result<Reassembly, (Outcome, Packet)> {
        let longest = network_len(&fragment, to - from);
        let (packet, front) = if from == 0 {
            let Some(front) = parts(&fragment, to).map(|(front, _)| front.len()) else {
                return Err((Outcome::NoRoom, fragment));
            };
            (fragment, front)
        } else {
            if FRONT + HEADER_LEN + to > pool::config().frame_size as usize {
                return Err((Outcome::NoRoom, fragment));
            }
            match stand_in(&fragment, from, to) {
                Some(packet) => (packet, HEADER_LEN),
                None => return Err((Outcome::NoFrame, fragment)),
            }
        };
        let mut begun = Reassembly { packet, front, marks: [0; WORDS], ends: !more, begun_ns };
        begun.packet.truncate(front + to);
        begun.mark(from, to);
        begun.set_longest(mtu_anno, longest);
        begun.set_flags();
        Ok(begun)
    }

    /// Bytes of payload, as far as it is known.
    pub fn len(&self) -> usize {
        self.packet.len() - self.front
    }

    /// When its first fragment came: by its own time, and by the router's.
    pub fn begun(&self) -> (u64, u64) {
        self.begun_ns
    }

    /// Adds a fragment.
    pub fn add(
        &mut self,
        fragment: &Packet,
        (from, to): (usize, usize),
        more: bool,
        mtu_anno: Option<Anno>,
    ) -> Outcome {
        let Some((front, payload)) = parts(fragment, to - from) else { return Outcome::NoRoom };
        let missing = to.saturating_sub(self.len());
        if missing > 0 && self.ends {
            return Outcome::Beyond;
        }
        if missing > 0 && self.packet.put(missing).is_err() {
            return Outcome::NoRoom;
        }
        self.packet.data_mut()[self.front + from..self.front + to].copy_from_slice(payload);
        self.mark(from, to);
        let longest = self.longest(mtu_anno).max(network_len(fragment, to - from));
        if from == 0 {
            self.replace_front(fragment, front);
        }
        self.set_longest(mtu_anno, longest);
        self.ends |= !more;
        self.set_flags();
        match self.ends && self.chunks().eq([(0, self.len())]) {
            true => Outcome::Whole,
            false => Outcome::Added,
        }
    }

    /// Takes the headers and annotations of the fragment at offset 0.
    fn replace_front(&mut self, fragment: &Packet, front: &[u8]) {
        let packet = &mut self.packet;
        // Of what is there only the payload stays.
        let fits = packet.pull(self.front).and_then(|()| packet.push(front.len()).map(|_| ()));
        if fits.is_err() {
            return;
        }
        packet.data_mut()[..front.len()].copy_from_slice(front);
        self.front = front.len();
        packet.copy_annos(fragment);
        if let Some(at) = fragment.network_offset() {
            packet.set_network_headers(at, front.len() - at);
        }
        if let Some(at) = fragment.mac_distance().and_then(|at| usize::try_from(at).ok()) {
            packet.set_mac_header(at);
        }
        if fragment.timestamp_ns() > 0 {
            self.begun_ns.0 = fragment.timestamp_ns();
        }
    }

    /// The length of the longest fragment, as it was noted.
    fn longest(&self, mtu_anno: Option<Anno>) -> usize {
        mtu_anno.map_or(0, |anno| u16::from_ne_bytes(self.packet.anno_bytes(anno.offset)).into())
    }

    fn set_longest(&mut self, mtu_anno: Option<Anno>, len: usize) {
        if let Some(anno) = mtu_anno {
            self.packet.set_anno_bytes(anno.offset, (len.min(0xffff) as u16).to_ne_bytes());
        }
    }

    /// Lets the header say no offset, and whether the end is missing.
    fn set_flags(&mut self) {
        let ends = self.ends;
        let Some(mut ip) = self.packet.network_header_mut().and_then(|h| Ipv4::new_quoted(h).ok()) else {
            return;
        };
        let flags = ip.flags_fragment() & 0xe000 & !MORE_FRAGMENTS;
        ip.set_flags_fragment(flags | if ends { 0 } else { MORE_FRAGMENTS });
    }

    fn mark(&mut self, from: usize, to: usize) {
        for block in from / BLOCK..to.div_ceil(BLOCK) {
            if let Some(word) = self.marks.get_mut(block / 64) {
                *word |= 1 << (block % 64);
            }
        }
    }

    fn has(&self, block: usize) -> bool {
        self.marks.get(block / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// The stretches of payload that are there.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let blocks = self.len().div_ceil(BLOCK);
        let mut at = 0;
        std::iter::from_fn(move || {
            let from = (at..blocks).find(|&block| self.has(block))?;
            at = (from..blocks).find(|&block| !self.has(block)).unwrap_or(blocks);
            Some((from * BLOCK, (at * BLOCK).min(self.len())))
        })
    }

    /// The packet, when it is whole.
    pub fn finish(mut self) -> Packet {
        let len = self.packet.network_header().map_or(0, |h| h.len());
        if let Some(mut ip) = self.packet.network_header_mut().and_then(|h| Ipv4::new_quoted(h).ok()) {
            ip.set_total_len(len as u16);
            ip.fill_checksum();
        }
        self.packet
    }

    /// What there is of it.
    pub fn give_up(self) -> Packet {
        self.packet
    }

    fn ip(&self) -> Option<Ipv4<&[u8]>> {
        Ipv4::new_quoted(self.packet.network_header()?).ok()
    }

    /// Its source and destination.
    pub fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        self.ip().map_or((Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED), |ip| (ip.src(), ip.dst()))
    }

    /// Its identification.
    pub fn identification(&self) -> u16 {
        self.ip().map_or(0, |ip| ip.identification())
    }

    /// The first two words of its payload: ports, if it is TCP or UDP and they are there.
    pub fn ports(&self) -> (u16, u16) {
        let payload = self.packet.data().get(self.front..).and_then(|p| p.first_chunk::<4>());
        payload.map_or((0, 0), |&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

/// A packet with the fixed part of a fragment's header and its payload at its place, until the first fragment comes.
fn stand_in(fragment: &Packet, from: usize, to: usize) -> Option<Packet> {
    let (_, payload) = parts(fragment, to - from)?;
    let header = fragment.network_header()?.first_chunk::<HEADER_LEN>()?;
    let mut packet = Packet::with_headroom(FRONT)?;
    let data = packet.put(HEADER_LEN + to).ok()?;
    data.fill(0);
    data[..HEADER_LEN].copy_from_slice(header);
    // Its options are not here.
    data[0] = 0x45;
    data[HEADER_LEN + from..].copy_from_slice(payload);
    packet.set_network_headers(0, HEADER_LEN);
    Some(packet)
}
