//! The flow table: what an element remembers of flows, with a fixed number of places and timeouts in constant time.
//!
//! A flow has a place in a slab, `N` keys by which it is found, and a place in one *queue*. All flows of a queue wait for
//! the same timeout, so that the order in which they were last seen is the order in which they expire: to see a flow
//! is to move it to the end, and what expires next is at the front. Elements have few different timeouts, so this is a
//! timer wheel with a spoke for each of them: setting, moving and expiring are constant time and exact, nothing is
//! sorted or moved from spoke to spoke, and a million flows that expire at once can be taken as slowly as one likes.
//!
//! Room for all flows is reserved when the table is made, and the system gives memory as it is first touched, by huge pages
//! where the table is long; nothing is allocated afterwards. Where there is to be room for more, places are added, and the
//! flows move to a longer index some at a time ([`FlowTable::go_on`]); until then they are found in both. Keys are hashed
//! with a secret, so that nobody can choose flows that collide.
//!
//! To find a flow is to read a word of the index, a line of the cache, and the flow. Where both are far away, who has a batch
//! of packets asks for all of their words first ([`FlowTable::prefetch_word`]) and for the flows that these mean then
//! ([`FlowTable::prefetch_flow`]), so that the batch waits about as long as one packet. A word says where it would lie if there
//! were no others, and so the index is kept in order without a look at the flows.

mod index;
mod slots;

use causeway_packet::hints::prefetch;
use index::Index;
use slots::Slots;
use std::hash::{BuildHasher, RandomState};

/// Flows that a table has room for where nobody says how many.
pub(crate) const ROOM: usize = 1 << 20;
/// Most flows that anybody may ask room for.
pub(crate) const MOST: usize = 1 << PLACE_BITS;

/// Places whose flows move to a longer index with each flow that is added.
const MOVED: usize = 4;
/// Words of an index whose memory is given back at a time.
const RELEASED: usize = 1 << 16;

/// No flow.
const NIL: u32 = u32::MAX;
/// Bits of a flow's place.
const PLACE_BITS: u32 = 24;
/// Flows with which a table is too long for the processor's second-level cache.
const LONG: usize = 1 << 14;

/// Place of a flow in its table, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(u32);

/// Why a flow cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places are taken.
    Full,
    /// Another flow has one of the keys.
    Taken(Id),
}

struct Slot<V, const N: usize> {
    keys: [u128; N],
    /// `None` = free.
    value: Option<V>,
    expires: u64,
    queue: u32,
    before: u32,
    behind: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    front: u32,
    back: u32,
}

/// Flows with `N` keys each, all different among them.
pub(crate) struct FlowTable<V, const N: usize> {
    slots: Slots<Slot<V, N>>,
    /// Free places, chained by `behind`.
    free: u32,
    len: usize,
    /// Most flows.
    limit: usize,
    /// A key's word means which one of the flow it is (8 bits), and the flow's place (24 bits).
    index: Index,
    /// Shorter ones that still have the keys of flows, but for those in the first `moved` places.
    earlier: Vec<Index>,
    moved: usize,
    /// The memory of those that have none any more.
    unused: Vec<Vec<u64>>,
    queues: Vec<Queue>,
    secret: [u64; 2],
}

impl<V, const N: usize> FlowTable<V, N> {
    /// An empty table for `limit` flows, at most [`MOST`], which wait in `queues` queues.
    pub fn new(limit: usize, queues: usize) -> Self {
        let limit = limit.min(MOST);
        let random = RandomState::new();
        FlowTable {
            slots: Slots::new(limit),
            free: NIL,
            len: 0,
            limit,
            index: Index::new(limit * N),
            earlier: Vec::new(),
            moved: 0,
            unused: Vec::new(),
            queues: vec![Queue { front: NIL, back: NIL }; queues],
            secret: [random.hash_one(0), random.hash_one(1)],
        }
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Most flows.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Lets at most `limit` flows in from now on; those that are there stay. Room that is missing is made; that takes no
    /// longer with more flows, and leaves something to [`FlowTable::go_on`].
    pub fn set_limit(&mut self, limit: usize) {
        let limit = limit.min(MOST);
        self.limit = limit;
        self.slots.reserve(limit);
        if Index::length(limit * N) > self.index.words.len() {
            self.earlier.push(std::mem::replace(&mut self.index, Index::new(limit * N)));
            self.moved = 0;
        }
    }

    /// Adds queues until there are `queues`.
    pub fn add_queues(&mut self, queues: usize) {
        let queues = queues.max(self.queues.len());
        self.queues.resize(queues, Queue { front: NIL, back: NIL });
    }

    /// Whether flows are likely to be far from the processor, so that it pays to ask for them in advance.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.len >= LONG
    }

