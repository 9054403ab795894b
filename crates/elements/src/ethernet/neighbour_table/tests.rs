use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    packets: 6,
    entries: 0,
    entry_packets: 0,
    slim_factor: usize::MAX,
    timeout_ns: 1_000_000_000,
    poll_timeout_ns: 400_000_000,
};

fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn packet(n: u8) -> Packet {
    Packet::from_bytes(&[n]).unwrap()
}

#[test]
fn answers_age() {
    let mut t = ArpTable::new(LIMITS);
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    assert_eq!(t.find(ip(1), 0), Found::Unknown);
    drop(t.learn(ip(1), mac, true, 100));
    assert_eq!(t.find(ip(1), 200), Found::Known { mac, until_ns: 400_000_100, poll: false });
    let poll_ns = 450_000_000;
    let until_ns = poll_ns + QUERY_INTERVAL_NS;
    assert_eq!(t.find(ip(1), poll_ns), Found::Known { mac, until_ns, poll: true });
    assert_eq!(t.find(ip(1), poll_ns), Found::Known { mac, until_ns, poll: false });
    assert_eq!(t.find(ip(1), 1_000_000_100), Found::Unknown);
    let soonest = |now_ns| now_ns + WALK_INTERVAL_NS;
    assert_eq!((t.expire(1_000_000_099), t.len()), ((0, soonest(1_000_000_099)), 1));
    assert_eq!((t.expire(1_000_000_100), t.len()), ((0, soonest(1_000_000_100)), 0));
    // Nobody has to look before there is something to be seen.
    drop(t.learn(ip(1), mac, true, 2_000_000_000));
    drop(t.learn(ip(2), mac, true, 1_900_000_000));
    assert_eq!(t.expire(1_900_000_001), (0, 2_900_000_001));
    assert_eq!(t.expire(1_899_999_000), (0, 2_900_000_000));
}

#[test]
fn entries_are_looked_at_some_at_a_time() {
    let mut t = ArpTable::new(LIMITS);
    let many = 2 * PIECE as u32 + 1;
    (0..many).for_each(|n| drop(t.learn(Ipv4Addr::from(n), MacAddr::ZERO, true, u64::from(n))));
    t.wait(ip(1), packet(1), 0);
    let now_ns = 5_000_000_000;
    for left in [PIECE + 2, 2] {
        assert_eq!(t.expire(now_ns), (0, now_ns + PART_INTERVAL_NS));
        assert_eq!(t.len(), left);
    }
    assert_eq!((t.expire(now_ns), t.len()), ((1, now_ns + WALK_INTERVAL_NS), 0));
    assert_eq!(t.held(), 0);
}

#[test]
fn entries_have_limits_of_their_own() {
    let mut t = ArpTable::new(Limits { entries: 2, entry_packets: 2, ..LIMITS });
    assert_eq!(t.wait(ip(1), packet(1), 1), (true, 0));
    assert_eq!(t.wait(ip(1), packet(2), 2), (false, 0));
    assert_eq!(t.wait(ip(1), packet(3), 3), (false, 1));
    t.wait(ip(2), packet(4), 4);
    assert_eq!(t.wait(ip(3), packet(5), 5), (true, 2), "the oldest entry goes, with what waited for it");
    assert_eq!((t.len(), t.held()), (2, 2));
}

#[test]
fn the_least_wanted_make_room_first() {
    let mac = |n: u8| MacAddr([2, 0, 0, 0, 0, n]);
    let mut t = ArpTable::new(Limits { entries: 4, ..LIMITS });
    drop(t.learn(ip(1), mac(1), true, 1));
    drop(t.learn(ip(2), mac(2), false, 2));
    drop(t.learn(ip(3), mac(3), false, 3));
    t.wait(ip(4), packet(4), 4);
    let there = |t: &ArpTable| t.entries.keys().map(|ip| ip.octets()[3]).collect::<Vec<_>>();
    assert!(t.learn(ip(5), mac(5), false, 5).is_some());
    assert_eq!(there(&t), [1, 3, 4, 5], "the oldest that nobody wants");
    assert!(matches!(t.find(ip(3), 6), Found::Known { .. }), "now somebody wants it");
    t.wait(ip(6), packet(6), 6);
    assert_eq!(there(&t), [1, 3, 4, 6]);
    assert!(t.learn(ip(7), mac(7), false, 7).is_none(), "it is not worth a neighbour that is wanted");
    assert_eq!(t.wait(ip(8), packet(8), 8), (true, 1));
    assert_eq!(there(&t), [1, 3, 6, 8], "the oldest that has not answered, with its packet");
    for n in [6, 8] {
        drop(t.learn(ip(n), mac(n), false, 9));
    }
    t.wait(ip(9), packet(9), 10);
    assert_eq!(there(&t), [3, 6, 8, 9], "the oldest");
    assert_eq!((t.evicted(), t.len(), t.held()), (4, 4, 1));
}

