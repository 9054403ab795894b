//! IPReassembler.

use super::reassembly::{Outcome, Reassembly, overhead};
use crate::flow_table::{FlowTable, Id, NoPlace};
use crate::nat::flow_id::FlowId;
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;
use std::fmt::Write as _;

pub(crate) static SPEC: Spec = Spec {
    name: "IPReassembler",
    category: "ip",
    summary: "puts fragments of IPv4 packets together",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Fragments (RFC 791 §3.2) are held until all of their packet have come; then it leaves by output 0, with the headers \
          of the fragment at offset 0 and the timestamp of the last one to come. Later bytes count where fragments overlap. \
          Packets that are whole pass. The IP header must be marked.\n\n\
          What is not whole 30 s after its first fragment came is dropped, or leaves by output 1 with what there is at \
          its place, if that is connected; so is, when more than HIMEM bytes are held, what was begun first, until three \
          quarters of HIMEM are left. A packet that is longer than a frame of the router cannot be put together: its fragments \
          are dropped (`frames 4096` of the command line makes them longer). With several workers one does the work for all.",
    args: Own::ARGS,
    handlers: &[reads(
        "dump",
        "what was counted, and the packets that are not whole with the bytes that there are",
    )],
    drops: Reason::DOCS,
    example: "InfiniteSource(LENGTH 900, LIMIT 3, STOP true) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> IPFragmenter(300) \
              -> IPReassembler -> CheckIPHeader -> Discard;",
    see: &["IPFragmenter", "ICMPError"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv4 header is marked";
        BadFragment = "bad-fragment", "a fragment with a length or an offset that no fragment has";
        Merged = "merged", "a fragment whose bytes are in the packet that it is of";
        Beyond = "beyond", "a fragment behind the end of its packet";
        TooLong = "too-long", "a fragment that lies behind the end of a frame of the router";
        NoBuffer = "no-buffer", "there was no frame, or no place, for a packet";
        Timeout = "timeout", "not whole after 30 s, and output 1 is not connected";
        Evicted = "evicted", "not whole when others needed its place, and output 1 is not connected";
    }
}

/// How long a packet may take to become whole (RFC 1122 §3.3.2 has 60 to 120 s, Click 30).
const TIMEOUT_NS: u64 = 30_000_000_000;
/// How often Click looks for those.
const INTERVAL_NS: u64 = 10_000_000_000;
const REAP: u32 = 0;

settings! {
    struct Own {
        high: u32 = keyword("HIMEM", "bytes", "most bytes of packets held, 40 more for each; default 262144"), or(256 * 1024);
        mtu_anno: Option<Anno> = keyword("MAX_MTU_ANNO", "annotation", "where to put the length of a packet's longest fragment, two bytes; default nowhere"), or(None);
    }
}

#[derive(Default)]
struct Counts {
    seen: u64,
    good: u64,
    failed: u64,
    bad: u64,
}

struct IPReassembler {
    own: Own,
    /// Packets that are not whole, by addresses, identification and protocol; the oldest at the front of the one queue.
    table: FlowTable<Reassembly, 1>,
    used: usize,
    counts: Counts,
    /// When the timer will look for old ones.
    timer_ns: Option<u64>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    if own.mtu_anno.is_some_and(|anno| !matches!(anno.width, 0 | 2)) {
        conf.error("MAX_MTU_ANNO: annotation has wrong size, expected 2 bytes");
    }
    conf.finish()?;
    // As many of the shortest as there is memory for, and the one that makes it too much.
    let most = (own.high as usize / overhead(8)).saturating_add(2);
    let table = FlowTable::new(most.min(1 << 16), 1);
    Ok(Box::new(IPReassembler { own, table, used: 0, counts: Counts::default(), timer_ns: None }))
}

fn key(ip: &Ipv4<&[u8]>) -> u128 {
    let addresses = u128::from(ip.src().to_bits()) << 32 | u128::from(ip.dst().to_bits());
    addresses << 32 | u128::from(ip.identification()) << 8 | u128::from(ip.protocol())
}

