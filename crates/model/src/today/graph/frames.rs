//! What frames hold: UDP packets from the network behind a port to the one behind the next, and answers to ARP.

use super::super::mix;
use anyhow::{Result, ensure};
use causeway_packet::Packet;
use causeway_packet::wire::arp::{Arp, ArpPacket, REQUEST};
use causeway_packet::wire::ethernet::{self, Ethernet, EthernetHeader, MacAddr, ether_type};
use causeway_packet::wire::ipv4::{self, Ipv4Header};
use causeway_packet::wire::udp::{self, UdpHeader};
use std::net::Ipv4Addr;

/// The checksum of a frame, which cards add and take away, bytes.
pub const CHECKSUM: usize = 4;
/// The shortest frame without it, bytes.
const SHORTEST: usize = 60;
/// The longest, bytes.
const LONGEST: usize = 9_216;
/// What a host answers.
pub type Reply = ArpPacket;

/// Where the headers end, bytes.
const IP: usize = ethernet::HEADER_LEN;
const UDP: usize = IP + ipv4::HEADER_LEN;
const HEADERS: usize = UDP + udp::HEADER_LEN;
/// Prefixes of networks that have room for hosts.
const PREFIXES: std::ops::RangeInclusive<u32> = 1..=28;

/// The Ethernet address of a port.
pub fn port_mac(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8 + 1]
}

/// The Ethernet address of a host.
fn host_mac(address: Ipv4Addr) -> MacAddr {
    let [a, b, c, d] = address.octets();
    MacAddr([2, 1, a, b, c, d])
}

/// The networks behind the ports of a graph.
#[derive(Clone, Debug)]
pub struct Networks(Vec<(u32, u32)>);

impl Networks {
    /// Those that a plan names for its first ports; behind the other ports are 10.0.0.0/24 for port 0, 10.0.1.0/24, and so on.
    ///
    /// # Errors
    ///
    /// A name that is none, or a network with too little room.
    pub fn new(named: &[String], ports: usize) -> Result<Networks> {
        let own = (named.len()..ports).map(|port| Ok((0x0a00_0000 | (port as u32) << 8, 24)));
        named.iter().map(|text| network(text)).chain(own).collect::<Result<_>>().map(Networks)
    }

    /// A host of the network behind a port, by any number.
    fn host(&self, port: usize, number: u64) -> Ipv4Addr {
        let (address, prefix) = self.0[port % self.0.len()];
        // Without the first few and the last ones, where routers and broadcasts are.
        let hosts = (1u64 << (32 - prefix)) - 8;
        Ipv4Addr::from(address + 4 + (number % hosts) as u32)
    }
}

fn network(text: &str) -> Result<(u32, u32)> {
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        Some((u32::from(address.parse::<Ipv4Addr>().ok()?), prefix.parse::<u32>().ok()?))
    });
    let found = parsed.filter(|(_, prefix)| PREFIXES.contains(prefix));
    ensure!(
        found.is_some(),
        "networks: '{text}' is no network such as 10.0.0.0/24, of a prefix of {} to {} bits",
        PREFIXES.start(),
        PREFIXES.end()
    );
    let (address, prefix) = found.unwrap_or_default();
    Ok((address & (u32::MAX << (32 - prefix)), prefix))
}

/// Makes the packets that come in.
pub struct Maker {
    networks: Networks,
    /// Zeros behind the headers.
    bytes: Box<[u8; LONGEST]>,
}

impl Maker {
    /// For ports with these networks behind them.
    pub fn new(networks: Networks) -> Maker {
        Maker { networks, bytes: Box::new([0; LONGEST]) }
    }

    /// An answer as a packet.
    pub fn reply(&self, reply: Reply) -> Option<Packet> {
        let mut bytes = [0; SHORTEST];
        let (link, rest) = bytes.split_first_chunk_mut::<IP>()?;
        EthernetHeader { dst: reply.target_mac, src: reply.sender_mac, ether_type: ether_type::ARP }
            .emit(link);
        reply.emit(rest.first_chunk_mut()?);
        Packet::from_bytes(&bytes)
    }

    /// A packet of a flow that comes in by a port with so many bytes, checksum included. `None`: there is no frame left.
    pub fn packet(&mut self, port: usize, flow: u64, bytes: u32) -> Option<Packet> {
        let length = (bytes as usize).saturating_sub(CHECKSUM).clamp(SHORTEST, LONGEST);
        let random = [0, 1, 2].map(|n| mix(flow, n));
        let headers: &mut [u8; HEADERS] = self.bytes.first_chunk_mut()?;
        let (link, rest) = headers.split_first_chunk_mut::<IP>()?;
        let (ip, udp) = rest.split_first_chunk_mut::<{ ipv4::HEADER_LEN }>()?;
        let (dst, src) = (MacAddr(port_mac(port)), host_mac(self.networks.host(port, random[0])));
        EthernetHeader { dst, src, ether_type: ether_type::IPV4 }.emit(link);
        let header = Ipv4Header {
            tos: 0,
            total_len: (length - IP) as u16,
            identification: 0,
            flags_fragment: 0,
            ttl: 64,
            protocol: 17,
            src: self.networks.host(port, random[0]),
            dst: self.networks.host(port + 1, random[1]),
        };
        header.emit(ip);
        let [src_port, dst_port] = [random[2] as u16 | 1_024, (random[2] >> 16) as u16 | 1_024];
        UdpHeader { src_port, dst_port, length: (length - UDP) as u16 }.emit(udp.first_chunk_mut()?);
        Packet::from_bytes(&self.bytes[..length])
    }
}

/// What a host behind a port answers to a frame, if it is a request for its Ethernet address. All hosts are there.
pub fn answer(frame: &[u8]) -> Option<Reply> {
    let header = Ethernet::new_checked(frame).ok().filter(|f| f.ether_type() == ether_type::ARP)?;
    let request = Arp::new_checked(header.payload()).ok().filter(|arp| arp.operation() == REQUEST)?;
    Some(ArpPacket::reply(&request, host_mac(request.target_ip())))
}
