//! CPUQueue.

use super::fifo::READY;
use causeway_engine::prelude::*;
use causeway_packet::Fifo;

pub(crate) static SPEC: Spec = Spec {
    name: "CPUQueue",
    category: "queues",
    summary: "stores packets in a FIFO queue from which several may pull",
    ports: "1/1-",
    processing: "h/l",
    doc: "Holds up to CAPACITY packets, and drops those that come when it is full. Pullers are not told when there are packets: \
          they ask again and again. Click's has a queue of CAPACITY packets for each processor; here the copy of a graph on \
          another worker has its own. A hot swap keeps the packets.",
    args: &[optional("CAPACITY", "packets", "most packets held; default 128")],
    handlers: &[
        reads("capacity", "most packets held").measures(Unit::Packets),
        reads("drops", "packets that found the queue full").counts(Unit::Packets),
    ],
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> q :: CPUQueue(200) -> Unqueue -> Discard; \
              q[1] -> Unqueue -> Discard;",
    see: &["Queue", "SimpleQueue"],
    stores: true,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Full = "full", "the queue held CAPACITY packets";
    }
}

struct CPUQueue {
    packets: Fifo,
    capacity: usize,
    drops: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let capacity = conf.optional("CAPACITY", 128u32) as usize;
    conf.finish()?;
    Ok(Box::new(CPUQueue { packets: Fifo::with_capacity(capacity.min(READY)), capacity, drops: 0 }))
}

impl CPUQueue {
    fn count_drops(&mut self, n: usize, cx: &mut Cx<'_>) {
        self.drops += n as u64;
        cx.count_drops(Reason::Full, n as u64);
    }
}

impl Element for CPUQueue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.packets.push_batch(batch, self.capacity.saturating_sub(self.packets.len()));
        self.count_drops(batch.len(), cx);
        batch.clear();
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.packets.pop_batch(batch, max);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "drops" { self.drops.to_string() } else { self.capacity.to_string() })
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<CPUQueue>() {
            self.packets.append(&mut old.packets);
            self.drops = old.drops;
            let cut = self.packets.truncate(self.capacity);
            self.count_drops(cut, cx);
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn several_pull_from_one_queue() {
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pulled; 2] };
        let mut h = Harness::with_ports(&SPEC, "3", &ports).unwrap();
        h.push_all(0, (0..5).map(|n| packet(&[n])));
        let mut pull = |port| h.pull(port, 1).iter().map(|p| p.data()[0]).collect::<Vec<_>>();
        assert_eq!([pull(0), pull(1), pull(0), pull(1)], [vec![0], vec![1], vec![2], vec![]]);
        assert_eq!((h.read("drops").unwrap(), h.drops()), ("2".into(), vec![("full", 2)]));
        h.assert_balanced();
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        assert_eq!(h.read("capacity").unwrap(), "128");
    }
}
