//! What hosts teach a router of single destinations: that packets to them are too long (RFC 1191, RFC 8201).

use crate::plan;
use causeway_packet::checksum;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A frame that teaches something of a destination, and the port it comes in by.
pub struct Lesson {
    pub port: usize,
    pub to: IpAddr,
    pub frame: Vec<u8>,
}

/// By that port it is said that packets to an IPv4 address must be shorter.
pub fn too_long4(port: usize, to: Ipv4Addr, mtu_bytes: u16) -> Lesson {
    let router = [10, 1, port as u8, 1];
    // An answer to an echo request: the kernel believes that it sent such.
    let about = [&header4(84, router, to.octets())[..], &[0, 0, 0, 0, 0, 7, 0, 1]].concat();
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu_bytes.to_be_bytes());
    message.extend(about);
    let sum = checksum::checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet =
        [&header4(20 + message.len() as u16, [10, 1, port as u8, 20], router)[..], &message].concat();
    let frame = [&plan::mac(port)[..], &[2, 0xee, port as u8, 0, 0, 20, 8, 0], &packet].concat();
    Lesson { port, to: to.into(), frame }
}

/// An ICMP packet's header.
fn header4(len: u16, from: [u8; 4], to: [u8; 4]) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[6] = 0x40;
    header[8..10].copy_from_slice(&[63, 1]);
    header[12..16].copy_from_slice(&from);
    header[16..20].copy_from_slice(&to);
    let sum = checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// The same for an IPv6 address.
pub fn too_long6(port: usize, to: Ipv6Addr, mtu_bytes: u32) -> Lesson {
    let host = |last| Ipv6Addr::new(0x2001, 0xdb8, port as u16, 0, 0, 0, 0, last);
    let (router, sender) = (host(1), host(0x20));
    let about = [&header6(8, router, to)[..], &[128, 0, 0, 0, 0, 7, 0, 1]].concat();
    let mut message = vec![2, 0, 0, 0];
    message.extend(mtu_bytes.to_be_bytes());
    message.extend(about);
    let sum = checksum::pseudo_header_v6(sender, router, 58, message.len() as u32).bytes(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = [&header6(message.len() as u16, sender, router)[..], &message].concat();
    let frame = [&plan::mac(port)[..], &[2, 0xee, port as u8, 0, 0, 20, 0x86, 0xdd], &packet].concat();
    Lesson { port, to: to.into(), frame }
}

/// An ICMPv6 packet's header.
fn header6(len: u16, from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    [&[0x60, 0, 0, 0][..], &len.to_be_bytes(), &[58, 63], &from.octets(), &to.octets()].concat()
}
