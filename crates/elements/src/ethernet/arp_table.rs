//! What is known of neighbours: their addresses, and the packets that wait for them.
//!
//! The table holds at most so many packets and entries; what is oldest goes first. It knows no clock and sends
//! nothing: its user tells it the time and acts on its answers. Times are in nanoseconds.

use causeway_packet::Packet;
use causeway_packet::wire::MacAddr;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// Time that must pass between two queries for one address.
pub(super) const QUERY_INTERVAL_NS: u64 = 100_000_000;

/// What the table may hold, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Packets held, in all.
    pub(super) packets: usize,
    /// Entries; 0 = no limit.
    pub(super) entries: usize,
    /// Packets held for one address; 0 = no limit.
    pub(super) entry_packets: usize,
    /// When a limit is passed, one part in two to the power of this is freed.
    pub(super) slim_factor: u32,
    /// Life of an entry; 0 = for ever.
    pub(super) timeout_ns: u64,
    /// Age from which on an entry's neighbour is asked again; 0 = never.
    pub(super) poll_timeout_ns: u64,
}

/// One neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// `None` until it has answered.
    pub(super) mac: Option<MacAddr>,
    /// When it answered last, or was first asked for.
    pub(super) since_ns: u64,
    asked_ns: Option<u64>,
    packets: VecDeque<(u64, Packet)>,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Send it to this address. Until `until_ns` the answer stays the same; ask the neighbour again if `poll`.
    Known { mac: MacAddr, until_ns: u64, poll: bool },
    /// Let it wait.
    Unknown,
}

/// Neighbours by address.
#[derive(Debug)]
pub(super) struct ArpTable {
    pub(super) limits: Limits,
    entries: HashMap<Ipv4Addr, Neighbour>,
    /// Packets in the order in which they came, by serial number; those that left are skipped.
    order: VecDeque<(u64, Ipv4Addr)>,
    serial: u64,
    held: usize,
}

impl ArpTable {
    pub(super) fn new(limits: Limits) -> Self {
        let (entries, order) = (HashMap::new(), VecDeque::new());
        ArpTable { limits, entries, order, serial: 0, held: 0 }
    }

    /// Packets held.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Neighbours, by address.
    pub(super) fn list(&self) -> Vec<(Ipv4Addr, &Neighbour)> {
        let mut list: Vec<_> = self.entries.iter().map(|(ip, n)| (*ip, n)).collect();
        list.sort_by_key(|(ip, _)| *ip);
        list
    }

    fn expiry_ns(&self, neighbour: &Neighbour) -> u64 {
        after(neighbour.since_ns, self.limits.timeout_ns)
    }

    /// What is known of `ip`.
    pub(super) fn find(&mut self, ip: Ipv4Addr, now_ns: u64) -> Found {
        let Some(neighbour) = self.entries.get(&ip) else { return Found::Unknown };
        let expiry_ns = self.expiry_ns(neighbour);
        let poll_ns = after(neighbour.since_ns, self.limits.poll_timeout_ns);
        let Some(mac) = neighbour.mac.filter(|_| now_ns < expiry_ns) else { return Found::Unknown };
        if now_ns < poll_ns {
            return Found::Known { mac, until_ns: poll_ns.min(expiry_ns), poll: false };
        }
        let poll = self.may_ask(ip, now_ns);
        Found::Known { mac, until_ns: expiry_ns.min(now_ns + QUERY_INTERVAL_NS), poll }
    }

    /// Whether `ip` may be asked for now; if so, it is taken to be.
    fn may_ask(&mut self, ip: Ipv4Addr, now_ns: u64) -> bool {
        let Some(n) = self.entries.get_mut(&ip) else { return false };
        let may = n.asked_ns.is_none_or(|asked| now_ns >= asked.saturating_add(QUERY_INTERVAL_NS));
        if may {
            n.asked_ns = Some(now_ns);
        }
        may
    }

