//! The control side of a routing table: Click's route syntax, and changes that happen whole or not at all.

use super::error::RouteError;
use super::family::Family;
use super::hops::{self, Hop, Hops};
use causeway_engine::Conf;
use causeway_engine::value::Value;
use causeway_fib::{AdjacencyIndex, Fib, FibError, Lookup, Prefix, Structure, Table};
use std::collections::HashMap;

/// A route as it is written: `ADDRESS/LENGTH [GATEWAY] OUTPUT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<A: Family> {
    pub prefix: Prefix<A>,
    pub hop: Hop<A>,
}

/// The routes of one table and the hops that they lead to, to be read and changed.
pub(crate) struct Routes<'a, A: Family, S> {
    pub fib: &'a mut Fib<A, S>,
    pub hops: &'a mut Hops<A>,
    /// In which order routes are listed; without it in that of their prefixes.
    pub order: Option<&'a mut Order<A>>,
}

/// The order in which routes came.
pub(crate) struct Order<A> {
    places: HashMap<Prefix<A>, u64>,
    next: u64,
}

impl<A> Default for Order<A> {
    fn default() -> Self {
        Order { places: HashMap::new(), next: 0 }
    }
}

impl<A: Family> Order<A> {
    /// Puts `prefix` behind all others, unless it has its place already.
    fn add(&mut self, prefix: Prefix<A>) {
        let next = self.next;
        self.places.entry(prefix).or_insert(next);
        self.next += 1;
    }
}

/// A change that was made: the numbers of the hops before and after it.
struct Done<A: Family> {
    prefix: Prefix<A>,
    old: Option<AdjacencyIndex>,
    new: Option<AdjacencyIndex>,
}

/// Reads argument number `n`, counted from 1, which is a route; an error is recorded.
pub(crate) fn argument<A: Family>(conf: &mut Conf<'_>, n: usize, text: &str) -> Option<Route<A>> {
    let Some(route) = configured(conf, text) else {
        conf.error(format!("argument {n} should be {}", A::ROUTE_SYNTAX));
        return None;
    };
    let port = usize::from(route.hop.port);
    if port >= conf.n_outputs() {
        conf.error(A::bad_output(n, port));
        return None;
    }
    Some(route)
}

/// Reads a route of the configuration, whose output may be too high. `None` if it is none.
pub(crate) fn configured<A: Family>(conf: &mut Conf<'_>, text: &str) -> Option<Route<A>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (prefix, gateway, port) = match words[..] {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(gateway).filter(|g| *g != "-"), port),
        _ => return None,
    };
    let scope = conf.scope();
    let (prefix, host_bits) = A::prefix_in(prefix, &scope)?;
    let gateway = gateway.map_or(Some(A::ZERO), |g| A::Ip::parse(g, &scope).ok().map(A::from_text))?;
    let port = u16::parse(port, &scope).ok()?;
    if host_bits {
        conf.warn(&format!("route '{text}': bits beyond the prefix length are ignored"));
    }
    Some(Route { prefix, hop: Hop { gateway, port } })
}

/// Reads a route that a handler is given.
fn written<A: Family>(text: &str, outputs: usize) -> Result<Route<A>, RouteError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let bad = || RouteError::Syntax;
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(gateway).filter(|g| **g != "-"), port),
        _ => return Err(bad()),
    };
    let gateway = gateway.map_or(Ok(A::ZERO), |g| address(g))?;
    let port: u16 = port.parse().map_err(|_| bad())?;
    if port as usize >= outputs {
        return Err(RouteError::NotConnected { route: text.to_owned(), output: port });
    }
    Ok(Route { prefix: A::prefix_of(prefix)?, hop: Hop { gateway, port } })
}

/// A route that is to be removed, with what was not said of it.
fn in_full(text: &str) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words.as_slice() {
        [prefix] => format!("{prefix} - -1"),
        [prefix, output] => format!("{prefix} - {output}"),
        _ => words.join(" "),
    }
}

/// Reads an address that a handler is given.
pub(crate) fn address<A: Family>(text: &str) -> Result<A, RouteError> {
    let bare = !text.contains('/');
    let prefix = A::prefix_of(text).ok().filter(|p| bare && p.len() == A::BITS);
    prefix.map(|p| p.first()).ok_or(RouteError::Address(text.to_owned()))
}

