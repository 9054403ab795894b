//! The places of a table, in parts: where there are to be more no flow moves.

use causeway_packet::hints::prefer_huge_pages;
use std::ops::{Index, IndexMut};

/// Values in places from 0 on.
pub(super) struct Slots<T> {
    pub first: Vec<T>,
    /// What was added, each part at least as long as all before.
    more: Vec<Vec<T>>,
}

impl<T> Slots<T> {
    /// Room for `capacity` values.
    pub fn new(capacity: usize) -> Slots<T> {
        let mut first = Vec::with_capacity(capacity);
        prefer_huge_pages(first.spare_capacity_mut());
        Slots { first, more: Vec::new() }
    }

    /// Places that have values.
    pub fn len(&self) -> usize {
        self.first.len() + self.more.iter().map(Vec::len).sum::<usize>()
    }

    /// Places for which there is room.
    pub fn capacity(&self) -> usize {
        self.first.capacity() + self.more.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Makes room for `capacity` values. That takes the same time however many there are.
    pub fn reserve(&mut self, capacity: usize) {
        let missing = capacity.saturating_sub(self.capacity());
        if missing > 0 {
            let mut part = Vec::with_capacity(missing.max(self.capacity()));
            prefer_huge_pages(part.spare_capacity_mut());
            self.more.push(part);
        }
    }

    /// Puts a value into the next place, for which there must be room.
    pub fn push(&mut self, value: T) {
        let mut parts = std::iter::once(&mut self.first).chain(&mut self.more);
        if let Some(part) = parts.find(|part| part.len() < part.capacity()) {
            part.push(value);
        }
    }

    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match self.first.get(place) {
            Some(value) => Some(value),
            None => self.part(place).and_then(|(part, place)| self.more[part].get(place)),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        if place < self.first.len() {
            return self.first.get_mut(place);
        }
        self.part(place).and_then(|(part, place)| self.more[part].get_mut(place))
    }

    /// Of the parts that were added, the one with `place`, and which of its own places that is.
    #[inline(never)]
    fn part(&self, place: usize) -> Option<(usize, usize)> {
        let mut place = place.checked_sub(self.first.capacity())?;
        for (n, part) in self.more.iter().enumerate() {
            match place.checked_sub(part.capacity()) {
                Some(behind) => place = behind,
                None => return Some((n, place)),
            }
        }
        None
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        self.get(place).expect("a place that has a value")
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        self.get_mut(place).expect("a place that has a value")
    }
}
