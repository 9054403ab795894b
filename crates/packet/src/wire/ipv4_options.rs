//! IPv4 options (RFC 791 §3.1, RFC 2113), and what a router writes into them (RFC 1812 §5.2.4).

use super::{Ipv4, Malformed, ipv4::HEADER_LEN};
use core::net::Ipv4Addr;

/// Option kinds: the copied flag, the class and the number in one byte.
pub mod kind {
    /// End of the option list.
    pub const END: u8 = 0;
    /// No operation.
    pub const NOP: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Internet timestamp.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source and record route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source and record route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;
}

/// Format of a timestamp option (RFC 791 §3.1).
pub mod timestamp_flag {
    /// Timestamps only, 4 bytes each.
    pub const ONLY: u8 = 0;
    /// The recording router's address before each timestamp, 8 bytes together.
    pub const WITH_ADDRESS: u8 = 1;
    /// Addresses written by the sender; a router adds its timestamp behind its own address only.
    pub const PRESPECIFIED: u8 = 3;
}

/// An option that is not what its kind demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// Offset of the wrong byte from the start of the header: the pointer of an ICMP parameter problem.
    pub offset: usize,
}

impl From<BadOption> for Malformed {
    fn from(_: BadOption) -> Self {
        Self::Option
    }
}

/// An option and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionAt<'a> {
    /// Offset of the kind byte from the start of the header.
    pub offset: usize,
    /// The option.
    pub option: Ipv4Option<'a>,
}

/// An IPv4 option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4Option<'a> {
    /// Record route.
    RecordRoute(Route<'a>),
    /// Loose source and record route.
    LooseSourceRoute(Route<'a>),
    /// Strict source and record route.
    StrictSourceRoute(Route<'a>),
    /// Timestamp.
    Timestamp(Timestamp<'a>),
    /// Router alert; a value of 0 asks every router to look at the packet.
    RouterAlert(u16),
    /// Any other kind.
    Unknown {
        /// Option kind.
        kind: u8,
        /// The bytes behind kind and length.
        data: &'a [u8],
    },
}

/// The route data of a recording or source-routing option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// Position of the next slot, counted from 1 at the kind byte; 4 is the first slot.
    pub pointer: u8,
    /// The address slots.
    pub slots: &'a [u8],
}

impl Route<'_> {
    /// The address the pointer is at; `None` behind the last one.
    pub fn next(&self) -> Option<Ipv4Addr> {
        let at = usize::from(self.pointer).checked_sub(4)?;
        self.slots.get(at..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets))
    }

    /// Whether the pointer is behind the last slot.
    pub fn is_exhausted(&self) -> bool {
        usize::from(self.pointer) > self.slots.len() + 3
    }
}

/// The data of a timestamp option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp<'a> {
    /// Position of the next entry, counted from 1 at the kind byte; 5 is the first entry.
    pub pointer: u8,
    /// Number of routers that had no room, 0 to 15.
    pub overflow: u8,
    /// Format: see [`timestamp_flag`].
    pub flag: u8,
    /// The entries, 4 or 8 bytes each.
    pub entries: &'a [u8],
}

/// Iterator over options; it skips no-operations, stops at the end of the list, and ends with an error at a
/// malformed option.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<OptionAt<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            match *rest {
                [] | [kind::END, ..] => return None,
                [kind::NOP, ..] => self.at += 1,
                _ => {
                    let offset = HEADER_LEN + self.at;
                    let parsed = parse(rest, offset);
                    // After an error there is no telling where the next option would start.
                    self.at = parsed.map_or(self.bytes.len(), |(_, length)| self.at + length);
                    return Some(parsed.map(|(option, _)| OptionAt { offset, option }));
                }
            }
        }
    }
}

/// The option at the start of `rest`, and its length.
fn parse(rest: &[u8], offset: usize) -> Result<(Ipv4Option<'_>, usize), BadOption> {
    let bad_length = BadOption { offset: offset + 1 };
    let &[kind, length, ..] = rest else { return Err(bad_length) };
    let length = usize::from(length);
    let data = rest.get(2..length).ok_or(bad_length)?;
    let option = match kind {
        kind::RECORD_ROUTE => Ipv4Option::RecordRoute(route(data, offset)?),
        kind::LOOSE_SOURCE_ROUTE => Ipv4Option::LooseSourceRoute(route(data, offset)?),
        kind::STRICT_SOURCE_ROUTE => Ipv4Option::StrictSourceRoute(route(data, offset)?),
        kind::TIMESTAMP => Ipv4Option::Timestamp(timestamp(data, offset)?),
        kind::ROUTER_ALERT => match *data {
            [hi, lo] => Ipv4Option::RouterAlert(u16::from_be_bytes([hi, lo])),
            _ => return Err(bad_length),
        },
        _ => Ipv4Option::Unknown { kind, data },
    };
    Ok((option, length))
}

/// Route data: the pointer is at a slot boundary, or behind the end.
fn route(data: &[u8], offset: usize) -> Result<Route<'_>, BadOption> {
    let (&pointer, slots) = data.split_first().ok_or(BadOption { offset: offset + 1 })?;
    let at = usize::from(pointer);
    // Room for less than an address is an error (RFC 791), room for none is a full option.
    let fits = at >= 4 && (at > slots.len() + 3 || at + 3 <= slots.len() + 3);
    if fits { Ok(Route { pointer, slots }) } else { Err(BadOption { offset: offset + 2 }) }
}

