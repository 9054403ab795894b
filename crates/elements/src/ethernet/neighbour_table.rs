//! What is known of neighbours: their addresses, and the packets that wait for them.
//!
//! The table holds at most so many packets and entries. Of packets the oldest go first. Entries go by what they are
//! worth, so that neither forged responses nor packets to addresses that nobody has can drive out the neighbours that
//! traffic goes to: first those that nobody wanted, then those that have not answered, then the others, and the
//! oldest of each first. It knows no clock and sends nothing: its user tells it the time and acts on its answers.
//! Times are in nanoseconds.

use causeway_engine::Conf;
use causeway_engine::pieces::PIECE;
use causeway_engine::value::{Ether, Nanoseconds};
use causeway_packet::Packet;
use causeway_packet::wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

/// Time between two walks that look for entries that are too old, at least, and between two parts of a walk.
pub(super) const WALK_INTERVAL_NS: u64 = 1_000_000_000;
const PART_INTERVAL_NS: u64 = 1_000_000;
/// Time that must pass between two queries for one address.
pub(super) const QUERY_INTERVAL_NS: u64 = 100_000_000;
/// The same once so many queries were not answered, each of which would ask all of the network.
const BACK_OFF: (u8, u64) = (10, 2_000_000_000);

/// What the table may hold, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Packets held, in all; 0 = no limit.
    pub(super) packets: usize,
    /// Entries; 0 = no limit.
    pub(super) entries: usize,
    /// Packets held for one address; 0 = no limit.
    pub(super) entry_packets: usize,
    /// When there are too many packets, one part in so many of the limit is freed, above 0.
    pub(super) slim_factor: usize,
    /// Life of an entry; 0 = for ever.
    pub(super) timeout_ns: u64,
    /// Age from which on an entry's neighbour is asked again; 0 = never.
    pub(super) poll_timeout_ns: u64,
}

impl Limits {
    /// The keywords CAPACITY to TIMEOUT; never asks again.
    pub(super) fn keywords(conf: &mut Conf<'_>) -> Limits {
        let limits = Limits {
            packets: conf.keyword("CAPACITY", 2_048u32) as usize,
            entries: conf.keyword("ENTRY_CAPACITY", 65_536u32) as usize,
            entry_packets: conf.keyword("ENTRY_PACKET_CAPACITY", 0u32) as usize,
            slim_factor: conf.keyword("CAPACITY_SLIM_FACTOR", 2u32) as usize,
            timeout_ns: conf.keyword("TIMEOUT", Nanoseconds(300_000_000_000)).0,
            poll_timeout_ns: 0,
        };
        if limits.slim_factor == 0 {
            conf.error("CAPACITY_SLIM_FACTOR cannot be zero");
        }
        limits
    }
}

/// One neighbour.
#[derive(Debug)]
struct Neighbour {
    /// `None` until it has answered.
    mac: Option<MacAddr>,
    /// When it answered last, or was first asked for.
    since_ns: u64,
    asked_ns: Option<u64>,
    /// Queries since it answered last, as far as they matter.
    unanswered: u8,
    /// Whether a packet was for it, or an administrator named it.
    wanted: bool,
    /// Its place among those of its worth; other places that name it are void.
    stamp: u64,
    packets: VecDeque<(u64, Packet)>,
}

/// What an entry is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// It came of a response that nobody asked for.
    Unwanted,
    /// It has not answered.
    Asked,
    /// It is known, and wanted.
    Known,
}

/// Number of worths.
const WORTHS: usize = 3;

impl Neighbour {
    fn worth(&self) -> Worth {
        match (self.wanted, self.mac) {
            (false, _) => Worth::Unwanted,
            (true, None) => Worth::Asked,
            (true, Some(_)) => Worth::Known,
        }
    }
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Send it to this address. Until `until_ns` the answer stays the same; ask the neighbour again if `poll`.
    Known { mac: MacAddr, until_ns: u64, poll: bool },
    /// Let it wait.
    Unknown,
}

/// What neighbours are known by.
pub(super) trait Address: Copy + Ord + Debug + Send + 'static {}

impl Address for Ipv4Addr {}
impl Address for Ipv6Addr {}

/// Neighbours of ARP.
pub(super) type ArpTable = Table<Ipv4Addr>;
/// Neighbours of neighbour discovery.
pub(super) type NdTable = Table<Ipv6Addr>;

/// A neighbour, as it is shown.
pub(super) struct Shown<A> {
    pub(super) ip: A,
    pub(super) mac: Option<MacAddr>,
    age_ns: u64,
}

