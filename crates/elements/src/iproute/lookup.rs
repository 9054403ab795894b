//! The lookup element that all routing table classes share.

use super::error::RouteError;
use super::family::Family;
use super::hops::{Hop, Hops, hop};
use super::lower::RouteLookup;
use super::routes::{self, Order, Route, Routes, Tables, address, argument};
use causeway_engine::ControlSide;
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};
use causeway_fib::{
    AdjacencyIndex, AdjacencyReader, AdjacencyView, Fib, FibError, Handle, Lookup, MISS, Participant, Reader,
    Shared, Structure,
};
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
pub(crate) const LENGTH: HandlerDoc =
    reads("length", "number of routes").measures(Unit::Entries).across(Across::First);
pub(crate) const LOOKUP: HandlerDoc =
    reads_with("lookup", "output and gateway for an address; -1 if there is no route");
pub(crate) const ADD: HandlerDoc =
    writes("add", "adds a route; one that its prefix has is an error for IPv4, and replaced for IPv6");
pub(crate) const SET: HandlerDoc = writes("set", "adds a route or replaces the one of its prefix");
pub(crate) const REMOVE: HandlerDoc =
    writes("remove", "removes the route of a prefix; that there is none is an error for IPv4 alone");
pub(crate) const CTRL: HandlerDoc =
    writes("ctrl", "several lines `add ROUTE`, `set ROUTE` or `remove ROUTE`: all or none");
pub(crate) const FLUSH: HandlerDoc = writes("flush", "removes all routes");

/// Handlers of tables that can change.
pub(crate) const HANDLERS: &[HandlerDoc] = &[TABLE, LENGTH, LOOKUP, ADD, SET, REMOVE, CTRL, FLUSH];

/// Handlers of tables that cannot.
pub(crate) const STATIC_HANDLERS: &[HandlerDoc] = &[TABLE, LENGTH, LOOKUP];

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
    /// Goes up before and after every change.
    changes: Arc<AtomicU64>,
}

impl<A: Family, S: Shared<A>> Control<A, S> {
    fn new(structure: S) -> Self {
        let hops = Hops::in_domain(structure.handle().domain());
        let fib = Fib::with_structure(structure);
        Control { fib, hops, order: Order::default(), changes: Arc::default() }
    }
}

impl<A: Family, S: Structure<A>> Tables<A, S> for Control<A, S> {
    type Number = ();

    fn pick<'t>(&self, text: &'t str) -> Result<((), &'t str), RouteError> {
        Ok(((), text))
    }

    fn routes(&mut self, _only: ()) -> Result<Routes<'_, A, S>, RouteError> {
        Ok(Routes { fib: &mut self.fib, hops: &mut self.hops, order: Some(&mut self.order) })
    }
}

/// A worker's side of a table, and its way to the control side, which the copies of a replicated graph share.
pub(crate) struct Table<A: Family, S: Shared<A>> {
    control: Arc<Mutex<Control<A, S>>>,
    reader: Reader<S::Handle>,
    hops: AdjacencyReader<Hop<A>>,
    /// Announces a reader of both.
    participant: Participant,
    changes: Arc<AtomicU64>,
}

impl<A: Family, S: Shared<A> + Send + 'static> Table<A, S> {
    /// Reads the rest of the configuration as routes, into a table over what `structure` makes.
    pub fn configured(
        conf: &mut Conf<'_>,
        structure: impl FnOnce() -> Result<S, FibError>,
    ) -> Result<Self, Invalid> {
        let texts = conf.rest();
        let routes = texts.iter().zip(1..).filter_map(|(text, n)| argument(conf, n, text));
        let routes: Vec<Route<A>> = routes.collect();
        conf.finish()?;
        if texts.is_empty() && A::LAST_COUNTS {
            conf.warn("no routes");
        }
        Self::of(conf, &routes, structure)
    }

    /// A table of `routes`, over what `structure` makes.
    #[expect(clippy::disallowed_methods, reason = "the control side; workers have readers")]
    pub fn of(
        conf: &mut Conf<'_>,
        routes: &[Route<A>],
        structure: impl FnOnce() -> Result<S, FibError>,
    ) -> Result<Self, Invalid> {
        let structure = structure().map_err(|e| {
            conf.error(e.to_string());
            Invalid
        })?;
        let mut control = Control::new(structure);
        let ignored = control.routes(()).and_then(|mut all| all.load(routes)).map_err(|e| {
            conf.error(e.to_string());
            Invalid
        })?;
        if ignored > 0 {
            // In Click's words, although it is the first that stays there, too.
            let noun = if ignored == 1 { "route" } else { "routes" };
            conf.warn(&format!("{ignored} {noun} replaced by later versions"));
        }
        let key = format!("routes of {}", conf.name());
        let control = conf.env.shared(&key, || Mutex::new(control)).ok_or(Invalid)?;
        let (reader, hops, changes) = {
            let c = control.lock().unwrap_or_else(PoisonError::into_inner);
            (c.fib.reader(), c.hops.reader(), c.changes.clone())
        };
        let participant = reader.domain().participant();
        Ok(Table { control, reader, hops, participant, changes })
    }

    /// A number that is another when a change of the routes begins, and another when it is done. What was found before
    /// holds as long as it is the same, asked before the lookup and under its announcement.
    pub fn version(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What answers [`HANDLERS`] without the worker.
    pub fn control_side(&self, cx: &Cx<'_>) -> Box<dyn ControlSide> {
        Box::new(TableControl { control: self.control.clone(), outputs: cx.n_outputs() })
    }

    /// Sends each packet to the hop that `look_up` finds for it in the table, all under one announcement.
    pub fn send(
        &self,
        batch: &mut Batch,
        cx: &mut Cx<'_>,
        look_up: impl FnOnce(&<S::Handle as Handle<A>>::Table, &Batch, &mut [AdjacencyIndex]),
    ) {
        let round = self.participant.pin();
        let mut found = [MISS; BATCH];
        let found = &mut found[..batch.len()];
        if let Some(table) = self.reader.under(&round) {
            look_up(table, batch, found);
        }
        send(&self.hops.under(&round), batch, found, cx);
    }
}

