//! Keeping next hops resolved: which neighbours to ask the kernel about, and when. No I/O, no clock.
//!
//! The kernel asks for a neighbour when it has a packet for it. Packets that pass it by leave its entries to age, so the mirror
//! asks in their stead. A gateway gets a managed entry (`NTF_EXT_MANAGED`, since Linux 5.16), which the kernel keeps resolved
//! by itself; older kernels are told that the entry is in use, again and again. Hosts on the link become known by the first
//! packet, which is left to the kernel; when their entry grows stale and packets still go to them it is said to be in use. All
//! questions go through a token bucket, and none is asked twice within a second, so that a scan of a large prefix costs a
//! bounded rate of requests.
//!
//! Entries that somebody else made (permanent, learned from elsewhere, managed already) are left as they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::model::Neighbour;
use crate::uapi::{NUD_NOARP, NUD_PERMANENT, NUD_REACHABLE};

/// Interface index and address.
pub(crate) type Key = (u32, IpAddr);

/// Questions that may be asked at once, and a second.
const BURST: f64 = 200.0;
const RATE_PER_S: f64 = 200.0;
/// The same question is not asked again before this.
const REPEAT: Duration = Duration::from_secs(1);

/// Hosts that may wait to be asked about. One that finds no room is asked about when another packet goes to it.
const WAITING: usize = 4096;

/// Something to tell the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Keep this neighbour resolved.
    Manage(Key),
    /// This neighbour is in use: find out whether it is still there.
    Use(Key),
    /// This neighbour need not be kept any more.
    Release(Key),
}

/// Whether an entry is somebody else's, who does not want it changed.
pub(crate) fn is_foreign(entry: &Neighbour) -> bool {
    entry.state & (NUD_PERMANENT | NUD_NOARP) != 0 || (entry.learned && !entry.managed)
}

/// Whether an entry is as the keeper makes them.
pub(crate) fn is_kept(entry: &Neighbour) -> bool {
    entry.managed && entry.learned && entry.state & (NUD_PERMANENT | NUD_NOARP) == 0
}

/// Who is kept resolved.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// The kernel knows managed entries, and may be told to make some.
    manages: bool,
    /// Gateways, and whether a managed entry was made for each.
    gateways: BTreeMap<Key, bool>,
    /// Hosts to ask about once.
    hosts: BTreeSet<Key>,
    asked: HashMap<Key, Instant>,
    tokens: f64,
    filled: Option<Instant>,
}

impl Keeper {
    /// `manages` says whether the kernel knows managed entries, and may be told to make some.
    pub fn new(manages: bool) -> Self {
        Keeper {
            manages,
            gateways: BTreeMap::new(),
            hosts: BTreeSet::new(),
            asked: HashMap::new(),
            tokens: BURST,
            filled: None,
        }
    }

    /// The gateways in use are these now. Returns what is to be let go.
    pub fn keep(&mut self, gateways: &BTreeSet<Key>) -> Vec<Ask> {
        let gone: Vec<Key> = self.gateways.keys().filter(|key| !gateways.contains(key)).copied().collect();
        let managed = gone.into_iter().filter(|key| self.gateways.remove(key) == Some(true));
        let released = managed.map(Ask::Release).collect();
        for key in gateways {
            self.gateways.entry(*key).or_insert(false);
        }
        released
    }

    /// Ask about this host when there is a chance.
    pub fn solicit(&mut self, host: Key) {
        if self.hosts.len() < WAITING {
            self.hosts.insert(host);
        }
    }

    /// A managed entry was made for this neighbour by somebody who has left it to us: it is let go when it is no gateway.
    pub fn adopt(&mut self, key: Key) {
        self.gateways.insert(key, true);
    }

    /// Whether the kernel knows managed entries, and may be told to make some, is otherwise from now on.
    pub fn set_manages(&mut self, manages: bool) {
        self.manages = manages;
    }

    /// What became of the question to manage a neighbour: whether a managed entry was made.
    pub fn managed_one(&mut self, key: Key, made: bool) {
        if let Some(managed) = self.gateways.get_mut(&key) {
            *managed = made;
        }
    }

