//! Queue.

use causeway_engine::spec::{Notifies, drops, optional, reads, reads_writes, writes};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::{Batch, Packet};
use std::collections::VecDeque;

pub(crate) static SPEC: Spec = Spec {
    name: "Queue",
    aliases: &["FullNoteQueue"],
    category: "queues",
    summary: "stores packets in a drop-tail FIFO queue",
    ports: "1/1-2",
    processing: "h/lh",
    doc: "Keeps at most CAPACITY packets, first in, first out. A packet that finds the queue full goes to output 1 \
          if that is connected and is dropped otherwise. Pullers sleep while the queue is empty, and sources sleep \
          while it is full, so an InfiniteSource in front of it stops and loses nothing.",
    args: &[optional("CAPACITY", "packets", "most packets held; default 1000")],
    handlers: &[
        reads("length", "packets held now"),
        reads("highwater_length", "most packets ever held"),
        reads_writes("capacity", "most packets held; packets beyond a new capacity are dropped from the end"),
        reads("drops", "packets dropped because the queue was full"),
        writes("reset_counts", "sets drops and highwater_length back"),
        writes("reset", "drops all packets held"),
    ],
    drops: &[
        drops("full", "the queue held CAPACITY packets"),
        drops("reset", "written to `reset` or `capacity`"),
    ],
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> Queue(200) -> Unqueue -> Discard;",
    see: &["SimpleQueue", "Unqueue"],
    notifies: Notifies { packets: true, room: true },
    build,
    ..Spec::DEFAULT
};

const FULL: usize = 0;
const RESET: usize = 1;

struct Queue {
    packets: VecDeque<Packet>,
    capacity: usize,
    highwater: usize,
    /// Drops that `reset_counts` has forgotten.
    forgotten: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let capacity = conf.optional("CAPACITY", 1_000u32);
    conf.finish()?;
    Ok(Box::new(Queue { packets: VecDeque::new(), capacity: capacity as usize, highwater: 0, forgotten: 0 }))
}

impl Queue {
    fn notify(&self, cx: &mut Cx<'_>) {
        cx.notify_packets(!self.packets.is_empty());
        cx.notify_room(self.packets.len() < self.capacity);
    }

    fn cut(&mut self, len: usize, cx: &mut Cx<'_>) {
        let cut = self.packets.drain(len.min(self.packets.len())..).count();
        cx.count_drops(RESET, cut as u64);
    }
}

impl Element for Queue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for packet in batch.drain() {
            if self.packets.len() < self.capacity {
                self.packets.push_back(packet);
            } else {
                cx.divert(1, FULL, packet);
            }
        }
        self.highwater = self.highwater.max(self.packets.len());
        self.notify(cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = self.packets.len().min(max).min(batch.room());
        batch.extend(self.packets.drain(..n));
        self.notify(cx);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "length" => self.packets.len().to_string(),
            "highwater_length" => self.highwater.to_string(),
            "capacity" => self.capacity.to_string(),
            _ => (cx.dropped_for(FULL) - self.forgotten).to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        match handler {
            "capacity" => {
                self.capacity =
                    value.trim().parse().map_err(|_| format!("'{value}' is not a number of packets"))?;
                self.cut(self.capacity, cx);
                cx.set_config(format!("CAPACITY {}", self.capacity));
            }
            "reset" => self.cut(0, cx),
            _ => {
                self.forgotten = cx.dropped_for(FULL);
                self.highwater = self.packets.len();
            }
        }
        self.notify(cx);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Queue>() {
            self.packets = std::mem::take(&mut old.packets);
            self.highwater = old.highwater;
            self.cut(self.capacity, cx);
            self.notify(cx);
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    fn queue(config: &str, second: Output) -> Harness {
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pulled, second] };
        Harness::with_ports(&SPEC, config, &ports).unwrap()
    }

    fn numbered(n: u8) -> Packet {
        Packet::from_bytes(&[n]).unwrap()
    }

    #[test]
    fn keeps_order_and_counts_what_does_not_fit() {
        let mut h = queue("3", Output::Open);
        h.push_all(0, (0..5).map(numbered));
        assert_eq!((h.drops(), h.held()), (vec![("full", 2)], 3));
        let out: Vec<u8> = h.pull(0, 10).iter().map(|p| p.data()[0]).collect();
        assert_eq!(out, [0, 1, 2]);
        assert_eq!((h.read("drops").unwrap(), h.read("highwater_length").unwrap()), ("2".into(), "3".into()));
        h.write("reset_counts", "").unwrap();
        assert_eq!((h.read("drops").unwrap(), h.read("highwater_length").unwrap()), ("0".into(), "0".into()));
    }

    #[test]
    fn what_does_not_fit_goes_to_output_1_if_there_is_one() {
        let mut h = queue("1", Output::Pushed);
        h.push_all(0, (0..3).map(numbered));
        assert_eq!((h.take(1).len(), h.drops()), (2, vec![]));
        h.assert_balanced();
    }

    #[test]
    fn a_smaller_capacity_cuts_the_tail() {
        let mut h = queue("", Output::Open);
        h.push_all(0, (0..10).map(numbered));
        h.write("capacity", "4").unwrap();
        assert_eq!(
            (h.held(), h.drops(), h.read("config").unwrap()),
            (4, vec![("reset", 6)], "CAPACITY 4".into())
        );
        assert!(h.write("capacity", "many").is_err());
    }
}
