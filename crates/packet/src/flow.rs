//! Which flow a packet belongs to, as a number: packets of one flow have the same, so that they can be kept in order.

use crate::Packet;
use crate::wire::ethernet::{Ethernet, HEADER_LEN, ether_type};
use crate::wire::protocol;

/// The number of the packet's flow: what a device or an element computed, else one of addresses, protocol and ports. The
/// pieces of a fragmented packet have none of the ports, so that they stay together; what is no IP has the number of its
/// Ethernet addresses. Spread evenly over all 32 bits; not secret.
#[inline]
pub fn number(packet: &Packet) -> u32 {
    match packet.flow_hash() {
        0 => of(packet.data(), packet.network_offset()),
        known => known,
    }
}

/// The same of bytes whose network header is at `network`. If nobody says where, they are taken for an Ethernet frame of IP,
/// else for a bare IP packet.
fn of(data: &[u8], network: Option<usize>) -> u32 {
    let framed = || {
        let (kind, at) = Ethernet::new_checked(data).ok()?.network_layer();
        matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(at)
    };
    let at = network.or_else(framed).unwrap_or(0);
    data.get(at..).and_then(of_ip).unwrap_or_else(|| mix(data.get(..HEADER_LEN - 2).unwrap_or(data), 0))
}

fn of_ip(ip: &[u8]) -> Option<u32> {
    let (addresses, kind, transport) = match ip.first()? >> 4 {
        4 => {
            let whole = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff == 0;
            let transport = ip.get(usize::from(ip[0] & 15) * 4..).filter(|_| whole);
            (ip.get(12..20)?, *ip.get(9)?, transport)
        }
        6 => (ip.get(8..40)?, *ip.get(6)?, ip.get(40..)),
        _ => return None,
    };
    let has_ports = matches!(kind, protocol::TCP | protocol::UDP | protocol::SCTP);
    let ports = transport.filter(|_| has_ports).and_then(|t| t.first_chunk::<4>());
    // A fragment header of IPv6 stands where the ports would be, and is no transport.
    Some(mix(addresses, ports.map_or(0, |p| u32::from_ne_bytes(*p)) ^ u32::from(kind)))
}

/// Mixes words by multiplication, as Fibonacci hashing does.
#[inline]
fn mix(bytes: &[u8], seed: u32) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = (u64::from(seed) | 1 << 32).wrapping_mul(MULTIPLIER);
    for chunk in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from(u32::from_ne_bytes(word))).wrapping_mul(MULTIPLIER);
        state ^= state >> 29;
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u8, port: u16, fragment: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 1, 2];
        ip[6..8].copy_from_slice(&fragment.to_be_bytes());
        ip.extend(port.to_be_bytes());
        ip.extend([0, 53, 0, 8, 0, 0]);
        ip
    }

    fn framed(ip: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], ip].concat()
    }

    #[test]
    fn a_flow_has_one_number_wherever_its_headers_are() {
        let a = udp(1, 9, 0);
        assert_eq!(of(&a, Some(0)), of(&framed(&a), None));
        assert_eq!(of(&a, Some(0)), of(&a, None));
        let mut later = a.clone();
        later[5] = 8;
        later[8] = 63;
        assert_eq!(
            of(&a, Some(0)),
            of(&later, Some(0)),
            "identification and time to live are not of the flow"
        );
        assert_ne!(of(&a, Some(0)), of(&udp(1, 10, 0), Some(0)));
        assert_ne!(of(&a, Some(0)), of(&udp(2, 9, 0), Some(0)));
        assert_eq!(of(&udp(1, 9, 0x2000), Some(0)), of(&udp(1, 10, 5), Some(0)), "fragments stay together");
        let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2, 8, 6], &[7; 28]].concat();
        let other = [&arp[..14], &[8; 28]].concat();
        assert_eq!(of(&arp, None), of(&other, None));
        for end in 0..a.len() {
            of(&a[..end], Some(0));
            of(&framed(&a)[..end], None);
        }
        let mut packet = Packet::from_bytes(&a).unwrap();
        packet.set_flow_hash(77);
        assert_eq!(number(&packet), 77);
    }

    #[test]
    fn numbers_are_spread() {
        let mut counts = [0u32; 4];
        for port in 0..4_000 {
            counts[of(&udp(1, port, 0), Some(0)) as usize >> 30] += 1;
        }
        assert!(counts.iter().all(|n| (900..1_100).contains(n)), "{counts:?}");
    }
}
