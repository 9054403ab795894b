use super::*;
use causeway_engine::harness::Harness;
use causeway_engine::{Addresses, Env};
use proptest::prelude::*;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 9];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SECOND_NS: u64 = 1_000_000_000;

fn querier(more: &str, outputs: usize) -> Harness {
    Harness::new(&SPEC, &format!("10.0.0.9/24, 2:0:0:0:0:9{more}"), 2, outputs).unwrap()
}

fn ip_packet(dst: [u8; 4], tag: u8) -> Packet {
    let mut p = Packet::from_bytes(&[0x45, tag]).unwrap();
    p.set_dst_ip(dst);
    p.set_network_header(0);
    p
}

fn response(ip: [u8; 4], mac: [u8; 6], operation: u16) -> Packet {
    let mut bytes = [0; 60];
    bytes[12..14].copy_from_slice(&[8, 6]);
    let arp = ArpPacket {
        operation,
        sender_mac: MacAddr(mac),
        sender_ip: ip.into(),
        target_mac: MacAddr(OWN),
        target_ip: [10, 0, 0, 9].into(),
    };
    arp.emit(bytes[14..42].first_chunk_mut().unwrap());
    Packet::from_bytes(&bytes).unwrap()
}

fn tags(h: &mut Harness, port: usize) -> Vec<u8> {
    h.take(port).iter().map(|p| p.data()[15]).collect()
}

#[test]
fn packets_wait_for_the_answer() {
    let mut h = querier("", 2);
    h.push_all(0, [ip_packet([10, 0, 0, 1], 1), ip_packet([10, 0, 0, 1], 2), ip_packet([10, 0, 0, 2], 3)]);
    let queries = h.take(1);
    assert_eq!((queries.len(), h.take(0).len(), h.held()), (2, 0, 3));
    assert_eq!(queries[0].data()[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 8, 6]);
    let asked = Arp::new_checked(&queries[0].data()[14..]).unwrap();
    assert_eq!((asked.operation(), asked.target_ip()), (arp::REQUEST, [10, 0, 0, 1].into()));
    assert_eq!((asked.sender_ip(), asked.sender_mac()), ([10, 0, 0, 9].into(), MacAddr(OWN)));

    h.push(1, response([10, 0, 0, 1], PEER, arp::REPLY));
    let out = h.take(0);
    assert_eq!(out[0].data(), [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 1]);
    assert_eq!((out.len(), out[1].data()[15], out[0].network_offset()), (2, 2, Some(14)));
    h.push_all(0, [ip_packet([10, 0, 0, 1], 4), ip_packet([10, 0, 0, 1], 5)]);
    assert_eq!((tags(&mut h, 0), h.held(), h.drops()), (vec![4, 5], 1, vec![("response", 1)]));
    assert_eq!((h.read("queries").unwrap(), h.read("responses").unwrap()), ("2".into(), "1".into()));
    assert_eq!((h.read("count").unwrap(), h.read("length").unwrap()), ("2".into(), "1".into()));
    assert!(h.read("table").unwrap().starts_with("10.0.0.1 1 02-00-00-00-00-01 0.0"));
    assert!(h.read("table").unwrap().contains("\n10.0.0.2 0 FF-FF-FF-FF-FF-FF 0.0"));
    assert_eq!(h.read("stats").unwrap(), "0 packets killed\n2 ARP queries sent\n");
}

#[test]
fn queries_are_not_sent_for_every_packet() {
    let mut h = querier("", 1);
    let push = |h: &mut Harness| {
        h.push(0, ip_packet([10, 0, 0, 1], 0));
        h.take(0).len()
    };
    assert_eq!((push(&mut h), push(&mut h)), (1, 0));
    h.advance(SECOND_NS / 10);
    assert_eq!((push(&mut h), push(&mut h)), (1, 0));
}

#[test]
fn who_does_not_answer_is_asked_less_often() {
    let mut h = querier("", 2);
    let mut queries = |tenths: usize| {
        (0..tenths).for_each(|_| {
            h.push(0, ip_packet([10, 0, 0, 1], 0));
            h.advance(SECOND_NS / 10);
        });
        h.take(1).len()
    };
    assert_eq!((queries(10), queries(19), queries(61)), (10, 0, 4), "ten, and one every two seconds");
    h.push(1, response([10, 0, 0, 1], PEER, arp::REPLY));
    h.write("delete", "10.0.0.1").unwrap();
    h.push(0, ip_packet([10, 0, 0, 1], 0));
    assert_eq!(h.take(1).len(), 1, "it had answered");
}

#[test]
fn a_query_has_the_time_of_its_packet() {
    let mut h = querier("", 2);
    let mut packet = ip_packet([10, 0, 0, 1], 0);
    packet.set_timestamp_ns(77);
    h.push(0, packet);
    assert_eq!(h.take(1)[0].timestamp_ns(), 77);
}

