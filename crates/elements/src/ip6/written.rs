//! IPv6 addresses as Click writes them.

use causeway_engine::value::Value;
use causeway_engine::{Error, Scope};
use std::fmt;
use std::net::Ipv6Addr;

/// An address: in text with the last four bytes in decimal where twelve zeros stand before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written(pub Ipv6Addr);

impl Value for Written {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        Ipv6Addr::parse(text, scope).map(Written)
    }

    fn placeholder() -> Self {
        Written(Ipv6Addr::UNSPECIFIED)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.octets() {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if [a, b, c, d] != [0; 4] => {
                write!(f, "::{a}.{b}.{c}.{d}")
            }
            _ => self.0.fmt(f),
        }
    }
}
