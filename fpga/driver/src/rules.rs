//! The rule table: cards, routes, class rules and policy, with a text form of one rule a line.
//!
//! ```text
//! # comment
//! nic 0 mac 02:00:00:00:00:00
//! nic 1 mac 02:00:00:00:00:01
//! route 10.0.1.0/24 nic 1 mac 02:00:00:00:01:fe
//! route 10.0.1.1/32 host
//! class nic 1 tos 0xb8/0xfc proto 17/255
//! class host src 192.0.2.0/24
//! policy bad-checksum drop
//! policy ttl-expired host
//! ```

use std::fmt;
use std::net::Ipv4Addr;

use crate::registers::ROUTES;

/// The most cards that the hardware can address.
pub const MAX_NICS: usize = 8;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address as a number whose low byte is the first on the wire, as the NIC's registers hold it.
    pub fn to_register(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0);
        u64::from_le_bytes(bytes)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out by a card.
    Nic {
        /// The card that the packet leaves through.
        nic: u8,
        /// The next hop's Ethernet address.
        next_hop: Mac,
    },
    /// To the host, whatever other routes say: the router's own addresses, for example.
    Host,
}

/// A ternary route, for the destinations with `dst & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination bits, host byte order; zero wherever `mask` is.
    pub value: u32,
    /// One bits are compared.
    pub mask: u32,
    /// Where it leads.
    pub to: Target,
}

impl Route {
    /// Whether the route matches a destination in host byte order.
    pub fn matches(&self, dst: u32) -> bool {
        dst & self.mask == self.value
    }

    /// Whether its lowest and highest address are the host's: those of a prefix may be the network's own and its directed
    /// broadcast (RFC 1812 section 5.3.5.2). A prefix of 31 or 32 bits has none (RFC 3021).
    pub fn has_edges(&self) -> bool {
        let length = self.mask.leading_ones();
        self.to != Target::Host && length == self.mask.count_ones() && length <= 30
    }

    /// Whether a destination that matches is one of them.
    pub fn is_edge(&self, dst: u32) -> bool {
        self.has_edges() && (dst | self.mask == u32::MAX || dst & !self.mask == 0)
    }

    fn overlaps(&self, other: &Route) -> bool {
        (self.value ^ other.value) & self.mask & other.mask == 0
    }
}

/// The 80 bits that a packet is classified by: ToS (8), source (32), destination (32), protocol (8), from the
/// most significant end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ClassKey(pub u128);

impl ClassKey {
    /// Packs the four fields.
    pub fn new(tos: u8, src: u32, dst: u32, protocol: u8) -> Self {
        Self(u128::from(tos) << 72 | u128::from(src) << 40 | u128::from(dst) << 8 | u128::from(protocol))
    }
}

/// A ternary class rule: a match puts the packet in the high class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ClassRule {
    /// Key bits; zero wherever `mask` is.
    pub value: ClassKey,
    /// One bits are compared.
    pub mask: ClassKey,
}

impl ClassRule {
    /// Whether the key is of the high class.
    pub fn matches(&self, key: ClassKey) -> bool {
        key.0 & self.mask.0 == self.value.0
    }

    fn is_tight(&self) -> bool {
        self.value.0 & !self.mask.0 == 0 && self.mask.0 >> 80 == 0
    }
}

/// What the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Policy {
    /// Drop IPv4 headers with a wrong checksum (RFC 1812 §5.2.2) in the card instead of leaving them to the host.
    pub drop_bad_checksum: bool,
    /// Hand packets whose TTL is used up to the host, which answers with ICMP, instead of dropping them as the
    /// paper does.
    pub ttl_expired_to_host: bool,
    /// Leave the source MAC address of a forwarded frame alone (the paper names only the destination address);
    /// RFC 1812 routers write the output port's.
    pub keep_source_mac: bool,
}

/// The rules of a router of several cards.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RuleTable {
    /// The Ethernet address of each card, by card number.
    pub nics: Vec<Mac>,
    /// Those through a card are disjoint, and those to the host come before them; see [`RuleTable::check`].
    pub routes: Vec<Route>,
    /// The class rule for each destination card; none means that everything is of the low class.
    pub classes: [Option<ClassRule>; MAX_NICS],
    /// The class rule for the slow path.
    pub host_class: Option<ClassRule>,
    /// Choices that the paper leaves open.
    pub policy: Policy,
}

