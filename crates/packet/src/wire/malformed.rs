//! Why bytes are not what they claim to be.

use core::fmt;

/// Why a view refused its buffer. Each has a name that drop counters use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The buffer ends before the fixed part of the header does.
    Truncated,
    /// The version field is not the one of this protocol.
    Version,
    /// The header length field is below the minimum, or the buffer ends before the header does.
    HeaderLength,
    /// The length field is smaller than the header, or larger than the buffer.
    Length,
    /// An ARP packet that does not map IPv4 to Ethernet addresses.
    AddressFormat,
    /// The type field is not the one of this message.
    Type,
    /// An option whose length is below the minimum or runs past the end.
    Option,
}

impl Malformed {
    /// The name under which drops for this reason are counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "bad-version",
            Self::HeaderLength => "bad-header-length",
            Self::Length => "bad-length",
            Self::AddressFormat => "bad-address-format",
            Self::Type => "bad-type",
            Self::Option => "bad-option",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Malformed {}
