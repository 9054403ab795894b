//! EtherSwitch.

use crate::flow_table::{FlowTable, Id, NoPlace};
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Nanoseconds};
use causeway_packet::wire::{MacAddr, ethernet};

pub(crate) static SPEC: Spec = Spec {
    name: "EtherSwitch",
    category: "ethernet",
    summary: "an Ethernet switch that learns who is where",
    ports: "2-/=",
    processing: "h/h",
    flow: "#/[^#]",
    doc: "Input and output of one number lead to one network. A frame's source address is noted with the input that the frame \
          came by, and frames to it go to the output of that number, or are dropped if they came from there. Frames to \
          addresses that nobody has noted, and to groups, go to all outputs but their own, as in IEEE 802.1D §7. An address is \
          forgotten TIMEOUT seconds after the last frame from it, by the frames' timestamps; with a TIMEOUT of 0 nothing is noted.\n\n\
          Unlike Click's, the table has room for CAPACITY addresses: when it is full, a new address takes the place of the one \
          that was silent longest, which `evicted` counts. A hot swap goes on with the addresses.",
    args: &[
        keyword("TIMEOUT", "seconds", "how long an address is remembered; default 300"),
        keyword("CAPACITY", "addresses", "most addresses; default 16384"),
    ],
    handlers: &[
        reads("table", "the addresses, a line each: address and port"),
        reads_writes("timeout", "seconds that an address is remembered"),
        reads("evicted", "addresses that were forgotten to make room").counts(Unit::None),
    ],
    drops: Reason::DOCS,
    example: "FromDevice(eth0, PROMISC true) -> [0]s :: EtherSwitch; FromDevice(eth1, PROMISC true) -> [1]s; \
              s[0] -> Queue -> ToDevice(eth0); s[1] -> Queue -> ToDevice(eth1);",
    see: &["Hub", "HostEtherFilter", "VLANDecap"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it ends within its Ethernet addresses";
        SamePort = "same-port", "who it is for is where it came from";
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

/// Addresses that the table has room for unless CAPACITY says otherwise: as many as usual switches have.
const CAPACITY: u32 = 16_384;
const SECOND_NS: u64 = 1_000_000_000;

/// Who is where.
#[derive(Clone, Copy)]
struct Place {
    port: usize,
    seen_ns: u64,
    /// How many addresses were noted before it.
    number: u64,
}

struct EtherSwitch {
    timeout_s: u32,
    /// The one queue is in the order in which addresses were seen last.
    table: FlowTable<Place, 1>,
    noted: u64,
    evicted: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let timeout_s = seconds(conf.keyword("TIMEOUT", Nanoseconds(300 * SECOND_NS)));
    let capacity = conf.keyword("CAPACITY", CAPACITY);
    if capacity == 0 {
        conf.error("CAPACITY: must be positive");
    }
    conf.finish()?;
    let table = FlowTable::new(capacity as usize, 1);
    Ok(Box::new(EtherSwitch { timeout_s, table, noted: 0, evicted: 0 }))
}

/// Whole seconds, to the nearest.
fn seconds(Nanoseconds(ns): Nanoseconds) -> u32 {
    (ns.saturating_add(SECOND_NS / 2) / SECOND_NS).try_into().unwrap_or(u32::MAX)
}

fn key(address: MacAddr) -> u128 {
    let [a, b, c, d, e, f] = address.octets();
    u64::from_be_bytes([0, 0, a, b, c, d, e, f]).into()
}

fn address(key: u128) -> Ether {
    let [.., a, b, c, d, e, f] = key.to_be_bytes();
    Ether([a, b, c, d, e, f])
}

impl EtherSwitch {
    fn note(&mut self, source: MacAddr, port: usize, now_ns: u64) {
        let key = key(source);
        let place = Place { port, seen_ns: now_ns, number: self.noted };
        match self.table.insert([key], place, 0, now_ns) {
            Ok(_) => self.noted += 1,
            Err(NoPlace::Taken(id)) => self.see_again(id, port, now_ns),
            Err(NoPlace::Full) => {
                if let Some((_, oldest)) = self.table.next(0) {
                    self.table.remove(oldest);
                    self.evicted += 1;
                    self.noted += u64::from(self.table.insert([key], place, 0, now_ns).is_ok());
                }
            }
        }
    }

    fn see_again(&mut self, id: Id, port: usize, now_ns: u64) {
        self.table.touch(id, 0, now_ns);
        if let Some(place) = self.table.get_mut(id) {
            (place.port, place.seen_ns) = (port, now_ns);
        }
    }

    /// Where to find `destination`; `None` = everywhere.
    fn find(&mut self, destination: MacAddr, now_ns: u64) -> Option<usize> {
        if destination.is_multicast() {
            return None;
        }
        let (id, _) = self.table.find(key(destination))?;
        let place = *self.table.get(id)?;
        if now_ns < place.seen_ns.saturating_add(u64::from(self.timeout_s) * SECOND_NS) {
            return Some(place.port);
        }
        self.table.remove(id);
        None
    }

    /// Sends copies everywhere but to `port`, the original last, as Click does.
    fn flood(packet: &mut Packet, port: usize, cx: &mut Cx<'_>) -> Verdict {
        let Some(last) = (0..cx.n_outputs()).find(|&output| output != port) else {
            return Verdict::drop(Reason::SamePort);
        };
        for output in (last + 1..cx.n_outputs()).rev().filter(|&output| output != port) {
            match packet.copy() {
                Some(copy) => cx.emit(output, copy),
                None => cx.count_drops(Reason::NoBuffer, 1),
            }
        }
        cx.last_output_first();
        Verdict::Out(last)
    }
}

/// An address as it is copied: how many were noted before it, and its port.
type Noted = (u64, u128, usize);

/// The addresses, in the order in which Click shows them: that of a hash table with chains.
fn lines(mut entries: Vec<Noted>) -> String {
    entries.sort_unstable();
    let mut buckets = vec![Vec::new(); 63];
    for (i, &(_, key, port)) in entries.iter().enumerate() {
        let n = buckets.len();
        buckets[click_hash(key) % n].insert(0, (key, port));
        if i + 1 > 2 * n {
            let old = std::mem::replace(&mut buckets, vec![Vec::new(); 2 * n + 1]);
            for (key, port) in old.into_iter().flatten() {
                buckets[click_hash(key) % (2 * n + 1)].insert(0, (key, port));
            }
        }
    }
    buckets.into_iter().flatten().map(|(key, port)| format!("{} {port}\n", address(key))).collect()
}

/// The number by which Click's table is ordered, of the address as it lies in memory.
fn click_hash(key: u128) -> usize {
    let [a, b, c, d, e, f] = address(key).0;
    let [first, second, third] = [[a, b], [c, d], [e, f]].map(|pair| usize::from(u16::from_le_bytes(pair)));
    (third | second << 16) ^ first << 9
}

impl Element for EtherSwitch {
    fn packet(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(header) = packet.data().first_chunk::<{ ethernet::HEADER_LEN }>() else {
            return Verdict::drop(Reason::Short);
        };
        let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = header;
        if self.timeout_s == 0 {
            return Self::flood(packet, port, cx);
        }
        let now_ns = match packet.timestamp_ns() {
            0 => cx.now_ns(),
            stamp => stamp,
        };
        self.note(MacAddr([s0, s1, s2, s3, s4, s5]), port, now_ns);
        match self.find(MacAddr([d0, d1, d2, d3, d4, d5]), now_ns) {
            None => Self::flood(packet, port, cx),
            Some(output) if output == port => Verdict::drop(Reason::SamePort),
            Some(output) => Verdict::Out(output),
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "timeout" => self.timeout_s.to_string(),
            _ => self.evicted.to_string(),
        })
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        let mut place = 0;
        let copy = move |e: &mut EtherSwitch, to: &mut Vec<Noted>, _: &mut Cx<'_>| {
            let (entries, more) = e.table.walk(&mut place, PIECE);
            to.extend(entries.map(|(id, noted)| (noted.number, e.table.keys(id)[0], noted.port)));
            more
        };
        (handler == "table").then(|| in_pieces(copy, lines))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let timeout = cx.value(handler, value).map_err(|_| "expected timeout (integer)")?;
        self.timeout_s = seconds(timeout);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(old) = old.downcast_mut::<EtherSwitch>() else { return };
        let ports = cx.n_outputs();
        // Those that were silent longest come first, so that they give way if there is less room now.
        while let Some((_, id)) = old.table.next(0) {
            let key = old.table.keys(id)[0];
            match old.table.remove(id) {
                Some(place) if place.port < ports => {
                    let Place { port, seen_ns, .. } = place;
                    let [.., a, b, c, d, e, f] = key.to_be_bytes();
                    self.note(MacAddr([a, b, c, d, e, f]), port, seen_ns);
                }
                _ => {}
            }
        }
        self.evicted = old.evicted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    /// A frame from station `source` to station `destination`; 255 is everybody.
    fn frame(source: u8, destination: u8, seconds: u64) -> Packet {
        let station = |n: u8| if n == 255 { [255; 6] } else { [2, 0, 0, 0, 0, n] };
        let mut p = packet(&[&station(destination)[..], &station(source), &[8, 0, 1, 2, 3]].concat());
        p.set_timestamp_ns(seconds * SECOND_NS);
        p
    }

    /// The outputs that a frame comes out of.
    fn outputs(h: &mut Harness, port: usize, frame: Packet) -> Vec<usize> {
        h.push(port, frame);
        (0..3).filter(|&output| !h.take(output).is_empty()).collect()
    }

    #[test]
    fn stations_are_learnt_and_forgotten() {
        let mut h = Harness::new(&SPEC, "TIMEOUT 10", 3, 3).unwrap();
        for (port, source, destination, seconds, expected) in [
            (0, 1, 2, 100, &[1, 2][..]),
            (1, 2, 1, 101, &[0]),
            (0, 1, 2, 102, &[1]),
            (0, 3, 1, 103, &[]),
            (2, 4, 255, 104, &[0, 1]),
            (1, 2, 4, 113, &[2]),
            (1, 2, 4, 114, &[0, 2]),
            (2, 1, 2, 115, &[1]),
            (1, 2, 1, 116, &[2]),
        ] {
            assert_eq!(outputs(&mut h, port, frame(source, destination, seconds)), expected, "{seconds}");
        }
        h.push(0, packet(b"short"));
        assert_eq!(h.drops(), [("short", 1), ("same-port", 1)]);
        assert_eq!(
            h.read("table").unwrap(),
            "02-00-00-00-00-01 2\n02-00-00-00-00-02 1\n02-00-00-00-00-03 0\n"
        );
    }

    #[test]
    fn without_memory_it_is_a_hub() {
        let mut h = Harness::new(&SPEC, "TIMEOUT 0", 3, 3).unwrap();
        outputs(&mut h, 0, frame(1, 2, 1));
        assert_eq!(outputs(&mut h, 1, frame(2, 1, 1)), [0, 2]);
        assert_eq!(h.read("table").unwrap(), "");
        h.write("timeout", "1.6").unwrap();
        assert_eq!(h.read("timeout").unwrap(), "2");
        assert_eq!(h.write("timeout", "soon"), Err("expected timeout (integer)".to_owned()));
        outputs(&mut h, 0, frame(1, 2, 1));
        assert_eq!(outputs(&mut h, 1, frame(2, 1, 1)), [0]);
    }

    #[test]
    fn a_full_table_forgets_who_was_silent_longest() {
        let mut h = Harness::new(&SPEC, "CAPACITY 2", 2, 2).unwrap();
        for (station, seconds) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
            h.push(0, frame(station, 255, seconds));
        }
        assert_eq!(h.read("evicted").unwrap(), "1");
        let table = h.read("table").unwrap();
        assert!(table.contains("-01 0\n") && table.contains("-03 0\n"), "{table}");
        assert!(Harness::new(&SPEC, "CAPACITY 0", 2, 2).is_err());
    }

    #[test]
    fn what_is_for_several_goes_everywhere_whoever_claims_to_be_all() {
        let mut h = Harness::new(&SPEC, "", 3, 3).unwrap();
        outputs(&mut h, 0, frame(255, 2, 1));
        assert_eq!(outputs(&mut h, 1, frame(1, 255, 2)), [0, 2]);
    }

    #[test]
    fn any_number_of_stations_is_shown() {
        let mut h = Harness::new(&SPEC, "", 2, 2).unwrap();
        (0..200).for_each(|n| h.push(0, frame(n, 255, 1)));
        assert_eq!(h.read("table").unwrap().lines().count(), 200);
    }
}
