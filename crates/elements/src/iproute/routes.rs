//! The control side of a routing table: Click's route syntax, and changes that happen whole or not at all.

use super::family::Family;
use super::hops::{Hop, Hops};
use causeway_engine::Conf;
use causeway_fib::{AdjacencyIndex, Fib, FibError, Lookup, Prefix, Structure, Table};

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
}

/// A change that was made: the numbers of the hops before and after it.
struct Done<A: Family> {
    prefix: Prefix<A>,
    old: Option<AdjacencyIndex>,
    new: Option<AdjacencyIndex>,
}

const TOO_MANY_HOPS: &str = "too many different next hops";

/// Reads a route of the configuration; an error is recorded there.
pub(crate) fn configured<A: Family>(conf: &mut Conf<'_>, text: &str) -> Option<Route<A>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (prefix, rest) = match words.split_first() {
        Some((prefix, rest)) if !rest.is_empty() && rest.len() <= 2 => (*prefix, rest),
        _ => {
            conf.error(format!("bad route '{text}': should be 'ADDR/MASK [GATEWAY] OUTPUT'"));
            return None;
        }
    };
    let (prefix, host_bits) = A::prefix(conf, prefix)?;
    if host_bits {
        conf.warn(&format!("route '{text}': bits beyond the prefix length are ignored"));
    }
    let gateway = match rest {
        [gateway, _] if *gateway != "-" => A::from_text(conf.parse("", gateway)?),
        _ => A::ZERO,
    };
    let port: u16 = conf.parse("", rest[rest.len() - 1])?;
    if port as usize >= conf.n_outputs() {
        conf.error(format!("bad route '{text}': output {port} is not connected"));
        return None;
    }
    Some(Route { prefix, hop: Hop { gateway, port } })
}

/// Reads a route that a handler is given.
fn written<A: Family>(text: &str, outputs: usize) -> Result<Route<A>, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let bad = || format!("bad route '{text}': should be 'ADDR/MASK [GATEWAY] OUTPUT'");
    let (prefix, gateway, port) = match words.as_slice() {
        [prefix, port] => (prefix, None, port),
        [prefix, gateway, port] => (prefix, Some(gateway).filter(|g| **g != "-"), port),
        _ => return Err(bad()),
    };
    let gateway = gateway.map_or(Ok(A::ZERO), |g| address(g))?;
    let port: u16 = port.parse().map_err(|_| bad())?;
    if port as usize >= outputs {
        return Err(format!("bad route '{text}': output {port} is not connected"));
    }
    Ok(Route { prefix: A::prefix_of(prefix)?, hop: Hop { gateway, port } })
}

/// Reads an address that a handler is given.
pub(crate) fn address<A: Family>(text: &str) -> Result<A, String> {
    let bare = !text.contains('/');
    let prefix = A::prefix_of(text).ok().filter(|p| bare && p.len() == A::BITS);
    prefix.map(|p| p.first()).ok_or(format!("'{text}' is not an address"))
}

/// The tables of an element.
pub(crate) trait Tables<A: Family, S: Structure<A>> {
    /// What tells tables apart.
    type Number: Copy;
    /// The number of the table that a change is for, and the rest of the change.
    fn pick<'t>(&self, text: &'t str) -> Result<(Self::Number, &'t str), String>;
    /// A table, made if it is not there.
    fn routes(&mut self, number: Self::Number) -> Result<Routes<'_, A, S>, String>;
}

/// Carries out `add`, `set` or `remove` with its text.
pub(crate) fn change<A: Family, S: Structure<A>>(
    tables: &mut impl Tables<A, S>,
    verb: &str,
    text: &str,
    outputs: usize,
) -> Result<(), String> {
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
) -> Result<(), String> {
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
    /// Puts `routes` in the place of everything; of duplicate prefixes the last counts, as in Click.
    pub fn load(&mut self, routes: &[Route<A>]) -> Result<(), String> {
        let mut entries = Vec::with_capacity(routes.len());
        for route in routes {
            entries.push((route.prefix, self.hops.acquire(route.hop).ok_or(TOO_MANY_HOPS)?));
        }
        self.hops.publish();
        self.fib.load(&entries).map_err(|e| e.to_string())
    }

    /// Removes all routes.
    pub fn flush(&mut self) -> Result<(), String> {
        let all: Vec<_> = self.fib.rib().iter().map(|(_, hop)| hop).collect();
        self.fib.load(&[]).map_err(|e| e.to_string())?;
        all.into_iter().for_each(|hop| self.hops.release(hop));
        Ok(())
    }

    fn make(&mut self, verb: &str, text: &str, outputs: usize) -> Result<Done<A>, String> {
        match verb {
            "add" | "set" => {
                let route = written(text, outputs)?;
                if verb == "add" && self.fib.rib().exact(route.prefix).is_some() {
                    return Err(format!("conflict with existing route '{}'", self.line(route.prefix)));
                }
                self.put(route)
            }
            "remove" => self.remove(text),
            _ => Err(format!("'{verb}' is not one of add, set and remove")),
        }
    }

    fn put(&mut self, route: Route<A>) -> Result<Done<A>, String> {
        let number = self.hops.acquire(route.hop).ok_or(TOO_MANY_HOPS)?;
        self.hops.publish();
        match self.fib.replace(route.prefix, number) {
            Ok(old) => Ok(Done { prefix: route.prefix, old, new: Some(number) }),
            Err(e) => {
                self.hops.release(number);
                Err(e.to_string())
            }
        }
    }

    fn remove(&mut self, text: &str) -> Result<Done<A>, String> {
        // The gateway and output of the route may follow; the prefix alone decides.
        let prefix = A::prefix_of(text.split_ascii_whitespace().next().unwrap_or(""))?;
        match self.fib.withdraw(prefix) {
            Ok(old) => Ok(Done { prefix, old: Some(old), new: None }),
            Err(FibError::NotFound) => Err(format!("route '{}' not found", text.trim())),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Lets go of the hop that a change took out of use; until then the change can be undone.
    fn keep(&mut self, done: Done<A>) {
        done.old.into_iter().for_each(|hop| self.hops.release(hop));
    }

    fn undo(&mut self, done: Done<A>) -> Result<(), String> {
        match done.old {
            Some(hop) => self.fib.replace(done.prefix, hop).map(drop),
            None => self.fib.withdraw(done.prefix).map(drop),
        }
        .map_err(|e| e.to_string())?;
        done.new.into_iter().for_each(|hop| self.hops.release(hop));
        Ok(())
    }

    /// `OUTPUT [GATEWAY]` for an address, or -1.
    pub fn find(&self, address: A) -> String {
        self.hops.text(self.fib.lookup(address))
    }

    /// All routes, one a line.
    pub fn table(&self) -> String {
        self.fib.rib().iter().map(|(prefix, _)| self.line(prefix) + "\n").collect()
    }

    fn line(&self, prefix: Prefix<A>) -> String {
        let hop = self.fib.rib().exact(prefix).and_then(|n| self.hops.get(n));
        let gateway = hop.map(|h| h.gateway).filter(|&g| g != A::ZERO);
        let gateway = gateway.map_or("-".to_owned(), |g| g.to_text().to_string());
        let port = hop.map_or("-".to_owned(), |h| h.port.to_string());
        format!("{}/{}\t{gateway}\t{port}", prefix.first().to_text(), prefix.len())
    }
}
