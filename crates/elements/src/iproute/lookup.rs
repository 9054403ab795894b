//! The lookup element that all routing table classes share.

use super::family::Family;
use super::hops::{Hop, Hops, View};
use super::lower::RouteLookup;
use super::routes::{self, Order, Route, Routes, Tables, address, configured};
use causeway_engine::ControlSide;
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};
use causeway_fib::{AdjacencyIndex, Fib, FibError, Lookup, MISS, Reader, Shared, Structure};
use causeway_packet::BATCH;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Arguments of all routing tables.
pub(crate) const ARGS: &[ArgDoc] = &[ROUTES];

/// The routes among the arguments.
pub(crate) const ROUTES: ArgDoc = rest(
    "ADDR/MASK [GATEWAY] OUT",
    "route",
    "packets to that prefix leave by output OUT, with the destination annotation set to GATEWAY if there is one",
);

pub(crate) const TABLE: HandlerDoc = reads("table", "all routes: prefix, gateway or -, output");
pub(crate) const LOOKUP: HandlerDoc =
    reads_with("lookup", "output and gateway for an address; -1 if there is no route");
pub(crate) const ADD: HandlerDoc = writes("add", "adds a route; an error if its prefix has one");
pub(crate) const SET: HandlerDoc = writes("set", "adds a route or replaces the one of its prefix");
pub(crate) const REMOVE: HandlerDoc = writes("remove", "removes the route of a prefix");
pub(crate) const CTRL: HandlerDoc =
    writes("ctrl", "several lines `add ROUTE`, `set ROUTE` or `remove ROUTE`: all or none");
pub(crate) const FLUSH: HandlerDoc = writes("flush", "removes all routes");

/// Handlers of tables that can change.
pub(crate) const HANDLERS: &[HandlerDoc] = &[TABLE, LOOKUP, ADD, SET, REMOVE, CTRL, FLUSH];

/// Handlers of tables that cannot.
pub(crate) const STATIC_HANDLERS: &[HandlerDoc] = &[TABLE, LOOKUP];

drop_reasons! {
    /// Drop reasons of all routing tables.
    pub(crate) enum Reason {
        NoRoute = "no-route", "no prefix covers the destination annotation";
    }
}

/// A table's control side: routes, hops and the structure that workers look up in.
pub(crate) struct Control<A: Family, S> {
    fib: Fib<A, S>,
    hops: Hops<A>,
    order: Order<A>,
    /// Goes up with every change.
    changes: Arc<AtomicU64>,
}

impl<A: Family, S: Structure<A>> Tables<A, S> for Control<A, S> {
    type Number = ();

    fn pick<'t>(&self, text: &'t str) -> Result<((), &'t str), String> {
        Ok(((), text))
    }

    fn routes(&mut self, _only: ()) -> Result<Routes<'_, A, S>, String> {
        Ok(Routes { fib: &mut self.fib, hops: &mut self.hops, order: Some(&mut self.order) })
    }
}

/// A worker's side of a table, and its way to the control side, which the copies of a replicated graph share.
pub(crate) struct Table<A: Family, S: Shared<A>> {
    control: Arc<Mutex<Control<A, S>>>,
    pub reader: Reader<S::Handle>,
    hops: View<A>,
    changes: Arc<AtomicU64>,
}

impl<A: Family, S: Shared<A> + Send + 'static> Table<A, S> {
    /// Reads the rest of the configuration as routes, into a table over what `structure` makes.
    pub fn configured(
        conf: &mut Conf<'_>,
        structure: impl FnOnce() -> Result<S, FibError>,
    ) -> Result<Self, Invalid> {
        let texts = conf.rest();
        let routes: Vec<Route<A>> = texts.iter().filter_map(|t| configured(conf, t)).collect();
        conf.finish()?;
        let structure = structure().map_err(|e| {
            conf.error(e.to_string());
            Invalid
        })?;
        let mut control = Control {
            fib: Fib::with_structure(structure),
            hops: Hops::new(S::ADJACENCY_MAX),
            order: Order::default(),
            changes: Arc::default(),
        };
        let duplicates = control.routes(()).and_then(|mut all| all.load(&routes)).map_err(|e| {
            conf.error(e);
            Invalid
        })?;
        for prefix in duplicates {
            let (address, len) = (prefix.first().to_text(), prefix.len());
            conf.warn(&format!("route '{address}/{len}' is there already, the first one counts"));
        }
        let key = format!("routes of {}", conf.name());
        let control = conf.env.shared(&key, || Mutex::new(control)).ok_or(Invalid)?;
        let (reader, hops, changes) = {
            let c = control.lock().unwrap_or_else(PoisonError::into_inner);
            (c.fib.reader(), View::new(c.hops.published()), c.changes.clone())
        };
        Ok(Table { control, reader, hops, changes })
    }

    /// A number that differs after every change of the routes. Ask before the lookup.
    pub fn version(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What answers [`HANDLERS`] without the worker.
    pub fn control_side(&self, cx: &Cx<'_>) -> Box<dyn ControlSide> {
        Box::new(TableControl { control: self.control.clone(), outputs: cx.n_outputs() })
    }

    /// Sends each packet to the hop that was found for it.
    pub fn send(&mut self, batch: &mut Batch, found: &[AdjacencyIndex], cx: &mut Cx<'_>) {
        send(self.hops.current(), batch, found, cx);
    }
}