/// Timestamp data: a known format, and a pointer at an entry that is whole, or behind the end.
fn timestamp(data: &[u8], offset: usize) -> Result<Timestamp<'_>, BadOption> {
    let &[pointer, overflow_flag, ref entries @ ..] = data else {
        return Err(BadOption { offset: offset + 1 });
    };
    let (overflow, flag) = (overflow_flag >> 4, overflow_flag & 0xf);
    let entry_len = match flag {
        timestamp_flag::ONLY => 4,
        timestamp_flag::WITH_ADDRESS | timestamp_flag::PRESPECIFIED => 8,
        _ => return Err(BadOption { offset: offset + 3 }),
    };
    let at = usize::from(pointer);
    let end = entries.len() + 4;
    if at < 5 || (at <= end && at - 1 + entry_len > end) {
        return Err(BadOption { offset: offset + 2 });
    }
    Ok(Timestamp { pointer, overflow, flag, entries })
}

impl<T: AsRef<[u8]>> Ipv4<T> {
    /// The options, one by one.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options { bytes: self.options_bytes(), at: 0 }
    }

    /// The option at `offset` of the header.
    fn option_at(&self, offset: usize) -> Result<Ipv4Option<'_>, BadOption> {
        let at = offset.checked_sub(HEADER_LEN).ok_or(BadOption { offset })?;
        let rest = self.options_bytes().get(at..).ok_or(BadOption { offset })?;
        parse(rest, offset).map(|(option, _)| option)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4<T> {
    /// Writes `address` into the next free slot of the route option at `offset` (from [`OptionAt::offset`])
    /// and advances its pointer. Returns whether there was a slot. The header checksum is left.
    ///
    /// # Errors
    /// [`BadOption`] if there is no well-formed route option.
    pub fn record_route(&mut self, offset: usize, address: Ipv4Addr) -> Result<bool, BadOption> {
        use Ipv4Option::{LooseSourceRoute, RecordRoute, StrictSourceRoute};
        let (RecordRoute(route) | LooseSourceRoute(route) | StrictSourceRoute(route)) =
            self.option_at(offset)?
        else {
            return Err(BadOption { offset });
        };
        let (pointer, full) = (route.pointer, route.is_exhausted());
        if !full {
            self.write_entry(offset, pointer, &address.octets());
        }
        Ok(!full)
    }

    /// Records `time_ms`, milliseconds since midnight UT, in the timestamp option at `offset` (from
    /// [`OptionAt::offset`]), with `address` if the option asks for addresses. In an option with addresses
    /// written by the sender it does so only if `is_mine` accepts the next one. Without room it counts the
    /// overflow. Returns whether anything was written. The header checksum is left.
    ///
    /// # Errors
    /// [`BadOption`] if there is no well-formed timestamp option, or its overflow counter is at its end: then
    /// the packet is in error (RFC 791).
    pub fn record_timestamp(
        &mut self,
        offset: usize,
        address: Ipv4Addr,
        time_ms: u32,
        is_mine: impl FnOnce(Ipv4Addr) -> bool,
    ) -> Result<bool, BadOption> {
        let Ipv4Option::Timestamp(Timestamp { pointer, overflow, flag, entries }) = self.option_at(offset)?
        else {
            return Err(BadOption { offset });
        };
        let next = usize::from(pointer).checked_sub(5).and_then(|at| entries.get(at..)).unwrap_or_default();
        let [a, b, c, d] = address.octets();
        let [e, f, g, h] = time_ms.to_be_bytes();
        match (flag, next.first_chunk::<4>()) {
            // All addresses the sender asked about are served, so nothing is missing: no overflow.
            (timestamp_flag::PRESPECIFIED, None) => return Ok(false),
            (_, None) if overflow == 15 => return Err(BadOption { offset: offset + 3 }),
            (_, None) => self.set_option_byte(offset + 3, (overflow + 1) << 4 | flag),
            (timestamp_flag::ONLY, Some(_)) => self.write_entry(offset, pointer, &[e, f, g, h]),
            (timestamp_flag::PRESPECIFIED, Some(octets)) => {
                let octets = *octets;
                if !is_mine(octets.into()) {
                    return Ok(false);
                }
                let [a, b, c, d] = octets;
                self.write_entry(offset, pointer, &[a, b, c, d, e, f, g, h]);
            }
            (_, Some(_)) => self.write_entry(offset, pointer, &[a, b, c, d, e, f, g, h]),
        }
        Ok(true)
    }

    /// Writes `entry` at the pointer of the option at `offset`, and moves the pointer behind it.
    fn write_entry(&mut self, offset: usize, pointer: u8, entry: &[u8]) {
        let at = (offset + usize::from(pointer)).saturating_sub(1 + HEADER_LEN);
        if let Some(to) = self.options_bytes_mut().get_mut(at..at + entry.len()) {
            to.copy_from_slice(entry);
            self.set_option_byte(offset + 2, pointer.saturating_add(entry.len() as u8));
        }
    }

    /// Writes one byte at `offset` of the header.
    fn set_option_byte(&mut self, offset: usize, value: u8) {
        if let Some(byte) = self.options_bytes_mut().get_mut(offset - HEADER_LEN) {
            *byte = value;
        }
    }
}
