//! IPv6 extension headers (RFC 8200 §4) and where the upper layer starts behind them.

use super::{Ipv6, Malformed, ipv6::HEADER_LEN, protocol};

/// The most extension headers the walk goes through; a longer chain is [`UpperLayer::Unsure`].
///
/// Real packets have one or two; the limit bounds the work that a hostile one can ask for.
pub const MAX_EXTENSIONS: usize = 8;

/// Mobility header (RFC 6275), host identity (RFC 7401), shim6 (RFC 5533), and the two for experiments: they
/// are extension headers by registration, but a router cannot be sure of what lies behind them.
const UNSURE: [u8; 5] = [135, 139, 140, 253, 254];

/// An extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Type of this header: one of [`protocol`]'s hop-by-hop, routing, fragment, destination options and AH.
    pub kind: u8,
    /// Type of the next header.
    pub next_header: u8,
    /// Offset of this header from the start of the IPv6 header.
    pub offset: usize,
    /// The whole header.
    pub bytes: &'a [u8],
}

/// The values of a fragment header (RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where the fragment lies in the fragmentable part, in bytes.
    pub offset: usize,
    /// Whether fragments with higher offsets follow.
    pub more: bool,
    /// Identification, equal in all fragments of a packet.
    pub identification: u32,
}

impl Fragment {
    /// Whether this is the whole packet after all (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
}

impl<'a> Extension<'a> {
    /// The values, if this is a fragment header.
    pub fn fragment(&self) -> Option<Fragment> {
        let &[_, _, hi, lo, a, b, c, d] = self.bytes.first_chunk()?;
        (self.kind == protocol::FRAGMENT).then(|| {
            let word = u16::from_be_bytes([hi, lo]);
            Fragment {
                offset: usize::from(word & 0xfff8),
                more: word & 1 != 0,
                identification: u32::from_be_bytes([a, b, c, d]),
            }
        })
    }

    /// Routing type and segments left, if this is a routing header (RFC 8200 §4.4).
    pub fn routing(&self) -> Option<(u8, u8)> {
        match *self.bytes {
            [_, _, routing_type, segments_left, ..] if self.kind == protocol::ROUTING => {
                Some((routing_type, segments_left))
            }
            _ => None,
        }
    }

    /// The options of a hop-by-hop or destination options header; none of any other.
    pub fn options(&self) -> Options<'a> {
        let has_options = matches!(self.kind, protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS);
        let rest = if has_options { self.bytes.get(2..).unwrap_or_default() } else { &[] };
        Options { rest, offset: self.offset + 2 }
    }
}

/// An option of a hop-by-hop or destination options header (RFC 8200 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Option<'a> {
    /// Offset of the type byte from the start of the IPv6 header: the pointer of an ICMPv6 parameter problem.
    pub offset: usize,
    /// Option type. The two highest bits say what to do if it is not known: 0 skip, 1 discard, 2 discard and
    /// report, 3 discard and report unless sent to a group. 5 is router alert (RFC 2711).
    pub kind: u8,
    /// The option's data.
    pub data: &'a [u8],
}

/// Iterator over options; padding is skipped, and a malformed option ends it with an error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ipv6Option<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (kind, length) = match *self.rest {
                [] => return None,
                [0, ref rest @ ..] => {
                    (self.rest, self.offset) = (rest, self.offset + 1);
                    continue;
                }
                [kind, length, ..] => (kind, 2 + usize::from(length)),
                _ => (1, usize::MAX),
            };
            let Some((option, rest)) = self.rest.split_at_checked(length) else {
                self.rest = &[];
                return Some(Err(Malformed::Option));
            };
            let offset = self.offset;
            (self.rest, self.offset) = (rest, offset + length);
            if kind != 1 {
                return Some(Ok(Ipv6Option { offset, kind, data: option.get(2..).unwrap_or_default() }));
            }
        }
    }
}

