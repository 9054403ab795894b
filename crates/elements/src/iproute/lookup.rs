//! The lookup element that all routing table classes share.

use super::family::Family;
use super::hops::View;
use super::routes::{Route, Routes, address, configured};
use causeway_engine::spec::{ArgDoc, DropDoc, HandlerDoc, drops, reads, reads_with, rest, writes};
use causeway_engine::{Conf, Cx, Element, Invalid};
use causeway_fib::{Lookup, MISS, Shared, Structure};
use causeway_packet::{BATCH, Batch};
use std::sync::{Arc, Mutex, PoisonError};

/// Arguments of all routing tables.
pub(crate) const ARGS: &[ArgDoc] = &[rest(
    "ADDR/MASK [GATEWAY] OUT",
    "route",
    "packets to that prefix leave by output OUT, with the destination annotation set to GATEWAY if there is one",
)];

/// Handlers of tables that can change.
pub(crate) const HANDLERS: &[HandlerDoc] = &[
    reads("table", "all routes: prefix, gateway or -, output"),
    reads_with("lookup", "output and gateway for an address; -1 if there is no route"),
    writes("add", "adds a route; an error if the prefix has one"),
    writes("set", "adds a route or replaces the one of its prefix"),
    writes("remove", "removes the route of a prefix"),
    writes("ctrl", "several lines `add ROUTE`, `set ROUTE` or `remove ROUTE`: all or none"),
    writes("flush", "removes all routes"),
];

/// Handlers of tables that cannot.
pub(crate) const STATIC_HANDLERS: &[HandlerDoc] = &[
    reads("table", "all routes: prefix, gateway or -, output"),
    reads_with("lookup", "output and gateway for an address; -1 if there is no route"),
];

/// Drop reasons of all routing tables.
pub(crate) const DROPS: &[DropDoc] = &[drops("no-route", "no prefix covers the destination annotation")];

const NO_ROUTE: usize = 0;

/// The shared control side of a table, and what a fused element looks up with instead of the element.
pub(crate) type SharedRoutes<A, S> = Arc<Mutex<Routes<A, S>>>;

/// A routing table element.
pub(crate) struct IpLookup<A: Family, S: Structure<A> + Shared<A>> {
    routes: SharedRoutes<A, S>,
    reader: S::Reader,
    hops: View<A>,
}

/// Builds the element of a class whose structure is `S`. The copies of a replicated graph share one table.
pub(crate) fn build<A: Family, S>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid>
where
    S: Structure<A> + Shared<A> + Send + 'static,
{
    let texts = conf.rest();
    let routes: Vec<Route<A>> = texts.iter().filter_map(|t| configured(conf, t)).collect();
    conf.finish()?;
    let loaded = Routes::<A, S>::load(&routes);
    let loaded = loaded.map_err(|e| {
        conf.error(e);
        Invalid
    })?;
    let key = format!("routes of {}", conf.name());
    let routes: SharedRoutes<A, S> = conf.env.shared(&key, || Mutex::new(loaded)).ok_or(Invalid)?;
    let (reader, hops) = {
        let r = routes.lock().unwrap_or_else(PoisonError::into_inner);
        (r.reader(), View::new(r.hops.published()))
    };
    A::offer(conf, &reader, &hops);
    Ok(Box::new(IpLookup { routes, reader, hops }))
}

impl<A, S> Element for IpLookup<A, S>
where
    A: Family,
    S: Structure<A> + Shared<A> + Send + 'static,
{
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len();
        let mut addresses = [A::ZERO; BATCH];
        let mut found = [MISS; BATCH];
        for (address, packet) in addresses.iter_mut().zip(batch.iter()) {
            *address = A::destination(packet);
        }
        self.reader.lookup_batch(&addresses[..n], &mut found[..n]);
        let hops = self.hops.current();
        let mut found = found.iter();
        batch.filter_map(|mut packet| {
            let number = found.next().copied().unwrap_or(MISS);
            let Some(hop) = hops.get((number as usize).wrapping_sub(1)) else {
                cx.drop(NO_ROUTE, packet);
                return None;
            };
            if hop.gateway != A::ZERO {
                hop.gateway.set_destination(&mut packet);
            }
            cx.emit(hop.port as usize, packet);
            None
        });
    }

    /// The table is shared with elements fused with this one.
    fn reconfigures(&self, _handler: &str) -> bool {
        false
    }

    fn read(&mut self, handler: &str, arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        match handler {
            "table" => Ok(routes.table()),
            _ => Ok(routes.find(address(arg.trim())?)),
        }
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        match handler {
            "flush" => routes.flush(),
            "ctrl" => routes.control(value, cx.n_outputs()),
            verb => routes.change(verb, value, cx.n_outputs()),
        }
    }
}
