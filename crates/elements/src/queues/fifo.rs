//! The drop-tail queue that Queue and SimpleQueue are. What tells them apart is whether their class notifies.

use crate::printing::contents::to_stderr;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};

/// Arguments of the classes.
pub(super) const ARGS: &[ArgDoc] = &[optional("CAPACITY", "packets", "most packets held; default 1000")];

/// Handlers of the classes.
pub(super) const HANDLERS: &[HandlerDoc] = &[
    reads("length", "packets held now").measures(Unit::Packets),
    reads("highwater_length", "most packets ever held").measures(Unit::Packets).across(Across::Max),
    reads_writes("capacity", "most packets held; packets beyond a new capacity are dropped from the end"),
    reads("drops", "packets that found the queue full").counts(Unit::Packets),
    writes("reset_counts", "sets drops to zero and highwater_length to the present length"),
    writes("reset", "drops all packets held"),
    CONFIG,
];

drop_reasons! {
    /// Drop reasons of the classes.
    pub(super) enum Reason {
        Full = "full", "the queue held CAPACITY packets, and output 1 is not connected";
        Reset = "reset", "written to `reset` or `capacity`";
    }
}

/// Places that are allocated before there are packets for them; a longer queue grows when it must.
pub(super) const READY: usize = 1 << 16;

/// A queue of at most `capacity` packets.
pub(super) struct Fifo {
    packets: causeway_packet::Fifo,
    capacity: usize,
    highwater: usize,
    /// Packets that found the queue full, dropped or sent to output 1.
    overflows: u64,
    /// Whether somebody reads of the first overflow, as of Click's queues.
    tells: bool,
}

/// Reads the configuration that the classes have in common.
pub(super) fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let capacity = conf.optional("CAPACITY", 1_000u32) as usize;
    conf.finish()?;
    let packets = causeway_packet::Fifo::with_capacity(capacity.min(READY));
    Ok(Box::new(Fifo {
        packets,
        capacity,
        highwater: 0,
        overflows: 0,
        tells: conf.env.defaults == Defaults::Click,
    }))
}

impl Fifo {
    /// Tells the neighbours how things stand. Does nothing for a class without notifiers.
    fn notify(&self, cx: &mut Cx<'_>) {
        cx.notify_packets(!self.packets.is_empty());
        if self.packets.len() < self.capacity {
            cx.notify_room(true);
        }
    }

    fn cut(&mut self, len: usize, cx: &mut Cx<'_>) {
        let cut = self.packets.truncate(len);
        cx.count_drops(Reason::Reset, cut as u64);
    }
}

#[cold]
pub(super) fn tell_overflow(cx: &Cx<'_>) {
    to_stderr(&format!("{} :: {}: overflow\n", cx.name(), cx.class()));
}

