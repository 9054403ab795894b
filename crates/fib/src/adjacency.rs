//! Adjacencies: what routes lead to, kept apart from the routes.
//!
//! A route holds an index; the entry behind it is a next hop (of whatever type the router uses) or a group of them.
//! Routes to the same next hop share the entry, so a next hop that changes moves all its routes by one store,
//! whatever their number (prefix-independent convergence, draft-ietf-rtgwg-bgp-pic).
//!
//! A group spreads flows over its members by weight through a table of buckets. A change of its members moves as
//! few buckets as the new weights allow, so the loss of one member moves the flows of that member only (resilient
//! hashing, RFC 2992 compares the alternatives).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crate::epoch::{Domain, Limbo, Participant, Pinned};
use crate::error::FibError;
use crate::group::{BUCKETS, Buckets, distribute};
use crate::rcu::{RcuCell, Retired};
use crate::table::{AdjacencyIndex, MISS};

/// Adjacencies a table holds at most; index 0 is [`MISS`].
pub const ADJACENCIES_MAX: u32 = 1 << 15;

/// An entry of the table.
#[derive(Debug)]
enum Entry<T> {
    NextHop(T),
    Group(Box<Buckets>),
}

#[derive(Debug)]
struct Core<T> {
    entries: Box<[RcuCell<Entry<T>>]>,
    /// What the writer could not free before it went away; freed with the last reader.
    leftover: Mutex<Vec<Retired<Entry<T>>>>,
}

impl<T> Drop for Core<T> {
    fn drop(&mut self) {
        let leftover = self.leftover.get_mut().unwrap_or_else(PoisonError::into_inner);
        for retired in leftover.drain(..) {
            // SAFETY: the last handle is going away, so no reader is left.
            unsafe { retired.free() };
        }
    }
}

/// Something that waits until no reader can be using it.
#[derive(Debug)]
enum Waiting<T> {
    Value(Retired<Entry<T>>),
    Index(AdjacencyIndex),
}

/// The writer's handle: hands out indices and changes what they lead to.
#[derive(Debug)]
pub struct Adjacencies<T> {
    core: Arc<Core<T>>,
    domain: Arc<Domain>,
    limbo: Limbo<Waiting<T>>,
    users: Vec<u32>,
    by_value: HashMap<T, AdjacencyIndex>,
    free: std::collections::VecDeque<AdjacencyIndex>,
}

