//! The route cache of Linux 2.6, which the lookup paper measures (§II.B, §III.B, §III.C).
//!
//! A hash table in front of any table: buckets with chains, one entry for each key seen. With the flow as key
//! (source, destination, ToS) every new source needs an entry, even if all go the same way; with the destination as
//! key the sources cost nothing; switched off, every packet pays the table. Entries grow up to a limit; past a
//! threshold garbage is collected, the longest unused first.

use crate::address::Address;
use crate::lookup::AdjacencyIndex;

/// What a packet is looked up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flow<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// Type of service: the IPv4 ToS or the IPv6 traffic class.
    pub tos: u8,
}

/// Which part of a flow the cache is keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKey {
    /// Source, destination and ToS, as Linux had it.
    Flow,
    /// Destination only, the paper's patch (§III.B); right only without policy routing.
    Destination,
    /// No cache, the paper's other patch (§III.C).
    Off,
}

/// Sizes and times of a cache; the defaults follow Linux 2.6 on a machine of 1 GB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheConfig {
    /// Key.
    pub key: CacheKey,
    /// Buckets; rounded up to a power of two, at most 2^24.
    pub buckets: usize,
    /// Entries from which an insertion collects garbage (`gc_thresh`).
    pub gc_threshold: usize,
    /// Entries never exceeded (`max_size`), 1 to 2^24; a flow that finds the cache full goes uncached.
    pub entries_max: usize,
    /// Entries a bucket may hold on average before collection works harder (`gc_elasticity`).
    pub elasticity: usize,
    /// Age from which an unused entry is garbage, in milliseconds (`gc_timeout`).
    pub timeout_ms: u64,
    /// Least time between two collections, in milliseconds (`gc_min_interval`).
    pub gc_interval_ms: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self::with_buckets(CacheKey::Flow, 4096)
    }
}

impl CacheConfig {
    /// A configuration in the proportions of Linux: a threshold of one entry a bucket, a limit of sixteen.
    #[must_use]
    pub fn with_buckets(key: CacheKey, buckets: usize) -> Self {
        let buckets = buckets.clamp(1, MOST).next_power_of_two();
        CacheConfig {
            key,
            buckets,
            gc_threshold: buckets,
            entries_max: 16 * buckets,
            elasticity: 8,
            timeout_ms: 300_000,
            gc_interval_ms: 500,
        }
    }
}

/// What a cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Lookups answered from the cache.
    pub hits: u64,
    /// Lookups that went to the table.
    pub misses: u64,
    /// Entries passed over in chains.
    pub steps: u64,
    /// Runs of the garbage collector.
    pub collections: u64,
    /// Flows that found no room.
    pub overflows: u64,
}

/// What a lookup reads of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePlace {
    /// The bucket of this number.
    Bucket(u32),
    /// An entry of its chain.
    Entry(u32),
}

const NONE: u32 = u32::MAX;

/// Buckets or entries that a cache has at most.
const MOST: usize = 1 << 24;

#[derive(Clone, Copy, Debug)]
struct Entry<A> {
    flow: Flow<A>,
    adjacency: AdjacencyIndex,
    next: u32,
    used_ms: u64,
}

/// The cache; see the module. Owned by one worker.
#[derive(Clone, Debug)]
pub struct RouteCache<A> {
    config: CacheConfig,
    seed: u64,
    buckets: Vec<u32>,
    entries: Vec<Entry<A>>,
    free: Vec<u32>,
    /// Where the next collection goes on.
    rover: usize,
    collected_ms: Option<u64>,
    counts: CacheCounts,
}

