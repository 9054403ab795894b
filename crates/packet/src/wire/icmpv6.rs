//! ICMPv6 (RFC 4443).

use super::Malformed;
use crate::checksum::Sum;

/// Length of the header: type, code, checksum and four bytes whose meaning the type decides.
///
/// RFC 4443 counts the last four to the body, but every message defined so far has them.
pub const HEADER_LEN: usize = 8;

/// Message types; those below 128 are errors (RFC 4443 §2.1).
pub mod kind {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded: hop limit (code 0) or reassembly (1).
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation (RFC 4861 §4.1).
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement (RFC 4861 §4.2).
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour solicitation (RFC 4861 §4.3).
    pub const NEIGHBOR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement (RFC 4861 §4.4).
    pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    /// Redirect (RFC 4861 §4.5).
    pub const REDIRECT: u8 = 137;
}

/// Codes of [`kind::UNREACHABLE`] (RFC 4443 §3.1).
pub mod unreachable {
    /// No route to the destination.
    pub const NO_ROUTE: u8 = 0;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 1;
    /// Beyond the scope of the source address.
    pub const BEYOND_SCOPE: u8 = 2;
    /// Address unreachable.
    pub const ADDRESS: u8 = 3;
    /// Port unreachable.
    pub const PORT: u8 = 4;
}

header! {
    /// A view of an ICMPv6 message.
    pub struct Icmpv6, fields in field, HEADER_LEN;
    /// Type: see [`kind`].
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, subordinate to the type.
    CODE @ 1: u8 => code, set_code;
    /// Checksum over pseudo-header and message.
    CHECKSUM @ 2: u16 => checksum, set_checksum;
    /// The four bytes whose meaning the type decides: the MTU of "packet too big", the pointer of a parameter
    /// problem, unused in other errors.
    REST @ 4: u32 => rest, set_rest;
    /// Echo: identifier.
    IDENTIFIER @ 4: u16 => identifier, set_identifier;
    /// Echo: sequence number.
    SEQUENCE @ 6: u16 => sequence, set_sequence;
}

impl<T: AsRef<[u8]>> Icmpv6<T> {
    /// A view of `buf`, which is the message: padding must have been cut off.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 8 bytes.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        Ok(Self { buf })
    }

    /// Whether this reports an error, and so may not be answered by one (RFC 4443 §2.4 (e)).
    #[inline]
    pub fn is_error(&self) -> bool {
        self.message_type() < 128
    }

    /// What follows the header: echo data, or the quoted packet of an error.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.buf.as_ref().get(HEADER_LEN..).unwrap_or_default()
    }

    /// Whether the checksum is right. `pseudo_header` is IPv6's, over the message.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        pseudo_header.bytes(self.buf.as_ref()).fold() == 0xffff
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv6<T> {
    /// What follows the header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.buf.as_mut().get_mut(HEADER_LEN..).unwrap_or_default()
    }

    /// Computes the checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.bytes(self.buf.as_ref()).finish();
        self.set_checksum(sum);
    }
}
