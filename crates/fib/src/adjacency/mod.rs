//! Adjacencies: what routes lead to, kept apart from the routes.
//!
//! A route holds an index; the entry behind it is a next hop (of whatever type the router uses) or a group of them.
//! Routes to the same next hop share the entry, so a next hop that changes moves all its routes by one store,
//! whatever their number (prefix-independent convergence, draft-ietf-rtgwg-bgp-pic).
//!
//! A group spreads flows over its members by weight. Where a flow goes depends on the members there are, their order
//! and their weights ([`group`]), so a member that is lost and comes back gets its flows back.
//!
//! An index is in use as long as a user or a group holds it. When it is not, it is handed out again, but not before
//! every reader has moved on that may have met it: an index that a forwarding table gave under a pin leads where the
//! route led, where it leads now, or nowhere, and never to a next hop of others. This ends with the pin.

mod group;
mod reader;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use crate::error::FibError;
use crate::lookup::AdjacencyIndex;
use crate::sync::cells::{Cells, Retired};
use crate::sync::epoch::{Domain, Limbo};

use group::Group;
pub use reader::{AdjacencyReader, AdjacencyView};

/// Adjacencies a table holds at most, with index 0, which is [`MISS`](crate::MISS).
pub const ADJACENCIES_MAX: u32 = if cfg!(loom) { 4 } else { 1 << 15 };

/// What an index leads to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a, T> {
    /// A next hop.
    NextHop(T),
    /// Next hops in order, with their weights.
    Group(&'a [(AdjacencyIndex, u32)]),
}

/// An entry of the table.
#[derive(Debug)]
enum Entry<T> {
    NextHop(T),
    Group(Group),
}

/// Something that waits until no reader can be using it.
#[derive(Debug)]
enum Waiting<T> {
    Value(Retired<Entry<T>>),
    Index(AdjacencyIndex),
}

/// What the writer knows of an index.
#[derive(Clone, Debug, Default)]
struct Use {
    users: u32,
    /// Times it is a member of a group.
    memberships: u32,
    is_group: bool,
}

impl Use {
    fn is_held(&self) -> bool {
        self.users > 0 || self.memberships > 0
    }
}

