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
          are dropped (`--frame-size` of the command line makes them longer). With several workers one does the work for all.",
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
/// Packets that are given up in a turn at most, and how soon the timer goes on when there are more.
const REAPED: usize = 64;
const SOON_NS: u64 = 1_000_000;

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
        self.reap((stamp_ns, now_ns), cx);
        let Some((range, more)) = super::reassembly::range(&packet) else {
            self.counts.bad += 1;
            cx.drop(Reason::BadFragment, packet);
            return None;
        };
        if self.used > self.own.high as usize {
            self.make_room(cx);
        }
        let key = packet.network_header().and_then(|h| Ipv4::new_quoted(h).ok()).map_or(0, |ip| key(&ip));
        let mut found = self.table.find(key).map(|(id, _)| id);
        if let Some(id) = found.filter(|&id| self.is_over(id, (stamp_ns, now_ns))) {
            self.give_up(id, Reason::Timeout, cx);
            found = None;
        }
        let Some(id) = found else {
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

    /// Whether it was begun too long ago, by the clock or by the packets' own times.
    fn is_over(&self, id: Id, (stamp_ns, now_ns): (u64, u64)) -> bool {
        self.table.get(id).is_some_and(|reassembly| {
            let (begun_ns, came_ns) = reassembly.begun();
            stamp_ns.saturating_sub(begun_ns) > TIMEOUT_NS || now_ns.saturating_sub(came_ns) > TIMEOUT_NS
        })
    }

    /// Gives up the oldest that are over, as many as one turn may; says whether there may be more.
    fn reap(&mut self, times: (u64, u64), cx: &mut Cx<'_>) -> bool {
        for _ in 0..REAPED {
            match self.table.next(0) {
                Some((_, id)) if self.is_over(id, times) => self.give_up(id, Reason::Timeout, cx),
                _ => return false,
            }
        }
        true
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
        let more = self.reap((0, now_ns), cx) | self.table.go_on(REAPED);
        if self.table.len() > 0 {
            self.set_timer(now_ns + if more { SOON_NS } else { INTERVAL_NS }, cx);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
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
mod tests;
