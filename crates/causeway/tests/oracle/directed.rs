//! States that were thought of.

use crate::lessons;
use crate::plan;
use crate::space::Step;
use crate::trial::Trial;
use causeway_packet::checksum;

/// UDP over IPv4 from a host behind port 0 with so many octets, which must not be fragmented.
fn udp4(to: [u8; 4], len: u16) -> (usize, Vec<u8>) {
    udp4_from([10, 1, 0, 20], to, len)
}

fn udp4_from(from: [u8; 4], to: [u8; 4], len: u16) -> (usize, Vec<u8>) {
    let mut header = [0x45, 0, 0, 0, 0, 7, 0x40, 0, 33, 17, 0, 0, 10, 1, 0, 20, 0, 0, 0, 0];
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[12..16].copy_from_slice(&from);
    header[16..].copy_from_slice(&to);
    let sum = checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    (0, frame([8, 0], &header, len as usize - 20))
}

/// The same over IPv6.
fn udp6(to: &str, len: u16) -> (usize, Vec<u8>) {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let mut header = vec![0x60, 0, 0, 0, 0, 0, 17, 33];
    header[4..6].copy_from_slice(&(len - 40).to_be_bytes());
    header.extend(address("2001:db8:0::20"));
    header.extend(address(to));
    (0, frame([0x86, 0xdd], &header, len as usize - 40))
}

fn frame(kind: [u8; 2], header: &[u8], payload: usize) -> Vec<u8> {
    let mut udp = [15, 160, 0, 9, 0, 0, 0, 0].to_vec();
    udp[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
    udp.resize(payload, 7);
    [&plan::mac(0)[..], &[2, 0xee, 0, 0, 0, 9], &kind, header, &udp].concat()
}

/// How many of these are what a port sends when a packet is too long for another one.
fn refused(left: &[(usize, Vec<u8>)]) -> usize {
    let is = |frame: &[u8]| match frame[12..14] {
        [8, 0] => frame[23] == 1 && frame[34..36] == [3, 4],
        [0x86, 0xdd] => frame[20] == 58 && frame[54] == 2,
        _ => false,
    };
    left.iter().filter(|(port, frame)| *port == 0 && is(frame)).count()
}

/// A path MTU that a host has told holds for what is forwarded too: of IPv4 if it is below the least that the kernel believes.
#[test]
fn what_the_kernel_has_learned_of_a_destination_is_left_to_it() {
    let Some(mut trial) = Trial::new() else { return };
    let packets = [udp4([10, 65, 0, 9], 800), udp4([10, 65, 0, 8], 800), udp6("2001:db8:41::9", 1400)];
    let (left, differences) = trial.directed(&[], &[], &packets);
    assert_eq!((refused(&left), differences), (0, vec![]));
    assert!(trial.read("forward.lookup 10.65.0.9").starts_with("p1 "));

    let learned = [
        lessons::too_long4(0, [10, 65, 0, 9].into(), 500),
        lessons::too_long6(0, "2001:db8:41::9".parse().expect("an address"), 1300),
    ];
    let (left, differences) = trial.directed(&[], &learned, &packets);
    assert_eq!((refused(&left), differences), (2, vec![]));
    for to in ["10.65.0.9", "2001:db8:41::9"] {
        assert_eq!(trial.read(&format!("forward.lookup {to}")), "kernel exception");
    }
    assert_eq!(trial.read("forward.lookup 10.65.0.8"), trial.read("forward.lookup 10.65.0.7"));

    // What was learned is forgotten with the first state.
    let (left, differences) = trial.directed(&[], &[], &packets);
    assert_eq!((refused(&left), differences), (0, vec![]));
    assert!(trial.read("forward.lookup 2001:db8:41::9").starts_with("p1 "));
}

/// The kernel sends no message when the IPv6 MTU of a link changes and its own does not.
#[test]
fn the_mtu_of_ipv6_is_followed() {
    let Some(mut trial) = Trial::new() else { return };
    let packets = [udp6("2001:db8:41::9", 1400), udp6("2001:db8:41::9", 1280), udp4([10, 65, 0, 9], 1400)];
    let (left, differences) = trial.directed(&[], &[], &packets);
    assert_eq!((refused(&left), differences), (0, vec![]));
    let mtu = |value: &str| Step::Set("ipv6/conf/p1/mtu".to_owned(), value.to_owned());
    let (left, differences) = trial.directed(&[mtu("1280")], &[], &packets);
    assert_eq!((refused(&left), differences), (1, vec![]));
    let (left, differences) = trial.directed(&[mtu("1500")], &[], &packets);
    assert_eq!((refused(&left), differences), (0, vec![]));
}

/// Which of the routes to a source counts depends on the packet's type of service; both say that it is an anycast address.
#[test]
fn a_source_that_may_be_an_address_of_the_router_is_left_to_the_kernel() {
    let Some(mut trial) = Trial::new() else { return };
    let packets = [udp4_from([10, 66, 2, 11], [10, 65, 0, 9], 100)];
    let (left, differences) = trial.directed(&[], &[], &packets);
    assert_eq!((left.len(), differences), (1, vec![]));
    // Once there was a local route that is no interface's address, the kernel looks at the routes to all sources.
    let steps = [
        "local 10.66.9.9/32 dev lo proto 77",
        "anycast 10.66.2.0/28 dev p3 proto 77",
        "anycast 10.66.2.8/29 dev p3 proto 77 tos 0x10",
    ]
    .map(|route| Step::Ip(format!("route add {route}")));
    let (left, differences) = trial.directed(&steps, &[], &packets);
    assert_eq!((left.len(), differences), (0, vec![]));
}