impl<A: Address> RouteCache<A> {
    /// An empty cache. `seed` makes the hash differ between routers, so that no sender can aim at one bucket. Room
    /// for all entries is set aside at once, so that a lookup never allocates; the system gives the pages when they
    /// are first used.
    #[must_use]
    pub fn new(config: CacheConfig, seed: u64) -> Self {
        let buckets = config.buckets.clamp(1, MOST).next_power_of_two();
        let entries_max = config.entries_max.clamp(1, MOST);
        RouteCache {
            config: CacheConfig { buckets, entries_max, ..config },
            seed,
            buckets: vec![NONE; buckets],
            entries: Vec::with_capacity(entries_max),
            free: Vec::with_capacity(entries_max),
            rover: 0,
            collected_ms: None,
            counts: CacheCounts::default(),
        }
    }

    /// The adjacency of a flow: out of the cache, or from `table` and then into the cache. `now_ms` is any
    /// monotonic time in milliseconds.
    pub fn lookup(
        &mut self,
        flow: Flow<A>,
        now_ms: u64,
        table: impl FnOnce(A) -> AdjacencyIndex,
    ) -> AdjacencyIndex {
        self.visit(flow, now_ms, table, |_| ())
    }

    /// As [`RouteCache::lookup`]; tells of each place that it reads, for who wants to know what that takes.
    pub fn visit(
        &mut self,
        flow: Flow<A>,
        now_ms: u64,
        table: impl FnOnce(A) -> AdjacencyIndex,
        mut reads: impl FnMut(CachePlace),
    ) -> AdjacencyIndex {
        let key = match self.config.key {
            CacheKey::Off => {
                self.counts.misses += 1;
                return table(flow.destination);
            }
            CacheKey::Flow => flow,
            CacheKey::Destination => Flow { destination: flow.destination, ..Flow::default() },
        };
        let bucket = self.bucket(&key);
        reads(CachePlace::Bucket(bucket as u32));
        let mut at = self.buckets[bucket];
        while let Some(entry) = self.entries.get_mut(at as usize) {
            reads(CachePlace::Entry(at));
            if entry.flow == key {
                entry.used_ms = now_ms;
                self.counts.hits += 1;
                return entry.adjacency;
            }
            self.counts.steps += 1;
            at = entry.next;
        }
        self.counts.misses += 1;
        let adjacency = table(flow.destination);
        self.insert(key, adjacency, now_ms);
        adjacency
    }

    /// Forgets everything, as any change of a route made Linux do.
    pub fn flush(&mut self) {
        self.buckets.fill(NONE);
        self.entries.clear();
        self.free.clear();
    }

