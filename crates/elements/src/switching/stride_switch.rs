//! StrideSwitch.

use crate::scheduling::stride::{self, Strides};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StrideSwitch",
    category: "switching",
    summary: "sends packets to its outputs as often as their tickets say",
    ports: "1/1-",
    processing: "h/h",
    doc: "Sends each packet to the output whose turn it is. An output with twice the TICKETS has its turn twice as often. \
          Without any tickets packets are dropped.",
    args: stride::ARGS,
    handlers: stride::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> s :: StrideSwitch(2, 1) -> Discard; s[1] -> Discard;",
    see: &["RoundRobinSwitch", "RandomSwitch", "HashSwitch", "StrideSched"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoTickets = "no-tickets", "no output has tickets";
    }
}

struct StrideSwitch(Strides);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let strides = Strides::configure(conf, conf.n_outputs(), "output");
    conf.finish()?;
    Ok(Box::new(StrideSwitch(strides)))
}

impl Element for StrideSwitch {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(output) = self.0.nth(0) else { return Verdict::drop(Reason::NoTickets) };
        self.0.advance(output);
        self.0.settle(1);
        Verdict::Out(output)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        self.0.read(handler)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.0.write(handler, value, cx)
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<StrideSwitch>() {
            self.0.take(&new.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    fn shares(h: &mut Harness, n: u8) -> [usize; 2] {
        h.push_all(0, (0..n).map(|n| packet(&[n])));
        h.assert_balanced();
        [0, 1].map(|port| h.take(port).len())
    }

    #[test]
    fn shares_follow_the_tickets() {
        let mut h = Harness::new(&SPEC, "3, 1", 1, 2).unwrap();
        assert_eq!(shares(&mut h, 100), [75, 25]);
        h.write("tickets1", "3").unwrap();
        let [first, second] = shares(&mut h, 100);
        assert!(first.abs_diff(second) <= 2, "{first} {second}");
        assert_eq!(h.read("config").unwrap(), "3, 3");
        h.write("config", "0, 0").unwrap();
        assert_eq!((shares(&mut h, 9), h.drops()), ([0, 0], vec![("no-tickets", 9)]));
        assert_eq!(Harness::new(&SPEC, "1", 1, 2).err().unwrap(), ["need 2 arguments, one per output port"]);
    }
}
