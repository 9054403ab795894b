use super::*;
use causeway_packet::wire::{Ipv4, MacAddr, protocol};
use causeway_results::traffic::{Family, Flow, Sizes, Stream, Values};
use proptest::prelude::*;

fn template(family: Family, size: Sizes) -> Template {
    let network = |four: &str, six: &str| match family {
        Family::Ipv4 => four.parse().expect("a network"),
        Family::Ipv6 => six.parse().expect("a network"),
    };
    let ends = Ends {
        source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        gateway_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        source: network("198.18.0.0/18", "2001:2::/64"),
        destination: network("198.18.64.0/18", "2001:2:0:1::/64"),
    };
    let flow = Flow { from: 0, to: 1, stream: 0, seed: 7 };
    Template::new(&Stream::new("s", family, size), &flow, &ends).expect("a template")
}

fn tag(sequence: u32) -> Tag {
    Tag { trial: 3, flow: 5, sequence, sent_ns: 0x1234_5678_9abc }
}

fn made(template: &Template, tag: Tag) -> Vec<u8> {
    let mut frame = vec![0xee; template.length(tag.sequence)];
    template.write(tag, &mut frame);
    frame
}

#[test]
fn a_frame_of_64_bytes_has_all_that_the_tester_needs() {
    let frame = made(&template(Family::Ipv4, Sizes::Fixed(64)), tag(1));
    assert_eq!(frame.len() + FCS, 64);
    assert_eq!(look(&frame), Seen::Test(tag(1)));
    let frame = made(&template(Family::Ipv6, Sizes::Fixed(84)), tag(1));
    assert_eq!(frame.len() + FCS, 84);
    assert_eq!(look(&frame), Seen::Test(tag(1)));
}

#[test]
fn frames_follow_the_sizes_and_their_seed() {
    let mix = template(Family::Ipv4, Sizes::simple_imix());
    assert_eq!((0..13).map(|n| mix.length(n) + FCS).sum::<usize>(), 7 * 64 + 4 * 594 + 1518 + 64);
    assert_eq!(mix.longest() + FCS, 1518);
    assert_eq!(made(&mix, tag(11)), made(&mix, tag(11)));
    assert_ne!(made(&mix, tag(0))[26..34], made(&mix, tag(1))[26..34], "addresses are random");
}

#[test]
fn networks_that_are_too_small_or_of_another_family_are_refused() {
    let ends = |network: &str| {
        let network = network.parse().expect("a network");
        let mac = MacAddr([2; 6]);
        Ends { source_mac: mac, gateway_mac: mac, source: network, destination: network }
    };
    let flow = Flow { from: 0, to: 1, stream: 0, seed: 7 };
    let mut stream = Stream::new("s", Family::Ipv4, Sizes::Fixed(64));
    assert!(Template::new(&stream, &flow, &ends("2001:2::/64")).is_err());
    assert!(Template::new(&stream, &flow, &ends("198.18.0.0/24")).is_ok());
    stream.source_host = Values::Counted { first: 0, count: 257 };
    assert!(Template::new(&stream, &flow, &ends("198.18.0.0/24")).is_err());
}

#[test]
fn what_a_router_changes_is_not_corruption() {
    let mut frame = made(&template(Family::Ipv4, Sizes::Fixed(128)), tag(9));
    frame[..12].fill(0x77);
    let mut ip = Ipv4::new_checked(&mut frame[14..]).expect("IPv4");
    ip.decrement_ttl();
    assert_eq!(look(&frame), Seen::Test(tag(9)));
    let mut frame = made(&template(Family::Ipv6, Sizes::Fixed(128)), tag(9));
    frame[14 + 7] -= 1;
    assert_eq!(look(&frame), Seen::Test(tag(9)));
}

#[test]
fn other_frames_are_foreign() {
    assert_eq!(look(&[]), Seen::Foreign);
    assert_eq!(look(&[0; 60]), Seen::Foreign);
    let mut frame = made(&template(Family::Ipv4, Sizes::Fixed(64)), tag(1));
    frame[42] ^= 1;
    assert_eq!(look(&frame), Seen::Foreign, "the magic is not there");
    let mut frame = made(&template(Family::Ipv4, Sizes::Fixed(64)), tag(1));
    frame[23] = protocol::TCP;
    assert_eq!(look(&frame), Seen::Foreign);
}

proptest! {
    /// What was written is read back, and the headers are right by the measure of another library.
    #[test]
    fn what_is_written_is_read(
        sequence: u32, trial: u16, flow: u16, sent_ns in 0u64..1 << 48, size in 84u32..1519, six: bool,
    ) {
        let family = if six { Family::Ipv6 } else { Family::Ipv4 };
        let template = template(family, Sizes::Fixed(size));
        let tag = Tag { trial, flow, sequence, sent_ns };
        let frame = made(&template, tag);
        prop_assert_eq!(look(&frame), Seen::Test(tag));
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame).expect("a packet");
        let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport else { panic!("no UDP") };
        prop_assert_eq!(udp.payload().len(), frame.len() - if six { 62 } else { 42 });
        let (header, payload) = (udp.to_header(), udp.payload());
        let sum = match sliced.net {
            Some(etherparse::NetSlice::Ipv4(ip)) => {
                prop_assert_eq!(ip.header().to_header().calc_header_checksum(), ip.header().header_checksum());
                header.calc_checksum_ipv4(&ip.header().to_header(), payload)
            }
            Some(etherparse::NetSlice::Ipv6(ip)) => header.calc_checksum_ipv6(&ip.header().to_header(), payload),
            _ => panic!("no IP"),
        };
        prop_assert_eq!(sum.expect("not too long"), udp.checksum());
    }

    /// A bit that flips behind the Ethernet header never passes for the frame that was sent.
    #[test]
    fn a_flipped_bit_is_noticed(sequence: u32, size in 84u32..300, six: bool, at: prop::sample::Index, bit in 0u8..8) {
        let family = if six { Family::Ipv6 } else { Family::Ipv4 };
        let mut frame = made(&template(family, Sizes::Fixed(size)), tag(sequence));
        // IPv6 has no sum over the fields before its addresses that a router may change.
        let first = if six { 14 + 8 } else { 14 };
        let at = first + at.index(frame.len() - first);
        frame[at] ^= 1 << bit;
        prop_assert!(matches!(look(&frame), Seen::Corrupt | Seen::Foreign), "byte {}", at);
    }

    /// A frame that is cut short is not whole.
    #[test]
    fn a_cut_frame_is_noticed(size in 84u32..300, six: bool, cut in 1usize..40) {
        let family = if six { Family::Ipv6 } else { Family::Ipv4 };
        let frame = made(&template(family, Sizes::Fixed(size)), tag(1));
        prop_assert!(matches!(look(&frame[..frame.len() - cut]), Seen::Corrupt | Seen::Foreign));
    }

    /// Any bytes are looked at without a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), like: bool) {
        let mut frame = bytes;
        if like && frame.len() > 24 {
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            frame[23] = protocol::UDP;
        }
        look(&frame);
    }
}