    /// Entries that hold a flow.
    #[must_use]
    pub fn active(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Entries allocated, in use or not.
    #[must_use]
    pub fn total(&self) -> usize {
        self.entries.len()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn bucket(&self, flow: &Flow<A>) -> usize {
        let mut hash = self.seed ^ u64::from(flow.tos);
        let mut mix = |word: u64| {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
        };
        for address in [flow.source, flow.destination] {
            for part in 0..A::BITS / 32 {
                mix(u64::from(address.bits(part * 32, 32)));
            }
        }
        hash as usize & (self.config.buckets - 1)
    }

    fn insert(&mut self, flow: Flow<A>, adjacency: AdjacencyIndex, now_ms: u64) {
        if self.active() >= self.config.gc_threshold {
            self.collect(now_ms);
        }
        if self.active() >= self.config.entries_max {
            self.counts.overflows += 1;
            return;
        }
        let bucket = self.bucket(&flow);
        let entry = Entry { flow, adjacency, next: self.buckets[bucket], used_ms: now_ms };
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.buckets[bucket] = at;
    }

    /// Frees entries unused for the timeout; while the buckets are fuller than their elasticity allows, or the
    /// limit is reached, for half of that, a quarter, and so on.
    fn collect(&mut self, now_ms: u64) {
        let full = self.active() >= self.config.entries_max;
        let early =
            self.collected_ms.is_some_and(|last| now_ms < last.saturating_add(self.config.gc_interval_ms));
        if early && !full {
            return;
        }
        self.collected_ms = Some(now_ms);
        self.counts.collections += 1;
        let allowed =
            self.config.elasticity.saturating_mul(self.config.buckets).min(self.config.entries_max - 1);
        let mut age_ms = self.config.timeout_ms;
        loop {
            for _ in 0..self.config.buckets {
                self.rover = (self.rover + 1) & (self.config.buckets - 1);
                self.expire(self.rover, now_ms, age_ms);
                if full && self.active() <= allowed {
                    return;
                }
            }
            if self.active() <= allowed || age_ms == 0 {
                return;
            }
            age_ms /= 2;
        }
    }

    fn expire(&mut self, bucket: usize, now_ms: u64, age_ms: u64) {
        let mut at = std::mem::replace(&mut self.buckets[bucket], NONE);
        let mut last = NONE;
        while at != NONE {
            let entry = self.entries[at as usize];
            if now_ms.saturating_sub(entry.used_ms) >= age_ms {
                self.free.push(at);
            } else {
                match last {
                    NONE => self.buckets[bucket] = at,
                    kept => self.entries[kept as usize].next = at,
                }
                self.entries[at as usize].next = NONE;
                last = at;
            }
            at = entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(source: u32, destination: u32) -> Flow<u32> {
        Flow { source, destination, tos: 0 }
    }

    #[test]
    fn sources_cost_entries_only_with_the_flow_as_key() {
        for (key, entries) in [(CacheKey::Flow, 1000), (CacheKey::Destination, 1), (CacheKey::Off, 0)] {
            let mut cache = RouteCache::new(CacheConfig::with_buckets(key, 4096), 1);
            for source in 0..1000 {
                assert_eq!(cache.lookup(flow(source, 9), 0, |destination| destination + 1), 10);
            }
            assert_eq!(cache.active(), entries, "{key:?}");
            assert_eq!(cache.counts().misses, if key == CacheKey::Off { 1000 } else { entries as u64 });
        }
    }

    #[test]
    fn garbage_goes_by_age_and_the_limit_holds() {
        let mut cache = RouteCache::new(CacheConfig::with_buckets(CacheKey::Flow, 16), 1);
        for source in 0..16 {
            cache.lookup(flow(source, 1), 0, |_| 1);
        }
        cache.lookup(flow(3, 1), 400_000, |_| unreachable!("cached"));
        cache.lookup(flow(99, 1), 400_000, |_| 1);
        assert_eq!(cache.active(), 2, "the others were unused for 400 s");
        assert_eq!(cache.total(), 16);
        for source in 1000..10_000 {
            cache.lookup(flow(source, 1), 400_001, |_| 1);
            assert!(cache.active() <= 256);
        }
    }

    #[test]
    fn a_hit_reads_its_bucket_and_the_chain_up_to_its_entry() {
        let mut cache = RouteCache::new(CacheConfig::with_buckets(CacheKey::Flow, 1), 1);
        (0..3).for_each(|source| _ = cache.lookup(flow(source, 9), 0, |_| 1));
        let mut reads = Vec::new();
        cache.visit(flow(1, 9), 0, |_| unreachable!("cached"), |place| reads.push(place));
        assert_eq!(reads, [CachePlace::Bucket(0), CachePlace::Entry(2), CachePlace::Entry(1)]);
        assert_eq!(cache.counts().steps, 1 + 2 + 1, "the newest entry is the first of its chain");
    }

    proptest! {
        #[test]
        fn a_cache_never_changes_an_answer(
            packets in prop::collection::vec((0_u32..50, 0_u32..50, any::<u8>(), 0_u64..10_000), 1..400),
            buckets in 1_usize..64,
            destination_only: bool,
        ) {
            let key = if destination_only { CacheKey::Destination } else { CacheKey::Flow };
            let mut cache = RouteCache::new(CacheConfig::with_buckets(key, buckets), 7);
            let mut now_ms = 0;
            for (source, destination, tos, wait_ms) in packets {
                now_ms += wait_ms;
                let flow = Flow { source, destination, tos };
                prop_assert_eq!(cache.lookup(flow, now_ms, |address| address * 3 + 1), destination * 3 + 1);
                prop_assert!(cache.active() <= cache.total());
            }
        }
    }
}
