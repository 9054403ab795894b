//! StaticSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StaticSwitch",
    category: "switching",
    summary: "sends all packets to one output",
    ports: "1/-",
    processing: "h/h",
    doc: "Sends every packet to output OUTPUT. If that is negative, or there is no such output, packets are dropped. \
          Unlike that of Switch, OUTPUT stays what it is.",
    args: StaticSwitch::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> s :: StaticSwitch(1); s[0] -> Discard; s[1] -> Discard;",
    see: &["Switch", "StaticPullSwitch"],
    build: configured::<StaticSwitch>,
    ..Spec::DEFAULT
};

settings! {
    struct StaticSwitch {
        output: i32 = required("OUTPUT", "output", "where packets go");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Off = "off", "there is no output OUTPUT";
    }
}

impl Element for StaticSwitch {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match usize::try_from(self.output) {
            Ok(output) if output < cx.n_outputs() => Verdict::Out(output),
            _ => Verdict::drop(Reason::Off),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn all_packets_take_one_output() {
        for (config, counts) in [("0", [1, 0]), ("1", [0, 1]), ("2", [0, 0]), ("-1", [0, 0])] {
            let mut h = Harness::new(&SPEC, config, 1, 2).unwrap();
            h.push(0, packet(b"x"));
            assert_eq!(
                ([0, 1].map(|port| h.take(port).len()), h.drops().len()),
                (counts, 1 - counts[0] - counts[1])
            );
            h.assert_balanced();
        }
    }
}
