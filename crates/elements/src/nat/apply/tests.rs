use super::super::flows::{Flow, Timeouts};
use super::*;
use crate::ip::corpus::{datagram, marked};
use causeway_packet::wire::{Ipv4, Tcp, Udp};

/// A packet with such a segment or datagram from 10.0.0.1 to 10.9.0.2.
fn packet(protocol: u8, transport: &[u8]) -> Packet {
    let mut bytes = datagram(&[], transport, 64, 0);
    bytes[9] = protocol;
    Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
    marked(&bytes, 0)
}

/// A segment with a right checksum.
fn segment(sequence: u32, acknowledged: u32, options: &[u8]) -> Packet {
    let mut tcp = [&[0, 7, 0, 80][..], &sequence.to_be_bytes(), &acknowledged.to_be_bytes()].concat();
    tcp.extend([(5 + options.len() as u8 / 4) << 4, 0x10, 0, 99, 0, 0, 0, 0]);
    tcp.extend(options);
    tcp.extend(b"data!");
    let mut p = packet(6, &tcp);
    let mut ip = Ipv4::new_checked(p.data_mut()).unwrap();
    let pseudo = ip.pseudo_header(tcp.len() as u16);
    Tcp::new_checked(ip.payload_mut()).unwrap().fill_checksum(pseudo);
    p
}

fn datagram_of(data: u16) -> Packet {
    let mut p = packet(17, &[&[0, 7, 0, 80, 0, 10, 0, 0][..], &data.to_be_bytes()].concat());
    let mut ip = Ipv4::new_checked(p.data_mut()).unwrap();
    let pseudo = ip.pseudo_header(10);
    Udp::new_checked(ip.payload_mut()).unwrap().fill_checksum(pseudo);
    p
}

/// A TCP connection whose numbers are shifted: from 1000 on by 5 there, from 70 on by -3 back.
fn shifted() -> (Flows, Id) {
    let [tcp_guarantee, guarantee] = [0; 2];
    let [tcp_no_data, tcp_data, tcp_done, idle, streaming] = [100; 5];
    let timeouts = Timeouts { tcp_guarantee, tcp_no_data, tcp_data, tcp_done, guarantee, idle, streaming };
    let mut flows = Flows::of_one(4, timeouts);
    let id = FlowId::new(1, 7, 2, 80);
    let id = flows.insert(Flow::new(id, id, 6, true, [0, 1]), 0, 0, 0, 0).unwrap();
    assert!(flows.shift(id, 0, 1_000, 5) && flows.shift(id, 1, 70, -3));
    (flows, id)
}

/// What becomes of a segment of that connection: sequence and acknowledgement number, and the options.
fn tracked(direction: usize, sequence: u32, acknowledged: u32, options: &[u8]) -> (u32, u32, Vec<u8>) {
    let (mut flows, id) = shifted();
    let mut p = segment(sequence, acknowledged, options);
    Headers::of(&p).unwrap().track_tcp(&mut p, &mut flows, id, direction);
    let ip = Ipv4::new_checked(p.data()).unwrap();
    let bytes = ip.payload();
    let tcp = Tcp::new_checked(bytes).unwrap();
    assert!(tcp.checksum_ok(ip.pseudo_header(bytes.len() as u16)), "{direction} {options:?}");
    (get_u32(bytes, 4), get_u32(bytes, 8), bytes[20..20 + options.len()].to_vec())
}

/// A SACK option of these edges, behind `before` no-operations, and padded.
fn sack(before: usize, edges: &[u32]) -> Vec<u8> {
    let mut options = vec![1; before];
    options.extend([5, 2 + 4 * edges.len() as u8]);
    edges.iter().for_each(|edge| options.extend(edge.to_be_bytes()));
    options.resize(options.len().next_multiple_of(4), 0);
    options
}

#[test]
fn numbers_of_a_direction_shift_with_it_and_acknowledgements_against_the_other() {
    assert_eq!(tracked(0, 999, 60, &[]), (999, 60, vec![]));
    assert_eq!(tracked(0, 2_000, 97, &[]), (2_005, 100, vec![]));
    assert_eq!(tracked(1, 100, 2_005, &[]), (97, 2_000, vec![]));
    assert_eq!(tracked(1, 60, 999, &[]), (60, 999, vec![]));
}

#[test]
fn selective_acknowledgements_shift_at_any_place() {
    for before in 0..4 {
        let (there, back) =
            (sack(before, &[97, 107, 117, 127]), sack(before, &[2_005, 0x1_0004, 2_105, 2_205]));
        assert_eq!(tracked(0, 999, 60, &there).2, sack(before, &[100, 110, 120, 130]), "{before}");
        assert_eq!(tracked(1, 60, 999, &back).2, sack(before, &[2_000, 0xffff, 2_100, 2_200]), "{before}");
    }
    // One of a length that none has, one that is cut short, and what lies behind the end of the options.
    let no_end = [&[5, 12][..], &[9; 10]].concat();
    let cut = [1, 1, 5, 10, 0, 0, 7, 0xd5];
    let behind = [&[0, 0][..], &[5, 10, 0, 0, 7, 0xd5, 0, 0, 8, 0]].concat();
    for options in [&no_end[..], &cut, &behind] {
        assert_eq!(tracked(1, 60, 999, options).2, options);
    }
}

#[test]
fn a_udp_checksum_never_becomes_none() {
    let (old, new) =
        (FlowId::new(0x0a00_0001, 7, 0x0a09_0002, 80), FlowId::new(0x0100_0001, 1_024, 0x0a09_0002, 80));
    let followed = |mut p: Packet| {
        Headers::of(&p).unwrap().follow(&mut p, old, new);
        get_u16(p.data(), 26)
    };
    // With what is missing to it as data the sum becomes 0, for which all ones stand.
    let missing = followed(datagram_of(0));
    assert!(missing != 0);
    assert_eq!(followed(datagram_of(missing)), 0xffff);
    let mut none = datagram_of(missing);
    none.data_mut()[26..28].fill(0);
    assert_eq!(followed(none), 0);
}