/// The tables of an element.
pub(crate) trait Tables<A: Family, S: Structure<A>> {
    /// What tells tables apart.
    type Number: Copy;
    /// The number of the table that a change is for, and the rest of the change.
    fn pick<'t>(&self, text: &'t str) -> Result<(Self::Number, &'t str), RouteError>;
    /// A table, made if it is not there.
    fn routes(&mut self, number: Self::Number) -> Result<Routes<'_, A, S>, RouteError>;
}

/// Carries out `add`, `set` or `remove` with its text.
pub(crate) fn change<A: Family, S: Structure<A>>(
    tables: &mut impl Tables<A, S>,
    verb: &str,
    text: &str,
    outputs: usize,
) -> Result<(), RouteError> {
    let (number, text) = tables.pick(text)?;
    let mut routes = tables.routes(number)?;
    let done = routes.make(verb, text, outputs)?;
    routes.keep(done);
    Ok(())
}

/// Carries out the lines of a `ctrl` write: all or none.
pub(crate) fn control<A: Family, S: Structure<A>>(
    tables: &mut impl Tables<A, S>,
    text: &str,
    outputs: usize,
) -> Result<(), RouteError> {
    let mut all = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let picked = tables.pick(rest.trim_start());
        match picked.and_then(|(n, rest)| Ok((n, tables.routes(n)?.make(verb, rest, outputs)?))) {
            Ok(done) => all.push(done),
            Err(why) => {
                all.into_iter().rev().try_for_each(|(n, done)| tables.routes(n)?.undo(done))?;
                return Err(why);
            }
        }
    }
    all.into_iter().try_for_each(|(n, done)| tables.routes(n).map(|mut routes| routes.keep(done)))
}

