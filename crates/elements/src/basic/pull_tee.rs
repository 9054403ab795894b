//! PullTee.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PullTee",
    category: "basic",
    summary: "answers pulls and sends a copy of each packet to every other output",
    ports: "1/1-",
    processing: "l/lh",
    doc: "Answers pulls from output 0 with packets of its input, and pushes copies of them to the other outputs.",
    args: PullTee::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> t :: PullTee(2); t[0] -> Discard; t[1] -> Discard;",
    see: &["Tee"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct PullTee {
        n: Option<usize> = optional("N", "outputs", "how many outputs there are; an error if others are in use"), or(None);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (tee, outputs) = (PullTee::configure(conf), conf.n_outputs());
    if tee.n.is_some_and(|n| n != outputs) {
        conf.error(format!("{outputs} outputs implies {outputs} arms"));
    }
    conf.finish()?;
    Ok(Box::new(tee))
}

impl Element for PullTee {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        for port in 1..cx.n_outputs() {
            match packet.copy() {
                Some(copy) => cx.emit(port, copy),
                None => cx.count_drops(Reason::NoBuffer, 1),
            }
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn who_pulls_gets_the_packet_and_the_others_copies() {
        let ports = Ports {
            pulled_inputs: vec![true],
            outputs: vec![Output::Pulled, Output::Pushed, Output::Pushed],
        };
        let mut h = Harness::with_ports(&SPEC, "3", &ports).unwrap();
        (0..3).for_each(|n| h.feed(0, packet(&[n])));
        assert_eq!(h.pull(0, 2).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [0, 1]);
        for port in [1, 2] {
            assert_eq!(h.take(port).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [0, 1]);
        }
        assert!(Harness::with_ports(&SPEC, "2", &ports).is_err());
    }
}
