//! Why the program did what it did with a frame, and what became of it.

use super::Place;

/// What the program decided about a frame, and why. All but [`Reason::Taken`] and [`Reason::HalfDone`] go to the kernel, and at tcx
/// [`Reason::NoRoom`]. The last ones are frames that a graph's program redirected and that were lost on the way out (`losses`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// Led to user space.
    Taken,
    /// To be taken, but the queue has no socket.
    NoSocket,
    /// To be taken, as it came, but there is no room in front of it for what is to go with it. At tcx it is dropped: where packets
    /// are taken there, all are the graph's, which might not have forwarded it.
    NoRoom,
    /// Half done by a graph's program and to be taken, but the queue has no socket any more, or at tcx there is no room. Dropped:
    /// the kernel is to have frames as they came.
    HalfDone,
    /// In transit, but the right to forward has run out ([`Lease`](super::Lease)).
    Lease,
    /// In transit, but the port does not take this IP version now, or at tcx nothing at all.
    NotTaken,
    /// Longer than a frame of the packet pool holds; at tcx, where nothing is taken, than an IP header can say.
    TooLong,
    /// A TCP or UDP checksum that the sender left to hardware which a virtual port does not have.
    PartialChecksum,
    /// On a port with partial checksums: a transport protocol, or a UDP tunnel, whose checksums cannot be judged. At tcx: a
    /// super-packet of another protocol than TCP.
    Transport,
    /// Shorter than its headers, or a length field that does not fit.
    Malformed,
    /// Ethernet group or broadcast destination.
    EthernetGroup,
    /// Ethernet destination is not this interface.
    OtherHost,
    /// A VLAN tag.
    Vlan,
    /// ARP.
    Arp,
    /// Neither IPv4 nor IPv6.
    NonIp,
    /// IPv4 options.
    IpOptions,
    /// IPv6 extension headers.
    ExtensionHeader,
    /// TTL or hop limit 0 or 1.
    Ttl,
    /// Destination is one of this machine's addresses.
    Local,
    /// Destination or source is multicast, loopback, unspecified or link-local (RFC 6890).
    SpecialAddress,
    /// At tcx: in transit, but not what a graph's program forwards.
    GivenUp,
    /// In transit, but the kernel would forward it otherwise than a graph's program.
    SelfCheck,
    /// Redirected, and the kernel refused: the device is down, takes no redirected frames, or the frame is too long for it.
    Redirect,
    /// Redirected, and the device did not take it, because its ring was full. Counted at the way out if the program at the way in
    /// runs in the stack.
    Transmit,
}

impl Reason {
    /// All reasons, by their place in the counters.
    pub const ALL: [Reason; 24] = [
        Reason::Taken,
        Reason::NoSocket,
        Reason::NoRoom,
        Reason::HalfDone,
        Reason::Lease,
        Reason::NotTaken,
        Reason::TooLong,
        Reason::PartialChecksum,
        Reason::Transport,
        Reason::Malformed,
        Reason::EthernetGroup,
        Reason::OtherHost,
        Reason::Vlan,
        Reason::Arp,
        Reason::NonIp,
        Reason::IpOptions,
        Reason::ExtensionHeader,
        Reason::Ttl,
        Reason::Local,
        Reason::SpecialAddress,
        Reason::GivenUp,
        Reason::SelfCheck,
        Reason::Redirect,
        Reason::Transmit,
    ];

    /// The counter's name at a place, `xdp_...` or `tcx_...`.
    pub fn name(self, place: Place) -> &'static str {
        macro_rules! of_place {
            ($name:literal) => {
                match place {
                    Place::Xdp => concat!("xdp_", $name),
                    Place::Tcx => concat!("tcx_", $name),
                }
            };
        }
        match self {
            Reason::Taken => of_place!("taken"),
            Reason::NoSocket => of_place!("pass_no_socket"),
            Reason::NoRoom => match place {
                Place::Xdp => "xdp_pass_no_room",
                Place::Tcx => "tcx_drop_no_room",
            },
            Reason::HalfDone => of_place!("drop_half_done"),
            Reason::Lease => of_place!("pass_lease"),
            Reason::NotTaken => of_place!("pass_not_taken"),
            Reason::TooLong => of_place!("pass_too_long"),
            Reason::PartialChecksum => of_place!("pass_partial_checksum"),
            Reason::Transport => of_place!("pass_transport"),
            Reason::Malformed => of_place!("pass_malformed"),
            Reason::EthernetGroup => of_place!("pass_ethernet_group"),
            Reason::OtherHost => of_place!("pass_other_host"),
            Reason::Vlan => of_place!("pass_vlan"),
            Reason::Arp => of_place!("pass_arp"),
            Reason::NonIp => of_place!("pass_non_ip"),
            Reason::IpOptions => of_place!("pass_ip_options"),
            Reason::ExtensionHeader => of_place!("pass_extension_header"),
            Reason::Ttl => of_place!("pass_ttl"),
            Reason::Local => of_place!("pass_local"),
            Reason::SpecialAddress => of_place!("pass_special_address"),
            Reason::GivenUp => of_place!("pass_given_up"),
            Reason::SelfCheck => of_place!("pass_self_check"),
            Reason::Redirect => of_place!("drop_redirect"),
            Reason::Transmit => of_place!("drop_transmit"),
        }
    }

    /// Whether the counter is one of ports at this place.
    pub fn is_of(self, place: Place) -> bool {
        match self {
            Reason::NoSocket | Reason::PartialChecksum | Reason::Redirect | Reason::Transmit => {
                place == Place::Xdp
            }
            Reason::GivenUp => place == Place::Tcx,
            _ => true,
        }
    }
}