impl<A: Family, S: Structure<A>> Routes<'_, A, S> {
    /// Puts `routes` in the place of everything. Of routes of one prefix the first or the last counts, as in Click; returns how
    /// many of the first do, where others are ignored for them.
    pub fn load(&mut self, routes: &[Route<A>]) -> Result<usize, RouteError> {
        let mut entries: Vec<(Prefix<A>, AdjacencyIndex)> = Vec::with_capacity(routes.len());
        let mut places = HashMap::with_capacity(routes.len());
        let mut ignored = 0;
        for route in routes {
            match places.get(&route.prefix) {
                None => {
                    places.insert(route.prefix, entries.len());
                    entries.push((route.prefix, self.acquire(route.hop)?));
                }
                Some(&place) if A::LAST_COUNTS => {
                    let hop = self.acquire(route.hop)?;
                    self.release(std::mem::replace(&mut entries[place].1, hop));
                }
                Some(_) => ignored += 1,
            }
        }
        self.fib.load(&entries)?;
        if let Some(order) = &mut self.order {
            **order = Order::default();
            entries.iter().for_each(|(prefix, _)| order.add(*prefix));
        }
        Ok(ignored)
    }

    /// Removes all routes.
    pub fn flush(&mut self) -> Result<(), RouteError> {
        let all: Vec<_> = self.fib.rib().iter().map(|(_, hop)| hop).collect();
        self.fib.load(&[])?;
        if let Some(order) = &mut self.order {
            **order = Order::default();
        }
        all.into_iter().for_each(|hop| self.release(hop));
        Ok(())
    }

    fn make(&mut self, verb: &str, text: &str, outputs: usize) -> Result<Done<A>, RouteError> {
        match verb {
            "add" | "set" => {
                let route = written(text, outputs)?;
                if verb == "add" && !A::LAST_COUNTS && self.fib.rib().exact(route.prefix).is_some() {
                    return Err(RouteError::Conflict { there: self.line(route.prefix, " ") });
                }
                self.put(route)
            }
            "remove" => self.remove(text),
            _ => Err(RouteError::Verb(verb.to_owned())),
        }
    }

    fn put(&mut self, route: Route<A>) -> Result<Done<A>, RouteError> {
        let number = self.acquire(route.hop)?;
        match self.fib.replace(route.prefix, number) {
            Ok(old) => Ok(Done { prefix: route.prefix, old, new: Some(number) }),
            Err(e) => {
                self.release(number);
                Err(e.into())
            }
        }
    }

    fn remove(&mut self, text: &str) -> Result<Done<A>, RouteError> {
        // The gateway and output of the route may follow; the prefix alone decides.
        let prefix = A::prefix_of(text.split_ascii_whitespace().next().unwrap_or(""))?;
        match self.fib.withdraw(prefix) {
            Ok(old) => Ok(Done { prefix, old: Some(old), new: None }),
            Err(FibError::NotFound) if A::LAST_COUNTS => Ok(Done { prefix, old: None, new: None }),
            Err(FibError::NotFound) => Err(RouteError::NotFound { route: in_full(text) }),
            Err(e) => Err(e.into()),
        }
    }

    /// Lets go of the hop that a change took out of use; until then the change can be undone.
    fn keep(&mut self, done: Done<A>) {
        match (&mut self.order, done.new) {
            (Some(order), Some(_)) => order.add(done.prefix),
            (Some(order), None) => drop(order.places.remove(&done.prefix)),
            (None, _) => {}
        }
        done.old.into_iter().for_each(|hop| self.release(hop));
    }

    fn acquire(&mut self, hop: Hop<A>) -> Result<AdjacencyIndex, RouteError> {
        self.hops.acquire(hop).map_err(|error| match error {
            FibError::Full => RouteError::TooManyHops,
            other => other.into(),
        })
    }

    fn release(&mut self, hop: AdjacencyIndex) {
        // Each route holds its hop once.
        let _ = self.hops.release(hop);
    }

    fn undo(&mut self, done: Done<A>) -> Result<(), RouteError> {
        match (done.old, done.new) {
            (Some(hop), _) => self.fib.replace(done.prefix, hop).map(drop),
            (None, Some(_)) => self.fib.withdraw(done.prefix).map(drop),
            (None, None) => Ok(()),
        }?;
        done.new.into_iter().for_each(|hop| self.release(hop));
        Ok(())
    }

    /// `OUTPUT [GATEWAY]` for an address, or -1.
    pub fn find(&self, address: A) -> String {
        hops::text(self.hops, self.fib.lookup(address))
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.fib.rib().len()
    }

    /// All routes, one a line, in columns.
    pub fn table(&self) -> String {
        let mut prefixes: Vec<Prefix<A>> = self.fib.rib().iter().map(|(prefix, _)| prefix).collect();
        if let Some(order) = &self.order {
            prefixes.sort_by_key(|prefix| order.places.get(prefix));
        }
        let head = if prefixes.is_empty() { "" } else { A::TABLE_HEAD };
        prefixes.into_iter().fold(head.to_owned(), |table, prefix| table + &self.row(prefix))
    }

    /// A line of the table.
    fn row(&self, prefix: Prefix<A>) -> String {
        if !A::LAST_COUNTS {
            return self.line(prefix, "\t") + "\n";
        }
        // Click's IPv6 table has one tab, and no word for what has no gateway.
        let hop = self.fib.rib().exact(prefix).and_then(|n| self.hops.next_hop(n));
        let (gateway, port) = hop.map_or((A::ZERO, "-".to_owned()), |h| (h.gateway, h.port.to_string()));
        format!("{}/{}\t{}\t{port}\n", prefix.first().to_text(), prefix.len(), gateway.to_text())
    }

    /// A route, with `tab` behind its prefix and its gateway. Of tabs there are two behind what is short.
    fn line(&self, prefix: Prefix<A>, tab: &str) -> String {
        let hop = self.fib.rib().exact(prefix).and_then(|n| self.hops.next_hop(n));
        let gateway = hop.map(|h| h.gateway).filter(|&g| g != A::ZERO);
        let gateway = gateway.map_or("-".to_owned(), |g| g.to_text().to_string());
        let port = hop.map_or("-".to_owned(), |h| h.port.to_string());
        let prefix = format!("{}/{}", prefix.first().to_text(), prefix.len());
        let after =
            |text: &str, short: usize| tab.repeat(if tab == "\t" && text.len() < short { 2 } else { 1 });
        format!("{prefix}{}{gateway}{}{port}", after(&prefix, 16), after(&gateway, 8))
    }
}