/// The writer's handle: hands out indices and changes what they lead to. What a call costs does not grow with the
/// number of indices in use.
#[derive(Debug)]
pub struct Adjacencies<T> {
    entries: Arc<Cells<Entry<T>>>,
    limbo: Limbo<Waiting<T>>,
    /// By index, as far as they were ever handed out.
    uses: Vec<Use>,
    held: usize,
    /// Which index to share for a next hop.
    by_value: HashMap<T, AdjacencyIndex>,
    free: VecDeque<AdjacencyIndex>,
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
        Self::in_domain(&Domain::new())
    }

    /// An empty table that is read under the announcements of a domain, as others are.
    #[must_use]
    pub fn in_domain(domain: &Domain) -> Self {
        Adjacencies {
            entries: Arc::new(Cells::empty(ADJACENCIES_MAX as usize, domain)),
            limbo: Limbo::new(),
            uses: vec![Use::default()], // of index 0, which nobody gets
            held: 0,
            by_value: HashMap::new(),
            free: VecDeque::new(),
        }
    }

    /// A handle for a worker.
    #[must_use]
    pub fn reader(&self) -> AdjacencyReader<T> {
        AdjacencyReader::new(&self.entries)
    }

    /// The index of a next hop, shared with everyone who asked for an equal one. Each `acquire` wants a
    /// [`release`](Self::release).
    ///
    /// # Errors
    /// [`FibError::Full`] if all [`ADJACENCIES_MAX`] are in use; [`FibError::Busy`] if some are not, but readers that
    /// may have met them have to move on first.
    pub fn acquire(&mut self, next_hop: T) -> Result<AdjacencyIndex, FibError> {
        if let Some(&index) = self.by_value.get(&next_hop) {
            self.uses[index as usize].users += 1;
            return Ok(index);
        }
        let index = self.new_index()?;
        self.put(index, Some(Entry::NextHop(next_hop)));
        Ok(index)
    }

    /// A group of next hops, in order and with weights. It holds its members: an index that its user releases stays
    /// what it is until the groups have let go of it, too. Each `group` wants a [`release`](Self::release).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); [`FibError::AdjacencyUnused`] or [`FibError::AdjacencyKind`] if a member is no
    /// next hop of this table; [`FibError::NoWeight`].
    pub fn group(&mut self, members: &[(AdjacencyIndex, u32)]) -> Result<AdjacencyIndex, FibError> {
        let group = self.new_group(members)?;
        let index = self.new_index()?;
        self.put(index, Some(Entry::Group(group)));
        Ok(index)
    }

    /// Changes a next hop: all routes and groups that hold its index follow at once.
    ///
    /// # Errors
    /// [`FibError::AdjacencyUnused`]; [`FibError::AdjacencyKind`] if the index is that of a group.
    pub fn set_next_hop(&mut self, index: AdjacencyIndex, next_hop: T) -> Result<(), FibError> {
        self.check_kind(index, false)?;
        self.replace(index, Target::NextHop(next_hop))
    }

    /// Changes the members of a group, which lets go of those it had.
    ///
    /// # Errors
    /// [`FibError::AdjacencyUnused`] if the index or a member is not in use; [`FibError::AdjacencyKind`] if the index
    /// is not that of a group or a member is; [`FibError::NoWeight`].
    pub fn set_members(
        &mut self,
        index: AdjacencyIndex,
        members: &[(AdjacencyIndex, u32)],
    ) -> Result<(), FibError> {
        self.check_kind(index, true)?;
        self.replace(index, Target::Group(members))
    }

    /// Changes what an index leads to, whatever it was: for a route that gets a second next hop, or has one left.
    ///
    /// # Errors
    /// [`FibError::AdjacencyUnused`] if the index or a member is not in use; [`FibError::AdjacencyKind`] if a member
    /// is a group or the index would be a group in a group; [`FibError::NoWeight`].
    pub fn replace(&mut self, index: AdjacencyIndex, target: Target<'_, T>) -> Result<(), FibError> {
        let memberships = self.used(index)?.memberships;
        let entry = match target {
            Target::NextHop(next_hop) => Entry::NextHop(next_hop),
            Target::Group(members) if memberships > 0 || members.iter().any(|member| member.0 == index) => {
                return Err(FibError::AdjacencyKind { adjacency: index });
            }
            Target::Group(members) => Entry::Group(self.new_group(members)?),
        };
        self.put(index, Some(entry));
        Ok(())
    }

    /// Gives an index back, which no route may hold any more. When nobody else holds it, it leads nowhere, and is
    /// handed out again when no reader is pinned that was before this call.
    ///
    /// # Errors
    /// [`FibError::AdjacencyUnused`] if the index has no user.
    pub fn release(&mut self, index: AdjacencyIndex) -> Result<(), FibError> {
        if self.used(index)?.users == 0 {
            return Err(FibError::AdjacencyUnused { adjacency: index });
        }
        self.uses[index as usize].users -= 1;
        self.let_go(index);
        Ok(())
    }

    /// The next hop that an index leads to; none if it leads nowhere or to a group.
    #[must_use]
    pub fn next_hop(&self, index: AdjacencyIndex) -> Option<&T> {
        // SAFETY: what is in the cells is taken out and freed by methods that want `&mut self`.
        match unsafe { self.entries.get_as_writer(index as usize) }? {
            Entry::NextHop(next_hop) => Some(next_hop),
            Entry::Group(_) => None,
        }
    }

    /// The members of the group that an index leads to, in order; empty if it leads to none. A flow takes the first member
    /// whose number, from 0 to 2^31, is above the upper 31 bits of its hash (RFC 2992 §2.1).
    #[must_use]
    pub fn regions(&self, index: AdjacencyIndex) -> Vec<(u32, AdjacencyIndex)> {
        // SAFETY: what is in the cells is taken out and freed by methods that want `&mut self`.
        match unsafe { self.entries.get_as_writer(index as usize) } {
            Some(Entry::Group(group)) => group.regions().collect(),
            Some(Entry::NextHop(_)) | None => Vec::new(),
        }
    }

    /// Indices in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held
    }

    /// Whether no index is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn used(&self, index: AdjacencyIndex) -> Result<&Use, FibError> {
        let of = self.uses.get(index as usize).filter(|of| of.is_held());
        of.ok_or(FibError::AdjacencyUnused { adjacency: index })
    }

    fn check_kind(&self, index: AdjacencyIndex, is_group: bool) -> Result<(), FibError> {
        let fits = self.used(index)?.is_group == is_group;
        if fits { Ok(()) } else { Err(FibError::AdjacencyKind { adjacency: index }) }
    }

    fn new_group(&self, members: &[(AdjacencyIndex, u32)]) -> Result<Group, FibError> {
        members.iter().try_for_each(|&(member, _)| self.check_kind(member, false))?;
        Group::new(members).ok_or(FibError::NoWeight)
    }

    /// An index with one user.
    fn new_index(&mut self) -> Result<AdjacencyIndex, FibError> {
        let fresh = self.uses.len() as AdjacencyIndex;
        let index = if self.free.is_empty() && fresh < ADJACENCIES_MAX {
            self.uses.push(Use::default());
            fresh
        } else {
            if self.free.is_empty() {
                self.reclaim(true);
            }
            let all_held = self.held + 1 == self.uses.len();
            self.free.pop_front().ok_or(if all_held { FibError::Full } else { FibError::Busy })?
        };
        self.uses[index as usize].users = 1;
        self.held += 1;
        Ok(index)
    }

    /// Puts an entry in place of another and keeps account of what they hold.
    fn put(&mut self, index: AdjacencyIndex, entry: Option<Entry<T>>) {
        let mut value = None;
        match &entry {
            // Held before the entry in place lets go of its members, which may be the same.
            Some(Entry::Group(group)) => {
                group.members().for_each(|member| self.uses[member as usize].memberships += 1);
            }
            Some(Entry::NextHop(next_hop)) => value = Some(next_hop.clone()),
            None => {}
        }
        self.uses[index as usize].is_group = matches!(entry, Some(Entry::Group(_)));
        if let Some(old) = self.entries.swap(index as usize, entry.map(Box::new)) {
            self.retire(index, old);
        }
        if let Some(value) = value {
            self.by_value.entry(value).or_insert(index);
        }
        self.reclaim(false);
    }

    fn retire(&mut self, index: AdjacencyIndex, old: Retired<Entry<T>>) {
        let mut members = Vec::new();
        match &*old {
            Entry::NextHop(next_hop) => {
                if self.by_value.get(next_hop) == Some(&index) {
                    self.by_value.remove(next_hop);
                }
            }
            Entry::Group(group) => members.extend(group.members()),
        }
        self.limbo.retire(self.entries.domain(), [Waiting::Value(old)]);
        for member in members {
            self.uses[member as usize].memberships -= 1;
            self.let_go(member);
        }
    }

    /// Takes the entry of an index away if nobody holds it.
    fn let_go(&mut self, index: AdjacencyIndex) {
        if !self.uses[index as usize].is_held() {
            self.held -= 1;
            self.put(index, None);
            self.limbo.retire(self.entries.domain(), [Waiting::Index(index)]);
        }
    }

    fn reclaim(&mut self, now: bool) {
        let free = &mut self.free;
        self.limbo.reclaim(self.entries.domain(), now, |waiting| match waiting {
            // SAFETY: `reclaim` hands out only what no reader of this domain can see.
            Waiting::Value(retired) => unsafe { retired.free() },
            Waiting::Index(index) => free.push_back(index),
        });
    }
}

impl<T> Drop for Adjacencies<T> {
    fn drop(&mut self) {
        self.entries.leave(self.limbo.drain().filter_map(|waiting| match waiting {
            Waiting::Value(retired) => Some(retired),
            Waiting::Index(_) => None,
        }));
    }
}

#[cfg(all(test, not(loom)))]
mod against_naive;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
