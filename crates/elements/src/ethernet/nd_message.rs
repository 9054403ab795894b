//! Neighbour solicitations and advertisements as frames (RFC 4861).

use causeway_packet::Packet;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::ndisc::{NEIGHBOR_LEN, NeighborMessage};
use causeway_packet::wire::{EthernetHeader, Icmpv6, Ipv6, Ipv6Header, MacAddr, ipv6, protocol};
use std::net::Ipv6Addr;

/// Hop limit of all messages: they came over no router (§3.1).
const HOP_LIMIT: u8 = 255;
/// Length of a frame with such a message.
const FRAME_LEN: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + NEIGHBOR_LEN;

/// A frame with `message` from one address to another; `None` if there is none free.
pub(super) fn frame(
    (src_mac, src): (MacAddr, Ipv6Addr),
    (dst_mac, dst): (MacAddr, Ipv6Addr),
    message: &NeighborMessage,
) -> Option<Packet> {
    let mut bytes = [0; FRAME_LEN];
    let (header, rest) = bytes.split_first_chunk_mut()?;
    EthernetHeader { dst: dst_mac, src: src_mac, ether_type: ether_type::IPV6 }.emit(header);
    let (header, body) = rest.split_first_chunk_mut()?;
    Ipv6Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: NEIGHBOR_LEN as u16,
        next_header: protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        src,
        dst,
    }
    .emit(header);
    message.emit(src, dst, body.first_chunk_mut()?);
    let mut packet = Packet::from_bytes(&bytes)?;
    packet.set_mac_header(0);
    packet.set_network_headers(ethernet::HEADER_LEN, ipv6::HEADER_LEN);
    Some(packet)
}

/// The source, destination and ICMPv6 message of a frame, if it came over no router and its checksum is right (§7.1).
pub(super) fn message(frame: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, &[u8])> {
    let (header, body) = frame.split_first_chunk::<{ ethernet::HEADER_LEN }>()?;
    let ip = Ipv6::new_checked(body).ok()?;
    let is_ipv6 = header[ethernet::field::ETHER_TYPE] == ether_type::IPV6.to_be_bytes();
    if !is_ipv6 || ip.next_header() != protocol::ICMPV6 || ip.hop_limit() != HOP_LIMIT {
        return None;
    }
    let message = body.get(ipv6::HEADER_LEN..ipv6::HEADER_LEN + usize::from(ip.payload_len()))?;
    let sum = ip.pseudo_header(protocol::ICMPV6, message.len() as u32);
    Icmpv6::new_checked(message).ok()?.checksum_ok(sum).then(|| (ip.src(), ip.dst(), message))
}

/// The Ethernet address of a multicast group (RFC 2464 §7).
pub(super) fn group_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// The group that all nodes with addresses like `target` listen to (RFC 4291 §2.7.1).
pub(super) fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = target.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}
