//! The control side of a routing table: Click's route syntax, and changes that happen whole or not at all.

use super::family::Family;
use super::hops::{Hop, Hops};
use causeway_engine::Conf;
use causeway_fib::{Fib, FibError, Lookup, Prefix, Shared, Structure, Table};

/// A route as it is written: `ADDRESS/LENGTH [GATEWAY] OUTPUT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<A: Family> {
    pub prefix: Prefix<A>,
    pub hop: Hop<A>,
}

/// Routes, hops and the structure that workers look up in.
pub(crate) struct Routes<A: Family, S: Structure<A>> {
    fib: Fib<A, S>,
    pub hops: Hops<A>,
}

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

impl<A: Family, S: Structure<A> + Shared<A>> Routes<A, S> {
    /// A table of `routes`; of duplicate prefixes the last counts, as in Click.
    pub fn load(routes: &[Route<A>]) -> Result<Self, String> {
        let mut hops = Hops::new(S::ADJACENCY_MAX);
        let mut entries = Vec::with_capacity(routes.len());
        for route in routes {
            entries.push((route.prefix, hops.acquire(route.hop).ok_or("too many different next hops")?));
        }
        hops.publish();
        let fib = Fib::build(&entries).map_err(|e| e.to_string())?;
        Ok(Routes { fib, hops })
    }

    /// What a worker looks up with.
    pub fn reader(&self) -> S::Reader {
        self.fib.reader()
    }

    /// Carries out `add`, `set` or `remove` with its text.
    pub fn change(&mut self, verb: &str, text: &str, outputs: usize) -> Result<(), String> {
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

    /// Carries out the lines of a `ctrl` write: all or none.
    pub fn control(&mut self, text: &str, outputs: usize) -> Result<(), String> {
        let before: Vec<_> = self.fib.rib().iter().collect();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if let Err(e) = self.change(verb, rest, outputs) {
                self.fib.load(&before).map_err(|e| e.to_string())?;
                return Err(e);
            }
        }
        Ok(())
    }

    fn put(&mut self, route: Route<A>) -> Result<(), String> {
        let number = self.hops.acquire(route.hop).ok_or("too many different next hops")?;
        self.hops.publish();
        match self.fib.replace(route.prefix, number) {
            Ok(old) => {
                old.into_iter().for_each(|old| self.hops.release(old));
                Ok(())
            }
            Err(e) => {
                self.hops.release(number);
                Err(e.to_string())
            }
        }
    }

    fn remove(&mut self, text: &str) -> Result<(), String> {
        // The gateway and output of the route may follow; the prefix alone decides.
        let prefix = A::prefix_of(text.split_ascii_whitespace().next().unwrap_or(""))?;
        match self.fib.withdraw(prefix) {
            Ok(old) => {
                self.hops.release(old);
                Ok(())
            }
            Err(FibError::NotFound) => Err(format!("route '{}' not found", text.trim())),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Removes all routes.
    pub fn flush(&mut self) -> Result<(), String> {
        let all: Vec<_> = self.fib.rib().iter().map(|(_, hop)| hop).collect();
        self.fib.load(&[]).map_err(|e| e.to_string())?;
        all.into_iter().for_each(|hop| self.hops.release(hop));
        Ok(())
    }

    /// `OUTPUT [GATEWAY]` for an address, or -1.
    pub fn find(&self, address: A) -> String {
        match self.hops.get(self.fib.lookup(address)) {
            Some(hop) if hop.gateway != A::ZERO => format!("{} {}", hop.port, hop.gateway.to_text()),
            Some(hop) => hop.port.to_string(),
            None => "-1".to_owned(),
        }
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
