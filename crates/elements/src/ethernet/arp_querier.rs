//! ARPQuerier.

use super::ether_encap::lower_encap;
use super::header_cache::{Header, HeaderCache};
use super::neighbour_table::{Found, Limits, WALK_INTERVAL_NS, lines};
use super::neighbours::{Home, Neighbours};
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Nanoseconds, Prefix4, Raw};
use causeway_lang::args::split_args;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::{Arp, ArpPacket, EthernetHeader, MacAddr, arp};

pub(crate) static SPEC: Spec = Spec {
    name: "ARPQuerier",
    category: "ethernet",
    summary: "encapsulates IP packets in Ethernet headers found by ARP",
    ports: "2/1-3",
    processing: "h/h",
    flow: "xy/x",
    doc: "Takes IP packets on input 0 and ARP packets, with their Ethernet headers, on input 1. An IP packet gets an \
          Ethernet header from ETH to the neighbour in its destination annotation and leaves by output 0. While the \
          neighbour's address is not known the packet waits and the neighbour is asked for, at most every 0.1 s, \
          and every 2 s after ten queries without answer; \
          queries leave by output 1 if that is connected, else by output 0. A response on input 1 is remembered and \
          ends there; packets that waited for it go on. If output 2 is connected, a neighbour that packets wait for is \
          asked every second, and after 3 s without an answer they leave by that output, where an ICMPError may \
          answer them with `unreachable, host` (RFC 1812 §4.3.3.1).\n\n\
          The table is bounded. Responses that nobody asked for, and neighbours that do not answer, never push out \
          neighbours that packets go to.\n\n\
          Packets to 255.255.255.255, to BROADCAST and to multicast groups need no ARP. Packets without \
          destination annotation are dropped.",
    args: &[
        required(
            "IP",
            "IP prefix",
            "own address; its network's broadcast address is the default of BROADCAST",
        ),
        optional("ETH", "Ethernet address", "own Ethernet address; default that of the name that IP is"),
        keyword(
            "CAPACITY",
            "packets",
            "most packets that wait, the oldest of which go first; 0 = no limit; default 2048",
        ),
        keyword("ENTRY_CAPACITY", "entries", "most neighbours; 0 = no limit; default 65536"),
        keyword(
            "ENTRY_PACKET_CAPACITY",
            "packets",
            "most packets that wait for one neighbour; default 0, no limit",
        ),
        keyword("CAPACITY_SLIM_FACTOR", "number", "beyond CAPACITY, 1/N of it is freed at once; default 2"),
        keyword("TIMEOUT", "time", "life of what is known of a neighbour; 0 = for ever; default 5 min"),
        keyword(
            "POLL_TIMEOUT",
            "time",
            "age at which a neighbour in use is asked again; 0 = never; default 1 min",
        ),
        keyword("BROADCAST", "IP address", "the network's broadcast address"),
        keyword("BROADCAST_POLL", "boolean", "ask again by broadcast instead of unicast; default false"),
        keyword(
            "TABLE",
            "element name",
            "an ARPTable on the same worker, whose neighbours and waiting packets this element shares with others; its \
             limits hold, not those above",
        ),
    ],
    handlers: &[
        reads_writes("ipaddr", "own IP address"),
        reads_writes("broadcast", "the network's broadcast address"),
        CONFIG,
        reads("table", "neighbours, a line each: address, 1 if known, Ethernet address, age in seconds")
            .across(Across::Each),
        reads("stats", "packets dropped and queries sent, in words"),
        reads("queries", "queries sent").counts(Unit::None),
        reads("responses", "responses received").counts(Unit::None),
        reads("drops", "packets dropped").counts(Unit::Packets),
        reads("count", "neighbours in the table").measures(Unit::Entries),
        reads("evictions", "neighbours forgotten to make room for others").counts(Unit::None),
        reads("length", "packets that wait").measures(Unit::Packets),
        writes("insert", "`IP ETH`: makes a neighbour known"),
        writes("delete", "`IP`: forgets a neighbour and drops what waits for it"),
        writes("clear", "forgets all neighbours and drops what waits for them"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> GetIPAddress(16) \
              -> q :: ARPQuerier(1.0.0.1/24, 2:0:0:0:0:1) -> Discard; Idle -> [1]q;",
    see: &["ARPTable", "ARPResponder", "EtherEncap"],
    heard_by_all: &[1],
    lives_with: table,
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Full = "full", "it waited, and was the oldest when a capacity was passed";
        Expired = "expired", "it waited until TIMEOUT";
        Deleted = "deleted", "it waited for a neighbour that was deleted by handler";
        NoDestination = "no-destination", "it had no destination annotation";
        NoHeadroom = "no-headroom", "its frame had no room for a header";
        Response = "response", "an ARP response, which ends here";
        NotAResponse = "not-a-response", "it came on input 1 and is no ARP response from a host";
        Unsolicited = "unsolicited", "an ARP response that nobody asked for, when there was no room for one more neighbour";
    }
}

/// Reasons for which IP packets are dropped.
const KILLED: [Reason; 5] =
    [Reason::Full, Reason::Expired, Reason::Deleted, Reason::NoDestination, Reason::NoHeadroom];

/// Output of packets whose neighbour does not answer.
const UNANSWERED: usize = 2;
/// How long a neighbour may take to answer, if its packets can be returned.
const PATIENCE_NS: u64 = 3_000_000_000;

struct ArpQuerier {
    ip: Ipv4Addr,
    prefix_len: u8,
    mac: MacAddr,
    broadcast: Ipv4Addr,
    broadcast_poll: bool,
    poll_timeout_ns: u64,
    table: Home,
    cache: HeaderCache,
    queries: u64,
    responses: u64,
}

/// The ARPTable that a configuration names.
fn table(config: &str) -> Vec<String> {
    let named = |argument: &String| Some(argument.strip_prefix("TABLE ")?.trim().to_owned());
    split_args(config).iter().filter_map(named).collect()
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut limits = Limits::keywords(conf);
    limits.poll_timeout_ns = conf.keyword("POLL_TIMEOUT", Nanoseconds(60_000_000_000)).0;
    let shared: Option<String> = conf.keyword_given("TABLE");
    let broadcast: Option<Ipv4Addr> = conf.keyword_given("BROADCAST");
    let broadcast_poll = conf.keyword("BROADCAST_POLL", false);
    let one_name = conf.unread() == 1;
    let own: Raw = conf.required("IP");
    let prefix = if own.0.is_empty() { None } else { conf.parse::<Prefix4>("IP", &own.0) };
    let mac: Ether = match one_name {
        true => conf.parse("ETH", &own.0).unwrap_or_default(),
        false => conf.required("ETH"),
    };
    conf.finish()?;
    let cache = HeaderCache::new();
    let table = match shared {
        Some(name) => Home::named(conf, &name).map_err(|why| {
            conf.error(why);
            Invalid
        })?,
        None => Home::Own(Box::new(Neighbours::new(limits))),
    };
    let prefix = prefix.ok_or(Invalid)?;
    let network = (prefix.len < 31).then(|| Ipv4Addr::from(u32::from(prefix.address) | !prefix.mask()));
    Ok(Box::new(ArpQuerier {
        ip: prefix.address,
        prefix_len: prefix.len,
        mac: MacAddr(mac.0),
        broadcast: broadcast.or(network).unwrap_or(Ipv4Addr::BROADCAST),
        broadcast_poll,
        poll_timeout_ns: limits.poll_timeout_ns,
        table,
        cache,
        queries: 0,
        responses: 0,
    }))
}

/// Puts `header` in front of `packet`.
///
/// Inlined, a header from the cache stays in registers. In memory it would be written as two words and read again as two
/// others, which the processor cannot forward before the first are in the cache: a tenth of what the plain graph costs.
#[inline(always)]
fn encapsulate(mut packet: Packet, header: Header, cx: &mut Cx<'_>) -> Option<Packet> {
    match packet.push(ethernet::HEADER_LEN).map(|data| data.first_chunk_mut()) {
        Ok(Some(start)) => *start = header,
        _ => {
            cx.drop(Reason::NoHeadroom, packet);
            return None;
        }
    }
    packet.set_mac_header(0);
    Some(packet)
}

/// The neighbour that was written to `insert`: `IP ETH`.
pub(super) fn inserted(value: &str, cx: &Cx<'_>) -> Result<(Ipv4Addr, MacAddr), Error> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let [ip, mac] = words[..] else { return Err(Error::new("insert: expected 'IP ETH'")) };
    let mac: Ether = cx.value("insert", mac)?;
    Ok((cx.value("insert", ip)?, MacAddr(mac.0)))
}

impl ArpQuerier {
    fn header_to(&self, dst: MacAddr) -> Header {
        let mut header = [0; ethernet::HEADER_LEN];
        EthernetHeader { dst, src: self.mac, ether_type: ether_type::IPV4 }.emit(&mut header);
        header
    }

    /// What the cache does not know.
    #[cold]
    fn resolve(&mut self, mut packet: Packet, dst: u32, now_ns: u64, cx: &mut Cx<'_>) -> Option<Packet> {
        let ip = Ipv4Addr::from(dst);
        let (mac, until_ns) = if ip.is_unspecified() {
            cx.drop(Reason::NoDestination, packet);
            return None;
        } else if ip.is_broadcast() || ip == self.broadcast {
            (MacAddr::BROADCAST, u64::MAX)
        } else if ip.is_multicast() {
            (MacAddr::from_ipv4_multicast(ip), u64::MAX)
        } else {
            let (poll_timeout_ns, stamp_ns) = (self.poll_timeout_ns, packet.timestamp_ns());
            let look = |table: &mut Neighbours| {
                table.limits.poll_timeout_ns = poll_timeout_ns;
                match table.find(ip, now_ns) {
                    Found::Known { mac, until_ns, poll } => Ok((mac, until_ns, poll, packet)),
                    Found::Unknown => Err(table.wait(ip, packet, now_ns)),
                }
            };
            match self.table.with(cx, look).unwrap_or(Err((false, 1))) {
                Ok((mac, until_ns, poll, known)) => {
                    if poll {
                        let to = if self.broadcast_poll { MacAddr::BROADCAST } else { mac };
                        self.query(ip, to, stamp_ns, cx);
                    }
                    packet = known;
                    (mac, until_ns)
                }
                Err((ask, dropped)) => {
                    cx.count_drops(Reason::Full, dropped as u64);
                    if ask {
                        self.query(ip, MacAddr::BROADCAST, stamp_ns, cx);
                    }
                    return None;
                }
            }
        };
        let header = self.header_to(mac);
        self.cache.insert(dst, until_ns, &header);
        encapsulate(packet, header, cx)
    }

    /// Asks `to` who has `target`, for a packet of time `stamp_ns`, which goes on after the query. When there is no frame
    /// for it, the next packet tries again.
    fn query(&mut self, target: Ipv4Addr, to: MacAddr, stamp_ns: u64, cx: &mut Cx<'_>) {
        let mut bytes = [0; ethernet::HEADER_LEN + arp::PACKET_LEN];
        if let Some((header, body)) = bytes.split_first_chunk_mut()
            && let Some(body) = body.first_chunk_mut()
        {
            EthernetHeader { dst: to, src: self.mac, ether_type: ether_type::ARP }.emit(header);
            ArpPacket::request(self.mac, self.ip, target).emit(body);
        }
        let Some(mut packet) = Packet::from_bytes(&bytes) else { return };
        packet.set_mac_header(0);
        packet.set_network_header(ethernet::HEADER_LEN);
        packet.set_timestamp_ns(stamp_ns);
        self.queries += 1;
        cx.last_output_first();
        cx.emit(if cx.connected(1) { 1 } else { 0 }, packet);
    }

    fn response(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let sender = packet.data().get(ethernet::HEADER_LEN..).and_then(|body| {
            let arp = Arp::new_checked(body).ok().filter(|a| a.operation() == arp::REPLY)?;
            // No host has such addresses; to believe them would let one packet turn traffic into broadcasts.
            let (ip, mac) = (arp.sender_ip(), arp.sender_mac());
            let of_host = !(mac.is_multicast() || ip.is_unspecified() || ip.is_multicast());
            of_host.then_some((ip, mac))
        });
        match sender {
            Some((ip, mac)) => {
                self.responses += 1;
                let learnt = self.learn(ip, mac, false, cx);
                cx.drop(if learnt { Reason::Response } else { Reason::Unsolicited }, packet);
            }
            None => cx.drop(Reason::NotAResponse, packet),
        }
    }

    /// Notes a neighbour, which is `wanted` or only has answered; says whether there was room.
    fn learn(&mut self, ip: Ipv4Addr, mac: MacAddr, wanted: bool, cx: &mut Cx<'_>) -> bool {
        let now_ns = cx.now_ns();
        let header = self.header_to(mac);
        let learnt = self.table.with(cx, |table| table.learn(ip, mac, wanted, now_ns)).flatten();
        let Some((packets, dropped)) = learnt else { return false };
        cx.count_drops(Reason::Full, dropped as u64);
        for packet in packets {
            if let Some(packet) = encapsulate(packet, header, cx) {
                cx.emit(0, packet);
            }
        }
        true
    }

    fn expire(&mut self, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        // An ARPTable does it by itself.
        let soonest_ns = now_ns + WALK_INTERVAL_NS;
        let expired = self.table.own().map(|table| table.expire(now_ns));
        let (dropped, mut next_ns) = expired.unwrap_or((0, soonest_ns));
        cx.count_drops(Reason::Expired, dropped as u64);
        if cx.connected(UNANSWERED) {
            self.give_up(now_ns, cx);
            next_ns = next_ns.min(soonest_ns);
        }
        cx.set_timer(0, next_ns);
    }

    /// Returns the packets whose neighbours have not answered for long, and asks the others again.
    fn give_up(&mut self, now_ns: u64, cx: &mut Cx<'_>) {
        let first_ns = now_ns.saturating_sub(PATIENCE_NS);
        let Some((packets, asked)) = self.table.with(cx, |table| table.unanswered(first_ns, now_ns)) else {
            return;
        };
        packets.into_iter().for_each(|packet| cx.emit(UNANSWERED, packet));
        asked.into_iter().for_each(|ip| self.query(ip, MacAddr::BROADCAST, now_ns, cx));
    }
}

impl Element for ArpQuerier {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.table.find(&self.cache, cx)?;
        let expires = self.table.own().is_some_and(|table| table.limits.timeout_ns > 0);
        if expires || cx.connected(UNANSWERED) {
            let now_ns = cx.now_ns();
            cx.set_timer(0, now_ns + WALK_INTERVAL_NS);
        }
        Ok(())
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let destination = b.get(Anno::DST_IP.into());
        let [front, back, _] = b.look_up(Box::new(self.cache.clone()), [destination.into()]);
        lower_encap(&mut b, [front, back], ether_type::IPV4);
        b.leave(0);
        b.finish()
    }

    /// Headers are shared with elements fused with this one.
    fn reconfigures(&self, _handler: &str) -> bool {
        false
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if port == 1 {
            for packet in batch.drain() {
                self.response(packet, cx);
            }
            return;
        }
        let now_ns = cx.now_ns();
        batch.filter_map(|packet| {
            let dst = u32::from_be_bytes(packet.dst_ip());
            match self.cache.find(dst, now_ns) {
                Some(header) => encapsulate(packet, header, cx),
                None => self.resolve(packet, dst, now_ns, cx),
            }
        });
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.expire(cx);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let dropped: u64 = KILLED.iter().map(|&reason| cx.dropped_for(reason)).sum();
        let mut of_table = |number: &mut dyn FnMut(&Neighbours) -> u64| {
            self.table.with(cx, |table| number(table)).unwrap_or_default().to_string()
        };
        Ok(match handler {
            "ipaddr" => self.ip.to_string(),
            "broadcast" => self.broadcast.to_string(),
            "stats" => format!("{dropped} packets killed\n{} ARP queries sent\n", self.queries),
            "queries" => self.queries.to_string(),
            "responses" => self.responses.to_string(),
            "drops" => dropped.to_string(),
            "count" => of_table(&mut |table| table.len() as u64),
            "evictions" => of_table(&mut |table| table.evicted()),
            _ => of_table(&mut |table| table.held() as u64),
        })
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        let mut last = None;
        let copy = move |e: &mut ArpQuerier, to: &mut _, cx: &mut Cx<'_>| {
            let now_ns = cx.now_ns();
            e.table.with(cx, |table| table.copy(&mut last, now_ns, to)).unwrap_or(false)
        };
        (handler == "table").then(|| in_pieces(copy, lines))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "ipaddr" => {
                self.ip = cx.value(handler, value)?;
                cx.set_argument("IP", &format!("{}/{}", self.ip, self.prefix_len));
                cx.set_argument("ETH", &Ether(self.mac.0).to_string());
            }
            "broadcast" => {
                self.broadcast = cx.value(handler, value)?;
                self.cache.clear();
            }
            "insert" => {
                let (ip, mac) = inserted(value, cx)?;
                self.learn(ip, mac, true, cx);
            }
            "delete" => {
                let ip = cx.value(handler, value)?;
                let (there, dropped) = self.table.with(cx, |table| table.forget(ip)).unwrap_or_default();
                cx.count_drops(Reason::Deleted, dropped as u64);
                if !there {
                    return Err(Error::new(format!("delete: no entry for {ip}")));
                }
            }
            _ => {
                let Some((dropped, entries)) = self.table.with(cx, Neighbours::clear) else { return Ok(()) };
                cx.count_drops(Reason::Deleted, dropped as u64);
                cx.dispose_of(entries);
            }
        }
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<ArpQuerier>() {
            if let Some((table, new)) = self.table.own().zip(new.table.own()) {
                table.limits = new.limits;
            }
            self.poll_timeout_ns = new.poll_timeout_ns;
            (self.ip, self.prefix_len, self.mac) = (new.ip, new.prefix_len, new.mac);
            (self.broadcast, self.broadcast_poll) = (new.broadcast, new.broadcast_poll);
            self.cache.clear();
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let old = old.downcast_mut::<ArpQuerier>().and_then(|old| old.table.own());
        if let Some((table, old)) = self.table.own().zip(old) {
            let dropped = table.take_over(old);
            cx.count_drops(Reason::Full, dropped as u64);
        }
    }

    fn held(&self) -> usize {
        if let Home::Own(table) = &self.table { table.held() } else { 0 }
    }
}

#[cfg(test)]
mod tests;
