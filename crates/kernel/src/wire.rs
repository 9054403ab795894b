//! Netlink framing: messages, attributes and requests, to and from bytes.
//!
//! The layout is that of RFC 3549 section 2.2: a header of 16 octets in the machine's own byte order, then attributes of
//! (length, type, value), all aligned to four octets. Reading never panics and never reads past what it was given: a length
//! that does not fit ends the iteration with [`Malformed`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of a message header.
const HEADER_LEN: usize = 16;
/// Octets of an attribute header.
const ATTRIBUTE_HEADER_LEN: usize = 4;
/// The two high bits of an attribute's type are flags (nested, network byte order).
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

/// Bytes from the kernel that do not have the layout they should; says which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed netlink {}", self.0)
    }
}

impl std::error::Error for Malformed {}

fn align(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// Reads a `u16` in the machine's order.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(offset..offset.checked_add(2)?)?.try_into().ok()?))
}

/// Reads a `u32` in the machine's order.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?))
}

/// Reads an address of four or sixteen octets.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

/// Reads text that may end in a zero octet.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// One netlink message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

/// The messages of one datagram, or of several laid end to end.
pub(crate) struct Frames<'a>(pub &'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let frame = parse_frame(self.0);
        match frame {
            Some((frame, used)) => {
                self.0 = self.0.get(used..).unwrap_or_default();
                Some(Ok(frame))
            }
            None => {
                self.0 = &[];
                Some(Err(Malformed("message header")))
            }
        }
    }
}

fn parse_frame(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let len = u32_at(bytes, 0)? as usize;
    let payload = bytes.get(HEADER_LEN..len)?;
    let frame =
        Frame { kind: u16_at(bytes, 4)?, flags: u16_at(bytes, 6)?, sequence: u32_at(bytes, 8)?, payload };
    Some((frame, align(len)))
}

/// The attributes in a stretch of bytes.
pub(crate) struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes that follow a fixed header of `header_len` octets.
    pub fn after(payload: &'a [u8], header_len: usize) -> Self {
        Attributes(payload.get(align(header_len)..).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let parsed = u16_at(self.0, 0).zip(u16_at(self.0, 2)).and_then(|(len, kind)| {
            let value = self.0.get(ATTRIBUTE_HEADER_LEN..len as usize)?;
            Some((kind & ATTRIBUTE_TYPE_MASK, value, align(len as usize)))
        });
        match parsed {
            Some((kind, value, used)) => {
                self.0 = self.0.get(used..).unwrap_or_default();
                Some(Ok((kind, value)))
            }
            None => {
                self.0 = &[];
                Some(Err(Malformed("attribute")))
            }
        }
    }
}

/// A request being written.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of the given type; `header` is the fixed header of that type.
    pub fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(header);
        bytes.resize(align(bytes.len()), 0);
        Request { bytes }
    }

    /// Appends an attribute. A value too long for the length field (which no caller has) is cut.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let value = &value[..value.len().min(usize::from(u16::MAX) - ATTRIBUTE_HEADER_LEN)];
        let len = (ATTRIBUTE_HEADER_LEN + value.len()) as u16;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(align(self.bytes.len()), 0);
        self
    }

    /// Appends an attribute that holds an address.
    pub fn address(self, kind: u16, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => self.attribute(kind, &v4.octets()),
            IpAddr::V6(v6) => self.attribute(kind, &v6.octets()),
        }
    }

    /// Appends an attribute whose value is the attributes of `inner`.
    #[cfg(test)]
    pub fn nested(self, kind: u16, inner: Attribute) -> Self {
        self.attribute(kind, &inner.0)
    }

    /// The bytes to send, numbered `sequence`.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// The attributes inside a nested one, being written.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Attribute(Vec<u8>);

#[cfg(test)]
impl Attribute {
    /// Appends an attribute.
    pub fn with(self, kind: u16, value: &[u8]) -> Self {
        let bytes = Request { bytes: self.0 }.attribute(kind, value).bytes;
        Attribute(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_back() {
        let inner = Attribute::default().with(7, b"inner\0").with(8, &1u32.to_ne_bytes());
        let bytes =
            Request::new(24, 0x301, &[2, 0, 0]).attribute(1, &[10, 0, 0, 1]).nested(2, inner).finish(77);
        let frames: Vec<_> = Frames(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].kind, frames[0].flags, frames[0].sequence), (24, 0x301, 77));
        let attributes: Vec<_> = Attributes::after(frames[0].payload, 3).collect::<Result<_, _>>().unwrap();
        assert_eq!(attributes[0], (1, &[10, 0, 0, 1][..]));
        let nested: Vec<_> = Attributes(attributes[1].1).collect::<Result<_, _>>().unwrap();
        assert_eq!(text(nested[0].1), "inner");
        assert_eq!(u32_at(nested[1].1, 0), Some(1));
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        for len in [0u32, 15, 17, 400, u32::MAX] {
            let mut bytes = Request::new(16, 0, &[]).finish(1);
            bytes[0..4].copy_from_slice(&len.to_ne_bytes());
            assert!(Frames(&bytes).next().unwrap().is_err(), "length {len}");
        }
        assert!(Attributes(&[3, 0, 1, 0]).next().unwrap().is_err());
        assert!(Attributes(&[9, 0, 1, 0, 1, 2, 3, 4]).next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for frame in Frames(&bytes).flatten() {
                prop_assert!(frame.payload.len() <= bytes.len());
            }
            prop_assert!(Attributes(&bytes).count() <= bytes.len() / 4 + 1);
        }
    }
}
