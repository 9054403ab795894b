//! ARP for IPv4 over Ethernet (RFC 826).

use super::{MacAddr, Malformed, ethernet::ether_type};
use core::net::Ipv4Addr;

/// Length of an ARP packet for IPv4 over Ethernet.
pub const PACKET_LEN: usize = 28;
/// Hardware type of Ethernet.
pub const HARDWARE_ETHERNET: u16 = 1;
/// Operation: who has the target protocol address?
pub const REQUEST: u16 = 1;
/// Operation: the sender's addresses belong together.
pub const REPLY: u16 = 2;

header! {
    /// A view of an ARP packet for IPv4 over Ethernet.
    pub struct Arp, fields in field, PACKET_LEN;
    /// Hardware type, 1 for Ethernet.
    HARDWARE_TYPE @ 0: u16 => hardware_type, set_hardware_type;
    /// Protocol type, an EtherType, 0x0800 for IPv4.
    PROTOCOL_TYPE @ 2: u16 => protocol_type, set_protocol_type;
    /// Hardware address length, 6.
    HARDWARE_LEN @ 4: u8 => hardware_len, set_hardware_len;
    /// Protocol address length, 4.
    PROTOCOL_LEN @ 5: u8 => protocol_len, set_protocol_len;
    /// Operation, [`REQUEST`] or [`REPLY`].
    OPERATION @ 6: u16 => operation, set_operation;
    /// Sender's Ethernet address.
    SENDER_MAC @ 8: MacAddr => sender_mac, set_sender_mac;
    /// Sender's IPv4 address.
    SENDER_IP @ 14: Ipv4Addr => sender_ip, set_sender_ip;
    /// Target's Ethernet address; ignored in a request.
    TARGET_MAC @ 18: MacAddr => target_mac, set_target_mac;
    /// Target's IPv4 address.
    TARGET_IP @ 24: Ipv4Addr => target_ip, set_target_ip;
}

impl<T: AsRef<[u8]>> Arp<T> {
    /// A view of `buf`, which may be longer than the packet: Ethernet pads it.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 28 bytes, [`Malformed::AddressFormat`] unless it maps IPv4 to Ethernet.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        let arp = Self { buf };
        let ethernet = arp.hardware_type() == HARDWARE_ETHERNET && arp.hardware_len() == 6;
        let ipv4 = arp.protocol_type() == ether_type::IPV4 && arp.protocol_len() == 4;
        if ethernet && ipv4 { Ok(arp) } else { Err(Malformed::AddressFormat) }
    }
}

/// The values of an ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// Operation, [`REQUEST`] or [`REPLY`].
    pub operation: u16,
    /// Sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// Sender's IPv4 address.
    pub sender_ip: Ipv4Addr,
    /// Target's Ethernet address.
    pub target_mac: MacAddr,
    /// Target's IPv4 address.
    pub target_ip: Ipv4Addr,
}

impl ArpPacket {
    /// A request for the Ethernet address of `target_ip`.
    pub const fn request(sender_mac: MacAddr, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        Self { operation: REQUEST, sender_mac, sender_ip, target_mac: MacAddr::ZERO, target_ip }
    }

    /// The answer to `request`: its target address is at `mac`.
    pub fn reply<T: AsRef<[u8]>>(request: &Arp<T>, mac: MacAddr) -> Self {
        Self {
            operation: REPLY,
            sender_mac: mac,
            sender_ip: request.target_ip(),
            target_mac: request.sender_mac(),
            target_ip: request.sender_ip(),
        }
    }

    /// Writes the packet.
    pub fn emit(&self, out: &mut [u8; PACKET_LEN]) {
        let mut view = Arp { buf: &mut out[..] };
        view.set_hardware_type(HARDWARE_ETHERNET);
        view.set_protocol_type(ether_type::IPV4);
        view.set_hardware_len(6);
        view.set_protocol_len(4);
        view.set_operation(self.operation);
        view.set_sender_mac(self.sender_mac);
        view.set_sender_ip(self.sender_ip);
        view.set_target_mac(self.target_mac);
        view.set_target_ip(self.target_ip);
    }
}