impl Element for Fifo {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let room = self.capacity.saturating_sub(self.packets.len());
        self.packets.push_batch(batch, room);
        for packet in batch.drain() {
            if self.overflows == 0 && self.tells {
                tell_overflow(cx);
            }
            self.overflows += 1;
            cx.divert(1, Reason::Full, packet);
        }
        self.highwater = self.highwater.max(self.packets.len());
        self.notify(cx);
        // It is the packet that takes the last place that lets sources sleep: one without room at all loses everything.
        if room > 0 && self.packets.len() >= self.capacity {
            cx.notify_room(false);
        }
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.packets.pop_batch(batch, max);
        self.notify(cx);
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
                cx.set_argument("CAPACITY", &self.capacity.to_string());
            }
            "reset" => self.cut(0, cx),
            _ => {
                self.overflows = 0;
                self.highwater = self.packets.len();
            }
        }
        self.notify(cx);
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<Fifo>() {
            self.capacity = new.capacity;
            self.cut(self.capacity, cx);
            self.notify(cx);
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Fifo>() {
            self.packets.append(&mut old.packets);
            self.highwater = old.highwater;
            self.overflows = old.overflows;
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
    use super::super::{queue, simple_queue};
    use super::*;
    use causeway_engine::Spec;
    use causeway_engine::harness::{Harness, Output, Ports};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn queue(spec: &'static Spec, config: &str, second: Output) -> Harness {
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pulled, second] };
        Harness::with_ports(spec, config, &ports).unwrap()
    }

    fn numbered(n: u8) -> Packet {
        Packet::from_bytes(&[n]).unwrap()
    }

    #[test]
    fn keeps_order_and_counts_what_does_not_fit() {
        for spec in [&queue::SPEC, &simple_queue::SPEC] {
            let mut h = queue(spec, "3", Output::Open);
            h.push_all(0, (0..5).map(numbered));
            assert_eq!((h.drops(), h.held()), (vec![("full", 2)], 3));
            let out: Vec<u8> = h.pull(0, 10).iter().map(|p| p.data()[0]).collect();
            assert_eq!(out, [0, 1, 2]);
            let counts = |h: &mut Harness| (h.read("drops").unwrap(), h.read("highwater_length").unwrap());
            assert_eq!(counts(&mut h), ("2".into(), "3".into()));
            h.write("reset_counts", "").unwrap();
            assert_eq!(counts(&mut h), ("0".into(), "0".into()));
            h.assert_balanced();
        }
    }

    #[test]
    fn what_does_not_fit_goes_to_output_1_if_there_is_one() {
        let mut h = queue(&queue::SPEC, "1", Output::Pushed);
        h.push_all(0, (0..3).map(numbered));
        assert_eq!((h.take(1).len(), h.drops(), h.read("drops").unwrap()), (2, vec![], "2".to_owned()));
        h.assert_balanced();
    }

    #[test]
    fn only_the_packet_that_takes_the_last_place_lets_sources_sleep() {
        let mut h = queue(&queue::SPEC, "0", Output::Open);
        h.push_all(0, (0..3).map(numbered));
        assert_eq!((h.has_room(), h.drops()), (true, vec![("full", 3)]));
        h.write("capacity", "2").unwrap();
        h.push_all(0, (0..2).map(numbered));
        assert!(!h.has_room());
        h.pull(0, 1);
        assert!(h.has_room());
    }

    #[test]
    fn a_smaller_capacity_cuts_the_tail() {
        let mut h = queue(&queue::SPEC, "", Output::Open);
        h.push_all(0, (0..10).map(numbered));
        h.write("capacity", "4").unwrap();
        assert_eq!(
            (h.held(), h.drops(), h.read("config").unwrap()),
            (4, vec![("reset", 6)], "CAPACITY 4".into())
        );
        assert!(h.write("capacity", "many").is_err());
        h.write("reset", "").unwrap();
        assert_eq!((h.read("length").unwrap(), h.drops()), ("0".into(), vec![("reset", 10)]));
        h.assert_balanced();
    }

    proptest! {
        #[test]
        fn behaves_as_a_bounded_list(
            capacity in 0usize..20,
            steps in proptest::collection::vec((any::<bool>(), 0usize..12), 0..30),
        ) {
            let mut h = queue(&simple_queue::SPEC, &capacity.to_string(), Output::Open);
            let (mut model, mut next) = (VecDeque::new(), 0u8);
            for (pushes, n) in steps {
                if pushes {
                    let arriving: Vec<u8> = (0..n).map(|i| next.wrapping_add(i as u8)).collect();
                    next = next.wrapping_add(n as u8);
                    h.push_all(0, arriving.iter().map(|&n| numbered(n)));
                    let room = capacity - model.len();
                    model.extend(arriving.into_iter().take(room));
                } else {
                    let pulled: Vec<u8> = h.pull(0, n).iter().map(|p| p.data()[0]).collect();
                    let expected: Vec<u8> = model.drain(..n.min(model.len())).collect();
                    prop_assert_eq!(pulled, expected);
                }
                h.assert_balanced();
            }
        }
    }
}
