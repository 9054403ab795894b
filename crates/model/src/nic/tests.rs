//! The card's engines, one transaction after the other.

use super::*;

fn card() -> Nic {
    Nic::new(NicParameters {
        receive_fifo_bytes: 200,
        transmit_fifo_bytes: 128,
        receive_ring: 4,
        transmit_ring: 4,
        fetch_descriptors: 2,
        report_descriptors: 2,
        throttle_ps: 100,
    })
}

fn frame(number: u64) -> Frame {
    Frame { number, from: 0, to: 1, bytes: 64, arrived_ps: 0, buffer: 0 }
}

#[test]
fn reception_fetches_descriptors_writes_frames_and_reports_them() {
    let mut card = card();
    assert_eq!(card.next(Engine::Receive), None);
    (10..13).for_each(|buffer| card.give(buffer));
    assert_eq!(card.next(Engine::Receive), Some((Transfer::Read, 32)), "two descriptors");
    assert_eq!(card.next(Engine::Receive), None, "one transaction at a time");
    assert_eq!(card.end(Engine::Receive), Some(Effect::Read));
    (0..3).for_each(|number| card.arrive(frame(number)).expect("room"));
    assert_eq!(card.arrive(frame(3)), Err(Overrun::Fifo), "there are descriptors");
    for number in 0..2 {
        assert_eq!(card.next(Engine::Receive), Some((Transfer::Write, 64)));
        let written = Frame { buffer: 10 + number as u32, ..frame(number) };
        assert_eq!(card.end(Engine::Receive), Some(Effect::Received(written)));
    }
    assert_eq!((card.waiting(), card.next(Engine::Receive)), (0, Some((Transfer::Write, 32))), "the report");
    assert_eq!(card.end(Engine::Receive), Some(Effect::ReportedReceived(0, 2)));
    assert_eq!((card.waiting(), card.receive_place(), card.held_received()), (2, 0, 3));
    assert_eq!(card.take().map(|frame| frame.buffer), Some(10));
    assert_eq!(card.receive_place(), 1);
    // The last descriptor is fetched, used, and reported although it is alone.
    for expected in [(Transfer::Read, 16), (Transfer::Write, 64), (Transfer::Write, 16)] {
        assert_eq!(card.next(Engine::Receive), Some(expected));
        card.end(Engine::Receive);
    }
    (4..7).for_each(|number| card.arrive(frame(number)).expect("room"));
    assert_eq!(card.arrive(frame(7)), Err(Overrun::Ring), "there are none");
}

#[test]
fn transmission_fetches_reads_sends_and_reports() {
    let mut card = card();
    assert_eq!([0, 1, 2, 3].map(|number| card.post(frame(number))), [0, 1, 2, 3]);
    assert!(!card.has_room());
    for expected in [(Transfer::Read, 32), (Transfer::Read, 64), (Transfer::Read, 64)] {
        assert_eq!(card.next(Engine::Transmit), Some(expected));
        card.end(Engine::Transmit);
    }
    assert_eq!(card.next(Engine::Transmit), Some((Transfer::Read, 32)), "the next two descriptors");
    card.end(Engine::Transmit);
    assert_eq!(card.next(Engine::Transmit), None, "the FIFO is full");
    assert_eq!(card.begin_wire().map(|frame| frame.number), Some(0));
    assert_eq!(card.begin_wire(), None, "one frame on the wire");
    card.end_wire();
    assert_eq!(card.next(Engine::Transmit), Some((Transfer::Read, 64)));
    assert_eq!(card.next(Engine::Report), Some((Transfer::Write, 16)));
    assert_eq!((card.end(Engine::Report), card.held_to_send()), (Some(Effect::ReportedSent(0, 1)), 3));
    assert_eq!(card.clean().map(|(frame, place)| (frame.number, place)), Some((0, 0)));
    assert_eq!((card.clean(), card.has_room(), card.post(frame(4))), (None, true, 0));
}

#[test]
fn interrupts_are_masked_and_throttled() {
    let mut card = card();
    card.post(frame(0));
    for _ in 0..2 {
        card.next(Engine::Transmit);
        card.end(Engine::Transmit);
    }
    card.begin_wire();
    card.end_wire();
    card.next(Engine::Report);
    assert_eq!(card.interrupts_at(), None, "nothing happened");
    card.end(Engine::Report);
    assert_eq!(card.interrupts_at(), None, "masked");
    card.masked = false;
    assert_eq!(card.interrupts_at(), Some(0));
    card.acknowledge(50);
    assert_eq!(card.interrupts_at(), None);
    card.cause = true;
    assert_eq!((card.interrupts_at(), card.interrupts), (Some(150), 1));
}