impl<T: Clone + Eq + Hash + Send + Sync + 'static> Default for Adjacencies<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Eq + Hash + Send + Sync + 'static> Adjacencies<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        let entries = (0..ADJACENCIES_MAX).map(|_| RcuCell::empty()).collect();
        Adjacencies {
            core: Arc::new(Core { entries, leftover: Mutex::new(Vec::new()) }),
            domain: Domain::new(),
            limbo: Limbo::new(),
            users: vec![0],
            by_value: HashMap::new(),
            free: std::collections::VecDeque::new(),
        }
    }

    /// A handle for a worker.
    #[must_use]
    pub fn reader(&self) -> AdjacencyReader<T> {
        AdjacencyReader { core: self.core.clone(), participant: self.domain.participant() }
    }

    /// The index of a next hop, shared with everyone who asked for an equal one. Each `acquire` wants a
    /// [`release`](Self::release).
    ///
    /// # Errors
    /// [`FibError::Full`] if all [`ADJACENCIES_MAX`] are in use.
    pub fn acquire(&mut self, next_hop: T) -> Result<AdjacencyIndex, FibError> {
        if let Some(&index) = self.by_value.get(&next_hop) {
            self.users[index as usize] += 1;
            return Ok(index);
        }
        let index = self.new_index()?;
        self.by_value.insert(next_hop.clone(), index);
        self.put(index, Some(Entry::NextHop(next_hop)));
        Ok(index)
    }

    /// A group of next hops with weights. Each `group` wants a [`release`](Self::release).
    ///
    /// # Errors
    /// [`FibError::Full`]; [`FibError::AdjacencyRange`] if a member is no next hop of this table;
    /// [`FibError::NotFound`] if no member has a weight.
    pub fn group(&mut self, members: &[(AdjacencyIndex, u32)]) -> Result<AdjacencyIndex, FibError> {
        let buckets = self.distribute(None, members)?;
        let index = self.new_index()?;
        self.put(index, Some(Entry::Group(buckets)));
        Ok(index)
    }

    /// Changes what an index leads to: all routes that hold it follow at once.
    ///
    /// # Errors
    /// [`FibError::NotFound`] if the index is not in use.
    pub fn set_next_hop(&mut self, index: AdjacencyIndex, next_hop: T) -> Result<(), FibError> {
        self.check_used(index)?;
        self.by_value.retain(|_, &mut held| held != index);
        self.by_value.entry(next_hop.clone()).or_insert(index);
        self.put(index, Some(Entry::NextHop(next_hop)));
        Ok(())
    }

    /// Changes the members of a group, moving as few flows as the weights allow.
    ///
    /// # Errors
    /// As [`group`](Self::group); [`FibError::NotFound`] also if `index` is not in use.
    pub fn set_members(
        &mut self,
        index: AdjacencyIndex,
        members: &[(AdjacencyIndex, u32)],
    ) -> Result<(), FibError> {
        self.check_used(index)?;
        let buckets = self.distribute(Some(index), members)?;
        self.put(index, Some(Entry::Group(buckets)));
        Ok(())
    }

    /// Gives an index back. When its last user has, the entry goes away, and the index is handed out again only
    /// when no reader that was pinned before can still be holding it.
    ///
    /// # Errors
    /// [`FibError::NotFound`] if the index is not in use.
    pub fn release(&mut self, index: AdjacencyIndex) -> Result<(), FibError> {
        self.check_used(index)?;
        self.users[index as usize] -= 1;
        if self.users[index as usize] == 0 {
            self.by_value.retain(|_, &mut held| held != index);
            self.put(index, None);
            self.limbo.retire(&self.domain, [Waiting::Index(index)]);
        }
        Ok(())
    }

    /// Indices in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.iter().filter(|&&users| users > 0).count()
    }

    /// Whether no index is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check_used(&self, index: AdjacencyIndex) -> Result<(), FibError> {
        let used = self.users.get(index as usize).is_some_and(|&users| users > 0);
        if used { Ok(()) } else { Err(FibError::NotFound) }
    }

    fn new_index(&mut self) -> Result<AdjacencyIndex, FibError> {
        let fresh = self.users.len() as AdjacencyIndex;
        if fresh < ADJACENCIES_MAX && self.free.is_empty() {
            self.users.push(1);
            return Ok(fresh);
        }
        if self.free.is_empty() {
            self.reclaim(true);
        }
        let index = self.free.pop_front().ok_or(FibError::Full)?;
        self.users[index as usize] = 1;
        Ok(index)
    }

    fn distribute(
        &self,
        group: Option<AdjacencyIndex>,
        members: &[(AdjacencyIndex, u32)],
    ) -> Result<Box<Buckets>, FibError> {
        let reader = self.reader();
        let view = reader.pin();
        for &(member, _) in members {
            if !matches!(view.entry(member), Some(Entry::NextHop(_))) {
                return Err(FibError::AdjacencyRange {
                    adjacency: member,
                    largest: self.users.len() as u32 - 1,
                });
            }
        }
        let before = match group.and_then(|index| view.entry(index)) {
            Some(Entry::Group(buckets)) => Some(&**buckets),
            _ => None,
        };
        distribute(before, members).ok_or(FibError::NotFound)
    }

    fn put(&mut self, index: AdjacencyIndex, entry: Option<Entry<T>>) {
        let old = self.core.entries[index as usize].swap(entry.map(Box::new));
        self.limbo.retire(&self.domain, old.map(Waiting::Value));
        self.reclaim(false);
    }

    fn reclaim(&mut self, now: bool) {
        let free = &mut self.free;
        self.limbo.reclaim(&self.domain, now, |waiting| match waiting {
            // SAFETY: `reclaim` hands out only what no reader of this domain can see.
            Waiting::Value(retired) => unsafe { retired.free() },
            Waiting::Index(index) => free.push_back(index),
        });
    }
}

impl<T> Drop for Adjacencies<T> {
    fn drop(&mut self) {
        let mut leftover = self.core.leftover.lock().unwrap_or_else(PoisonError::into_inner);
        leftover.extend(self.limbo.drain().filter_map(|waiting| match waiting {
            Waiting::Value(retired) => Some(retired),
            Waiting::Index(_) => None,
        }));
    }
}

/// A worker's handle of [`Adjacencies`].
#[derive(Debug)]
pub struct AdjacencyReader<T> {
    core: Arc<Core<T>>,
    participant: Participant,
}

