//! Links against schedules by hand and analytic bounds.

use super::*;
use crate::event::Queue;
use proptest::prelude::*;

/// One lane of the first generation: 2 Gbit/s of data, a byte takes 4 ns.
const SLOW: PcieParameters = PcieParameters {
    generation: 1,
    lanes: 1,
    payload_bytes: 128,
    read_bytes: 512,
    tags: 32,
    posted_headers: 64,
    posted_data: 1_024,
    read_headers: 64,
    link_layer: 0,
};
/// As cards of 40 Gbit/s had it.
const THIRD: PcieParameters =
    PcieParameters { generation: 3, lanes: 8, payload_bytes: 256, link_layer: 80, ..SLOW };

/// Event of a link that is driven: a direction ends, a read's data are there, a write is taken.
#[derive(Clone, Copy)]
enum Event {
    End(Direction),
    Answer(Packet),
    Taken(u32),
}

/// A link, its clock, and a host that takes so long for reads and writes.
struct Driven {
    link: Pcie,
    queue: Queue<Event>,
    read_ps: Time,
    write_ps: Time,
}

impl Driven {
    fn new(parameters: PcieParameters, read_ps: Time, write_ps: Time) -> Driven {
        Driven { link: Pcie::new(parameters), queue: Queue::new(), read_ps, write_ps }
    }

    fn begin(&mut self) {
        for direction in [Direction::Up, Direction::Down] {
            if let Some(took_ps) = self.link.begin(direction) {
                self.queue.after(took_ps, Event::End(direction));
            }
        }
    }

    /// Until a packet has arrived; when, and which.
    fn next(&mut self) -> Option<(Time, Packet)> {
        self.begin();
        while let Some(event) = self.queue.pop() {
            let mut arrived = None;
            match event {
                Event::End(direction) => {
                    let packet = self.link.end(direction).expect("it was under way");
                    match packet.kind {
                        Kind::Write => self.queue.after(self.write_ps, Event::Taken(packet.bytes)),
                        Kind::Read => self.queue.after(self.read_ps, Event::Answer(packet)),
                        Kind::Completion | Kind::Register => {}
                    }
                    arrived = Some((self.queue.now_ps(), packet));
                }
                Event::Answer(read) => self.link.send(Packet { kind: Kind::Completion, ..read }),
                Event::Taken(bytes) => self.link.taken(bytes),
            }
            self.begin();
            if arrived.is_some() {
                return arrived;
            }
        }
        None
    }

    fn all(&mut self) -> Vec<(Time, Kind, u64, u32)> {
        std::iter::from_fn(|| self.next()).map(|(at, p)| (at / 1_000, p.kind, p.number, p.bytes)).collect()
    }
}

#[test]
fn rates_are_those_of_the_generations() {
    let rate = |generation, lanes| PcieParameters { generation, lanes, ..SLOW }.rate_bps();
    assert_eq!([rate(1, 1), rate(2, 4)], [2_000_000_000, 16_000_000_000]);
    assert_eq!([rate(3, 8), rate(4, 16), rate(5, 16)].map(|bps| bps / 10_000_000), [6_301, 25_206, 50_412]);
    // What is left for packets of 63 Gbit/s in Neugebauer et al., section 3: 57.88.
    assert!((THIRD.rate_bps() as f64 / 57.88e9 - 1.0).abs() < 0.005);
}

#[test]
fn packets_take_what_they_take_by_hand() {
    use Kind::{Completion, Read, Write};
    // 300 bytes in three packets, each with 24 bytes around.
    let mut one = Driven::new(SLOW, 1_000_000, 0);
    one.link.ask(Write, 1, 300);
    assert_eq!(one.all(), [(608, Write, 1, 128), (1_216, Write, 1, 128), (1_488, Write, 1, 44)]);
    // Two requests of 24 bytes; 1 000 ns later 512 + 4 × 20 and 88 + 20 bytes come back.
    let mut two = Driven::new(SLOW, 1_000_000, 0);
    two.link.ask(Read, 2, 600);
    let expected = [
        (96, Read, 2, 512),
        (192, Read, 2, 88),
        (1_096 + 2_368, Completion, 2, 512),
        (3_464 + 432, Completion, 2, 88),
    ];
    assert_eq!(two.all(), expected);
    assert_eq!(two.link.busy_ps(Direction::Down), 2_800_000);
    assert_eq!(two.link.busy_ps(Direction::Up), 192_000);
}

#[test]
fn a_read_waits_for_a_tag_and_a_write_passes_it() {
    use Kind::{Completion, Read, Write};
    let mut driven = Driven::new(PcieParameters { tags: 1, ..SLOW }, 100_000, 0);
    driven.link.ask(Read, 1, 12);
    driven.link.ask(Read, 2, 12);
    driven.link.ask(Write, 3, 76);
    let expected = [
        (96, Read, 1, 12),
        (324, Completion, 1, 12),
        (496, Write, 3, 76),
        (592, Read, 2, 12),
        (820, Completion, 2, 12),
    ];
    assert_eq!(driven.all(), expected);
}

