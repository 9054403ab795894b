//! What a packet is, in one line.

use causeway_engine::watch::Bytes;
use causeway_packet::wire::arp::Arp;
use causeway_packet::wire::ethernet::{Ethernet, ether_type};
use causeway_packet::wire::ipv4::Ipv4;
use causeway_packet::wire::ipv6::Ipv6;
use causeway_packet::wire::protocol;

/// Bytes of a packet that nobody can read are shown as they are, so many of them.
const SHOWN: usize = 16;

/// The line for a packet.
pub fn summary(bytes: &Bytes) -> String {
    let data = bytes.data.as_slice();
    let known = match bytes.is_ip {
        true => ip(data),
        false => frame(data),
    };
    known.map_or_else(|| raw(bytes), |text| format!("{text}, {} bytes", bytes.len))
}

fn raw(bytes: &Bytes) -> String {
    let hex: String = bytes.data.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
    let more = if bytes.len > SHOWN { "..." } else { "" };
    format!("{} bytes {hex}{more}", bytes.len)
}

fn frame(data: &[u8]) -> Option<String> {
    let frame = Ethernet::new_checked(data).ok()?;
    let (kind, offset) = frame.network_layer();
    let behind = data.get(offset..)?;
    let inner = match kind {
        ether_type::IPV4 | ether_type::IPV6 => ip(behind)?,
        ether_type::ARP => {
            let arp = Arp::new_checked(behind).ok()?;
            let what = if arp.operation() == 1 { "asks for" } else { "answers" };
            format!("ARP: {} {what} {}", arp.sender_ip(), arp.target_ip())
        }
        _ => format!("type {kind:04x}"),
    };
    Some(format!("{} > {}  {inner}", frame.src(), frame.dst()))
}

fn ip(data: &[u8]) -> Option<String> {
    match data.first()? >> 4 {
        4 => {
            let ip = Ipv4::new_quoted(data).ok()?;
            let behind = data.get(ip.header_len()..).unwrap_or_default();
            let first = ip.fragment_offset() == 0;
            let transport = if first { transport(ip.protocol(), behind) } else { "fragment".to_owned() };
            let (source, destination) = (ip.src(), ip.dst());
            Some(format!("{source} > {destination} {transport}, TTL {}", ip.ttl()))
        }
        6 => {
            let ip = Ipv6::new_quoted(data).ok()?;
            let behind = data.get(40..).unwrap_or_default();
            let transport = transport(ip.next_header(), behind);
            Some(format!("{} > {} {transport}, hop limit {}", ip.src(), ip.dst(), ip.hop_limit()))
        }
        _ => None,
    }
}

fn transport(number: u8, data: &[u8]) -> String {
    let name = match number {
        protocol::TCP => "TCP",
        protocol::UDP => "UDP",
        protocol::ICMP | protocol::ICMPV6 => {
            return match data {
                [kind, code, ..] => format!("ICMP type {kind} code {code}"),
                _ => "ICMP".to_owned(),
            };
        }
        other => return format!("protocol {other}"),
    };
    match data {
        [a, b, c, d, ..] => {
            format!("{name} {} > {}", u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(data: &[u8], is_ip: bool) -> String {
        summary(&Bytes { data: data.to_vec(), len: data.len(), is_ip })
    }

    #[test]
    fn packets_are_told_in_a_line() {
        let mut udp =
            vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2, 0, 9, 0, 53, 0, 8, 0, 0];
        assert_eq!(of(&udp, true), "10.0.0.1 > 10.0.1.2 UDP 9 > 53, TTL 64, 28 bytes");
        let link = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let frame = [&link[..], &udp].concat();
        assert_eq!(
            of(&frame, false),
            "02:00:00:00:00:02 > 02:00:00:00:00:01  10.0.0.1 > 10.0.1.2 UDP 9 > 53, TTL 64, 42 bytes"
        );
        udp[9] = 1;
        udp[20] = 8;
        assert_eq!(of(&udp, true), "10.0.0.1 > 10.0.1.2 ICMP type 8 code 9, TTL 64, 28 bytes");
        udp[6] = 0x20;
        udp[7] = 1;
        assert_eq!(of(&udp, true), "10.0.0.1 > 10.0.1.2 fragment, TTL 64, 28 bytes");
        assert_eq!(of(&[1, 2], true), "2 bytes 0102");
        assert_eq!(of(&[9; 20], true), format!("20 bytes {}...", "09".repeat(16)));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_line(data in proptest::collection::vec(any::<u8>(), 0..120), is_ip: bool) {
            prop_assert!(!of(&data, is_ip).contains('\n'));
        }
    }
}
