use super::*;

const TIMEOUTS: Timeouts = Timeouts {
    tcp_guarantee: 0,
    tcp_no_data: 300,
    tcp_data: 800,
    tcp_done: 30,
    guarantee: 0,
    idle: 100,
    streaming: 500,
};

fn from(port: u16) -> FlowId {
    FlowId::new(1, port, 2, 80)
}

fn to(port: u16) -> FlowId {
    FlowId::new(9, port, 2, 80)
}

fn udp(flows: &mut Flows, port: u16, now_ms: u64) -> Option<Id> {
    flows.insert(Flow::new(from(port), to(port), 17, false, [0, 1]), 0, 0, 0, now_ms)
}

fn tcp(flows: &mut Flows, port: u16, now_ms: u64) -> Option<Id> {
    flows.insert(Flow::new(from(port), to(port), 6, true, [0, 1]), 0, 0, 0, now_ms)
}

/// The ports of the flows that have places.
fn ports(flows: &Flows) -> Vec<u16> {
    let mut ports: Vec<u16> = flows.table.iter().map(|(_, flow)| flow.from.source_port).collect();
    ports.sort_unstable();
    ports
}

fn tally(flows: &mut Flows) -> Tally {
    flows.member(0).unwrap().inputs[0]
}

#[test]
fn a_flow_is_gone_from_the_moment_on_at_which_it_expires() {
    for (guarantee, over) in [(0, 100), (50, 100), (200, 200)] {
        let mut f = Flows::of_one(10, Timeouts { guarantee, ..TIMEOUTS });
        udp(&mut f, 1, 0).unwrap();
        f.reap(over - 1);
        assert!(!f.is_free(0, to(1)) && f.find(0, from(1)).is_some(), "{guarantee}");
        f.sweep(9);
        assert_eq!(ports(&f), [1], "{guarantee}");
        f.reap(over);
        assert!(f.is_free(0, to(1)), "{guarantee}");
        assert_eq!((f.find(0, from(1)), tally(&mut f).flows, f.table.len()), (None, 0, 0), "{guarantee}");
        // By sweeping likewise.
        udp(&mut f, 2, 0).unwrap();
        f.sweep(9);
        assert_eq!(ports(&f), [], "{guarantee}");
    }
}

#[test]
fn the_flow_that_expires_next_makes_room_whatever_it_waits_for() {
    let mut f = Flows::of_one(3, TIMEOUTS);
    tcp(&mut f, 1, 0).unwrap();
    udp(&mut f, 2, 0).unwrap();
    let streaming = udp(&mut f, 3, 0).unwrap();
    (0..4).for_each(|n| f.get_mut(streaming).unwrap().seen(n % 2));
    f.touch(streaming, 0);
    let left = [(4, 50), (5, 60), (6, 250), (7, 260), (8, 270)].map(|(port, now_ms)| {
        udp(&mut f, port, now_ms).unwrap();
        ports(&f)
    });
    assert_eq!(left, [[1, 3, 4], [1, 3, 5], [1, 3, 6], [3, 6, 7], [3, 7, 8]]);
    // One of them had expired, and was none that had to go.
    assert_eq!((tally(&mut f).evicted, tally(&mut f).flows), (4, 3));
}

#[test]
fn a_flow_that_ends_before_all_others_is_refused() {
    let mut f = Flows::of_one(1, TIMEOUTS);
    tcp(&mut f, 1, 0).unwrap();
    assert_eq!([udp(&mut f, 2, 0), udp(&mut f, 2, 199)], [None, None]);
    assert_eq!((ports(&f), tally(&mut f).evicted), (vec![1], 0));
    assert!(udp(&mut f, 2, 200).is_some(), "as late as the other");
    // One with a guarantee is not, but it makes none of those go whose guarantee lasts.
    let mut f = Flows::of_one(1, Timeouts { guarantee: 10, ..TIMEOUTS });
    tcp(&mut f, 1, 0).unwrap();
    assert!(udp(&mut f, 2, 0).is_some());
    assert_eq!([udp(&mut f, 3, 9), tcp(&mut f, 3, 9)], [None, None]);
    assert!(udp(&mut f, 3, 10).is_some());
}

#[test]
fn a_smaller_capacity_ends_flows_without_guarantee_first_and_of_these_the_oldest() {
    let mut f = Flows::of_one(9, Timeouts { guarantee: 1_000, ..TIMEOUTS });
    udp(&mut f, 2, 0).unwrap();
    udp(&mut f, 1, 1).unwrap();
    tcp(&mut f, 4, 2).unwrap();
    tcp(&mut f, 3, 3).unwrap();
    let left = [3, 2, 1, 0].map(|capacity| {
        f.set_capacity(capacity, 5);
        ports(&f)
    });
    assert_eq!(left, [vec![1, 2, 3], vec![1, 2], vec![1], vec![]]);
    assert_eq!(tally(&mut f).evicted, 4);
    // What has expired is not evicted.
    let mut f = Flows::of_one(9, TIMEOUTS);
    udp(&mut f, 1, 0).unwrap();
    udp(&mut f, 2, 1).unwrap();
    f.set_capacity(1, 100);
    assert_eq!((ports(&f), tally(&mut f).evicted), (vec![2], 0));
}

