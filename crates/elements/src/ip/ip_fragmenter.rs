//! IPFragmenter.

use causeway_engine::ir::{At, Test};
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;
use causeway_packet::wire::ipv4::{FRAGMENT_OFFSET_MASK, HEADER_LEN, MAX_HEADER_LEN, MORE_FRAGMENTS};
use causeway_packet::wire::ipv4_options::kind;

pub(crate) static SPEC: Spec = Spec {
    name: "IPFragmenter",
    category: "ip",
    summary: "cuts IPv4 packets that are too long into fragments",
    ports: "1/1-2",
    processing: "h/h",
    doc: "Passes IP packets of at most MTU bytes, and cuts longer ones into fragments of at most MTU bytes, which leave \
          in order, the first one first. Longer ones that say \"don't fragment\" go to output 1, where an ICMPError \
          may answer them with `unreachable, needfrag`, or are dropped if that is not connected; so do packets \
          whose header leaves no room for eight bytes of payload. Fragments have all annotations of the packet. \
          The first one has all its options and the others those that are marked to be copied (RFC 791 §3.1). \
          A link-level header in front of the IP header is not copied to the second and later fragments: strip it \
          before.",
    args: IPFragmenter::ARGS,
    handlers: IPFragmenter::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LENGTH 1000, LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> IPFragmenter(576) -> Discard;",
    see: &["ICMPError", "IPOutputCombo"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NeedFragmentation = "need-fragmentation", "the packet is too long and may not be cut, and output 1 is not connected";
        NoHeader = "no-header", "no whole IPv4 packet is marked";
        BadOffset = "bad-offset", "a fragment that reaches beyond the longest datagram";
        NoBuffer = "no-buffer", "there was no frame for a fragment; what is left of the packet goes";
    }
}

/// Fragments lie at multiples of this many bytes of the datagram.
const UNIT: usize = 8;
/// The flag that nobody uses. What fragments may have otherwise than the datagram does not include it (RFC 791 §3.2).
const RESERVED: u16 = 0x8000;

settings! {
    struct IPFragmenter {
        mtu: u32 = required("MTU", "bytes", "longest IP packet that passes, at least 8");
        honor_df: bool = optional(
            "HONOR_DF",
            "boolean",
            "whether \"don't fragment\" is obeyed; default true. What is cut nevertheless gets a random identification",
        ), or(true);
        _verbose: bool = optional("VERBOSE", "boolean", "accepted for compatibility; reasons are always counted"), or(false);
        _headroom: u32 = keyword("HEADROOM", "bytes", "accepted for compatibility"), or(0);
    }
    counts {
        drops: u64 = reads("drops", "packets that were too long and could not be cut").counts(Unit::Packets);
        fragments: u64 = reads("fragments", "fragments that were made").counts(Unit::Packets);
    }
}

/// Where a datagram is cut; lengths and offsets in bytes.
struct Cut {
    /// Where the IP header begins.
    start: usize,
    header_len: usize,
    payload_len: usize,
    /// Payload of the first fragment.
    first_len: usize,
    /// Flags and offset of the whole; "don't fragment" does not count.
    word: u16,
    /// Identification of the fragments.
    id: u16,
    /// Header of the fragments behind the first.
    head: [u8; MAX_HEADER_LEN],
    head_len: usize,
    /// Payload of the fragments behind the first, but the last.
    next_len: usize,
}