    /// What to ask now, given the kernel's entries.
    pub fn due<'a>(&mut self, now: Instant, entry: impl Fn(Key) -> Option<&'a Neighbour>) -> Vec<Ask> {
        self.fill(now);
        self.asked.retain(|_, &mut at| now.saturating_duration_since(at) < REPEAT);
        let mut asks = Vec::new();
        let gateways: Vec<Key> = self.gateways.keys().copied().collect();
        for key in gateways {
            let entry = entry(key);
            let settled = match entry {
                Some(entry) if is_foreign(entry) => {
                    // Also if it was ours: somebody took it over.
                    self.gateways.insert(key, false);
                    true
                }
                Some(entry) if self.manages => entry.managed,
                // Another router's, perhaps, in whose place this one will be.
                Some(entry) => entry.managed || entry.state & NUD_REACHABLE != 0,
                None => false,
            };
            if !settled && self.may_ask(key, now) {
                asks.push(if self.manages { Ask::Manage(key) } else { Ask::Use(key) });
            }
        }
        for key in std::mem::take(&mut self.hosts) {
            if self.asked.contains_key(&key) {
                continue;
            }
            if self.may_ask(key, now) {
                asks.push(Ask::Use(key));
            } else {
                self.hosts.insert(key);
            }
        }
        asks
    }

    /// The neighbours that managed entries were made for.
    pub fn managed(&self) -> impl Iterator<Item = Key> {
        self.gateways.iter().filter(|(_, managed)| **managed).map(|(key, _)| *key)
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = self.filled.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.tokens = (self.tokens + elapsed.as_secs_f64() * RATE_PER_S).min(BURST);
        self.filled = Some(now);
    }

    fn may_ask(&mut self, key: Key, now: Instant) -> bool {
        if self.tokens < 1.0 || self.asked.contains_key(&key) {
            return false;
        }
        self.tokens -= 1.0;
        self.asked.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::NUD_STALE;

    fn key(host: u8) -> Key {
        (3, IpAddr::from([10, 0, 0, host]))
    }

    fn entry(key: Key, state: u16, managed: bool) -> Neighbour {
        Neighbour { address: key.1, ifindex: key.0, mac: Some([2; 6]), state, managed, learned: managed }
    }

    #[test]
    fn a_gateway_is_managed_until_it_is_not_needed() {
        let start = Instant::now();
        let mut keeper = Keeper::new(true);
        assert!(keeper.keep(&BTreeSet::from([key(1)])).is_empty());
        assert_eq!(keeper.due(start, |_| None), [Ask::Manage(key(1))]);
        assert_eq!(keeper.managed().count(), 0, "it is not known to be made");
        keeper.managed_one(key(1), true);
        // Not again within a second, then again until the kernel shows it.
        assert!(keeper.due(start + REPEAT / 2, |_| None).is_empty());
        assert_eq!(keeper.due(start + REPEAT, |_| None), [Ask::Manage(key(1))]);
        let managed = entry(key(1), NUD_STALE, true);
        assert!(keeper.due(start + REPEAT * 3, |_| Some(&managed)).is_empty());
        assert!(keeper.managed().eq([key(1)]));
        assert_eq!(keeper.keep(&BTreeSet::new()), [Ask::Release(key(1))]);
        assert_eq!(keeper.managed().count(), 0);
    }

    #[test]
    fn what_was_left_to_us_is_let_go_once_it_is_no_gateway() {
        let mut keeper = Keeper::new(true);
        keeper.keep(&BTreeSet::from([key(1)]));
        [1, 2].into_iter().for_each(|host| keeper.adopt(key(host)));
        assert!(keeper.managed().eq([key(1), key(2)]));
        assert_eq!(keeper.keep(&BTreeSet::from([key(1)])), [Ask::Release(key(2))]);
        assert_eq!(keeper.keep(&BTreeSet::new()), [Ask::Release(key(1))]);
    }

    #[test]
    fn what_others_made_is_left_alone_also_if_it_was_ours() {
        let start = Instant::now();
        let mut keeper = Keeper::new(true);
        keeper.keep(&BTreeSet::from([key(1), key(2), key(3)]));
        keeper.managed_one(key(1), true);
        let permanent = entry(key(1), NUD_PERMANENT, false);
        let learned = Neighbour { learned: true, ..entry(key(2), NUD_REACHABLE, false) };
        let managed = entry(key(3), NUD_REACHABLE, true);
        let entries = [permanent, learned, managed];
        let of = |key: Key| entries.iter().find(|entry| entry.address == key.1);
        assert!(keeper.due(start, of).is_empty());
        assert!(keeper.keep(&BTreeSet::new()).is_empty(), "nothing of ours is left to be let go");
    }

    #[test]
    fn old_kernels_are_told_that_the_entry_is_in_use() {
        let start = Instant::now();
        let mut keeper = Keeper::new(false);
        keeper.keep(&BTreeSet::from([key(1)]));
        let stale = entry(key(1), NUD_STALE, false);
        let permanent = entry(key(1), NUD_PERMANENT, false);
        assert_eq!(keeper.due(start, |_| Some(&stale)), [Ask::Use(key(1))]);
        assert!(keeper.due(start + REPEAT, |_| Some(&permanent)).is_empty());
        assert!(keeper.keep(&BTreeSet::new()).is_empty(), "nothing was made, nothing is let go");
    }

    #[test]
    fn what_another_router_has_made_is_left_alone_until_its_place_is_taken() {
        let start = Instant::now();
        let mut keeper = Keeper::new(false);
        keeper.keep(&BTreeSet::from([key(1), key(2)]));
        let entries = [entry(key(1), NUD_STALE, true), entry(key(2), NUD_STALE, false)];
        let of = |key: Key| entries.iter().find(|entry| entry.address == key.1);
        assert_eq!(keeper.due(start, of), [Ask::Use(key(2))], "the other is kept as it is");
        keeper.adopt(key(1));
        keeper.set_manages(true);
        assert_eq!(keeper.due(start + REPEAT, of), [Ask::Manage(key(2))]);
        assert_eq!(keeper.keep(&BTreeSet::new()), [Ask::Release(key(1))]);
    }

    #[test]
    fn a_scan_costs_a_bounded_rate() {
        let start = Instant::now();
        let mut keeper = Keeper::new(true);
        let mut asked = 0;
        for step in 0..10u32 {
            for host in 0..1000u32 {
                keeper.solicit((3, IpAddr::from((step * 1000 + host).to_be_bytes())));
            }
            asked += keeper.due(start + Duration::from_millis(u64::from(step) * 100), |_| None).len();
        }
        assert!((300..=200 + 180 + 1).contains(&asked), "{asked}");
    }

    #[test]
    fn one_host_is_asked_for_once_a_second() {
        let start = Instant::now();
        let mut keeper = Keeper::new(true);
        let mut asks = 0;
        for step in 0..20 {
            keeper.solicit(key(9));
            asks += keeper.due(start + Duration::from_millis(step * 100), |_| None).len();
        }
        assert_eq!(asks, 2);
    }
}
