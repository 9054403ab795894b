//! The metadata of a packet: data window, header offsets, hot fields and Click's annotation area.

/// Bytes of Click's annotation area.
pub const ANNO_BYTES: usize = 48;
/// Of those, bytes that are as near as the data window.
pub(crate) const NEAR_ANNO_BYTES: usize = 32;

/// An offset that says "no such header is known".
pub const NO_HEADER: u16 = u16::MAX;

/// How a packet was addressed at the link layer, as the receiving port saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host's own link-layer address.
    #[default]
    Host = 0,
    /// To the broadcast address.
    Broadcast = 1,
    /// To a group address.
    Multicast = 2,
    /// To somebody else; seen because the port is promiscuous.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
    /// Looped back.
    Loopback = 5,
    /// Taken by the kernel's fast route.
    FastRoute = 6,
}

/// Metadata of one frame, two cache lines, of which most packets never touch the second.
#[repr(C)]
pub struct Meta {
    pub(crate) near: Near,
    pub(crate) far: Far,
}

/// What every packet needs.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Near {
    /// First byte of the frame.
    pub frame: *mut u8,
    /// Offset of the first data byte in the frame.
    pub data: u16,
    /// Bytes of data.
    pub len: u16,
    /// Offset of the link-layer header in the frame, or [`NO_HEADER`].
    pub mac: u16,
    /// Offset of the network header in the frame, or [`NO_HEADER`].
    pub network: u16,
    /// Offset of the transport header in the frame, or [`NO_HEADER`].
    pub transport: u16,
    pub packet_type: PacketType,
    /// Whether [`Far`] is this packet's; else it is what another packet left, and this one has all zeros there.
    pub has_far: bool,
    /// Adjacency index found by a lookup; 0 = none.
    pub adjacency: u32,
    /// Hash of the flow, when a device or an element computed one; 0 = none.
    pub flow_hash: u32,
    /// Number of the port that received the packet.
    pub rx_port: u16,
    /// Number that a trace gave the packet; 0 = nobody follows it.
    pub trace: u16,
    /// The first bytes of Click's annotation area.
    pub anno: [u8; NEAR_ANNO_BYTES],
}

/// What few packets need.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Far {
    /// Time of reception in nanoseconds since the epoch; 0 = not set.
    pub timestamp_ns: u64,
    /// Number under which whoever transmits the packet tells of it, if `tagged`.
    pub transmit_tag: u64,
    /// Bytes of the packet on the wire, when a capture cut it short; 0 = the same as `len`.
    pub wire_len: u32,
    pub tagged: bool,
    /// The other bytes of the annotation area.
    pub anno: [u8; ANNO_BYTES - NEAR_ANNO_BYTES],
}

impl Far {
    /// That of a packet of which nothing of it was set.
    pub const EMPTY: Far = Far {
        timestamp_ns: 0,
        transmit_tag: 0,
        wire_len: 0,
        tagged: false,
        anno: [0; ANNO_BYTES - NEAR_ANNO_BYTES],
    };
}

impl Near {
    /// That of a packet without history in `frame`: `len` bytes, `data` bytes into it.
    #[inline]
    pub fn fresh(frame: *mut u8, data: u16, len: u16) -> Self {
        Near {
            frame,
            data,
            len,
            mac: NO_HEADER,
            network: NO_HEADER,
            transport: NO_HEADER,
            packet_type: PacketType::Host,
            has_far: false,
            adjacency: 0,
            flow_hash: 0,
            rx_port: 0,
            trace: 0,
            anno: [0; NEAR_ANNO_BYTES],
        }
    }
}

/// Names of the places in the annotation area, with Click's offsets and widths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anno {
    /// Offset in the annotation area.
    pub offset: u8,
    /// Width in bytes; 0 where the name stands for an offset alone.
    pub width: u8,
}

/// `(name, place)` of every named annotation.
pub const ANNO_NAMES: &[(&str, Anno)] = &[
    ("DST_IP", Anno::DST_IP),
    ("DST_IP6", Anno::DST_IP6),
    ("PAINT", Anno::PAINT),
    ("ICMP_PARAMPROB", Anno::ICMP_PARAMPROB),
    ("FIX_IP_SRC", Anno::FIX_IP_SRC),
    ("VLAN_TCI", Anno::VLAN_TCI),
    ("VLAN", Anno::VLAN_TCI),
    ("AGGREGATE", Anno::AGGREGATE),
    ("FWD_RATE", Anno::AGGREGATE),
    ("MISC_IP", Anno::AGGREGATE),
    ("EXTRA_PACKETS", Anno::EXTRA_PACKETS),
    ("REV_RATE", Anno::EXTRA_PACKETS),
    ("SEND_ERR", Anno { offset: 26, width: 1 }),
    ("EXTRA_LENGTH", Anno::EXTRA_LENGTH),
    ("IPREASSEMBLER", Anno::EXTRA_LENGTH),
    ("PACKET_NUMBER", Anno { offset: 32, width: 4 }),
    ("IPSEC_SPI", Anno { offset: 32, width: 4 }),
    ("SEQUENCE_NUMBER", Anno { offset: 36, width: 4 }),
    ("FIRST_TIMESTAMP", Anno { offset: 32, width: 8 }),
    ("PERFCTR", Anno { offset: 40, width: 8 }),
];

impl Anno {
    /// Destination address of the next lookup, network order; 0.0.0.0 = unset.
    pub const DST_IP: Anno = Anno { offset: 0, width: 4 };
    /// IPv6 destination address of the next lookup.
    pub const DST_IP6: Anno = Anno { offset: 0, width: 16 };
    /// Paint, one byte.
    pub const PAINT: Anno = Anno { offset: 16, width: 1 };
    /// Offset of the bad parameter, for an ICMP parameter problem.
    pub const ICMP_PARAMPROB: Anno = Anno { offset: 17, width: 1 };
    /// Non-zero when FixIPSrc is to put in the outgoing interface's address.
    pub const FIX_IP_SRC: Anno = Anno { offset: 19, width: 1 };
    /// 802.1Q tag control information, network order.
    pub const VLAN_TCI: Anno = Anno { offset: 20, width: 2 };
    /// Aggregate number; overlaps VLAN_TCI.
    pub const AGGREGATE: Anno = Anno { offset: 20, width: 4 };
    /// Packets that this one stands for, besides itself.
    pub const EXTRA_PACKETS: Anno = Anno { offset: 24, width: 4 };
    /// Bytes that this packet stands for, besides its own.
    pub const EXTRA_LENGTH: Anno = Anno { offset: 28, width: 4 };

    /// The annotation called `name`, as AnnotationInfo and element arguments spell it.
    pub fn by_name(name: &str) -> Option<Anno> {
        ANNO_NAMES.iter().find(|(n, _)| *n == name).map(|&(_, a)| a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_packet_needs_is_one_cache_line() {
        assert_eq!((size_of::<Near>(), size_of::<Far>(), size_of::<Meta>()), (64, 64, 128));
        let named = [Anno::DST_IP6, Anno::PAINT, Anno::VLAN_TCI, Anno::EXTRA_PACKETS, Anno::EXTRA_LENGTH];
        assert!(named.iter().all(|a| usize::from(a.offset + a.width) <= NEAR_ANNO_BYTES));
    }

    #[test]
    fn named_annotations_fit_the_area() {
        for (name, anno) in ANNO_NAMES {
            assert!(anno.offset as usize + anno.width as usize <= ANNO_BYTES, "{name}");
        }
    }
}