/// What lies behind the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpperLayer {
    /// The upper-layer header, or the ESP header behind which all is encrypted.
    At {
        /// Its [`protocol`].
        protocol: u8,
        /// Its offset from the start of the IPv6 header.
        offset: usize,
        /// Whether this is a first fragment, so that the header or its payload may be cut short.
        first_fragment: bool,
    },
    /// A later fragment: the upper-layer header is in another packet.
    LaterFragment {
        /// What the fragment header names as next: the upper layer or a further extension header.
        next_header: u8,
    },
    /// There is no telling: an unknown kind of extension header, one out of place, or too many.
    Unsure {
        /// The type of the header the walk stopped at.
        next_header: u8,
        /// Its offset from the start of the IPv6 header.
        offset: usize,
    },
}

/// Iterator over the extension headers. It ends at the upper layer, at anything it is not sure of, behind the
/// header of a later fragment, and with an error where the packet ends inside a header.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    packet: &'a [u8],
    next_header: u8,
    offset: usize,
    seen: usize,
    fragment: Option<Fragment>,
}

impl<'a> Extensions<'a> {
    /// Whether the next header is one the walk can step over.
    #[inline]
    fn is_extension(&self) -> bool {
        match self.next_header {
            // It must come first (RFC 8200 §4.1).
            protocol::HOP_BY_HOP => self.seen == 0,
            protocol::ROUTING | protocol::DESTINATION_OPTIONS | protocol::AH => true,
            protocol::FRAGMENT => self.fragment.is_none(),
            _ => false,
        }
    }

    /// Whether the header the pointer is at belongs to another packet.
    #[inline]
    fn in_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }

    /// The bytes of the next header.
    fn header(&self) -> Option<&'a [u8]> {
        let rest = self.packet.get(self.offset..)?;
        let &[_, length, ..] = rest else { return None };
        let length = match self.next_header {
            protocol::FRAGMENT => 8,
            // Below 12 bytes there would be no room for its sequence number (RFC 4302 §2).
            protocol::AH if length == 0 => return None,
            protocol::AH => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        rest.get(..length)
    }

    /// What the walk stopped at, once it is over.
    fn upper_layer(&self) -> UpperLayer {
        let Self { next_header, offset, fragment, .. } = *self;
        if self.in_later_fragment() {
            return UpperLayer::LaterFragment { next_header };
        }
        let extension = matches!(
            next_header,
            protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::DESTINATION_OPTIONS
                | protocol::AH
                | protocol::FRAGMENT
        );
        if extension || UNSURE.contains(&next_header) {
            return UpperLayer::Unsure { next_header, offset };
        }
        let first_fragment = fragment.is_some_and(|fragment| !fragment.is_atomic());
        UpperLayer::At { protocol: next_header, offset, first_fragment }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_extension() || self.seen == MAX_EXTENSIONS || self.in_later_fragment() {
            return None;
        }
        let (Some(bytes), (kind, offset)) = (self.header(), (self.next_header, self.offset)) else {
            self.seen = MAX_EXTENSIONS;
            return Some(Err(Malformed::HeaderLength));
        };
        let next_header = *bytes.first()?;
        let extension = Extension { kind, next_header, offset, bytes };
        self.next_header = next_header;
        self.offset += bytes.len();
        self.seen += 1;
        self.fragment = extension.fragment().or(self.fragment);
        Some(Ok(extension))
    }
}

impl<T: AsRef<[u8]>> Ipv6<T> {
    /// The extension headers, one by one.
    #[inline]
    pub fn extensions(&self) -> Extensions<'_> {
        let packet = self.as_bytes();
        let packet = packet.get(..HEADER_LEN + self.payload().len()).unwrap_or_default();
        Extensions { packet, next_header: self.next_header(), offset: HEADER_LEN, seen: 0, fragment: None }
    }

    /// The upper layer's protocol and offset, as far as that is sure.
    ///
    /// # Errors
    /// [`Malformed::HeaderLength`] if the packet ends inside an extension header, or an AH is below 12 bytes.
    #[inline]
    pub fn upper_layer(&self) -> Result<UpperLayer, Malformed> {
        let mut walk = self.extensions();
        for extension in walk.by_ref() {
            extension?;
        }
        Ok(walk.upper_layer())
    }
}
