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
const PPP: u32 = 9;
const FDDI: u32 = 10;
const PPP_HDLC: u32 = 50;
const ATM: u32 = 100;
const HDLC: u32 = 104;
const WIFI: u32 = 105;
const SLL: u32 = 113;
const PRISM: u32 = 119;
const SUNATM: u32 = 123;
const RADIOTAP: u32 = 127;
/// The protocol number of IPv4 in PPP (RFC 1332).
const PPP_IP: u16 = 0x21;
/// Bare IP: the registered number, and those that files of OpenBSD and of others have.
const RAW: [u32; 3] = [101, 14, 12];
const NULL: u32 = 0;

/// The link type called `name`, in any case.
pub(crate) fn by_name(name: &str) -> Option<u32> {
    ENCAPS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|&(_, linktype)| linktype)
}

/// The name of `linktype`, or its number.
pub(crate) fn name(linktype: u32) -> String {
    let named = ENCAPS.iter().find(|(_, l)| *l == linktype);
    named.map_or_else(|| linktype.to_string(), |(n, _)| (*n).to_owned())
}

/// Whether packets behind that link layer are IP and nothing else.
pub(super) fn is_raw(linktype: u32) -> bool {
    RAW.contains(&linktype)
}

/// Whether IP packets are found behind that link layer.
pub(super) fn is_known(linktype: u32) -> bool {
    is_raw(linktype) || linktype == RADIOTAP || ENCAPS.iter().any(|(_, known)| *known == linktype)
}

/// Where the IP header lies behind the link layer of a captured packet; `None` if it holds no IP packet.
fn network_offset(data: &[u8], linktype: u32) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
    let if_ip = |at: usize, network: usize| (word(at)? == ether_type::IPV4).then_some(network);
    match linktype {
        ETHER => match Ethernet::new_checked(data).map(|e| e.network_layer()) {
            Ok((ether_type::IPV4, offset)) => Some(offset),
            _ => None,
        },
        SLL => if_ip(14, 16),
        NULL => Some(4),
        ATM => behind_llc(data, 0),
        SUNATM => behind_llc(data, 4),
        FDDI => (data.first()? & 0xf0 == 0x50).then(|| behind_llc(data, 13))?,
        HDLC => if_ip(2, 4),
        PPP_HDLC if data.first() == Some(&0xff) => (word(2)? == PPP_IP).then_some(4),
        PPP_HDLC => if_ip(2, 4).filter(|_| matches!(data[0], 0x0f | 0x8f)),
        PPP => {
            let start = if word(0)? == 0xff03 { 2 } else { 0 };
            match (*data.get(start)?, word(start)) {
                (first, _) if u16::from(first) == PPP_IP => Some(start + 1),
                (_, Some(PPP_IP)) => Some(start + 2),
                _ => None,
            }
        }
        WIFI => behind_wifi(data, 0),
        PRISM => behind_wifi(data, 144),
        RADIOTAP => behind_wifi(data, usize::from(word(2)?.swap_bytes())),
        _ => is_raw(linktype).then_some(0),
    }
}

/// Behind the LLC and SNAP headers (RFC 1042) at `start`, if they say that IP follows.
fn behind_llc(data: &[u8], start: usize) -> Option<usize> {
    let header = data.get(start..start + 8)?;
    match (&header[..6], &header[6..]) {
        (b"\xaa\xaa\x03\0\0\0", b"\x08\0") => Some(start + 8),
        ([6, 6, ..], _) => Some(start + 4),
        _ => None,
    }
}

/// Behind the header of an 802.11 data frame at `start`.
fn behind_wifi(data: &[u8], start: usize) -> Option<usize> {
    let (control, flags) = (*data.get(start)?, *data.get(start + 1)?);
    let header_len = if flags & 3 == 3 { 30 } else { 24 };
    (control & 0x0c == 0x08).then(|| behind_llc(data, start + header_len))?
}

/// Marks the headers of a captured packet: the link-layer header, and if it holds an IPv4 packet with a whole
/// header, network and transport header, and its destination annotation. Says whether it does.
pub(crate) fn mark(packet: &mut Packet, linktype: u32) -> bool {
    let data = packet.data();
    let network = network_offset(data, linktype);
    let Some((network, Ok(ip))) =
        network.map(|at| (at, Ipv4::new_quoted(data.get(at..).unwrap_or_default())))
    else {
        return false;
    };
    let (transport, destination) = (network + ip.header_len(), ip.dst());
    packet.set_mac_header(0);
    packet.set_network_header(network);
    packet.set_transport_header(transport);
    packet.set_dst_ip(destination.octets());
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
            (PPP, b"\xff\x03\0\x21"),
            (PPP, b"\x21"),
            (PPP_HDLC, b"\xff\x03\0\x21"),
            (PPP_HDLC, b"\x0f\0\x08\0"),
            (HDLC, b"\x0f\0\x08\0"),
            (ATM, b"\xaa\xaa\x03\0\0\0\x08\0"),
            (SUNATM, b"\0\0\0\0\xaa\xaa\x03\0\0\0\x08\0"),
            (FDDI, b"\x50\0\0\0\0\0\0\0\0\0\0\0\0\xaa\xaa\x03\0\0\0\x08\0"),
            (WIFI, b"\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xaa\xaa\x03\0\0\0\x08\0"),
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
