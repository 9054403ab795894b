//! Switch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Switch",
    category: "switching",
    summary: "sends all packets to one output that can be set",
    ports: "1/-",
    processing: "h/h",
    doc: "Sends every packet to output OUTPUT. While OUTPUT is negative packets are dropped.",
    args: &[optional("OUTPUT", "output", "where packets go; default 0")],
    handlers: &[
        reads_writes("switch", "output that packets go to; -1, or one that there is not, drops them"),
        reads_writes("config", "the same; all that is configured"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> s :: Switch(1); s[0] -> Discard; s[1] -> Discard;",
    see: &["Tee"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Off = "off", "OUTPUT was -1";
    }
}

struct Switch {
    /// `None` drops packets.
    output: Option<usize>,
    outputs: usize,
}

impl Switch {
    fn set(&mut self, output: i32) -> Result<(), Error> {
        let port = usize::try_from(output).ok();
        if port.is_some_and(|port| port >= self.outputs) {
            return Err(Error::new(format!("output must be < {}", self.outputs)));
        }
        self.output = port;
        Ok(())
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let output = conf.optional("OUTPUT", 0);
    let mut switch = Switch { output: None, outputs: conf.n_outputs() };
    if let Err(why) = switch.set(output) {
        conf.error(why);
    }
    conf.finish()?;
    Ok(Box::new(switch))
}

impl Element for Switch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        match self.output {
            // What is left in the batch leaves by output 0.
            Some(0) => {}
            Some(port) => {
                let mut out = cx.lend_batch();
                out.append(batch);
                cx.emit_batch(port, out);
            }
            None => {
                cx.count_drops(Reason::Off, batch.len() as u64);
                batch.clear();
            }
        }
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        match self.output {
            Some(port) => b.leave(u16::try_from(port).ok()?),
            None => b.drop(Reason::Off as u16),
        }
        b.finish()
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.output.map_or("-1".to_owned(), |o| o.to_string()))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let output: i32 =
            cx.value(handler, value).map_err(|_| Error::new("Switch output must be integer"))?;
        match handler {
            "config" => self.set(output)?,
            _ => self.output = usize::try_from(output).ok().filter(|&port| port < self.outputs),
        }
        cx.set_config(output.to_string());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_engine::ir::Outcome;

    fn taken(h: &mut Harness) -> [usize; 3] {
        h.push_all(0, (0..2u8).map(|n| Packet::from_bytes(&[n]).unwrap()));
        [0, 1, 2].map(|port| h.take(port).len())
    }

    #[test]
    fn all_packets_take_the_output_that_is_set() {
        let mut h = Harness::new(&SPEC, "", 1, 3).unwrap();
        assert_eq!(taken(&mut h), [2, 0, 0]);
        h.write("switch", "2").unwrap();
        assert_eq!((taken(&mut h), h.read("switch").unwrap()), ([0, 0, 2], "2".to_owned()));
        assert_eq!(h.write("config", "3"), Err("output must be < 3".to_owned()));
        assert_eq!((taken(&mut h), h.read("config").unwrap()), ([0, 0, 2], "2".to_owned()));
        for (handler, off) in [("config", "-1"), ("switch", "3")] {
            h.write(handler, off).unwrap();
            assert_eq!((taken(&mut h), h.read("switch").unwrap()), ([0, 0, 0], "-1".to_owned()));
        }
        assert_eq!(h.drops(), [("off", 4)]);
        assert!(h.write("switch", "left").is_err());
        assert_eq!(Harness::new(&SPEC, "3", 1, 3).err().unwrap(), ["output must be < 3"]);
        h.assert_balanced();
    }

    #[test]
    fn what_it_says_it_does_is_what_is_set() {
        let mut h = Harness::new(&SPEC, "", 1, 3).unwrap();
        let says = |h: &Harness| h.lower().unwrap().run(&mut Packet::from_bytes(&[1]).unwrap(), 0);
        assert_eq!(says(&h), Outcome::Leave(0));
        h.write("switch", "2").unwrap();
        assert_eq!(says(&h), Outcome::Leave(2));
        h.write("switch", "-1").unwrap();
        assert_eq!(says(&h), Outcome::Drop(Reason::Off as usize));
    }

    #[test]
    fn order_is_kept() {
        let mut h = Harness::new(&SPEC, "1", 1, 2).unwrap();
        h.push_all(0, (0..9u8).map(|n| Packet::from_bytes(&[n]).unwrap()));
        assert!(h.take(1).iter().map(|p| p.data()[0]).eq(0..9));
    }
}