#[test]
fn places_are_freed_as_many_as_are_asked_for() {
    let mut f = Flows::of_one(9, TIMEOUTS);
    (0..5).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    f.reap(1_000);
    let left = [2, 2, 2].map(|most| (f.sweep(most), f.table.len()));
    assert_eq!(left, [(true, 3), (true, 1), (false, 0)]);
    // The end of a guarantee is work, too.
    let mut f = Flows::of_one(9, Timeouts { guarantee: 50, ..TIMEOUTS });
    (0..3).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    f.reap(1_000);
    let left = [2, 2, 2, 2].map(|most| (f.sweep(most), f.table.len()));
    assert_eq!(left, [(true, 3), (true, 2), (true, 0), (false, 0)]);
}

#[test]
fn a_flow_begins_without_the_shifts_of_the_one_before() {
    let mut f = Flows::of_one(9, TIMEOUTS);
    let first = tcp(&mut f, 1, 0).unwrap();
    assert!(f.shift(first, 0, 100, 5) && f.shift(first, 0, 200, 5));
    assert_eq!(f.shifts(first).unwrap().map(|s| s.latest()), [10, 0]);
    f.end(Which::All);
    f.sweep(9);
    let second = tcp(&mut f, 2, 0).unwrap();
    assert!(f.shifts(second).is_none());
    assert!(f.shift(second, 1, 50, -3));
    assert_eq!(f.shifts(second).unwrap().map(|s| s.latest()), [0, -3]);
    assert_eq!(f.shifts.len(), 1, "in the same place");
}

#[test]
fn flows_that_are_ended_are_gone_at_once_and_their_places_are_freed_some_at_a_time() {
    let mut f = Flows::of_one(9, TIMEOUTS);
    (0..5).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    f.end(Which::All);
    assert!((0..5).all(|port| f.is_free(0, to(port))));
    assert_eq!((f.find(0, from(0)), ports(&f)), (None, vec![1, 2, 3, 4]), "whoever finds it frees it");
    // What comes afterwards stays, in whichever place.
    assert!(udp(&mut f, 0, 1).is_some() && udp(&mut f, 3, 1).is_some() && udp(&mut f, 9, 1).is_some());
    let left = [2, 2, 2].map(|most| (f.sweep(most), ports(&f)));
    assert_eq!(left, [(true, vec![0, 2, 3, 4, 9]), (true, vec![0, 3, 4, 9]), (false, vec![0, 3, 9])]);
    assert!(!f.sweep(2));
    assert!([0, 3, 9].iter().all(|&port| f.find(0, from(port)).is_some()));
    assert_eq!((tally(&mut f).flows, tally(&mut f).evicted), (3, 0));
}

#[test]
fn what_is_ended_while_others_are_goes_too() {
    let mut f = Flows::of_one(9, TIMEOUTS);
    f.member(0).unwrap().inputs.push(Tally::default());
    let add = |f: &mut Flows, input, port| {
        let flow = Flow::new(from(port), to(port), 17, false, [0, 1]);
        assert!(f.insert(flow, 0, input, 0, 0).is_some());
    };
    (0..4).for_each(|port| add(&mut f, usize::from(port) % 2, port));
    f.end(Which::Input(0, 0));
    f.sweep(3);
    add(&mut f, 1, 8);
    f.end(Which::Input(0, 1));
    f.end(Which::Input(0, 0));
    assert!((0..9).all(|port| f.find(0, from(port)).is_none()));
    add(&mut f, 0, 9);
    while f.sweep(1) {}
    assert_eq!(ports(&f), [9]);
    // Whose outputs are gone, or whose input is another.
    add(&mut f, 1, 10);
    for (kept, outputs, left) in
        [(vec![true, true], 2, &[9, 10][..]), (vec![false, true], 2, &[10]), (vec![true, true], 1, &[])]
    {
        f.end(Which::But { member: 0, kept, outputs });
        while f.sweep(1) {}
        assert_eq!(ports(&f), left);
    }
}

#[test]
fn flows_beyond_a_smaller_capacity_go_some_at_a_time() {
    let many = 3 * SWEPT as u16;
    let mut f = Flows::of_one(i32::from(many), TIMEOUTS);
    (0..many).for_each(|port| assert!(udp(&mut f, port, u64::from(port / 100)).is_some()));
    f.set_capacity(10, 50);
    assert_eq!(f.table.len(), 2 * SWEPT);
    // New ones come in all the same, each in another's place.
    assert!(udp(&mut f, many, 60).is_some());
    assert_eq!(f.table.len(), 2 * SWEPT);
    while f.sweep(SWEPT) {}
    assert_eq!(ports(&f), (many - 9..=many).collect::<Vec<_>>());
    assert!(udp(&mut f, many + 1, 60).is_some());
    assert_eq!((f.table.len(), f.table.limit()), (10, 10));
}