fn write<A: Family, S: Shared<A>>(
    control: &Mutex<Control<A, S>>,
    handler: &str,
    value: &str,
    outputs: usize,
) -> Result<(), String> {
    let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
    let result = match handler {
        "flush" => control.routes(()).and_then(|mut all| all.flush()),
        "ctrl" => routes::control(&mut *control, value, outputs),
        verb => routes::change(&mut *control, verb, value, outputs),
    };
    control.changes.fetch_add(1, Ordering::Release);
    result
}

/// Shows and changes a table while packets are looked up in it.
struct TableControl<A: Family, S: Shared<A>> {
    control: Arc<Mutex<Control<A, S>>>,
    outputs: usize,
}

impl<A: Family, S: Shared<A> + Send + 'static> ControlSide for TableControl<A, S> {
    fn read(&mut self, handler: &str, arg: &str) -> Option<Result<String, String>> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |control: &mut Control<A, S>| Ok(control.routes(())?.find(address(arg.trim())?));
        match handler {
            "table" => Some(control.routes(()).map(|all| all.table())),
            "lookup" => Some(find(&mut control)),
            _ => None,
        }
    }

    fn write(&mut self, handler: &str, value: &str) -> Option<Result<(), String>> {
        let known = HANDLERS.iter().any(|h| h.name == handler && h.access.writes());
        known.then(|| write(&self.control, handler, value, self.outputs))
    }
}

/// Sends each packet to the hop that was found for it; those without one are dropped.
pub(crate) fn send<A: Family>(hops: &[Hop<A>], batch: &mut Batch, found: &[AdjacencyIndex], cx: &mut Cx<'_>) {
    let mut outputs = [Cx::NOWHERE; BATCH];
    for ((packet, &number), output) in batch.iter_mut().zip(found).zip(&mut outputs) {
        if let Some(hop) = hops.get((number as usize).wrapping_sub(1)) {
            if hop.gateway != A::ZERO {
                hop.gateway.set_destination(packet);
            }
            *output = hop.port.into();
        }
    }
    let n = batch.len();
    cx.emit_each_or_drop(batch, &outputs[..n], Reason::NoRoute);
}

/// A routing table element.
struct IpLookup<A: Family, S: Shared<A>>(Table<A, S>);

/// Builds the element of a class whose structure is `S`.
pub(crate) fn build<A: Family, S: Shared<A> + Send + 'static>(
    conf: &mut Conf<'_>,
) -> Result<Box<dyn Element>, Invalid> {
    build_over(conf, S::empty)
}

/// Builds the element of a class over a structure with parameters of its own.
pub(crate) fn build_over<A: Family, S: Shared<A> + Send + 'static>(
    conf: &mut Conf<'_>,
    structure: impl FnOnce() -> Result<S, FibError>,
) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(IpLookup(Table::configured(conf, structure)?)))
}

impl<A: Family, S: Shared<A> + Send + 'static> Element for IpLookup<A, S> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len();
        let mut addresses = [A::ZERO; BATCH];
        let mut found = [MISS; BATCH];
        for (address, packet) in addresses.iter_mut().zip(batch.iter()) {
            *address = A::destination(packet);
        }
        self.0.reader.lookup_batch(&addresses[..n], &mut found[..n]);
        self.0.send(batch, &found[..n], cx);
    }

    fn lower(&self) -> Option<Program> {
        let table = RouteLookup { reader: Box::new(self.0.reader.clone()), hops: self.0.hops.clone() };
        table.program()
    }

    /// The table is shared with elements fused with this one.
    fn reconfigures(&self, _handler: &str) -> bool {
        false
    }

    fn control_side(&self, cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        Some(self.0.control_side(cx))
    }
}
