//! Packets, batches and the pool against simple models.

use causeway_packet::{Anno, BATCH, Batch, NoRoom, Packet, PacketType};
use proptest::prelude::*;
use std::sync::mpsc;

#[derive(Clone, Debug)]
enum Op {
    Push(usize),
    Pull(usize),
    Put(usize),
    Take(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0usize..300).prop_map(Op::Push),
        (0usize..300).prop_map(Op::Pull),
        (0usize..900).prop_map(Op::Put),
        (0usize..300).prop_map(Op::Take),
    ]
}

proptest! {
    /// The data window behaves as a byte vector that grows and shrinks at both ends, and header marks stay put.
    #[test]
    fn the_window_is_a_double_ended_vector(ops in prop::collection::vec(op(), 0..40)) {
        let mut p = Packet::from_bytes(b"0123456789abcdef").unwrap();
        let mut model = b"0123456789abcdef".to_vec();
        p.set_network_header(4);
        let mut mark = Some(4usize);
        for op in ops {
            let frame = p.headroom() + p.len() + p.tailroom();
            match op {
                Op::Push(n) => match p.push(n) {
                    Ok(data) => {
                        data[..n].fill(0xaa);
                        model.splice(0..0, vec![0xaa; n]);
                        mark = mark.map(|m| m + n);
                    }
                    Err(NoRoom) => prop_assert!(model.len() + n > frame),
                },
                Op::Pull(n) => match p.pull(n) {
                    Ok(()) => {
                        model.drain(..n);
                        mark = mark.and_then(|m| m.checked_sub(n));
                    }
                    Err(NoRoom) => prop_assert!(n > model.len()),
                },
                Op::Put(n) => match p.put(n) {
                    Ok(new) => {
                        new.fill(0xbb);
                        model.extend(vec![0xbb; n]);
                    }
                    Err(NoRoom) => prop_assert!(p.headroom() + model.len() + n > frame),
                },
                Op::Take(n) => match p.take(n) {
                    Ok(()) => model.truncate(model.len() - n),
                    Err(NoRoom) => prop_assert!(n > model.len()),
                },
            }
            prop_assert_eq!(p.data(), &model[..]);
            if let (Some(m), Some(at)) = (mark, p.network_offset()) {
                prop_assert_eq!(m, at);
            }
            if mark.is_none() {
                // Pulled past: the mark is before the data. Nothing that follows is compared with it.
                p.clear_headers();
            }
        }
    }

    /// A batch behaves as a vector of at most `BATCH` packets.
    #[test]
    fn a_batch_is_a_vector(sizes in prop::collection::vec(0usize..64, 0..600), keep in any::<u64>(), max in 0usize..300) {
        let mut batch = Batch::new();
        let mut model = Vec::new();
        for n in sizes {
            let packet = Packet::from_bytes(&vec![n as u8; n]).unwrap();
            match batch.push(packet) {
                Ok(()) => model.push(n),
                Err(_) => prop_assert_eq!(model.len(), BATCH),
            }
        }
        batch.filter_map(|p| (keep >> p.len() & 1 == 1).then_some(p));
        model.retain(|n| keep >> n & 1 == 1);
        let mut front = Batch::new();
        front.append_up_to(&mut batch, max);
        let rest = model.split_off(max.min(model.len()));
        prop_assert_eq!(front.iter().map(Packet::len).collect::<Vec<_>>(), model);
        prop_assert_eq!(batch.drain().map(|p| p.len()).collect::<Vec<_>>(), rest);
        prop_assert!(batch.is_empty());
    }
}

#[test]
fn a_copy_is_equal_and_apart() {
    let mut p = Packet::from_bytes(b"hello, router").unwrap();
    p.set_paint(7);
    p.set_network_header(5);
    p.set_timestamp_ns(42);
    let mut q = p.copy().unwrap();
    q.data_mut()[0] = b'J';
    assert_eq!((p.data(), q.data()), (&b"hello, router"[..], &b"Jello, router"[..]));
    assert_eq!((q.paint(), q.network_offset(), q.timestamp_ns()), (7, Some(5), 42));
}

#[test]
fn a_fresh_packet_has_no_history() {
    let mut p = Packet::from_bytes(b"x").unwrap();
    p.set_anno_u32(Anno::AGGREGATE.offset, 9);
    p.set_network_header(0);
    drop(p);
    // The magazine hands out the frame that was freed last.
    let p = Packet::from_bytes(b"y").unwrap();
    assert_eq!((p.anno_u32(Anno::AGGREGATE.offset), p.network_offset()), (0, None));
}

#[test]
fn annotations_outside_the_area_are_harmless() {
    let mut p = Packet::from_bytes(b"x").unwrap();
    p.set_anno_u32(45, 1);
    p.set_anno_u8(200, 1);
    assert_eq!((p.anno_u32(45), p.anno_u8(200)), (0, 0));
}

#[test]
fn frames_travel_between_threads_and_none_is_in_two_places() {
    const FRAMES: usize = 20_000;
    let (to, from) = mpsc::channel::<Vec<Packet>>();
    let freer = std::thread::spawn(move || {
        let mut seen = 0u64;
        for batch in from {
            for (i, p) in batch.into_iter().enumerate() {
                assert_eq!(p.data(), (i as u64).to_ne_bytes(), "a frame had two owners");
                seen += 1;
            }
        }
        seen
    });
    for _ in 0..50 {
        let batch: Vec<Packet> =
            (0..FRAMES as u64 / 50).map(|i| Packet::from_bytes(&i.to_ne_bytes()).unwrap()).collect();
        to.send(batch).unwrap();
    }
    drop(to);
    assert_eq!(freer.join().unwrap(), FRAMES as u64);
}