impl IPReassembler {
    /// Takes a fragment; gives out a packet that is whole.
    fn take(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        self.counts.seen += 1;
        let now_ns = cx.now_ns();
        let stamp_ns = if packet.timestamp_ns() == 0 { now_ns } else { packet.timestamp_ns() };
        self.reap(stamp_ns, now_ns, cx);
        let Some((range, more)) = super::reassembly::range(&packet) else {
            self.counts.bad += 1;
            cx.drop(Reason::BadFragment, packet);
            return None;
        };
        if self.used > self.own.high as usize {
            self.make_room(cx);
        }
        let key = packet.network_header().and_then(|h| Ipv4::new_quoted(h).ok()).map_or(0, |ip| key(&ip));
        let Some((id, _)) = self.table.find(key) else {
            self.begin(key, packet, (range, more), (stamp_ns, now_ns), cx);
            return None;
        };
        let reassembly = self.table.get_mut(id)?;
        let before = reassembly.len();
        let outcome = reassembly.add(&packet, range, more, self.own.mtu_anno);
        self.used = self.used + reassembly.len() - before;
        match outcome {
            Outcome::Whole => {
                let done = self.remove(id)?;
                self.counts.good += 1;
                let mut whole = done.finish();
                whole.set_timestamp_ns(packet.timestamp_ns());
                cx.drop(Reason::Merged, packet);
                return Some(whole);
            }
            Outcome::Added => cx.drop(Reason::Merged, packet),
            Outcome::Beyond => cx.drop(Reason::Beyond, packet),
            Outcome::NoRoom | Outcome::NoFrame => cx.drop(Reason::TooLong, packet),
        }
        None
    }

    /// Begins a packet with the first fragment that came of it.
    fn begin(
        &mut self,
        key: u128,
        packet: Packet,
        fragment: ((usize, usize), bool),
        (stamp_ns, now_ns): (u64, u64),
        cx: &mut Cx<'_>,
    ) {
        let reassembly = match Reassembly::begin(packet, fragment, (stamp_ns, now_ns), self.own.mtu_anno) {
            Ok(begun) => begun,
            Err((Outcome::NoRoom, packet)) => return cx.drop(Reason::TooLong, packet),
            Err((_, packet)) => return cx.drop(Reason::NoBuffer, packet),
        };
        let len = reassembly.len();
        if self.table.len() >= self.table.limit()
            && let Some((_, oldest)) = self.table.next(0)
        {
            self.give_up(oldest, Reason::Evicted, cx);
        }
        match self.table.insert([key], reassembly, 0, now_ns) {
            Ok(_) => self.used += overhead(len),
            // There is room, and the key is new.
            Err(NoPlace::Full | NoPlace::Taken(_)) => cx.count_drops(Reason::NoBuffer, 1),
        }
        if self.timer_ns.is_none() {
            self.set_timer(now_ns + TIMEOUT_NS, cx);
        }
    }

    fn set_timer(&mut self, when_ns: u64, cx: &mut Cx<'_>) {
        self.timer_ns = Some(when_ns);
        cx.set_timer(REAP, when_ns);
    }

    fn remove(&mut self, id: Id) -> Option<Reassembly> {
        let reassembly = self.table.remove(id)?;
        self.used = self.used.saturating_sub(overhead(reassembly.len()));
        Some(reassembly)
    }

    fn give_up(&mut self, id: Id, reason: Reason, cx: &mut Cx<'_>) {
        if let Some(reassembly) = self.remove(id) {
            cx.divert(1, reason, reassembly.give_up());
        }
    }

    fn make_room(&mut self, cx: &mut Cx<'_>) {
        let low = self.own.high as usize / 4 * 3;
        while self.used > low
            && let Some((_, oldest)) = self.table.next(0)
        {
            self.counts.failed += 1;
            self.give_up(oldest, Reason::Evicted, cx);
        }
    }

    /// Gives up what was begun long ago, by the clock or by the packets' own times.
    fn reap(&mut self, stamp_ns: u64, now_ns: u64, cx: &mut Cx<'_>) {
        while let Some((_, id)) = self.table.next(0)
            && self.table.get(id).is_some_and(|r| {
                let (begun_ns, came_ns) = r.begun();
                stamp_ns.saturating_sub(begun_ns) > TIMEOUT_NS || now_ns.saturating_sub(came_ns) > TIMEOUT_NS
            })
        {
            self.give_up(id, Reason::Timeout, cx);
        }
    }

    fn dump(&self) -> String {
        let Counts { seen, good, failed, bad } = self.counts;
        let mut text = format!(
            "frags seen total:    {seen}\ngood reassemblies:   {good}\nfailed reassemblies: {failed}\n\
             bad fragments seen:  {bad}\ncached chunk data:\n"
        );
        // Click has a chain for each value of the identification's low byte as it lies in memory, the newest first.
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(id, r)| {
            (r.identification().swap_bytes() % 256, std::cmp::Reverse(self.table.expiry(*id).0))
        });
        for (_, reassembly) in all {
            let ports = reassembly.ports();
            let (source, destination) = reassembly.addresses();
            let flow = FlowId::new(source.to_bits(), ports.0, destination.to_bits(), ports.1);
            // Writing to a string cannot fail.
            let _ = write!(text, " {flow} {}", reassembly.identification());
            for (from, to) in reassembly.chunks() {
                let _ = write!(text, " ({from},{to})");
            }
            text.push('\n');
        }
        text
    }
}

