//! Values that are kept once, numbered and counted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Values by key, numbered densely and counted; a number is free only after [`Interned::sweep`].
#[derive(Debug)]
pub(super) struct Interned<K, V> {
    slots: Vec<Option<Slot<K, V>>>,
    /// The lowest is taken first, because users' tables are as long as the highest number in use.
    free: BinaryHeap<Reverse<u32>>,
    ids: HashMap<K, u32, BuildHasherDefault<Mixer>>,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    references: u32,
}

/// A quick hash of few words: every route message looks its hop up. Who could choose keys to make it slow chooses the routes.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        // An odd number near 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4).
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes high and low bits; the low ones of a product depend on few.
        self.0 ^ (self.0 >> 32)
    }
}

impl<K, V> Default for Interned<K, V> {
    fn default() -> Self {
        Interned { slots: Vec::new(), free: BinaryHeap::new(), ids: HashMap::default() }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Interned<K, V> {
    /// The number of `key`, with one more reference to it.
    pub fn acquire(&mut self, key: K) -> u32 {
        if let Some(&id) = self.ids.get(&key) {
            self.retain(id);
            return id;
        }
        let slot = Slot { key: key.clone(), value: V::default(), references: 1 };
        let id = match self.free.pop() {
            Some(Reverse(id)) => {
                self.slots[id as usize] = Some(slot);
                id
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        };
        self.ids.insert(key, id);
        id
    }

    /// One more reference.
    pub fn retain(&mut self, id: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(id as usize) {
            slot.references += 1;
        }
    }

    /// One reference less.
    pub fn release(&mut self, id: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(id as usize) {
            slot.references = slot.references.saturating_sub(1);
        }
    }

    /// The number of `key`, if it has one.
    pub fn find(&self, key: &K) -> Option<u32> {
        self.ids.get(key).copied()
    }

    pub fn get(&self, id: u32) -> Option<(&K, &V)> {
        self.slots.get(id as usize)?.as_ref().map(|slot| (&slot.key, &slot.value))
    }

    pub fn get_mut(&mut self, id: u32) -> Option<(&K, &mut V)> {
        self.slots.get_mut(id as usize)?.as_mut().map(|slot| (&slot.key, &mut slot.value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.slots.iter().enumerate().filter_map(|(id, slot)| {
            let slot = slot.as_ref()?;
            Some((id as u32, &slot.key, &slot.value))
        })
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &K, &mut V)> {
        self.slots.iter_mut().enumerate().filter_map(|(id, slot)| {
            let slot = slot.as_mut()?;
            Some((id as u32, &slot.key, &mut slot.value))
        })
    }

    /// Frees what nothing refers to; calls `freed` for each.
    pub fn sweep(&mut self, mut freed: impl FnMut(u32, K, V)) {
        for (id, place) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = place.take_if(|slot| slot.references == 0) {
                self.ids.remove(&slot.key);
                self.free.push(Reverse(id as u32));
                freed(id as u32, slot.key, slot.value);
            }
        }
    }
}
