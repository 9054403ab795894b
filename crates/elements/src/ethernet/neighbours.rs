//! A table of neighbours with the headers that were made from it, which several ARPQueriers may share.

use super::header_cache::HeaderCache;
use super::neighbour_table::{ArpTable, Limits};
use causeway_engine::{Conf, Error, Invalid};
use causeway_packet::Packet;
use causeway_packet::wire::MacAddr;
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table, and the caches of all who send by it: what the table forgets or learns anew, they forget.
pub(super) struct Neighbours {
    table: ArpTable,
    caches: Vec<HeaderCache>,
}

/// A table that elements of one worker have in common. These run one after the other, so nobody ever waits for the lock;
/// and it is not taken for packets whose headers are in the cache.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Neighbours>>);

impl Shared {
    #[allow(clippy::disallowed_methods, reason = "never waited for: all who share a table run on one worker")]
    pub fn lock(&self) -> MutexGuard<'_, Neighbours> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where elements find the table of the ARPTable called `name`.
fn key(name: &str, worker: usize) -> String {
    format!("neighbours of {name} on worker {worker}")
}

impl Neighbours {
    /// A table whose user has `cache`.
    pub fn own(limits: Limits, cache: HeaderCache) -> Shared {
        Shared(Arc::new(Mutex::new(Neighbours { table: ArpTable::new(limits), caches: vec![cache] })))
    }

    /// A table that others find by the name of the element that is configured.
    pub fn named(conf: &mut Conf<'_>, limits: Limits) -> Result<Shared, Invalid> {
        let key = key(conf.name(), conf.worker());
        let table =
            || Shared(Arc::new(Mutex::new(Neighbours { table: ArpTable::new(limits), caches: Vec::new() })));
        conf.env.shared(&key, table).map(|shared| (*shared).clone()).ok_or(Invalid)
    }

    /// The table of the ARPTable called `name`, for an element that has `cache`.
    pub fn of(conf: &Conf<'_>, name: &str, cache: &HeaderCache) -> Result<Shared, Error> {
        let mut scope = &conf.name()[..];
        loop {
            scope = scope.rfind('/').map_or("", |i| &scope[..i]);
            let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
            if let Some(shared) = conf.env.shared_if_made::<Shared>(&key(&full, conf.worker())) {
                shared.lock().caches.push(cache.clone());
                return Ok((*shared).clone());
            }
            if scope.is_empty() {
                return Err(Error::new(format!("TABLE: no ARPTable named '{name}' on this worker")));
            }
        }
    }

    /// As [`ArpTable::learn`].
    pub fn learn(
        &mut self,
        ip: Ipv4Addr,
        mac: MacAddr,
        wanted: bool,
        now_ns: u64,
    ) -> Option<(impl Iterator<Item = Packet> + use<>, usize)> {
        let learnt = self.table.learn(ip, mac, wanted, now_ns)?;
        self.caches.iter().for_each(|cache| cache.forget(ip.into()));
        Some(learnt)
    }

    /// As [`ArpTable::forget`].
    pub fn forget(&mut self, ip: Ipv4Addr) -> (bool, usize) {
        self.caches.iter().for_each(|cache| cache.forget(ip.into()));
        self.table.forget(ip)
    }

    /// As [`ArpTable::clear`].
    pub fn clear(&mut self) -> usize {
        self.caches.iter().for_each(HeaderCache::clear);
        self.table.clear()
    }
}

impl Deref for Neighbours {
    type Target = ArpTable;

    fn deref(&self) -> &ArpTable {
        &self.table
    }
}

impl DerefMut for Neighbours {
    fn deref_mut(&mut self) -> &mut ArpTable {
        &mut self.table
    }
}
