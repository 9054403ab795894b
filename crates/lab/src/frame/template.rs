//! Frames of one flow, made without allocation.

use super::{FCS, TAG, Tag};
use crate::network::Network;
use anyhow::{Context, Result, anyhow};
use causeway_packet::checksum;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::{
    EthernetHeader, Ipv4Header, Ipv6Header, MacAddr, UdpHeader, ipv4, ipv6, protocol, udp,
};
use causeway_results::traffic::{Family, Flow, Stream, Values};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Hops that a packet may take: as many as hosts commonly allow.
const HOPS: u8 = 64;
/// Bytes that the tester writes of a datagram: header and payload; what follows is zero.
const HEAD: usize = udp::HEADER_LEN + TAG;

/// Where the frames of a flow go from and to.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Ethernet address of the port that sends.
    pub source_mac: MacAddr,
    /// Ethernet address of the device's port that receives.
    pub gateway_mac: MacAddr,
    /// Hosts behind the port that sends.
    pub source: Network,
    /// Hosts behind the port that the device is to send to.
    pub destination: Network,
}

/// Makes the frames of one flow.
#[derive(Clone, Debug)]
pub struct Template {
    ethernet: [u8; ethernet::HEADER_LEN],
    addresses: Addresses,
    sizes: Vec<u32>,
    source_host: Values,
    destination_host: Values,
    source_port: Values,
    destination_port: Values,
    seed: u64,
}

/// Addresses of host 0 on both sides.
#[derive(Clone, Copy, Debug)]
enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl Template {
    /// Makes frames of `stream` for `flow` between `ends`.
    ///
    /// # Errors
    /// If the stream is not possible, or the networks are too small for its hosts or of another family.
    pub fn new(stream: &Stream, flow: &Flow, ends: &Ends) -> Result<Template> {
        let (kind, addresses) = match stream.family {
            Family::Ipv4 => (
                ether_type::IPV4,
                ends.source.ipv4(0).zip(ends.destination.ipv4(0)).map(|(from, to)| Addresses::V4(from, to)),
            ),
            Family::Ipv6 => (
                ether_type::IPV6,
                ends.source.ipv6(0).zip(ends.destination.ipv6(0)).map(|(from, to)| Addresses::V6(from, to)),
            ),
        };
        let Ends { source, destination, .. } = ends;
        let addresses = addresses.with_context(|| {
            format!("stream '{}' is not of the family of {source} and {destination}", stream.name)
        })?;
        source.check_host(stream.source_host.range().1)?;
        destination.check_host(stream.destination_host.range().1)?;
        let mut header = [0; ethernet::HEADER_LEN];
        EthernetHeader { dst: ends.gateway_mac, src: ends.source_mac, ether_type: kind }.emit(&mut header);
        Ok(Template {
            ethernet: header,
            addresses,
            sizes: stream.size.sequence().map_err(|what| anyhow!("stream '{}': {what}", stream.name))?,
            source_host: stream.source_host,
            destination_host: stream.destination_host,
            source_port: stream.source_port,
            destination_port: stream.destination_port,
            seed: flow.seed,
        })
    }

    /// Bytes of the `n`-th frame in memory: without the check sequence.
    #[inline]
    pub fn length(&self, n: u32) -> usize {
        (self.sizes[n as usize % self.sizes.len()] as usize).saturating_sub(FCS)
    }

    /// Bytes of the longest frame in memory.
    pub fn longest(&self) -> usize {
        (self.sizes.iter().copied().max().unwrap_or(0) as usize).saturating_sub(FCS)
    }

    /// Writes the frame with this tag into `frame`, which has [`Template::length`] bytes of the tag's sequence number. What is
    /// too short for a frame is left as it is.
    #[inline]
    pub fn write(&self, tag: Tag, frame: &mut [u8]) {
        let n = u64::from(tag.sequence);
        let field = |values: Values, part: u64| values.nth(self.seed.wrapping_add(part), n);
        let (from, to) = (field(self.source_host, 0), field(self.destination_host, 1));
        let Some((header, packet)) = frame.split_first_chunk_mut() else { return };
        *header = self.ethernet;
        let length = packet.len() as u16;
        let (datagram, sum) = match self.addresses {
            Addresses::V4(source, destination) => {
                let Some((header, datagram)) = packet.split_first_chunk_mut() else { return };
                let ip = Ipv4Header {
                    tos: 0,
                    total_len: length,
                    identification: tag.sequence as u16,
                    flags_fragment: 0,
                    ttl: HOPS,
                    protocol: protocol::UDP,
                    src: Ipv4Addr::from_bits(source.to_bits() | from),
                    dst: Ipv4Addr::from_bits(destination.to_bits() | to),
                };
                ip.emit(header);
                let length = length.saturating_sub(ipv4::HEADER_LEN as u16);
                (datagram, checksum::pseudo_header_v4(ip.src, ip.dst, protocol::UDP, length))
            }
            Addresses::V6(source, destination) => {
                let Some((header, datagram)) = packet.split_first_chunk_mut() else { return };
                let length = length.saturating_sub(ipv6::HEADER_LEN as u16);
                let ip = Ipv6Header {
                    traffic_class: 0,
                    flow_label: 0,
                    payload_len: length,
                    next_header: protocol::UDP,
                    hop_limit: HOPS,
                    src: Ipv6Addr::from_bits(source.to_bits() | u128::from(from)),
                    dst: Ipv6Addr::from_bits(destination.to_bits() | u128::from(to)),
                };
                ip.emit(header);
                (datagram, checksum::pseudo_header_v6(ip.src, ip.dst, protocol::UDP, u32::from(length)))
            }
        };
        let length = datagram.len() as u16;
        let Some((head, rest)) = datagram.split_first_chunk_mut::<HEAD>() else { return };
        let Some((udp_header, payload)) = head.split_first_chunk_mut() else { return };
        let (src_port, dst_port) =
            (field(self.source_port, 2) as u16, field(self.destination_port, 3) as u16);
        UdpHeader { src_port, dst_port, length }.emit(udp_header);
        payload.copy_from_slice(&tag.to_bytes());
        rest.fill(0);
        // Zeros add nothing to the sum.
        let sum = match sum.array(head).finish() {
            0 => 0xffff,
            sum => sum,
        };
        head[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}
