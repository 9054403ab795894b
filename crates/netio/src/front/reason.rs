//! Why the program did what it did with a frame, and what became of it.

/// What the program decided about a frame, and why. All but [`Reason::Taken`] go to the kernel. The last ones are frames that a
/// graph's program redirected and that were lost on the way out (`losses`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// Redirected to user space.
    Taken,
    /// To be taken, but the queue has no socket.
    NoSocket,
    /// To be taken, but there is no room in front of it for what is to go with it.
    NoRoom,
    /// In transit, but the right to forward has run out ([`Lease`](super::Lease)).
    Lease,
    /// In transit, but the port does not take this IP version now.
    NotTaken,
    /// Longer than a frame of the packet pool holds.
    TooLong,
    /// A TCP or UDP checksum that the sender left to hardware which a virtual port does not have.
    PartialChecksum,
    /// On a port with partial checksums: a transport protocol, or a UDP tunnel, whose checksums cannot be judged.
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
    /// In transit, but the kernel would forward it otherwise than a graph's program.
    SelfCheck,
    /// Redirected, and the kernel refused: the device is down, takes no redirected frames, or the frame is too long for it.
    Redirect,
    /// Redirected, and the device did not take it, because its ring was full.
    Transmit,
}

impl Reason {
    /// All reasons, by their place in the counters.
    pub const ALL: [Reason; 22] = [
        Reason::Taken,
        Reason::NoSocket,
        Reason::NoRoom,
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
        Reason::SelfCheck,
        Reason::Redirect,
        Reason::Transmit,
    ];

    /// The counter's name, `xdp_...`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Taken => "xdp_taken",
            Reason::NoSocket => "xdp_pass_no_socket",
            Reason::NoRoom => "xdp_pass_no_room",
            Reason::Lease => "xdp_pass_lease",
            Reason::NotTaken => "xdp_pass_not_taken",
            Reason::TooLong => "xdp_pass_too_long",
            Reason::PartialChecksum => "xdp_pass_partial_checksum",
            Reason::Transport => "xdp_pass_transport",
            Reason::Malformed => "xdp_pass_malformed",
            Reason::EthernetGroup => "xdp_pass_ethernet_group",
            Reason::OtherHost => "xdp_pass_other_host",
            Reason::Vlan => "xdp_pass_vlan",
            Reason::Arp => "xdp_pass_arp",
            Reason::NonIp => "xdp_pass_non_ip",
            Reason::IpOptions => "xdp_pass_ip_options",
            Reason::ExtensionHeader => "xdp_pass_extension_header",
            Reason::Ttl => "xdp_pass_ttl",
            Reason::Local => "xdp_pass_local",
            Reason::SpecialAddress => "xdp_pass_special_address",
            Reason::SelfCheck => "xdp_pass_self_check",
            Reason::Redirect => "xdp_drop_redirect",
            Reason::Transmit => "xdp_drop_transmit",
        }
    }
}
