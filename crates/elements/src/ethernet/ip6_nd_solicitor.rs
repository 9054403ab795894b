//! IP6NDSolicitor.

use super::ether_encap::lower_encap;
use super::header_cache::{Header, words};
use super::nd_message::{frame, group_mac, message, solicited_node};
use super::neighbour_table::{Found, Limits, NdTable, Shown, WALK_INTERVAL_NS};
use causeway_engine::ir::{Entry, Field, Key, Table};
use causeway_engine::measure::Across;
use causeway_engine::prelude::*;
use causeway_engine::value::Ether;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::ndisc::{NdOption, NeighborAdvertisement, NeighborMessage, OVERRIDE};
use causeway_packet::wire::{EthernetHeader, MacAddr};
use std::collections::BTreeMap;

pub(crate) static SPEC: Spec = Spec {
    name: "IP6NDSolicitor",
    category: "ethernet",
    summary: "encapsulates IPv6 packets in Ethernet headers found by neighbour discovery",
    ports: "2/1-2",
    processing: "h/h",
    flow: "xy/x",
    doc: "Takes IPv6 packets on input 0 and neighbour advertisements (RFC 4861 §4.4), with their Ethernet headers, on input 1. \
          An IPv6 packet gets an Ethernet header from ETH to the neighbour in its IPv6 destination annotation and leaves \
          by output 0. While the neighbour's address is not known the newest packet for it waits and it is solicited, at \
          most every 0.1 s, and every 2 s after ten solicitations without answer; these leave by output 1 if that is \
          connected, else by output 0. An advertisement on input 1 ends there, and what waited for it goes on.\n\n\
          What is known of a neighbour is forgotten 2 minutes after it was last advertised, and a neighbour in use is \
          solicited again after 1 minute. An advertisement that came over a router or has a wrong checksum is not believed \
          (§7.1.2), nor one that does not override what is known and differs (§7.2.5), nor one that nobody asked for. The \
          table has 65536 neighbours at most; what has not answered goes first.\n\n\
          Packets to groups need no neighbour discovery (RFC 2464 §7). Packets without destination annotation are dropped.",
    args: &[
        required("IP", "IPv6 address", "own address, which solicitations come from"),
        required("ETH", "Ethernet address", "own Ethernet address"),
    ],
    handlers: &[
        reads("table", "neighbours, a line each: address, 1 if known, Ethernet address").across(Across::Each),
        reads("stats", "packets dropped and solicitations sent, in words"),
        reads("queries", "solicitations sent").counts(Unit::None),
        reads("count", "neighbours in the table").measures(Unit::Entries),
        reads("length", "packets that wait").measures(Unit::Packets),
        writes("clear", "forgets all neighbours and drops what waits for them"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 53) \
              -> q :: IP6NDSolicitor(2001:db8::1, 2:0:0:0:0:1) -> Discard; Idle -> [1]q;",
    see: &["IP6NDAdvertiser", "ARPQuerier", "EtherEncap"],
    heard_by_all: &[1],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Full = "full", "it waited, and a newer packet came or room was needed";
        Expired = "expired", "it waited until the neighbour was forgotten";
        Deleted = "deleted", "it waited when all was forgotten by handler";
        NoDestination = "no-destination", "it had no IPv6 destination annotation";
        NoHeadroom = "no-headroom", "its frame had no room for a header";
        Advertisement = "advertisement", "a neighbour advertisement, which ends here";
        NotAnAdvertisement = "not-an-advertisement", "it came on input 1 and is no advertisement to be believed";
    }
}

/// Reasons for which IPv6 packets are dropped.
const KILLED: [Reason; 5] =
    [Reason::Full, Reason::Expired, Reason::Deleted, Reason::NoDestination, Reason::NoHeadroom];

const LIMITS: Limits = Limits {
    packets: 2_048,
    entries: 65_536,
    entry_packets: 1,
    slim_factor: 2,
    timeout_ns: 120_000_000_000,
    poll_timeout_ns: 60_000_000_000,
};

/// Headers that a program has at most.
const MOST_HEADERS: usize = 512;

/// The headers to some neighbours, by their addresses, and until when each may be used.
struct Headers(BTreeMap<[u64; 2], ([u64; 3], u64)>);

impl Table for Headers {
    fn look_up(&mut self, [upper, lower, ..]: Key<u64>, now_ns: u64) -> Option<[u64; 3]> {
        let (header, until_ns) = self.0.get(&[upper, lower])?;
        (now_ns < *until_ns).then_some(*header)
    }

    fn entries(&self, now_ns: u64) -> Option<Vec<Entry>> {
        let usable = self.0.iter().filter(|(_, (_, until_ns))| now_ns < *until_ns);
        Some(usable.map(|(&address, &(header, _))| (address, header)).collect())
    }
}

struct Solicitor {
    ip: Ipv6Addr,
    mac: MacAddr,
    table: NdTable,
    queries: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (ip, Ether(mac)) = (conf.required("IP"), conf.required("ETH"));
    conf.finish()?;
    Ok(Box::new(Solicitor { ip, mac: MacAddr(mac), table: NdTable::new(LIMITS), queries: 0 }))
}

impl Solicitor {
    /// The header of packets to `mac`.
    fn header_to(&self, mac: MacAddr) -> Header {
        let mut header = [0; ethernet::HEADER_LEN];
        EthernetHeader { dst: mac, src: self.mac, ether_type: ether_type::IPV6 }.emit(&mut header);
        header
    }

    /// Sends a packet to `mac`.
    fn send(&self, mut packet: Packet, mac: MacAddr, cx: &mut Cx<'_>) {
        match packet.push(ethernet::HEADER_LEN).map(|data| data.first_chunk_mut()) {
            Ok(Some(start)) => *start = self.header_to(mac),
            _ => return cx.drop(Reason::NoHeadroom, packet),
        }
        packet.set_mac_header(0);
        cx.emit(0, packet);
    }

