//! Suppressor.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Suppressor",
    category: "switching",
    summary: "passes packets of inputs that are not switched off",
    ports: "-/=",
    processing: "a/a",
    flow: "#/#",
    doc: "What comes by an input leaves by the output of the same number, unless the handler of that number has been written false: then \
          pushed packets are dropped, and none are pulled. A hot swap begins with all of them on.",
    handlers: &[
        reads_writes("active#", "whether packets of that input pass"),
        writes("reset", "switches all inputs on"),
    ],
    drops: Reason::DOCS,
    example: "s :: Suppressor; InfiniteSource(LIMIT 5) -> [0] s [0] -> Discard; InfiniteSource(LIMIT 5) -> [1] s [1] -> Discard;",
    see: &["Bypass", "Switch", "InputSwitch"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Suppressed = "suppressed", "its input is switched off";
    }
}

struct Suppressor {
    active: Vec<bool>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(Suppressor { active: vec![true; conf.n_inputs()] }))
}

impl Suppressor {
    fn passes(&self, port: usize) -> bool {
        self.active.get(port).copied().unwrap_or(true)
    }

    /// The input that a handler is of.
    fn input(&mut self, handler: &str) -> Option<&mut bool> {
        let number: usize = handler.strip_prefix("active")?.parse().ok()?;
        self.active.get_mut(number)
    }
}

impl Element for Suppressor {
    fn packet(&mut self, port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if self.passes(port) { Verdict::Out(port) } else { Verdict::drop(Reason::Suppressed) }
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.passes(port) {
            cx.pull(port, max, batch);
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        self.input(handler).map(|active| active.to_string()).ok_or_else(|| Error::new("no such input"))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        if handler == "reset" {
            self.active.fill(true);
            return Ok(());
        }
        let value = cx.value(handler, value).map_err(|_| "active parameter must be boolean")?;
        *self.input(handler).ok_or("no such input")? = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn inputs_are_switched_off_and_on() {
        let mut h = Harness::new(&SPEC, "", 2, 2).unwrap();
        let pass = |h: &mut Harness| {
            (0..2).for_each(|port| h.push(port, packet(b"x")));
            [h.take(0).len(), h.take(1).len()]
        };
        assert_eq!(pass(&mut h), [1, 1]);
        h.write("active1", "false").unwrap();
        assert_eq!((pass(&mut h), h.read("active1").unwrap()), ([1, 0], "false".to_owned()));
        assert_eq!(h.drops(), [("suppressed", 1)]);
        assert_eq!(h.write("active0", "perhaps"), Err("active parameter must be boolean".to_owned()));
        h.write("reset", "").unwrap();
        assert_eq!(pass(&mut h), [1, 1]);
        h.assert_balanced();
    }

    #[test]
    fn it_may_be_pulled() {
        let ports = Ports { pulled_inputs: vec![true; 2], outputs: vec![Output::Pulled; 2] };
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        h.feed(1, packet(b"x"));
        h.write("active1", "false").unwrap();
        assert_eq!(h.pull(1, 9).len(), 0);
        h.write("active1", "true").unwrap();
        assert_eq!((h.pull(0, 9).len(), h.pull(1, 9).len()), (0, 1));
    }
}