impl<T> Clone for AdjacencyReader<T> {
    fn clone(&self) -> Self {
        AdjacencyReader { core: self.core.clone(), participant: self.participant.clone() }
    }
}

impl<T> AdjacencyReader<T> {
    /// A view for one batch. Pin before the lookup in the forwarding table: then no index that lookup returns is
    /// handed out for another next hop before the batch is done.
    #[inline]
    #[must_use]
    pub fn pin(&self) -> AdjacencyView<'_, T> {
        AdjacencyView { core: &self.core, pinned: self.participant.pin() }
    }
}

/// The adjacencies for the length of a batch.
pub struct AdjacencyView<'a, T> {
    core: &'a Core<T>,
    pinned: Pinned<'a>,
}

impl<T> AdjacencyView<'_, T> {
    #[inline]
    fn entry(&self, index: AdjacencyIndex) -> Option<&Entry<T>> {
        let cell = self.core.entries.get(index as usize)?;
        // SAFETY: the pin comes from this table's reader, so from this table's domain.
        unsafe { cell.get(&self.pinned) }
    }

    /// The next hop for a packet: the entry's own, or the member of the group that the packet's flow hash chooses;
    /// `flow_hash` is called for groups only. `None` for [`MISS`] and for indices that lead nowhere.
    #[inline]
    #[must_use]
    pub fn resolve_with(&self, index: AdjacencyIndex, flow_hash: impl FnOnce() -> u32) -> Option<&T> {
        if index == MISS {
            return None;
        }
        match self.entry(index)? {
            Entry::NextHop(next_hop) => Some(next_hop),
            Entry::Group(buckets) => match self.entry(buckets[flow_hash() as usize % BUCKETS])? {
                Entry::NextHop(next_hop) => Some(next_hop),
                Entry::Group(_) => None,
            },
        }
    }

    /// [`resolve_with`](Self::resolve_with) for a hash that is known already.
    #[inline]
    #[must_use]
    pub fn resolve(&self, index: AdjacencyIndex, flow_hash: u32) -> Option<&T> {
        self.resolve_with(index, || flow_hash)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn equal_next_hops_share_an_index_and_move_together() {
        let mut table = Adjacencies::new();
        let reader = table.reader();
        let first = table.acquire("10.0.0.1").unwrap();
        assert_eq!(table.acquire("10.0.0.1").unwrap(), first);
        let second = table.acquire("10.0.0.2").unwrap();
        assert_ne!(first, second);
        table.set_next_hop(first, "10.0.0.9").unwrap();
        assert_eq!(reader.pin().resolve(first, 0), Some(&"10.0.0.9"));
        assert_eq!(reader.pin().resolve(MISS, 0), None);
        table.release(first).unwrap();
        assert_eq!(reader.pin().resolve(first, 0), Some(&"10.0.0.9"), "one user is left");
        table.release(first).unwrap();
        assert_eq!(reader.pin().resolve(first, 0), None);
        assert_eq!(table.release(first), Err(FibError::NotFound));
    }

    #[test]
    fn an_index_is_not_reused_under_a_pinned_reader() {
        let mut table = Adjacencies::new();
        let reader = table.reader();
        let indices: Vec<_> = (1..ADJACENCIES_MAX).map(|hop| table.acquire(hop).unwrap()).collect();
        assert_eq!(table.acquire(0), Err(FibError::Full));
        let view = reader.pin();
        table.release(indices[7]).unwrap();
        assert_eq!(table.acquire(0), Err(FibError::Full), "the reader may hold the index");
        drop(view);
        assert_eq!(table.acquire(0), Ok(indices[7]));
    }

    #[test]
    fn groups_follow_their_members() {
        let mut table = Adjacencies::new();
        let reader = table.reader();
        let (a, b) = (table.acquire("a").unwrap(), table.acquire("b").unwrap());
        let group = table.group(&[(a, 1), (b, 3)]).unwrap();
        let count =
            |wanted| (0..256).filter(|&hash| reader.pin().resolve(group, hash) == Some(&wanted)).count();
        assert_eq!((count("a"), count("b")), (64, 192));
        table.set_next_hop(a, "c").unwrap();
        assert_eq!(count("c"), 64);
        assert!(table.group(&[(group, 1)]).is_err(), "groups do not nest");
        assert!(table.group(&[(a, 0)]).is_err());
        table.set_members(group, &[(b, 3)]).unwrap();
        assert_eq!(count("b"), 256);
    }
}