    /// Asks for the index's word of `key`, which the answer names.
    #[inline]
    pub fn prefetch_word(&self, key: u128) -> usize {
        self.index.prefetch(self.hash(key))
    }

    /// Asks for the flow that the word means which [`FlowTable::prefetch_word`] named; in most cases it is the key's.
    #[inline]
    pub fn prefetch_flow(&self, word: usize) {
        if let Some(&word) = self.index.words.get(word)
            && let Some(slot) = self.slots.get(Self::meant(word).0 as usize)
        {
            prefetch(slot);
        }
    }

    /// `key`'s hash, not 0.
    #[inline]
    fn hash(&self, key: u128) -> u32 {
        // A product of 128 bits, folded: every bit of the key and of the secret moves every bit of it.
        let (low, high) = (key as u64 ^ self.secret[0], (key >> 64) as u64 ^ self.secret[1]);
        let product = u128::from(low).wrapping_mul(u128::from(high) | 1 << 63);
        let folded = (product as u64 ^ (product >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (folded >> 32) as u32 | 1
    }

    /// The flow that a word of the index means, and which of its keys.
    #[inline]
    fn meant(word: u64) -> (u32, usize) {
        (word as u32 & ((1 << PLACE_BITS) - 1), (word as u32 >> PLACE_BITS) as usize)
    }

    #[inline]
    fn key_at(slots: &Slots<Slot<V, N>>, word: u64) -> u128 {
        let (place, which) = Self::meant(word);
        slots[place as usize].keys[which]
    }

    /// The word of `key`.
    #[inline]
    fn word(&self, key: u128) -> Option<u64> {
        let hash = self.hash(key);
        let position = |index: &Index| index.position(hash, |word| Self::key_at(&self.slots, word) == key);
        match position(&self.index) {
            Some(at) => Some(self.index.words[at]),
            None => self.earlier.iter().find_map(|index| Some(index.words[position(index)?])),
        }
    }

    /// The flow with `key`, and which of its keys that is.
    #[inline]
    pub fn find(&self, key: u128) -> Option<(Id, usize)> {
        let (place, which) = Self::meant(self.word(key)?);
        Some((Id(place), which))
    }

    /// Adds a flow that expires at `expires`, the latest of its queue.
    pub fn insert(&mut self, keys: [u128; N], value: V, queue: usize, expires: u64) -> Result<Id, NoPlace> {
        if let Some((other, _)) = keys.iter().find_map(|&key| self.find(key)) {
            return Err(NoPlace::Taken(other));
        }
        if self.len >= self.limit {
            return Err(NoPlace::Full);
        }
        let slot = Slot { keys, value: Some(value), expires, queue: queue as u32, before: NIL, behind: NIL };
        let place = match self.free {
            NIL => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            place => {
                self.free = self.slots[place as usize].behind;
                self.slots[place as usize] = slot;
                place
            }
        };
        self.len += 1;
        self.move_on(MOVED);
        self.index_flow(place);
        self.link(place);
        Ok(Id(place))
    }

    fn index_flow(&mut self, place: u32) {
        for which in 0..N {
            let key = self.slots[place as usize].keys[which];
            // Where a flow has one key twice the last counts.
            if self.slots[place as usize].keys[which + 1..].contains(&key) {
                continue;
            }
            let hash = self.hash(key);
            self.index.add(hash, (which as u32) << PLACE_BITS | place);
        }
    }

    /// Takes `key` out of the index that has it; answers its word.
    fn unindex(&mut self, key: u128) -> Option<u64> {
        let hash = self.hash(key);
        let FlowTable { slots, index, earlier, .. } = self;
        std::iter::once(index).chain(earlier).find_map(|index| {
            let at = index.position(hash, |word| Self::key_at(slots, word) == key)?;
            Some(index.remove(at))
        })
    }

    /// After more room was made: moves the flows of at most `most` places to the longer index, or gives back some of the memory of
    /// the shorter one. Says whether there is more to be done.
    pub fn go_on(&mut self, most: usize) -> bool {
        match self.earlier.is_empty() {
            true => self.release(),
            false => self.move_on(most),
        }
        !self.earlier.is_empty() || !self.unused.is_empty()
    }

    #[inline]
    fn move_on(&mut self, most: usize) {
        if !self.earlier.is_empty() {
            self.move_flows(most);
        }
    }

    #[inline(never)]
    fn move_flows(&mut self, most: usize) {
        let to = self.moved.saturating_add(most).min(self.slots.len());
        for place in self.moved..to {
            for key in
                self.slots[place].value.is_some().then_some(self.slots[place].keys).into_iter().flatten()
            {
                if let Some(word) = self.unindex(key) {
                    self.index.add((word >> 32) as u32, word as u32);
                }
            }
        }
        self.moved = to;
        if to == self.slots.len() {
            self.unused.extend(self.earlier.drain(..).map(|index| index.words));
        }
    }

    /// Gives back some memory of an index that is not used any more: giving back all of it would take long.
    fn release(&mut self) {
        let Some(words) = self.unused.last_mut() else { return };
        words.truncate(words.len().saturating_sub(RELEASED));
        words.shrink_to_fit();
        if words.is_empty() {
            self.unused.pop();
        }
    }

    fn link(&mut self, place: u32) {
        let queue = self.slots[place as usize].queue as usize;
        let back = self.queues[queue].back;
        self.slots[place as usize].before = back;
        self.slots[place as usize].behind = NIL;
        match back {
            NIL => self.queues[queue].front = place,
            back => self.slots[back as usize].behind = place,
        }
        self.queues[queue].back = place;
    }

    fn unlink(&mut self, place: u32) {
        let Slot { before, behind, queue, .. } = self.slots[place as usize];
        match before {
            NIL => self.queues[queue as usize].front = behind,
            before => self.slots[before as usize].behind = behind,
        }
        match behind {
            NIL => self.queues[queue as usize].back = before,
            behind => self.slots[behind as usize].before = before,
        }
    }

    /// Lets a flow wait in `queue` until `expires`: at its end, or where it is if that is before who waits behind it. So
    /// the news of an old packet does not hide the flow behind those that expire later.
    #[inline]
    pub fn touch(&mut self, id: Id, queue: usize, expires: u64) {
        let Slot { queue: waits_in, behind, .. } = self.slots[id.0 as usize];
        if waits_in == queue as u32 && (behind == NIL || expires <= self.slots[behind as usize].expires) {
            self.slots[id.0 as usize].expires = expires;
            return;
        }
        self.unlink(id.0);
        let slot = &mut self.slots[id.0 as usize];
        (slot.queue, slot.expires) = (queue as u32, expires);
        self.link(id.0);
    }

    /// The flow of `queue` that expires next, and when.
    #[inline]
    pub fn next(&self, queue: usize) -> Option<(u64, Id)> {
        let front = self.queues.get(queue)?.front;
        (front != NIL).then(|| (self.slots[front as usize].expires, Id(front)))
    }

    /// When the flow expires, and in which queue it waits.
    #[inline]
    pub fn expiry(&self, id: Id) -> (u64, usize) {
        let slot = &self.slots[id.0 as usize];
        (slot.expires, slot.queue as usize)
    }

    /// The flow, which must be in the table.
    #[inline]
    pub fn get(&self, id: Id) -> Option<&V> {
        self.slots.get(id.0 as usize)?.value.as_ref()
    }

    /// The flow, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut V> {
        self.slots.get_mut(id.0 as usize)?.value.as_mut()
    }

    /// The flow's keys.
    pub fn keys(&self, id: Id) -> [u128; N] {
        self.slots[id.0 as usize].keys
    }

    /// Takes a flow out.
    pub fn remove(&mut self, id: Id) -> Option<V> {
        let value = self.slots.get_mut(id.0 as usize)?.value.take()?;
        for key in self.slots[id.0 as usize].keys {
            self.unindex(key);
        }
        self.unlink(id.0);
        self.slots[id.0 as usize].behind = self.free;
        self.free = id.0;
        self.len -= 1;
        Some(value)
    }

    /// All flows, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &V)> {
        let flow = |place: usize| Some((Id(place as u32), self.slots[place].value.as_ref()?));
        (0..self.slots.len()).filter_map(flow)
    }

    /// Places that have flows, or had.
    pub fn spread(&self) -> usize {
        self.slots.len()
    }

    /// The flows in the next `most` places of a walk over all, which begins at place 0, and whether it goes on after them.
    pub fn walk(&self, place: &mut usize, most: usize) -> (impl Iterator<Item = (Id, &V)>, bool) {
        let from = *place;
        *place = from.saturating_add(most).min(self.slots.len());
        let flow = |place: usize| Some((Id(place as u32), self.slots.get(place)?.value.as_ref()?));
        let flows = (from..*place).filter_map(flow);
        (flows, *place < self.slots.len())
    }
}

#[cfg(test)]
mod tests;
