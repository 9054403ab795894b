//! The mappings of an AddressTranslator.

use super::Reason;
use causeway_engine::value::Value;
use causeway_engine::{Error, Scope};
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// An address and a port.
pub(super) type End = (Ipv6Addr, u16);

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Away from the inner hosts.
    Outward,
    /// To them.
    Inward,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// Inner and outer ends.
    fixed: Vec<(End, End)>,
    fixed_ports: bool,
    dynamic: Option<(Way, Dynamic)>,
}

/// Those that packets make.
#[derive(Debug)]
enum Dynamic {
    /// Addresses, and whose they are.
    Addresses(Vec<(Ipv6Addr, Option<Ipv6Addr>)>),
    /// Ports of one address.
    Ports(Ports),
}

#[derive(Debug)]
struct Ports {
    address: Ipv6Addr,
    next: u32,
    last: u16,
    /// The port of a flow: its own end, the remote one and the protocol.
    given: HashMap<(End, End, u8), u16>,
    /// Whose a port is, for a remote end and a protocol.
    owner: HashMap<(u16, End, u8), End>,
}

impl Mappings {
    /// What stands for `own`, the end of a packet that goes this way which is translated. `kind` is the protocol, and
    /// whether the packet has ports.
    pub(super) fn find(&mut self, way: Way, own: End, remote: End, kind: (u8, bool)) -> Result<End, Reason> {
        let (protocol, has_port) = kind;
        for &(inner, outer) in &self.fixed {
            let (from, to) = if way == Way::Outward { (inner, outer) } else { (outer, inner) };
            match self.fixed_ports {
                true if has_port && from == own => return Ok(to),
                false if from.0 == own.0 => return Ok((to.0, own.1)),
                _ => {}
            }
        }
        let Some((makes, dynamic)) = &mut self.dynamic else { return Err(Reason::NoMapping) };
        match dynamic {
            Dynamic::Addresses(pool) if way == *makes => {
                let bound = pool.iter().position(|(_, host)| *host == Some(own.0));
                let place = bound.or_else(|| pool.iter().position(|(_, host)| host.is_none()));
                let (address, host) = &mut pool[place.ok_or(Reason::Full)?];
                *host = Some(own.0);
                Ok((*address, own.1))
            }
            Dynamic::Addresses(pool) => {
                let host = pool.iter().find(|(address, _)| *address == own.0).and_then(|(_, host)| *host);
                host.map(|host| (host, own.1)).ok_or(Reason::NoMapping)
            }
            Dynamic::Ports(_) if !has_port => Err(Reason::NoMapping),
            Dynamic::Ports(ports) if way == *makes => ports.give(own, remote, protocol),
            Dynamic::Ports(ports) => {
                let owner = ports.owner.get(&(own.1, remote, protocol)).filter(|_| own.0 == ports.address);
                owner.copied().ok_or(Reason::NoMapping)
            }
        }
    }

    /// How many packets have made.
    pub(super) fn made(&self) -> usize {
        match &self.dynamic {
            None => 0,
            Some((_, Dynamic::Addresses(pool))) => pool.iter().filter(|(_, host)| host.is_some()).count(),
            Some((_, Dynamic::Ports(ports))) => ports.given.len(),
        }
    }
}

impl Ports {
    fn give(&mut self, own: End, remote: End, protocol: u8) -> Result<End, Reason> {
        let flow = (own, remote, protocol);
        if let Some(&port) = self.given.get(&flow) {
            return Ok((self.address, port));
        }
        let port = u16::try_from(self.next).ok().filter(|port| *port <= self.last).ok_or(Reason::Full)?;
        self.next += 1;
        self.given.insert(flow, port);
        self.owner.insert((port, remote, protocol), own);
        Ok((self.address, port))
    }
}

