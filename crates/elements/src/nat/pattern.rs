//! Patterns: how the addresses and ports of a new flow are chosen.

use super::flow_id::FlowId;
use causeway_engine::value::{Prefix4, Value};
use causeway_engine::{Error, Scope};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is put in the place of addresses and ports; 0 leaves one as it is.
#[derive(Debug)]
pub(crate) struct Pattern {
    to: FlowId,
    /// What the last of the addresses or ports to choose from is more than the first.
    span: u32,
    /// Whether there are ports, of which one is chosen; else an address is.
    has_ports: bool,
    order: Order,
    /// The next to be tried in order. Rewriters on several workers may share a pattern that has a name.
    next: AtomicU32,
}

/// In which order addresses or ports are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The packet's own port first, then from a random one on.
    OwnFirst,
    /// From a random one on.
    Random,
    /// One after the other.
    Ascending,
}

impl Pattern {
    /// The pattern of two to four words: `SADDR DADDR`, `SADDR DADDR SPORT` or `SADDR SPORT DADDR DPORT`.
    pub fn parse(words: &[String], scope: &Scope<'_>) -> Result<Pattern, Error> {
        let mut p = Pattern {
            to: FlowId::default(),
            span: 0,
            has_ports: words.len() >= 3,
            order: Order::OwnFirst,
            next: AtomicU32::new(0),
        };
        let (saddr, sport, daddr, dport) = match words {
            [saddr, daddr] => (saddr, None, daddr, None),
            [saddr, daddr, sport] => (saddr, Some(sport), daddr, None),
            [saddr, sport, daddr, dport] => (saddr, Some(sport), daddr, Some(dport)),
            _ => return Err(Error::new("syntax error")),
        };
        p.source(saddr, scope).ok_or("bad source address")?;
        if let Some(sport) = sport {
            p.source_port(sport, scope).ok_or("bad source port")?;
        }
        if daddr != "-" {
            let address = Ipv4Addr::parse(daddr, scope).map_err(|_| "bad destination address")?;
            p.to.destination = address.into();
        }
        if let Some(dport) = dport.filter(|d| *d != "-") {
            p.to.destination_port = port(dport, scope).ok_or("bad destination port")?;
        }
        Ok(p)
    }

    fn source(&mut self, text: &str, scope: &Scope<'_>) -> Option<()> {
        if text == "-" {
            return Some(());
        }
        if let Ok(address) = Ipv4Addr::parse(text, scope) {
            self.to.source = address.into();
            return Some(());
        }
        let text = self.order_of(text);
        if let Some((first, last)) = text.split_once('-') {
            let bound = |text| Ipv4Addr::parse(text, scope).ok().map(u32::from);
            self.to.source = bound(first)?;
            self.span = bound(last)?.checked_sub(self.to.source)?;
            return Some(());
        }
        let prefix = Prefix4::parse(text, scope).ok().filter(|p| p.len > 0)?;
        let address = u32::from(prefix.address);
        (self.to.source, self.span) = match prefix.len {
            32 => (address, 0),
            31 => (address & prefix.mask(), 1),
            // Neither the network's own address nor that of its broadcasts.
            _ => (address & prefix.mask() | 1, !prefix.mask() - 2),
        };
        (address != 0).then_some(())
    }

    fn source_port(&mut self, text: &str, scope: &Scope<'_>) -> Option<()> {
        if text == "-" {
            return Some(());
        }
        if let Some(one) = port(text, scope) {
            self.to.source_port = one;
            return Some(());
        }
        let (first, last) = self.order_of(text).split_once('-')?;
        let (first, last) = (u16::parse(first, scope).ok()?, u16::parse(last, scope).ok()?);
        (self.to.source_port, self.span) = (first, u32::from(last.checked_sub(first)?));
        Some(())
    }

    /// Takes the sign at the end of a range that says in which order to try.
    fn order_of<'t>(&mut self, text: &'t str) -> &'t str {
        if let Some(range) = text.strip_suffix('#') {
            self.order = Order::Ascending;
            return range;
        }
        text.strip_suffix('?').inspect(|_| self.order = Order::Random).unwrap_or(text)
    }

    /// What `flow` becomes, `None` if nothing that may be chosen is free. `is_free` says so of a candidate; `random` is
    /// any number.
    pub fn rewrite(&self, flow: FlowId, random: u32, is_free: impl Fn(FlowId) -> bool) -> Option<FlowId> {
        let or = |new: u32, old: u32| if new == 0 { old } else { new };
        let or_port = |new: u16, old: u16| if new == 0 { old } else { new };
        let mut to = FlowId::new(
            or(self.to.source, flow.source),
            or_port(self.to.source_port, flow.source_port),
            or(self.to.destination, flow.destination),
            or_port(self.to.destination_port, flow.destination_port),
        );
        if self.span == 0 {
            return Some(to);
        }
        let mut found = |step: u32| {
            match self.has_ports {
                true => to.source_port = self.to.source_port.wrapping_add(step as u16),
                false => to.source = self.to.source.wrapping_add(step),
            }
            is_free(to).then(|| {
                self.next.store(step + 1, Ordering::Relaxed);
                to
            })
        };
        if self.order == Order::OwnFirst && self.has_ports {
            let own = u32::from(flow.source_port).wrapping_sub(u32::from(self.to.source_port));
            if own <= self.span
                && let Some(to) = found(own)
            {
                return Some(to);
            }
        }
        let first = match self.order {
            Order::Ascending => match self.next.load(Ordering::Relaxed) {
                next if next > self.span => 0,
                next => next,
            },
            _ => (u64::from(random) % (u64::from(self.span) + 1)) as u32,
        };
        (first..=self.span).chain(0..first).find_map(found)
    }
}