/// Why a table was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A line of the text form that says nothing known; the line's number from 1, and what was wrong.
    Line(usize, String),
    /// More cards than [`MAX_NICS`], or none.
    NicCount(usize),
    /// More routes than a card holds.
    RouteCount(usize),
    /// A route or class rule names a card that the table does not have.
    UnknownNic(u8),
    /// Two routes through cards match the same destination; their indices.
    Overlap(usize, usize),
    /// A value has bits outside its mask; the route's index.
    LooseBits(usize),
    /// A class rule has bits outside its mask or above the key's 80; the card, or none for the host.
    LooseClassBits(Option<u8>),
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number, what) => write!(f, "line {number}: {what}"),
            Self::NicCount(n) => write!(f, "{n} cards; between 1 and {MAX_NICS} are possible"),
            Self::RouteCount(n) => write!(f, "{n} routes; a card holds {ROUTES}"),
            Self::UnknownNic(n) => write!(f, "card {n} is not in the table"),
            Self::Overlap(a, b) => write!(f, "routes {a} and {b} match the same destinations"),
            Self::LooseBits(i) => write!(f, "route {i} has address bits outside its mask"),
            Self::LooseClassBits(Some(n)) => {
                write!(f, "the class rule for card {n} has bits outside its mask")
            }
            Self::LooseClassBits(None) => write!(f, "the class rule for the host has bits outside its mask"),
        }
    }
}

impl std::error::Error for RuleError {}

impl RuleTable {
    /// Reads and checks the text form.
    ///
    /// # Errors
    /// The first line that cannot be read, or the first check that fails.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if !words.is_empty() {
                table.add_line(&words).map_err(|what| RuleError::Line(index + 1, what))?;
            }
        }
        table.check()?;
        Ok(table)
    }

    fn add_line(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["nic", number, "mac", mac] => {
                if parse_int(number)? as usize != self.nics.len() {
                    return Err("cards are numbered from 0 in order".into());
                }
                self.nics.push(parse_mac(mac)?);
            }
            ["route", dst, "nic", nic, "mac", mac] => {
                let (value, mask) = parse_prefix(dst)?;
                let to = Target::Nic { nic: parse_byte(nic)?, next_hop: parse_mac(mac)? };
                self.routes.push(Route { value, mask, to });
            }
            ["route", dst, "host"] => {
                let (value, mask) = parse_prefix(dst)?;
                self.routes.push(Route { value, mask, to: Target::Host });
            }
            ["class", "host", fields @ ..] => set_class(&mut self.host_class, fields)?,
            ["class", "nic", nic, fields @ ..] => {
                let slot = self.classes.get_mut(parse_byte(nic)? as usize).ok_or("no such card")?;
                set_class(slot, fields)?;
            }
            ["policy", "bad-checksum", "drop"] => self.policy.drop_bad_checksum = true,
            ["policy", "ttl-expired", "host"] => self.policy.ttl_expired_to_host = true,
            ["policy", "source-mac", "keep"] => self.policy.keep_source_mac = true,
            _ => return Err(format!("not a rule: {}", words.join(" "))),
        }
        Ok(())
    }

    /// Checks what the hardware relies on.
    ///
    /// # Errors
    /// The first rule that is broken: counts, card numbers, loose bits, overlapping routes.
    pub fn check(&self) -> Result<(), RuleError> {
        if self.nics.is_empty() || self.nics.len() > MAX_NICS {
            return Err(RuleError::NicCount(self.nics.len()));
        }
        if self.routes.len() > ROUTES {
            return Err(RuleError::RouteCount(self.routes.len()));
        }
        for (i, route) in self.routes.iter().enumerate() {
            if route.value & !route.mask != 0 {
                return Err(RuleError::LooseBits(i));
            }
            let Target::Nic { nic, .. } = route.to else { continue };
            if usize::from(nic) >= self.nics.len() {
                return Err(RuleError::UnknownNic(nic));
            }
            let overlaps = |other: &Route| other.to != Target::Host && route.overlaps(other);
            if let Some(j) = self.routes[..i].iter().position(overlaps) {
                return Err(RuleError::Overlap(j, i));
            }
        }
        if self.host_class.is_some_and(|rule| !rule.is_tight()) {
            return Err(RuleError::LooseClassBits(None));
        }
        for (nic, rule) in (0..).zip(&self.classes) {
            match rule {
                Some(_) if usize::from(nic) >= self.nics.len() => return Err(RuleError::UnknownNic(nic)),
                Some(rule) if !rule.is_tight() => return Err(RuleError::LooseClassBits(Some(nic))),
                _ => {}
            }
        }
        Ok(())
    }

    /// The routes as they are tried: those to the host first.
    pub fn by_precedence(&self) -> impl Iterator<Item = &Route> {
        let of = |host: bool| self.routes.iter().filter(move |route| (route.to == Target::Host) == host);
        of(true).chain(of(false))
    }

    /// The route of a destination in host byte order.
    pub fn lookup(&self, dst: u32) -> Option<&Route> {
        self.by_precedence().find(|route| route.matches(dst))
    }
}

