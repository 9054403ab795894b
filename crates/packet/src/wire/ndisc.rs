//! Neighbour discovery (RFC 4861): the five messages and their options.
//!
//! The checks of RFC 4861 that need the IPv6 header (hop limit 255, the kind of address, the checksum) are the
//! caller's; those within the message are made by `new_checked`.

use super::icmpv6::{self, kind};
use super::{Icmpv6, MacAddr, Malformed};
use crate::checksum;
use core::net::Ipv6Addr;

/// Length of a solicitation or advertisement of a neighbour with one link-layer address option.
pub const NEIGHBOR_LEN: usize = neighbor::LEN + 8;
/// Bit of [`NeighborAdvertisement::flags`]: the sender is a router.
pub const ROUTER: u8 = 0x80;
/// Bit of [`NeighborAdvertisement::flags`]: sent in answer to a solicitation.
pub const SOLICITED: u8 = 0x40;
/// Bit of [`NeighborAdvertisement::flags`]: replaces the address in the receiver's cache.
pub const OVERRIDE: u8 = 0x20;

/// Lengths without options.
mod neighbor {
    pub const LEN: usize = 24;
}
const ROUTER_SOLICITATION_LEN: usize = 8;
const ROUTER_ADVERTISEMENT_LEN: usize = 16;
const REDIRECT_LEN: usize = 40;

header! {
    /// A view of a router solicitation (RFC 4861 §4.1).
    pub struct RouterSolicitation, fields in router_solicitation, ROUTER_SOLICITATION_LEN;
    /// Type, 133.
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, 0.
    CODE @ 1: u8 => code, set_code;
}

header! {
    /// A view of a router advertisement (RFC 4861 §4.2).
    pub struct RouterAdvertisement, fields in router_advertisement, ROUTER_ADVERTISEMENT_LEN;
    /// Type, 134.
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, 0.
    CODE @ 1: u8 => code, set_code;
    /// Hop limit hosts should use; 0 is unspecified.
    HOP_LIMIT @ 4: u8 => hop_limit, set_hop_limit;
    /// Flags: managed (0x80), other configuration (0x40).
    FLAGS @ 5: u8 => flags, set_flags;
    /// Lifetime as a default router in seconds.
    LIFETIME @ 6: u16 => lifetime_s, set_lifetime_s;
    /// Reachable time in milliseconds; 0 is unspecified.
    REACHABLE @ 8: u32 => reachable_ms, set_reachable_ms;
    /// Time between solicitations in milliseconds; 0 is unspecified.
    RETRANSMIT @ 12: u32 => retransmit_ms, set_retransmit_ms;
}

header! {
    /// A view of a neighbour solicitation (RFC 4861 §4.3).
    pub struct NeighborSolicitation, fields in neighbor_solicitation, neighbor::LEN;
    /// Type, 135.
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, 0.
    CODE @ 1: u8 => code, set_code;
    /// The address asked for.
    TARGET @ 8: Ipv6Addr => target, set_target;
}

header! {
    /// A view of a neighbour advertisement (RFC 4861 §4.4).
    pub struct NeighborAdvertisement, fields in neighbor_advertisement, neighbor::LEN;
    /// Type, 136.
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, 0.
    CODE @ 1: u8 => code, set_code;
    /// [`ROUTER`], [`SOLICITED`] and [`OVERRIDE`].
    FLAGS @ 4: u8 => flags, set_flags;
    /// The address answered for.
    TARGET @ 8: Ipv6Addr => target, set_target;
}

header! {
    /// A view of a redirect (RFC 4861 §4.5).
    pub struct Redirect, fields in redirect, REDIRECT_LEN;
    /// Type, 137.
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, 0.
    CODE @ 1: u8 => code, set_code;
    /// The better first hop.
    TARGET @ 8: Ipv6Addr => target, set_target;
    /// The destination it is better for; the target itself if that is on the link.
    DESTINATION @ 24: Ipv6Addr => destination, set_destination;
}

/// Constructor and options of a message: the same for all five.
macro_rules! message {
    ($($name:ident, $len:expr, $kind:expr;)*) => {$(
        impl<T: AsRef<[u8]>> $name<T> {
            /// A view of `buf`, which is the ICMPv6 message: padding must have been cut off.
            ///
            /// # Errors
            /// [`Malformed::Truncated`] below the fixed part, [`Malformed::Type`] unless type and code are this
            /// message's, [`Malformed::Option`] if an option is empty or runs past the end.
            #[inline]
            pub fn new_checked(buf: T) -> Result<Self, Malformed> {
                Self::fits(&buf)?;
                let message = Self { buf };
                if (message.message_type(), message.code()) != ($kind, 0) {
                    return Err(Malformed::Type);
                }
                message.options().try_for_each(|option| option.map(drop))?;
                Ok(message)
            }

            /// The options, one by one.
            #[inline]
            pub fn options(&self) -> Options<'_> {
                Options { rest: self.buf.as_ref().get($len..).unwrap_or_default() }
            }
        }
    )*};
}

