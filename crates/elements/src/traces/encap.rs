//! Encapsulations: what the first header of a captured packet is, by name and by link type.

use causeway_packet::Packet;
use causeway_packet::wire::{Ethernet, Ipv4, ethernet::ether_type};

/// Names and link types (tcpdump.org's list); the first of several names is the one that is written.
const ENCAPS: &[(&str, u32)] = &[
    ("ETHER", 1),
    ("IP", 101),
    ("FDDI", 10),
    ("ATM", 100),
    ("802_11", 105),
    ("SLL", 113),
    ("AIRONET", 120),
    ("HDLC", 104),
    ("PPP_HDLC", 50),
    ("PPP", 9),
    ("SUNATM", 123),
    ("PRISM", 119),
    ("NULL", 0),
];

pub(crate) const ETHER: u32 = 1;
const SLL: u32 = 113;
/// Bare IP: the registered number, and those that files of OpenBSD and of others have.
const RAW: [u32; 3] = [101, 14, 12];
const NULL: u32 = 0;

/// The link type called `name`, in any case.
pub(super) fn by_name(name: &str) -> Option<u32> {
    ENCAPS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|&(_, linktype)| linktype)
}

/// The name of `linktype`, or its number.
pub(super) fn name(linktype: u32) -> String {
    let named = ENCAPS.iter().find(|(_, l)| *l == linktype);
    named.map_or_else(|| linktype.to_string(), |(n, _)| (*n).to_owned())
}

/// Marks the headers of a captured packet: the link-layer header, and if it holds an IPv4 packet with a whole
/// header, network and transport header. Says whether it does.
pub(crate) fn mark(packet: &mut Packet, linktype: u32) -> bool {
    let data = packet.data();
    let network = match linktype {
        ETHER => match Ethernet::new_checked(data).map(|e| e.network_layer()) {
            Ok((ether_type::IPV4, offset)) => offset,
            _ => return false,
        },
        SLL if data.get(14..16) == Some(&ether_type::IPV4.to_be_bytes()) => 16,
        NULL => 4,
        _ if RAW.contains(&linktype) => 0,
        _ => return false,
    };
    let Ok(ip) = Ipv4::new_quoted(data.get(network..).unwrap_or_default()) else { return false };
    let transport = network + ip.header_len();
    packet.set_mac_header(0);
    packet.set_network_header(network);
    packet.set_transport_header(transport);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_both_ways() {
        for &(text, linktype) in ENCAPS {
            assert_eq!((by_name(&text.to_lowercase()), name(linktype)), (Some(linktype), text.to_owned()));
        }
        assert_eq!((by_name("X25"), name(4_711)), (None, "4711".to_owned()));
    }

    #[test]
    fn ipv4_is_found_behind_each_link_layer() {
        let ip = [&[0x45, 0, 0, 20][..], &[0; 16]].concat();
        for (linktype, head) in [
            (ETHER, &b"\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"[..]),
            (ETHER, b"\0\0\0\0\0\0\0\0\0\0\0\0\x81\0\0\x05\x08\0"),
            (SLL, b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"),
            (NULL, b"\x02\0\0\0"),
            (101, b""),
        ] {
            let mut packet = Packet::from_bytes(&[head, &ip].concat()).unwrap();
            assert!(mark(&mut packet, linktype), "{linktype}");
            let offsets = (packet.network_offset(), packet.transport_offset());
            assert_eq!(offsets, (Some(head.len()), Some(head.len() + 20)), "{linktype}");
            packet.truncate(head.len() + 19);
            assert!(!mark(&mut packet, linktype), "{linktype}: header cut short");
        }
        let mut arp = Packet::from_bytes(b"\0\0\0\0\0\0\0\0\0\0\0\0\x08\x06\0\x01").unwrap();
        assert!(!mark(&mut arp, ETHER));
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes in proptest::collection::vec(any::<u8>(), 0..60), linktype in 0u32..130) {
            mark(&mut Packet::from_bytes(&bytes).unwrap(), linktype);
        }
    }
}
