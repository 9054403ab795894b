//! The queues that do not drop what comes when they are full, but a packet that they hold: FrontDropQueue and MixedQueue.

use super::fifo::{READY, Reason, tell_overflow};
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use std::collections::VecDeque;

/// Which packet makes room for another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loser {
    /// The one that waited longest.
    First,
    /// On input 0 the one that comes; on input 1, where packets enter at the front, the last one.
    Last,
}

pub(super) struct Deque {
    packets: VecDeque<Packet>,
    capacity: usize,
    loser: Loser,
    highwater: usize,
    /// Packets that made room or found none, dropped or sent to output 1.
    overflows: u64,
    /// Whether somebody reads of the first overflow, as of Click's queues.
    tells: bool,
}

pub(super) fn build(conf: &mut Conf<'_>, loser: Loser) -> Result<Box<dyn Element>, Invalid> {
    let capacity = conf.optional("CAPACITY", 1_000u32) as usize;
    conf.finish()?;
    let tells = conf.env.defaults == Defaults::Click;
    Ok(Box::new(Deque {
        packets: VecDeque::with_capacity(capacity.min(READY)),
        capacity,
        loser,
        highwater: 0,
        overflows: 0,
        tells,
    }))
}

impl Deque {
    /// Stores a packet that came in by `port`; returns the one for which there is no room.
    fn insert(&mut self, port: usize, packet: Packet) -> Option<Packet> {
        let full = self.packets.len() >= self.capacity;
        if full && (self.capacity == 0 || (port == 0 && self.loser == Loser::Last)) {
            return Some(packet);
        }
        let lost = match self.loser {
            _ if !full => None,
            Loser::First => self.packets.pop_front(),
            Loser::Last => self.packets.pop_back(),
        };
        if port == 0 {
            self.packets.push_back(packet)
        } else {
            self.packets.push_front(packet)
        }
        self.highwater = self.highwater.max(self.packets.len());
        lost
    }

    /// Drops packets beyond `len`, beginning with those that would make room for others.
    fn cut(&mut self, len: usize, cx: &mut Cx<'_>) {
        let beyond = self.packets.len().saturating_sub(len);
        let range = if self.loser == Loser::First {
            0..beyond
        } else {
            len.min(self.packets.len())..self.packets.len()
        };
        cx.count_drops(Reason::Reset, self.packets.drain(range).count() as u64);
        cx.notify_packets(!self.packets.is_empty());
    }
}

impl Element for Deque {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for packet in batch.drain() {
            let Some(lost) = self.insert(port, packet) else { continue };
            if self.overflows == 0 && self.tells && self.capacity > 0 {
                tell_overflow(cx);
            }
            self.overflows += 1;
            cx.divert(1, Reason::Full, lost);
        }
        cx.notify_packets(!self.packets.is_empty());
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = self.packets.len().min(max).min(batch.room());
        batch.extend(self.packets.drain(..n));
        cx.notify_packets(!self.packets.is_empty());
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "length" => self.packets.len().to_string(),
            "highwater_length" => self.highwater.to_string(),
            "capacity" => self.capacity.to_string(),
            _ => self.overflows.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "capacity" => {
                self.capacity = cx.value::<u32>(handler, value)? as usize;
                self.cut(self.capacity, cx);
            }
            "reset" => self.cut(0, cx),
            _ => {
                self.overflows = 0;
                self.highwater = self.packets.len();
            }
        }
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<Deque>() {
            self.capacity = new.capacity;
            self.cut(self.capacity, cx);
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Deque>() {
            self.packets.append(&mut old.packets);
            (self.highwater, self.overflows) = (old.highwater, old.overflows);
            self.cut(self.capacity, cx);
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{front_drop_queue, mixed_queue};
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn queue(spec: &'static Spec, inputs: usize, second: Output) -> Harness {
        let ports = Ports { pulled_inputs: vec![false; inputs], outputs: vec![Output::Pulled, second] };
        Harness::with_ports(spec, "3", &ports).unwrap()
    }

    fn text(packets: &[Packet]) -> String {
        packets.iter().map(|p| char::from(p.data()[0])).collect()
    }

    #[test]
    fn the_first_makes_room_for_the_last() {
        let mut h = queue(&front_drop_queue::SPEC, 1, Output::Pushed);
        h.push_all(0, b"ABCDE".iter().map(|&b| packet(&[b])));
        assert_eq!(
            (text(&h.take(1)), h.read("drops").unwrap(), h.read("length").unwrap()),
            ("AB".into(), "2".into(), "3".into())
        );
        h.write("capacity", "2").unwrap();
        assert_eq!(
            (text(&h.pull(0, 9)), h.drops(), h.read("config").unwrap()),
            ("DE".into(), vec![("reset", 1)], "2".into())
        );
        h.assert_balanced();
        let mut h = queue(&front_drop_queue::SPEC, 1, Output::Open);
        h.push_all(0, b"ABCDE".iter().map(|&b| packet(&[b])));
        assert_eq!(h.drops(), [("full", 2)]);
        h.write("reset_counts", "").unwrap();
        assert_eq!((h.read("drops").unwrap(), h.read("highwater_length").unwrap()), ("0".into(), "3".into()));
        h.write("reset", "").unwrap();
        assert_eq!((h.held(), h.drops()), (0, vec![("full", 2), ("reset", 3)]));
        h.write("config", "0").unwrap();
        h.push(0, packet(b"F"));
        assert_eq!((h.held(), h.read("capacity").unwrap()), (0, "0".into()));
        h.assert_balanced();
    }

    #[test]
    fn packets_enter_at_both_ends() {
        let mut h = queue(&mixed_queue::SPEC, 2, Output::Pushed);
        for (port, byte) in [(0, b'A'), (0, b'B'), (1, b'C'), (0, b'D'), (1, b'E')] {
            h.push(port, packet(&[byte]));
        }
        // D found no room, and B made room for E.
        assert_eq!(text(&h.take(1)), "DB");
        assert_eq!((text(&h.pull(0, 9)), h.read("highwater_length").unwrap()), ("ECA".into(), "3".into()));
        h.push_all(0, b"XYZ".iter().map(|&b| packet(&[b])));
        h.write("capacity", "1").unwrap();
        assert_eq!(text(&h.pull(0, 9)), "X");
        h.assert_balanced();
    }
}