fn port(text: &str, scope: &Scope<'_>) -> Option<u16> {
    u16::parse(text, scope).ok().filter(|p| *p > 0)
}

/// As the handlers `patterns` and `pattern#` show it.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |a: u32| if a == 0 { "-".to_owned() } else { Ipv4Addr::from(a).to_string() };
        let number = |p: u16| if p == 0 { "-".to_owned() } else { p.to_string() };
        f.write_str(&address(self.to.source))?;
        if !self.has_ports && self.span > 0 {
            write!(f, "-{}", Ipv4Addr::from(self.to.source.wrapping_add(self.span)))?;
        }
        if self.has_ports {
            write!(f, " {}", number(self.to.source_port))?;
            if self.to.source_port > 0 && self.span > 0 {
                write!(f, "-{}", u32::from(self.to.source_port) + self.span)?;
            }
        }
        write!(f, " {}", address(self.to.destination))?;
        if self.has_ports { write!(f, " {}", number(self.to.destination_port)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::Names;
    use std::collections::HashSet;

    fn pattern(text: &str) -> Result<Pattern, Error> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Pattern::parse(&words, &Names::default().scope(""))
    }

    #[test]
    fn patterns_are_read_and_shown() {
        for (text, shown) in [
            ("1.0.0.1 20 - -", "1.0.0.1 20 - -"),
            ("- - - -", "- - - -"),
            ("1.0.0.1 1024-65535# 2.0.0.2 80", "1.0.0.1 1024-65535 2.0.0.2 80"),
            ("1.0.0.1 -", "1.0.0.1 -"),
            ("1.0.0.1-1.0.0.9# -", "1.0.0.1-1.0.0.9 -"),
            ("1.0.0.0/29 -", "1.0.0.1-1.0.0.6 -"),
            ("1.0.0.3/31 -", "1.0.0.2-1.0.0.3 -"),
            ("1.0.0.1 2.0.0.2 5-7?", "1.0.0.1 5-7 2.0.0.2 -"),
        ] {
            assert_eq!(pattern(text).unwrap().to_string(), shown, "{text}");
        }
        for (text, error) in [
            ("1.0.0.1 - - - -", "syntax error"),
            ("1.0.0 - - -", "bad source address"),
            ("1.0.0.9-1.0.0.1 -", "bad source address"),
            ("1.0.0.1 70000 - -", "bad source port"),
            ("1.0.0.1 9-5 - -", "bad source port"),
            ("1.0.0.1 0 - -", "bad source port"),
            ("- - x -", "bad destination address"),
            ("- - - 0", "bad destination port"),
        ] {
            assert_eq!(pattern(text).err(), Some(Error::new(error)), "{text}");
        }
    }

    #[test]
    fn ports_are_tried_as_the_sign_says_until_one_is_free() {
        let flow = FlowId::new(7, 1_002, 8, 80);
        let choose = |p: &Pattern, taken: &[u16]| {
            p.rewrite(flow, 1, |to| !taken.contains(&to.source_port)).map(|to| to.source_port)
        };
        let own = pattern("1.0.0.1 1000-1003 - -").unwrap();
        assert_eq!(choose(&own, &[]), Some(1_002));
        assert_eq!(choose(&own, &[1_002]), Some(1_001));
        assert_eq!(choose(&own, &[1_002, 1_001]), Some(1_003));
        assert_eq!(choose(&own, &[1_002, 1_001, 1_003]), Some(1_000));
        assert_eq!(choose(&own, &[1_000, 1_001, 1_002, 1_003]), None);
        let ascending = pattern("1.0.0.1 1000-1002# - -").unwrap();
        let in_order: Vec<_> = (0..4).map(|_| choose(&ascending, &[])).collect();
        assert_eq!(in_order, [Some(1_000), Some(1_001), Some(1_002), Some(1_000)]);
        let random = pattern("1.0.0.1 1000-1003? - -").unwrap();
        assert_eq!(choose(&random, &[]), Some(1_001));
    }

    #[test]
    fn addresses_of_a_range_are_all_used() {
        let p = pattern("10.0.0.0/29# 9.9.9.9").unwrap();
        let flow = FlowId::new(1, 0, 2, 0);
        let used: HashSet<u32> =
            (0..12).filter_map(|_| p.rewrite(flow, 0, |_| true)).map(|to| to.source).collect();
        assert_eq!(used.len(), 6);
        assert!(used.iter().all(|a| a >> 3 == 0x0a00_0000 >> 3));
    }
}