    /// Keeps `packet` until `ip` is known. Returns whether to ask for it now, and how many packets were dropped
    /// to make room.
    pub(super) fn wait(&mut self, ip: Ipv4Addr, packet: Packet, now_ns: u64) -> (bool, usize) {
        let mut dropped = self.make_room_for(ip);
        let fresh = Neighbour { mac: None, since_ns: now_ns, asked_ns: None, packets: VecDeque::new() };
        let neighbour = self.entries.entry(ip).or_insert(fresh);
        if neighbour.mac.take().is_some() {
            // It has expired and starts anew.
            neighbour.since_ns = now_ns;
        }
        let most = self.limits.entry_packets;
        if most > 0 && neighbour.packets.len() >= most && neighbour.packets.pop_front().is_some() {
            self.held -= 1;
            dropped += 1;
        }
        neighbour.packets.push_back((self.serial, packet));
        self.order.push_back((self.serial, ip));
        self.serial += 1;
        self.held += 1;
        if self.held > self.limits.packets {
            dropped += self.drop_oldest(self.held - slim(self.limits.packets, self.limits.slim_factor));
        }
        self.tidy_order();
        (self.may_ask(ip, now_ns), dropped)
    }

    /// Notes that `ip` is at `mac`; returns the packets that waited for it.
    pub(super) fn learn(
        &mut self,
        ip: Ipv4Addr,
        mac: MacAddr,
        now_ns: u64,
    ) -> (impl Iterator<Item = Packet> + use<>, usize) {
        let dropped = self.make_room_for(ip);
        let known = Neighbour { mac: Some(mac), since_ns: now_ns, asked_ns: None, packets: VecDeque::new() };
        let packets = self.entries.insert(ip, known).map_or(VecDeque::new(), |old| old.packets);
        self.held -= packets.len();
        (packets.into_iter().map(|(_, packet)| packet), dropped)
    }

    /// Forgets `ip`; returns whether it was there and how many packets waited for it.
    pub(super) fn forget(&mut self, ip: Ipv4Addr) -> (bool, usize) {
        let Some(old) = self.entries.remove(&ip) else { return (false, 0) };
        self.held -= old.packets.len();
        (true, old.packets.len())
    }

    /// Forgets everything; returns how many packets waited.
    pub(super) fn clear(&mut self) -> usize {
        self.entries.clear();
        self.order.clear();
        std::mem::take(&mut self.held)
    }

    /// Forgets what is too old. Returns how many packets waited for it, and when the next entry will be too old.
    pub(super) fn expire(&mut self, now_ns: u64) -> (usize, Option<u64>) {
        let timeout_ns = self.limits.timeout_ns;
        let held = self.held;
        let mut next: Option<u64> = None;
        let left = &mut self.held;
        self.entries.retain(|_, n| {
            let expiry_ns = after(n.since_ns, timeout_ns);
            if expiry_ns <= now_ns {
                *left -= n.packets.len();
                return false;
            }
            next = Some(next.map_or(expiry_ns, |at| at.min(expiry_ns)));
            true
        });
        (held - self.held, next)
    }

    /// Takes over the content of `old`, down to the own limits; returns how many packets were dropped.
    pub(super) fn take_over(&mut self, old: &mut ArpTable) -> usize {
        let limits = self.limits;
        *self = ArpTable { limits, ..std::mem::replace(old, ArpTable::new(old.limits)) };
        let over_packets = self.drop_oldest(self.held.saturating_sub(limits.packets));
        over_packets + self.drop_entries(if limits.entries > 0 { limits.entries } else { usize::MAX })
    }

    /// Frees entries if `ip` would be one too many.
    fn make_room_for(&mut self, ip: Ipv4Addr) -> usize {
        let most = self.limits.entries;
        if most == 0 || self.entries.len() < most || self.entries.contains_key(&ip) {
            return 0;
        }
        self.drop_entries(slim(most, self.limits.slim_factor).min(most - 1))
    }

