//! Next hops: the pairs of gateway and output that routes share, published to workers without locks.
//!
//! The lookup structure maps a prefix to the number of a hop. Routes to the same gateway and output share one, so
//! the table holds few distinct values and compresses well. A worker reads a snapshot that it renews only when the
//! version has moved on; a hop is published before the first route that names it.

use super::family::Family;
use causeway_fib::{Address, AdjacencyIndex};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hop<A> {
    /// Gateway, or zero when the destination is on the link.
    pub gateway: A,
    /// Output of the element.
    pub port: u16,
}

/// The published hops.
#[derive(Debug)]
pub(crate) struct Published<A> {
    version: AtomicU64,
    hops: Mutex<Arc<[Hop<A>]>>,
}

/// A worker's view of the hops.
#[derive(Clone, Debug)]
pub(crate) struct View<A> {
    published: Arc<Published<A>>,
    seen: u64,
    hops: Arc<[Hop<A>]>,
}

impl<A: Address> View<A> {
    pub fn new(published: &Arc<Published<A>>) -> Self {
        let mut view = View { published: published.clone(), seen: u64::MAX, hops: Arc::new([]) };
        view.renew();
        view
    }

    /// The hops as they are now. Call it after the lookup, once a batch.
    #[inline]
    pub fn current(&mut self) -> &[Hop<A>] {
        if self.published.version.load(Ordering::Acquire) != self.seen {
            self.renew();
        }
        &self.hops
    }

    /// The hops as [`View::current`] found them last.
    #[inline]
    pub fn seen(&self) -> &[Hop<A>] {
        &self.hops
    }

    #[cold]
    fn renew(&mut self) {
        self.seen = self.published.version.load(Ordering::Acquire);
        // Taken only after a change of the routes, and only against the control side.
        self.hops = self.published.hops.lock().unwrap_or_else(PoisonError::into_inner).clone();
    }
}

impl<A: Family> Hops<A> {
    /// `OUTPUT [GATEWAY]` for the hop called `number`, or -1.
    pub fn text(&self, number: AdjacencyIndex) -> String {
        match self.get(number) {
            Some(hop) if hop.gateway != A::ZERO => format!("{} {}", hop.port, hop.gateway.to_text()),
            Some(hop) => hop.port.to_string(),
            None => "-1".to_owned(),
        }
    }
}

/// The control side's hops.
#[derive(Debug)]
pub(crate) struct Hops<A> {
    published: Arc<Published<A>>,
    /// By number less one; number 0 means "no route".
    hops: Vec<Hop<A>>,
    users: Vec<usize>,
    by_hop: HashMap<Hop<A>, AdjacencyIndex>,
    /// Numbers without users, longest unused first. They are given out again only when all others are taken, so
    /// that no packet in flight can meet a number whose meaning has changed.
    free: VecDeque<AdjacencyIndex>,
    most: AdjacencyIndex,
}

impl<A: Address> Hops<A> {
    /// No hops; at most `most` of them can be in use.
    pub fn new(most: AdjacencyIndex) -> Self {
        let published = Published { version: AtomicU64::new(0), hops: Mutex::new(Arc::new([])) };
        Hops {
            published: Arc::new(published),
            hops: Vec::new(),
            users: Vec::new(),
            by_hop: HashMap::new(),
            free: VecDeque::new(),
            most,
        }
    }

    /// What workers make their views from.
    pub fn published(&self) -> &Arc<Published<A>> {
        &self.published
    }

    /// The number of `hop`, with one more user; `None` when no number is left. Publish before using it.
    pub fn acquire(&mut self, hop: Hop<A>) -> Option<AdjacencyIndex> {
        if let Some(&number) = self.by_hop.get(&hop) {
            self.users[number as usize - 1] += 1;
            return Some(number);
        }
        let number = match (self.hops.len() as AdjacencyIndex) < self.most {
            true => {
                self.hops.push(hop);
                self.users.push(0);
                self.hops.len() as AdjacencyIndex
            }
            false => self.free.pop_front()?,
        };
        let old = std::mem::replace(&mut self.hops[number as usize - 1], hop);
        if old != hop {
            self.by_hop.remove(&old);
        }
        self.by_hop.insert(hop, number);
        self.users[number as usize - 1] = 1;
        Some(number)
    }

    /// One user less of hop `number`.
    pub fn release(&mut self, number: AdjacencyIndex) {
        let Some(users) = self.users.get_mut((number as usize).wrapping_sub(1)).filter(|u| **u > 0) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            self.by_hop.remove(&self.hops[number as usize - 1]);
            self.free.push_back(number);
        }
    }

    /// The hop called `number`.
    pub fn get(&self, number: AdjacencyIndex) -> Option<Hop<A>> {
        self.hops.get((number as usize).checked_sub(1)?).copied()
    }

    /// Shows the workers the hops as they are now.
    pub fn publish(&self) {
        *self.published.hops.lock().unwrap_or_else(PoisonError::into_inner) = self.hops.as_slice().into();
        self.published.version.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(n: u32) -> Hop<u32> {
        Hop { gateway: n, port: n as u16 }
    }

    #[test]
    fn hops_are_shared_counted_and_reused_last() {
        let mut hops = Hops::new(3);
        let (a, b) = (hops.acquire(hop(1)).unwrap(), hops.acquire(hop(2)).unwrap());
        assert_eq!((hops.acquire(hop(1)), a, b), (Some(1), 1, 2));
        hops.release(a);
        hops.release(b);
        assert_eq!(hops.acquire(hop(3)), Some(3), "a fresh number before a used one");
        assert_eq!(hops.acquire(hop(4)), Some(2));
        assert_eq!(hops.acquire(hop(5)), None, "1 still has a user");
        assert_eq!((hops.get(2), hops.get(0), hops.get(9)), (Some(hop(4)), None, None));
    }

    #[test]
    fn a_view_sees_what_was_published() {
        let mut hops = Hops::new(10);
        let mut view = View::new(hops.published());
        hops.acquire(hop(7));
        assert!(view.current().is_empty());
        hops.publish();
        assert_eq!(view.current(), [hop(7)]);
    }
}