#[test]
fn floods_leave_the_wanted_neighbours_and_take_no_more_room() {
    const ENTRIES: usize = 1_000;
    let mut t = ArpTable::new(Limits { entries: ENTRIES, timeout_ns: 0, ..LIMITS });
    drop(t.learn(ip(1), MacAddr::ZERO, true, 0));
    for n in 0..200_000u32 {
        let stranger = Ipv4Addr::from(0x0b00_0000 + n);
        match n % 3 {
            0 => drop(t.wait(stranger, packet(1), n.into())),
            _ => drop(t.learn(stranger, MacAddr::ZERO, false, n.into())),
        }
        let places: usize = t.ages.iter().map(VecDeque::len).sum();
        assert!(t.len() <= ENTRIES && t.held() <= LIMITS.packets && places <= 3 * (2 * ENTRIES + 65));
    }
    assert!(matches!(t.find(ip(1), 300_000), Found::Known { .. }));
    assert!(t.evicted() > 60_000, "{}", t.evicted());
}

#[test]
fn too_many_packets_go_by_a_share_of_the_limit() {
    for (slim_factor, left) in [(1, 1), (2, 3), (3, 4), (100, 6)] {
        let mut t = ArpTable::new(Limits { slim_factor, ..LIMITS });
        let dropped: usize = (0..7).map(|n| t.wait(ip(1), packet(n), 0).1).sum();
        assert_eq!((t.held(), dropped), (left, 7 - left), "1/{slim_factor} of 6 is freed");
    }
    let mut t = ArpTable::new(Limits { packets: 0, ..LIMITS });
    assert_eq!((0..100).map(|n| t.wait(ip(1), packet(n), 0).1).sum::<usize>(), 0, "no limit");
}

#[test]
fn who_does_not_answer_is_asked_again_and_given_up() {
    let mut t = ArpTable::new(LIMITS);
    t.wait(ip(1), packet(1), 0);
    t.wait(ip(2), packet(2), QUERY_INTERVAL_NS);
    let (packets, asked) = t.unanswered(0, QUERY_INTERVAL_NS);
    assert_eq!((packets.len(), packets[0].data(), asked), (1, &[1][..], vec![]));
    let (packets, asked) = t.unanswered(0, 2 * QUERY_INTERVAL_NS);
    assert_eq!((packets.len(), asked, t.held(), t.len()), (0, vec![ip(2)], 1, 1));
    assert_eq!(t.wait(ip(1), packet(3), 9), (true, 0), "it starts anew");
}

proptest! {
    /// Against a list of the packets that wait, oldest first.
    #[test]
    fn packets_leave_by_answer_age_or_order(
        steps in prop::collection::vec((0u8..5, 0u8..3), 0..120),
        capacity in 1usize..8,
    ) {
        let mut table = ArpTable::new(Limits { packets: capacity, ..LIMITS });
        let mut waiting: Vec<(u8, u8)> = Vec::new();
        for (n, (action, host)) in steps.into_iter().enumerate() {
            let now_ns = n as u64;
            match action {
                0..3 => {
                    if table.find(ip(host), now_ns) != Found::Unknown {
                        continue;
                    }
                    waiting.push((host, n as u8));
                    let surplus = waiting.len().saturating_sub(capacity);
                    waiting.drain(..surplus);
                    prop_assert_eq!(table.wait(ip(host), packet(n as u8), now_ns).1, surplus);
                }
                3 => {
                    let (packets, _) = table.learn(ip(host), MacAddr::ZERO, true, now_ns).unwrap();
                    let came: Vec<u8> = packets.map(|p| p.data()[0]).collect();
                    let (ours, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(h, _)| *h == host);
                    prop_assert_eq!(came, ours.into_iter().map(|(_, n)| n).collect::<Vec<_>>());
                    waiting = others;
                }
                _ => {
                    let before = waiting.len();
                    waiting.retain(|(h, _)| *h != host);
                    prop_assert_eq!(table.forget(ip(host)).1, before - waiting.len());
                }
            }
            prop_assert_eq!(table.held(), waiting.len());
            prop_assert!(table.order.len() <= 2 * table.held() + 65);
        }
    }
}

#[test]
fn neighbours_are_copied_in_pieces_by_address() {
    let mut t = ArpTable::new(LIMITS);
    let address = |n: u32| Ipv4Addr::from(0x0a00_0000 + n);
    let many = 2 * PIECE as u32;
    (0..many).rev().for_each(|n| drop(t.learn(address(n), MacAddr::ZERO, true, 1)));
    let (mut last, mut seen) = (None, Vec::new());
    for more in [true, true, false] {
        let mut piece = Vec::new();
        assert_eq!(t.copy(&mut last, 1, &mut piece), more);
        seen.extend(piece.iter().map(|shown| shown.ip));
        // What comes before those that were copied, or goes, is not missed.
        drop(t.learn(Ipv4Addr::from(0x0900_0000 + seen.len() as u32), MacAddr::ZERO, true, 1));
        t.forget(address(0));
    }
    assert_eq!(seen, (0..many).map(address).collect::<Vec<_>>());
}
