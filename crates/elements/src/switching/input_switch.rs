//! InputSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "InputSwitch",
    category: "switching",
    summary: "passes packets of one input that can be set",
    ports: "-/1",
    processing: "h/h",
    doc: "Passes the packets that come in by input OUTPUT, as Click calls it, and drops the others; all while that is negative.",
    args: &[optional("OUTPUT", "input", "whose packets pass; default 0")],
    handlers: &[
        reads_writes("switch", "input whose packets pass; -1, or one that there is not, drops all")
            .sets("OUTPUT"),
        CONFIG,
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> [0] s :: InputSwitch -> Discard; Idle -> [1] s;",
    see: &["Switch", "PullSwitch"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Off = "off", "it came by another input";
    }
}

struct InputSwitch {
    /// `None` drops all.
    input: Option<usize>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let input: i32 = conf.optional("OUTPUT", 0);
    let (input, inputs) = (usize::try_from(input).ok(), conf.n_inputs());
    if input.is_some_and(|input| input > 0 && input >= inputs) {
        conf.error(format!("input must be < {inputs}"));
    }
    conf.finish()?;
    Ok(Box::new(InputSwitch { input }))
}

impl Element for InputSwitch {
    fn packet(&mut self, port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        (self.input == Some(port)).or_drop(Reason::Off)
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.input.map_or("-1".to_owned(), |input| input.to_string()))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let input: i32 =
            cx.value(handler, value).map_err(|_| Error::new("InputSwitch input must be integer"))?;
        self.input = usize::try_from(input).ok().filter(|&input| input < cx.n_inputs());
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<InputSwitch>() {
            self.input = new.input;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn one_input_passes() {
        let mut h = Harness::new(&SPEC, "", 3, 1).unwrap();
        let passing = |h: &mut Harness| -> Vec<u8> {
            (0..3).for_each(|input| h.push(input, packet(&[input as u8])));
            h.assert_balanced();
            h.take(0).iter().map(|p| p.data()[0]).collect()
        };
        assert_eq!(passing(&mut h), [0]);
        h.write("switch", "2").unwrap();
        assert_eq!(
            (passing(&mut h), h.read("switch").unwrap(), h.read("config").unwrap()),
            (vec![2], "2".into(), "OUTPUT 2".into())
        );
        h.write("switch", "3").unwrap();
        assert_eq!((passing(&mut h), h.read("switch").unwrap()), (vec![], "-1".to_owned()));
        h.write("config", "1").unwrap();
        assert_eq!((passing(&mut h), h.drops()), (vec![1], vec![("off", 9)]));
        assert_eq!(Harness::new(&SPEC, "3", 3, 1).err().unwrap(), ["input must be < 3"]);
    }
}