fn parse_int(word: &str) -> Result<u32, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("not a number: {word}"))
}

fn parse_byte(word: &str) -> Result<u8, String> {
    u8::try_from(parse_int(word)?).map_err(|_| format!("above 255: {word}"))
}

fn parse_mac(word: &str) -> Result<Mac, String> {
    let mut mac = [0; 6];
    let mut parts = word.split(':');
    for byte in &mut mac {
        let part = parts.next().unwrap_or_default();
        *byte = u8::from_str_radix(part, 16).map_err(|_| format!("not a MAC address: {word}"))?;
    }
    parts.next().is_none().then_some(Mac(mac)).ok_or_else(|| format!("not a MAC address: {word}"))
}

/// Address and mask of `a.b.c.d/length` or `a.b.c.d/m.m.m.m`, with the bits outside the mask cleared.
fn parse_prefix(word: &str) -> Result<(u32, u32), String> {
    let bad = || format!("not a prefix: {word}");
    let (address, mask) = word.split_once('/').ok_or_else(bad)?;
    let address: Ipv4Addr = address.parse().map_err(|_| bad())?;
    let mask = if mask.contains('.') {
        u32::from(mask.parse::<Ipv4Addr>().map_err(|_| bad())?)
    } else {
        let length: u32 = mask.parse().ok().filter(|&n| n <= 32).ok_or_else(bad)?;
        u32::MAX.checked_shl(32 - length).unwrap_or(0)
    };
    Ok((u32::from(address) & mask, mask))
}

/// Value and mask of `value` or `value/mask`, eight bits each.
fn parse_ternary_byte(word: &str) -> Result<(u8, u8), String> {
    let (value, mask) = match word.split_once('/') {
        Some((value, mask)) => (parse_byte(value)?, parse_byte(mask)?),
        None => (parse_byte(word)?, u8::MAX),
    };
    Ok((value & mask, mask))
}

fn set_class(slot: &mut Option<ClassRule>, fields: &[&str]) -> Result<(), String> {
    match slot.replace(parse_class(fields)?) {
        Some(_) => Err("a second class rule for one destination".into()),
        None => Ok(()),
    }
}

fn parse_class(fields: &[&str]) -> Result<ClassRule, String> {
    let (mut tos, mut src, mut dst, mut protocol) = ((0, 0), (0, 0), (0, 0), (0, 0));
    for pair in fields.chunks(2) {
        match *pair {
            ["tos", word] => tos = parse_ternary_byte(word)?,
            ["src", word] => src = parse_prefix(word)?,
            ["dst", word] => dst = parse_prefix(word)?,
            ["proto", word] => protocol = parse_ternary_byte(word)?,
            _ => return Err(format!("not a class field: {}", pair.join(" "))),
        }
    }
    Ok(ClassRule {
        value: ClassKey::new(tos.0, src.0, dst.0, protocol.0),
        mask: ClassKey::new(tos.1, src.1, dst.1, protocol.1),
    })
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