#[expect(clippy::disallowed_methods, reason = "the control side; workers have readers")]
fn write<A: Family, S: Shared<A>>(
    control: &Mutex<Control<A, S>>,
    handler: &str,
    value: &str,
    outputs: usize,
) -> Result<(), RouteError> {
    let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the change, too: an index that it gives back may be that of another hop before it is done.
    control.changes.fetch_add(1, Ordering::Release);
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
    #[expect(clippy::disallowed_methods, reason = "the control side; workers have readers")]
    fn read(&mut self, handler: &str, arg: &str) -> Option<Result<String, Error>> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |control: &mut Control<A, S>| Ok(control.routes(())?.find(address(arg.trim())?));
        let text = match handler {
            "table" => control.routes(()).map(|all| all.table()),
            "length" => control.routes(()).map(|all| all.len().to_string()),
            "lookup" => find(&mut control),
            _ => return None,
        };
        Some(text.map_err(Error::caused_by))
    }

    fn write(&mut self, handler: &str, value: &str) -> Option<Result<(), Error>> {
        let known = HANDLERS.iter().any(|h| h.name == handler && h.access.writes());
        known.then(|| write(&self.control, handler, value, self.outputs).map_err(A::refusal))
    }
}

/// Sends each packet to the hop that was found for it; those without one are dropped.
pub(crate) fn send<A: Family>(
    hops: &AdjacencyView<'_, Hop<A>>,
    batch: &mut Batch,
    found: &[AdjacencyIndex],
    cx: &mut Cx<'_>,
) {
    let mut outputs = [Cx::NOWHERE; BATCH];
    for ((packet, &index), output) in batch.iter_mut().zip(found).zip(&mut outputs) {
        if let Some(hop) = hop(hops, index) {
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

/// Builds the element of a class whose routes are found elsewhere than in its arguments.
pub(crate) fn build_of<A: Family, S: Shared<A> + Send + 'static>(
    conf: &mut Conf<'_>,
    routes: &[Route<A>],
) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(IpLookup(Table::of(conf, routes, S::empty)?)))
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
        self.0.send(batch, cx, |table, batch, found| {
            let mut addresses = [A::ZERO; BATCH];
            for (address, packet) in addresses.iter_mut().zip(batch.iter()) {
                *address = A::destination(packet);
            }
            table.lookup_batch(&addresses[..found.len()], found);
        });
    }

    fn lower(&self) -> Option<Program> {
        let Table { reader, hops, participant, .. } = &self.0;
        let (hops, participant) = (hops.clone(), participant.clone());
        RouteLookup { reader: Box::new(reader.clone()), hops, participant }.program()
    }

    /// The table is shared with elements fused with this one.
    fn reconfigures(&self, _handler: &str) -> bool {
        false
    }

    /// For elements that ask the table; everybody else asks the control side.
    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        self.0
            .control_side(cx)
            .read(handler, arg)
            .unwrap_or_else(|| Err(Error::new(format!("no handler '{handler}'"))))
    }

    fn control_side(&self, cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        Some(self.0.control_side(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_fib::{ADJACENCIES_MAX, Prefix, Rank24};

    #[test]
    fn what_a_worker_found_never_becomes_the_hop_of_others() {
        let mut control = Control::<u32, Rank24>::new(Rank24::empty().unwrap());
        let (table, hops) = (control.fib.reader(), control.hops.reader());
        let worker = table.domain().participant();
        let route = |n| Route { prefix: Prefix::truncated(n << 8, 24), hop: Hop { gateway: n, port: 0 } };
        let all: Vec<Route<u32>> = (1..ADJACENCIES_MAX).map(route).collect();
        control.routes(()).unwrap().load(&all).unwrap();
        let round = worker.pin();
        let found = table.under(&round).unwrap().lookup(7 << 8);
        let another = "1.2.3.0/24 1.2.3.4 0";
        routes::change(&mut control, "remove", "0.0.7.0/24", 1).unwrap();
        let refused = routes::change(&mut control, "add", another, 1);
        let seen = hop(&hops.under(&round), found).copied();
        assert!(seen.is_none_or(|hop| hop.gateway == 7), "{seen:?} for what led to 0.0.0.7");
        assert_eq!(refused, Err(RouteError::Table(FibError::Busy)), "there is no other index");
        drop(round);
        routes::change(&mut control, "add", another, 1).unwrap();
        let round = worker.pin();
        let found = table.under(&round).unwrap().lookup(0x0102_0300);
        assert_eq!(hop(&hops.under(&round), found).map(|hop| hop.gateway), Some(0x0102_0304));
        assert_eq!(
            routes::change(&mut control, "add", "2.0.0.0/8 2.2.2.2 0", 1),
            Err(RouteError::TooManyHops)
        );
    }

    #[test]
    fn answers_from_before_a_change_are_known_by_the_version() {
        let control = Mutex::new(Control::<u32, Rank24>::new(Rank24::empty().unwrap()));
        let changes = control.lock().unwrap().changes.clone();
        for (verb, text) in [("add", "10.0.0.0/8 0"), ("remove", "10.0.0.0/8"), ("flush", "")] {
            let before = changes.load(Ordering::Relaxed);
            write(&control, verb, text, 1).unwrap();
            assert!(changes.load(Ordering::Relaxed) >= before + 2, "{verb} is told of before and after");
        }
    }
}