    /// Forgets the oldest entries until `left` are left; returns how many packets waited for them.
    fn drop_entries(&mut self, left: usize) -> usize {
        let Some(surplus) = self.entries.len().checked_sub(left).filter(|&n| n > 0) else { return 0 };
        let mut by_age: Vec<(u64, Ipv4Addr)> = self.entries.iter().map(|(ip, n)| (n.since_ns, *ip)).collect();
        by_age.sort_unstable();
        by_age.into_iter().take(surplus).map(|(_, ip)| self.forget(ip).1).sum()
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

/// `limit` less the part that is freed at once.
fn slim(limit: usize, factor: u32) -> usize {
    limit - (limit >> factor.min(usize::BITS - 1)).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        packets: 6,
        entries: 0,
        entry_packets: 0,
        slim_factor: 63,
        timeout_ns: 1_000_000_000,
        poll_timeout_ns: 400_000_000,
    };

    fn ip(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, n)
    }

    fn packet(n: u8) -> Packet {
        Packet::from_bytes(&[n]).unwrap()
    }

    #[test]
    fn answers_age() {
        let mut t = ArpTable::new(LIMITS);
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(t.find(ip(1), 0), Found::Unknown);
        drop(t.learn(ip(1), mac, 100));
        assert_eq!(t.find(ip(1), 200), Found::Known { mac, until_ns: 400_000_100, poll: false });
        let poll_ns = 450_000_000;
        let until_ns = poll_ns + QUERY_INTERVAL_NS;
        assert_eq!(t.find(ip(1), poll_ns), Found::Known { mac, until_ns, poll: true });
        assert_eq!(t.find(ip(1), poll_ns), Found::Known { mac, until_ns, poll: false });
        assert_eq!(t.find(ip(1), 1_000_000_100), Found::Unknown);
        assert_eq!((t.expire(1_000_000_099), t.len()), ((0, Some(1_000_000_100)), 1));
        assert_eq!((t.expire(1_000_000_100), t.len()), ((0, None), 0));
    }

    #[test]
    fn entries_have_limits_of_their_own() {
        let mut t = ArpTable::new(Limits { entries: 2, entry_packets: 2, ..LIMITS });
        assert_eq!(t.wait(ip(1), packet(1), 1), (true, 0));
        assert_eq!(t.wait(ip(1), packet(2), 2), (false, 0));
        assert_eq!(t.wait(ip(1), packet(3), 3), (false, 1));
        t.wait(ip(2), packet(4), 4);
        assert_eq!(t.wait(ip(3), packet(5), 5), (true, 2), "the oldest entry goes, with what waited for it");
        assert_eq!((t.len(), t.held()), (2, 2));
    }

    proptest! {
        /// Against a list of the packets that wait, oldest first.
        #[test]
        fn packets_leave_by_answer_age_or_order(
            steps in prop::collection::vec((0u8..5, 0u8..3), 0..120),
            capacity in 1usize..8,
        ) {
            let mut table = ArpTable::new(Limits { packets: capacity, ..LIMITS });
            let mut waiting: Vec<(u8, u8)> = Vec::new();
            for (n, (action, host)) in steps.into_iter().enumerate() {
                let now_ns = n as u64;
                match action {
                    0..3 => {
                        if table.find(ip(host), now_ns) != Found::Unknown {
                            continue;
                        }
                        waiting.push((host, n as u8));
                        let surplus = waiting.len().saturating_sub(capacity);
                        waiting.drain(..surplus);
                        prop_assert_eq!(table.wait(ip(host), packet(n as u8), now_ns).1, surplus);
                    }
                    3 => {
                        let (packets, _) = table.learn(ip(host), MacAddr::ZERO, now_ns);
                        let came: Vec<u8> = packets.map(|p| p.data()[0]).collect();
                        let (ours, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(h, _)| *h == host);
                        prop_assert_eq!(came, ours.into_iter().map(|(_, n)| n).collect::<Vec<_>>());
                        waiting = others;
                    }
                    _ => {
                        let before = waiting.len();
                        waiting.retain(|(h, _)| *h != host);
                        prop_assert_eq!(table.forget(ip(host)).1, before - waiting.len());
                    }
                }
                prop_assert_eq!(table.held(), waiting.len());
                prop_assert!(table.order.len() <= 2 * table.held() + 65);
            }
        }
    }
}