impl Cut {
    /// Flags and offset of the fragment `at` bytes into the payload.
    fn word(&self, at: usize, is_last: bool) -> u16 {
        let offset = (self.word & FRAGMENT_OFFSET_MASK) + (at / UNIT) as u16;
        let more = if is_last { self.word & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
        self.word & RESERVED | more | offset
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let fragmenter = IPFragmenter::configure(conf);
    if fragmenter.mtu() < UNIT {
        conf.error(format!("MTU must be at least {UNIT}"));
    }
    conf.finish()?;
    Ok(Box::new(fragmenter))
}

impl IPFragmenter {
    fn mtu(&self) -> usize {
        self.mtu as usize
    }

    #[inline]
    fn fits(&self, packet: &Packet) -> bool {
        let header = packet.network_header().and_then(|h| h.first_chunk::<HEADER_LEN>());
        header.is_some_and(|h| u16::from_be_bytes([h[2], h[3]]) as usize <= self.mtu())
    }

    /// How to cut a packet that does not fit; the error is the reason why it cannot be.
    fn plan(&self, packet: &Packet, cx: &mut Cx<'_>) -> Result<Cut, Reason> {
        let (start, bytes) = packet.network_offset().zip(packet.network_header()).ok_or(Reason::NoHeader)?;
        let ip = Ipv4::new_checked(bytes).map_err(|_| Reason::NoHeader)?;
        let (header_len, payload_len) = (ip.header_len(), ip.payload().len());
        let room = |header_len| self.mtu().saturating_sub(header_len) / UNIT * UNIT;
        let first_len = room(header_len);
        if first_len == 0 || (self.honor_df && ip.dont_fragment()) {
            return Err(Reason::NeedFragmentation);
        }
        if ip.fragment_offset() + payload_len > UNIT << FRAGMENT_OFFSET_MASK.count_ones() {
            return Err(Reason::BadOffset);
        }
        let (head, head_len) = following_header(&bytes[..header_len]);
        let (word, next_len) = (ip.flags_fragment(), room(head_len));
        // The identification of a packet that was not to be fragmented need not be unique (RFC 6864 §4.1).
        let id = if ip.dont_fragment() { cx.rng().u16(..) } else { ip.identification() };
        Ok(Cut { start, header_len, payload_len, first_len, word, id, head, head_len, next_len })
    }

    /// Emits a packet in fragments. The frame of the packet becomes the last one.
    fn split(&mut self, mut packet: Packet, cut: &Cut, cx: &mut Cx<'_>) {
        let Cut { start, header_len, head_len, .. } = *cut;
        let (mut at, mut len) = (0, cut.first_len);
        while at + len < cut.payload_len {
            let data = packet.data();
            // What lies in front of the first IP header, such as a link-level header, goes with it.
            let (head, start, header_len) = match at {
                0 => (&data[..start + header_len], start, header_len),
                _ => (&cut.head[..head_len], 0, head_len),
            };
            let from = cut.start + cut.header_len + at;
            let Some(mut fragment) = derived(&packet, head, &data[from..from + len]) else {
                return cx.drop(Reason::NoBuffer, packet);
            };
            seal(&mut fragment, start, header_len, (cut.id, cut.word(at, false)));
            cx.emit(0, fragment);
            self.fragments += 1;
            (at, len) = (at + len, cut.next_len);
        }
        packet.truncate(start + header_len + cut.payload_len);
        // The first fragment is out, so that there are eight bytes at least to write the shorter header on.
        if packet.pull(start + header_len + at - head_len).is_ok()
            && let Some(to) = packet.data_mut().get_mut(..head_len)
        {
            to.copy_from_slice(&cut.head[..head_len]);
            packet.set_wire_len(0);
            seal(&mut packet, 0, head_len, (cut.id, cut.word(at, true)));
            self.fragments += 1;
            cx.emit(0, packet);
        }
    }

    #[cold]
    fn fragment(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        match self.plan(&packet, cx) {
            Ok(cut) => self.split(packet, &cut, cx),
            Err(Reason::NeedFragmentation) => {
                self.drops += 1;
                cx.divert(1, Reason::NeedFragmentation, packet);
            }
            Err(reason) => cx.drop(reason, packet),
        }
    }
}

/// The header of the fragments behind the first, and its length: of the options it has those whose copied flag is
/// set. An option that runs past the end, and what is behind it, is left out.
fn following_header(header: &[u8]) -> ([u8; MAX_HEADER_LEN], usize) {
    let mut out = [0; MAX_HEADER_LEN];
    let (fixed, mut options) = header.split_at(HEADER_LEN.min(header.len()));
    out[..fixed.len()].copy_from_slice(fixed);
    let mut len = HEADER_LEN;
    loop {
        match *options {
            [] | [kind::END, ..] => break,
            [kind::NOP, ref rest @ ..] => options = rest,
            [kind, n, ..] if n >= 2 && n as usize <= options.len() => {
                let (option, rest) = options.split_at(n as usize);
                if kind & 0x80 != 0 {
                    out[len..len + option.len()].copy_from_slice(option);
                    len += option.len();
                }
                options = rest;
            }
            _ => break,
        }
    }
    let len = len.next_multiple_of(4);
    out[0] = 0x40 | (len / 4) as u8;
    (out, len)
}

/// A new packet of `head` and `payload` with the annotations of `packet`; `None` when the pool is exhausted.
pub(crate) fn derived(packet: &Packet, head: &[u8], payload: &[u8]) -> Option<Packet> {
    // It is shorter than the packet, and fits where that did.
    let mut out = Packet::with_headroom(Packet::HEADROOM.min(packet.headroom()))?;
    let (to_head, to_payload) = out.put(head.len() + payload.len()).ok()?.split_at_mut(head.len());
    to_head.copy_from_slice(head);
    to_payload.copy_from_slice(payload);
    out.copy_annos(packet);
    out.set_adjacency(packet.adjacency());
    Some(out)
}

/// Makes `packet`, whose IP header of `header_len` bytes is at `start`, the fragment of datagram `id` that `word` says.
fn seal(packet: &mut Packet, start: usize, header_len: usize, (id, word): (u16, u16)) {
    packet.set_network_header(start);
    packet.set_transport_header(start + header_len);
    let total_len = packet.len() - start;
    if let Some(Ok(mut ip)) = packet.network_header_mut().map(Ipv4::new_quoted) {
        ip.set_total_len(total_len as u16);
        ip.set_identification(id);
        ip.set_flags_fragment(word);
        ip.fill_checksum();
    }
}

impl Element for IPFragmenter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if batch.iter().all(|p| self.fits(p)) {
            return;
        }
        // All are emitted, so that fragments stay between the packets that they came between.
        batch.filter_map(|packet| {
            if self.fits(&packet) {
                cx.emit(0, packet);
            } else {
                self.fragment(packet, cx);
            }
            None
        });
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        let total_len = b.load(At::network(2), 2);
        b.forbid(Test::Above(total_len.into(), (self.mtu() as u64).into()));
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::ipv4::DONT_FRAGMENT;
    use proptest::prelude::*;

    fn datagram(options: &[u8], payload_len: usize, word: u16) -> Packet {
        let payload: Vec<u8> = (0..payload_len).map(|i| i as u8).collect();
        corpus::marked(&corpus::datagram(options, &payload, 64, word), 0)
    }

    /// Offset, whether more follow, and payload of each fragment, all of which must be right in themselves.
    fn pieces(packets: &[Packet], mtu: usize) -> Vec<(usize, bool, Vec<u8>)> {
        let piece = |p: &Packet| {
            let ip = Ipv4::new_checked(p.network_header().unwrap()).unwrap();
            assert!(ip.checksum_ok() && ip.total_len() as usize <= mtu);
            assert_eq!(p.transport_offset(), p.network_offset().map(|n| n + ip.header_len()));
            assert_eq!(p.len(), p.network_offset().unwrap() + ip.total_len() as usize);
            (ip.fragment_offset(), ip.more_fragments(), ip.payload().to_vec())
        };
        packets.iter().map(piece).collect()
    }

    #[test]
    fn options_are_copied_as_they_say() {
        let route = [kind::LOOSE_SOURCE_ROUTE, 7, 4, 1, 2, 3, 4];
        let options = [&[kind::RECORD_ROUTE, 7, 4, 0, 0, 0, 0, kind::NOP][..], &route, &[0]].concat();
        let mut h = Harness::new(&SPEC, "60", 1, 1).unwrap();
        h.push(0, datagram(&options, 60, 0));
        let out = h.take(0);
        let headers: Vec<&[u8]> = out
            .iter()
            .map(|p| Ipv4::new_checked(p.data()).unwrap().header_len())
            .zip(&out)
            .map(|(n, p)| &p.data()[20..n])
            .collect();
        let later = [&route[..], &[0]].concat();
        assert_eq!(headers, [&options[..], &later, &later]);
        let lengths: Vec<_> = pieces(&out, 60).into_iter().map(|(at, more, p)| (at, more, p.len())).collect();
        assert_eq!(lengths, [(0, true, 24), (24, true, 32), (56, false, 4)]);
    }

    #[test]
    fn what_may_not_be_cut_is_diverted_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "100", 1, outputs).unwrap();
            h.push_all(0, [datagram(&[], 81, DONT_FRAGMENT), datagram(&[], 80, DONT_FRAGMENT)]);
            assert_eq!((h.take(0).len(), h.take(1).len()), (1, outputs - 1));
            assert_eq!((h.read("drops").unwrap(), h.read("fragments").unwrap()), ("1".into(), "0".into()));
            h.assert_balanced();
        }
        let mut h = Harness::new(&SPEC, "27", 1, 1).unwrap();
        h.push_all(0, [datagram(&[], 8, 0), datagram(&[], 7, 0)]);
        assert_eq!((h.take(0).len(), h.drops()), (1, vec![("need-fragmentation", 1)]));
        assert_eq!(Harness::new(&SPEC, "7", 1, 1).err().unwrap(), ["MTU must be at least 8"]);
    }

    #[test]
    fn the_flag_that_nobody_uses_stays() {
        let mut h = Harness::new(&SPEC, "68", 1, 1).unwrap();
        h.push(0, datagram(&[], 60, RESERVED | MORE_FRAGMENTS | 5));
        let out = h.take(0);
        let words = out.iter().map(|p| Ipv4::new_checked(p.data()).unwrap().flags_fragment());
        assert_eq!(words.collect::<Vec<_>>(), [5, 11].map(|offset| RESERVED | MORE_FRAGMENTS | offset));
    }

    #[test]
    fn what_is_cut_against_its_will_gets_an_identification() {
        let mut h = Harness::new(&SPEC, "100, HONOR_DF false", 1, 2).unwrap();
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let mut whole = datagram(&[], 81, DONT_FRAGMENT);
            Ipv4::new_checked(whole.data_mut()).unwrap().set_identification(0);
            h.push(0, whole);
            let out = h.take(0);
            pieces(&out, 100);
            let [a, b] = [0, 1].map(|i| Ipv4::new_checked(out[i].data()).unwrap());
            assert!(!a.dont_fragment() && !b.dont_fragment() && a.identification() == b.identification());
            ids.insert(a.identification());
        }
        assert!(ids.len() > 40, "fragments of different datagrams can be told apart: {ids:?}");
        h.push(0, datagram(&[], 81, 0));
        assert!(h.take(0).iter().all(|p| Ipv4::new_checked(p.data()).unwrap().identification() == 0x0707));
    }

    #[test]
    fn order_is_kept_and_annotations_copied() {
        let mut h = Harness::new(&SPEC, "28", 1, 1).unwrap();
        let mut packets = [datagram(&[], 1, 0), datagram(&[], 17, 0), datagram(&[], 2, 0)];
        packets.iter_mut().zip(1..).for_each(|(p, i)| {
            p.set_paint(i);
            p.set_adjacency(u32::from(i) + 10);
            p.set_wire_len(1_000);
        });
        h.push_all(0, packets);
        let out = h.take(0);
        // A fragment has the length that it has, whatever was on the wire.
        assert!(out[1..4].iter().all(|p| p.adjacency() == 12 && p.wire_len() == p.len()));
        let out: Vec<_> = out.iter().map(|p| (p.paint(), p.len())).collect();
        assert_eq!(out, [(1, 21), (2, 28), (2, 28), (2, 21), (3, 22)]);
        assert_eq!(h.read("fragments").unwrap(), "3");
    }

    #[test]
    fn a_link_header_goes_with_the_first() {
        let mut h = Harness::new(&SPEC, "28", 1, 1).unwrap();
        let bytes = [&[0xee; 14][..], &corpus::datagram(&[], &[1; 9], 64, 0), &[0; 4]].concat();
        h.push(0, corpus::marked(&bytes, 14));
        let out = h.take(0);
        assert_eq!((&out[0].data()[..14], out[0].len(), out[1].len()), (&[0xee; 14][..], 42, 21));
        assert_eq!(pieces(&out, 28), [(0, true, vec![1; 8]), (8, false, vec![1])]);
    }

    #[test]
    fn nothing_lies_beyond_the_longest_datagram() {
        let mut h = Harness::new(&SPEC, "68", 1, 1).unwrap();
        h.push_all(
            0,
            [datagram(&[], 64, FRAGMENT_OFFSET_MASK - 7), datagram(&[], 65, FRAGMENT_OFFSET_MASK - 7)],
        );
        assert_eq!((h.take(0).len(), h.drops()), (2, vec![("bad-offset", 1)]));
    }

    proptest! {
        #[test]
        fn fragments_make_the_datagram_again(
            options in corpus::options(), len in 0usize..1_500, mtu in 68usize..700, units in 0u16..4_000, more in any::<bool>(),
        ) {
            let mut h = Harness::new(&SPEC, &mtu.to_string(), 1, 1).unwrap();
            let whole = datagram(&options, len, units | if more { MORE_FRAGMENTS } else { 0 });
            let before = pieces(&[whole.copy().unwrap()], 1_560).remove(0);
            h.push(0, whole);
            let out = pieces(&h.take(0), mtu);
            let mut at = before.0;
            for (i, (offset, follows, payload)) in out.iter().enumerate() {
                prop_assert_eq!((*offset, *follows), (at, more || i + 1 < out.len()));
                prop_assert!(payload.len() % 8 == 0 || i + 1 == out.len());
                at += payload.len();
            }
            prop_assert_eq!(out.into_iter().flat_map(|p| p.2).collect::<Vec<_>>(), before.2);
            prop_assert!(h.drops().is_empty());
        }

        #[test]
        fn any_bytes_pass_or_are_counted(bytes in corpus::frame(0), mtu in 8u32..90, at in 0usize..4) {
            let mut h = Harness::new(&SPEC, &mtu.to_string(), 1, 1).unwrap();
            h.push(0, corpus::marked(&bytes, at));
            let dropped: u64 = h.drops().iter().map(|d| d.1).sum();
            prop_assert_eq!(h.take(0).is_empty(), dropped == 1);
        }
    }
}
