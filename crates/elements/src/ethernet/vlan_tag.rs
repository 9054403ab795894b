//! The VLAN tags (IEEE 802.1Q) that elements put into packets, or note on them.

use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::values;

/// Bits of the tag control information that are the VLAN's number.
const ID: u16 = 0xfff;
/// The bit above them.
const DROP_ELIGIBLE: u16 = 0x1000;

/// A number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within<const MIN: i32, const MAX: i32>(pub i32);

impl<const MIN: i32, const MAX: i32> Within<MIN, MAX> {
    /// Not given, neither by an argument nor by a handler.
    pub const UNSAID: Self = Within(MIN - 1);

    /// The number, or another if none was given.
    fn or(self, other: i32) -> Self {
        if self == Self::UNSAID { Within(other) } else { self }
    }
}

impl<const MIN: i32, const MAX: i32> Value for Within<MIN, MAX> {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        let n = values::integer(text, MIN.into(), MAX.into()).map_err(Error::caused_by)?;
        i32::try_from(n).map(Within).map_err(|_| Error::new("out of range"))
    }

    fn placeholder() -> Self {
        Within(MIN)
    }
}

impl<const MIN: i32, const MAX: i32> std::fmt::Display for Within<MIN, MAX> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Priority code point.
pub(super) type Priority = Within<0, 7>;
/// Number of a VLAN.
pub(super) type VlanId = Within<0, 0xfff>;
/// Number of a VLAN, or none.
pub(super) type NativeVlan = Within<{ -1 }, 0xfff>;

/// What VLAN_TCI says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tci {
    /// Number and priority.
    Fixed(u16),
    /// The packet's annotation.
    Anno,
}

impl Value for Tci {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if text == "ANNO" { Ok(Tci::Anno) } else { u16::parse(text, scope).map(Tci::Fixed) }
    }

    fn placeholder() -> Self {
        Tci::Anno
    }
}

/// Number and priority that are not given are those of a fixed VLAN_TCI, or 0; of it the bit between them stays. So what a
/// handler has written goes before it, also when it is an argument of the live configuration.
pub(super) fn settle(tci: &mut Option<Tci>, id: &mut VlanId, priority: &mut Priority) {
    let given = match tci {
        Some(Tci::Fixed(given)) => std::mem::replace(given, *given & DROP_ELIGIBLE),
        _ => 0,
    };
    *id = id.or(i32::from(given & ID));
    *priority = priority.or(i32::from(given >> 13));
}

/// The tag control information that arguments give, once they are settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub tci: Option<Tci>,
    pub id: VlanId,
    pub priority: Priority,
}

impl Tag {
    /// For `packet`, in host order.
    pub fn of(self, packet: &Packet) -> u16 {
        match self.tci {
            Some(Tci::Anno) => u16::from_be_bytes(packet.anno_bytes(Anno::VLAN_TCI.offset)),
            _ => self.fixed(),
        }
    }

    /// Without a packet, in host order.
    pub fn fixed(self) -> u16 {
        let between = match self.tci {
            Some(Tci::Fixed(tci)) => tci,
            _ => 0,
        };
        between | self.id.0 as u16 | (self.priority.0 as u16) << 13
    }

    /// What handlers show of it.
    pub fn text(self) -> String {
        if self.tci == Some(Tci::Anno) { "ANNO".to_owned() } else { self.fixed().to_string() }
    }
}

/// Whether `tci` is of the VLAN whose packets have no tags.
pub(super) fn is_native(tci: u16, native: NativeVlan) -> bool {
    i32::from(tci & ID) == native.0
}

/// Notes `tci` on `packet`.
pub(super) fn note(tci: u16, packet: &mut Packet) {
    packet.set_anno_bytes(Anno::VLAN_TCI.offset, tci.to_be_bytes());
}
