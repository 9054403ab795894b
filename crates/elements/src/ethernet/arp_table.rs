//! ARPTable.

use super::arp_querier::inserted;
use super::neighbour_table::{Limits, WALK_INTERVAL_NS, lines};
use super::neighbours::{Neighbours, note};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;

pub(crate) static SPEC: Spec = Spec {
    name: "ARPTable",
    category: "ethernet",
    summary: "holds the neighbours that several ARPQueriers share",
    ports: "0/0",
    phase: phase::INFO,
    doc: "A table of neighbours, and of the packets that wait for them, for the ARPQueriers on the same worker that name it \
          as their TABLE. What one of them learns all know; packets that wait leave by the one that gets the answer. In a \
          router that runs a copy of its graph on each of several workers, each copy has a table of its own.",
    args: &[
        keyword(
            "CAPACITY",
            "packets",
            "most packets that wait, the oldest of which go first; 0 = no limit; default 2048",
        ),
        keyword("ENTRY_CAPACITY", "entries", "most neighbours; 0 = no limit; default 65536"),
        keyword(
            "ENTRY_PACKET_CAPACITY",
            "packets",
            "most packets that wait for one neighbour; default 0, no limit",
        ),
        keyword("CAPACITY_SLIM_FACTOR", "number", "beyond CAPACITY, 1/N of it is freed at once; default 2"),
        keyword("TIMEOUT", "time", "life of what is known of a neighbour; 0 = for ever; default 5 min"),
    ],
    handlers: &[
        reads("table", "neighbours, a line each: address, 1 if known, Ethernet address, age in seconds")
            .across(Across::Each),
        reads("drops", "packets dropped here").counts(Unit::Packets),
        reads("count", "neighbours in the table").measures(Unit::Entries),
        reads("length", "packets that wait").measures(Unit::Packets),
        writes("insert", "`IP ETH`: makes a neighbour known; drops what waits for it"),
        writes("delete", "`IP`: forgets a neighbour and drops what waits for it"),
        writes("clear", "forgets all neighbours and drops what waits for them"),
    ],
    drops: Reason::DOCS,
    example: "t :: ARPTable; q :: ARPQuerier(1.0.0.1/24, 2:0:0:0:0:1, TABLE t); \
              InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> GetIPAddress(16) -> q -> Discard; \
              Idle -> [1] q;",
    see: &["ARPQuerier"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Expired = "expired", "it waited until TIMEOUT";
        Deleted = "deleted", "it waited for a neighbour that was deleted or inserted by handler, or there was no room after a hot swap";
    }
}

/// The only timer: entries that are too old.
const EXPIRY: u32 = 0;

pub(super) struct SharedTable(pub Neighbours);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let limits = Limits::keywords(conf);
    conf.finish()?;
    note(conf);
    Ok(Box::new(SharedTable(Neighbours::new(limits))))
}

impl Element for SharedTable {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if self.0.limits.timeout_ns > 0 {
            let now_ns = cx.now_ns();
            cx.set_timer(EXPIRY, now_ns + WALK_INTERVAL_NS);
        }
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let (dropped, next_ns) = self.0.expire(now_ns);
        cx.count_drops(Reason::Expired, dropped as u64);
        cx.set_timer(EXPIRY, next_ns);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let table = &self.0;
        Ok(match handler {
            "drops" => cx.dropped().to_string(),
            "count" => table.len().to_string(),
            _ => table.held().to_string(),
        })
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        let mut last = None;
        let copy =
            move |e: &mut SharedTable, to: &mut _, cx: &mut Cx<'_>| e.0.copy(&mut last, cx.now_ns(), to);
        (handler == "table").then(|| in_pieces(copy, lines))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let dropped = match handler {
            "insert" => {
                let (ip, mac) = inserted(value, cx)?;
                let learnt = self.0.learn(ip, mac, true, cx.now_ns());
                learnt.map_or(0, |(packets, dropped)| packets.count() + dropped)
            }
            "delete" => {
                let ip = cx.value(handler, value)?;
                self.0.forget(ip).1
            }
            _ => {
                let (dropped, entries) = self.0.clear();
                cx.dispose_of(entries);
                dropped
            }
        };
        cx.count_drops(Reason::Deleted, dropped as u64);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<SharedTable>() {
            let dropped = self.0.take_over(&mut old.0);
            cx.count_drops(Reason::Deleted, dropped as u64);
        }
    }

    fn held(&self) -> usize {
        self.0.held()
    }
}