/// Neighbours of ARP, a line each: address, 1 if known, Ethernet address, age in seconds.
pub(super) fn lines(neighbours: Vec<Shown<Ipv4Addr>>) -> String {
    let line = |Shown { ip, mac, age_ns }: Shown<Ipv4Addr>| {
        let (known, mac) = (u8::from(mac.is_some()), Ether(mac.unwrap_or(MacAddr::BROADCAST).0));
        format!("{ip} {known} {mac} {:.6}\n", age_ns as f64 / 1e9)
    };
    neighbours.into_iter().map(line).collect()
}

/// A walk over all entries that looks for those that are too old.
#[derive(Debug)]
struct Walk<A> {
    /// The last one that it has come to.
    last: Option<A>,
    /// When the first of those that it has come to will be too old.
    next_ns: Option<u64>,
}

impl<A> Default for Walk<A> {
    fn default() -> Self {
        Walk { last: None, next_ns: None }
    }
}

/// Neighbours by address.
#[derive(Debug)]
pub(super) struct Table<A> {
    pub(super) limits: Limits,
    entries: BTreeMap<A, Neighbour>,
    /// Entries by worth, oldest first, with their stamps.
    ages: [VecDeque<(u64, A)>; WORTHS],
    /// Packets in the order in which they came, by serial number; those that left are skipped.
    order: VecDeque<(u64, A)>,
    serial: u64,
    held: usize,
    walk: Walk<A>,
    /// Entries that made room for others, ever.
    evicted: u64,
}

impl<A: Address> Table<A> {
    pub(super) fn new(limits: Limits) -> Self {
        let (entries, order) = (BTreeMap::new(), VecDeque::new());
        let (ages, walk) = Default::default();
        Table { limits, entries, ages, order, serial: 0, held: 0, walk, evicted: 0 }
    }

    /// Packets held.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries that made room for others, ever.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Copies some neighbours, by address, on from the `last` one that was copied; says whether there may be more.
    pub(super) fn copy(&self, last: &mut Option<A>, now_ns: u64, to: &mut Vec<Shown<A>>) -> bool {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let shown = |(&ip, n): (&A, &Neighbour)| {
            let age_ns = now_ns.saturating_sub(n.since_ns);
            Shown { ip, mac: n.mac, age_ns }
        };
        to.extend(self.entries.range((from, Bound::Unbounded)).take(PIECE).map(shown));
        *last = to.last().map(|shown| shown.ip).or(*last);
        to.len() == PIECE
    }

    /// The Ethernet address of `ip`, if there is an entry, and if it has answered.
    pub(super) fn get(&self, ip: A) -> Option<Option<MacAddr>> {
        self.entries.get(&ip).map(|n| n.mac)
    }

