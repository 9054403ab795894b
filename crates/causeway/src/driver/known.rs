//! What is known of packets that programs gave up, on the packet path.

use causeway_elements::devices::{Entry, Luggage as Unpack};
use causeway_fastpath::Luggage;
use causeway_packet::{Packet, PacketType};

/// The luggage of packets that left by one exit, and where they enter the graph.
#[derive(Clone)]
pub struct Way {
    pub luggage: Luggage,
    pub entry: Entry,
}

/// The exits of one program.
#[derive(Clone)]
pub struct Exits {
    /// The number of the first.
    pub first: u32,
    /// By number; none for those whose packets do not go up.
    pub ways: Vec<Option<Way>>,
}

/// The exits of the programs whose packets may still come up, by number.
#[derive(Clone, Default)]
pub struct Known(pub Vec<Exits>);

impl Known {
    /// The exit with this number, whose packets may not go up. Later programs may have lower numbers.
    fn exit(&self, number: u32) -> Option<&Option<Way>> {
        self.0.iter().rev().find_map(|exits| exits.ways.get(number.checked_sub(exits.first)? as usize))
    }
}

/// The type of packets that are addressed so.
fn packet_type(number: u8) -> PacketType {
    let types = [PacketType::Host, PacketType::Broadcast, PacketType::Multicast];
    types.into_iter().find(|&known| known as u8 == number).unwrap_or(PacketType::OtherHost)
}

impl Unpack for Known {
    fn unpack(&self, frame: &mut Packet) -> Entry {
        let Some(front) = frame.in_front::<{ Luggage::MOST }>() else { return Entry::Lost };
        let number = Luggage::number(&front).unwrap_or(0);
        if number == 0 {
            return Entry::Start;
        }
        let Some(Some(way)) = self.exit(number) else { return Entry::Lost };
        let Some(arrival) = way.luggage.unpack(&front) else { return Entry::Lost };
        let [mac, network, transport] = arrival.headers;
        // What receives it has marked the first one, where it usually is.
        mac.into_iter().for_each(|at| frame.set_mac_header(at));
        network.into_iter().for_each(|at| frame.set_network_header(at));
        transport.into_iter().for_each(|at| frame.set_transport_header(at));
        arrival.annotations().for_each(|(at, bytes)| frame.set_anno_bytes(at, bytes));
        if let Some(number) = arrival.packet_type {
            frame.set_packet_type(packet_type(number));
        }
        if let Some(end) = arrival.end {
            frame.truncate(end);
        }
        match frame.pull(arrival.data) {
            Ok(()) => way.entry,
            Err(_) => Entry::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::sends_up;
    use super::*;
    use causeway_engine::ir::{At, Builder, Field, Test};

    /// A frame with these bytes in front of it.
    fn frame<const N: usize>(front: [u8; N]) -> Packet {
        let mut packet = Packet::with_headroom(256).expect("a frame");
        packet.put(Luggage::MOST + 60).expect("room");
        packet.data_mut()[Luggage::MOST - N..][..N].copy_from_slice(&front);
        packet.pull(Luggage::MOST).expect("there");
        packet
    }

    #[test]
    fn frames_as_they_came_and_frames_of_unknown_programs_are_told() {
        let known = Known(vec![Exits { first: 5, ways: vec![None, None] }]);
        assert_eq!(known.unpack(&mut frame([0; 16])), Entry::Start);
        for number in [1, 4, 5, 6, 7, u32::MAX] {
            let mut head = [0xff; 16];
            head[..4].copy_from_slice(&number.to_ne_bytes());
            assert_eq!(known.unpack(&mut frame(head)), Entry::Lost, "{number}");
        }
    }

    #[test]
    fn what_was_known_of_a_packet_is_known_above() {
        let build = |b: &mut Builder| {
            b.put(Field::Length, 40u64);
            b.put(Field::Network, 14u64);
            b.put(Field::Transport, 34u64);
        };
        let Some(compiled) = sends_up(build) else { return };
        let way = |luggage: &Option<Luggage>| Some(Way { luggage: luggage.clone()?, entry: Entry::At(3) });
        let known = Known(vec![Exits { first: 1, ways: compiled.luggage.iter().map(way).collect() }]);
        let number = compiled.luggage.iter().position(Option::is_some).expect("an exit") as u32 + 1;
        let mut head = [0; 16];
        head[..4].copy_from_slice(&number.to_ne_bytes());
        head[4..8].copy_from_slice(&40u32.to_ne_bytes());
        let mut packet = frame(head);
        assert_eq!((known.unpack(&mut packet), packet.len()), (Entry::At(3), 40));
        let behind =
            [packet.network_header(), packet.transport_header()].map(|header| header.map(<[u8]>::len));
        assert_eq!(behind, [Some(26), Some(6)]);
    }

    #[test]
    fn what_was_said_of_a_packet_that_was_written_to_is_known_above() {
        let build = |b: &mut Builder| {
            b.require(Test::Has(At::data(0), 14));
            b.store(At::data(0), 6, 1u64);
            b.put(Field::Mac, 20u64);
            b.put(Field::Anno(8, 8), 1u64);
            b.pull(14);
        };
        let Some(compiled) = sends_up(build) else { return };
        let way = |luggage: &Option<Luggage>| Some(Way { luggage: luggage.clone()?, entry: Entry::At(0) });
        let known = Known(vec![Exits { first: 1, ways: compiled.luggage.iter().map(way).collect() }]);
        let is_touched = |luggage: &Option<Luggage>| luggage.as_ref().is_some_and(Luggage::is_touched);
        let number = compiled.luggage.iter().position(is_touched).expect("an exit") as u32 + 1;
        let [host, broadcast, multicast, other] =
            [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
        for (addressed, kind) in [(0, host), (1, broadcast), (2, multicast), (3, other), (4, other)] {
            let annotation = [9, 8, 7, 6, 5, 4, 3, 2];
            let mut front = [0; 24];
            front[..8].copy_from_slice(&annotation);
            front[8..12].copy_from_slice(&number.to_ne_bytes());
            front[22] = addressed;
            let mut packet = frame(front);
            assert_eq!((known.unpack(&mut packet), packet.len()), (Entry::At(0), 46));
            assert_eq!((packet.packet_type(), packet.anno_bytes(8)), (kind, annotation));
            assert_eq!(packet.mac_header().map(<[u8]>::len), Some(40));
        }
        let mut front = [0; 24];
        front[8..12].copy_from_slice(&number.to_ne_bytes());
        let mut short = frame(front);
        short.truncate(13);
        assert_eq!(known.unpack(&mut short), Entry::Lost, "its data begins behind its end");
    }

    #[test]
    fn exits_are_known_when_their_numbers_begin_anew() {
        let exits = |first, of| Exits { first, ways: vec![None; of] };
        let known = Known(vec![exits(u32::MAX - 2, 2), exits(1, 3)]);
        let numbers = [0, 1, 3, 4, u32::MAX - 3, u32::MAX - 2, u32::MAX - 1, u32::MAX];
        let are_known = numbers.map(|number| known.exit(number).is_some());
        assert_eq!(are_known, [false, true, true, false, false, true, true, false]);
    }
}