impl Element for IPReassembler {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|packet| {
            let fragment =
                packet.network_header().and_then(|h| Ipv4::new_quoted(h).ok()).map(|ip| ip.is_fragment());
            match fragment {
                Some(false) => Some(packet),
                Some(true) => self.take(packet, cx),
                None => {
                    cx.drop(Reason::NoHeader, packet);
                    None
                }
            }
        });
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.timer_ns = None;
        let now_ns = cx.now_ns();
        self.reap(0, now_ns, cx);
        if self.table.len() > 0 {
            self.set_timer(now_ns + INTERVAL_NS, cx);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.dump())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(old) = old.downcast_mut::<IPReassembler>() else { return };
        let limit = self.table.limit();
        std::mem::swap(&mut self.table, &mut old.table);
        // What is there stays; there is room for more only below the own limit.
        self.table.set_limit(limit);
        (self.used, old.used) = (old.used, 0);
        self.counts = std::mem::take(&mut old.counts);
        if self.table.len() > 0 {
            let when_ns = cx.now_ns() + INTERVAL_NS;
            self.set_timer(when_ns, cx);
        }
    }

    fn held(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::{Harness, Output, Ports, packet};
    use proptest::prelude::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Bytes `from..to` of a payload that counts up, as a fragment of packet `id`, behind 14 bytes of link-layer header.
    fn fragment(id: u16, from: usize, to: usize, more: bool) -> Packet {
        let payload: Vec<u8> = (from..to).map(|i| i as u8).collect();
        let word = (from / 8) as u16 | if more { 0x2000 } else { 0 };
        let mut bytes = corpus::datagram(&[], &payload, 9, word);
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        let mut ip = Ipv4::new_checked(&mut bytes[..]).unwrap();
        ip.fill_checksum();
        let mut p = packet(&[&[from as u8; 14][..], &bytes].concat());
        p.set_mac_header(0);
        p.set_network_headers(14, 20);
        p.set_timestamp_ns(SECOND_NS);
        p
    }

    /// Whether the packet is whole and right, with the link-layer header of the first fragment.
    fn assert_whole(p: &Packet, len: usize) {
        let ip = Ipv4::new_checked(p.network_header().unwrap()).unwrap();
        assert!(ip.checksum_ok() && !ip.is_fragment());
        assert_eq!((ip.total_len() as usize, p.len(), p.transport_offset()), (20 + len, 34 + len, Some(34)));
        assert_eq!((&p.data()[..14], p.mac_distance()), (&[0; 14][..], Some(0)));
        assert!(ip.payload().iter().enumerate().all(|(i, &b)| b == i as u8), "{:?}", ip.payload());
    }

    fn harness(config: &str) -> Harness {
        Harness::new(&SPEC, config, 1, 2).unwrap()
    }

    #[test]
    fn packets_become_whole_in_any_order() {
        let pieces = [(0, 16, true), (16, 32, true), (32, 37, false)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut h = harness("MAX_MTU_ANNO 20");
            for (n, i) in order.into_iter().enumerate() {
                assert_eq!(h.held(), usize::from(n > 0));
                let (from, to, more) = pieces[i];
                h.push(0, fragment(7, from, to, more));
            }
            let out = h.take(0);
            assert_whole(&out[0], 37);
            assert_eq!((out.len(), u16::from_ne_bytes(out[0].anno_bytes(20))), (1, 36), "{order:?}");
            // Two fragments are in the packet that leaves, whichever it began with.
            assert_eq!(h.held(), 0);
            assert_eq!(h.drops().iter().map(|d| d.1).sum::<u64>(), 2, "{order:?}");
            h.assert_balanced();
        }
    }

    #[test]
    fn others_pass_and_bad_ones_do_not() {
        let mut h = harness("");
        h.push(0, fragment(1, 0, 40, false));
        assert_eq!(h.take(0).len(), 1);
        h.push(0, packet(b"unmarked"));
        h.push(0, fragment(2, 0, 13, true));
        let mut cut = fragment(2, 0, 16, true);
        cut.truncate(40);
        h.push(0, cut);
        h.push(0, fragment(3, 0xfff8 - 8, 0xfff8 + 100, false));
        h.push(0, fragment(3, 8, 8, true));
        assert_eq!(h.drops(), [("no-header", 1), ("bad-fragment", 4)]);
        h.push(0, fragment(4, 0, 8, false));
        h.push(0, fragment(5, 16, 24, false));
        h.push(0, fragment(5, 32, 40, true));
        h.push(0, fragment(6, 4_000, 4_008, true));
        assert_eq!(h.drops()[2..], [("beyond", 1), ("too-long", 1)]);
        let dump = h.read("dump").unwrap();
        assert_eq!(
            dump,
            "frags seen total:    7\ngood reassemblies:   0\nfailed reassemblies: 0\nbad fragments seen:  4\n\
             cached chunk data:\n (10.0.0.1, 0, 10.9.0.2, 0) 5 (16,24)\n"
        );
        h.assert_balanced();
    }

    #[test]
    fn what_is_not_whole_in_time_is_given_up() {
        for connected in [true, false] {
            let second = if connected { Output::Pushed } else { Output::Open };
            let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pushed, second] };
            let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
            h.push(0, fragment(7, 8, 16, true));
            h.push(0, fragment(8, 0, 16, true));
            h.advance(29 * SECOND_NS);
            assert_eq!(h.held(), 2);
            h.advance(20 * SECOND_NS);
            assert_eq!(h.held(), 0);
            let out = h.take(1);
            assert_eq!(out.len(), if connected { 2 } else { 0 });
            assert_eq!(h.drops().contains(&("timeout", 2)), !connected);
            if connected {
                assert_eq!(out[0].data()[20..36], [0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 12, 13, 14, 15]);
            }
            h.assert_balanced();
        }
        // By the time of the packets themselves as well: they may come out of a file.
        let mut h = harness("");
        h.push(0, fragment(7, 8, 16, true));
        let mut later = fragment(8, 8, 16, true);
        later.set_timestamp_ns(32 * SECOND_NS);
        h.push(0, later);
        assert_eq!((h.take(1).len(), h.held()), (1, 1));
    }

    #[test]
    fn fragments_of_another_protocol_belong_to_another_packet() {
        let mut h = harness("");
        h.push(0, fragment(7, 0, 16, true));
        let mut other = fragment(7, 16, 20, false);
        let mut ip = Ipv4::new_checked(other.network_header_mut().unwrap()).unwrap();
        ip.set_protocol(1);
        ip.fill_checksum();
        h.push(0, other);
        assert_eq!((h.take(0).len(), h.held()), (0, 2));
    }

    #[test]
    fn memory_of_packets_that_are_whole_is_free_again() {
        let mut h = harness("HIMEM 1000");
        for id in 0..100 {
            h.push(0, fragment(id, 0, 160, true));
            h.push(0, fragment(id, 160, 320, false));
        }
        assert_eq!((h.take(0).len(), h.take(1).len(), h.held()), (100, 0, 0));
        // What is added counts as what was there first.
        for (from, to) in [(0, 160), (160, 800), (800, 1_120)] {
            h.push(0, fragment(200, from, to, true));
        }
        h.push(0, fragment(201, 0, 8, true));
        assert_eq!((h.take(1).len(), h.held()), (1, 1));
    }

    #[test]
    fn when_memory_is_full_a_quarter_of_it_is_made_free() {
        let mut h = harness("HIMEM 1000");
        (0..7).for_each(|id| h.push(0, fragment(id, 0, 160, true)));
        // Five hold 1000 bytes and the sixth makes it too much: three are left, and the one that came.
        assert_eq!((h.take(1).len(), h.held()), (3, 4));
    }

    #[test]
    fn memory_is_bounded() {
        let mut h = harness("HIMEM 1000");
        for id in 0..100 {
            h.push(0, fragment(id, 0, 160, true));
        }
        assert!(h.held() <= 6, "{}", h.held());
        let failed = h.take(1);
        let ids: Vec<u16> = failed.iter().map(|p| u16::from_be_bytes([p.data()[18], p.data()[19]])).collect();
        assert_eq!(ids, (0..ids.len() as u16).collect::<Vec<_>>(), "the oldest first");
        assert!(h.read("dump").unwrap().contains(&format!("failed reassemblies: {}\n", ids.len())));
        h.assert_balanced();
        let error = Harness::new(&SPEC, "MAX_MTU_ANNO DST_IP", 1, 1).err().unwrap();
        assert_eq!(error, ["MAX_MTU_ANNO: annotation has wrong size, expected 2 bytes"]);
    }

    proptest! {
        #[test]
        fn any_fragments_that_cover_a_packet_make_it(
            cuts in prop::collection::btree_set(1usize..60, 0..12),
            again in prop::collection::vec((0usize..60, 1usize..20), 0..12),
            seed: u64,
        ) {
            const LEN: usize = 483;
            let ends: Vec<usize> = cuts.into_iter().chain([61]).map(|b| (b * 8).min(LEN)).collect();
            let mut pieces: Vec<(usize, usize)> =
                ends.iter().scan(0, |from, &to| Some((std::mem::replace(from, to), to))).collect();
            pieces.extend(again.into_iter().map(|(from, n)| (from * 8, (from * 8 + n * 8).min(LEN))));
            fastrand::Rng::with_seed(seed).shuffle(&mut pieces);
            let mut h = harness("");
            for (from, to) in pieces {
                h.push(0, fragment(7, from, to, to < LEN));
            }
            let out = h.take(0);
            prop_assert!(!out.is_empty());
            out.iter().for_each(|p| assert_whole(p, LEN));
            h.assert_balanced();
        }
    }
}
