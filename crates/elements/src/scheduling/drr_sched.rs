//! DRRSched.

use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;

pub(crate) static SPEC: Spec = Spec {
    name: "DRRSched",
    category: "scheduling",
    summary: "pulls from its inputs by deficit round robin",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers pulls with packets of each input in turn, so that all inputs give as many bytes (Shreedhar and Varghese, \
          *Efficient Fair Queuing using Deficit Round Robin*, SIGCOMM 1995): at its turn an input may give QUANTUM bytes \
          more, and what it may not give yet waits at its head. Inputs whose notifiers say that there is nothing are not \
          asked, and lose what they have saved up.",
    args: Quantum::ARGS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] d :: DRRSched(1500) -> Discard; Idle -> [1] d;",
    see: &["RoundRobinSched", "StrideSched", "PrioSched"],
    notifies: Notifies { packets: true, room: false },
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Quantum {
        bytes: i32 = optional("QUANTUM", "bytes", "how much more an input may give at each turn; default 500"), or(500);
    }
}

struct DrrSched {
    quantum: u64,
    inputs: Vec<Input>,
    /// Input whose turn it is.
    next: usize,
}

#[derive(Default)]
struct Input {
    /// A packet that was longer than the input might give.
    head: Option<Packet>,
    /// Bytes that it may give.
    deficit: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let quantum = u64::try_from(Quantum::configure(conf).bytes).unwrap_or(0);
    if quantum == 0 && conf.errors().is_empty() {
        conf.error("bad QUANTUM");
    }
    conf.finish()?;
    let inputs = (0..conf.n_inputs()).map(|_| Input::default()).collect();
    Ok(Box::new(DrrSched { quantum, inputs, next: 0 }))
}

impl DrrSched {
    /// The next packet, if there is any: rounds in which all inputs only save up cost the puller nothing.
    fn give(&mut self, one: &mut Batch, cx: &mut Cx<'_>) -> Option<Packet> {
        let n = self.inputs.len();
        loop {
            let mut waits = false;
            for _ in 0..n {
                let input = &mut self.inputs[self.next];
                let packet = match input.head.take() {
                    Some(packet) => Some(packet),
                    None if cx.packets_upstream(self.next) => {
                        cx.pull(self.next, 1, one);
                        one.pop()
                    }
                    None => None,
                };
                match packet {
                    None => input.deficit = 0,
                    Some(packet) if packet.len() as u64 <= input.deficit => {
                        input.deficit -= packet.len() as u64;
                        return Some(packet);
                    }
                    Some(packet) => {
                        input.head = Some(packet);
                        waits = true;
                    }
                }
                self.next = (self.next + 1) % n;
                self.inputs[self.next].deficit += self.quantum;
            }
            if !waits {
                let upstream = (0..n).any(|i| cx.packets_upstream(i));
                cx.notify_packets(upstream);
                return None;
            }
        }
    }
}

impl Element for DrrSched {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut one = cx.lend_batch();
        while batch.len() < max && batch.room() > 0 {
            let Some(packet) = self.give(&mut one, cx) else { break };
            // There is room.
            let _ = batch.push(packet);
        }
        cx.return_batch(one);
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<DrrSched>() {
            for (input, old) in self.inputs.iter_mut().zip(&mut old.inputs) {
                *input = std::mem::take(old);
            }
        }
    }

    fn held(&self) -> usize {
        self.inputs.iter().filter(|input| input.head.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn sched(inputs: usize, config: &str) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![true; inputs], outputs: vec![Output::Pulled] };
        Harness::with_ports(&SPEC, config, &ports)
    }

    #[test]
    fn inputs_give_as_many_bytes() {
        let mut h = sched(2, "500").unwrap();
        for _ in 0..300 {
            h.feed(0, packet(&[0; 1_000]));
            h.feed(1, packet(&[1; 100]));
        }
        let mut bytes = [0; 2];
        for _ in 0..330 {
            for packet in h.pull(0, 1) {
                bytes[usize::from(packet.data()[0])] += packet.len();
            }
            h.assert_balanced();
        }
        // To within a packet and a quantum.
        assert!(bytes[0].abs_diff(bytes[1]) <= 1_500 && bytes[1] > 9_000, "{bytes:?}");
    }

    #[test]
    fn what_is_too_long_for_now_comes_after_rounds_enough() {
        let mut h = sched(1, "10").unwrap();
        h.feed(0, packet(&[0; 35]));
        h.feed(0, packet(&[0; 5]));
        // It gets what four rounds give, and the other one needs no more.
        assert_eq!((h.pull(0, 1).len(), h.pull(0, 1).len(), h.pull(0, 1).len()), (1, 1, 0));
        assert_eq!(sched(1, "0").err().unwrap(), ["bad QUANTUM"]);
        assert!(sched(0, "").unwrap().pull(0, 9).is_empty());
    }

    /// From which inputs packets of these lengths come, in order.
    fn order(quantum: &str, lengths: [usize; 2], packets: usize) -> Vec<u8> {
        let mut h = sched(2, quantum).unwrap();
        for _ in 0..packets {
            (0..2).for_each(|input| h.feed(input, packet(&vec![input as u8; lengths[input]])));
        }
        (0..packets).flat_map(|_| h.pull(0, 1)).map(|p| p.data()[0]).collect()
    }

    #[test]
    fn an_input_gives_what_it_may_and_then_the_next() {
        assert_eq!(order("300", [100, 100], 9), [1, 1, 1, 0, 0, 0, 1, 1, 1]);
        // What it may to the byte.
        assert_eq!(order("100", [100, 99], 4), [1, 0, 1, 0]);
    }

    #[test]
    fn an_input_without_packets_saves_nothing_up() {
        let mut h = sched(2, "500").unwrap();
        (0..50).for_each(|_| h.feed(1, packet(&[1; 100])));
        assert_eq!((0..50).map(|_| h.pull(0, 1).len()).sum::<usize>(), 50);
        for _ in 0..20 {
            h.feed(0, packet(&[0; 100]));
            h.feed(1, packet(&[1; 100]));
        }
        let first: Vec<u8> = (0..12).flat_map(|_| h.pull(0, 1)).map(|p| p.data()[0]).collect();
        assert!(first.iter().filter(|&&input| input == 0).count() <= 7, "{first:?}");
    }
}