    /// Neighbours that packets go to, and until when none of them needs to be asked again: so many at most, those that were put last
    /// among the others first.
    pub(super) fn settled(&self, most: usize) -> impl Iterator<Item = (A, MacAddr, u64)> + '_ {
        let youngest = self.ages[Worth::Known as usize].iter().rev();
        let settled = youngest.filter_map(|&(stamp, ip)| {
            let neighbour = self.entries.get(&ip).filter(|n| n.stamp == stamp)?;
            let timeout_ns = [self.limits.timeout_ns, self.limits.poll_timeout_ns];
            let [expiry_ns, poll_ns] = timeout_ns.map(|timeout_ns| after(neighbour.since_ns, timeout_ns));
            Some((ip, neighbour.mac?, expiry_ns.min(poll_ns)))
        });
        settled.take(most)
    }

    /// What is known of `ip`, for a packet.
    pub(super) fn find(&mut self, ip: A, now_ns: u64) -> Found {
        let Some(neighbour) = self.entries.get_mut(&ip) else { return Found::Unknown };
        let expiry_ns = after(neighbour.since_ns, self.limits.timeout_ns);
        let poll_ns = after(neighbour.since_ns, self.limits.poll_timeout_ns);
        let Some(mac) = neighbour.mac.filter(|_| now_ns < expiry_ns) else { return Found::Unknown };
        if !std::mem::replace(&mut neighbour.wanted, true) {
            self.put_last(ip);
        }
        if now_ns < poll_ns {
            return Found::Known { mac, until_ns: poll_ns.min(expiry_ns), poll: false };
        }
        let poll = self.may_ask(ip, now_ns);
        Found::Known { mac, until_ns: expiry_ns.min(now_ns + QUERY_INTERVAL_NS), poll }
    }

    /// Whether `ip` may be asked for now; if so, it is taken to be.
    fn may_ask(&mut self, ip: A, now_ns: u64) -> bool {
        let Some(n) = self.entries.get_mut(&ip) else { return false };
        let (many, long_ns) = BACK_OFF;
        let interval_ns = if n.unanswered >= many { long_ns } else { QUERY_INTERVAL_NS };
        let may = n.asked_ns.is_none_or(|asked| now_ns >= asked.saturating_add(interval_ns));
        if may {
            n.asked_ns = Some(now_ns);
            n.unanswered = n.unanswered.saturating_add(1);
        }
        may
    }

    /// Keeps `packet` until `ip` is known. Returns whether to ask for it now, and how many packets were dropped
    /// to make room.
    pub(super) fn wait(&mut self, ip: A, packet: Packet, now_ns: u64) -> (bool, usize) {
        let mut dropped = self.make_room_for(ip, Worth::Known).unwrap_or(0);
        let neighbour = self.entry(ip, now_ns);
        let expired = neighbour.mac.take().is_some();
        if !std::mem::replace(&mut neighbour.wanted, true) || expired {
            neighbour.since_ns = now_ns;
            self.put_last(ip);
        }
        let (most, serial) = (self.limits.entry_packets, self.serial);
        let neighbour = self.entry(ip, now_ns);
        let full = most > 0 && neighbour.packets.len() >= most;
        let replaced = full && neighbour.packets.pop_front().is_some();
        neighbour.packets.push_back((serial, packet));
        self.order.push_back((serial, ip));
        self.serial += 1;
        self.held += 1;
        self.held -= replaced as usize;
        dropped += replaced as usize;
        let limit = self.limits.packets;
        if limit > 0 && self.held > limit {
            dropped += self.drop_oldest(self.held - (limit - limit / self.limits.slim_factor).max(1));
        }
        self.tidy_order();
        (self.may_ask(ip, now_ns), dropped)
    }

    /// Notes that `ip` is at `mac`; returns the packets that waited for it, and how many others were dropped to make
    /// room. `None` if it is not `wanted`, and there is no room but that of neighbours that are.
    pub(super) fn learn(
        &mut self,
        ip: A,
        mac: MacAddr,
        wanted: bool,
        now_ns: u64,
    ) -> Option<(impl Iterator<Item = Packet> + use<A>, usize)> {
        let pushes_out = if wanted { Worth::Known } else { Worth::Unwanted };
        let dropped = self.make_room_for(ip, pushes_out)?;
        let neighbour = self.entry(ip, now_ns);
        neighbour.wanted |= wanted;
        (neighbour.mac, neighbour.since_ns, neighbour.asked_ns) = (Some(mac), now_ns, None);
        neighbour.unanswered = 0;
        let packets = std::mem::take(&mut neighbour.packets);
        self.held -= packets.len();
        self.put_last(ip);
        Some((packets.into_iter().map(|(_, packet)| packet), dropped))
    }

    /// The entry of `ip`, new if there is none.
    fn entry(&mut self, ip: A, now_ns: u64) -> &mut Neighbour {
        self.entries.entry(ip).or_insert_with(|| Neighbour {
            mac: None,
            since_ns: now_ns,
            asked_ns: None,
            unanswered: 0,
            wanted: false,
            stamp: 0,
            packets: VecDeque::new(),
        })
    }

    /// Makes the entry of `ip` the youngest of those of its worth.
    fn put_last(&mut self, ip: A) {
        let Some(neighbour) = self.entries.get_mut(&ip) else { return };
        self.serial += 1;
        neighbour.stamp = self.serial;
        let worth = neighbour.worth();
        let age = &mut self.ages[worth as usize];
        age.push_back((self.serial, ip));
        if age.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            age.retain(|(stamp, ip)| entries.get(ip).is_some_and(|n| n.stamp == *stamp));
        }
    }

    /// Forgets `ip`; returns whether it was there and how many packets waited for it.
    pub(super) fn forget(&mut self, ip: A) -> (bool, usize) {
        let Some(old) = self.entries.remove(&ip) else { return (false, 0) };
        self.held -= old.packets.len();
        (true, old.packets.len())
    }

    /// Forgets everything; returns how many packets waited, and what is left of the entries, which takes long to drop.
    pub(super) fn clear(&mut self) -> (usize, impl Send + use<A>) {
        self.ages.iter_mut().for_each(VecDeque::clear);
        self.order.clear();
        (std::mem::take(&mut self.held), std::mem::take(&mut self.entries))
    }

    /// Forgets what is too old among the next entries of a walk over all. Returns how many packets waited for that, and when to
    /// go on.
    pub(super) fn expire(&mut self, now_ns: u64) -> (usize, u64) {
        let Table { limits, entries, walk, .. } = self;
        let from = walk.last.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut gone, mut looked) = (Vec::new(), 0);
        for (&ip, n) in entries.range((from, Bound::Unbounded)).take(PIECE) {
            looked += 1;
            walk.last = Some(ip);
            match after(n.since_ns, limits.timeout_ns) {
                expiry_ns if expiry_ns <= now_ns => gone.push(ip),
                expiry_ns => walk.next_ns = Some(walk.next_ns.map_or(expiry_ns, |at| at.min(expiry_ns))),
            }
        }
        let dropped = gone.into_iter().map(|ip| self.forget(ip).1).sum();
        if looked == PIECE {
            return (dropped, now_ns + PART_INTERVAL_NS);
        }
        let soonest_ns = now_ns + WALK_INTERVAL_NS;
        let walk = std::mem::take(&mut self.walk);
        (dropped, walk.next_ns.map_or(soonest_ns, |next_ns| next_ns.max(soonest_ns)))
    }

    /// Gives up neighbours that packets wait for and that were first asked for at `first_ns` or before. Returns these
    /// packets, and the others of such neighbours that may be asked again now, and then are taken to be.
    pub(super) fn unanswered(&mut self, first_ns: u64, now_ns: u64) -> (Vec<Packet>, Vec<A>) {
        let waited_for: BTreeSet<A> = self.order.iter().map(|(_, ip)| *ip).collect();
        let waiting = |ip| self.entries.get(&ip).filter(|n| !n.packets.is_empty()).map(|n| (ip, n.since_ns));
        let (gone, mut asked): (Vec<_>, Vec<_>) =
            waited_for.into_iter().filter_map(waiting).partition(|(_, since_ns)| *since_ns <= first_ns);
        let gone = gone.into_iter().filter_map(|(ip, _)| self.entries.remove(&ip));
        let packets: Vec<Packet> = gone.flat_map(|n| n.packets).map(|(_, packet)| packet).collect();
        self.held -= packets.len();
        asked.retain(|(ip, _)| self.may_ask(*ip, now_ns));
        (packets, asked.into_iter().map(|(ip, _)| ip).collect())
    }

    /// Takes over the content of `old`, down to the own limits; returns how many packets were dropped.
    pub(super) fn take_over(&mut self, old: &mut Table<A>) -> usize {
        let limits = self.limits;
        *self = Table { limits, ..std::mem::replace(old, Table::new(old.limits)) };
        let most_packets = if limits.packets > 0 { limits.packets } else { usize::MAX };
        let mut dropped = self.drop_oldest(self.held.saturating_sub(most_packets));
        while limits.entries > 0
            && self.entries.len() > limits.entries
            && let Some(packets) = self.evict(Worth::Known)
        {
            dropped += packets;
        }
        dropped
    }

    /// Forgets an entry worth at most `most` if `ip` would be one too many; returns how many packets waited for it.
    /// `None` if there is no such entry.
    fn make_room_for(&mut self, ip: A, most: Worth) -> Option<usize> {
        let limit = self.limits.entries;
        if limit == 0 || self.entries.len() < limit || self.entries.contains_key(&ip) {
            return Some(0);
        }
        self.evict(most)
    }

    /// Forgets the entry that is worth least and is the oldest of those, if it is worth no more than `most`.
    fn evict(&mut self, most: Worth) -> Option<usize> {
        for worth in 0..=most as usize {
            while let Some((stamp, ip)) = self.ages[worth].pop_front() {
                if self.entries.get(&ip).is_some_and(|n| n.stamp == stamp) {
                    self.evicted += 1;
                    return Some(self.forget(ip).1);
                }
            }
        }
        None
    }

    /// Drops the `n` packets that waited longest.
    fn drop_oldest(&mut self, n: usize) -> usize {
        let mut dropped = 0;
        while dropped < n
            && let Some((serial, ip)) = self.order.pop_front()
        {
            let Some(neighbour) = self.entries.get_mut(&ip) else { continue };
            if neighbour.packets.front().is_some_and(|(first, _)| *first == serial) {
                neighbour.packets.pop_front();
                dropped += 1;
            }
        }
        self.held -= dropped;
        dropped
    }

    /// Removes packets that left from the order, once they are the most of it.
    fn tidy_order(&mut self) {
        if self.order.len() <= 2 * self.held + 64 {
            return;
        }
        let entries = &self.entries;
        let waits = |serial: u64, n: &Neighbour| n.packets.front().is_some_and(|(first, _)| *first <= serial);
        self.order.retain(|(serial, ip)| entries.get(ip).is_some_and(|n| waits(*serial, n)));
    }
}

/// `span_ns` after `at_ns`, where no span means never.
fn after(at_ns: u64, span_ns: u64) -> u64 {
    if span_ns == 0 { u64::MAX } else { at_ns.saturating_add(span_ns) }
}

#[cfg(test)]
mod tests;
