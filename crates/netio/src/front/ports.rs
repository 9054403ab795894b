//! The records of the ports, where programs find them by interface index.

use super::PORTS;
use super::code::{NEAR, NEAR_RECORDS, near};
use super::port::PortRecord;
use crate::Result;
use causeway_bpf::{GracePeriod, Map, MapKind, MappedArray};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The records.
///
/// All are in a hash. Most are also near: where the lowest bits of the index lead to, which is two loads instead of a call and a
/// hash. A near record must be found in one piece, so it is written before a word leads to it and never changed, and used again
/// when no program runs that may have found it.
#[derive(Debug)]
pub(super) struct Ports {
    all: Map,
    near: MappedArray,
    places: Mutex<Places>,
}

/// Places for near records.
#[derive(Debug)]
struct Places {
    free: Vec<u32>,
    /// Those that programs may still look at.
    retired: Vec<u32>,
    grace: GracePeriod,
}

impl Ports {
    /// Has the interface be found near alone, for a test of that.
    #[cfg(test)]
    pub fn forget_far(&self, ifindex: u32) {
        self.all.remove(&ifindex.to_ne_bytes()).expect("it was there");
    }

    /// None yet.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<Ports> {
        let all = Map::new(MapKind::Hash, "ports", 4, PortRecord::LEN, PORTS)?;
        let near = MappedArray::new("near_ports", near::BYTES, 1)?;
        let (free, retired) = ((0..NEAR_RECORDS).rev().collect(), Vec::new());
        Ok(Ports { all, near, places: Mutex::new(Places { free, retired, grace: GracePeriod::new()? }) })
    }

    /// The hash and the near ones, for programs.
    pub fn maps(&self) -> [BorrowedFd<'_>; 2] {
        [self.all.as_fd(), self.near.map().as_fd()]
    }

    /// The interface has this record from now on.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn insert(&self, ifindex: u32, record: &PortRecord) -> Result<()> {
        let mut places = self.lock();
        self.all.insert(&ifindex.to_ne_bytes(), &record.to_bytes())?;
        let word = self.near.word(near::word(ifindex));
        let before = word.load(Ordering::Relaxed);
        if ifindex == 0 || before != 0 && before >> 32 != u64::from(ifindex) {
            // No interface's index, or another's place: this one is in the hash alone.
            return Ok(());
        }
        // Without a place for the new record the old one must not be found any more: then it is in the hash alone.
        let now = places.take().map_or(0, |place| {
            self.write(place, record);
            u64::from(ifindex) << 32 | u64::from(place)
        });
        // Release: who finds the record finds what was written there.
        word.store(now, Ordering::Release);
        places.retired.extend((before != 0).then_some(before as u32));
        Ok(())
    }

    /// The interface has no record any more.
    pub fn remove(&self, ifindex: u32) {
        let mut places = self.lock();
        let word = self.near.word(near::word(ifindex));
        let before = word.load(Ordering::Relaxed);
        if before != 0 && before >> 32 == u64::from(ifindex) {
            word.store(0, Ordering::Release);
            places.retired.push(before as u32);
        }
        // Nobody else removes it, so it is there; without it the program passes everything.
        let _ = self.all.remove(&ifindex.to_ne_bytes());
    }

    /// Held from the look at a word to its change.
    #[expect(clippy::disallowed_methods, reason = "the control side; programs take no lock")]
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, place: u32, record: &PortRecord) {
        let mut bytes = [0; NEAR as usize];
        bytes[..PortRecord::LEN].copy_from_slice(&record.to_bytes());
        let (words, _) = bytes.as_chunks();
        for (at, word) in (near::record(place)..).step_by(8).zip(words) {
            self.near.word(at).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }
}

impl Places {
    /// A place that no program looks at. There are more than ports, so there is none only if programs cannot be waited for.
    fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() && self.grace.wait().is_ok() {
            self.free.append(&mut self.retired);
        }
        self.free.pop()
    }
}