    fn packet_out(&mut self, packet: Packet, now_ns: u64, cx: &mut Cx<'_>) {
        let ip = Ipv6Addr::from(packet.dst_ip6());
        if ip.is_unspecified() {
            return cx.drop(Reason::NoDestination, packet);
        }
        if ip.is_multicast() {
            return self.send(packet, group_mac(ip), cx);
        }
        let stamp_ns = packet.timestamp_ns();
        match self.table.find(ip, now_ns) {
            Found::Known { mac, poll, .. } => {
                if poll {
                    self.solicit(ip, stamp_ns, cx);
                }
                self.send(packet, mac, cx);
            }
            Found::Unknown => {
                let (ask, dropped) = self.table.wait(ip, packet, now_ns);
                cx.count_drops(Reason::Full, dropped as u64);
                if ask {
                    self.solicit(ip, stamp_ns, cx);
                }
            }
        }
    }

    /// Asks for `target`, for a packet of time `stamp_ns`. When there is no frame for it, the next packet tries again.
    fn solicit(&mut self, target: Ipv6Addr, stamp_ns: u64, cx: &mut Cx<'_>) {
        let group = solicited_node(target);
        let asks = NeighborMessage::Solicitation { target, mac: self.mac };
        let query = frame((self.mac, self.ip), (group_mac(group), group), &asks);
        let Some(mut query) = query else { return };
        query.set_timestamp_ns(stamp_ns);
        self.queries += 1;
        cx.last_output_first();
        cx.emit(if cx.connected(1) { 1 } else { 0 }, query);
    }

    /// The neighbour of an advertisement that is to be believed.
    fn advertised(&self, packet: &Packet) -> Option<(Ipv6Addr, MacAddr)> {
        let (_, _, body) = message(packet.data())?;
        let advertisement = NeighborAdvertisement::new_checked(body).ok()?;
        let target = advertisement.target();
        let mac = advertisement.options().find_map(|option| match option {
            Ok(NdOption::TargetLinkLayer(mac)) => Some(mac),
            _ => None,
        })?;
        let known = self.table.get(target)?;
        let overrides = advertisement.flags() & OVERRIDE != 0 || known.is_none_or(|known| known == mac);
        (overrides && !mac.is_multicast() && !target.is_multicast()).then_some((target, mac))
    }

    fn learn(&mut self, packet: Packet, now_ns: u64, cx: &mut Cx<'_>) {
        let Some((ip, mac)) = self.advertised(&packet) else {
            return cx.drop(Reason::NotAnAdvertisement, packet);
        };
        let waiting = self.table.learn(ip, mac, false, now_ns);
        cx.drop(Reason::Advertisement, packet);
        if let Some((packets, dropped)) = waiting {
            cx.count_drops(Reason::Full, dropped as u64);
            packets.for_each(|packet| self.send(packet, mac, cx));
        }
    }
}

impl Element for Solicitor {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let now_ns = cx.now_ns();
        cx.set_timer(0, now_ns + WALK_INTERVAL_NS);
        Ok(())
    }

    /// With the neighbours of now: what is learnt later the next program has.
    fn lower(&self) -> Option<Program> {
        let settled = self.table.settled(MOST_HEADERS).map(|(ip, mac, until_ns)| {
            let address = u128::from(ip);
            ([(address >> 64) as u64, address as u64], (words(&self.header_to(mac)), until_ns))
        });
        let mut b = Builder::new();
        let destination = [0, 8].map(|at| b.get(Field::Anno(Anno::DST_IP6.offset + at, 8)).into());
        let [front, back, _] = b.look_up(Box::new(Headers(settled.collect())), destination);
        lower_encap(&mut b, [front, back], ether_type::IPV6);
        b.leave(0);
        b.finish()
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        for packet in batch.drain() {
            match port {
                1 => self.learn(packet, now_ns, cx),
                _ => self.packet_out(packet, now_ns, cx),
            }
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let (dropped, next_ns) = self.table.expire(now_ns);
        cx.count_drops(Reason::Expired, dropped as u64);
        cx.set_timer(0, next_ns);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let drops = || KILLED.iter().map(|&reason| cx.dropped_for(reason)).sum::<u64>();
        Ok(match handler {
            "stats" => {
                format!("{} packets killed\n{} ND Solicitation Message sent\n", drops(), self.queries)
            }
            "queries" => self.queries.to_string(),
            "count" => self.table.len().to_string(),
            _ => self.table.held().to_string(),
        })
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        let line = |Shown { ip, mac, .. }: Shown<Ipv6Addr>| {
            format!("{ip} {} {}\n", u8::from(mac.is_some()), Ether(mac.unwrap_or(MacAddr::ZERO).0))
        };
        let show = move |neighbours: Vec<_>| neighbours.into_iter().map(line).collect();
        let mut last = None;
        let copy =
            move |e: &mut Solicitor, to: &mut _, cx: &mut Cx<'_>| e.table.copy(&mut last, cx.now_ns(), to);
        (handler == "table").then(|| in_pieces(copy, show))
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let (dropped, entries) = self.table.clear();
        cx.count_drops(Reason::Deleted, dropped as u64);
        cx.dispose_of(entries);
        Ok(())
    }

    fn held(&self) -> usize {
        self.table.held()
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Solicitor>() {
            let dropped = self.table.take_over(&mut old.table);
            cx.count_drops(Reason::Full, dropped as u64);
            self.queries = old.queries;
        }
    }
}

#[cfg(test)]
mod tests;
