//! RoundRobinSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "RoundRobinSwitch",
    category: "switching",
    summary: "sends packets to its outputs in turn",
    ports: "1/1-",
    processing: "h/h",
    doc: "Sends each packet to the output after the one before. In a router that runs a copy of its graph on each of \
          several workers, each copy takes its own turns.",
    example: "InfiniteSource(LIMIT 9, STOP true) -> r :: RoundRobinSwitch -> Discard; r[1] -> Discard;",
    see: &["StrideSwitch", "RandomSwitch", "HashSwitch", "RoundRobinSched"],
    build,
    ..Spec::DEFAULT
};

struct RoundRobinSwitch {
    next: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(RoundRobinSwitch { next: 0 }))
}

impl Element for RoundRobinSwitch {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let output = self.next;
        self.next = if output + 1 < cx.n_outputs() { output + 1 } else { 0 };
        Verdict::Out(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn outputs_take_turns() {
        let mut h = Harness::new(&SPEC, "", 1, 3).unwrap();
        h.push_all(0, (0..5).map(|n| packet(&[n])));
        h.push_all(0, (5..7).map(|n| packet(&[n])));
        let numbers =
            |h: &mut Harness, port| -> Vec<u8> { h.take(port).iter().map(|p| p.data()[0]).collect() };
        assert_eq!([0, 1, 2].map(|port| numbers(&mut h, port)), [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
        h.assert_balanced();
    }
}
