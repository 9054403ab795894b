//! A table of neighbours with the headers that were made from it, which several ARPQueriers may share.
//!
//! One element has it: the querier itself, or the ARPTable that it names, on the same worker. Elements run one after the
//! other there, so whoever works on the table asks the run-time for the element that has it, and no lock is needed.

use super::arp_table::SharedTable;
use super::header_cache::HeaderCache;
use super::neighbour_table::{ArpTable, Limits};
use causeway_engine::{Conf, Cx, Error, Peer};
use causeway_packet::Packet;
use causeway_packet::wire::MacAddr;
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};

/// The table, and the caches of all who send by it: what the table forgets or learns anew, they forget.
pub(super) struct Neighbours {
    table: ArpTable,
    caches: Vec<HeaderCache>,
}

/// Where an element's table is.
pub(super) enum Home {
    /// In the element itself.
    Own(Box<Neighbours>),
    /// In the ARPTable of this name, which is looked up when the element is initialised.
    Named(String),
    /// There.
    At(Peer),
}

/// What ARPTables are noted by while elements are configured.
fn key(name: &str, worker: usize) -> String {
    format!("neighbours of {name} on worker {worker}")
}

/// Notes that there is an ARPTable: the element that is configured.
pub(super) fn note(conf: &mut Conf<'_>) {
    let key = key(conf.name(), conf.worker());
    conf.env.shared(&key, || ());
}

impl Home {
    /// The ARPTable that the element which is configured calls `name`.
    pub fn named(conf: &Conf<'_>, name: &str) -> Result<Home, Error> {
        let mut scope = &conf.name()[..];
        loop {
            scope = scope.rfind('/').map_or("", |i| &scope[..i]);
            let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
            if conf.env.shared_if_made::<()>(&key(&full, conf.worker())).is_some() {
                return Ok(Home::Named(name.to_owned()));
            }
            if scope.is_empty() {
                return Err(Error::new(format!("TABLE: no ARPTable named '{name}' on this worker")));
            }
        }
    }

    /// Looks the table up, for an element that has `cache`.
    pub fn find(&mut self, cache: &HeaderCache, cx: &mut Cx<'_>) -> Result<(), Error> {
        if let Home::Named(name) = self {
            let peer = cx.find_peer(name)?;
            *self = Home::At(peer);
        }
        let caches = self.with(cx, |table| table.caches.push(cache.clone()));
        caches.ok_or_else(|| Error::new("TABLE is no ARPTable"))
    }

    /// Works on the table. `None` if it is not there, which only a graph can cause that was not initialised.
    pub fn with<R>(&mut self, cx: &mut Cx<'_>, f: impl FnOnce(&mut Neighbours) -> R) -> Option<R> {
        match self {
            Home::Own(table) => Some(f(table)),
            Home::At(peer) => cx.peer::<SharedTable>(*peer).map(|element| f(&mut element.0)),
            Home::Named(_) => None,
        }
    }

    /// The table, if it is the element's own.
    pub fn own(&mut self) -> Option<&mut Neighbours> {
        if let Home::Own(table) = self { Some(&mut **table) } else { None }
    }
}

impl Neighbours {
    /// An empty table that nobody sends by yet.
    pub fn new(limits: Limits) -> Neighbours {
        Neighbours { table: ArpTable::new(limits), caches: Vec::new() }
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
    pub fn clear(&mut self) -> (usize, impl Send + use<>) {
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
