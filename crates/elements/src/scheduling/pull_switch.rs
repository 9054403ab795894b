//! PullSwitch, and the element that SimplePullSwitch is as well.

use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc, Notifies};

pub(crate) static SPEC: Spec = Spec {
    name: "PullSwitch",
    category: "scheduling",
    summary: "pulls from one input that can be set",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers pulls with packets of input INPUT, and with none while INPUT is negative. Pullers sleep while the \
          notifiers of that input say that there is nothing.",
    args: ARGS,
    handlers: HANDLERS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] p :: PullSwitch -> Discard; Idle -> [1] p;",
    see: &["SimplePullSwitch", "StaticPullSwitch", "Switch", "PrioSched"],
    notifies: Notifies { packets: true, room: false },
    build,
    ..Spec::DEFAULT
};

/// Arguments of the classes.
pub(super) const ARGS: &[ArgDoc] = &[optional("INPUT", "input", "which input is pulled; default 0")];

/// Handlers of the classes.
pub(super) const HANDLERS: &[HandlerDoc] = &[
    reads_writes("switch", "input that is pulled; -1, or one that there is not, gives nothing").sets("INPUT"),
    CONFIG,
];

struct PullSwitch {
    /// `None` gives nothing.
    input: Option<usize>,
}

pub(super) fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let input: i32 = conf.optional("INPUT", 0);
    let inputs = conf.n_inputs();
    conf.finish()?;
    Ok(Box::new(PullSwitch { input: usize::try_from(input).ok().filter(|&input| input < inputs) }))
}

impl PullSwitch {
    fn set(&mut self, input: Option<usize>, cx: &mut Cx<'_>) {
        self.input = input;
        cx.notify_packets(input.is_some_and(|input| cx.packets_upstream(input)));
    }
}

impl Element for PullSwitch {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let Some(input) = self.input {
            cx.pull(input, max, batch);
        }
        if batch.is_empty() && !self.input.is_some_and(|input| cx.packets_upstream(input)) {
            cx.notify_packets(false);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.input.map_or("-1".to_owned(), |input| input.to_string()))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let input: i32 = cx.value(handler, value).map_err(|_| Error::new("syntax error"))?;
        self.set(usize::try_from(input).ok().filter(|&input| input < cx.n_inputs()), cx);
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<PullSwitch>() {
            self.set(new.input, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simple_pull_switch;
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn one_input_is_pulled() {
        for spec in [&SPEC, &simple_pull_switch::SPEC] {
            let ports = Ports { pulled_inputs: vec![true; 3], outputs: vec![Output::Pulled] };
            let mut h = Harness::with_ports(spec, "", &ports).unwrap();
            for _ in 0..4 {
                (0..3).for_each(|input| h.feed(input, packet(&[input as u8])));
            }
            let pulled = |h: &mut Harness| -> Vec<u8> { h.pull(0, 2).iter().map(|p| p.data()[0]).collect() };
            assert_eq!(pulled(&mut h), [0, 0]);
            h.write("switch", "2").unwrap();
            assert_eq!((pulled(&mut h), h.read("config").unwrap()), (vec![2, 2], "INPUT 2".into()));
            h.write("switch", "9").unwrap();
            assert_eq!((pulled(&mut h), h.read("switch").unwrap()), (vec![], "-1".into()));
            h.write("config", "1").unwrap();
            assert_eq!(pulled(&mut h), [1, 1]);
            assert_eq!(h.write("switch", "x"), Err("syntax error".to_owned()));
            h.assert_balanced();
        }
    }
}