#[test]
fn some_destinations_need_no_answer() {
    let mut h = querier("", 1);
    let mac = |h: &mut Harness, dst| {
        h.push(0, ip_packet(dst, 0));
        h.take(0)[0].data()[..6].to_vec()
    };
    assert_eq!(mac(&mut h, [255; 4]), [255; 6]);
    assert_eq!(mac(&mut h, [10, 0, 0, 255]), [255; 6]);
    assert_eq!(mac(&mut h, [239, 129, 1, 2]), [1, 0, 0x5e, 1, 1, 2]);
    h.write("broadcast", "10.0.0.254").unwrap();
    assert_eq!(mac(&mut h, [10, 0, 0, 254]), [255; 6]);
    h.push(0, ip_packet([0; 4], 0));
    assert_eq!((h.drops(), h.held()), (vec![("no-destination", 1)], 0));
    h.assert_balanced();
}

#[test]
fn what_is_known_is_polled_and_expires() {
    let mut h = querier(", POLL_TIMEOUT 10, TIMEOUT 20", 2);
    h.write("insert", "10.0.0.1 2:0:0:0:0:1").unwrap();
    let seen = |h: &mut Harness| {
        h.push(0, ip_packet([10, 0, 0, 1], 0));
        (h.take(0).len(), h.take(1).iter().map(|q| q.data()[..6].to_vec()).collect::<Vec<_>>())
    };
    assert_eq!(seen(&mut h), (1, vec![]));
    h.advance(11 * SECOND_NS);
    assert_eq!(seen(&mut h), (1, vec![PEER.to_vec()]));
    assert_eq!(seen(&mut h), (1, vec![]));
    h.advance(SECOND_NS / 10);
    assert_eq!(seen(&mut h), (1, vec![PEER.to_vec()]));
    h.advance(9 * SECOND_NS);
    assert_eq!(seen(&mut h), (0, vec![vec![255; 6]]), "expired: it waits again");
    h.advance(25 * SECOND_NS);
    assert_eq!((h.held(), h.drops(), h.read("count").unwrap()), (0, vec![("expired", 1)], "0".into()));
}

#[test]
fn handlers_change_the_table() {
    let mut h = querier(", CAPACITY 2, CAPACITY_SLIM_FACTOR 3", 2);
    h.push_all(0, (1..5).map(|n| ip_packet([10, 0, 0, n], n)));
    assert_eq!((h.held(), h.drops()), (2, vec![("full", 2)]));
    h.write("insert", "10.0.0.4 2:0:0:0:0:1").unwrap();
    assert_eq!(tags(&mut h, 0), [4]);
    h.push(0, ip_packet([10, 0, 0, 4], 6));
    h.write("delete", "10.0.0.4").unwrap();
    h.push(0, ip_packet([10, 0, 0, 4], 7));
    assert_eq!((tags(&mut h, 0), h.held()), (vec![6], 2));
    h.write("clear", "").unwrap();
    assert_eq!((h.held(), h.read("drops").unwrap()), (0, "4".into()));
    for (handler, bad) in [("delete", "10.0.0.7"), ("insert", "10.0.0.7"), ("insert", "x 2:0:0:0:0:1")] {
        assert!(h.write(handler, bad).is_err(), "{handler} {bad}");
    }
}

#[test]
fn a_moved_neighbour_is_found_at_once() {
    let mut h = querier("", 1);
    h.write("insert", "10.0.0.1 2:0:0:0:0:1").unwrap();
    h.push(0, ip_packet([10, 0, 0, 1], 0));
    h.push(1, response([10, 0, 0, 1], [2, 0, 0, 0, 0, 7], arp::REPLY));
    h.push(0, ip_packet([10, 0, 0, 1], 0));
    let last: Vec<u8> = h.take(0).iter().map(|p| p.data()[5]).collect();
    assert_eq!(last, [1, 7]);
}

#[test]
fn only_responses_of_hosts_are_believed() {
    let mut h = querier("", 1);
    h.push(1, response([10, 0, 0, 1], PEER, arp::REQUEST));
    h.push(1, response([10, 0, 0, 1], [255; 6], arp::REPLY));
    h.push(1, response([224, 0, 0, 1], PEER, arp::REPLY));
    h.push(1, Packet::from_bytes(&[0; 41]).unwrap());
    assert_eq!((h.drops(), h.read("count").unwrap()), (vec![("not-a-response", 4)], "0".into()));
    h.assert_balanced();
}