/// Reads the arguments.
pub(super) fn configure(texts: &[String], scope: &Scope<'_>) -> Result<Mappings, Error> {
    let mut arguments = Arguments { texts, at: 0, scope };
    let mut mappings = Mappings::default();
    let count = arguments.next::<u32>("integer")?;
    if count > 0 {
        mappings.fixed_ports = arguments.next::<bool>("bool")?;
        for _ in 0..count {
            mappings.fixed.push(arguments.mapping(mappings.fixed_ports)?);
        }
    }
    if !arguments.next::<bool>("bool")? {
        return arguments.end(mappings);
    }
    let with_ports = arguments.next::<bool>("bool")?;
    let makes = if arguments.next::<bool>("bool")? { Way::Inward } else { Way::Outward };
    let dynamic = if with_ports {
        Dynamic::Ports(arguments.ports()?)
    } else {
        let mut pool = vec![];
        while arguments.at < texts.len() {
            pool.push((arguments.next::<Ipv6Addr>("<IP6Address>")?, None));
        }
        Dynamic::Addresses(pool)
    };
    mappings.dynamic = Some((makes, dynamic));
    arguments.end(mappings)
}

/// Arguments in order.
struct Arguments<'a> {
    texts: &'a [String],
    at: usize,
    scope: &'a Scope<'a>,
}

impl Arguments<'_> {
    fn wrong(&self, what: &str) -> Error {
        Error::new(format!("argument {} should be : {what}", self.at.saturating_sub(1)))
    }

    fn text(&mut self) -> &str {
        self.at += 1;
        self.texts.get(self.at - 1).map_or("", String::as_str)
    }

    fn next<T: Value>(&mut self, what: &str) -> Result<T, Error> {
        let scope = self.scope;
        let parsed = T::parse(self.text(), scope).ok();
        parsed.ok_or_else(|| self.wrong(what))
    }

    fn word<T: Value>(&self, words: &[&str], i: usize) -> Option<T> {
        words.get(i).and_then(|word| T::parse(word, self.scope).ok())
    }

    fn mapping(&mut self, with_ports: bool) -> Result<(End, End), Error> {
        let text = self.text().to_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let read = match with_ports {
            true if words.len() == 4 => self
                .word(&words, 0)
                .zip(self.word(&words, 1))
                .zip(self.word(&words, 2).zip(self.word(&words, 3))),
            false if words.len() == 2 => {
                self.word(&words, 0).map(|a| (a, 0)).zip(self.word(&words, 1).map(|a| (a, 0)))
            }
            _ => None,
        };
        let what =
            if with_ports { "<IP6Address> <port> <IP6Address> <port>" } else { "<IP6Address> <IP6Address>" };
        read.ok_or_else(|| self.wrong(what))
    }

    fn ports(&mut self) -> Result<Ports, Error> {
        let text = self.text().to_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let range =
            self.word::<u16>(&words, 1).zip(self.word::<u16>(&words, 2)).filter(|(low, high)| low <= high);
        let read = self.word::<Ipv6Addr>(&words, 0).zip(range).filter(|_| words.len() == 3);
        let (address, (low, high)) = read.ok_or_else(|| self.wrong("<IP6Address> <port> <port>"))?;
        // As many as there are ports, so that no packet waits until they have moved to a longer table.
        let most = usize::from(high - low) + 1;
        let (given, owner) = (HashMap::with_capacity(most), HashMap::with_capacity(most));
        Ok(Ports { address, next: low.into(), last: high, given, owner })
    }

    fn end(self, mappings: Mappings) -> Result<Mappings, Error> {
        if self.at < self.texts.len() { Err(Error::new("too many arguments")) } else { Ok(mappings) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::Names;

    #[test]
    fn packets_that_make_mappings_move_none() {
        let texts = ["0", "true", "true", "false", "fec0::1 1024 65535"].map(str::to_owned);
        let mut mappings = configure(&texts, &Names::default().scope("")).unwrap();
        let room = |mappings: &Mappings| match &mappings.dynamic {
            Some((_, Dynamic::Ports(ports))) => [ports.given.capacity(), ports.owner.capacity()],
            _ => panic!("{mappings:?}"),
        };
        let (before, remote) = (room(&mappings), (Ipv6Addr::LOCALHOST, 53));
        for n in 0..64_512 {
            let own = (Ipv6Addr::from(u128::from(n / 60_000u32)), (n % 60_000) as u16);
            assert_eq!(
                mappings.find(Way::Outward, own, remote, (17, true)).map(|end| u32::from(end.1)),
                Ok(1_024 + n)
            );
        }
        let full = mappings.find(Way::Outward, (Ipv6Addr::LOCALHOST, 60_001), remote, (17, true));
        assert_eq!((full, room(&mappings), mappings.made()), (Err(Reason::Full), before, 64_512));
    }
}
