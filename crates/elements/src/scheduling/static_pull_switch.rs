//! StaticPullSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StaticPullSwitch",
    category: "scheduling",
    summary: "pulls from one input",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers pulls with packets of input INPUT, and with none if that is negative or there is no such input. Unlike \
          that of PullSwitch, INPUT stays what it is.",
    args: StaticPullSwitch::ARGS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] p :: StaticPullSwitch(0) -> Discard; Idle -> [1] p;",
    see: &["PullSwitch", "StaticSwitch"],
    build: configured::<StaticPullSwitch>,
    ..Spec::DEFAULT
};

settings! {
    struct StaticPullSwitch {
        input: i32 = required("INPUT", "input", "which input is pulled");
    }
}

impl Element for StaticPullSwitch {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        // There is no input of another number.
        if let Ok(input) = usize::try_from(self.input) {
            cx.pull(input, max, batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn one_input_is_pulled() {
        for (config, given) in [("0", vec![0]), ("1", vec![1]), ("2", vec![]), ("-1", vec![])] {
            let ports = Ports { pulled_inputs: vec![true; 2], outputs: vec![Output::Pulled] };
            let mut h = Harness::with_ports(&SPEC, config, &ports).unwrap();
            (0..2).for_each(|input| h.feed(input, packet(&[input as u8])));
            assert_eq!(h.pull(0, 9).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), given, "{config}");
        }
    }
}