proptest! {
    /// Annotations and what else is far away, against plain values: through copies, and in frames that were used before.
    #[test]
    fn annotations_are_an_array(steps in proptest::collection::vec((0u8..8, 0u8..60, 1u8..255), 0..40)) {
        let (mut p, mut annos, mut time) = (Packet::from_bytes(b"x").unwrap(), [0u8; 48], 0);
        for (step, at, value) in steps {
            let wide = |n: usize| (at as usize + n <= 48).then_some(at as usize..at as usize + n);
            match step {
                0 => p.set_anno_u8(at, value),
                1 => p.set_anno_bytes(at, [value; 4]),
                2 => p.set_anno_bytes(at, [value; 16]),
                3 => p.set_timestamp_ns(value.into()),
                4 => p = p.copy().unwrap(),
                5 => {
                    let mut q = Packet::from_bytes(b"x").unwrap();
                    q.set_anno_u8(47, value);
                    q.copy_annos(&p);
                    p = q;
                }
                6 => p.clear_annos(),
                _ => p.forget(),
            }
            match step {
                0..=2 => wide([1, 4, 16][step as usize]).into_iter().for_each(|r| annos[r].fill(value)),
                3 => time = u64::from(value),
                6 => annos = [0; 48],
                7 => (annos, time) = ([0; 48], 0),
                _ => {}
            }
            prop_assert_eq!(p.timestamp_ns(), time);
            prop_assert_eq!(p.anno_bytes::<48>(0), annos);
            prop_assert_eq!(p.anno_u8(at), annos.get(at as usize).copied().unwrap_or(0));
            let four = wide(4).map_or([0; 4], |r| annos[r].try_into().unwrap());
            prop_assert_eq!(p.anno_bytes::<4>(at), four);
        }
        p.set_wire_len(99);
        p.set_transmit_tag(7);
        prop_assert_eq!((p.wire_len(), p.transmit_tag(), p.copy().unwrap().transmit_tag()), (99, Some(7), None));
        drop(p);
        let fresh = Packet::from_bytes(b"y").unwrap();
        prop_assert_eq!((fresh.wire_len(), fresh.transmit_tag(), fresh.timestamp_ns()), (1, None, 0));
        prop_assert_eq!(fresh.anno_bytes::<48>(0), [0; 48]);
    }
}

#[test]
fn a_derived_packet_keeps_what_describes_it_and_no_more() {
    let (mut from, mut to) = (Packet::from_bytes(b"from").unwrap(), Packet::from_bytes(b"to").unwrap());
    from.set_packet_type(PacketType::Multicast);
    from.set_rx_port(3);
    from.set_flow_hash(4);
    from.set_timestamp_ns(5);
    from.set_wire_len(60);
    from.set_transmit_tag(7);
    to.copy_annos(&from);
    assert_eq!((to.packet_type(), to.rx_port(), to.flow_hash()), (PacketType::Multicast, 3, 4));
    assert_eq!((to.timestamp_ns(), to.wire_len(), to.transmit_tag()), (5, 2, None));
    assert_eq!((to.copy().unwrap().timestamp_ns(), from.copy().unwrap().wire_len()), (5, 60));
    // Nor does it lose what is its own, whether the other has any of it or not.
    to.set_wire_len(80);
    to.set_transmit_tag(8);
    for other in [from, Packet::from_bytes(b"other").unwrap()] {
        to.copy_annos(&other);
        to.clear_annos();
        assert_eq!((to.timestamp_ns(), to.wire_len()), (other.timestamp_ns(), 80));
        assert_eq!(to.transmit_tag(), Some(8));
    }
    to.put(100).unwrap();
    assert_eq!(to.wire_len(), 102, "it grew beyond");
}

#[test]
fn two_headers_are_marked_as_each_by_itself() {
    let marked = |pull: usize, mark: &dyn Fn(&mut Packet)| {
        let mut p = Packet::from_bytes(&[0; 1_000]).unwrap();
        p.pull(pull).unwrap();
        mark(&mut p);
        (p.network_offset(), p.transport_offset())
    };
    for (pull, len) in [(0, 0), (0, 20), (40, 0), (40, 20)] {
        for network in 0..2_100 {
            let both = marked(pull, &|p| p.set_network_headers(network, len));
            let each = marked(pull, &|p| {
                p.set_network_header(network);
                p.set_transport_header(network + len);
            });
            assert_eq!(both, each, "{network} and {len} behind {pull}");
        }
    }
}

#[test]
fn a_batch_is_filled_with_copies() {
    let frames: Vec<Vec<u8>> = (0..300).map(|n| vec![n as u8; n * 10]).collect();
    let mut batch = Batch::new();
    let all = || frames.iter().map(|f| &f[..]);
    assert_eq!(batch.extend_copies(all().take(3)), 3);
    // Frames above the size of a packet's are left out.
    assert_eq!(batch.extend_copies(all()), 205);
    let expected: Vec<usize> =
        [0, 10, 20].into_iter().chain((0..253).map(|n| n * 10).filter(|&n| n <= 2_048)).collect();
    assert_eq!(batch.iter().map(Packet::len).collect::<Vec<_>>(), expected);
    assert!(batch.iter().all(|p| p.data().iter().all(|&b| usize::from(b) * 10 == p.len())));
    let long = batch.iter().find(|p| p.len() == 2_000).unwrap();
    assert_eq!((long.headroom(), batch[1].headroom()), (48, Packet::HEADROOM));
    assert_eq!(
        (batch.extend_copies(all().take(100)), batch.extend_copies(all()), batch.len()),
        (48, 0, BATCH)
    );
}