message! {
    RouterSolicitation, ROUTER_SOLICITATION_LEN, kind::ROUTER_SOLICITATION;
    RouterAdvertisement, ROUTER_ADVERTISEMENT_LEN, kind::ROUTER_ADVERTISEMENT;
    NeighborSolicitation, neighbor::LEN, kind::NEIGHBOR_SOLICITATION;
    NeighborAdvertisement, neighbor::LEN, kind::NEIGHBOR_ADVERTISEMENT;
    Redirect, REDIRECT_LEN, kind::REDIRECT;
}

/// An option of a neighbour discovery message (RFC 4861 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NdOption<'a> {
    /// The sender's Ethernet address (type 1).
    SourceLinkLayer(MacAddr),
    /// The target's Ethernet address (type 2).
    TargetLinkLayer(MacAddr),
    /// A prefix on the link, or for address configuration (type 3).
    Prefix {
        /// Length of the prefix in bits, 0 to 128 if the sender is sound.
        prefix_len: u8,
        /// Flags: on-link (0x80), autonomous configuration (0x40).
        flags: u8,
        /// Time on the link in seconds; all ones is for ever.
        valid_s: u32,
        /// Time preferred in seconds; all ones is for ever.
        preferred_s: u32,
        /// The prefix.
        prefix: Ipv6Addr,
    },
    /// The start of the redirected packet (type 4).
    RedirectedPacket(&'a [u8]),
    /// The link's MTU in bytes (type 5).
    Mtu(u32),
    /// Any other type, or one of the above with an unexpected length.
    Unknown {
        /// Option type.
        kind: u8,
        /// The bytes behind type and length.
        data: &'a [u8],
    },
}

/// Iterator over options; a malformed one ends it with an error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<NdOption<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let &[kind, units, ..] = self.rest else {
            // One stray byte is not an option.
            let stray = !self.rest.is_empty();
            self.rest = &[];
            return stray.then_some(Err(Malformed::Option));
        };
        let option = self.rest.split_at_checked(usize::from(units) * 8).filter(|_| units != 0);
        let Some((option, rest)) = option else {
            self.rest = &[];
            return Some(Err(Malformed::Option));
        };
        self.rest = rest;
        Some(Ok(decode(kind, option.get(2..).unwrap_or_default())))
    }
}

/// The option of type `kind` with `data` behind type and length.
fn decode(kind: u8, data: &[u8]) -> NdOption<'_> {
    let word =
        |at: usize| data.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word));
    match (kind, data.len()) {
        (1 | 2, 6) => {
            let mac = MacAddr(data.try_into().unwrap_or_default());
            if kind == 1 { NdOption::SourceLinkLayer(mac) } else { NdOption::TargetLinkLayer(mac) }
        }
        (3, 30) => NdOption::Prefix {
            prefix_len: data[0],
            flags: data[1],
            valid_s: word(2),
            preferred_s: word(6),
            prefix: data.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| (*octets).into()),
        },
        (4, 6..) => NdOption::RedirectedPacket(&data[6..]),
        (5, 6) => NdOption::Mtu(word(2)),
        _ => NdOption::Unknown { kind, data },
    }
}

/// The group a neighbour solicitation for `target` is sent to (RFC 4291 §2.7.1).
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = target.octets();
    let [hi, lo] = [(0xff << 8) | a as u16, (b as u16) << 8 | c as u16];
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, hi, lo)
}

/// The values of a neighbour solicitation or advertisement with the Ethernet address option that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborMessage {
    /// Who has `target`? `mac` is the sender's.
    Solicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// The sender's Ethernet address.
        mac: MacAddr,
    },
    /// `target` is at `mac`.
    Advertisement {
        /// The address answered for.
        target: Ipv6Addr,
        /// Its Ethernet address.
        mac: MacAddr,
        /// [`ROUTER`], [`SOLICITED`] and [`OVERRIDE`].
        flags: u8,
    },
}

impl NeighborMessage {
    /// Writes the ICMPv6 message, with the checksum for a packet from `src` to `dst`.
    pub fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, out: &mut [u8; NEIGHBOR_LEN]) {
        let (message_type, option_type, target, mac, flags) = match *self {
            Self::Solicitation { target, mac } => (kind::NEIGHBOR_SOLICITATION, 1, target, mac, 0),
            Self::Advertisement { target, mac, flags } => {
                (kind::NEIGHBOR_ADVERTISEMENT, 2, target, mac, flags)
            }
        };
        // The layouts differ only in the flags, reserved bytes in a solicitation.
        out[..icmpv6::HEADER_LEN].fill(0);
        out[neighbor_advertisement::TYPE].fill(message_type);
        out[neighbor_advertisement::FLAGS].fill(flags);
        out[neighbor_advertisement::TARGET].copy_from_slice(&target.octets());
        out[neighbor::LEN..neighbor::LEN + 2].copy_from_slice(&[option_type, 1]);
        out[neighbor::LEN + 2..].copy_from_slice(&mac.octets());
        let pseudo_header =
            checksum::pseudo_header_v6(src, dst, super::protocol::ICMPV6, NEIGHBOR_LEN as u32);
        if let Ok(mut message) = Icmpv6::new_checked(&mut out[..]) {
            message.fill_checksum(pseudo_header);
        }
    }
}
