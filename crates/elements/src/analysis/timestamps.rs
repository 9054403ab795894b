//! Which of a packet's times is meant, and times that may be negative.

use crate::traces::fields::view::{first_timestamp_ns, set_first_timestamp_ns};
use causeway_engine::value::{Nanoseconds, Value};
use causeway_engine::{Error, Scope};
use causeway_packet::Packet;

/// One of the times of `packet`.
pub(super) fn time_ns(packet: &Packet, first: bool) -> u64 {
    if first { first_timestamp_ns(packet) } else { packet.timestamp_ns() }
}

/// Sets one of the times of `packet`.
pub(super) fn set_time_ns(packet: &mut Packet, first: bool, ns: u64) {
    match first {
        true => set_first_timestamp_ns(packet, ns),
        false => packet.set_timestamp_ns(ns),
    }
}

/// A time that may be negative, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signed(pub i64);

impl Value for Signed {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
        let Nanoseconds(ns) = Nanoseconds::parse(size, scope)?;
        i64::try_from(ns).map(|ns| Signed(sign * ns)).map_err(|_| Error::new("out of range"))
    }

    fn placeholder() -> Self {
        Signed(0)
    }
}

impl std::fmt::Display for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Nanoseconds(self.0.unsigned_abs()))
    }
}
