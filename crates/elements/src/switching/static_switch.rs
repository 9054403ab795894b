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
    build,
    lowers: Lowers::Alone,
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

/// An output that there is, if any.
struct Static(Option<usize>);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let StaticSwitch { output } = StaticSwitch::configure(conf);
    conf.finish()?;
    let output = usize::try_from(output).ok();
    Ok(Box::new(Static(output.filter(|&output| output < conf.n_outputs()))))
}

impl Element for Static {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.0.map_or(Verdict::drop(Reason::Off), Verdict::Out)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        match self.0 {
            Some(output) => b.leave(u16::try_from(output).ok()?),
            None => b.drop(Reason::Off as u16),
        }
        b.finish()
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