#[test]
fn a_write_waits_for_room_and_no_read_passes_it() {
    use Kind::{Completion, Read, Write};
    // Room for one packet of 64 bytes, for 1 000 ns each.
    let small = PcieParameters { posted_headers: 1, posted_data: 4, payload_bytes: 64, ..SLOW };
    let mut driven = Driven::new(small, 100_000, 1_000_000);
    driven.link.ask(Write, 1, 128);
    driven.link.ask(Read, 2, 12);
    let expected =
        [(352, Write, 1, 64), (1_704, Write, 1, 64), (1_800, Read, 2, 12), (2_028, Completion, 2, 12)];
    assert_eq!(driven.all(), expected);
    // What does not fit into the room for data waits as well.
    let narrow = PcieParameters { posted_headers: 9, posted_data: 7, payload_bytes: 64, ..SLOW };
    let mut driven = Driven::new(narrow, 0, 1_000_000);
    driven.link.ask(Write, 1, 128);
    assert_eq!(driven.all().iter().map(|one| one.0).collect::<Vec<_>>(), [352, 1_704]);
}

/// Bytes of data a second that a card gets which always asks for more, both ways at the same time.
fn saturated(parameters: PcieParameters, bytes: u32, read_ps: Time, kinds: &[Kind]) -> [f64; 2] {
    let mut driven = Driven::new(parameters, read_ps, 0);
    let mut done = [0u64; 2];
    const UNTIL: Time = 200_000_000;
    loop {
        while driven.link.waiting().iter().sum::<usize>() < 64 {
            kinds.iter().for_each(|&kind| driven.link.ask(kind, 0, bytes));
        }
        let (at_ps, packet) = driven.next().expect("there is always something");
        if at_ps > UNTIL {
            return done.map(|bytes| bytes as f64 / (UNTIL as f64 / SECOND as f64));
        }
        match packet.kind {
            Kind::Write => done[0] += u64::from(packet.bytes),
            Kind::Completion => done[1] += u64::from(packet.bytes),
            Kind::Read | Kind::Register => {}
        }
    }
}

#[test]
fn a_link_alone_is_at_its_bound() {
    for (bytes, latency_ps) in [(64, 0), (64, 900_000), (256, 500_000), (512, 100_000), (1_518, 0)] {
        let near = |found: f64, bound: f64, what: &str| {
            assert!(
                (found / bound - 1.0).abs() < 0.015,
                "{what} of {bytes}, {latency_ps} ps: {found}, bound {bound}"
            );
        };
        near(saturated(THIRD, bytes, 0, &[Kind::Write])[0], THIRD.write_bound(bytes), "writes");
        near(
            saturated(THIRD, bytes, latency_ps, &[Kind::Read])[1],
            THIRD.read_bound(bytes, latency_ps),
            "reads",
        );
    }
    // What holds reads of 64 bytes back is tags: twice as many are twice as fast.
    let twice = PcieParameters { tags: 64, ..THIRD };
    let gain = twice.read_bound(64, 900_000) / THIRD.read_bound(64, 900_000);
    assert!((gain - 2.0).abs() < 0.01, "{gain}");
}

#[test]
fn the_directions_have_a_rate_each() {
    let both = saturated(THIRD, 512, 0, &[Kind::Write, Kind::Read]);
    // Requests take some of the way of writes.
    assert!(both[1] > 0.85 * THIRD.read_bound(512, 0), "{both:?}");
    assert!(both[0] > 0.85 * THIRD.write_bound(512), "{both:?}");
    assert!(both[0] + both[1] > 1.7 * THIRD.rate_bps() as f64 / 8.0 * 0.9, "{both:?}");
}

proptest! {
    /// Whatever is asked for arrives once, all of it, and nothing stays in use.
    #[test]
    fn what_is_asked_for_arrives_once(
        asked in proptest::collection::vec((any::<bool>(), 1u32..3_000), 1..60),
        tags in 1u32..8, headers in 1u32..8, data in 16u32..64, latency in 0u64..2_000_000,
    ) {
        let parameters = PcieParameters {
            tags, posted_headers: headers, posted_data: data, read_headers: headers, payload_bytes: 256, ..SLOW
        };
        let mut driven = Driven::new(parameters, latency, latency);
        for (number, &(write, bytes)) in asked.iter().enumerate() {
            driven.link.ask(if write { Kind::Write } else { Kind::Read }, number as u64, bytes);
        }
        let (mut bytes, mut lasts) = (vec![0; asked.len()], vec![0; asked.len()]);
        while let Some((_, packet)) = driven.next() {
            if packet.kind != Kind::Read {
                bytes[packet.number as usize] += packet.bytes;
                lasts[packet.number as usize] += u32::from(packet.last);
            }
        }
        prop_assert_eq!(bytes, asked.iter().map(|one| one.1).collect::<Vec<_>>());
        prop_assert!(lasts.iter().all(|&n| n == 1));
        let link = &driven.link;
        prop_assert_eq!((link.tags, link.read_headers, link.posted_headers, link.posted_data), (0, 0, 0, 0));
    }
}
