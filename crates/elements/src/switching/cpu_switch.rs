//! CPUSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "CPUSwitch",
    category: "switching",
    summary: "sends packets to the output of their worker",
    ports: "1/1-",
    processing: "h/h",
    doc: "Sends all packets of worker N, counted from 0, to output N; with fewer outputs to the remainder of their number.",
    example: "InfiniteSource(LIMIT 9, STOP true) -> c :: CPUSwitch -> Discard; c[1] -> Discard;",
    see: &["StaticThreadSched", "RoundRobinSwitch"],
    build,
    ..Spec::DEFAULT
};

struct CPUSwitch;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(CPUSwitch))
}

impl Element for CPUSwitch {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        Verdict::Out(cx.worker() % cx.n_outputs().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_only_worker_is_the_first() {
        let mut h = Harness::new(&SPEC, "", 1, 3).unwrap();
        h.push_all(0, (0..5).map(|n| packet(&[n])));
        assert_eq!([0, 1, 2].map(|port| h.take(port).len()), [5, 0, 0]);
    }
}
