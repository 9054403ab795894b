//! StrideSched.

use super::stride::{self, Strides};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StrideSched",
    category: "scheduling",
    summary: "pulls from its inputs as often as their tickets say",
    ports: "1-/1",
    processing: "l/l",
    doc: "Answers each pull with a packet of the input whose turn it is, or of the next that has one. An input with twice \
          the TICKETS has its turn twice as often. Inputs whose notifiers say that there is nothing are not asked.",
    args: stride::ARGS,
    handlers: stride::HANDLERS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] s :: StrideSched(2, 1) -> Discard; Idle -> [1] s;",
    see: &["DRRSched", "PrioSched", "RoundRobinSched", "StrideSwitch"],
    build,
    ..Spec::DEFAULT
};

struct StrideSched(Strides);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let strides = Strides::configure(conf, conf.n_inputs(), "input");
    conf.finish()?;
    Ok(Box::new(StrideSched(strides)))
}

impl StrideSched {
    fn give(&mut self, one: &mut Batch, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut asked = 0;
        let mut given = None;
        while let Some(input) = self.0.nth(asked).filter(|_| given.is_none()) {
            if cx.packets_upstream(input) {
                cx.pull(input, 1, one);
                given = one.pop();
            }
            self.0.advance(input);
            asked += 1;
        }
        self.0.settle(asked);
        given
    }
}

impl Element for StrideSched {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut one = cx.lend_batch();
        while batch.len() < max && batch.room() > 0 {
            let Some(packet) = self.give(&mut one, cx) else { break };
            // There is room.
            let _ = batch.push(packet);
        }
        cx.return_batch(one);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        self.0.read(handler)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.0.write(handler, value, cx)
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<StrideSched>() {
            self.0.take(&new.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn sched(inputs: usize, config: &str) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![true; inputs], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, config, &ports)?;
        for _ in 0..1_000 {
            (0..inputs).for_each(|input| h.feed(input, packet(&[input as u8])));
        }
        Ok(h)
    }

    fn inputs(packets: &[Packet]) -> Vec<u8> {
        packets.iter().map(|p| p.data()[0]).collect()
    }

    fn shares(h: &mut Harness, n: usize) -> [usize; 3] {
        let given = inputs(&h.pull(0, n));
        h.assert_balanced();
        [0, 1, 2].map(|input| given.iter().filter(|&&i| i == input).count())
    }

    #[test]
    fn shares_follow_the_tickets() {
        let mut h = sched(3, "1, 2, 1").unwrap();
        assert_eq!(inputs(&h.pull(0, 8)), [1, 1, 0, 2, 1, 1, 2, 0]);
        assert_eq!(shares(&mut h, 200), [50, 100, 50]);
        h.write("tickets0", "0").unwrap();
        let [_, second, third] = shares(&mut h, 90);
        assert!(second.abs_diff(60) <= 1 && third.abs_diff(30) <= 1, "{second} {third}");
        h.write("tickets0", "2").unwrap();
        let [first, second, third] = shares(&mut h, 100);
        assert!(first.abs_diff(40) <= 1 && second.abs_diff(40) <= 1 && third.abs_diff(20) <= 1);
        assert_eq!((h.read("tickets0").unwrap(), h.read("config").unwrap()), ("2".into(), "2, 2, 1".into()));
        h.write("config", "1, 0, 1").unwrap();
        assert_eq!(shares(&mut h, 50)[1], 0);
    }

    #[test]
    fn an_input_without_packets_loses_its_turn() {
        let ports = Ports { pulled_inputs: vec![true; 2], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, "9, 1", &ports).unwrap();
        (0..5).for_each(|_| h.feed(1, packet(&[1])));
        assert_eq!(inputs(&h.pull(0, 9)), [1; 5]);
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| sched(2, config).err().unwrap().join("|");
        assert_eq!(error("1"), "need 2 arguments, one per input port");
        assert_eq!(error("1, x"), "argument 1 should be number of tickets (integer)");
        assert_eq!(error("-1, 1"), "argument 0 (number of tickets) must be >= 0");
        let mut h = sched(2, "1, 1").unwrap();
        assert_eq!(h.write("tickets1", "-1"), Err("number of tickets must be >= 0".to_owned()));
        assert!(h.write("tickets2", "1").is_err() && h.read("tickets2").is_err());
        assert_eq!(sched(2, "1, 99999").unwrap().warnings().len(), 1);
    }
}
