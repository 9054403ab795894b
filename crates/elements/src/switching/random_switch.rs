//! RandomSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "RandomSwitch",
    category: "switching",
    summary: "sends packets to outputs chosen at random",
    ports: "1/1-",
    processing: "h/h",
    doc: "Sends each packet to one of the outputs, all of which are as likely.",
    example: "InfiniteSource(LIMIT 9, STOP true) -> r :: RandomSwitch -> Discard; r[1] -> Discard;",
    see: &["RoundRobinSwitch", "StrideSwitch", "HashSwitch", "RandomSample"],
    build,
    ..Spec::DEFAULT
};

struct RandomSwitch;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(RandomSwitch))
}

impl Element for RandomSwitch {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let outputs = cx.n_outputs().max(1);
        Verdict::Out(cx.rng().usize(..outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn all_outputs_are_as_likely() {
        let mut h = Harness::new(&SPEC, "", 1, 4).unwrap();
        (0..20).for_each(|_| h.push_all(0, (0..200).map(|n| packet(&[n]))));
        // Four standard deviations.
        assert!((0..4).all(|port| h.take(port).len().abs_diff(1_000) < 110));
        h.assert_balanced();
    }
}
