//! ICMP (RFC 792).

use super::Malformed;
use crate::checksum;

/// Length of the header: type, code, checksum and the four bytes whose meaning the type decides.
pub const HEADER_LEN: usize = 8;

/// Message types.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable; the code says what.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench (deprecated by RFC 6633).
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect to a better gateway.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded, in transit (code 0) or in reassembly (1).
    pub const TIME_EXCEEDED: u8 = 11;
    /// A header field is wrong; the pointer says where.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Timestamp request.
    pub const TIMESTAMP: u8 = 13;
    /// Timestamp reply.
    pub const TIMESTAMP_REPLY: u8 = 14;
}

/// Codes of [`kind::UNREACHABLE`] (RFC 792, RFC 1812 §5.2.7.1).
pub mod unreachable {
    /// Network unreachable.
    pub const NET: u8 = 0;
    /// Host unreachable.
    pub const HOST: u8 = 1;
    /// Protocol unreachable.
    pub const PROTOCOL: u8 = 2;
    /// Port unreachable.
    pub const PORT: u8 = 3;
    /// Fragmentation needed, and forbidden.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Source route failed.
    pub const SOURCE_ROUTE_FAILED: u8 = 5;
    /// Communication administratively prohibited.
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 13;
}

header! {
    /// A view of an ICMP message.
    pub struct Icmpv4, fields in field, HEADER_LEN;
    /// Type: see [`kind`].
    TYPE @ 0: u8 => message_type, set_message_type;
    /// Code, subordinate to the type.
    CODE @ 1: u8 => code, set_code;
    /// Checksum over the message.
    CHECKSUM @ 2: u16 => checksum, set_checksum;
    /// The four bytes whose meaning the type decides: unused in most errors, the gateway of a redirect.
    REST @ 4: u32 => rest, set_rest;
    /// Echo and timestamp: identifier.
    IDENTIFIER @ 4: u16 => identifier, set_identifier;
    /// Echo and timestamp: sequence number.
    SEQUENCE @ 6: u16 => sequence, set_sequence;
    /// Parameter problem: offset of the wrong byte in the quoted packet.
    POINTER @ 4: u8 => pointer, set_pointer;
    /// Fragmentation needed: MTU of the next hop in bytes (RFC 1191 §4).
    MTU @ 6: u16 => mtu, set_mtu;
}

impl<T: AsRef<[u8]>> Icmpv4<T> {
    /// A view of `buf`, which is the message: padding must have been cut off.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 8 bytes.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        Ok(Self { buf })
    }

    /// Whether this reports an error, and so may not be answered by one (RFC 1812 §4.3.2.7).
    #[inline]
    pub fn is_error(&self) -> bool {
        use kind::{PARAMETER_PROBLEM, REDIRECT, SOURCE_QUENCH, TIME_EXCEEDED, UNREACHABLE};
        matches!(
            self.message_type(),
            UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM
        )
    }

    /// What follows the header: echo data, or the quoted packet of an error.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.buf.as_ref().get(HEADER_LEN..).unwrap_or_default()
    }

    /// Whether the checksum is right.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        checksum::verify(self.buf.as_ref())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv4<T> {
    /// What follows the header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.buf.as_mut().get_mut(HEADER_LEN..).unwrap_or_default()
    }

    /// Computes the checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let sum = checksum::checksum(self.buf.as_ref());
        self.set_checksum(sum);
    }

    /// Makes an echo request its reply, in place, and updates the checksum. The addresses are the caller's.
    #[inline]
    pub fn make_echo_reply(&mut self) {
        let word = |kind, code| u16::from_be_bytes([kind, code]);
        let (old, new) = (word(self.message_type(), self.code()), word(kind::ECHO_REPLY, self.code()));
        let sum = checksum::update_u16(self.checksum(), old, new);
        self.set_message_type(kind::ECHO_REPLY);
        self.set_checksum(sum);
        // A reply can be all zeros, the one message an incremental update gets wrong.
        if sum == 0 {
            self.fill_checksum();
        }
    }
}