#[test]
fn no_flow_that_lives_goes_for_another_while_one_that_was_ended_has_a_place() {
    // Those that were ended would wait longest: connections for data, and flows with a guarantee.
    for timeouts in [TIMEOUTS, Timeouts { tcp_guarantee: 1_000, ..TIMEOUTS }] {
        let mut f = Flows::of_one(9, timeouts);
        f.member(0).unwrap().inputs.push(Tally::default());
        for port in 0..6 {
            let id = f.insert(Flow::new(from(port), to(port), 6, true, [0, 1]), 0, 0, 0, 0).unwrap();
            f.touch(id, 0);
        }
        let add =
            |f: &mut Flows, port| f.insert(Flow::new(from(port), to(port), 17, false, [0, 1]), 0, 1, 0, 10);
        (6..9).for_each(|port| assert!(add(&mut f, port).is_some()));
        f.end(Which::Input(0, 0));
        (9..15).for_each(|port| assert!(add(&mut f, port).is_some(), "{port}"));
        assert_eq!(ports(&f), (6..15).collect::<Vec<_>>());
        assert_eq!(f.member(0).unwrap().inputs[1], Tally { flows: 9, failures: 0, evicted: 0 });
    }
}

#[test]
fn where_ended_flows_are_still_looked_for_a_new_one_is_refused_and_none_that_lives_goes() {
    let far = 2 * SEARCHED as u16;
    let mut f = Flows::of_one(i32::from(far) + 2, TIMEOUTS);
    f.member(0).unwrap().inputs.push(Tally::default());
    let add = |f: &mut Flows, input, port| {
        f.insert(Flow::new(from(port), to(port), 17, false, [0, 1]), 0, input, 0, 0)
    };
    (0..far).for_each(|port| assert!(add(&mut f, 0, port).is_some()));
    // The one that is ended has waited as short as others, and its place is the last but one.
    assert!(add(&mut f, 1, far).is_some() && add(&mut f, 0, far + 1).is_some());
    f.end(Which::Input(0, 1));
    assert_eq!([add(&mut f, 0, far + 2), add(&mut f, 0, far + 2)], [None, None]);
    assert!(add(&mut f, 0, far + 2).is_some(), "in the place of the one that was ended");
    assert_eq!((f.table.len(), f.find(0, from(far))), (usize::from(far) + 2, None));
    assert_eq!(tally(&mut f).evicted, 0);
}

#[test]
fn what_is_ended_again_and_again_is_come_to_all_the_same() {
    let mut f = Flows::of_one(9, TIMEOUTS);
    f.member(0).unwrap().inputs.push(Tally::default());
    (0..9).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    for n in 0..5 {
        f.end(Which::Input(0, n % 2));
        f.sweep(2);
    }
    assert_eq!(ports(&f), []);
    assert!(udp(&mut f, 1, 0).is_some());
    while f.sweep(2) {}
    assert!(f.find(0, from(1)).is_some() && f.ended.is_empty());
}

#[test]
fn places_that_are_added_do_not_count_for_those_that_ended_flows_have() {
    let mut f = Flows::of_one(99, TIMEOUTS);
    f.member(0).unwrap().inputs.push(Tally::default());
    (0..6).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    f.end(Which::Input(0, 1));
    f.sweep(3);
    f.end(Which::Input(0, 0));
    for port in 6..8 {
        let flow = Flow::new(from(port), to(port), 17, false, [0, 1]);
        assert!(f.insert(flow, 0, 1, 0, 0).is_some());
    }
    f.sweep(9);
    assert_eq!((f.find(0, from(1)), ports(&f)), (None, vec![6, 7]));
}

#[test]
fn a_late_packet_of_an_ended_flow_keeps_nothing_of_it() {
    let mut f = Flows::of_one(2, TIMEOUTS);
    let id = udp(&mut f, 1, 0).unwrap();
    f.touch(id, 90);
    f.end(Which::All);
    assert_eq!((f.find(0, from(1)), ports(&f)), (None, vec![]));
    assert_eq!((f.is_free(0, to(1)), tally(&mut f).flows), (true, 0));
}

#[test]
fn a_larger_capacity_moves_flows_some_at_a_time() {
    let many = 3 * SWEPT as u16;
    let mut f = Flows::of_one(i32::from(many), TIMEOUTS);
    (0..many).for_each(|port| assert!(udp(&mut f, port, 0).is_some()));
    f.set_capacity(10 * i32::from(many), 1);
    let found = |f: &mut Flows| (0..many).all(|port| f.find(0, from(port)).is_some());
    // The first ones have moved, and one sweep more is not enough.
    assert!(found(&mut f) && f.sweep(SWEPT) && f.sweep(1));
    assert!(found(&mut f) && udp(&mut f, many, 1).is_some());
    while f.sweep(SWEPT) {}
    assert!(found(&mut f));
}