#[test]
fn a_new_graph_takes_over_neighbours_and_packets() {
    let mut old = querier("", 2);
    old.write("insert", "10.0.0.1 2:0:0:0:0:1").unwrap();
    old.push(0, ip_packet([10, 0, 0, 2], 5));
    let mut new = querier("", 2);
    let old = old.element::<ArpQuerier>().unwrap().table.own().unwrap();
    let new_table = new.element::<ArpQuerier>().unwrap().table.own().unwrap();
    assert_eq!(new_table.take_over(old), 0);
    new.push(0, ip_packet([10, 0, 0, 1], 4));
    new.push(1, response([10, 0, 0, 2], PEER, arp::REPLY));
    assert_eq!((tags(&mut new, 0), new.held()), (vec![4, 5], 0));
}

#[test]
fn forged_responses_do_not_fill_the_memory_nor_drive_out_a_neighbour() {
    let mut h = querier(", ENTRY_CAPACITY 100", 1);
    h.push(0, ip_packet([10, 0, 0, 1], 1));
    h.push(1, response([10, 0, 0, 1], PEER, arp::REPLY));
    assert_eq!(h.take(0).len(), 2, "a query, and the packet");
    for n in 0..20_000u32 {
        let [_, a, b, c] = n.to_be_bytes();
        h.push(1, response([11, a, b, c], [2, 1, 1, 1, 1, 1], arp::REPLY));
    }
    assert_eq!((h.read("count").unwrap(), h.read("evictions").unwrap()), ("100".into(), "19901".into()));
    h.push(0, ip_packet([10, 0, 0, 1], 2));
    assert_eq!(tags(&mut h, 0), [2], "still known");
}

#[test]
fn a_full_table_has_no_room_for_what_nobody_asked_for() {
    let mut h = querier(", ENTRY_CAPACITY 2", 2);
    h.push_all(0, [ip_packet([10, 0, 0, 1], 1), ip_packet([10, 0, 0, 2], 2)]);
    h.push(1, response([10, 0, 0, 3], PEER, arp::REPLY));
    assert_eq!((h.drops(), h.held()), (vec![("unsolicited", 1)], 2));
    h.push(1, response([10, 0, 0, 2], PEER, arp::REPLY));
    assert_eq!((tags(&mut h, 0), h.held()), (vec![2], 1));
}

#[test]
fn packets_of_a_neighbour_that_does_not_answer_are_returned() {
    let mut h = querier("", 3);
    h.push_all(0, [ip_packet([10, 0, 0, 1], 1), ip_packet([10, 0, 0, 2], 2)]);
    assert_eq!(h.take(1).len(), 2);
    h.advance(SECOND_NS);
    assert_eq!((h.take(1).len(), h.take(2).len()), (2, 0), "they are asked again");
    h.push(1, response([10, 0, 0, 2], PEER, arp::REPLY));
    h.advance(3 * SECOND_NS);
    let returned = h.take(2);
    assert_eq!((returned.len(), returned[0].data()), (1, &[0x45, 1][..]), "without Ethernet header");
    assert_eq!((returned[0].dst_ip(), h.held(), tags(&mut h, 0)), ([10, 0, 0, 1], 0, vec![2]));
    h.advance(10 * SECOND_NS);
    let asked = h.take(1).len();
    assert!(asked <= 3, "it is not asked for any more: {asked}");
}

#[test]
fn both_forms_of_arguments() {
    let errors = |text: &str| Harness::new(&SPEC, text, 2, 1).err().unwrap();
    assert_eq!(errors(""), ["IP: required argument missing", "ETH: required argument missing"]);
    assert_eq!(
        errors("1.0.0.1, 2:0:0:0:0:1, CAPACITY_SLIM_FACTOR 0"),
        ["CAPACITY_SLIM_FACTOR cannot be zero"]
    );
    assert_eq!(errors("1.0.0.1, CAPACITY x"), ["CAPACITY: invalid number", "ETH: parse error"]);

    let mut env = Env::new(causeway_engine::Counters::new(1, 8, None).unwrap());
    let own = Addresses {
        ip: Some([1, 0, 0, 1].into()),
        ip_net: Some(([1, 0, 0, 1].into(), 24)),
        ether: Some(OWN),
        ..Addresses::default()
    };
    env.names.define("info", "eth7", own);
    let mut conf = Conf::new(&mut env, "q".into(), &SPEC, 0, (2, 1), "eth7, TIMEOUT 1m");
    let mut built = build(&mut conf).ok().unwrap();
    let q = built.downcast_mut::<ArpQuerier>().unwrap();
    assert_eq!((q.ip, q.mac, q.broadcast), ([1, 0, 0, 1].into(), MacAddr(OWN), Ipv4Addr::BROADCAST));
    let limits = q.table.own().unwrap().limits;
    assert_eq!((limits.timeout_ns, limits.entries), (60 * SECOND_NS, 65_536));
}

proptest! {
    #[test]
    fn any_bytes_are_counted(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..40)) {
        let mut h = querier("", 2);
        for bytes in packets {
            h.push(1, Packet::from_bytes(&bytes).unwrap());
        }
        h.assert_balanced();
    }
}
